"""Reads exports of other tools into rows of the table of scores (table.py).

A table of runs has a row for each run and a column for each metric: what Weights & Biases gives as CSV, and MLflow
by `mlflow experiments csv`. A folder of MTEB's results has a folder for each model, with a JSON file for each task
below; models of one recipe are told apart by a name that ends in their seed, such as `cosent-seed3`.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from corpora.command.data import NAME, NAMES, SIGNS
from corpora.command.scores import wrong
from corpora.store.errors import first_line
from corpora.store.rows import check_head, number_of

SEEDED = re.compile(r"(?P<arm>.+?)[-_.]*seed[-_.=]?(?P<seed>\d+)")
NO_NAME = re.compile(f"[^{SIGNS}]+")  # what no metric may be called: a subset is "title and abstract"
WHOLE, USUAL = "default", "test"  # MTEB's names for all languages of a task, and for the reported split


class ScoreRow(NamedTuple):
    """A figure without items. seed: "" for an arm without seeds."""

    arm: str
    seed: str
    metric: str
    score: float


def of_runs(path: Path, arm: str, seed: str, asked: Collection[str] = ()) -> Iterator[ScoreRow]:
    """The figures of a CSV with a row for each run. arm, seed: names of the columns with these.

    Every other column of numbers is a metric, if a metric can have its name. A run may lack a figure, as a crash
    leaves a blank or a NaN. asked: the claimed metrics. CorpusError names file and column.
    """
    rows = _csv(path)
    for column in (arm, seed):
        if column not in rows[0]:
            raise wrong(path, f"lacks the column {column}", ", ".join(rows[0]))
    for name in rows[0]:
        if name in asked and name not in (arm, seed):
            _check_numbers(path, name, [row[name] for row in rows])
    columns = [name for name in rows[0] if name not in (arm, seed) and _are_numbers(row[name] for row in rows)]
    metrics = list(filter(NAME.fullmatch, columns))
    odd = [name for name in columns if name not in metrics]
    if set(asked) & set(odd) or (odd and not metrics):
        raise wrong(path, f"has columns of numbers that no metric may be called: {', '.join(odd)}", NAMES)
    if not metrics:
        raise wrong(path, "has no column of numbers beside the seed", "one for each metric")
    first: dict[tuple[str, str, str], int] = {}
    for number, row in enumerate(rows, 1):
        if not row[arm].strip():
            raise wrong(path, f"row {number}: {arm} is empty", "what the run's arm is called")
        for metric in metrics:
            if math.isfinite(score := _cell(row[metric])):
                found = ScoreRow(row[arm], row[seed].strip(), metric, score)
                if (other := first.setdefault(found[:3], number)) != number:
                    place = f"row {number}: {metric} of {arm} {found.arm}, {seed} {found.seed or 'empty'}"
                    raise wrong(path, f"{place} stands in row {other}, too", "one row for each arm and seed")
                yield found


def of_mteb(folder: Path) -> Iterator[ScoreRow]:
    """The main scores below a folder of MTEB's results. CorpusError for none, or for another file.

    A run may lack a figure: MTEB writes NaN where a collapsed encoder has no correlation. Hidden files and folders
    are left out, and what `semray judge` wrote below the folder itself.
    """
    files = sorted(_results(folder))
    if not files:
        raise wrong(folder, "holds no result of MTEB", "MODEL/REVISION/TASK.json below it")
    first: dict[tuple[str, str, str], Path] = {}
    for file in files:
        model = file.relative_to(folder).parts[0]
        seeded = SEEDED.fullmatch(model)
        arm, seed = (seeded["arm"], seeded["seed"]) if seeded else (model, "")
        for metric, score in _main_scores(file):
            if not math.isfinite(score):
                continue
            found = ScoreRow(arm, seed, metric, score)
            if (other := first.setdefault(found[:3], file)) != file:
                accepted = "one revision of a model, and one model for each arm and seed"
                raise wrong(file, f"{metric} of {model} stands in {other}, too", accepted)
            yield found
    if not first:
        raise wrong(folder, "has no finite main score in any result", "one number at least")


def _results(folder: Path) -> Iterator[Path]:
    own = _own_output(folder)
    for file in folder.glob("*/**/*.json"):
        hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
        if file.name != "model_meta.json" and not hidden and own.isdisjoint(file.parents):
            yield file


def _own_output(folder: Path) -> set[Path]:
    """The folders below that semray wrote: with a ledger beside a study's file; after `--out .` the ledger."""
    ledgers = [place for place in folder.glob("**/ledger") if any(place.parent.glob("*.yaml"))]
    return {place if place.parent == folder else place.parent for place in ledgers}


def write_rows(rows: Iterable[ScoreRow], file: Path) -> Path:
    """Write the rows as a table of scores; returns the file."""
    with file.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream)
        table.writerow(ScoreRow._fields)
        table.writerows((*row[:3], repr(row.score)) for row in rows)
    return file


def _main_scores(file: Path) -> Iterator[tuple[str, float]]:
    try:
        content = json.loads(file.read_bytes())
        task, splits = str(content["task_name"]), dict(content["scores"])
        found = [(split, one["hf_subset"], float(one["main_score"])) for split in splits for one in splits[split]]
    except (ValueError, KeyError, TypeError) as error:
        raise wrong(
            file, f"is no result of MTEB ({type(error).__name__}: {error})", "task_name and scores"
        ) from None
    for split, subset, score in found:
        parts = (task, "" if subset == WHOLE else str(subset), "" if split == USUAL else split)
        yield "/".join(NO_NAME.sub("_", part).strip("_") for part in parts if part), score


def _csv(path: Path) -> list[Mapping[str, Any]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, strict=True)  # else a quote that is not closed takes the rows after it
            check_head(reader, partial(wrong, path))
            rows: list[Mapping[str, Any]] = []
            for row in reader:
                if any(row.get(None) or ()):
                    problem = f"line {reader.line_num} has more columns than its head"
                    raise wrong(path, problem, "as many as its head, or fewer")
                rows.append({name: value or "" for name, value in row.items() if name})
    except (OSError, ValueError, csv.Error) as error:
        raise wrong(path, f"cannot be read ({first_line(error)})", "a CSV with a row for each run") from None
    if not rows:
        raise wrong(path, "holds no row", "one for each run")
    return rows


def _are_numbers(cells: Iterable[str]) -> bool:
    """Whether all cells that are not blank are numbers, and at least one is finite."""
    try:
        finite = [math.isfinite(_cell(cell)) for cell in cells]
    except ValueError:
        return False
    return any(finite)


def _check_numbers(path: Path, metric: str, cells: Sequence[str]) -> None:
    """Raise CorpusError for a cell of a claimed metric that is no number, such as 80.6%, or if none has one."""
    for number, cell in enumerate(cells, 1):
        try:
            _cell(cell)
        except ValueError:
            raise wrong(path, f"row {number}: {metric} = {cell!r}", "a number, or nothing") from None
    if not _are_numbers(cells):
        raise wrong(path, f"{metric} has no finite number in any row", "numbers, as it is claimed")


def _cell(text: str) -> float:
    """The number in a cell, nan in a blank one. ValueError for other text."""
    return number_of(text) if text.strip() else math.nan
