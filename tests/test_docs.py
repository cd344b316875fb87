"""`make docs`: the pages build as a site, with every link between them, and a reader's browser fetches nothing. What
they tell a reader to type is what the program takes."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from orchestration.commands.cli import parser
from orchestration.families.registry import FAMILIES, family

ROOT = Path(__file__).resolve().parents[1]


def test_the_site_builds_and_needs_no_network(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="`pip install -c constraints.txt '.[docs]'`")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-d", str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pages = sorted((tmp_path / "site").glob("*.html"))
    assert {page.stem for page in pages} >= {page.stem for page in (ROOT / "docs").glob("*.md")}
    for page in (page for page in pages if page.name != "404.html"):  # that one is for a site's root
        fetched = re.findall(
            r'<(?:script|img|iframe)[^>]*src="(https?:[^"]*)"|<link[^>]*href="(https?:[^"]*)"', page.read_text()
        )
        assert fetched == []
        for target in re.findall(r'href="([^":#?]+\.html)(?:#[^"]*)?"', page.read_text()):
            assert (page.parent / target).is_file(), f"{page.name}: {target}"


PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))


def command_lines(page: Path) -> list[str]:
    """What a page tells a reader to type, but for names of words alone: lines of its blocks, and code in its text."""
    text = page.read_text(encoding="utf-8")
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    blocks = [block for language, block in fenced if not language]
    blocks += ["\n".join(re.findall(r"^ {4}(?=semray )(.*)$", text, re.MULTILINE))]
    typed = [line for block in blocks for line in block.splitlines() if re.match(r"(\$ )?semray ", line)]
    typed += [found.group(0) for found in re.finditer(r"(?<=-- )python -m orchestration .*$", text, re.MULTILINE)]
    typed += re.findall(r"`(semray [a-z-]+ [^`\n]+)`", text)
    return [re.sub(r"^(\$ )?(semray|python -m orchestration) ", "", line) for line in typed]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_are_as_the_program_takes_them(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every word and flag is known; what a word is without its arguments, as in `semray init family`, is a name."""
    for line in command_lines(page):
        words = shlex.split(line, comments=True)
        try:
            parser().parse_args(words)
        except SystemExit:
            refused = capsys.readouterr().err
            assert "the following arguments are required" in refused, f"{page.name}: semray {line}: {refused}"


def test_commands_are_found() -> None:
    assert sum(len(command_lines(page)) for page in PAGES) > 60


def fields_of(name: str) -> set[str]:
    """What a study of this family may set under `train:` and `data:`."""
    made = family(name)
    blocks: tuple[Any, ...] = made.settings, made.data
    named = [field for block in blocks for field in fields(block)]
    return {field.name for field in named if "Others(" not in str(field.type)}  # those have names of the arm's own


@pytest.mark.parametrize("name", FAMILIES)
def test_the_page_of_a_family_has_all_of_its_settings(name: str) -> None:
    """In back quotes, alone or as a study writes them; the tutorial sends readers there."""
    quoted = re.findall(r"`([^`\n]+)`", (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8"))
    said = {word for code in quoted for word in re.findall(r"\w+", code)}
    assert fields_of(name) - said == set()


def test_every_command_stands_in_the_readme() -> None:
    words = re.findall(r"^  ([a-z][a-z-]+) +", parser().format_help(), re.MULTILINE)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "set-aside" in words
    assert [word for word in words if not re.search(rf"`semray {word}\b", readme)] == []


def test_every_shipped_study_is_named_on_a_page() -> None:
    said = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    names = [study.stem for study in (ROOT / "studies").glob("*.yaml")]
    assert [name for name in names if not re.search(rf"\b{name}\b", said)] == []


@pytest.mark.parametrize("card", [True, False])
def test_the_environment_of_a_machine_with_a_card_tells_its_energy(tmp_path: Path, card: bool) -> None:
    """By the extra `gpu`. Nothing is installed: make says what it would do."""
    (tmp_path / "bin").mkdir()
    for name in ("make", "sh", "sed", "id"):
        if found := shutil.which(name):
            (tmp_path / "bin" / name).symlink_to(found)
    if card:
        (tmp_path / "bin/nvidia-smi").symlink_to(sys.executable)
    words = ["make", "-n", "environment", f"VENV={tmp_path}/none"]
    done = subprocess.run(
        words, cwd=ROOT, env={"PATH": f"{tmp_path}/bin"}, capture_output=True, text=True, check=True
    )
    assert (",s3,gpu]'" in done.stdout, ",s3]'" in done.stdout) == (card, not card)
