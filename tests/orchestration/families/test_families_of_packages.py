"""Families that packages bring: names that are taken, fields that a record cannot hold, fields that must be given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestration.families.registry import as_plain
from orchestration.reading.read_study import read_study
from orchestration.study.errors import StudyError
from orchestration.study.study import Study
from tests.brought import bring

FAMILY = """
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from semray.extending import Dimension
from tests import toy_family


class Size(StrEnum):
    SMALL = "small"


@dataclass(frozen=True, kw_only=True)
class Held:
    name: str = "x"


@dataclass(frozen=True, kw_only=True)
class Inner:
    day: date | None = None


@dataclass(frozen=True, kw_only=True)
class Settings(toy_family.ToySettings):
    SETTING


@dataclass(frozen=True, kw_only=True)
class Data(toy_family.ToyData):
    DATUM


FAMILY = replace(
    toy_family.FAMILY,
    settings=Settings,
    data=Data,
    space=(Dimension(name="learning_rate", low=0.1, high=0.5, source="made up"),),
)
"""
FAULTY = """
from dataclasses import replace

from tests import toy_family

FAMILY = replace(toy_family.FAMILY, FAULT)
"""
POINT = "[semray.families]\nodd = odd:FAMILY\n"
STUDY = """\
question: Does a longer word help?
family: odd
backbones: [tiny]
seeds: 2
data: {words: [a, bb]}
train: {learning_rate: 0.2}
arms: {slow: {}, quick: {learning_rate: 0.3}}
evaluate: [length]
compare:
  - {claim: H1, treatment: quick, control: slow, metric: length/mean, expect: better}
"""


def read(
    monkeypatch: pytest.MonkeyPatch, place: Path, text: str, setting: str = "pass", datum: str = "pass"
) -> Study:
    code = FAMILY.replace("SETTING", setting).replace("DATUM", datum)
    bring(monkeypatch, place / "site", code, "[semray.families]\nodd = odd:FAMILY\nfrozen = odd:FAMILY\n")
    (place / "odd.yaml").write_text(text)
    return read_study(place / "odd.yaml")


def told(
    monkeypatch: pytest.MonkeyPatch, place: Path, text: str, setting: str = "pass", datum: str = "pass"
) -> str:
    with pytest.raises(StudyError) as error:
        read(monkeypatch, place, text, setting, datum)
    return str(error.value)


def test_a_family_whose_name_is_taken_is_told_to_who_asks_for_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert list(read(monkeypatch, tmp_path / "one", STUDY).arms) == ["slow", "quick"]
    said = told(monkeypatch, tmp_path / "two", STUDY.replace("family: odd", "family: frozen"))
    assert said.startswith("family = frozen: odd 0.1: one of that name is semray's own\n  accepted: ")


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        ("Path = Path('x')", "Path"),
        ("Path | None = None", "Path"),
        ("tuple[Path, ...] = ()", "Path"),
        ("frozenset[str] = frozenset()", "frozenset"),
        ("Mapping[str, set[int]] | None = None", "set"),
        ("object = object()", "object"),
        ("bytes = b'x'", "bytes"),
        ("Inner = Inner()", "date"),
    ],
)
def test_a_field_that_no_record_holds_is_told_when_the_family_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, named: str
) -> None:
    said = told(monkeypatch, tmp_path / "one", STUDY, setting=f"file: {kind}")
    assert f"odd 0.1, odd:FAMILY: Settings.file is a {named}\n  accepted: " in said
    assert f"Data.file is a {named}\n" in told(monkeypatch, tmp_path / "two", STUDY, datum=f"file: {kind}")


@pytest.mark.parametrize(
    "kind",
    [
        "Sequence[str] = ()",
        "Mapping[str, int | float | None] | None = None",
        "Literal['a', 3] = 'a'",
        "Annotated[list[bool], 'several'] = field(default_factory=list)",
        "Any = None",
        "Size = Size.SMALL",
        "Held | None = None",
    ],
)
def test_a_field_that_a_record_holds_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str) -> None:
    arms = read(monkeypatch, tmp_path, STUDY, setting=f"file: {kind}", datum=f"file: {kind}").arms
    assert json.loads(json.dumps(as_plain(arms["slow"])))["learning_rate"] == 0.2


def test_a_setting_that_must_be_given_is_told_where_it_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    needs = "need: str"
    text = STUDY.replace("slow: {}", "slow: {need: 3}")
    said = told(monkeypatch, tmp_path / "one", text, setting=needs)
    assert "arms.slow.need = 3\n  accepted: text" in said
    assert "arms.quick.need is missing\n  accepted: text" in said
    assert said.count("accepted:") == 2
    given = STUDY.replace("train: {", "train: {need: x, ")
    assert read(monkeypatch, tmp_path / "two", given, setting=needs).arms["quick"].need == "x"


def test_data_that_must_be_given_let_every_mistake_in_them_be_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Which tasks there are only these data say: names of tasks are looked at once they are right."""
    needs = "pairs: str"
    said = told(monkeypatch, tmp_path / "one", STUDY, datum=needs)
    assert ":5: data.pairs is missing\n  accepted: text" in said
    assert said.count("accepted:") == 1
    said = told(
        monkeypatch, tmp_path / "two", STUDY.replace("data: {", "data: {pairs: x, wrods: 1, "), datum=needs
    )
    assert "data.wrods = 1\n" in said
    assert said.count("accepted:") == 1
    read(monkeypatch, tmp_path / "three", STUDY.replace("data: {", "data: {pairs: x, "), datum=needs)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("own_tasks=lambda data: [1]", "own_tasks gives a list\n  accepted: {name: Task}, as a mapping"),
        ("own_tasks=lambda data: {'length': 1}", "own_tasks: 'length' is a int, not a Task\n  accepted: "),
        (
            "own_tasks=lambda data: {'longer': toy_family.tasks(data)['length']}",
            "own_tasks: 'longer' is called 'length'\n  accepted: ",
        ),
        (
            "own_tasks=lambda data: {'length': replace(toy_family.tasks(data)['length'], headline='length/most')}",
            "own_tasks: 'length' has the headline 'length/most', which is not in its metrics\n  accepted: ",
        ),
        ("data=type('Data', (), {})", "odd 0.1, odd:FAMILY: <class 'odd.Data'> is no data class\n  accepted: "),
    ],
)
def test_a_part_that_is_none_is_told_when_the_study_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: str, says: str
) -> None:
    bring(monkeypatch, tmp_path / "site", FAULTY.replace("FAULT", fault), POINT)
    (tmp_path / "odd.yaml").write_text(STUDY)
    with pytest.raises(StudyError) as error:
        read_study(tmp_path / "odd.yaml")
    assert says in str(error.value)


def test_a_package_that_ends_the_program_is_told_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bring(monkeypatch, tmp_path / "site", "raise SystemExit('needs a card')", POINT)
    (tmp_path / "odd.yaml").write_text(STUDY)
    with pytest.raises(StudyError, match=r"cannot be imported \(SystemExit: needs a card\)"):
        read_study(tmp_path / "odd.yaml")
