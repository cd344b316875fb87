"""Several workers of a recipe learn one model, and where their batches are one worker's they learn what that one does."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpora.sentence_transformers.corpus import Columns, RecipeCorpus
from semray.testing import WORDS
from tests.tiny import tiny_backbone
from tests.workers import together
from trainers.engine.world import Stopped, World
from trainers.sentence_transformers.losses import ALONE, LOSSES, inner, spec_of
from trainers.sentence_transformers.settings import Settings

TEXTS = ["the old cat", "a small cup of water"]
GATHERED = {"gather_across_devices": True}
REQUIRED: dict[str, dict[str, Any]] = {
    "GISTEmbedLoss": {"guide": "tiny", **GATHERED},
    "CachedGISTEmbedLoss": {"guide": "tiny", "mini_batch_size": 1, **GATHERED},
    "CachedMultipleNegativesRankingLoss": {"mini_batch_size": 1, **GATHERED},
    "MatryoshkaLoss": {"loss": "CoSENTLoss", "matryoshka_dims": [16, 8], "n_dims_per_step": 1},
    "AdaptiveLayerLoss": {"loss": "CoSENTLoss"},
    "Matryoshka2dLoss": {"loss": "MultipleNegativesRankingLoss", "matryoshka_dims": [16, 8], "n_dims_per_step": 1},
}
TWICE = "CosineSimilarityLoss"
LONGER = {"max_steps": 6}  # two epochs
# Three batches an epoch, of which one worker gets two.
UNEVEN: dict[str, Any] = {"num_train_epochs": 2.0, "max_steps": None, "per_device_train_batch_size": 5}
GATHERING = [name for name, kind in LOSSES.items() if "gather_across_devices" in kind.arguments]


def rows_for(spec: Any) -> Columns:
    kind = LOSSES[inner(spec)["name"]]
    words = [f"the {a} of {b}" for a, b in pairwise(WORDS)]
    texts = {
        f"text{place}": [words[(row + 5 * place) % len(words)] for row in range(12)]
        for place in range(kind.texts[0])
    }
    label = [row % 2 if kind.label == "class" else row / 12 for row in range(12)]
    return Columns(texts, None if kind.label == "none" else [float(one) for one in label])


def learnt(folder: Path, loss: dict[str, Any], world: World, **given: Any) -> dict[str, list[float]]:
    """Vectors and the curve of a short training; the epoch has three steps of two batches."""
    from trainers.sentence_transformers.training import fit

    spec = spec_of(loss)
    settings = Settings(
        loss=spec, **{"max_steps": 4, "per_device_train_batch_size": 2, "learning_rate": 1e-3} | given
    )
    corpus = RecipeCorpus({"rows": rows_for(spec)}, {"tiny": str(folder / "tiny")}, "")
    encoder, curve = fit(settings, folder / "tiny", corpus, 3, world)
    return {"vectors": encoder.encode(TEXTS).ravel().tolist(), "losses": [point.loss for point in curve]}


def some(rank: int, size: int, folder: Path) -> None:
    """What each worker has learnt, as a file."""
    world = World(rank=rank, size=size)
    found = {
        "twice": learnt(folder, {"name": TWICE}, world),
        "as one": learnt(folder, {"name": GATHERING[0], **GATHERED}, world),
        "resumed": after_a_stop(rank, size, folder, 2),
        "longer": learnt(folder, {"name": TWICE}, world, **LONGER),
        "resumed later": after_a_stop(rank, size, folder, 4, **LONGER),
        "uneven": learnt(folder, {"name": TWICE}, world, **UNEVEN),
    }
    (folder / f"{rank}.json").write_text(json.dumps(found))


def every_loss(rank: int, size: int, folder: Path) -> None:
    """Likewise, by every loss that is not refused; and by those that gather once more as they come."""
    world = World(rank=rank, size=size)
    found = {
        name: learnt(folder, {"name": name, **REQUIRED.get(name, {})}, world)
        for name in LOSSES
        if name not in ALONE
    }
    found |= {f"{name} gathered": learnt(folder, gathering(name), world) for name in GATHERING}
    (folder / f"{rank}.json").write_text(json.dumps(found))


def gathering(name: str, **gathered: bool) -> dict[str, Any]:
    """The loss as its workers learn what one does: with a guide, anchors are never gathered, so without theirs."""
    guided = {"guide": "tiny", "contrast_anchors": False} if "guide" in LOSSES[name].arguments else {}
    return {"name": name, **guided, **(gathered or GATHERED)}


def after_a_stop(rank: int, size: int, folder: Path, steps: int, **given: Any) -> dict[str, list[float]]:
    """Stopped after so many steps, and gone on with."""
    import torch.distributed as dist

    asked, scratch = iter([False] * (steps - 1) + [True]), folder / f"stopped after {steps}"
    stopping = World(rank=rank, size=size, scratch=scratch, stopping=lambda: next(asked))
    with pytest.raises(Stopped):
        learnt(folder, {"name": TWICE}, stopping, **given)
    dist.barrier()
    return learnt(folder, {"name": TWICE}, World(rank=rank, size=size, scratch=scratch), **given)


def ranks(folder: Path, body: Callable[..., None]) -> list[dict[str, dict[str, list[float]]]]:
    """What two workers have learnt, from a backbone without dropout."""
    tiny_backbone(folder / "tiny", dropout=0.0)
    together(2, body, folder)
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in (0, 1)]


def same(one: dict[str, list[float]], other: dict[str, list[float]]) -> None:
    assert one["losses"] == pytest.approx(other["losses"], abs=1e-4)
    assert one["vectors"] == pytest.approx(other["vectors"], abs=1e-3)


def test_two_workers_learn_one_model_and_what_one_worker_would(tmp_path: Path) -> None:
    first, second = ranks(tmp_path, some)
    assert first == second  # to the bit, and one curve
    assert first["resumed"] == first["twice"]
    assert first["resumed later"] == first["longer"]
    assert len(first["uneven"]["losses"]) == 4
    same(first["twice"], learnt(tmp_path, {"name": TWICE}, World(), gradient_accumulation_steps=2))
    whole = learnt(tmp_path, {"name": GATHERING[0]}, World(), per_device_train_batch_size=4)
    same(first["as one"], whole)


@pytest.mark.long
def test_workers_learn_one_model_by_every_loss(tmp_path: Path) -> None:
    first, second = ranks(tmp_path, every_loss)
    assert set(LOSSES) - set(ALONE) <= first.keys()
    for name in first:
        assert first[name] == second[name], name
        assert np.isfinite(first[name]["losses"]).all()
    for name in GATHERING:
        one = learnt(
            tmp_path, gathering(name, gather_across_devices=False), World(), per_device_train_batch_size=4
        )
        same(first[f"{name} gathered"], one)
    for name in ("CosineSimilarityLoss", "CoSENTLoss", "MultipleNegativesRankingLoss", "TripletLoss"):
        same(first[name], learnt(tmp_path, {"name": name}, World(), gradient_accumulation_steps=2))
