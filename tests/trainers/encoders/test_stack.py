"""Encoders trained as a stack against each trained alone: the same draws, the same sums, rounded otherwise."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.tiny import tiny_corpus
from tests.trainers.san.corpus import san_corpus
from trainers.concept.settings import Settings
from trainers.concept.training import fit
from trainers.encoders.encoder import Encoder
from trainers.encoders.packing import Rectangle
from trainers.encoders.stack import fit_together
from trainers.encoders.stacked_layers import drawn_noise
from trainers.engine.lockstep import in_lockstep
from trainers.engine.loop import Diverged
from trainers.engine.shortage import OutOfMemory
from trainers.engine.world import Progress, Stopped, World
from trainers.errors import TrainerError
from trainers.san import settings as san_settings
from trainers.san.training import fit as san_fit

CORPUS = tiny_corpus(40)
SETTINGS = Settings(steps=12, batch_size=10, warmup=2, learning_rate=5e-4, max_length=32)
TEXTS = ["a cup of tea", "the fire", "cup"]
Trained = tuple[Encoder, list[Progress]]


def stacked(
    arms: Sequence[tuple[Settings, int]], backbone: Path, worlds: Sequence[World] = ()
) -> list[Trained | Exception]:
    def of(settings: Settings, seed: int) -> Callable[[World], Trained]:
        return lambda world: fit(settings, backbone, CORPUS, seed, world)

    return fit_together([of(*arm) for arm in arms], worlds or [World()] * len(arms))


def trained(outcome: Trained | Exception) -> Trained:
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"hard_negatives": True},  # a second pass in the step, of other lengths
        {"readout": "weighted", "layers": 2, "deep_supervision": "beside"},
        {"readout": "gated", "layers": 2, "hard_negatives": True},
    ],
    ids=["plain", "negatives", "supervised", "gated"],
)
def test_each_is_trained_as_it_is_alone(backbone: Path, changed: dict[str, object]) -> None:
    """Also beside a plain one, which runs fewer passes and reads the last layer alone."""
    settings = replace(SETTINGS, **changed)
    arms = [(settings, 0), (replace(SETTINGS, temperature=0.1), 0), (settings, 3)]
    for (own, seed), outcome in zip(arms, stacked(arms, backbone), strict=True):
        (encoder, curve), (alone, expected) = trained(outcome), fit(own, backbone, CORPUS, seed, World())
        assert curve[0].terms == pytest.approx(expected[0].terms, rel=1e-6)
        assert [p.loss for p in curve] == pytest.approx([p.loss for p in expected], rel=1e-5)
        assert np.allclose(encoder.encode(TEXTS), alone.encode(TEXTS), atol=1e-5)


@pytest.mark.parametrize(
    ("one", "other"),
    [({"p2": 0.2}, {"p2": 0.0}), ({"p1": 0.1}, {"p1": 0.0}), ({"layers": 2}, {"layers": 1})],
    ids=["negatives drop nothing", "nothing is dropped", "fewer layers"],
)
def test_arms_that_run_otherwise_stack_too(
    backbone: Path, one: dict[str, object], other: dict[str, object]
) -> None:
    """Those alike as one batch: here two of each, side by side."""
    usual = san_settings.Settings(
        readout="mean", steps=4, batch_size=6, max_length=32, learning_rate=1e-4, san="hince", negatives="san"
    )
    arms = [(replace(usual, **changed), seed) for seed in (0, 1) for changed in (one, other)]  # type: ignore[arg-type]

    def of(settings: san_settings.Settings, seed: int) -> Callable[[World], Any]:
        return lambda world: san_fit(settings, backbone, san_corpus(), seed, world)

    for (own, seed), outcome in zip(arms, fit_together([of(*arm) for arm in arms], [World()] * 4), strict=True):
        assert not isinstance(outcome, Exception)
        (reader, curve), (alone, expected) = outcome, of(own, seed)(World())
        assert [p.loss for p in curve] == pytest.approx([p.loss for p in expected], rel=1e-5)
        assert np.allclose(reader.encode(TEXTS), alone.encode(TEXTS), atol=1e-5)


def test_in_bf16_it_is_no_further_off_than_bf16_is(backbone: Path) -> None:
    settings = replace(SETTINGS, steps=1)
    halves = [trained(one)[1][0].loss for one in stacked([(settings, 0), (settings, 1)], backbone, [HALF] * 2)]
    for seed, found in enumerate(halves):
        alone, exact = (fit(settings, backbone, CORPUS, seed, w)[1][0].loss for w in (HALF, World()))
        assert found == pytest.approx(alone, abs=2 * abs(alone - exact) + 0.05)


HALF = World(precision="bf16")


@pytest.mark.parametrize("half", [False, True], ids=["fp32", "bf16"])
def test_dropout_is_drawn_as_the_layer_draws_it(backbone: Path, half: bool) -> None:
    """First that of attention's scores, in float32; then those of two linear layers' outputs, rounded as they are."""
    encoder, _ = fit(replace(SETTINGS, steps=1), backbone, CORPUS, 0, World())
    layer, kind = encoder.backbone.encoder.layer[0].train(), torch.bfloat16 if half else torch.float32
    area = Rectangle(torch.arange(8), torch.arange(8), torch.ones(2, 4, dtype=torch.bool))
    states, heads = torch.zeros(1, 8, 32), layer.attention.self.num_attention_heads
    sites = [layer.attention.self.dropout, layer.attention.output.dropout, layer.output.dropout]
    torch.manual_seed(5)
    own = [torch.ones(2, heads, 4, 4), *torch.ones(2, 8, 32, dtype=kind)]
    expected = [site(ones) for site, ones in zip(sites, own, strict=True)]
    torch.manual_seed(5)
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        noise = drawn_noise(layer, states, [area])
    for drawn, factors in zip([noise.attention[0], noise.mixed, noise.output], expected, strict=True):
        assert drawn is not None
        assert drawn.dtype == factors.dtype
        assert torch.equal(drawn, factors)
        assert 0 < (drawn == 0).sum() < drawn.numel()
    assert noise.mixed is not None
    assert not torch.equal(noise.mixed, noise.output)


def test_texts_of_many_passes_and_lengths(backbone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes of few tokens: an encoder may have more of them than the others, and is answered alone."""
    monkeypatch.setattr("trainers.encoders.encoder.PASS", 96)
    arms = [(replace(SETTINGS, steps=3, batch_size=size), seed) for size, seed in ((6, 0), (18, 1))]
    for (own, seed), outcome in zip(arms, stacked(arms, backbone), strict=True):
        expected = fit(own, backbone, CORPUS, seed, World())[1]
        assert [p.loss for p in trained(outcome)[1]] == pytest.approx([p.loss for p in expected], rel=1e-5)


def test_one_that_fails_or_ends_leaves_the_others(backbone: Path) -> None:
    wild = replace(SETTINGS, learning_rate=1e30, clip_norm=1e30, warmup=0)
    short = replace(SETTINGS, steps=4, max_length=6)  # narrower: its padding is beside what is not finite
    outcomes = stacked([(wild, 0), (short, 1), (SETTINGS, 2)], backbone)
    assert isinstance(outcomes[0], Diverged)
    for outcome, (settings, seed) in zip(outcomes[1:], [(short, 1), (SETTINGS, 2)], strict=True):
        expected = fit(settings, backbone, CORPUS, seed, World())[1]
        assert [p.loss for p in trained(outcome)[1]] == pytest.approx([p.loss for p in expected], rel=1e-5)


@pytest.mark.parametrize(
    "where",
    [
        "trainers.encoders.stack._Stack._forward",
        "trainers.encoders.stack._Stack._backward",
        "trainers.concept.training.loss",
        "torch.optim.AdamW.step",
    ],
)
def test_without_memory_a_smaller_stack_is_named(
    backbone: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def lacking(*given: object, **named: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nmore")

    monkeypatch.setattr(where, lacking)
    for outcome in stacked([(SETTINGS, seed) for seed in range(5)], backbone):
        assert isinstance(outcome, OutOfMemory)
        assert "CUDA out of memory. Tried to allocate 2.00 GiB.\n  accepted: " in str(outcome)
        assert "resources.runs_per_stack = 2" in str(outcome)


def test_each_keeps_checkpoints_of_its_own_and_goes_on_from_them(backbone: Path, tmp_path: Path) -> None:
    """Stopped at different steps, as by a crash between two saves; each keeps the cost of its own steps."""
    heard: list[Mapping[str, float]] = []
    arms = [(SETTINGS, seed) for seed in (0, 1)]

    def stopped_at(step: int) -> Callable[[], bool]:
        asked = count(1)
        return lambda: next(asked) == step

    spent = {"seconds": 11.0}  # by both, when the later one stops after 7 of 11 steps
    rooms = [
        World(scratch=tmp_path / str(seed), checkpoint_every=3, so_far=lambda: spent, go_on=heard.append)
        for seed in (0, 1)
    ]
    ended = stacked(
        arms, backbone, [replace(rooms[0], stopping=stopped_at(4)), replace(rooms[1], stopping=stopped_at(7))]
    )
    assert [type(one) for one in ended] == [Stopped, Stopped]
    assert sorted(path.name for path in tmp_path.glob("*/step-*")) == ["step-4", "step-7"]
    for (settings, seed), outcome in zip(arms, stacked(arms, backbone, rooms), strict=True):
        expected = fit(settings, backbone, CORPUS, seed, World())[1]
        assert [p.loss for p in trained(outcome)[1]] == pytest.approx([p.loss for p in expected], rel=1e-5)
    of_one, of_other = (cost["seconds"] for cost in heard)
    assert 11 * 4 / 8 <= of_one <= 11 * 4 / 7  # the other was at its third step or fourth
    assert of_other == pytest.approx(7)


def test_its_work_is_metered_as_that_of_one_alone(backbone: Path) -> None:
    """Nor is a second of both counted once for each: each is told half of what passes between its steps, at most.

    But for the last step, whose seconds are its own where the other has ended.
    """
    settings = replace(SETTINGS, steps=6)
    alone: list[float] = []
    fit(settings, backbone, CORPUS, 0, World(spent=lambda flops, seconds: alone.append(flops)))
    spent: list[list[tuple[float, float, float]]] = [[], []]  # of each: FLOPs, seconds, and when they were told

    def metered(place: int) -> World:
        return World(spent=lambda flops, seconds: spent[place].append((flops, seconds, time.perf_counter())))

    stacked([(settings, 0), (settings, 0)], backbone, [metered(0), metered(1)])
    for steps in spent:
        flops, seconds, told = map(np.array, zip(*steps, strict=True))
        assert flops == pytest.approx(alone)
        between, of_both = np.diff(told)[:-1], 2 * seconds[1:-1]
        assert (of_both <= between).all()
        assert of_both.sum() > 0.4 * between.sum()


def test_an_encoder_that_runs_padded_is_refused(backbone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Encoder, "packed", False)
    (outcome,) = stacked([(SETTINGS, 0)], backbone)
    assert isinstance(outcome, ValueError)
    assert "runs_per_stack: bert runs in padded rectangles\n  accepted: 1" in str(outcome)


def test_in_lockstep_all_wait_for_all_and_draw_for_themselves() -> None:
    def work(ask: Callable[[object], object], seed: int, asks: int) -> list[object]:
        torch.manual_seed(seed)
        return [(ask(seed), torch.rand(1).item()) for _ in range(asks)]

    heard: list[list[int]] = []

    def serve(waiting: dict[int, int]) -> dict[int, int]:
        heard.append(list(waiting))
        torch.rand(7)  # what is drawn meanwhile moves nobody's numbers
        return {place: 10 * seed for place, seed in waiting.items()}

    works = [lambda ask, seed=seed, asks=asks: work(ask, seed, asks) for seed, asks in ((1, 3), (2, 1))]
    outcomes = in_lockstep(works, serve)  # type: ignore[arg-type]
    assert heard == [[0, 1], [0], [0]]
    for seed, found in zip((1, 2), outcomes, strict=True):
        torch.manual_seed(seed)
        assert isinstance(found, list)
        assert found == [(10 * seed, torch.rand(1).item()) for _ in found]


def test_what_serving_raises_is_raised_where_it_was_asked_for() -> None:
    def serve(waiting: object) -> dict[int, object]:
        raise TrainerError("no memory")

    def patient(ask: Callable[[object], object]) -> str:
        try:
            ask(None)
        except TrainerError as error:
            return f"heard: {error}"
        return "nothing"

    outcomes = in_lockstep([patient, lambda ask: ask(None)], serve)  # type: ignore[list-item]
    assert outcomes[0] == "heard: no memory"
    assert isinstance(outcomes[1], TrainerError)
