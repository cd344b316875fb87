"""What lies beside the entries: declarations, locks, points of searches. Each damage is named, with what mends it."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from orchestration.commands.cli import main
from orchestration.ledger.budgets import Spent
from orchestration.ledger.ledger import Ledger
from orchestration.ledger.notes import LedgerError
from orchestration.ledger.points import Confirmed, SearchOutcome
from orchestration.ledger.repeats import Reproduction
from orchestration.study.errors import StudyError
from orchestration.study.run import former_id
from tests.orchestration.ledger.test_seals import fields, make_run, other, put

CLAIM = {"claim": "H1", "treatment": "B1", "control": "B0", "metric": "t2d/mrr", "expect": "better", "seen": False}
ASKED = Spent(study="a/b", claim="H1", says="B1 - B0", p=0.02, level=0.05, shown=True)
OUTCOME = SearchOutcome(arm="B1", trials=3, budget=9, ended=True, best=2, point={"layers": [1, 2]}, table="5ea4c4")
CONFIRMED = Confirmed(
    treatment="B1@2",
    control="B1",
    metric="t2d/mrr",
    verdict="better",
    exploratory=False,
    seeds=8,
    confirmed_at="2026-11-24T00:00:00+00:00",
)
REPEAT = Reproduction(
    run=make_run(0).id, label="B1 seed 0", outcome="different", metric="t2d/mrr", difference=0.25
)
NOTES = {  # place -> what reads it
    ".declared/a%2Fb.json": lambda ledger: ledger.declared("a/b"),
    ".searches/a%2Fb/5ea4c4/1.json": lambda ledger: ledger.points("a/b", "5ea4c4").suggested(),
    ".searches/a%2Fb/5ea4c4/0-100.stopped.json": lambda ledger: ledger.points("a/b", "5ea4c4").stopped(),
    ".searches/a%2Fb/5ea4c4/outcome.json": lambda ledger: ledger.points("a/b", "5ea4c4").outcome(),
    ".searches/a%2Fb/5ea4c4/2.confirmed.json": lambda ledger: ledger.points("a/b", "5ea4c4").confirmed(),
    f".failures/{make_run(0).id}.json": lambda ledger: ledger.failure(make_run(0).id),
    f".repeats/{make_run(0).id}.json": lambda ledger: ledger.repeats([make_run(0).id]),
}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A study declared, driven, searched: three points, a run of the first ended early; a run that failed, and was
    run twice."""
    ledger = Ledger(tmp_path / "ledger")
    ledger.declare("a/b", [CLAIM])
    with ledger.drive("a/b"):
        points = ledger.points("a/b", "5ea4c4")
        for number in range(3):
            points.suggest(number, {"learning_rate": 0.1 * number, "layers": [1, 2]})
        points.stop(0, 100, {9: 0.25, 20: float("nan"), 100: 0.5})
        points.confirm(2, CONFIRMED)
        points.keep_outcome(OUTCOME)
    ledger.ask("a/year", lambda earlier: ASKED)
    ledger.fail(make_run(0), 1, "ValueError: no", "")
    ledger.keep_repeat(REPEAT)
    return ledger


def test_an_intact_ledger_has_no_damage(ledger: Ledger) -> None:
    assert ledger.damaged_notes() == {}
    assert ledger.points("a/b", "5ea4c4").suggested()[2] == {"learning_rate": 0.2, "layers": [1, 2]}
    assert str(ledger.points("a/b", "5ea4c4").stopped()) == "{(0, 100): {9: 0.25, 20: nan, 100: 0.5}}"
    for foreign in (".declared", ".drivers", ".searches", ".searches/a%2Fb", ".searches/a%2Fb/5ea4c4"):
        (Path(ledger.url) / foreign / ".DS_Store").write_bytes(b"\0")
    assert ledger.damaged_notes() == {}
    assert Ledger(Path(ledger.url) / "none").damaged_notes() == {}


@pytest.mark.parametrize("place", NOTES)
def test_every_field_is_sealed(ledger: Ledger, place: str) -> None:
    file = Path(ledger.url) / place
    intact, read = file.read_text(), NOTES[place]
    body = json.loads(intact)
    for way in fields(body):
        value = body
        for name in way:
            value = value[name]
        for new in (other(value) if value == value else 1.0, [[]]):  # nan is unlike itself
            file.write_text(json.dumps(put(body, way, new)))
            with pytest.raises(LedgerError, match=rf"{re.escape(place)}: .*\n  accepted: "):
                read(ledger)
            assert len(ledger.damaged_notes()) == 1
    file.write_text(intact)
    read(ledger)


@pytest.mark.parametrize("place", NOTES)
def test_notes_of_before_have_no_seal_or_one_that_does_not_cover_their_name(ledger: Ledger, place: str) -> None:
    file = Path(ledger.url) / place
    body, now = json.loads(file.read_text()), repr(NOTES[place](ledger))
    del body["sha256"]
    file.write_text(json.dumps(body))
    assert repr(NOTES[place](ledger)) == now
    seal = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    file.write_text(json.dumps({**body, "sha256": seal}))
    assert repr(NOTES[place](ledger)) == now


def test_two_notes_that_changed_places_are_found(ledger: Ledger) -> None:
    """Each as it was written: but one for another study, point, run."""
    ledger.declare("b", [{**CLAIM, "treatment": "B2"}])
    points = ledger.points("a/b", "5ea4c4")
    points.stop(1, 100, {9: 0.75})
    points.confirm(1, replace(CONFIRMED, verdict="worse"))
    ledger.points("a/b", "0ther").keep_outcome(replace(OUTCOME, best=1))
    ledger.fail(make_run(1), 2, "ValueError: another", "")
    ledger.keep_repeat(replace(REPEAT, run=make_run(1).id, outcome="same bits"))
    twins = (".declared/b", ".searches/a%2Fb/5ea4c4/0", ".searches/a%2Fb/5ea4c4/1-100.stopped",
             ".searches/a%2Fb/0ther/outcome", ".searches/a%2Fb/5ea4c4/1.confirmed",
             f".failures/{make_run(1).id}", f".repeats/{make_run(1).id}")  # fmt: skip
    assert ledger.damaged_notes() == {}
    for place, twin in zip(NOTES, twins, strict=True):
        one, other = Path(ledger.url, place), Path(ledger.url, f"{twin}.json")
        ours, theirs = one.read_bytes(), other.read_bytes()
        one.write_bytes(theirs)
        other.write_bytes(ours)
        with pytest.raises(LedgerError, match=r"it is not as it was written.*\n  accepted: "):
            NOTES[place](ledger)
        assert ledger.damaged_notes()
        one.write_bytes(ours)
        other.write_bytes(theirs)


def test_a_repeat_of_before_that_tells_of_another_run_is_found(ledger: Ledger) -> None:
    """It had no seal."""
    (Path(ledger.url) / ".repeats" / f"{make_run(1).id}.json").write_text(json.dumps(asdict(REPEAT)))
    with pytest.raises(LedgerError, match=rf"it tells of run {make_run(0).id}"):
        ledger.repeats([make_run(1).id])


def test_a_failure_of_before_that_tells_of_another_run_is_found(ledger: Ledger) -> None:
    """It had no seal. One of a ledger whose runs had other ids tells of the run that it is named by."""
    failures, other = Path(ledger.url) / ".failures", make_run(1)
    body = json.loads((failures / f"{make_run(0).id}.json").read_text())
    del body["sha256"]
    (failures / f"{other.id}.json").write_text(json.dumps(body))
    with pytest.raises(LedgerError, match=rf"it lacks or adds fields \(it tells of run {make_run(0).id}\)"):
        ledger.failure(other.id)
    (failures / f"{other.id}.json").unlink()
    former = {name: value for name, value in body["run"].items() if name not in ("tasks", "former", "look_at")}
    former["evaluate"] = ["t2d"]
    place = failures / f"{former_id(former)}.json"
    place.write_text(json.dumps({**body, "run": former}))
    assert ledger.failed().keys() == {make_run(0).id, place.stem}
    place.write_text(json.dumps({**body, "run": {**former, "evaluate": ["d2t"]}}))
    with pytest.raises(LedgerError, match="it tells of run "):
        ledger.failed()


@pytest.mark.parametrize("value", [None, 5, "x", [], [[]], {}, {"x": [1]}])
@pytest.mark.parametrize("name", list(make_run(0).to_dict()))
def test_a_failure_of_before_whose_run_is_odd_is_named(ledger: Ledger, name: str, value: object) -> None:
    """Nothing that it says of a run ends a look at the ledger in a traceback."""
    place = Path(ledger.url) / ".failures" / f"{make_run(0).id}.json"
    body = json.loads(place.read_text())
    del body["sha256"]
    body["run"][name] = value
    place.write_text(json.dumps(body))
    with suppress(LedgerError):
        assert [str(failure.run.label) for failure in ledger.failed().values()]


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-3])


def a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("damage", [cut, a_pipe, a_folder])
@pytest.mark.parametrize("place", [*NOTES, ".drivers/a%2Fb/1", ".budgets/a%2Fyear/0.json"])
def test_an_audit_names_what_is_damaged_beside_the_entries(
    ledger: Ledger, place: str, damage: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    damage(Path(ledger.url) / place)
    assert main(["audit", "--ledger", ledger.url]) == 1
    *damaged, remedy, counts = capsys.readouterr().out.strip().split("\n")
    assert len(damaged) == 1
    assert damaged[0].startswith(f"{ledger.url}/{place}: ")
    assert remedy.startswith("  accepted: ")
    assert counts.endswith("1 damaged")


@pytest.mark.parametrize("kept", [".declared", ".drivers", ".searches", ".failures", ".repeats", ".budgets"])
def test_a_ledger_that_holds_one_kind_of_notes_alone_is_one(
    ledger: Ledger, kept: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in Path(ledger.url).iterdir():
        if folder.name != kept:
            shutil.rmtree(folder)
    assert main(["audit", "--ledger", ledger.url]) == 0
    assert capsys.readouterr().out.endswith("0 sealed entries as their runs wrote them, 0 damaged\n")


@pytest.mark.parametrize(
    "folder", [".declared", ".drivers", ".searches", ".drivers/a%2Fb", ".failures", ".repeats", ".budgets"]
)
def test_a_file_where_a_folder_belongs(ledger: Ledger, folder: str) -> None:
    place = Path(ledger.url) / folder
    place.rename(Path(ledger.url).parent / "away")
    place.write_text("")
    (said,) = ledger.damaged_notes().values()
    assert said.startswith(f"{ledger.url}/{folder}")
    assert "\n  accepted: " in said


@pytest.mark.parametrize(
    ("folder", "look"),
    [
        (".failures", Ledger.failed),
        (".declared", Ledger.declarations),
        (".attempts", lambda ledger: ledger.newest("0" * 16)),
    ],
)
def test_whoever_looks_into_it_says_so(ledger: Ledger, folder: str, look: Callable[[Ledger], object]) -> None:
    place = Path(ledger.url) / folder
    if place.exists():
        place.rename(Path(ledger.url).parent / "away")
    os.mkfifo(place)
    advice = "the folder that semray makes there; move this out of the ledger, and it is made anew"
    told = rf"/{folder}.*: no folder that can be read \(Not a directory\)\n  accepted: {advice}"
    with pytest.raises(StudyError, match=told):
        look(ledger)


def test_a_folder_that_may_not_be_read_stays_where_it_is(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies in it is whole. (Root may read anywhere: the answer is made up.)"""

    def refused(path: str) -> list[str]:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(os, "listdir", refused)
    told = r"/\.failures: no folder that can be read \(Permission denied\)\n  accepted: a folder that may be read$"
    with pytest.raises(StudyError, match=told):
        ledger.failed()


def test_a_point_that_is_missing_before_others_is_missed(ledger: Ledger) -> None:
    (Path(ledger.url) / ".searches/a%2Fb/5ea4c4/1.json").unlink()
    with pytest.raises(LedgerError, match=r"/1\.json: it is missing, and 2\.json is there\n  accepted: "):
        ledger.points("a/b", "5ea4c4").suggested()
    assert [*ledger.damaged_notes()] == [".searches/a%2Fb/5ea4c4"]
