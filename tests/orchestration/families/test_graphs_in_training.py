"""Families train as graphs as they do without, but for rounding: what they do with an encoder, graphs allow.

The graphs are those of `tests.no_card`; on a card the contract runs with real ones (`benchmarks/gpu.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from orchestration.lanes.lane import execute
from orchestration.study.run import Job, Run
from semray.testing.contract import world
from semray.testing.outcomes import outcome
from tests.no_card import put_graphs
from tests.orchestration.families.test_contract import made
from tests.scored_texts import rated
from trainers.encoders.encoder import Encoder
from trainers.encoders.graphs import Graphs
from trainers.engine.world import Stopped, World

MIXED = {"hard_negatives": True, "layers": 2}
CASES: Mapping[str, tuple[str, Mapping[str, Any], int]] = {  # case of the contract, its settings, passes of a step
    "concept": ("concept", {"hard_negatives": True}, 2),
    "concept, weighted": ("concept", {**MIXED, "readout": "weighted"}, 2),
    "concept, gated": ("concept", {**MIXED, "readout": "gated"}, 2),
    "concept, deep supervision": ("concept", {**MIXED, "readout": "weighted", "deep_supervision": "beside"}, 2),
    "san": ("san/simcse+san", {"p1": 0.0, "p2": 0.0}, 2),
    "defsent": ("defsent/bert", {}, 1),
    "cale": ("cale", {}, 1),
}


@pytest.mark.parametrize("name", CASES)
def test_a_training_by_graphs_is_the_one_without(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, settings, passes = CASES[name]
    load, ran, asked = Encoder.load, list[None](), Graphs.__call__
    monkeypatch.setattr(Encoder, "load", staticmethod(lambda path, **told: rated(load(path, **told), 0.0)))
    monkeypatch.setattr(Graphs, "__call__", lambda self, **told: ran.append(None) or asked(self, **told))
    with made(case, tmp_path) as small:
        run = small.run("plain")
        run = replace(run, settings={**run.settings, **settings}, tasks={})
        usual = losses(run)
        assert not ran
        with monkeypatch.context() as on_card:
            put_on_card(on_card)
            as_graphs = losses(run)
    assert len(ran) == passes * len(usual)
    assert as_graphs != usual
    assert as_graphs == pytest.approx(usual, rel=0.02)


def test_a_training_by_graphs_goes_on_from_its_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load, asked = Encoder.load, count()
    monkeypatch.setattr(Encoder, "load", staticmethod(lambda path, **told: rated(load(path, **told), 0.0)))
    put_on_card(monkeypatch)
    with made("cale", tmp_path) as small:
        run = replace(small.run("plain"), tasks={})
        with pytest.raises(Stopped):
            losses(run, scratch=tmp_path / "scratch", checkpoint_every=1, stopping=lambda: next(asked) == 1)
        assert losses(run, scratch=tmp_path / "scratch", checkpoint_every=1) == losses(run)


def put_on_card(patch: pytest.MonkeyPatch) -> None:
    put_graphs(patch)
    patch.setattr(World, "on_card", property(lambda self: True))


def losses(run: Run, **given: Any) -> list[float]:
    return [point.loss for point in outcome(execute(Job(runs=(run,)), world(precision="bf16", **given))).curve]
