"""The way from the command to the training step, as CONTRIBUTING.md draws it: each file names those below it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestration.families.registry import FAMILIES

ROOT = Path(__file__).resolve().parents[1]
LINE = re.compile(r"^( +)(\S+\.py) ", re.MULTILINE)


def drawn() -> list[tuple[str, str]]:
    """Every file of the path with the one that it is drawn below."""
    found: list[tuple[str, str]] = []
    above: list[tuple[int, str]] = []
    for indent, name in LINE.findall((ROOT / "CONTRIBUTING.md").read_text()):
        above = [one for one in above if one[0] < len(indent)]
        if above:
            found.append((above[-1][1], name))
        above.append((len(indent), name))
    return found


def place(name: str) -> Path:
    """A file of the path: rooms of orchestration stand there without it."""
    return ROOT / name if name.startswith("trainers/") else ROOT / "orchestration" / name


def steps_here(family: str) -> bool:
    """Whether a family's training takes its steps in the engine."""
    training = place(f"trainers/{family}/training.py")
    return training.is_file() and "engine import loop" in training.read_text()


PATHS = [
    (parent.replace("<family>", family), child.replace("<family>", family))
    for family in FAMILIES
    if steps_here(family)
    for parent, child in drawn()
]


@pytest.mark.parametrize(("parent", "child"), dict.fromkeys(PATHS))
def test_a_file_of_the_main_path_names_the_next(parent: str, child: str) -> None:
    assert place(child).is_file()
    module = Path(child).stem
    room = Path(child).parent.name
    named = rf"\b{room}\.{module}\b|\b{room} import .*\b{module}\b|\"{module}\""
    assert re.search(named, place(parent).read_text()), f"{parent} does not name {child}"


def test_the_path_is_drawn_whole_and_most_families_have_it() -> None:
    assert len(drawn()) == 9
    assert sum(map(steps_here, FAMILIES)) >= 4
