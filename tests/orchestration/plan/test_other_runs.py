"""A study of which nothing is finished is timed by runs like its own, elsewhere on the machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestration.ledger.ledger import Ledger
from orchestration.plan import other_runs
from orchestration.plan.described import describe, foretold_words
from orchestration.plan.other_runs import Foretold, foretell
from orchestration.plan.plan import Facts, Plan, plan
from orchestration.reading.read_study import read_study
from orchestration.study.run import RUN_ID, Result, Run, Scored, Trained
from orchestration.verdicts.declared import declare
from tests.results import put

STUDY = """\
question: How long will it take?
family: concept
backbones: [tiny]
seeds: 2
train: {{steps: {steps}, batch_size: {batch}}}
arms:
  A: {{hard_negatives: true}}
  B0: {{train: false}}
evaluate: [t2d, geometry]
"""
FACTS = Facts(
    backbones={"tiny": "s" * 64},
    corpus="c" * 64,
    tasks=dict.fromkeys(("t2d", "geometry"), "7" * 16),
    precision="fp32",
)


def planned(folder: Path, name: str, steps: int, batch: int) -> Plan:
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.yaml"
    path.write_text(STUDY.format(steps=steps, batch=batch))
    return plan(read_study(path), FACTS)


def took(run: Run) -> Iterator[Result]:
    """20 s for 100 steps of 16; each task 5 s."""
    yield Trained(run=run, seconds={"train": 20.0})
    for task in run.tasks:
        yield Scored(run=run, task=task, scores=[], seconds={"evaluate": 5.0})


@pytest.fixture
def elsewhere(tmp_path: Path) -> Ledger:
    """A ledger in a folder beside the study's, with another study of two runs that trained."""
    other = planned(tmp_path / "before", "other", 100, 16)
    ledger = Ledger(str(tmp_path / "before" / "ledger"))
    declare(other.study, other.runs, ledger)
    for run in other.runs:
        put(ledger, run, took(run))
    return ledger


def test_by_texts_a_second_of_runs_like_these(tmp_path: Path, elsewhere: Ledger) -> None:
    new = planned(tmp_path / "now", "new", 400, 32)  # eight times the texts of a run there
    own = Ledger(str(tmp_path / "now" / "ledger"))
    told = foretell(new, own)
    assert told == Foretold(seconds=2 * (8 * 20.0) + 3 * 2 * 5.0, runs=2, ledgers=(elsewhere.url,))
    words = foretold_words(told, lanes=2)
    assert words.startswith("about 3 min on 2 lanes: an estimate from 2 runs of the same family and backbone in ")
    assert f"time    {words}" in describe(new, time=words).splitlines()


def test_a_task_more_costs_no_training(elsewhere: Ledger) -> None:
    """Both models are there; then one is gone, so that its run trains again, for 20 s. A task takes 5 s."""
    before = planned(Path(elsewhere.url).parent, "other", 100, 16)
    study = replace(before.study, evaluate=(*before.study.evaluate, "d2t"))
    tasks = {**FACTS.tasks, "d2t": "7" * 16}
    more = plan(study, replace(FACTS, tasks=tasks), elsewhere.entries())
    assert more.left == more.to_score
    told = foretell(more, elsewhere)
    assert told is not None
    assert told.seconds == pytest.approx(3 * 5.0)
    lost = next(run.id for run in more.runs if run.seed is not None)
    told = foretell(replace(more, gone=frozenset({lost})), elsewhere)
    assert told is not None
    assert told.seconds == pytest.approx(3 * 5.0 + 20.0)


def test_the_newest_runs_tell_the_time(tmp_path: Path, elsewhere: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine and code were others before. A run that recorded no time tells nothing."""
    silent = planned(tmp_path / "silent", "other", 100, 32)
    for run in silent.runs:
        put(elsewhere, run, (Trained(run=run) if isinstance(one, Trained) else one for one in took(run)))
    slow = next(run for run in planned(tmp_path / "slow", "other", 200, 16).runs if run.seed == 0)
    put(elsewhere, slow, [Trained(run=slow, seconds={"train": 400.0})])
    os.utime(Path(elsewhere.url, slow.id), (1e9, 1e9))
    new, own = planned(tmp_path / "now", "new", 100, 16), Ledger(str(tmp_path / "now" / "ledger"))
    monkeypatch.setattr(other_runs, "MOST_USED", 2)
    told = foretell(new, own)
    assert told is not None
    assert (told.seconds, told.runs) == (2 * 20.0 + 3 * 2 * 5.0, 2)
    monkeypatch.setattr(other_runs, "MOST_USED", 3)
    told = foretell(new, own)
    assert told is not None
    assert told.seconds == pytest.approx(2 * (20.0 + 20.0 + 400.0 / 2) / 3 + 3 * 2 * 5.0)


def test_runs_of_a_search_tell_the_time_too(tmp_path: Path, elsewhere: Ledger) -> None:
    declared = tmp_path / "before" / "ledger" / ".declared"
    declared.rename(declared.with_name(".searches"))
    new = planned(tmp_path / "here", "new", 50, 32)
    told = foretell(new, Ledger(str(tmp_path / "here" / "ledger")))
    assert told is not None
    assert told.runs == 2


def test_steps_are_timed_by_steps_on_any_rows(tmp_path: Path, elsewhere: Ledger) -> None:
    new = planned(tmp_path / "now", "new", 100, 16)
    on_other_rows = plan(new.study, replace(FACTS, corpus="d" * 64))
    told = foretell(on_other_rows, Ledger(str(tmp_path / "now" / "ledger")))
    assert told is not None
    assert told.seconds == pytest.approx(2 * 20.0 + 3 * 2 * 5.0)


def test_newer_runs_of_another_kind_crowd_out_none(
    tmp_path: Path, elsewhere: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of which there are as many as are used."""
    monkeypatch.setattr(other_runs, "MOST_USED", 2)
    new, own = planned(tmp_path / "now", "new", 100, 16), Ledger(str(tmp_path / "now" / "ledger"))
    for path in Path(elsewhere.url).iterdir():
        os.utime(path, (1e9, 1e9))
    for run in plan(new.study, replace(FACTS, backbones={"tiny": "t" * 64})).runs:
        put(elsewhere, run, [Trained(run=run, seconds={"train": 400.0})])
    told = foretell(new, own)
    assert told is not None
    assert (told.seconds, told.runs) == (2 * 20.0 + 3 * 2 * 5.0, 2)


SCRIPTS = """\
question: How long will it take?
family: command
seeds: 2
data: {{watch: [.], metrics: {{accuracy: higher}}}}
train: {{run: [python, {script}, --epochs, "{{epochs}}", --seed, "{{seed}}", --out, "{{out}}"], epochs: {epochs}}}
arms: {{A: {{}}}}
evaluate: [scores]
"""


@pytest.mark.parametrize(
    ("script", "epochs", "tells"), [("a.py", 1, True), ("b.py", 1, False), ("a.py", 50, False)]
)
def test_the_time_of_another_script_tells_nothing(tmp_path: Path, script: str, epochs: int, tells: bool) -> None:
    """Nor does that of another option, though the same files are watched. The same command takes 20 s, and 5 s."""
    facts = Facts(backbones={"none": ""}, corpus="c" * 64, tasks={"scores": "7" * 16}, precision="fp32")

    def of_script(folder: str, script: str, epochs: int) -> tuple[Plan, Ledger]:
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "study.yaml"
        path.write_text(SCRIPTS.format(script=script, epochs=epochs))
        return plan(read_study(path), facts), Ledger(str(tmp_path / folder / "ledger"))

    before, ledger = of_script("before", "a.py", 1)
    declare(before.study, before.runs, ledger)
    for run in before.runs:
        put(ledger, run, took(run))
    told = foretell(*of_script("now", script, epochs))
    assert (told.seconds if told else None) == (2 * (20.0 + 5.0) if tells else None)


@pytest.mark.parametrize("other", [{"backbones": {"tiny": "t" * 64}}, {"precision": "bf16"}])
def test_runs_of_another_kind_tell_nothing(tmp_path: Path, elsewhere: Ledger, other: dict[str, object]) -> None:
    new = planned(tmp_path / "now", "new", 400, 32)
    unlike = plan(new.study, replace(FACTS, **other))  # type: ignore[arg-type]
    own = Ledger(str(tmp_path / "now" / "ledger"))
    assert foretell(unlike, own) is None
    assert foretold_words(None, lanes=2).startswith("unknown: no finished run like these")


def test_runs_on_another_processor_tell_nothing(
    tmp_path: Path, elsewhere: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    new, own = planned(tmp_path / "now", "new", 400, 32), Ledger(str(tmp_path / "now" / "ledger"))
    monkeypatch.setattr(other_runs, "cpu_model", lambda: "another processor")
    assert foretell(new, own) is None


@pytest.mark.parametrize("of_scores", [False, True])
def test_an_entry_that_cannot_be_read_holds_up_no_estimate(
    tmp_path: Path, elsewhere: Ledger, of_scores: bool
) -> None:
    """The other run, or the other scores, tell as much: all are alike."""
    lost = min(path for path in Path(elsewhere.url).iterdir() if RUN_ID.fullmatch(path.name))
    if of_scores:
        lost = min(lost.parent.glob(f"{lost.name}.*"))
    for path in lost.glob("*.json"):
        path.write_text("{")
    new, own = planned(tmp_path / "now", "new", 100, 16), Ledger(str(tmp_path / "now" / "ledger"))
    told = foretell(new, own)
    assert told is not None
    assert told.seconds == pytest.approx(2 * 20.0 + 3 * 2 * 5.0)


@pytest.mark.parametrize("oldest", [0, -1])
def test_of_a_large_ledger_the_newest_runs_are_read(
    tmp_path: Path, elsewhere: Ledger, monkeypatch: pytest.MonkeyPatch, oldest: int
) -> None:
    """Whatever their ids. The oldest of three runs took twenty times as long."""
    monkeypatch.setattr(other_runs, "MOST_READ", 2)
    runs = [run for run in planned(tmp_path / "many", "other", 200, 16).runs if run.seed is not None]
    runs = sorted((*runs, *(replace(run, seed=9) for run in runs[:1])), key=lambda run: run.id)
    ledger = Ledger(str(tmp_path / "many" / "ledger"))
    declare(planned(tmp_path / "many", "other", 200, 16).study, runs, ledger)
    for run in runs:
        slow = run is runs[oldest]
        put(ledger, run, [Trained(run=run, seconds={"train": 800.0 if slow else 40.0})])
        if slow:
            os.utime(Path(ledger.url, run.id), (1e9, 1e9))
    told = foretell(planned(tmp_path / "many", "new", 100, 16), ledger)
    assert told is not None
    assert (told.seconds, told.runs) == (2 * 20.0 + 3 * 2 * 5.0, 4)  # two of each ledger


def test_runs_on_a_card_tell_nothing_of_runs_on_a_processor(tmp_path: Path, elsewhere: Ledger) -> None:
    new, own = planned(tmp_path / "now", "new", 400, 32), Ledger(str(tmp_path / "now" / "ledger"))
    resources = replace(new.study.resources, gpus_per_run=1.0)
    assert foretell(replace(new, study=replace(new.study, resources=resources)), own) is None


def test_without_recorded_scores_training_alone_is_timed(tmp_path: Path) -> None:
    """Even of runs that lack only scores, as nothing tells how long those take. Not every family has batches."""
    made = planned(tmp_path / "now", "new", 100, 16)
    made = replace(made, runs=tuple(replace(run, settings={"steps": 100}) for run in made.runs))
    ledger = Ledger(str(tmp_path / "now" / "ledger"))
    declare(made.study, made.runs, ledger)
    for run in made.runs:
        put(ledger, run, [Trained(run=run, seconds={"train": 0.5})])
    half = replace(made, finished=ledger.entries())
    assert half.only_scored == {run.id for run in made.runs}
    for asked in (made, half):
        told = foretell(asked, ledger)
        assert told is not None
        assert told.seconds == pytest.approx(2 * 0.5)


def test_ledgers_on_this_machine_tell_nothing_of_one_elsewhere(
    tmp_path: Path, elsewhere: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A URL is no folder, though `memory:` beside the local ones would be."""
    monkeypatch.chdir(tmp_path)
    new = planned(tmp_path / "now", "new", 100, 16)
    assert foretell(new, Ledger("ledger")) is not None
    assert foretell(new, Ledger("memory://ledger")) is None


@pytest.mark.parametrize("length", [{}, {"steps": None}, {"steps": "all"}, {"max_steps": 0}])
def test_epochs_are_timed_by_epochs_of_the_same_rows(tmp_path: Path, length: dict[str, object]) -> None:
    """However many texts pass at once: an epoch has the same texts. length: of a family that is given epochs."""

    def of_epochs(made: Plan, epochs: int, batch: int, rows: str = "c" * 64) -> Plan:
        settings = {**length, "epochs": epochs, "batch_size": batch}
        runs = (
            replace(run, settings=settings, corpus_fingerprint=rows) for run in made.runs if run.seed is not None
        )
        return replace(made, runs=tuple(runs))

    other = of_epochs(planned(tmp_path / "before", "other", 1, 1), 2, 16)
    ledger = Ledger(str(tmp_path / "before" / "ledger"))
    declare(other.study, other.runs, ledger)
    for run in other.runs:
        put(ledger, run, took(run))
    made, own = planned(tmp_path / "now", "new", 1, 1), Ledger(str(tmp_path / "now" / "ledger"))
    told = foretell(of_epochs(made, 3, 64), own)
    assert told is not None
    assert told.seconds == pytest.approx(2 * (3 * 20.0 / 2) + 2 * 2 * 5.0)
    assert foretell(of_epochs(made, 3, 64, rows="d" * 64), own) is None
