"""What a model's card says opens it gives the vectors that its run was scored by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestration.families.contract import FamilyEncoder
from orchestration.families.opening import SENTENCE_TRANSFORMER
from orchestration.families.registry import family
from tests.tiny import tiny_backbone
from trainers.encoders.encoder import Encoder
from trainers.san.readers import Prompted

TEXTS = ["a vessel for hot drinks"]


def plain(folder: Path) -> FamilyEncoder:
    return Encoder.load(folder, max_length=9)


def gated(folder: Path) -> FamilyEncoder:
    return Encoder.load(folder, readout="gated", layers=2)


def prompted(folder: Path) -> FamilyEncoder:
    return Prompted(Encoder.load(folder, max_length=32))


@pytest.mark.parametrize(
    ("name", "made", "said"),
    [
        ("concept", plain, "SentenceTransformer("),
        ("concept", gated, "gated_pooling"),
        ("san", plain, "SentenceTransformer("),
        ("san", prompted, "Prompted.load"),
    ],
)
def test_the_card_opens_what_was_saved(name: str, made: Any, said: str, tmp_path: Path) -> None:
    encoder = made(tiny_backbone(tmp_path / "tiny", layers=2))
    encoder.save(tmp_path / "saved")
    lines = family(name).opened_by(tmp_path / "saved")
    assert said in lines
    found: dict[str, Any] = {}
    exec(lines.replace("FOLDER", str(tmp_path / "saved")), found)
    wanted = encoder.readers["texts"](TEXTS)
    assert found["vectors"] == pytest.approx(wanted, abs=1e-5)
    assert np.linalg.norm(found["vectors"], axis=1) == pytest.approx(1.0, abs=1e-5)


def test_nothing_is_promised_of_a_folder_without_an_encoder(tmp_path: Path) -> None:
    (tmp_path / "stsb").mkdir()
    (tmp_path / "stsb" / "adapter.safetensors").write_bytes(b"")
    for name in ("command", "concept", "difficulty", "san"):
        assert family(name).opened_by(tmp_path) == ""


def test_a_folder_of_transformers_opens_as_well(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert family("command").opened_by(tmp_path) == SENTENCE_TRANSFORMER
