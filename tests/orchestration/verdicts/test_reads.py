"""What is read and computed of a large study, in counts: each file once, and only of what is asked."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from evaluators.metrics.scores import Score
from evaluators.significance import evidence, item_tests
from orchestration.ledger.ledger import Ledger
from orchestration.ledger.seal import SEAL
from orchestration.ledger.storage import LocalStorage
from orchestration.plan.plan import Facts, Plan, plan
from orchestration.plan.reach import reachability
from orchestration.reading.read_study import read_study
from orchestration.study.run import Run
from orchestration.verdicts.declared import declare
from orchestration.verdicts.find import find
from orchestration.verdicts.growing import grown
from orchestration.verdicts.pairing import seen
from orchestration.verdicts.records import StudyRecords
from orchestration.verdicts.why import chain
from tests.results import finish

ARMS = 6
RECALL, AUC = "t2d/recall@10", "stress/negate/auc"
FACTS = Facts(backbones={"small": "s" * 8}, corpus="c" * 8, tasks={"t2d": "r", "stress": "r"}, precision="fp32")


class Made(NamedTuple):
    plan: Plan
    ledger: Ledger


def study_of(path: Path, seeds: str) -> Path:
    """Arms that are all compared with the first, by turns in a mean of items and in an AUC; the last two apart."""
    lines = ["question: Which?", "family: concept", "backbones: [small]", f"seeds: {seeds}", "arms:"]
    lines += [f"  A{arm}: {{learning_rate: {1 + arm}.0e-5}}" for arm in range(ARMS)]
    lines += ["evaluate: [t2d, stress]", "compare:"]
    for arm in range(1, ARMS):
        apart = ", family: apart" if arm >= ARMS - 2 else ""
        metric = (RECALL, AUC)[arm % 2]
        claim = f"claim: H{arm}, treatment: A{arm}, control: A0, metric: {metric}, expect: better{apart}"
        lines.append(f"  - {{{claim}}}")
    path.write_text("\n".join(lines) + "\n")
    return path


def scores_of(run: Run) -> list[Score]:
    """Arms above the third gain much, the others nothing."""
    arm = int(run.arm[1:])
    rng = np.random.default_rng([arm, run.seed or 0])
    names, gold = [f"item {number}" for number in range(40)], np.arange(40) % 2
    gain = 0.5 if arm > 2 else 0.0
    recall = np.clip(0.3 + gain + rng.normal(0, 0.1, 40), 0, 1)
    near = gold * (0.3 + gain) + rng.normal(0, 0.5, 40)
    above = (near[gold == 1][:, None] > near[gold == 0]).mean()
    return [
        Score(metric=RECALL, value=float(recall.mean()), aggregate="mean", item_ids=names, values=recall),
        Score(metric=AUC, value=float(above), aggregate="auc", item_ids=names, values=near, gold=gold),
    ]


def made(folder: Path, seeds: str = "4") -> Made:
    study, ledger = read_study(study_of(folder / "which.yaml", seeds)), Ledger(folder / "ledger")
    asked = plan(study, FACTS)
    declare(study, asked.runs, ledger)
    for run in asked.runs:
        finish(ledger, run, scores_of(run))
    return Made(replace(asked, finished=ledger.entries()), ledger)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file of a ledger is read."""
    counts: Counter[str] = Counter()
    plainly = LocalStorage.read

    def counted(self: LocalStorage, name: str) -> bytes:
        counts[name] += 1
        return plainly(self, name)

    monkeypatch.setattr(LocalStorage, "read", counted)
    return counts


@pytest.fixture
def resampled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The resamples that were asked for, call by call."""
    calls: list[int] = []
    plainly = item_tests.resampled_deltas

    def counted(items: Any, rng: Any, resamples: int, workers: int | None = None) -> Any:
        calls.append(resamples)
        return plainly(items, rng, resamples, workers)

    monkeypatch.setattr(item_tests, "resampled_deltas", counted)
    return calls


def of_kind(read: Counter[str], file: str) -> Counter[str]:
    return Counter({name: count for name, count in read.items() if name.endswith(f"/{file}")})


def once(read: Counter[str]) -> bool:
    """Whether no file of an entry was read twice, apart from seals: the items are held against them too."""
    of_entries = {name: count for name, count in read.items() if not name.startswith(".")}
    return all(count == 1 or (count == 2 and name.endswith(SEAL)) for name, count in of_entries.items())


def test_a_report_reads_every_file_once(tmp_path: Path, read: Counter[str]) -> None:
    asked, ledger = made(tmp_path)
    read.clear()
    found = find(asked.study, asked.runs, ledger)
    assert len(found.runs) == len(asked.runs) == ARMS * 4
    assert once(read)
    assert len(of_kind(read, "result.json")) == sum(len(run.entries) for run in asked.runs)
    assert len(of_kind(read, "curve.parquet")) == len(asked.runs)
    # of each compared arm the items of its one metric, of the control those of both
    assert len(of_kind(read, "scores.parquet")) == 4 * (ARMS - 1) + 4 * 2


def test_why_reads_and_resamples_what_its_claim_is_corrected_with(
    tmp_path: Path, read: Counter[str], resampled: list[int]
) -> None:
    asked, ledger = made(tmp_path)
    whole = find(asked.study, asked.runs, ledger)
    all_resampled = len(resampled)
    read.clear()
    resampled.clear()
    told = find(asked.study, asked.runs, ledger, asked="H2")
    assert once(read)
    assert {name.split("/")[0] for name in of_kind(read, "curve.parquet")} == {
        run.id for run in asked.runs if run.arm in ("A0", "A2")
    }
    apart = {entry for run in asked.runs if run.arm in ("A4", "A5") for entry in run.entries}
    assert not {name.split("/")[0] for name in read} & apart  # of a group that H2 is not corrected with
    # H1 and H3 are AUCs, whose p takes resamples; H2 is told with its interval
    assert all_resampled == ARMS - 1
    assert len(resampled) == 3
    (finding,) = told.findings
    assert finding == next(one for one in whole.findings if one.verdict.claim == "H2")
    assert chain(told) == chain(replace(whole, findings=(finding,)))


def test_a_plan_reads_no_training_and_draws_less(tmp_path: Path, read: Counter[str], resampled: list[int]) -> None:
    asked, ledger = made(tmp_path)
    read.clear()
    reaches = reachability(asked, seen(StudyRecords(asked.study, asked.runs, ledger)))
    assert len(reaches) == ARMS - 1
    assert once(read)
    assert {name.split("/")[0] for name in of_kind(read, "result.json")} == {
        run.entry("stress" if int(run.arm[1:]) % 2 else "t2d") for run in asked.runs if run.arm != "A0"
    } | {entry for run in asked.runs if run.arm == "A0" for entry in run.entries[1:]}
    assert resampled == [evidence.PLANNED] * 3  # the AUCs of A1, A3 and A5: a mean has a formula


def test_seeds_that_were_added_are_judged_and_read_once(
    tmp_path: Path, read: Counter[str], resampled: list[int]
) -> None:
    """However many seeds a study has come to, the items of a claim that was decided are resampled no more."""
    asked, ledger = made(tmp_path, "{start: 6, max: 9}")
    for run in plan(replace(asked.study, seeds=replace(asked.study.seeds, initial=(6, 7, 8))), FACTS).runs:
        finish(ledger, run, scores_of(run))
    held = replace(asked, finished=ledger.entries())
    read.clear()
    resampled.clear()
    wider = grown(held, ledger)
    assert wider.seeds("A0", "small") == tuple(range(9))
    assert once(read)
    added = [
        run.arm for run in wider.runs if run.seed in (6, 7) and run.arm != "A0"
    ]  # judged with 6, 7 and 8 seeds
    assert 0 < len(added) < 2 * (ARMS - 1)
    assert len(resampled) == (ARMS - 1) + len(added)
