"""Who imports whom: every import statement of a tree of packages, read and never carried out.

Imports in function bodies and those for the type checker alone count like any other: a reader follows them too.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path

Arrows = Mapping[str, frozenset[str]]  # module -> the modules of ours that it imports


def names(node: ast.AST) -> list[str]:
    """Full names of the modules that an import statement may load."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        return [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


@cache
def anywhere(source: str) -> frozenset[str]:
    """Modules imported by any statement, in functions and for type checking too."""
    return frozenset(name for node in ast.walk(ast.parse(source)) for name in names(node))


@cache
def on_import(source: str) -> frozenset[str]:
    """Modules loaded when this one is: not those of function bodies, nor those for the type checker alone."""

    def walk(statements: list[ast.stmt]) -> Iterator[str]:
        for node in statements:
            yield from names(node)
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                yield from walk(node.orelse)
            elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for field in ("body", "orelse", "handlers", "finalbody"):
                    yield from walk(getattr(node, field, []))

    return frozenset(walk(ast.parse(source).body))


def tops(modules: Collection[str]) -> set[str]:
    """The packages that these modules belong to: torch of torch.nn."""
    return {module.split(".")[0] for module in modules}


def modules_under(root: Path, packages: Collection[str]) -> dict[str, Path]:
    """Dotted name -> file of every module; `__init__.py` stands under the name of its package."""
    found = {}
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def arrows(modules: Mapping[str, Path]) -> Arrows:
    """Which of these modules each one imports, by any statement. A package counts where none of its modules does."""
    found = {}
    for module, path in modules.items():
        named = anywhere(path.read_text()) & modules.keys()
        whole = {name for name in named if any(other.startswith(f"{name}.") for other in named)}
        found[module] = frozenset(named - whole - {module})
    return found


def circles(among: Arrows) -> list[tuple[str, ...]]:
    """Groups of modules that reach each other: the strongly connected components of more than one (Tarjan 1972)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found: list[tuple[str, ...]] = []

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        path.append(module)
        for other in sorted(among[module]):
            if other not in number:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in path:
                lowest[module] = min(lowest[module], number[other])
        if lowest[module] == number[module]:
            group = path[path.index(module) :]
            del path[path.index(module) :]
            if len(group) > 1:
                found.append(tuple(sorted(group)))

    for module in sorted(among):
        if module not in number:
            visit(module)
    return sorted(found)


def floors(among: Arrows) -> int:
    """The most modules that stand one on the other: how deep the longest chain of imports goes."""
    groups = {module: group for group in circles(among) for module in group}
    below: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for module, others in among.items():
        own = groups.get(module, (module,))
        below.setdefault(own, set()).update(groups.get(other, (other,)) for other in others)

    @cache
    def height(group: tuple[str, ...]) -> int:
        return 1 + max((height(other) for other in below[group] - {group}), default=0)

    return max(map(height, below), default=0)
