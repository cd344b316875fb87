"""Every default of a study's `train:` and `data:` blocks says beside it where it comes from."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from corpora.san.recipe import SetRecipe
from orchestration.families.registry import FAMILIES, family

OF_ALL = {"train"}  # every family's: an arm is trained unless it says otherwise
EMPTY = {"()", "field(default_factory=dict)"}  # nothing: the study says which
ONE_SOURCE = "Defaults are the library's own"  # so says a file whose fields have but that
CLASSES = sorted(
    {of for name in FAMILIES for of in (family(name).settings, family(name).data)} | {SetRecipe}, key=repr
)


def unsaid(of: type) -> list[str]:
    """The fields with a default that no comment of their own stands beside, or one that points to another's."""
    if ONE_SOURCE in (inspect.getmodule(of).__doc__ or ""):
        return []
    lines = Path(inspect.getfile(of)).read_text().splitlines()
    (found,) = (
        node
        for node in ast.parse("\n".join(lines)).body
        if isinstance(node, ast.ClassDef) and node.name == of.__name__
    )
    fields = [
        node
        for node in found.body
        if isinstance(node, ast.AnnAssign) and node.value and ast.unparse(node.value) not in EMPTY
    ]
    return [
        node.target.id
        for node in fields
        if isinstance(node.target, ast.Name) and node.target.id not in OF_ALL and not _said(lines, node)
    ]


def _said(lines: list[str], node: ast.AnnAssign) -> bool:
    comments = [line.partition("  # ")[2] for line in lines[node.lineno - 1 : node.end_lineno]]
    return any(comments) and not any("as the next" in one or "as the last" in one for one in comments)


@pytest.mark.parametrize("of", CLASSES, ids=lambda of: f"{of.__module__}.{of.__name__}")
def test_every_default_says_where_it_comes_from(of: type) -> None:
    assert unsaid(of) == []
