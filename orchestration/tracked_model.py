"""The name that MLflow stores with every logged model to load it by, so it stays importable for good."""

from orchestration.tracking.model import _load_pyfunc

__all__ = ["_load_pyfunc"]
