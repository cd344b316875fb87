"""Who may know whom: imports point one way, and heavy libraries stay where they are needed.

Every module is read, none is imported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAY_IMPORT = {
    "corpora": set(),
    "evaluators": {"corpora"},
    "trainers": {"corpora"},
    "search_spaces": {"trainers"},
    "orchestration": {"corpora", "evaluators", "trainers", "search_spaces"},
}
ONLY_UNDER = {"ray": "orchestration/", "mlflow": "orchestration/", "deepspeed": "trainers/engine/loop.py"}
HEAVY = {"torch", "ray", "mlflow", "transformers", "sentence_transformers", "deepspeed", "matplotlib"}
LIGHT = [f"orchestration/{name}.py" for name in ("cli", "study", "plan", "run", "errors", "families")]
MODULES = sorted(
    path.relative_to(ROOT).as_posix() for package in MAY_IMPORT for path in (ROOT / package).rglob("*.py")
)


def names(node: ast.AST) -> list[str]:
    """Full names of the modules that an import statement may load."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        return [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def anywhere(source: str) -> set[str]:
    """Modules imported by any statement, in functions and for type checking too."""
    return {name for node in ast.walk(ast.parse(source)) for name in names(node)}


def on_import(source: str) -> set[str]:
    """Modules loaded when this one is: not those of function bodies, nor those for the type checker alone."""

    def walk(statements: list[ast.stmt]) -> Iterator[str]:
        for node in statements:
            yield from names(node)
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                yield from walk(node.orelse)
            elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for field in ("body", "orelse", "handlers", "finalbody"):
                    yield from walk(getattr(node, field, []))

    return set(walk(ast.parse(source).body))


def tops(modules: set[str]) -> set[str]:
    return {module.split(".")[0] for module in modules}


def offences(module: str, source: str) -> set[str]:
    """What this module imports and may not."""
    package, imported = module.split("/")[0], tops(anywhere(source))
    wrong = imported & MAY_IMPORT.keys() - MAY_IMPORT[package] - {package}
    return wrong | {top for top in imported & ONLY_UNDER.keys() if not module.startswith(ONLY_UNDER[top])}


def loaded_with(module: str) -> set[str]:
    """Our modules that importing this one loads, itself included."""
    found, open_ends = set(), [module]
    while open_ends:
        path = open_ends.pop()
        if path in found:
            continue
        found.add(path)
        for name in on_import((ROOT / path).read_text()):
            stem = name.replace(".", "/")
            open_ends += [end for end in (f"{stem}.py", f"{stem}/__init__.py") if end in MODULES]
    return found


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_one_way(module):
    assert offences(module, (ROOT / module).read_text()) == set()


@pytest.mark.parametrize("module", [module for module in LIGHT if module in MODULES])
def test_light_modules_load_nothing_heavy(module):
    """Nor does anything of ours that they load: `semray --help` answers at once."""
    for loaded in loaded_with(module):
        assert tops(on_import((ROOT / loaded).read_text())) & HEAVY == set(), loaded


@pytest.mark.parametrize(
    ("module", "source", "wrong"),
    [
        ("corpora/x.py", "from evaluators.tasks.task import TASKS", {"evaluators"}),
        ("evaluators/x.py", "def f():\n    import trainers.encoders.encoder", {"trainers"}),
        ("trainers/x.py", "from orchestration import run", {"orchestration"}),
        ("trainers/x.py", "import ray.train\nimport deepspeed", {"ray", "deepspeed"}),
        ("evaluators/x.py", "if TYPE_CHECKING:\n    import mlflow", {"mlflow"}),
        ("trainers/engine/loop.py", "import deepspeed\nfrom corpora.store.records import Texts", set()),
        ("orchestration/x.py", "import ray, mlflow\nimport trainers.engine.world", set()),
    ],
)
def test_the_check_finds_what_it_should(module, source, wrong):
    assert offences(module, source) == wrong


def test_what_counts_as_loading():
    source = (
        "import json\ntry:\n    import torch\nexcept ImportError:\n    import numpy\nclass A:\n    import ast\n"
    )
    source += "def f():\n    import ray\nif TYPE_CHECKING:\n    import mlflow\n"
    assert on_import(source) == {"json", "torch", "numpy", "ast"}
