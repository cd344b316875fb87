"""Scores of runs that were made elsewhere: one table with a row for each arm, seed, metric and item."""
