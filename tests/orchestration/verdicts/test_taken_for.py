"""What items of retrieval were taken for: kept beside the scores, told in the report, and no part of any figure."""

from __future__ import annotations

import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evaluators.metrics.scores import Score
from orchestration.ledger.entries.layout import TAKEN_FOR
from orchestration.ledger.ledger import Ledger
from orchestration.ledger.notes import LedgerError
from orchestration.plan.plan import Facts, Plan, plan
from orchestration.reading.read_study import read_study
from orchestration.report.html import html
from orchestration.study.run import Run, Scored, Trained
from orchestration.verdicts.find import find
from orchestration.verdicts.findings import Findings, TakenFor
from orchestration.verdicts.item_texts import with_item_texts
from orchestration.verdicts.passport import plain, verify, write_passport
from tests.named_study import RECALL, STRESS, write_study
from tests.results import put

NAMES = ["kettle", "harbour", "lamp", "door"]
Held = tuple[Plan, Ledger, Findings]


def held(folder: Path, *, told: bool) -> Held:
    """Three arms, two seeds. B0 takes every lamp for a door; B1 takes it once for a kettle. All take it for a harbour
    in a pool of their own, which is another question."""
    study = read_study(write_study(folder / "hard.yaml", "Hard?", ["B1", "B2", "B0"], ["H1", "H2", "H3"]))
    facts = Facts(
        backbones={"tiny": "s" * 64},
        corpus="c" * 64,
        tasks=dict.fromkeys(study.evaluate, "7" * 16),
        precision="fp32",
    )
    asked, ledger = plan(study, facts), Ledger(folder / "ledger")
    for run in asked.runs:
        put(ledger, run, _results(run, told))
    return asked, ledger, find(study, asked.runs, ledger)


def _results(run: Run, told: bool) -> list[Trained | Scored]:
    hit = np.array([1.0, 1.0, float(run.arm == "B1" and run.seed == 1), 1.0])
    wrong = "" if hit[2] else {"B1": "kettle"}.get(run.arm, "door")
    mrr = Score(
        metric="t2d/mrr",
        value=float(hit.mean()),
        aggregate="mean",
        item_ids=NAMES,
        values=hit,
        taken_for=["", "", wrong, ""] if told else (),
    )
    strict = replace(mrr, metric="t2d/strict/mrr", taken_for=["", "", "harbour", ""] if told else ())
    recall = Score(metric=RECALL, value=float(hit.mean()), aggregate="mean", item_ids=NAMES, values=hit)
    return [
        Trained(run=run),
        Scored(run=run, task="t2d", scores=[strict, recall, mrr]),
        Scored(run=run, task="stress", scores=[Score(metric=STRESS, value=0.6)]),
    ]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Held:
    return held(tmp_path_factory.mktemp("told"), told=True)


@pytest.fixture(autouse=True)
def nothing_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / "cache"))


def test_a_report_says_what_each_arm_took_an_item_for(told: Held) -> None:
    asked, ledger, findings = told
    shown = with_item_texts(findings, asked.study, ledger)
    first = shown.findings[0]
    assert first.taken_for == {
        "lamp": (
            TakenFor(arm="B0", other="door", times=1, runs=1),
            TakenFor(arm="B1", other="kettle", times=1, runs=2),
        )
    }
    page = html(shown, {})
    assert "B0 took it for “door”<" in page
    assert "most on lamp, taken for door<" in page
    texts = {RECALL: {"lamp": "lamp: a source of light", "door": "door: a <thing> that closes"}}
    assert "took it for “door: a &lt;thing&gt; that closes”" in html(replace(shown, item_texts=texts), {})


def test_figures_and_passport_are_those_of_scores_that_do_not_tell(told: Held, tmp_path: Path) -> None:
    """The same runs scored before this was kept: the same names of entries, the same findings, readable as ever."""
    asked, ledger, findings = told
    before, silent, same = held(tmp_path, told=False)
    assert {run.entries for run in before.runs} == {run.entries for run in asked.runs}
    parts = [{**plain(one), "created": "", "ledger": "", "runs": []} for one in (findings, same)]
    assert parts[0] == parts[1]
    assert all(not one.taken_for for one in with_item_texts(same, before.study, silent).findings)
    path = tmp_path / "hard.passport"
    write_passport(path, asked, ledger, with_item_texts(findings, asked.study, ledger))
    assert not any(name.endswith(TAKEN_FOR) for name in zipfile.ZipFile(path).namelist())
    assert verify(path).differences == ()


def test_what_was_kept_is_sealed(told: Held, tmp_path: Path) -> None:
    ledger = Ledger(shutil.copytree(told[1].url, tmp_path / "ledger"))
    entry = next(entry for entry in sorted(ledger.entries()) if ledger.taken_for(entry) is not None)
    file = Path(ledger.url, entry, TAKEN_FOR)
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with pytest.raises(LedgerError, match=TAKEN_FOR):
        ledger.taken_for(entry)
    assert TAKEN_FOR in (ledger.audit(entry) or "")
