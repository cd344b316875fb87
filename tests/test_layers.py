"""Who may know whom: imports point one way, heavy libraries stay where they are needed, a name means one thing.

Every module is read, none is imported. Imports in functions and for the type checker alone count like any other.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

from orchestration.families.registry import FAMILIES, WRITTEN
from tests.imports import anywhere, arrows, circles, floors, modules_under, on_import, tops

ROOT = Path(__file__).resolve().parents[1]
MAY_IMPORT = {
    "corpora": set(),
    "evaluators": {"corpora"},
    "trainers": {"corpora"},
    "search_spaces": {"trainers", "corpora"},
    "orchestration": {"corpora", "evaluators", "trainers", "search_spaces"},
    "semray": {"corpora", "evaluators", "trainers", "search_spaces", "orchestration"},  # which never import it
}
# Inside orchestration, each knows those before it alone.
ROOMS = ["study", "families", "ledger", "reading", "plan", "verdicts", "lanes", "report", "search", "tracking"]
ROOMS += ["machines", "commands"]
DOORS = {  # files beside the rooms, and the one room that each opens
    "orchestration.__main__": "commands",
    "orchestration.tracked_model": "tracking",
}
ONLY_UNDER = {
    "ray": ("orchestration.lanes", "orchestration.search", "orchestration.machines"),
    "mlflow": ("orchestration.tracking", "orchestration.machines"),
    "deepspeed": ("trainers.engine.loop", "trainers.engine.deep_speed"),
}
HEAVY = {"torch", "ray", "mlflow", "transformers", "sentence_transformers", "deepspeed", "matplotlib"}
LIGHT = [f"orchestration.{room}" for room in ("study", "families", "reading", "plan", "verdicts", "commands")]
LIGHT += ["corpora", "search_spaces", "evaluators.tasks", "semray.extending"]
LIGHT += ["trainers.concept.batches"]  # a driver draws, to see that runs can
SHARED_NAMES = {  # what every family or benchmark defines under one name, each in its own folder
    "Settings": {"trainers", "orchestration.families.contract"},
}
MODULES = modules_under(ROOT, MAY_IMPORT)


def room(module: str) -> str:
    """The room of orchestration that a module lies in; "" for others."""
    package, _, inner = module.partition(".")
    return inner.partition(".")[0] if package == "orchestration" else ""


def offences(module: str, source: str) -> set[str]:
    """What this module imports and may not."""
    package, imported = module.partition(".")[0], anywhere(source)
    wrong = tops(imported) & MAY_IMPORT.keys() - MAY_IMPORT[package] - {package}
    wrong |= {top for top in tops(imported) & ONLY_UNDER.keys() if not module.startswith(ONLY_UNDER[top])}
    if module in DOORS:
        rooms = {room(name) for name in imported} - {"", DOORS[module]}
    elif room(module) in ROOMS:
        rooms = {room(name) for name in imported} - {"", *ROOMS[: ROOMS.index(room(module)) + 1]}
    else:
        rooms = set()
    return wrong | rooms


def loaded_with(module: str) -> set[str]:
    """Our modules that importing this one loads, itself included."""
    found, open_ends = set(), [module]
    while open_ends:
        name = open_ends.pop()
        if name not in found and name in MODULES:
            found.add(name)
            open_ends += on_import(MODULES[name].read_text())
    return found


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_one_way(module: str) -> None:
    assert offences(module, MODULES[module].read_text()) == set()


def test_orchestration_has_no_other_rooms() -> None:
    files = {name for name in MODULES if name.count(".") == 1 and MODULES[name].name != "__init__.py"}
    assert {name for name in files if name.startswith("orchestration.")} == DOORS.keys()
    assert {room(name) for name in MODULES.keys() - DOORS.keys()} - {""} == set(ROOMS)


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_no_package_holds_a_circle(package: str) -> None:
    inside = {name: path for name, path in MODULES.items() if name.partition(".")[0] == package}
    assert circles(arrows(inside)) == []


@pytest.mark.parametrize("module", [name for name in MODULES if name.startswith(tuple(LIGHT))])
def test_light_modules_load_nothing_heavy(module: str) -> None:
    """Nor does anything of ours that they load: who only looks at a study waits for no torch."""
    for loaded in loaded_with(module):
        assert tops(on_import(MODULES[loaded].read_text())) & HEAVY == set(), loaded


def test_families_are_named_in_families_alone() -> None:
    """Everywhere else a family is asked what it is, through the contract."""
    # "frozen" is Python's too, and a library has the name of one: there it stands in quotes; "command" is a terminal's
    words = "|".join((FAMILIES | WRITTEN).keys() - {"frozen", "command", "sentence_transformers"})
    named = re.compile(rf"""\b({words})\b|["'](frozen|sentence_transformers)["']|\.frozen\b""")
    for name, path in MODULES.items():
        if room(name) and room(name) != "families":
            assert [line for line in path.read_text().splitlines() if named.search(line)] == [], name


def test_no_two_public_classes_share_a_name() -> None:
    found = defaultdict(set)
    for name, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].add(name)
    for name, places in SHARED_NAMES.items():
        found[name] = {place for place in found[name] if not place.startswith(tuple(places))}
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def test_the_loader_that_mlflow_stored_stays_importable() -> None:
    """Models on a tracking server name this module and function; renaming either would make them unreadable."""
    from orchestration import tracked_model
    from orchestration.tracking import model

    assert tracked_model._load_pyfunc is model._load_pyfunc
    assert tracked_model.__name__ == model.LOADER


@pytest.mark.parametrize(
    ("module", "source", "wrong"),
    [
        ("corpora.x", "from evaluators.tasks.task import TASKS", {"evaluators"}),
        ("evaluators.x", "def f():\n    import trainers.encoders.encoder", {"trainers"}),
        ("trainers.x", "from orchestration import run", {"orchestration"}),
        ("trainers.x", "import ray.train\nimport deepspeed", {"ray", "deepspeed"}),
        ("evaluators.x", "if TYPE_CHECKING:\n    import mlflow", {"mlflow"}),
        ("trainers.engine.loop", "import deepspeed\nfrom corpora.store.columns import Texts", set()),
        ("orchestration.lanes.x", "import ray, mlflow\nimport trainers.engine.world", {"mlflow"}),
        ("orchestration.study.x", "def f():\n    from orchestration.plan import plan", {"plan"}),
        ("orchestration.verdicts.x", "from orchestration.report.plots import every", {"report"}),
        ("orchestration.plan.x", "from orchestration.ledger.ledger import Ledger", set()),
        (
            "orchestration.__main__",
            "from orchestration.commands import cli\nimport orchestration.plan.plan",
            {"plan"},
        ),
    ],
)
def test_the_check_finds_what_it_should(module: str, source: str, wrong: set[str]) -> None:
    assert offences(module, source) == wrong


def test_what_counts_as_loading() -> None:
    source = (
        "import json\ntry:\n    import torch\nexcept ImportError:\n    import numpy\nclass A:\n    import ast\n"
    )
    source += "def f():\n    import ray\nif TYPE_CHECKING:\n    import mlflow\n"
    assert on_import(source) == {"json", "torch", "numpy", "ast"}


def test_circles_and_floors_by_hand() -> None:
    """a -> b <-> c, d alone: one circle of two; three floors would need a, one of the circle, and one below."""
    among = {name: frozenset(others) for name, others in {"a": "b", "b": "c", "c": "b", "d": ""}.items()}
    assert circles(among) == [("b", "c")]
    assert floors(among) == 2
