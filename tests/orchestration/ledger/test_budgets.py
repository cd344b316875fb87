"""What a gate spent is kept in order, once for each question, and shows when it was altered."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestration.ledger.budgets import Spent
from orchestration.ledger.ledger import Ledger
from orchestration.ledger.notes import LedgerError
from orchestration.ledger.storage import LocalStorage
from orchestration.study.errors import StudyError
from orchestration.study.names import printable


def question(says: str, p: float = 0.5) -> Spent:
    return Spent(study="s", claim="H1", says=says, p=p, level=0.01, shown=p <= 0.01)


def test_a_question_is_asked_once_and_keeps_its_answer(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    first = ledger.ask("loop", lambda earlier: question("a", 0.001))
    seen: list[Sequence[Spent]] = []
    again = ledger.ask("loop", lambda earlier: seen.append(earlier) or question("a", 0.9))
    assert again == first
    assert seen == [[first]]
    assert ledger.ask("other", lambda earlier: question("a")).before == ""
    assert ledger.ask("loop", lambda earlier: question("b")).before != ""


def test_questions_asked_at_one_time_come_one_after_the_other(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: ledger.ask("loop", lambda earlier: question(str(n))), range(12)))
    kept = []
    ledger.ask("loop", lambda earlier: kept.extend(earlier) or question("last"))
    assert sorted(int(one.says) for one in kept) == list(range(12))


@pytest.mark.parametrize("field", ["p", "level", "shown", "says", "asked_at", "before", "study"])
def test_an_altered_answer_is_found(tmp_path: Path, field: str) -> None:
    ledger = Ledger(tmp_path)
    for says in "abc":
        ledger.ask("loop", lambda earlier, says=says: question(says))
    place = tmp_path / ".budgets" / "loop" / "1.json"
    body = json.loads(place.read_text())
    place.write_text(json.dumps(body | {field: {"p": 0.001, "level": 0.9, "shown": True}.get(field, "other")}))
    with pytest.raises(
        LedgerError, match=r"\.budgets/loop/[12]\.json: it, or the question before it, was altered"
    ):
        ledger.ask("loop", lambda earlier: question("d"))


@pytest.mark.parametrize(
    "altered",
    [
        {"p": 0.001},
        {"level": 0.9},
        {"shown": True},
        {"p": 1.5},
        {"p": -0.5, "shown": True},
        {"level": 0.0},
        {"level": 1.0, "shown": True},
    ],
)
def test_the_last_answer_has_no_other_behind_it_and_is_still_looked_at(
    tmp_path: Path, altered: dict[str, object]
) -> None:
    """An answer that its own p and level do not give, or a p or a level that is none."""
    ledger = Ledger(tmp_path)
    for says in "ab":
        ledger.ask("loop", lambda earlier, says=says: question(says))
    place = tmp_path / ".budgets" / "loop" / "1.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | altered))
    with pytest.raises(LedgerError, match=r"loop/1\.json: it, or the question before it, was altered"):
        ledger.ask("loop", lambda earlier: question("c"))


def test_every_p_is_kept(tmp_path: Path) -> None:
    """0 where numbers end, the level itself, which is still shown, and 1; also of a budget named like a path."""
    ledger = Ledger(tmp_path)
    asked = [ledger.ask("team/loop", lambda earlier, p=p: question(f"{p}", p)) for p in (0.0, 0.01, 1.0)]
    assert [(one.p, one.shown) for one in asked] == [(0.0, True), (0.01, True), (1.0, False)]
    seen: list[Sequence[Spent]] = []
    ledger.ask("team/loop", lambda earlier: seen.append(earlier) or question("0.0"))
    assert seen == [asked]
    assert ledger.damaged_notes() == {}
    assert len(list((tmp_path / ".budgets").iterdir())) == 1


@pytest.mark.parametrize("name", ["..", ".", "", "x" * 300, "\x1b[2J", "\udcff"])
def test_a_name_under_which_nothing_can_lie_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(StudyError, match=r"^budget .*\n  accepted: a name ") as refused:
        Ledger(tmp_path / "ledger").ask(name, lambda earlier: pytest.fail("it was asked"))
    assert printable(str(refused.value), keep="\n") == str(refused.value)
    assert not any(tmp_path.rglob("*.json"))


@pytest.mark.parametrize("number", [0, 2])
def test_a_question_that_is_missing_before_others_is_missed(tmp_path: Path, number: int) -> None:
    """Else it would be taken for the list's end, and its budget be spent again."""
    ledger = Ledger(tmp_path)
    for says in "abcd":
        ledger.ask("loop", lambda earlier, says=says: question(says))
    (tmp_path / ".budgets" / "loop" / f"{number}.json").unlink()
    with pytest.raises(
        LedgerError, match=rf"/loop/{number}\.json: it is missing, and 3\.json is there\n  accepted: "
    ):
        ledger.ask("loop", lambda earlier: question("e"))
    assert [*ledger.damaged_notes()] == [".budgets/loop"]


def test_a_list_that_lacks_what_was_written_meanwhile_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that is written to while it is listed may show a later file and not an earlier one."""
    ledger = Ledger(tmp_path)
    for says in "abc":
        ledger.ask("loop", lambda earlier, says=says: question(says))
    monkeypatch.setattr(LocalStorage, "children", lambda storage, folder: ["0.json", "2.json"])
    assert ledger.ask("loop", lambda earlier: question("c")).says == "c"
