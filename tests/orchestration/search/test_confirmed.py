"""Who looks at a study is told that a point of its search was confirmed, and when the search has moved on since."""

from __future__ import annotations

import json
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import semray
from evaluators.metrics.scores import Score
from orchestration.commands.cli import main
from orchestration.ledger.ledger import Ledger
from orchestration.plan.held import planned
from orchestration.plan.plan import gather_facts
from orchestration.reading.read_study import read_study
from orchestration.search.confirm import confirmation, undeclared
from orchestration.search.confirmed import confirmed_searches, keep_confirmed
from orchestration.search.outcome import begin_again, keep_outcome
from orchestration.search.trials import Selection, searched, selections
from orchestration.study.run import Run
from orchestration.verdicts.declared import declare
from orchestration.verdicts.find import find
from tests.results import finish
from tests.searching import RATES

STUDY = f"""\
{RATES}
compare:
  - {{claim: H1, treatment: fast, control: slow, metric: scores/accuracy, expect: better}}
"""
TOLD = "search slow: slow@1 was put to the test against slow on "


def score(ledger: Ledger, run: Run, metric: str) -> None:
    """Best at a rate of 0.3; every run has some luck of its own, its items have none."""
    worth = 0.9 - abs(run.settings["values"]["lr"] - 0.3) + int(run.id[:4], 16) % 100 / 1e4
    items = [f"item{number}" for number in range(8)]
    finish(ledger, run, [Score(metric=metric, value=worth, aggregate="mean", item_ids=items, values=[worth] * 8)])


def search(ledger: Ledger, *rates: float) -> Selection:
    """A search that has come to its end with the arm and these points."""
    study = read_study("rates.yaml")
    (selection,) = selections(study, gather_facts(study))
    for number, rate in enumerate([1e-3, *rates]):
        ledger.points(study.name, selection.id).suggest(number, {"lr": rate})
        if not ledger.holds(run := selection.run(number, {"lr": rate}, 100)):
            score(ledger, run, "dev/scores/accuracy")
    keep_outcome(searched(selection, ledger), ledger, ended=True)
    return selection


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command says, on both streams."""
    capsys.readouterr()
    assert main([*words]) == 0
    said = capsys.readouterr()
    if "--json" in words:
        json.loads(said.out)
    return said.out + said.err


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """The ledger of a study of which nothing has run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    (tmp_path / "train.py").write_text("")
    (tmp_path / "rates.yaml").write_text(STUDY)
    return Ledger(tmp_path / "ledger")


@pytest.fixture
def ledger(empty: Ledger) -> Ledger:
    """A finished study, its search, and the runs of the confirmation, which nobody has asked for yet."""
    study, ledger = read_study("rates.yaml"), empty
    found = searched(search(ledger, 0.05), ledger)
    for one in (study, confirmation(study, [found])):
        for run in planned(one, ledger).left:
            score(ledger, run, "scores/accuracy")
    return ledger


def test_claims_that_a_confirmation_shows_before_they_are_declared_are_named(empty: Ledger) -> None:
    study = read_study("rates.yaml")
    chosen = confirmation(study, [searched(search(empty, 0.05), empty)])
    runs = planned(study, empty).runs
    assert undeclared(study, chosen, empty) == ["H1"]
    declare(study, runs, empty)
    assert undeclared(study, chosen, empty) == []


def test_of_claims_that_are_seen_already_a_confirmation_shows_nothing_new(ledger: Ledger) -> None:
    study = read_study("rates.yaml")
    chosen = confirmation(study, [searched(search(ledger, 0.05), ledger)])
    assert undeclared(study, chosen, ledger) == []


def test_a_confirmation_is_told_wherever_a_study_is_looked_at(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    looks = [("status", "rates"), ("report", "rates"), ("why", "rates", "H1")]
    looks += [(*look, "--json") for look in looks]
    for look in looks:
        assert "put to the test" not in told(capsys, *look)
    assert "better" in told(capsys, "confirm", "rates")
    for look in looks:
        said = told(capsys, *look)
        assert TOLD in said
        assert (
            "better by scores/accuracy over 6 fresh seeds, exploratory; semray confirm rates.yaml shows it again"
            in said
        )
    assert TOLD in Path("reports/rates/report.html").read_text()
    for run in Path("ledger").glob("[0-9a-f]*"):
        shutil.rmtree(run)  # to tell of it no run is read
    assert TOLD in told(capsys, "status", "rates")


def test_why_knows_the_claims_of_a_confirmation(ledger: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    for claim, deltas in (("search slow", "slow@1 - slow"), ("H1", "fast - slow")):
        assert f"deltas   {deltas}, scores/accuracy" in told(capsys, "why", "rates", claim)
    assert "semray why rates 'search slow'" in told(capsys, "confirm", "rates")
    capsys.readouterr()
    assert main(["why", "rates", "search fast"]) == 2
    assert "no claim search fast\n  accepted: H1" in capsys.readouterr().err


def test_a_confirmation_after_an_edit_tells_that_the_points_of_the_ledger_are_of_another_search(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("train.py").write_text("# changed since")
    capsys.readouterr()
    assert main(["confirm", "rates"]) == 2
    said = capsys.readouterr().err
    assert "a new search of slow: the 2 points of rates in the ledger are of another space, arm, sampler, " in said
    assert "no point with all seeds in the ledger\n  next: semray search rates.yaml" in said


def test_a_search_that_moved_on_is_told_with_what_was_confirmed(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    told(capsys, "confirm", "rates")
    selection = search(ledger, 0.05, 0.2)
    said = told(capsys, "status", "rates")
    assert TOLD in said
    assert "since then another point is the best, slow@2: semray confirm rates.yaml" in said
    begin_again(selection, ledger)  # and is killed, or at work
    assert "is the best, slow@2" in told(capsys, "status", "rates")


def test_a_search_that_goes_on_may_come_to_another_point(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    told(capsys, "confirm", "rates")
    selection = search(ledger, 0.05)
    begin_again(selection, ledger)
    said = told(capsys, "status", "rates")
    assert TOLD in said
    assert "the search has not ended: semray search rates.yaml goes on" in said
    points = ledger.points("rates", selection.id)
    came = points.outcome()
    assert came
    points.keep_outcome(replace(came, best=0, point={"lr": 1e-3}))
    assert "since then no point is better than what the search began with" in told(capsys, "status", "rates")


def confirmed(capsys: pytest.CaptureFixture[str], *words: str) -> list[list[dict[str, Any]]]:
    """What each object that a command prints for programs says of confirmations."""
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    return [one["confirmed"] for one in (found["runs"] if words[0] == "status" else found)]


def test_programs_are_told_of_a_confirmation_and_of_a_search_that_moved_on(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    claims = [("report", "rates"), ("why", "rates", "H1"), ("run", "rates")]
    for look in claims:
        assert confirmed(capsys, *look) == [[]]
    told(capsys, "confirm", "rates")
    for look in claims:
        ((one,),) = confirmed(capsys, *look)
        assert (one["arm"], one["point"], one["treatment"], one["control"]) == ("slow", 1, "slow@1", "slow")
        assert (one["verdict"], one["metric"], one["seeds"]) == ("better", "scores/accuracy", 6)
        assert (one["exploratory"], one["moved_on"], one["best"], one["ended"]) == (True, False, 1, True)
        assert one["words"] in told(capsys, "status", "rates")
    assert json.loads(Path("reports/rates/report.json").read_text())[0]["confirmed"] == [one]
    assert confirmed(capsys, "status", "rates") == 6 * [[one], []]  # of the arm searched, and of the other
    selection = search(ledger, 0.05, 0.2)
    begin_again(selection, ledger)
    (moved,) = confirmed(capsys, "why", "rates", "H1")[0]
    assert (moved["point"], moved["moved_on"], moved["best"], moved["ended"]) == (1, True, 2, False)
    assert "since then another point is the best, slow@2" in moved["words"]


def test_the_page_that_a_run_writes_tells_of_a_confirmation(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    told(capsys, "confirm", "rates")
    assert TOLD in told(capsys, "run", "rates")
    assert TOLD in Path("reports/rates/report.html").read_text()


def test_python_tells_of_a_confirmation_as_the_commands_do(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    told(capsys, "confirm", "rates")
    study = semray.load_study("rates")
    for found in (semray.judge(study), semray.run(study)):
        assert TOLD in str(found)
        assert [one.arm for one in found.confirmed] == ["slow"]
        assert TOLD in semray.report(found, "python").read_text()


def test_a_passport_is_the_same_whatever_was_confirmed(ledger: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    def printed(name: str) -> Any:
        told(capsys, "report", "rates", "--passport", name)
        assert "all agree" in told(capsys, "verify", name)
        found = json.loads(zipfile.ZipFile(name).read("findings.json"))
        return {**found, "created": ""}

    told(capsys, "run", "rates")
    before = printed("before.passport")
    told(capsys, "confirm", "rates")
    assert printed("after.passport") == before
    assert "put to the test" not in json.dumps(before)


def test_a_confirmation_that_is_written_down_as_a_study_has_a_passport(
    empty: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of its name, arms and claims: they were declared by the confirmation, and its runs are the finished ones."""
    study = read_study("rates.yaml")
    chosen = confirmation(study, [searched(search(empty, 0.05), empty)])
    declared = declare(chosen, planned(chosen, empty).runs, empty)
    for run in planned(chosen, empty).left:
        score(empty, run, "scores/accuracy")
    own = RATES[: RATES.index("search:")].replace("fast: {lr: 1.0e-1}", '"slow@1": {lr: 5.0e-2}')
    Path("rates-confirmed.yaml").write_text(
        f"{own}compare:\n"
        '  - {claim: search slow, treatment: "slow@1", control: slow, metric: scores/accuracy, expect: better, '
        f"backbone: {chosen.backbones[0]}}}\n"
    )
    assert "better" in told(capsys, "report", "rates-confirmed", "--passport", "rates.passport")
    said = told(capsys, "verify", "rates.passport", "--declared", declared.digest)
    assert "all agree" in said
    assert "12 finished" in said


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("slow: {lr: 1.0e-3}", "slow: {lr: 2.0e-3}"),
        ("high: 0.8", "high: 0.7"),
        ("  seeds: [100]", "  seeds: [101]"),
    ],
)
def test_of_another_search_nothing_is_told(
    ledger: Ledger, capsys: pytest.CaptureFixture[str], old: str, new: str
) -> None:
    """What was confirmed is no arm of the study any more, or was not found as it searches now."""
    told(capsys, "confirm", "rates")
    assert STUDY.count(old) == 1
    Path("rates.yaml").write_text(STUDY.replace(old, new))
    assert confirmed_searches(read_study("rates.yaml"), ledger) == ()
    Path("rates.yaml").write_text(STUDY)
    assert confirmed_searches(read_study("rates.yaml"), ledger) != ()


def test_what_is_kept_is_the_verdict_on_the_search_and_not_on_a_part_so_called(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    """The part says the opposite."""
    claim = STUDY.splitlines()[-1].removeprefix("  - ")
    part = "{claim: search slow, treatment: slow, control: fast, metric: scores/accuracy, expect: worse}"
    Path("rates.yaml").write_text(STUDY.replace(claim, f"{{claim: J, all: [{claim}, {part}]}}"))
    said = told(capsys, "confirm", "rates")
    assert "search slow tuned" in said
    ((_, kept),) = ledger.points("rates", *ledger.searches("rates")).confirmed().items()
    assert (kept.treatment, kept.control, kept.verdict) == ("slow@1", "slow", "better")


def test_a_verdict_on_a_part_is_not_kept_even_under_the_name_of_the_search(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    study = read_study("rates.yaml")
    (selection,) = selections(study, gather_facts(study))
    found = searched(selection, ledger)
    tested = confirmation(study, [found])
    findings = find(tested, planned(tested, ledger).runs, ledger)
    (own,) = (one for one in findings.findings if one.verdict.claim == "search slow")
    part = replace(own, verdict=replace(own.verdict, part_of="J", verdict="worse"))
    keep_confirmed([found], replace(findings, findings=(*findings.findings, part)), ledger)
    assert ledger.points("rates", selection.id).confirmed()[1].verdict == "better"


def test_a_confirmation_that_is_shown_again_keeps_its_day(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    told(capsys, "confirm", "rates")
    (note,) = Path("ledger/.searches").rglob("*.confirmed.json")
    before = note.stat().st_mtime_ns
    told(capsys, "confirm", "rates")
    assert note.stat().st_mtime_ns == before
