"""Copies of weights made at once are those that autocast makes one by one: no digit of a training moves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.tiny import tiny_corpus
from tests.trainers.cale_corpus import cale_corpus
from tests.trainers.san.corpus import san_corpus
from trainers.cale import settings as cale_settings
from trainers.cale import training as cale
from trainers.concept import settings as concept_settings
from trainers.concept import training as concept
from trainers.engine import loop
from trainers.engine.bf16_copies import bf16_copies, with_bf16_copies
from trainers.engine.world import World
from trainers.san import settings as san_settings
from trainers.san import training as san

SHORT: dict[str, Any] = {"steps": 3, "batch_size": 8, "learning_rate": 1e-3, "max_length": 32}
SAN = partial(san_settings.Settings, san="hince", negatives="san", **SHORT)
CONCEPT = partial(concept_settings.Settings, hard_negatives=True, **SHORT)
ARMS: dict[str, tuple[Callable[..., Any], Any, Callable[[], Any]]] = {
    "san, negatives apart": (san.fit, SAN(), san_corpus),
    "san, in parts": (san.fit, SAN(micro_batch=10), san_corpus),
    "concept": (concept.fit, CONCEPT(), tiny_corpus),
    "concept, gated": (concept.fit, CONCEPT(readout="gated", layers=2), tiny_corpus),
    "cale": (cale.fit, cale_settings.Settings(**{**SHORT, "max_length": 48}), cale_corpus),
}


@pytest.mark.parametrize("arm", ARMS)
def test_a_training_is_the_one_of_autocast_alone(
    arm: str, backbone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit, settings, corpus = ARMS[arm]
    asked: list[int] = []

    def heard(encode: Any, layers: Any) -> Any:
        asked.append(len(layers))
        return with_bf16_copies(encode, layers)

    def found() -> tuple[list[float], list[torch.Tensor]]:
        trained, curve = fit(settings, backbone, corpus(), 0, World(precision="bf16"))
        encoder = getattr(trained, "encoder", trained)
        return [one.loss for one in curve], [one.detach() for one in encoder.parameters()]

    monkeypatch.setattr(loop, "with_bf16_copies", heard)
    losses, weights = found()
    assert asked == [3 * 6 * 2] * 3  # weight and bias of all linear layers of three of BERT's, in each step
    monkeypatch.setattr(loop, "with_bf16_copies", lambda encode, _: encode)
    alone, weights_alone = found()
    assert losses == alone
    assert all(torch.equal(one, other) for one, other in zip(weights, weights_alone, strict=True))


def test_gradients_are_those_of_autocast_and_a_layer_that_is_not_read_has_none() -> None:
    """Else weight decay would reach it. The layers have no biases; of the middle ones one is read, and one is frozen."""

    def gradients(copied: bool) -> list[torch.Tensor | None]:
        torch.manual_seed(0)
        layers = nn.ModuleList(nn.Linear(6, 6, bias=False) for _ in range(4))
        layers[2].requires_grad_(False)
        copies = [copy for layer in layers for copy in bf16_copies(layer)]

        def read(rows: torch.Tensor) -> torch.Tensor:
            with torch.autocast("cpu", torch.bfloat16):
                return layers[3](layers[2](layers[0](rows)))

        rows = torch.randn(5, 6)
        (with_bf16_copies(read, copies) if copied else read)(rows).float().square().sum().backward()
        return [parameter.grad for parameter in layers.parameters()]

    of_copies, of_autocast = gradients(True), gradients(False)
    assert [one is None for one in of_copies] == [False, True, True, False]
    for one, other in zip(of_copies, of_autocast, strict=True):
        assert one is other is None or torch.equal(one, other)


def test_parameters_are_there_again_and_what_is_frozen_is_not_copied() -> None:
    layer = nn.Linear(4, 4)
    layer.bias.requires_grad_(False)

    def seen(rows: torch.Tensor) -> torch.Tensor:
        assert layer.weight.dtype is torch.bfloat16
        assert layer.bias.dtype is torch.float32
        raise RuntimeError("no memory")

    with pytest.raises(RuntimeError, match="no memory"):
        with_bf16_copies(seen, bf16_copies(layer))(torch.ones(2, 4))
    assert isinstance(layer.weight, nn.Parameter)
    assert "weight" not in vars(layer)
    layer.weight.requires_grad_(False)
    assert with_bf16_copies(layer, bf16_copies(layer))(torch.ones(2, 4)).dtype is torch.float32
