"""The gated readout: uniform before training, another mixture for each text after it, and what a folder keeps of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.tiny import tiny_corpus
from trainers.concept.settings import Settings
from trainers.concept.training import fit
from trainers.encoders.backbones import BackboneError, resolve_backbone
from trainers.encoders.encoder import Encoder
from trainers.encoders.gated_pooling import sentence_transformer
from trainers.encoders.layer_gate import LayerGate
from trainers.engine.world import World

TEXTS = [
    "a cup",
    "a large vessel that holds hot food for any person or animal of the town",
    "fire",
    "old horse runs",
]


@pytest.fixture
def opened(backbone: Path) -> Encoder:
    """A gate that is far from uniform."""
    encoder = Encoder.load(backbone, readout="gated", layers=3, max_length=12, prefix="a tool: ")
    assert encoder.layer_gate is not None
    encoder.layer_gate.initialise(torch.Generator().manual_seed(0))
    torch.nn.init.normal_(encoder.layer_gate.outer.weight, std=0.3, generator=torch.Generator().manual_seed(1))
    return encoder


def test_it_has_as_many_parameters_as_the_two_layers_written_down():
    """768 · 128 + 128 and 128 · 4 + 4."""
    assert sum(parameter.numel() for parameter in LayerGate(768, 4).parameters()) == 98_948


def test_it_begins_as_the_uniform_mixture_whatever_was_drawn(backbone: Path):
    uniform = Encoder.load(backbone, readout="weighted", layers=2).encode(TEXTS)
    encoder = Encoder.load(backbone, readout="gated", layers=2)
    assert np.allclose(encoder.encode(TEXTS), uniform, atol=1e-6)
    assert encoder.layer_gate is not None
    before = torch.random.get_rng_state()
    encoder.layer_gate.initialise(torch.Generator().manual_seed(3))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert np.allclose(encoder.encode(TEXTS), uniform, atol=1e-6)


def test_one_that_was_trained_is_trained_on(opened: Encoder, tmp_path: Path):
    """Only a gate without any weights is given some: the seed of a second training has no say in the mixture."""
    opened.save(tmp_path / "saved")
    settings = Settings(readout="gated", layers=3, steps=1, batch_size=4, learning_rate=1e-12, max_length=12)
    for seed in (0, 1):
        again, _ = fit(settings, tmp_path / "saved", tiny_corpus(20), seed, World())
        assert again.layer_gate is not None
        assert opened.layer_gate is not None
        for one, same in zip(again.layer_gate.parameters(), opened.layer_gate.parameters(), strict=True):
            assert torch.allclose(one, same, atol=1e-6)


def test_each_text_has_weights_of_its_own_and_its_vector_is_their_mixture(opened: Encoder):
    readings = opened.read_layers(TEXTS)
    means = np.stack([layers for layers, _ in readings])  # (N, L + 1, D)
    taken = np.stack([weights for _, weights in readings if weights is not None])
    assert taken.shape == (4, 4)
    assert np.allclose(taken.sum(1), 1, atol=1e-6)
    assert (taken[:, 0] == 0).all()
    assert (taken[:, 1:] > 0).all()
    assert np.ptp(taken, axis=0).max() > 0.02
    mixed = np.einsum("nl,nld->nd", taken, means)
    assert np.allclose(opened.encode(TEXTS), mixed / np.linalg.norm(mixed, axis=1, keepdims=True), atol=1e-5)


def test_what_is_saved_opens_here_and_as_a_sentence_transformer_without_trust(opened: Encoder, tmp_path: Path):
    opened.save(tmp_path / "model")
    rows = opened.encode(TEXTS)
    assert np.allclose(Encoder.load(tmp_path / "model").encode(TEXTS), rows, atol=1e-6)
    theirs = sentence_transformer(tmp_path / "model", device="cpu", local_files_only=True)
    assert np.allclose(theirs.encode(TEXTS), rows, atol=1e-5)
    assert resolve_backbone(str(tmp_path / "model")) == tmp_path / "model"
    assert {path.suffix for path in (tmp_path / "model").rglob("*") if path.is_file()} <= {
        ".json",
        ".safetensors",
        ".txt",
    }
    theirs.save(str(tmp_path / "again"))
    again = sentence_transformer(tmp_path / "again", device="cpu", local_files_only=True)
    assert np.allclose(again.encode(TEXTS), rows, atol=1e-5)
    (tmp_path / "model" / "1_GatedLayerPooling" / "model.safetensors").unlink()
    with pytest.raises(BackboneError, match=r"1_GatedLayerPooling/model\.safetensors"):
        resolve_backbone(str(tmp_path / "model"))


def test_a_folder_without_a_gate_opens_as_ever(backbone: Path, tmp_path: Path):
    encoder = Encoder.load(backbone, readout="weighted", layers=2)
    encoder.save(tmp_path / "model")
    theirs = sentence_transformer(tmp_path / "model", device="cpu")
    assert np.allclose(theirs.encode(TEXTS), encoder.encode(TEXTS), atol=1e-5)


def test_the_readings_of_the_other_readouts(backbone: Path):
    mean, cls = (Encoder.load(backbone, readout=readout).read_layers(TEXTS)[0] for readout in ("mean", "cls"))
    assert mean[1] is not None
    assert mean[1].tolist() == [0, 0, 0, 1]
    assert cls[1] is None
    weighted = Encoder.load(backbone, readout="weighted", layers=2)
    assert weighted.layer_logits is not None
    weighted.layer_logits.data = torch.tensor([0.0, 1.0])
    assert weighted.read_layers(TEXTS)[0][1] == pytest.approx([0, 0, 1 / (1 + np.e), np.e / (1 + np.e)])
    assert Encoder.load(backbone).read_layers([]) == []
