"""Training sets for losses of sentence-transformers: texts in columns, with or without a label."""
