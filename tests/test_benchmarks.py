"""Every script that measures can still be read: what it imports from the project is there."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.mark.parametrize("script", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_it_is_read_without_being_run(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    spec = importlib.util.spec_from_file_location(f"measuring_{script.stem}", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # data classes look themselves up there
    spec.loader.exec_module(module)
    assert module.__doc__


def test_rows_of_other_sizes_and_commands_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    large = importlib.import_module("large_studies")
    monkeypatch.delitem(sys.modules, "large_studies")
    before = [
        {"runs": 1000, "claims": 100, "command": "why", "CPU, s": 8.0, "CPU, s, before": 27.0},
        {"runs": 1000, "claims": 100, "command": "plan", "CPU, s": 6.8, "CPU, s, before": 18.0},
    ]
    rows = [
        {"runs": 10000, "claims": 500, "command": "plan", "CPU, s": 30.0, "load": 2.0},
        {"runs": 1000, "claims": 100, "command": "why", "CPU, s": 5.0, "load": 1.0},
    ]
    found = large.together(rows, before)
    assert [(row["runs"], row["command"], row["CPU, s"]) for row in found] == [
        (1000, "plan", 6.8), (1000, "why", 5.0), (10000, "plan", 30.0)
    ]  # fmt: skip
    assert [row["load"] for row in found] == ["–", 1.0, 2.0]
    assert [row["CPU, s, before"] for row in found] == [18.0, "–", "–"]
    assert len({tuple(row) for row in found}) == 1  # one order of columns


def test_every_goal_has_the_figure_that_was_kept_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    goals = importlib.import_module("goals")
    monkeypatch.delitem(sys.modules, "goals")
    table = list(goals.table())
    assert len(table) == 2 + len(goals.GOALS)
    assert [line for line in table if "not measured" in line] == []
    kept = (FOLDER / "results" / "goals.md").read_text()
    assert [line for line in table if line not in kept] == []


def test_a_goal_is_held_against_the_worst_of_its_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    goals = importlib.import_module("goals")
    monkeypatch.delitem(sys.modules, "goals")
    monkeypatch.setattr(goals, "RESULTS", tmp_path)
    rows = [
        {"way": "ours", "speed": "2.50 x"},
        {"way": "ours", "speed": "2.20 x"},
        {"way": "theirs", "speed": "1 x"},
    ]
    (tmp_path / "fast.json").write_text(
        json.dumps({"rows": rows, "machine": "a laptop, 2 cores", "date": "2026-01-02"})
    )
    ours = goals.Figure(result="fast", rows={"way": "ours"}, column="speed")
    goal = goals.Goal(what="a step", asked=2.3, unit="x", now=ours, least=True)
    assert goal.row() == ["a step", "≥ 2.3 x", "–", "2.2", "no", "`fast`", "a laptop, 2026-01-02"]
    slow = goals.Goal(what="a step", asked=3, unit="x", now=ours)
    assert slow.row()[3:5] == ["2.5", "yes"]
    gone = goals.Figure(result="gone", rows={}, column="speed")
    assert goals.Goal(what="a step", asked=3, unit="x", now=gone).row()[3:5] == ["not measured", ""]


def test_searches_are_replayed_on_the_kept_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    replayed, tables = importlib.import_module("search_quality"), importlib.import_module("tables")
    for name in ("search_quality", "tables"):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["search_quality.py", "--replays", "2"])
    replayed.main()
    found, kept = (
        json.loads((folder / "search_quality.json").read_text())["rows"]
        for folder in (tmp_path, FOLDER / "results")
    )
    assert [(row["runs"], row["search"]) for row in found] == [(row["runs"], row["search"]) for row in kept]
