"""Training for concept equivalence: settings, batches, the loss of a step."""
