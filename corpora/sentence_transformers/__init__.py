"""Training sets of texts in columns, with or without a label, as losses of sentence-transformers take them."""
