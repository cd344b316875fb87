"""One DeepSpeed training engine, the encoder, readouts and losses; one module per model family."""
