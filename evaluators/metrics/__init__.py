"""Numbers from embeddings and from items: ranks, correlations, thresholds, the shape of a space."""
