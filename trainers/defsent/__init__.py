"""Training on definitions: settings, batches, the head that names words, the loss of a step."""
