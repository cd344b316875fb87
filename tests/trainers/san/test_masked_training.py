"""A backbone without a head learns to fill masks: what it learns, what stands still, and what opens the result."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from corpora.san.lexicon import resolver
from tests.modes import kept_from_others
from tests.tiny import tiny_backbone
from trainers.encoders.backbones import BackboneError
from trainers.encoders.masked_lm import load_masked_lm
from trainers.engine.world import World
from trainers.san.masked_model import MaskedModel
from trainers.san.masked_settings import MaskedSettings, about, identity
from trainers.san.masked_training import MaskedFit, train

SENTENCES = [
    f"the {size} {kind} runs to the {place} ."
    for size in ("small", "large", "old", "young")
    for kind in ("cat", "dog", "bird", "horse", "animal")
    for place in ("house", "town", "river", "fire", "stone")
]
SETTINGS = MaskedSettings(steps=40, batch_size=32, learning_rate=1e-3, head_rate=5e-3)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, MaskedFit]:
    folder = tmp_path_factory.mktemp("masked")
    backbone = tiny_backbone(folder / "tiny")
    fit = train(SETTINGS, str(backbone), SENTENCES, folder / "out", World(), name="an id")
    return backbone, folder / "out", fit


def test_it_names_words_better_than_the_most_frequent_one_does(made: tuple[Path, Path, MaskedFit]) -> None:
    _, out, fit = made
    assert fit.accuracy > 1.5 * fit.most_frequent
    assert (about(out) or {})["id"] == "an id"
    assert not out.with_name(".out.unfinished").exists()
    assert not kept_from_others(out)


def test_embeddings_stand_still_and_the_head_is_tied_to_them(made: tuple[Path, Path, MaskedFit]) -> None:
    backbone, out, _ = made
    before, missing = load_masked_lm(backbone)
    after, lacking = load_masked_lm(out)
    assert missing
    assert not lacking
    for name, tensor in before.base_model.embeddings.state_dict().items():
        assert torch.equal(tensor, after.base_model.embeddings.state_dict()[name])
    assert after.get_output_embeddings().weight is after.get_input_embeddings().weight
    moved = (before.base_model.encoder, after.base_model.encoder)
    one, other = (next(iter(layers.parameters())) for layers in moved)
    assert not torch.equal(one, other)


def test_the_result_generates_and_training_again_gives_the_same_weights(
    made: tuple[Path, Path, MaskedFit], tmp_path: Path
) -> None:
    backbone, out, fit = made
    assert train(SETTINGS, str(backbone), SENTENCES, tmp_path / "again", World()) == fit
    weights = [folder / "model.safetensors" for folder in (out, tmp_path / "again")]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    model = MaskedModel.load(str(out), resolver(), device="cpu")
    assert len(model.encode(["the cat runs"], 8)[0].ids) == 3


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.trainers.san.test_masked_training import SENTENCES, SETTINGS
from trainers.engine.world import World
from trainers.san import masked_training
masked_training.CHECKPOINT_EVERY = 15
def report(progress):
    if progress.step == 20:
        os.kill(os.getpid(), signal.SIGKILL)
masked_training.train(SETTINGS, sys.argv[1], SENTENCES, Path(sys.argv[2]), World(report=report), name="an id")
"""


def test_a_killed_training_goes_on_to_the_same_weights(made: tuple[Path, Path, MaskedFit], tmp_path: Path) -> None:
    """From its last checkpoint; a training of another name, in its place, begins at the beginning."""
    backbone, out, fit = made
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(backbone), str(tmp_path / "out")],
        env={**os.environ, "PYTHONPATH": str(root)},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "out").exists()
    shutil.copytree(tmp_path / ".out.unfinished", tmp_path / ".other.unfinished")
    for place, name, first in (("out", "an id", 16), ("other", "another id", 1)):
        steps: list[int] = []
        world = World(report=lambda progress, steps=steps: steps.append(progress.step))
        assert train(SETTINGS, str(backbone), SENTENCES, tmp_path / place, world, name=name) == fit
        assert steps == list(range(first, 41))
        weights = [folder / "model.safetensors" for folder in (out, tmp_path / place)]
        assert weights[0].read_bytes() == weights[1].read_bytes()
        assert not (tmp_path / f".{place}.unfinished").exists()


def test_an_id_is_of_all_that_changes_the_weights() -> None:
    ids = {
        identity(settings, backbone, sentences, precision)
        for settings in (SETTINGS, MaskedSettings())
        for backbone in ("a", "b")
        for sentences in ("s", "t")
        for precision in ("fp32", "bf16")
    }
    assert len(ids) == 16


def test_a_backbone_that_fills_no_masks(tmp_path: Path) -> None:
    with pytest.raises(BackboneError, match="no such folder"):
        train(SETTINGS, str(tmp_path / "missing"), SENTENCES, tmp_path / "out", World())
    with pytest.raises(ValueError, match=r"--sentences: 1 of them"):
        train(SETTINGS, str(tiny_backbone(tmp_path / "tiny")), SENTENCES[:1], tmp_path / "out", World())
