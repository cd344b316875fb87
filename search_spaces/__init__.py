"""One declared search space per family."""
