"""Families train as graphs as they do without, but for rounding: what they do with an encoder, graphs allow.

The graphs are those of `tests.no_card`; on a card the contract runs with real ones (`benchmarks/gpu.py`).
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from orchestration.lanes.lane import execute
from orchestration.study.run import Job, Run
from semray.testing.contract import world
from semray.testing.outcomes import outcome
from tests.no_card import put_graphs
from tests.orchestration.families.test_contract import made
from tests.scored_texts import rated
from trainers import losses as trained_by
from trainers.encoders.captured_pass import Graph
from trainers.encoders.encoder import Encoder
from trainers.encoders.graphs import Graphs
from trainers.encoders.packed_texts import PackedTexts
from trainers.engine.flat_groups import FlatGroups
from trainers.engine.world import Progress, Stopped, World

MIXED = {"hard_negatives": True, "layers": 2}
CASES: Mapping[str, tuple[str, Mapping[str, Any], int]] = {  # case of the contract, its settings, passes of a step
    "concept": ("concept", {"hard_negatives": True}, 2),
    "concept, weighted": ("concept", {**MIXED, "readout": "weighted"}, 2),
    "concept, gated": ("concept", {**MIXED, "readout": "gated"}, 2),
    "concept, deep supervision": ("concept", {**MIXED, "readout": "weighted", "deep_supervision": "beside"}, 2),
    "san": ("san/simcse+san", {"p1": 0.0, "p2": 0.0}, 2),
    "defsent": ("defsent/bert", {}, 1),
    "cale": ("cale", {}, 1),
    "concept, in parts": ("concept", {**MIXED, "readout": "weighted", "micro_batch": 12}, 8),
    "san, in parts": ("san/simcse+san", {"p1": 0.0, "p2": 0.0, "micro_batch": 3}, 10),
    "cale, in parts": ("cale", {"micro_batch": 3}, 6),
}


@pytest.fixture(autouse=True)
def _without_dropout(monkeypatch: pytest.MonkeyPatch) -> None:
    load = Encoder.load
    monkeypatch.setattr(Encoder, "load", staticmethod(lambda path, **told: rated(load(path, **told), 0.0)))


@pytest.mark.parametrize("name", CASES)
def test_a_training_by_graphs_is_the_one_without(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, settings, passes = CASES[name]
    ran, asked = list[None](), Graphs.__call__
    monkeypatch.setattr(Graphs, "__call__", lambda self, **told: ran.append(None) or asked(self, **told))
    with made(case, tmp_path) as small:
        run = small.run("plain")
        run = with_settings(replace(run, tasks={}), **settings)
        usual = losses(run)
        assert not ran
        with monkeypatch.context() as on_card:
            put_on_card(on_card)
            as_graphs = losses(run)
    assert len(ran) == passes * len(usual)
    assert as_graphs != usual
    assert as_graphs == pytest.approx(usual, rel=0.02)


@pytest.mark.parametrize(("before", "after"), [(True, True), (True, False), (False, True)])
def test_a_training_goes_on_as_graphs_and_without(
    before: bool, after: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one precision, by one id: a checkpoint may be taken to another device."""
    asked, scratch = count(), {"scratch": tmp_path / "scratch", "checkpoint_every": 1}
    with made("cale", tmp_path) as small:
        run = replace(small.run("plain"), tasks={})
        with monkeypatch.context() as here:
            put_on_card(here, before)
            with pytest.raises(Stopped):
                losses(run, **scratch, stopping=lambda: next(asked) == 1)
        put_on_card(monkeypatch, after)
        resumed, whole = losses(run, **scratch), losses(run)
    assert len(resumed) == len(whole) > 2
    assert resumed == (whole if before == after else pytest.approx(whole, rel=0.02))


def test_where_memory_is_short_smaller_parts_train_as_graphs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing of those that were too large is left: the steps are those of a run that was told what fits."""
    put_on_card(monkeypatch)
    take, too_large = Graph.take, list[weakref.ref[Graph]]()

    def on_a_small_card(graph: Graph, positions: Tensor, texts: PackedTexts) -> None:
        assert not any(one() for one in too_large)
        if len(texts.begins) - 1 > 4:
            too_large.append(weakref.ref(graph))
            raise torch.OutOfMemoryError("CUDA out of memory.")
        take(graph, positions, texts)

    monkeypatch.setattr(Graph, "take", on_a_small_card)
    with made("cale", tmp_path) as small:
        run = replace(small.run("plain"), tasks={})
        found, told = (curve_of(with_settings(run, micro_batch=size)) for size in ("auto", 4))
    assert [one.figures.get("micro_batch") for one in found] == [4.0] * len(told)
    assert [one.loss for one in found] == [one.loss for one in told]
    assert too_large


def test_where_idle_graphs_fill_the_memory_the_step_is_tried_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not divided. What lacks memory is no graph, but a loss."""
    put_on_card(monkeypatch)
    paired, asked = trained_by.paired_cosines, count()
    forget, forgotten = Graphs.forget, list[bool]()

    def on_a_full_card(*rows: Tensor) -> Tensor:
        if next(asked) == 2:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return paired(*rows)

    with made("cale", tmp_path) as small:
        run = with_settings(replace(small.run("plain"), tasks={}), micro_batch="auto")
        usual = losses(run)
        monkeypatch.setattr(Graphs, "forget", lambda own: forgotten.append(forget(own)) or forgotten[-1])
        monkeypatch.setattr(trained_by, "paired_cosines", on_a_full_card)
        full = curve_of(run)
    assert [one.loss for one in full] == usual
    assert not any("micro_batch" in one.figures for one in full)
    assert next(asked) == len(full) + 1
    assert forgotten == [True] * 3  # before the optimiser takes its memory, then this, and when all is over


def test_what_parameters_shared_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Although DeepSpeed's hooks on the model keep its engine, and with it an optimiser."""
    put_on_card(monkeypatch)
    each, join = list[FlatGroups](), FlatGroups.join
    monkeypatch.setattr(FlatGroups, "join", lambda self, given: each.append(self) or join(self, given))
    with made("cale", tmp_path) as small:
        losses(replace(small.run("plain"), tasks={}))
    (found,) = each
    assert len(found.flats) > 1
    assert all(flat.whole.numel() == 0 and flat.whole.grad is None for flat in found.flats)


def put_on_card(patch: pytest.MonkeyPatch, as_graphs: bool = True) -> None:
    if as_graphs:
        put_graphs(patch)
    patch.setattr(World, "on_card", property(lambda self: True))


def with_settings(run: Run, **settings: Any) -> Run:
    return replace(run, settings={**run.settings, **settings})


def curve_of(run: Run, **given: Any) -> Sequence[Progress]:
    return outcome(execute(Job(runs=(run,)), world(precision="bf16", **given))).curve


def losses(run: Run, **given: Any) -> list[float]:
    return [point.loss for point in curve_of(run, **given)]
