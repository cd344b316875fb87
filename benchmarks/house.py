"""How many rooms the house has, and who can be seen from where: files, imports and circles of every package.

python benchmarks/house.py [--before COMMIT]

A room is a file that is more than its package's `__init__.py`. An arrow is one file's import of another, at its
top, in a function or for the type checker alone. A circle is a group of files each of which reaches the others by
arrows. Floors are the files on the longest chain of arrows.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from tables import save

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.imports import arrows, circles, floors, modules_under  # noqa: E402

PACKAGES = ("orchestration", "trainers", "search_spaces", "evaluators", "corpora", "semray")
BEFORE = "fc400da"  # the last commit with one flat folder a package


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--before", default=BEFORE, metavar="COMMIT", help=f"default: {BEFORE}")
    before = options.parse_args().before
    with tempfile.TemporaryDirectory() as folder:
        try:
            held = subprocess.run(["git", "archive", before], cwd=ROOT, capture_output=True, check=True).stdout
            with tarfile.open(fileobj=io.BytesIO(held)) as archive:
                archive.extractall(folder, filter="data")
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{before} is not at hand, so only the files as they are now: {error}", file=sys.stderr)
        rows = [*counted(Path(folder), before), *counted(ROOT, "now")]
    notes = [
        "Rooms: files, without `__init__.py`. Arrows: imports of one file by another of the same package, in "
        "functions and for the type checker too. Circles: groups of files that reach each other. Floors: files on "
        "the longest chain of arrows.",
        "The rows of a package count its folders and what goes between them, those of a folder itself alone.",
    ]
    save("house", f"Rooms, arrows and circles: {before} and now", rows, notes)


def counted(root: Path, when: str) -> list[dict[str, Any]]:
    """One row for every package of a tree, and one for each of its folders."""
    tops = [name for name in PACKAGES if any((root / name).rglob("*.py"))]
    inner = [f"{top}/{place.name}" for top in tops for place in sorted((root / top).iterdir()) if place.is_dir()]
    places = [name for name in sorted(tops + inner) if any((root / name).glob("*.py"))]
    return [row(root, when, place) for place in places]


def row(root: Path, when: str, place: str) -> dict[str, Any]:
    modules = modules_under(root, [place])
    among = arrows(modules)
    rooms = [path for path in modules.values() if path.name != "__init__.py"]
    knots = circles(among)
    return {
        "at": when,
        "package": place,
        "rooms": len(rooms),
        "arrows": sum(map(len, among.values())),
        "circles": len(knots),
        "files in them": sum(map(len, knots)),
        "floors": floors(among),
        "lines, median": sorted(len(path.read_text().splitlines()) for path in rooms)[len(rooms) // 2],
        "lines, most": max(len(path.read_text().splitlines()) for path in rooms),
    }


if __name__ == "__main__":
    main()
