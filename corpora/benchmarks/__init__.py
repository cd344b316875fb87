"""Evaluation sets as they are published, one file each."""
