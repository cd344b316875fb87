"""Names in Markdown and LaTeX: read back, and set by a real LaTeX, as they were written."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from corpora.store.fields import is_name
from orchestration.report import forms
from orchestration.report.markup import marked_down, tex
from tests.named_study import finished, write_study

PUNCTUATION = "{}$|[]()*_`\\<>&\"'%#~^!?,;:=+-./@ aA1"
texts = st.text(PUNCTUATION, min_size=1, max_size=12).filter(is_name)


@given(texts)
@example("1. not a list")
@example("- nor this")
@example("# nor a heading")
@example("nor the end of one ##")
@example("1 #")
@example("a\\|b")
@example("_a_ snake_case __b__")
@example("[a](b) ![c](d)")
@example("&amp; <b> <!-- c -->")
@example("p < .0001 [+0.098, +0.106]")
def test_markdown_is_read_as_it_was_written(text: str) -> None:
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    for source, kind in (
        ("# {}\n", "heading_open"),
        ("- {}\n", "bullet_list_open"),
        ("| {} |\n| --- |\n", "table_open"),
    ):
        tokens = reader.parse(source.replace("{}", marked_down(text)))
        inline = [token for token in tokens if token.type == "inline"]
        assert tokens[0].type == kind
        assert "".join(child.content for child in inline[0].children or []) == text
        assert {child.type for child in inline[0].children or []} <= {"text", "text_special"}


def test_markdown_of_plain_names_is_plain() -> None:
    assert marked_down("t2d/recall@10 pair_auc +0.102 [+0.098, +0.106] (p < .0001)") == (
        "t2d/recall@10 pair_auc +0.102 [+0.098, +0.106] (p < .0001)"
    )


AWKWARD = ["[H1]", "*", "B1 {lr 1e-3}", "$x$ & 100% #1", "a--b---c", "``quoted''", "?` !` <<x>>", 'back\\slash "q"', "a|b~c^d_e"]  # fmt: skip


@pytest.mark.skipif(
    not (shutil.which("pdflatex") and shutil.which("pdftotext")), reason="needs pdflatex and pdftotext"
)
def test_latex_sets_what_was_written(tmp_path: Path) -> None:
    """The tables of a report whose names are awkward, and every sign, through pdflatex and back out of the PDF."""
    path = write_study(tmp_path / "odd.yaml", "Is it?", AWKWARD[:3], AWKWARD[3:6])
    _, _, findings = finished(path)
    lines = [f"A{number}B {tex(text)} E{number}F\\par" for number, text in enumerate(AWKWARD)]
    document = [
        r"\documentclass{article}",
        r"\usepackage[T1]{fontenc}",
        r"\usepackage{booktabs}",
        r"\begin{document}",
    ]
    tables = forms.latex(findings)
    (tmp_path / "report.tex").write_text("\n".join([*document, tables, r"\clearpage", *lines, r"\end{document}"]))
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "report.tex"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert made.returncode == 0, made.stdout[-2000:]
    said = subprocess.run(
        ["pdftotext", "-layout", "report.pdf", "-"], cwd=tmp_path, capture_output=True, text=True
    )
    text = re.sub(r"\s+", " ", said.stdout)
    for number, name in enumerate(AWKWARD):
        (found,) = re.findall(rf"A{number}B (.*?) E{number}F", text)
        assert _typewriter(found) == name
    for name in AWKWARD[:6]:
        assert name in _typewriter(text)


def _typewriter(text: str) -> str:
    """What a font draws curved, as it is typed."""
    return text.translate(str.maketrans("’‘”", "'`\""))
