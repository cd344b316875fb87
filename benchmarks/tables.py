"""One table per benchmark: printed, and kept as results/<name>.json and results/<name>.md."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def machine() -> str:
    """CPU with the widest of its arithmetic, cores this process may use, memory, system."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [line.partition(":") for line in cpuinfo.read_text().splitlines()]
        told = {name.strip(): value.strip() for name, _, value in lines}
        able = [name for name in ("amx_bf16", "avx512_bf16", "avx512f", "avx2") if name in told.get("flags", "")]
        model = " with ".join([told.get("model name") or model, *able[:1]])
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model}, {cores} cores, {memory:.0f} GiB, {platform.system()} {platform.machine()}"


def revision(checkout: Path) -> str:
    """The commit of a checkout."""
    asked = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def save(
    name: str,
    title: str,
    rows: Sequence[dict[str, Any]],
    notes: Sequence[str],
    *,
    packages: Sequence[str] = (),
    whole: Mapping[str, float] | None = None,
) -> None:
    """Print the table and write it, with machine, versions and date. rows: equal keys, in column order.

    whole: figures of no one row, kept for other scripts; a note tells them.
    """
    versions = {"python": platform.python_version()}
    versions |= {package: _version(package) for package in ("numpy", "scipy", *packages)}
    where = {"machine": machine(), "versions": versions, "date": datetime.date.today().isoformat()}
    columns = list(rows[0])
    cells = [[_cell(row[column]) for column in columns] for row in rows]
    lines = ["| " + " | ".join(line) + " |" for line in (columns, ["---"] * len(columns), *cells)]
    told = ", ".join(f"{package} {version}" for package, version in versions.items())
    text = "\n".join(
        (
            f"# {title}",
            "",
            *lines,
            "",
            *(f"- {note}" for note in notes),
            "",
            f"{where['machine']}; {told}; {where['date']}",
        )
    )
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text + "\n")
    kept = {"title": title, "rows": list(rows), "notes": list(notes), **where}
    kept |= {"whole": dict(whole)} if whole else {}
    (RESULTS / f"{name}.json").write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n")


def _version(package: str) -> str:
    """Of a package; a machine for a single measurement may lack some."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
