"""Training of concept-aligned embeddings: settings, batches, the loss of a step."""
