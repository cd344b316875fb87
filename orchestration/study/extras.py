"""Which packages of the extra `train` are missing. Training needs them; judging does not."""

from __future__ import annotations

from importlib.util import find_spec

from orchestration.study.errors import StudyError

TRAIN = (  # the packages of the extra, in the order of pyproject.toml
    "ray",
    "torch",
    "transformers",
    "deepspeed",
    "accelerate",
    "datasets",
    "nltk",
    "spacy",
    "optuna",
    "mlflow",
    "safetensors",
    "sentence-transformers",
    "sklearn",
)


def missing_packages() -> list[str]:
    """The packages of the extra that are not installed. Imports none of them."""
    return [name for name in TRAIN if find_spec(name.replace("-", "_")) is None]


def needs_train(what: str, absent: str) -> StudyError:
    """The error for a request `what` that needs the missing package `absent`."""
    return StudyError(f'{what}: needs {absent}, which is not installed\n  to get it: pip install "semray[train]"')
