"""Unchanged encoders: nothing is trained."""
