"""Syntactically aligned negatives: hierarchical InfoNCE on four hosts, with teachers and a second dropout rate."""
