"""Packages with a fault in their tasks: told of by name to who asks for them, before anything is trained."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestration.families import registry
from orchestration.lanes.in_this_process import carry_out
from orchestration.ledger.ledger import Ledger
from orchestration.plan.held import planned
from orchestration.plan.plan import gather_facts, prepare
from orchestration.reading.read_study import read_study
from orchestration.study.errors import StudyError
from orchestration.study.study import Study
from tests.brought import bring_tasks
from tests.tiny import tiny_backbone

STUDY = """\
question: Does a package do harm?
family: toy
backbones: [PLACE/tiny]
seeds: 2
arms: {still: {train: false}, quick: {}}
evaluate: [length]
"""
CLAIM = "compare:\n  - {claim: H1, treatment: quick, control: still, metric: odd/t/acc, expect: better}\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(registry.FAMILIES, "toy", "tests.toy_family")
    tiny_backbone(tmp_path / "tiny")
    return tmp_path


def study_of(place: Path, task: str, more: str = "") -> Study:
    (place / "odd.yaml").write_text(STUDY.replace("PLACE", str(place)).replace("[length]", f"[{task}]") + more)
    return read_study(place / "odd.yaml")


def test_a_package_without_a_fault_is_tried_and_scored(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bring_tasks(monkeypatch, place / "site", "")
    study, ledger = study_of(place, "odd/t", CLAIM), Ledger(place / "ledger")
    prepare(study)
    assert carry_out(planned(study, ledger).left, ledger) == 2
    assert not planned(study, ledger).left


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import nowhere", "ModuleNotFoundError: No module named 'nowhere'"),
        ("def tasks(path): raise FileNotFoundError('no rows.csv')", "FileNotFoundError: no rows.csv"),
        ("def tasks(path): return None", "TypeError: 'NoneType' object is not iterable"),
        ("def tasks(path): return [task()]", "TypeError: "),
        ("def tasks(): return {}", "TypeError: tasks() takes 0 positional arguments but 1 was given"),
        ("tasks = {}", "TypeError: 'dict' object is not callable"),
        ("def tasks(path): return {'odd/t': 3}", "TypeError: 'odd/t' is a int, not a Task"),
        (
            "def tasks(path): return {'odd/t': task(headline='acc')}",
            "TypeError: 'odd/t' has the headline 'acc', which is not in its metrics",
        ),
    ],
)
def test_who_asks_for_other_tasks_hears_nothing_of_a_broken_package(
    place: Path, monkeypatch: pytest.MonkeyPatch, code: str, says: str
) -> None:
    bring_tasks(monkeypatch, place / "site", code)
    prepare(study_of(place, "length"))
    told = rf"evaluate\[0\] = 'odd/t'\n  accepted: (.|\n)*not to be had: odd 0\.1, odd:tasks \({re.escape(says)}"
    with pytest.raises(StudyError, match=told):
        study_of(place, "odd/t")


def test_a_name_that_is_taken_is_told_with_the_package(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bring_tasks(monkeypatch, place / "site", "def tasks(path): return {'sts/STS-B': task(name='sts/STS-B')}")
    with pytest.raises(
        StudyError, match=r"odd 0\.1: the task 'sts/STS-B': there is one of that name\n  accepted: "
    ):
        study_of(place, "length")


@pytest.mark.parametrize(("part", "look"), [("fingerprint", gather_facts), ("load", prepare)])
def test_rows_that_a_package_cannot_read_are_told(
    place: Path, monkeypatch: pytest.MonkeyPatch, part: str, look: Callable[[Study], object]
) -> None:
    rows = {"fingerprint": "repr(ROWS)", "load": "ROWS", part: "open('rows.csv')"}
    read = ", ".join(f"{name}=lambda: {what}" for name, what in rows.items())
    code = f"def tasks(path): return {{'odd/t': task(benchmark=Benchmark({read}))}}"
    bring_tasks(monkeypatch, place / "site", code)
    study = study_of(place, "odd/t")
    told = r"odd 0\.1: the rows of a task cannot be read \(FileNotFoundError: .*rows\.csv"
    with pytest.raises(StudyError, match=told):
        look(study)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("def score(rows, encode): return None", "its score gives a NoneType"),
        ("def score(rows, encode): return {'odd/t/acc': 0.5}", "its score gives a dict"),
        ("def score(rows, encode): raise KeyError('x')", r"KeyError: 'x'"),
        ("def score(rows): return []", "TypeError: score() takes 1 positional argument but 2 were given"),
        (
            "def score(rows, encode): return 2 * [Score(metric='odd/t/acc', value=0.5)]",
            "ValueError: odd/t: two scores of odd/t/acc",
        ),
        (
            "def score(rows, encode): return [score_of_items('odd/t/acc', 'mean', 'aa', 'ab', np.ones(2))]",
            "ValueError: odd/t: odd/t/acc: the item 'a' twice",
        ),
    ],
)
def test_scoring_is_tried_before_anything_is_trained(
    place: Path, monkeypatch: pytest.MonkeyPatch, code: str, says: str
) -> None:
    bring_tasks(monkeypatch, place / "site", code)
    with pytest.raises(StudyError, match=rf"evaluate: odd/t: cannot score .*{re.escape(says)}.*\n  accepted: "):
        prepare(study_of(place, "odd/t"))


def test_a_claim_on_a_figure_that_does_not_come_out_is_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring_tasks(
        monkeypatch, place / "site", "def score(rows, encode): return [Score(metric='odd/t/b', value=0.5)]"
    )
    with pytest.raises(StudyError, match=r"compare: H1: odd/t/acc has no figure in this corpus\n  accepted: none"):
        prepare(study_of(place, "odd/t", CLAIM))
