"""The table of scores that were made elsewhere: CSV, parquet, JSON or JSONL.

arm, seed, metric, score       needed columns; seed is empty for an arm that does not depend on one
backbone                       needed if arms were trained on several; each is then judged alone
item, task, group, gold, larger_is_better     as in the file that a command leaves (corpora.command.scores)
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple, get_args

from corpora.command.data import NAME, NAMES, Reading
from corpora.command.scores import OPTIONAL, MetricRows, add, cell_text, check, rows_of, wrong
from corpora.store.errors import CorpusError

SUFFIXES = (".csv", ".parquet", ".json", ".jsonl")
NEEDED = ("arm", "seed", "metric", "score")
LARGEST_SEED = 2**32 - 1  # as of a study
ALIKE = "the same items of a metric in all runs, in the same groups and with the same gold; or none in any"
RUNS = "; or with --arm COLUMN --seed COLUMN a table with a row for each run"
READINGS: tuple[str, ...] = get_args(Reading)  # ways in which a metric's rows become a figure


class TableRun(NamedTuple):
    """The run of a row. backbone: "" in a table without backbones; seed: None for an arm without seeds."""

    arm: str
    backbone: str
    seed: int | None

    @property
    def label(self) -> str:
        """The run in words for a person."""
        on = f" on {self.backbone}" if self.backbone else ""
        return f"{self.arm}{on}" if self.seed is None else f"{self.arm}{on}, seed {self.seed}"


Table = Mapping[TableRun, Mapping[str, MetricRows]]  # run -> metric -> its rows


def read_table(path: Path) -> Table:
    """The scores of every run. CorpusError names file, row, column and value."""
    if path.suffix not in SUFFIXES or not path.is_file():
        why = "no table of scores" if path.exists() else "no such file"
        raise CorpusError(f"{path}: {why}\n  accepted: a file that ends in {', '.join(SUFFIXES)}")
    runs: dict[TableRun, dict[str, MetricRows]] = {}
    for number, row in enumerate(rows_of(path, NEEDED, ("backbone", *OPTIONAL), RUNS), 1):
        add(path, number, row, runs.setdefault(_run_of(path, number, row), {}))
    if not runs:
        raise wrong(path, "holds no row", "one for each arm, seed and metric, at least")
    for run, columns in runs.items():
        for metric, column in columns.items():
            if not NAME.fullmatch(metric):
                raise wrong(path, f"metric = {metric!r}", NAMES)
            check(path, f"{run.label}: {metric}", column)
    if mixed := {run.arm for run in runs if run.seed is None} & {run.arm for run in runs if run.seed is not None}:
        raise wrong(
            path, f"{min(mixed)} has rows with a seed and rows without", "a seed in all rows of an arm, or none"
        )
    if len({bool(run.backbone) for run in runs}) > 1:
        raise wrong(path, "a backbone in some rows and not in others", "one in all rows, or none")
    _check_alike(path, runs)
    return runs


def _run_of(path: Path, number: int, row: Mapping[str, object]) -> TableRun:
    text = partial(cell_text, path, number, row)
    arm, seed = text("arm"), text("seed").removesuffix(".0")
    if not arm:
        raise wrong(path, f"row {number}: arm is empty", "the name of an arm in every row")
    if seed and not (seed.isascii() and seed.isdecimal()):
        raise wrong(path, f"row {number}: seed = {seed!r}", "a whole number, or nothing")
    digits = seed.lstrip("0") or "0"
    if len(digits) > len(str(LARGEST_SEED)) or int(digits) > LARGEST_SEED:
        raise wrong(path, f"row {number}: seed = {seed}", f"a whole number up to {LARGEST_SEED}, or nothing")
    return TableRun(arm, text("backbone"), int(digits) if seed else None)


def _check_alike(path: Path, runs: Table) -> None:
    """Raise CorpusError if runs differ in the items of a metric, since runs are compared item by item."""
    first: dict[str, TableRun] = {}
    for run, columns in runs.items():
        for metric, column in columns.items():
            other = first.setdefault(metric, run)
            if problem := _difference(column, runs[other][metric], other.label):
                raise wrong(path, f"{run.label}: {metric}: {problem}", ALIKE)


def _difference(column: MetricRows, other: MetricRows, whose: str) -> str:
    """The first difference between the items of two runs, in words; "" if they are alike, in any order."""
    if (column.items, column.groups, column.gold) == (other.items, other.groups, other.gold):
        return ""
    mine, theirs = _by_item(column), _by_item(other)
    if mine and theirs and bool(column.gold) != bool(other.gold):
        return f"has {'gold' if column.gold else 'no gold'}, other than {whose}"
    for item in (*theirs, *mine):
        if item not in mine:
            return f"lacks the item {item!r}, which {whose} has"
        if item not in theirs:
            return f"has the item {item!r}, which {whose} lacks"
        (group, gold), (their_group, their_gold) = mine[item], theirs[item]
        if group != their_group:
            return f"the item {item!r} is in the group {group!r}, in {whose} in {their_group!r}"
        if gold != their_gold:
            return f"the item {item!r} has the gold {gold}, in {whose} {their_gold}"
    return ""


def _by_item(column: MetricRows) -> dict[str, tuple[str, float]]:
    """item -> (group, gold), gold 0 for a metric without."""
    gold = column.gold or [0.0] * len(column.items)
    return dict(zip(column.items, zip(column.groups, gold, strict=True), strict=True)) if column.items else {}


def readings(path: Path, table: Table, given: Mapping[str, str]) -> dict[str, str]:
    """The reading of every metric (`corpora.command.data.Reading`): the given one, else its mean.

    CorpusError for a metric with gold and no given reading, for one whose rows differ in larger_is_better, and for
    a given metric that has no rows.
    """
    said: dict[str, set[bool]] = {}  # larger_is_better, which a blank leaves to the other rows
    for columns in table.values():
        for metric, column in columns.items():
            if metric not in given and column.gold:
                raise wrong(
                    path,
                    f"{metric} has gold, and nothing says how score and gold become a figure",
                    f"--read {metric}={', '.join(READINGS)}",
                )
            said.setdefault(metric, set()).update(column.larger_is_better)
    if torn := [metric for metric, larger in said.items() if len(larger) > 1]:
        raise wrong(path, f"{torn[0]}: larger_is_better is true in some rows and false in others", "one of both")
    found = {metric: "lower" if larger == {False} else "higher" for metric, larger in said.items()}
    if strange := [metric for metric in given if metric not in found]:
        raise wrong(path, f"--read {strange[0]}: has no row of that metric", ", ".join(found))
    return {**found, **given}


def unsaid(table: Table, given: Mapping[str, str]) -> set[str]:
    """The metrics of which neither the table nor a given reading says whether more is better."""
    columns = [column for columns in table.values() for column in columns.items()]
    said = {metric for metric, column in columns if column.larger_is_better}
    return {metric for metric, _ in columns} - said - given.keys()
