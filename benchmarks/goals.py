"""What is asked of semray's speed, and how far it is: every goal beside the figure that was kept of it.

    python benchmarks/goals.py

Nothing is measured here: the figures are those in results/, each made by the script of that name, and this makes
one table of them, results/goals.md. Before: what the same script measured of earlier code.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tables import RESULTS


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Where a figure is kept: the worst of a column over the rows that have these values, or one of the whole."""

    result: str
    column: str
    rows: Mapping[str, Any]

    def read(self, *, worst: Any) -> tuple[float, str] | None:
        """It, and where and when it was measured; None where it is not kept."""
        path = RESULTS / f"{self.result}.json"
        if not path.exists():
            return None
        kept = json.loads(path.read_text())
        found = [row for row in (*kept["rows"], kept.get("whole", {})) if self.rows.items() <= row.items()]
        numbers = [_number(row[self.column]) for row in found if row.get(self.column) not in (None, "–", "")]
        days = [row["day"] for row in found if "day" in row]
        where = f"{kept['machine'].partition(',')[0]}, {max(days, default=kept['date'])}"
        return (worst(numbers), where) if numbers else None


@dataclass(frozen=True, kw_only=True)
class Goal:
    """What is asked for, in a unit. least: it is to be at least that, else at most."""

    what: str
    asked: float
    unit: str
    now: Figure
    before: Figure | None = None
    least: bool = False

    def row(self) -> list[str]:
        worst = min if self.least else max
        now = self.now.read(worst=worst)
        before = self.before.read(worst=worst) if self.before else None
        asked = f"{'≥' if self.least else '≤'} {self.asked:g} {self.unit}"
        then = "–" if before is None else _short(before[0])
        if now is None:
            return [self.what, asked, then, "not measured", "", f"`{self.now.result}`", ""]
        held = now[0] >= self.asked if self.least else now[0] <= self.asked
        return [self.what, asked, then, _short(now[0]), "yes" if held else "no", f"`{self.now.result}`", now[1]]


def _short(number: float) -> str:
    """To three digits, or to ones."""
    return f"{number:.3g}" if abs(number) < 1000 else f"{number:.0f}"


def _number(cell: Any) -> float:
    """Of a cell: a number, or a ratio such as `2.06 x`."""
    return float(cell.removesuffix(" x")) if isinstance(cell, str) else float(cell)


def _looking(
    runs: int, claims: int, command: str, column: str, asked: float, unit: str, before: str = "large_studies"
) -> Goal:
    """Of one command on a large finished study. before: the result that has the column of before."""
    rows = {"runs": runs, "claims": claims, "command": command}
    of = "" if column == "CPU, s" else f", {column.partition(',')[0]}"
    return Goal(
        what=f"`{command}` of {runs:,} runs and {claims} claims{of}",
        asked=asked,
        unit=unit,
        now=Figure(result="large_studies", rows=rows, column=column),
        before=Figure(result=before, rows=rows, column=f"{column}, before"),
    )


def _kept(result: str, column: str, **rows: Any) -> Figure:
    return Figure(result=result, rows=rows, column=column)


def _step(precision: str, asked: float, result: str, where: str = "") -> Goal:
    row = {"column": "speed", "precision": precision, "trainer": "semray"}
    return Goal(
        what=f"a step of B1 in {precision}{where}, against sentence-transformers",
        asked=asked,
        unit="x",
        now=_kept(result, **row),
        before=_kept(f"{result}_before", **row),
        least=True,
    )


def _evaluation_share(result: str, where: str) -> Goal:
    row = {"column": "share of evaluation, %", "study": "quickstart"}
    return Goal(
        what=f"evaluation's share of a run of the quickstart{where}",
        asked=8,
        unit="%",
        now=_kept(result, code="now", **row),
        before=_kept(result, code="before", **row),
    )


def _quickstart(result: str, where: str) -> Goal:
    return Goal(
        what=f"quickstart{where} from an existing environment",
        asked=7,
        unit="minutes",
        now=_kept(result, "wall minutes"),
        before=_kept(f"{result}_before", "wall minutes"),
    )


def _epoch(batch: int, asked: float) -> Goal:
    what = f"BERT-base, batch {batch}, bf16: SimCSE epoch of 1,000,000"
    return Goal(
        what=f"SimCSE over a million sentences, BERT-base, batch {batch}, on an H200",
        asked=asked,
        unit="s",
        now=_kept("gpu-nvidia-h200", "figure", section="training", what=what),
    )


GOALS = (
    _looking(1000, 100, "status", "CPU, s", 4, "CPU s", "large_studies_before"),
    _looking(1000, 100, "why", "CPU, s", 6, "CPU s", "large_studies_before"),
    _looking(1000, 100, "report", "CPU, s", 30, "CPU s", "large_studies_before"),
    _looking(1000, 100, "report", "peak, MB", 600, "MB", "large_studies_before"),
    _looking(1000, 100, "report", "page, MB", 3, "MB", "large_studies_before"),
    _looking(1000, 100, "report", "opened, s", 3, "s in Chromium", "large_studies_before"),
    _looking(10_000, 500, "plan", "CPU, s", 20, "CPU s"),
    _looking(10_000, 500, "report", "CPU, s", 240, "CPU s"),
    Goal(
        what="object store: commit of an entry",
        asked=12,
        unit="requests",
        now=_kept("object_store", "requests", what="commit of one entry"),
        before=_kept("object_store_before", "requests", what="commit of one entry"),
    ),
    Goal(
        what="object store: plan of 100 runs beside 100,000 entries, beyond its own records",
        asked=60,
        unit="requests",
        now=_kept("object_store", "of others", what="plan of 100 runs, 100,000 entries of others"),
        before=_kept("object_store_before", "of others", what="plan of 100 runs, 10,000 entries of others"),
    ),
    Goal(
        what="driver of 8 nodes of 64 lanes, trivial runs, the slowest quarter of 20,000",
        asked=150,
        unit="runs a CPU s",
        now=_kept("driver", "runs a second", lanes=512),
        before=_kept("driver_before", "runs a second", lanes=512),
        least=True,
    ),
    Goal(
        what="MLflow: a run with a curve of 500 steps",
        asked=0.15,
        unit="CPU s",
        now=_kept("mlflow_sync", "CPU, seconds a run", sync="all new"),
        before=_kept("mlflow_sync_before", "CPU, seconds a run", sync="all new"),
    ),
    Goal(
        what="MLflow: a sync with nothing new",
        asked=2,
        unit="s",
        now=_kept("mlflow_sync", "wall, seconds", sync="nothing new"),
        before=_kept("mlflow_sync_before", "wall, seconds", sync="nothing new"),
    ),
    _step("fp32", 2.3, "training_throughput"),
    _step("bf16", 1.8, "training_throughput"),
    _step("fp32", 2.3, "training_throughput_avx512_bf16", " on an EPYC with AVX512"),
    _step("bf16", 1.8, "training_throughput_avx512_bf16", " on an EPYC with AVX512"),
    _step("fp32", 2.3, "training_throughput_avx2", " without AVX512"),
    _evaluation_share("evaluation_share_fp32", " in fp32"),
    _evaluation_share("evaluation_share", " in bf16"),
    _evaluation_share("evaluation_share_avx2", " without AVX512"),
    _quickstart("study_quickstart_fp32", " in fp32"),
    _quickstart("study_quickstart", " in bf16"),
    _quickstart("study_quickstart_fp32_avx512_bf16", " in fp32 on an EPYC with AVX512"),
    _quickstart("study_quickstart_avx512_bf16", " in bf16 on an EPYC with AVX512"),
    _quickstart("study_quickstart_avx2", " without AVX512"),
    _epoch(64, 130),
    _epoch(512, 81),
)


def table() -> Iterator[str]:
    columns = ["goal", "asked", "before", "now", "reached", "result", "measured on"]
    for cells in (columns, ["---"] * len(columns), *(goal.row() for goal in GOALS)):
        yield "| " + " | ".join(cells) + " |"


def main() -> int:
    cards = sorted(RESULTS.glob("gpu-*.md"))
    told = ", ".join(f"[{card.stem}]({card.name})" for card in cards)
    on_cards = f"On cards: {told}." if cards else "On cards nothing is measured yet: `make gpu` does."
    text = "\n".join(["# What is asked of speed", "", *table(), "", f"- {on_cards}"])
    print(text)
    (RESULTS / "goals.md").write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
