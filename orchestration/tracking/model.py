"""Loads a trained encoder for MLflow, which stores a pointer to the ledger: no pickle, no copy of the weights.

    mlflow.pyfunc.load_model("models:/<model id>").predict(["a small pot for boiling water"])

If the ledger moved, name its new place: `load_model(..., model_config={"ledger": "/new/place"})`.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from orchestration.ledger.storage import open_storage
from orchestration.study.errors import StudyError

LOADER = "orchestration.tracked_model"  # stored in MLflow's records, so it must never change


def model_files(folder: Path, ledger: str, run_id: str) -> bool:
    """Write MLflow's description of a run's encoder; False if the ledger has no encoder of the run."""
    import yaml

    try:
        open_storage(ledger).read(f"{run_id}/model/modules.json")
    except OSError:
        return False
    flavor = {
        "loader_module": LOADER,
        "python_version": platform.python_version(),
        "config": {"ledger": ledger, "run": run_id},
    }
    signature = {"inputs": '[{"type": "string", "required": true}]', "outputs": None, "params": None}
    described = {"flavors": {"python_function": flavor}, "signature": signature}
    (folder / "MLmodel").write_text(yaml.safe_dump(described, sort_keys=False))
    (folder / "requirements.txt").write_text("semray\n")
    return True


class TrackedEncoder:
    """The model that MLflow calls: texts in, embeddings out."""

    def __init__(self, folder: Path) -> None:
        from trainers.encoders.gated_pooling import sentence_transformer

        self.encoder = sentence_transformer(
            folder, device="cpu", local_files_only=True, model_kwargs={"use_safetensors": True}
        )

    def predict(self, texts: Any, params: Mapping[str, Any] | None = None) -> np.ndarray:
        """N texts (a sequence, or the first column of a data frame) -> (N, D) float32."""
        rows: Sequence[Any] = texts.iloc[:, 0] if hasattr(texts, "iloc") else texts
        return self.encoder.encode([str(text) for text in rows], show_progress_bar=False)


def _load_pyfunc(path: str, model_config: Mapping[str, str]) -> TrackedEncoder:
    """The function that MLflow calls to load a model. StudyError if the ledger has no model of the run."""
    from orchestration.ledger.ledger import Ledger

    ledger = Ledger(model_config["ledger"])
    folder = ledger.model_of(model_config["run"]) if ledger.has(model_config["run"]) else None
    if folder is None:
        raise StudyError(
            f"{model_config['ledger']}: holds no model of run {model_config['run']}\n"
            '  accepted: the ledger\'s place now, as load_model(..., model_config={"ledger": "PLACE"})'
        )
    return TrackedEncoder(folder)
