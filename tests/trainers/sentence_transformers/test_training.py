"""Every loss that a study may name trains; the rows, the mixture and what a checkpoint holds are as declared."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from corpora.sentence_transformers.corpus import Columns, RecipeCorpus
from semray.testing import WORDS
from tests.tiny import tiny_backbone
from trainers.engine.loop import Diverged
from trainers.engine.world import Progress, Stopped, World
from trainers.errors import TrainerError
from trainers.sentence_transformers.losses import LOSSES, inner, spec_of
from trainers.sentence_transformers.settings import LoraSettings, Settings
from trainers.sentence_transformers.training import _workers_as_in, fit, read

ARGUMENTS: dict[str, dict[str, Any]] = {  # every argument of every loss, with another value than its default
    "MultipleNegativesRankingLoss": {
        "scale": 10,
        "directions": ["query_to_doc", "doc_to_query"],
        "partition_mode": "per_direction",
        "hardness_mode": "all_negatives",
        "hardness_strength": 2.0,
        "gather_across_devices": True,
    },
    "CachedMultipleNegativesRankingLoss": {
        "scale": 10.0,
        "directions": ["query_to_doc", "query_to_query"],
        "partition_mode": "joint",
        "hardness_mode": "in_batch_negatives",
        "hardness_strength": 2.0,
        "gather_across_devices": True,
        "mini_batch_size": 2,
    },
    "GISTEmbedLoss": {
        "guide": "tiny",
        "temperature": 0.1,
        "margin_strategy": "relative",
        "margin": 0.1,
        "contrast_anchors": False,
        "contrast_positives": False,
        "gather_across_devices": True,
    },
    "CachedGISTEmbedLoss": {
        "guide": "tiny",
        "temperature": 0.1,
        "margin_strategy": "relative",
        "margin": 0.1,
        "contrast_anchors": False,
        "contrast_positives": False,
        "gather_across_devices": True,
        "mini_batch_size": 2,
    },
    "TripletLoss": {"triplet_margin": 3.0},
    "CoSENTLoss": {"scale": 10.0},
    "AnglELoss": {"scale": 10.0},
    "CosineSimilarityLoss": {},
    "ContrastiveLoss": {"margin": 0.9},
    "OnlineContrastiveLoss": {"margin": 0.9},
    "SoftmaxLoss": {
        "num_labels": 3,
        "concatenation_sent_rep": False,
        "concatenation_sent_difference": True,
        "concatenation_sent_multiplication": True,
    },
    "BatchAllTripletLoss": {"margin": 3.0},
    "BatchHardTripletLoss": {"margin": 3.0},
    "BatchHardSoftMarginTripletLoss": {},
    "BatchSemiHardTripletLoss": {"margin": 3.0},
    "MatryoshkaLoss": {
        "loss": "MultipleNegativesRankingLoss",
        "matryoshka_dims": [16, 8],
        "matryoshka_weights": [1, 0.5],
        "n_dims_per_step": 1,
    },
    "AdaptiveLayerLoss": {
        "loss": {"name": "CoSENTLoss", "scale": 10.0},
        "n_layers_per_step": 2,
        "last_layer_weight": 0.5,
        "prior_layers_weight": 0.5,
        "kl_div_weight": 0.5,
        "kl_temperature": 0.5,
        "layer_weighting": "log",
    },
    "Matryoshka2dLoss": {
        "loss": "MultipleNegativesRankingLoss",
        "matryoshka_dims": [16, 8],
        "matryoshka_weights": [1, 0.5],
        "n_dims_per_step": 1,
        "n_layers_per_step": 2,
        "last_layer_weight": 0.5,
        "prior_layers_weight": 0.5,
        "kl_div_weight": 0.5,
        "kl_temperature": 0.5,
        "layer_weighting": "linear",
    },
}


@pytest.fixture(scope="module", autouse=True)
def frozen() -> Iterator[None]:
    """As in a lane: what the libraries have imported is looked through for garbage no more."""
    import trainers.sentence_transformers.trainer  # noqa: F401

    gc.freeze()
    yield
    gc.unfreeze()


def columns(count: int, label: str = "none", rows: int = 12) -> Columns:
    """count columns of different texts."""
    words = [f"the {a} of {b}" for a, b in pairwise(WORDS)]
    texts = {
        f"text{place}": [words[(row + 5 * place) % len(words)] for row in range(rows)] for place in range(count)
    }
    labels = {"none": None, "class": [float(row % 2) for row in range(rows)]}
    return Columns(texts, labels.get(label, [row / rows for row in range(rows)]))


def corpus(backbone: Path, **sets: Columns) -> RecipeCorpus:
    return RecipeCorpus(sets, {"tiny": str(backbone)}, "")


def trained(backbone: Path, found: RecipeCorpus, seed: int = 3, world: World | None = None, **given: Any) -> Any:
    settings = Settings(**{"max_steps": 2, "per_device_train_batch_size": 4, "learning_rate": 1e-3} | given)
    return fit(settings, backbone, found, seed, world or World())


def vectors(encoder: Any) -> np.ndarray:
    return encoder.encode(["the old cat", "a small cup of water"])


@pytest.fixture(scope="module")
def plain(backbone: Path) -> np.ndarray:
    """What two steps with the defaults above give."""
    return vectors(trained(backbone, corpus(backbone, rows=columns(2)))[0])


def test_the_table_above_holds_every_loss_and_argument() -> None:
    assert {name: set(kind.arguments) for name, kind in LOSSES.items()} == {
        name: set(given) for name, given in ARGUMENTS.items()
    }


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_trains_with_every_argument(name: str, backbone: Path) -> None:
    spec = spec_of({"name": name, **ARGUMENTS[name]})
    kind = LOSSES[inner(spec)["name"]]
    found = corpus(backbone, rows=columns(max(kind.texts[0], 1), kind.label))
    sampler = "group_by_label" if name.startswith("Batch") else "batch_sampler"
    encoder, curve = trained(backbone, found, loss=spec, batch_sampler=sampler)
    assert [point.step for point in curve] == [1, 2]
    assert all(np.isfinite(point.loss) for point in curve)
    assert not np.allclose(vectors(encoder), vectors(read(Settings(), backbone, World())))


@pytest.mark.long
@pytest.mark.parametrize("wraps", ["MatryoshkaLoss", "AdaptiveLayerLoss", "Matryoshka2dLoss"])
def test_what_wraps_goes_around_every_loss_that_is_not_refused(wraps: str, backbone: Path) -> None:
    own = {"matryoshka_dims": [16, 8]} if "matryoshka_dims" in LOSSES[wraps].arguments else {}
    refused = set()
    for name, kind in LOSSES.items():
        if "loss" in kind.arguments:
            continue
        try:
            spec = spec_of({"name": wraps, "loss": {"name": name, **ARGUMENTS[name]}, **own})
        except ValueError:
            refused.add(name)
            continue
        sampler = "group_by_label" if name.startswith("Batch") else "batch_sampler"
        found = corpus(backbone, rows=columns(kind.texts[0], kind.label))
        _, curve = trained(backbone, found, loss=spec, batch_sampler=sampler)
        assert len(curve) == 2, name
    assert (
        refused
        == {
            "MatryoshkaLoss": {"SoftmaxLoss"},
            "AdaptiveLayerLoss": {"CachedMultipleNegativesRankingLoss", "CachedGISTEmbedLoss"},
            "Matryoshka2dLoss": {"SoftmaxLoss", "CachedMultipleNegativesRankingLoss", "CachedGISTEmbedLoss"},
        }[wraps]
    )


@pytest.mark.parametrize("name", [name for name, kind in LOSSES.items() if kind.texts == (2, 3)])
def test_a_guide_looks_at_hard_negatives_too(name: str, backbone: Path) -> None:
    found = corpus(backbone, rows=columns(3))
    _, curve = trained(backbone, found, loss={"name": name, "guide": "tiny"})
    assert len(curve) == 2


def test_cosent_by_hand(backbone: Path) -> None:
    """Of the library's formula: log(1 + sum of exp(scale (cos_j - cos_i)) over pairs in which gold i is above j).

    Dropout is off, so the first loss is that of the untrained encoder on the batch: of two rows one pair remains.
    """
    plain = tiny_backbone(backbone.parent / "plain", dropout=0.0)
    found = corpus(plain, rows=Columns({"a": ["the cat", "the old dog"], "b": ["a bird", "a dog"]}, [0.9, 0.1]))
    still = read(Settings(), plain, World())
    a, b = still.encode(["the cat", "the old dog"]), still.encode(["a bird", "a dog"])
    high, low = (a * b).sum(1)
    _, curve = trained(plain, found, loss="CoSENTLoss", max_steps=1)
    assert curve[0].loss == pytest.approx(np.log1p(np.exp(20 * (low - high))), abs=1e-4)


@pytest.mark.parametrize("kind", ["own parameters", "mixture", "lora", "dimensions drawn"])
def test_a_training_that_was_stopped_in_a_later_epoch_goes_on_to_the_same(
    kind: str, backbone: Path, tmp_path: Path
) -> None:
    """SoftmaxLoss has parameters of its own, which a checkpoint holds too. Three batches of a set make an epoch."""
    found = corpus(backbone, rows=columns(2, "class"))
    given: dict[str, Any] = {"loss": {"name": "SoftmaxLoss", "num_labels": 2}, "max_steps": 7}
    if kind == "mixture":
        found = corpus(backbone, one=columns(2, rows=5), other=columns(3, rows=5))
        given |= {"loss": "MultipleNegativesRankingLoss", "weights": {"one": 1, "other": 4}}
        given |= {"multi_dataset_batch_sampler": "weighted"}
    elif kind == "dimensions drawn":
        found = corpus(backbone, rows=columns(2))
        given |= {"loss": spec_of({"name": "MatryoshkaLoss", **ARGUMENTS["MatryoshkaLoss"]})}
    elif kind == "lora":
        pytest.importorskip("peft")
        given |= {"lora": LoraSettings(r=2, lora_dropout=0.1, target_modules=("query",))}
    whole, curve = trained(backbone, found, **given)
    asked = iter([False] * 4 + [True])
    with pytest.raises(Stopped):
        trained(backbone, found, world=World(scratch=tmp_path, stopping=lambda: next(asked)), **given)
    again, resumed = trained(backbone, found, world=World(scratch=tmp_path), **given)
    assert [(one.step, one.loss) for one in resumed] == [(one.step, one.loss) for one in curve]
    assert (vectors(again) == vectors(whole)).all()
    assert not list(tmp_path.rglob("*.bin"))


def test_what_is_spent_is_counted_and_kept(backbone: Path, tmp_path: Path) -> None:
    """As torch's own counter hears it: 1 % is for attention, which it counts in another way, and for the loss."""
    found, spent = corpus(backbone, rows=columns(2)), list[tuple[float, float]]()
    world = World(
        scratch=tmp_path,
        checkpoint_every=1,
        spent=lambda flops, seconds: spent.append((flops, seconds)),
        so_far=lambda: {"flops": sum(flops for flops, _ in spent)},
        look_at=(1,),
        look=lambda encoder: {"dev/score": float(encoder.encode(["a cat"]).sum())},  # no training
    )
    with FlopCounterMode(display=False) as theirs:
        trained(backbone, found, world=replace(world, look_at=()))
    counted = sum(flops for flops, _ in spent)
    assert counted == pytest.approx(theirs.get_total_flops(), rel=0.01)
    assert all(seconds > 0 for _, seconds in spent)
    spent.clear()
    trained(backbone, found, world=replace(world, scratch=None, checkpoint_every=0))
    assert sum(flops for flops, _ in spent) == counted
    heard: list[Mapping[str, float]] = []
    trained(backbone, found, world=World(scratch=tmp_path, go_on=heard.append))
    assert heard == [{"flops": counted}]
    for file in tmp_path.glob("checkpoints/*/cost.json"):
        file.unlink()  # as of before it was kept
    assert len(trained(backbone, found, world=World(scratch=tmp_path, go_on=heard.append))[1]) == 2
    assert len(heard) == 1


@pytest.mark.parametrize("name", ["CachedMultipleNegativesRankingLoss", "CachedGISTEmbedLoss"])
def test_of_a_loss_that_reads_twice_the_second_reading_is_not_counted(name: str, backbone: Path) -> None:
    """A quarter of its products: forward, forward again, and those of two gradients. The rest counts in full."""
    spent = list[float]()
    found, spec = corpus(backbone, rows=columns(2)), spec_of({"name": name, **ARGUMENTS[name]})
    with FlopCounterMode(display=False) as theirs:
        trained(backbone, found, loss=spec, world=World(spent=lambda flops, _: spent.append(flops)))
    guide = 1 if "GIST" in name else 0  # another model of the same size reads too, forward alone
    assert sum(spent) == pytest.approx(theirs.get_total_flops() * 3 / (4 + guide), rel=0.02)


@pytest.mark.parametrize("length", [{"max_steps": 10}, {"max_steps": None, "num_train_epochs": 1.0}], ids=str)
def test_a_training_that_was_killed_after_its_last_step_takes_no_other(
    length: dict[str, Any], backbone: Path, tmp_path: Path
) -> None:
    found, world = corpus(backbone, rows=columns(2)), World(scratch=tmp_path, checkpoint_every=1)
    whole, curve = trained(backbone, found, world=world, **length)
    heard: list[Progress] = []
    again, resumed = trained(backbone, found, world=replace(world, report=heard.append), **length)
    assert [point.step for point in resumed] == [point.step for point in curve]
    assert (vectors(again) == vectors(whole)).all()
    assert heard == []


def test_every_step_is_told_with_its_rate_and_its_sentences(
    backbone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rate falls in a line; a step reads two batches of four rows of two columns. Stdout is for results."""
    heard, spent = list[Progress](), list[float]()
    world = World(report=heard.append, spent=lambda _, seconds: spent.append(seconds))
    _, curve = trained(
        backbone, corpus(backbone, rows=columns(2, rows=16)), world=world, gradient_accumulation_steps=2
    )
    assert heard == curve
    assert [(point.step, point.steps, point.learning_rate) for point in curve] == [(1, 2, 1e-3), (2, 2, 5e-4)]
    assert all(point.terms == {"loss": point.loss} for point in curve)
    sentences = [point.sentences_per_second * seconds for point, seconds in zip(curve, spent, strict=True)]
    assert sentences == pytest.approx([16, 16])
    assert capsys.readouterr().out == ""


def test_a_loss_that_is_not_finite_ends_the_training(backbone: Path) -> None:
    """At a scale that float32 does not hold it is so from the first step on."""
    found, heard = corpus(backbone, rows=columns(2)), list[Progress]()
    world = World(report=heard.append)
    with pytest.raises(Diverged, match=r"loss is not finite at step 1: loss = (nan|inf)"):
        trained(backbone, found, loss={"name": "MultipleNegativesRankingLoss", "scale": 1e39}, world=world)
    assert heard == []


def test_every_worker_is_told_of_a_checkpoint_once_it_is_whole(backbone: Path, tmp_path: Path) -> None:
    whole: list[tuple[str, int, bool]] = []

    def save(folder: Path, step: int) -> None:
        whole.append((folder.name, step, (folder / "curve.json").exists()))

    world = World(scratch=tmp_path, checkpoint_every=2, save=save)
    trained(backbone, corpus(backbone, rows=columns(2)), world=world, max_steps=5)
    assert whole == [("checkpoint-2", 2, True), ("checkpoint-4", 4, True)]


def test_a_checkpoint_without_its_curve_is_no_checkpoint(backbone: Path, tmp_path: Path) -> None:
    (tmp_path / "checkpoints" / "checkpoint-1").mkdir(parents=True)
    _, curve = trained(backbone, corpus(backbone, rows=columns(2)), world=World(scratch=tmp_path))
    assert [point.step for point in curve] == [1, 2]


@pytest.mark.parametrize("sampler", ["proportional", "round_robin", "weighted"])
def test_several_data_sets_with_losses_of_their_own(sampler: str, backbone: Path) -> None:
    found = corpus(backbone, pairs=columns(2, "similarity"), triplets=columns(3))
    given: dict[str, Any] = {
        "loss": {"pairs": {"name": "CoSENTLoss"}, "triplets": {"name": "MultipleNegativesRankingLoss"}},
        "multi_dataset_batch_sampler": sampler,
        "max_steps": 6,
    }
    if sampler == "weighted":
        given["weights"] = {"pairs": 1, "triplets": 3}
    _, curve = trained(backbone, found, **given)
    _, again = trained(backbone, found, **given)
    assert [one.loss for one in curve] == [one.loss for one in again]
    assert len({one.sentences_per_second > 0 for one in curve}) == 1


def test_one_loss_for_all_data_sets_has_one_classifier(backbone: Path) -> None:
    """Each data set's own would learn from its rows alone. Both begin alike: as the first data set has it."""
    found = corpus(backbone, one=columns(2, "class"), other=columns(2, "class", rows=8))
    spec = {"name": "SoftmaxLoss", "num_labels": 2}
    given: dict[str, Any] = {"multi_dataset_batch_sampler": "round_robin", "max_steps": 4}
    shared, apart = (
        trained(backbone, found, loss=loss, **given)[1] for loss in (spec, {"one": spec, "other": spec})
    )
    assert shared[0].loss == apart[0].loss
    assert all(one.loss != other.loss for one, other in zip(shared[1:], apart[1:], strict=True))


def test_a_loss_begins_with_weights_of_its_own_stream(backbone: Path) -> None:
    """LoRA draws too, and begins as the encoder itself: its first step has the loss that it has without LoRA."""
    pytest.importorskip("peft")
    found = corpus(backbone, rows=columns(2, "class"))
    given: dict[str, Any] = {"loss": {"name": "SoftmaxLoss", "num_labels": 2}, "max_steps": 1}
    plain, updated = (trained(backbone, found, lora=lora, **given)[1] for lora in (None, LoraSettings()))
    assert plain[0].loss == pytest.approx(updated[0].loss, abs=1e-6)
    assert trained(backbone, found, seed=4, **given)[1][0].loss != pytest.approx(plain[0].loss, abs=1e-3)


def test_the_mixture_is_drawn_by_weight() -> None:
    """3 to 1: of 400 steps 300, give or take four standard deviations (8.7 each). No row is out of its set."""
    from torch.utils.data import ConcatDataset

    from trainers.sentence_transformers.order import Shuffled, Weighted

    sets = [list(range(800)), list(range(800))]
    samplers = [Shuffled(800, 4, False, 3, name) for name in ("one", "other")]
    batches = list(Weighted(ConcatDataset(sets), samplers, [3, 1], seed=3))
    of = Counter(batch[0] // 800 for batch in batches)
    assert len(batches) == 400
    assert abs(of[0] - 300) < 35
    assert all(len({row // 800 for row in batch}) == 1 for batch in batches)
    first = [row for batch in batches if batch[0] < 800 for row in batch]
    assert sorted(first[:800]) == list(range(800))  # one round through before the next begins


def test_every_epoch_and_every_round_has_an_order_of_its_own() -> None:
    """Of seed and name too; the rows beyond the last whole batch are dropped where that is asked."""
    from torch.utils.data import ConcatDataset

    from trainers.sentence_transformers.order import Shuffled, Weighted

    def rows(epoch: int, seed: int = 3, name: str = "one", drop: bool = False) -> list[list[int]]:
        sampler = Shuffled(10, 4, drop, seed, name)
        sampler.set_epoch(epoch)
        return list(sampler)

    assert [len(batch) for batch in rows(0)] == [4, 4, 2]
    assert rows(0, drop=True) == rows(0)[:2]
    assert sorted(row for batch in rows(0) for row in batch) == list(range(10))
    assert rows(0) == rows(0)
    assert len({str(one) for one in (rows(0), rows(1), rows(0, seed=4), rows(0, name="other"))}) == 4
    small, large = Shuffled(8, 4, False, 3, "one"), Shuffled(80, 4, False, 3, "other")
    mixed = Weighted(ConcatDataset([list(range(8)), list(range(80))]), [small, large], [9, 1], seed=3)
    drawn = {}
    for epoch in (0, 1):
        mixed.set_epoch(epoch)
        own = [row for batch in mixed for row in batch if row < 8]
        drawn[epoch] = [tuple(own[begin : begin + 8]) for begin in range(0, len(own) - 7, 8)]
        assert len(drawn[epoch]) >= 6
        assert all(sorted(one) == list(range(8)) for one in drawn[epoch])
    assert len({*drawn[0], *drawn[1]}) == len(drawn[0]) + len(drawn[1])


@pytest.mark.parametrize("sampler", ["no_duplicates", "group_by_label"])
def test_the_library_s_own_samplers(sampler: str, backbone: Path) -> None:
    found = corpus(backbone, rows=columns(2, "class"))
    given: dict[str, Any] = {"loss": "ContrastiveLoss", "batch_sampler": sampler, "max_steps": 5}
    one, two = (trained(backbone, found, **given)[1] for _ in range(2))
    other = trained(backbone, found, seed=4, **given)[1]
    assert [point.loss for point in one] == [point.loss for point in two]
    assert [point.loss for point in one] != [point.loss for point in other]


FEW = {"a": ["the cat", "a dog"] * 6, "b": [f"bird {row}" for row in range(12)]}


@pytest.mark.parametrize("mixture", [{}, {"weights": {"few": 9, "rest": 1}}], ids=["alone", "weighted"])
@pytest.mark.parametrize(
    ("few", "given", "said"),
    [
        (Columns(FEW, None), {"batch_sampler": "no_duplicates"}, "no batch of 4 rows is without a text twice"),
        (
            Columns(FEW, [0.0, 0.0, 1.0, 1.0, *range(2, 10)]),
            {
                "batch_sampler": "group_by_label",
                "loss": {"name": "SoftmaxLoss", "num_labels": 10},
                "per_device_train_batch_size": 6,
            },
            "few has no batch of 6 rows",
        ),
    ],
    ids=["duplicates", "labels"],
)
def test_rows_that_fill_no_batch_train_nothing_that_counts(
    few: Columns, given: dict[str, Any], said: str, mixture: dict[str, Any], backbone: Path
) -> None:
    """The library would end such a training after no step, with a warning; the mixture would wait for ever."""
    rest = columns(2, "none" if few.labels is None else "class")
    found = corpus(backbone, few=few, **({"rest": rest} if mixture else {}))
    if mixture:
        mixture = {"multi_dataset_batch_sampler": "weighted"} | mixture
    with pytest.raises(TrainerError, match=rf"{said}[^\n]*\n  accepted: a smaller per_device_train_batch_size"):
        trained(backbone, found, dataloader_drop_last=True, max_steps=9, **given, **mixture)


def test_rows_that_fill_few_batches_train_again_and_again_in_a_mixture(backbone: Path) -> None:
    """Two batches or less in a round. The library draws three rounds, and warns that an epoch has thirty batches."""
    few = Columns({"a": ["a cat"] * 58 + ["a dog", "the sea"], "b": [f"bird {row}" for row in range(60)]}, None)
    mixture = {"multi_dataset_batch_sampler": "weighted", "weights": {"few": 1, "rest": 1e-9}}
    asked = {"batch_sampler": "no_duplicates", "dataloader_drop_last": True, "per_device_train_batch_size": 2}
    curve = trained(backbone, corpus(backbone, few=few, rest=columns(2)), max_steps=9, **asked, **mixture)[1]
    assert len(curve) == 9


def test_a_training_that_ends_early_is_none(backbone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where two workers share an epoch of one batch, of which neither gets its own."""
    from trainers.sentence_transformers.order import Shuffled

    monkeypatch.setattr(Shuffled, "__iter__", lambda self: iter([[0, 1, 2, 3]]))
    with pytest.raises(TrainerError, match="the rows gave batches for 2 of 6 steps"):
        trained(backbone, corpus(backbone, rows=columns(2)), max_steps=6)


def test_batches_are_what_their_sampler_says() -> None:
    """No text twice in a batch, or two rows and more of every label; of all rows alike, in an order of each seed."""
    from datasets import Dataset

    from trainers.sentence_transformers.order import of_rows

    texts, labels = [f"the {WORDS[row % 15]}" for row in range(60)], [row // 4 for row in range(60)]
    rows = Dataset.from_dict({"text": texts, "label": labels})

    def batches(sampler: Any, seed: int = 3, name: str = "one", **given: Any) -> list[list[int]]:
        settings = Settings(batch_sampler=sampler, per_device_train_batch_size=8, **given)
        return list(of_rows(settings, rows, name, seed))

    for sampler in ("batch_sampler", "no_duplicates", "group_by_label"):
        order = batches(sampler)
        seen = [row for batch in order for row in batch]
        assert len({*seen}) == len(seen) > 45
        assert batches(sampler) == order != batches(sampler, seed=4)
        assert order != batches(sampler, name="other")
        assert {len(batch) for batch in batches(sampler, dataloader_drop_last=True)} == {8}
        alone = [len({texts[row] for row in batch}) == len(batch) for batch in order]
        paired = [min(Counter(labels[row] for row in batch).values()) > 1 for batch in order]
        assert all(alone) == (sampler == "no_duplicates")
        assert all(paired) == (sampler == "group_by_label")
        assert any(len({labels[row] for row in batch}) < len(batch) for batch in order)  # a label is no text


def test_sets_take_turns_or_come_by_their_size_or_weight() -> None:
    """Of 20 batches and 5, in turn until one is used up, or all of both, or by weight, in an order of each seed."""
    from torch.utils.data import ConcatDataset

    from trainers.sentence_transformers.order import Shuffled, of_several

    def turns(sampler: Any, seed: int = 3) -> list[int]:
        sets = [list(range(80)), list(range(20))]
        samplers = [Shuffled(len(rows), 4, False, seed, name) for rows, name in zip(sets, "ab", strict=True)]
        weights = {"b": 9.0, "a": 1.0} if sampler == "weighted" else {}
        settings = Settings(multi_dataset_batch_sampler=sampler, weights=weights)
        mixed = of_several(settings, ConcatDataset(sets), samplers, ["a", "b"], seed)
        return [batch[0] // 80 for batch in mixed]

    assert turns("round_robin") == [0, 1] * 5
    assert Counter(turns("proportional")) == {0: 20, 1: 5}
    assert Counter(turns("weighted"))[1] > 15
    for sampler in ("proportional", "weighted"):
        assert turns(sampler) == turns(sampler) != turns(sampler, seed=4)


@pytest.mark.parametrize(
    "given",
    [
        {"prompts": {"text0": "query: "}},
        {"prompt": "query: "},
        {"max_seq_length": 4},
        {"weight_decay": 0.5},
        {"warmup_steps": 2},
        {"lr_scheduler_type": "constant"},
        {"lr_scheduler_type": "cosine", "warmup_steps": 1},
        {"lr_scheduler_type": "constant_with_warmup", "warmup_steps": 2},
        {"max_grad_norm": 0.01},
        {"gradient_accumulation_steps": 2},
        {"max_steps": None, "num_train_epochs": 1.0},
        {"per_device_train_batch_size": 5, "dataloader_drop_last": True, "max_steps": 3},
    ],
    ids=str,
)
def test_every_argument_has_its_effect(given: dict[str, Any], backbone: Path, plain: np.ndarray) -> None:
    found = corpus(backbone, rows=columns(2))
    other, curve = trained(backbone, found, **given)
    assert not (plain == vectors(other)).all()
    if given.get("num_train_epochs"):
        assert [point.step for point in curve] == [1, 2, 3]
        assert curve[0].steps == 3


def test_lora_learns_little_and_leaves_a_plain_encoder(backbone: Path, tmp_path: Path) -> None:
    pytest.importorskip("peft")
    found = corpus(backbone, rows=columns(2))
    lora = LoraSettings(r=2, lora_alpha=4, lora_dropout=0.1, target_modules=("query", "value"))
    encoder, curve = trained(backbone, found, lora=lora)
    assert len(curve) == 2
    encoder.save(tmp_path)
    assert not list(tmp_path.rglob("adapter*"))
    from sentence_transformers import SentenceTransformer

    opened = SentenceTransformer(str(tmp_path), device="cpu", local_files_only=True, trust_remote_code=False)
    rows = opened.encode(["the old cat", "a small cup of water"], normalize_embeddings=True)
    assert rows == pytest.approx(vectors(encoder), abs=1e-6)
    assert not np.allclose(vectors(encoder), vectors(read(Settings(), backbone, World())), atol=1e-6)
    again, _ = trained(backbone, found, lora=lora)
    assert (vectors(again) == vectors(encoder)).all()


def test_earlier_work_in_the_process_changes_nothing(backbone: Path, plain: np.ndarray) -> None:
    threads, told = torch.get_num_threads(), list[int]()
    torch.set_num_threads(threads + 1)
    torch.set_default_dtype(torch.float64)
    try:
        world = World(report=lambda progress: told.append(torch.get_num_threads()))
        encoder, _ = trained(backbone, corpus(backbone, rows=columns(2)), world=world)
        assert set(told) == {world.threads}
        assert (vectors(encoder) == plain).all()
    finally:
        torch.set_num_threads(threads)
        torch.set_default_dtype(torch.float32)


def test_the_settings_of_lora_are_those_of_its_updates(backbone: Path) -> None:
    """An update is alpha / r · B A, of rank r. Adam's first step moves all of B by the rate, whatever alpha is."""
    pytest.importorskip("peft")
    name = "0.model.encoder.layer.0.attention.self.query.weight"
    before = read(Settings(), backbone, World()).model.state_dict()[name]

    def update(**given: Any) -> Any:
        lora = LoraSettings(target_modules=("query",), **given)
        found = corpus(backbone, rows=columns(2))
        encoder, _ = trained(backbone, found, lora=lora, max_steps=1, learning_rate=0.01)
        return (encoder.model.state_dict()[name] - before).numpy()

    two, three = update(r=2, lora_alpha=4), update(r=3, lora_alpha=4)
    assert [np.linalg.matrix_rank(one, tol=1e-5) for one in (two, three)] == [2, 3]
    assert update(r=2, lora_alpha=8) == pytest.approx(2 * two, abs=1e-5)
    assert not np.allclose(update(r=2, lora_alpha=4, lora_dropout=0.9), two, atol=1e-5)


def test_lora_leaves_what_stands_above_the_transformer(backbone: Path, tmp_path: Path) -> None:
    pytest.importorskip("peft")
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense

    made = SentenceTransformer(str(backbone), device="cpu")
    made.append(Dense(32, 8))
    made.save_pretrained(str(tmp_path), create_model_card=False)
    lora = LoraSettings(target_modules=("query",))
    after = trained(tmp_path, corpus(backbone, rows=columns(2)), lora=lora)[0].model.state_dict()
    before = SentenceTransformer(str(tmp_path), device="cpu").state_dict()
    moved = {name for name, weight in before.items() if not torch.equal(weight, after[name])}
    assert moved
    assert all(".query." in name for name in moved)


def test_a_prompt_of_a_column_stays_there_where_a_set_has_its_name(backbone: Path) -> None:
    def curve(first: str, **given: Any) -> list[float]:
        found = corpus(backbone, **{first: columns(2), "other": columns(2)})
        return [point.loss for point in trained(backbone, found, **given)[1]]

    prompts = {"text0": "the old horse is "}
    assert curve("text0", prompts=prompts) == curve("first", prompts=prompts) != curve("first")


def test_an_encoder_reads_as_the_library_does(backbone: Path, tmp_path: Path) -> None:
    """Scaled, and unscaled where the model does not scale; by a prompt and in the weights that its folder holds."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize

    texts = ["the old cat", "a small cup of water"]
    theirs = SentenceTransformer(str(backbone), device="cpu", local_files_only=True)
    rows, ours = theirs.encode(texts), read(Settings(), backbone, World())
    assert {name: reader(texts) for name, reader in ours.readers.items()} == {
        "texts": pytest.approx(rows / np.linalg.norm(rows, axis=1, keepdims=True), abs=1e-6),
        "unscaled": pytest.approx(rows, abs=1e-6),
    }
    assert ours.truncated == 0
    longest = max(len(theirs.tokenizer(text)["input_ids"]) for text in texts)
    short = read(Settings(max_seq_length=longest - 1), backbone, World())
    short.encode(texts)
    assert short.truncated == 1

    theirs.append(Normalize())
    theirs.prompts, theirs.default_prompt_name = {"own": "the horse is "}, "own"
    theirs.bfloat16().save_pretrained(str(tmp_path), create_model_card=False)
    kept = read(Settings(), tmp_path, World())
    assert [*kept.readers] == ["texts"]
    assert {weight.dtype for weight in kept.model.parameters()} == {torch.float32}
    assert kept.encode(texts) == pytest.approx(theirs.float().encode(texts), abs=1e-6)
    assert not np.allclose(
        kept.encode(texts), read(Settings(prompt=""), tmp_path, World()).encode(texts), atol=1e-3
    )


def test_no_more_is_read_than_an_encoder_has_positions_for(backbone: Path) -> None:
    """128 of them; a longer text would end the training, or only its evaluation, in torch's words."""
    long = Columns({"a": ["the cat " * 100] * 4, "b": ["a bird", "a dog", "the sea", "the old cup"]}, None)
    more, all_there_are = (trained(backbone, corpus(backbone, rows=long), max_seq_length=n)[0] for n in (500, 128))
    text = ["the old dog runs " * 100]
    assert (more.encode(text) == all_there_are.encode(text)).all()
    assert more.truncated == 1


def test_in_bf16_as_the_world_says(backbone: Path, plain: np.ndarray) -> None:
    """Rounding to 8 bits moves what is learnt a little, and weights stay in fp32."""
    encoder, curve = trained(backbone, corpus(backbone, rows=columns(2)), world=World(precision="bf16"))
    assert all(np.isfinite(point.loss) for point in curve)
    assert {weight.dtype for weight in encoder.model.parameters()} == {torch.float32}
    assert not (vectors(encoder) == plain).all()
    assert np.allclose(vectors(encoder), plain, atol=0.1)


@pytest.mark.parametrize(("device", "place"), [("cpu", "2"), ("cuda:0", "0"), ("cuda:1", "1")])
def test_the_library_takes_the_card_of_its_worker(device: str, place: str) -> None:
    """The third worker may be the first of its machine, where there is no third card."""
    with _workers_as_in(World(rank=2, size=3, device=device)):
        assert (os.environ["RANK"], os.environ["LOCAL_RANK"]) == ("2", place)
