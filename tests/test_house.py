"""The promises that belong to no package: quick words, README's links, pins that cover what is declared."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[1]


def test_help_answers_before_heavy_imports() -> None:
    """Under half a second, of a core: it reads and waits for nothing, and other work may share the machine."""
    began = _seconds_of_children()
    subprocess.run([sys.executable, "-m", "orchestration", "--help"], check=True, capture_output=True)
    assert _seconds_of_children() - began < 0.5


def _seconds_of_children() -> float:
    spent = os.times()
    return spent.children_user + spent.children_system


def test_links_of_the_readme_and_docs_lead_somewhere() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_commands_named_in_the_readme_exist() -> None:
    text = (ROOT / "README.md").read_text()
    words = set(re.findall(r"`semray ([a-z-]+)", text))
    said = subprocess.run(
        [sys.executable, "-m", "orchestration", "--help"], check=True, capture_output=True, text=True
    )
    assert words
    assert words <= set(re.findall(r"^  ([a-z-]+) +", said.stdout, re.M))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"`?make ([a-z-]+)", text)) <= targets


def test_commands_of_the_tutorial_are_accepted() -> None:
    """As they stand there, word for word, the command line takes them."""
    from orchestration.commands.cli import parser

    commands = re.findall(r"^semray (.+)$", (ROOT / "docs/tutorial.md").read_text(), re.M)
    assert len(commands) > 8
    for command in commands:
        assert parser().parse_args(shlex.split(command)).command == command.split()[0]


def test_every_page_is_in_the_site() -> None:
    pages = {page.name for page in (ROOT / "docs").glob("*.md")}
    named = re.findall(r": (\w+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M)
    assert sorted(named) == sorted(pages)


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = [
        *project["dependencies"],
        *(d for extra in project["optional-dependencies"].values() for d in extra),
    ]
    names = {re.split(r"[\[<>=~! ]", entry)[0].lower().replace("_", "-") for entry in declared}
    pinned = re.findall(r"^([A-Za-z0-9._-]+)==", (ROOT / "constraints.txt").read_text(), re.M)
    assert names - {name.lower().replace("_", "-") for name in pinned} == set()


def test_every_pin_installs_on_the_oldest_python_that_is_promised() -> None:
    oldest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    oldest = f"{oldest.removeprefix('>=')}.0"
    pinned = re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", (ROOT / "constraints.txt").read_text(), re.M)
    refused = {}
    for name, version in pinned:
        with contextlib.suppress(metadata.PackageNotFoundError):
            about = metadata.metadata(name)
            asked = about.get("Requires-Python")
            is_pin = about["Version"].partition("+")[0] == version  # `make test-lowest` has others
            if is_pin and asked and oldest not in SpecifierSet(asked):
                refused[name] = asked
    assert refused == {}


def test_shipped_studies_load() -> None:
    from orchestration.reading.read_study import read_study

    studies = sorted((ROOT / "studies").glob("*.yaml"))
    assert studies
    for study in studies:
        assert read_study(study).compare
