"""Judging needs the light core of the package; training needs its extra `train`."""

from __future__ import annotations

from importlib.util import find_spec

from orchestration.study.errors import StudyError

TRAIN = (  # what the extra brings, in the order of pyproject.toml
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


def lacking() -> list[str]:
    """What of the extra is not installed here. Nothing is imported."""
    return [name for name in TRAIN if find_spec(name.replace("-", "_")) is None]


def needs_train(what: str, absent: str) -> StudyError:
    """What a person is told who asks for more than the light core can do."""
    return StudyError(f'{what}: needs {absent}, which is not installed\n  to get it: pip install "semray[train]"')
