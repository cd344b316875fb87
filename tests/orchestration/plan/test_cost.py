"""What planning costs, in counts: settings resolved once an arm, ids hashed once a run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orchestration.families import registry
from orchestration.plan import held
from orchestration.plan.plan import Facts, plan
from orchestration.reading.read_study import read_study
from orchestration.study import run as runs_module

FACTS = Facts(backbones={"small": "s" * 8}, corpus="c" * 8, tasks={"t2d": "r", "stress": "r"}, precision="fp32")
ARMS, SEEDS = 5, 40


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, counts: Counter[str]) -> None:
    plainly = getattr(module, name)

    def call(*given: Any) -> Any:
        counts[name] += 1
        return plainly(*given)

    monkeypatch.setattr(module, name, call)


def test_a_plan_resolves_each_arm_and_hashes_each_run_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "many.yaml"
    arms = "".join(f"  A{arm}: {{learning_rate: {1 + arm}.0e-5}}\n" for arm in range(ARMS))
    path.write_text(
        f"question: Which?\nfamily: concept\nbackbones: [small]\nseeds: {SEEDS}\narms:\n{arms}evaluate: [t2d, stress]\n"
    )
    study, counts = read_study(path), Counter[str]()
    counted(monkeypatch, registry, "defining", counts)
    counted(monkeypatch, runs_module, "_digest", counts)
    monkeypatch.setattr(held, "gather_facts", lambda _: FACTS)

    whole = frozenset(entry for run in plan(study, FACTS).runs for entry in run.entries)
    counts.clear()
    ledger: Any = SimpleNamespace(
        remote=False,
        held=lambda runs: whole & {entry for run in runs for entry in run.entries},
    )
    made = held.planned(study, ledger)
    assert not made.left
    assert len(made.done) == ARMS * SEEDS
    readings = 1  # the likeliest of two precisions: by that all of it is done
    assert counts == {"defining": readings * ARMS, "_digest": readings * ARMS * SEEDS * 3}  # a training, two tasks
    assert [run.seed for run in made.runs[::ARMS]] == list(range(SEEDS))
    assert len({run.id for run in made.runs}) == ARMS * SEEDS
