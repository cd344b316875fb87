"""Trains by a user's command: starts it, follows it, ends it, and reads the files that it wrote."""
