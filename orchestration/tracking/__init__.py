"""The ledger and its findings mirrored in MLflow."""
