"""Names every kept result that is older than the code it measured.

    python benchmarks/outdated.py

A result was measured by a script; the code it measured is that script, with its parts where they have a folder
beside it, and the modules that these import; of a whole study, its file, and what its family trains with and on.
Either's age is that of its last commit, but for changes of comments and docstrings alone. What lies deeper is not
looked at, so a name here asks for a new measurement, and no name does not promise that none is due.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("corpora", "evaluators", "orchestration", "search_spaces", "semray", "trainers")


def main() -> int:
    changed = last_changes(ROOT)
    if not changed:
        print("no history to hold the results against: this is no git repository")
        return 0
    scripts = {path: path.read_text() for path in sorted((ROOT / "benchmarks").glob("*.py"))}
    for name in ("goals.py", "outdated.py"):  # speak of all results and measure none
        del scripts[ROOT / "benchmarks" / name]
    kept = sorted((ROOT / "benchmarks" / "results").glob("*.json"))
    results = [path for path in kept if not path.stem.endswith("_before")]  # those are to be old
    for line in told(results, scripts, changed, ROOT):
        print(line)
    return 0


@dataclass(frozen=True)
class Change:
    """A commit, and when it was made, in seconds since 1970."""

    commit: str
    at: int

    @property
    def when(self) -> str:
        return datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%d %H:%M")


def told(
    results: Iterable[Path], scripts: Mapping[Path, str], changed: Mapping[str, Change], root: Path
) -> Iterable[str]:
    """A line for each result that is older than its code, or whose script is not known."""
    for result in results:
        script, made = script_of(result.stem, scripts), changed.get(str(result.relative_to(root)))
        if script is None:
            yield f"{result.stem}: no script here writes it"
        if script is None or made is None:
            continue
        measured = {script, *modules_of(scripts[script], root), *of_study(result.stem, root)}
        files = [str(place.relative_to(root)) for place in measured]
        newer = [file for file in files if file in changed and _differs(file, changed[file], made, root)]
        if newer:
            last = max(newer, key=lambda file: (changed[file].at, file))
            counted = f"{len(newer)} of the {len(files)} files that {script.name} measures are newer"
            yield f"{result.stem}: of {made.when}; {counted}, {last} of {changed[last].when} the last"


def _differs(file: str, last: Change, made: Change, root: Path) -> bool:
    """Whether a file says something else than it did when a result was kept."""
    return last.at > made.at and _said(file, made.commit, root) != _said(file, "HEAD", root)


@cache
def _said(file: str, commit: str, root: Path) -> str:
    """What a file says at a commit, a program without comments and docstrings; nothing where it was not there."""
    shown = subprocess.run(["git", "show", f"{commit}:{file}"], cwd=root, capture_output=True, text=True)
    if not file.endswith(".py"):
        return shown.stdout
    tree = ast.parse(shown.stdout)
    for node in ast.walk(tree):
        match getattr(node, "body", None):
            case [ast.Expr(value=ast.Constant(value=str())), *rest]:
                node.body = rest  # type: ignore[attr-defined]
    return ast.dump(tree)


def script_of(name: str, scripts: Mapping[Path, str]) -> Path | None:
    """The script that writes a result: its namesake, one that spells the name, or what the name begins with."""
    first = name.split("_")[0]
    ways = (
        lambda path, text: path.stem == name,
        lambda path, text: f'"{name}"' in text,
        lambda path, text: name.startswith((f"{path.stem}_", f"{path.stem}-")),
        lambda path, text: any(sign in text for sign in (f'f"{first}_{{', f'("{first}", ')),
    )
    by_length = sorted(scripts.items(), key=lambda script: -len(script[0].stem))  # a_b_c is a_b.py's, not a.py's
    return next((path for way in ways for path, text in by_length if way(path, text)), None)


def of_study(name: str, root: Path) -> list[Path]:
    """What a study's own result, study_<name of its file>..., rests on."""
    named = [path for path in (root / "studies").glob("*.yaml") if f"{name}_".startswith(f"study_{path.stem}_")]
    if not named:
        return []
    study = max(named, key=lambda path: len(path.stem))
    family = yaml.safe_load(study.read_text())["family"]
    folders = (f"trainers/{family}", f"corpora/{family}", "trainers/encoders", "trainers/engine")
    return [study, *(file for folder in folders for file in (root / folder).rglob("*.py"))]


def modules_of(source: str, root: Path) -> list[Path]:
    """The files of ours that a script imports, in functions too; of its own parts, what they import as well."""
    found: dict[Path, None] = {}
    sources = [source]
    while sources:
        for module in _imported(sources.pop()):
            file = f"{module.replace('.', '/')}.py"
            part = root / "benchmarks" / file
            if module.split(".")[0] in PACKAGES and (root / file).is_file():
                found[root / file] = None
            elif "." in module and part.is_file() and part not in found:
                found[part] = None
                sources.append(part.read_text())
    return list(found)


def _imported(source: str) -> Iterator[str]:
    """What a source imports, and what of it: either may be a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))


def last_changes(root: Path) -> dict[str, Change]:
    """File -> the last commit that touched it; empty where there is no history."""
    command = ["git", "log", "--format=%x00%H %ct", "--name-only", "--no-renames"]
    try:
        history = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return {}
    found: dict[str, Change] = {}
    for entry in history.split("\0")[1:]:
        head, *files = entry.split("\n")
        commit, at = head.split()
        for file in filter(None, files):
            found.setdefault(file, Change(commit, int(at)))
    return found


if __name__ == "__main__":
    sys.exit(main())
