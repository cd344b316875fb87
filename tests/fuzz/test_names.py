"""Any name through the whole path, from the study's file to every form of the report: refused in words, or right."""

from __future__ import annotations

import os
import re
import tempfile
from html.parser import HTMLParser
from importlib.resources import files as packaged
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from corpora.store.fields import is_name
from orchestration.report import forms, plots
from orchestration.study.errors import StudyError
from orchestration.study.names import cut, printable
from orchestration.verdicts.findings import Findings
from tests.named_study import finished, names, write_study

LONG_SECONDS = 3600  # of a search for minutes, on a machine that others use too
quick = settings(max_examples=4, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
thorough = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
three = st.lists(names, min_size=3, max_size=3)


@quick
@given(question=names, arms=three, claims=three, item=names)
def test_names_from_study_to_report(question: str, arms: list[str], claims: list[str], item: str) -> None:
    _from_study_to_report(question, arms, claims, item)


@pytest.mark.long
@pytest.mark.timeout(LONG_SECONDS)
@thorough
@given(question=names, arms=three, claims=three, item=names)
def test_many_names_from_study_to_report(question: str, arms: list[str], claims: list[str], item: str) -> None:
    _from_study_to_report(question, arms, claims, item)


shown = names.filter(is_name)


@quick
@given(
    arms=st.lists(shown, min_size=3, max_size=3, unique=True),
    claims=st.lists(shown, min_size=3, max_size=3, unique=True),
)
def test_accepted_names_come_out_right(arms: list[str], claims: list[str]) -> None:
    """Only names that are accepted, so that each example goes the whole way."""
    assert _from_study_to_report("Is it?", arms, claims, "item")


@pytest.mark.long
@pytest.mark.timeout(LONG_SECONDS)
@thorough
@given(
    arms=st.lists(shown, min_size=3, max_size=3, unique=True),
    claims=st.lists(shown, min_size=3, max_size=3, unique=True),
)
def test_many_accepted_names_come_out_right(arms: list[str], claims: list[str]) -> None:
    assert _from_study_to_report("Is it?", arms, claims, "item")


@pytest.mark.parametrize(
    ("arms", "claims"),
    [
        (["B1 {lr 1e-3}", "B1 {}", "{0}"], ["H 1", "H-1", "H_1"]),
        (["$x$", "a$b$c", "B0"], ["日本", "語", "é"]),
        (["a|b", "\\|", "|"], ["[H1]", "*", "H*"]),
        (["<script>alert(1)</script>", "</td>", "&amp;"], ['id="a', "#1b1f24", "'DejaVu Sans'"]),
        (["x" * 100, "x" * 99 + "y", "z" * 100], ["c" * 100, "c" * 99 + "d", "日" * 100]),
        (["../..", "a/b", "-- '; drop"], ["--", "``", "?`"]),
    ],
)  # fmt: skip
def test_names_that_once_broke_a_report(arms: list[str], claims: list[str]) -> None:
    assert _from_study_to_report("Is $a$ | {b} [c](d) *e* <f> so?", arms, claims, "{item} $|$ \x1b[31m \u202e")


def _from_study_to_report(question: str, arms: list[str], claims: list[str], item: str) -> bool:
    """False where the study is refused, which must be in clean words."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_study(Path(folder, "odd.yaml"), question, arms, claims)
        try:
            _, _, findings = finished(path, item)
        except StudyError as error:
            _check_words(str(error))
            return False
        assert [finding.verdict.claim for finding in findings.findings] == claims
        page = forms.write(findings, Path(folder, "report"), each_png=True)
        _check_terminal(forms.table(findings), findings)
        _check_markdown(forms.markdown(findings), findings)
        _check_latex(forms.latex(findings), findings)
        _check_page(page.read_text(encoding="utf-8"), findings)
        _check_plots(page.parent, findings)
    return True


def _check_words(refusal: str) -> None:
    assert printable(refusal, keep="\n") == refusal
    assert "accepted:" in refusal


def _compared(findings: Findings) -> list[list[str]]:
    """What the first three columns of every table of claims must say."""
    verdicts = (finding.verdict for finding in findings.findings)
    return [[one.claim, f"{one.treatment} - {one.control}", one.metric] for one in verdicts]


def _check_terminal(text: str, findings: Findings) -> None:
    assert printable(text, keep="\n") == text
    lines = text.split("\n")[1:]
    for line, (claim, comparison, metric) in zip(lines, _compared(findings), strict=False):
        assert re.match(rf"{re.escape(claim)} *   {re.escape(comparison)} *   {re.escape(metric)} ", line)


def _check_markdown(text: str, findings: Findings) -> None:
    """As a reader of GitHub's Markdown sees it."""
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    tokens = reader.parse(text)
    (title,) = (
        tokens[at + 1] for at, token in enumerate(tokens) if token.type == "heading_open" and token.tag == "h1"
    )
    assert _plain(title) == printable(findings.question)
    tables, cells = [], []
    for at, token in enumerate(tokens):
        if token.type == "tr_open":
            cells = []
        if token.type in ("td_open", "th_open"):
            cells.append(_plain(tokens[at + 1]))
        if token.type == "tr_close":
            tables.append(cells)
    claims = tables[1 : 1 + len(findings.findings)]
    assert [row[:3] for row in claims] == _compared(findings)
    arms = [row[0] for row in tables[2 + len(findings.findings) :]][: len(findings.arms)]
    assert arms == list(findings.arms)


def _plain(inline: object) -> str:
    """The text of an inline token, which must be nothing but text."""
    children = inline.children or []  # type: ignore[attr-defined]
    assert {child.type for child in children} <= {"text", "text_special"}, children
    return "".join(child.content for child in children)


def _check_latex(text: str, findings: Findings) -> None:
    assert printable(text, keep="\n") == text
    rows = [line for line in text.split("\n") if line.endswith(r" \\")]
    columns = [len(re.findall(r"(?<!\\)&", row)) for row in rows]
    assert columns[: 1 + len(findings.findings)] == [5] * (1 + len(findings.findings))
    assert not any(row.startswith(("[", "*")) for row in rows)
    assert _depth(text) == 0


def _depth(text: str) -> int:
    """How many groups stay open."""
    signs = re.findall(r"(?<!\\)(?:\\\\)*([{}])", text)
    return signs.count("{") - signs.count("}")


class _Page(HTMLParser):
    """Everything a reader sees, and whatever could act."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in {"iframe", "img", "object", "embed", "form", "base"}
        assert not any(name.startswith("on") for name, _ in attrs)
        assert tag != "script" or not attrs
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.links += [value for name, value in attrs if name in ("href", "xlink:href") and value]

    def handle_data(self, data: str) -> None:
        (self.scripts if self.cdata_elem == "script" else self.seen).append(data)


def _check_page(text: str, findings: Findings) -> None:
    page = _Page(text)
    assert (
        "".join(page.scripts) == packaged("orchestration.report").joinpath("report.js").read_text()
    )  # our own alone
    assert printable(text, keep="\n") == text
    assert len(page.ids) == len(set(page.ids))
    assert {link[1:] for link in page.links} <= set(page.ids)
    for name in [*findings.arms, *(finding.verdict.claim for finding in findings.findings)]:
        assert any(name in part for part in page.seen), name


def _check_plots(folder: Path, findings: Findings) -> None:
    files = os.listdir(folder)
    assert len(files) == len({name.lower() for name in files})
    assert all(re.fullmatch(r"[A-Za-z0-9.+_-]+", name) and len(name) < 120 for name in files)
    assert sum(name.startswith("seeds-") for name in files) == len(findings.findings)
    for name, picture in plots.every(findings).items():
        said = [
            text.text or ""
            for text in ElementTree.fromstring(picture.svg).iter("{http://www.w3.org/2000/svg}text")
        ]
        assert picture.png.startswith(b"\x89PNG")
        if name.startswith("seeds-"):
            (own,) = (one for one in findings.findings if name == f"seeds-{_anchor(one)}")
            assert said.count(cut(own.verdict.treatment, 18)) >= 1
            assert said.count(cut(own.verdict.control, 18)) >= 1


def _anchor(finding: object) -> str:
    from orchestration.report.tables import anchor

    return anchor(finding.verdict)  # type: ignore[attr-defined]
