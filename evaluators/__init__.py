"""Tasks, metrics and the statistics that turn paired seeds into verdicts. Knows embeddings, never models."""
