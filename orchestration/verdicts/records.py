"""Reads scores of a study's runs, by arm and seed, and their items from the ledger. Each file is read once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evaluators.metrics.item_metrics import aggregate, makes_up, repeated
from evaluators.tasks.figures import is_mean, mean_of
from evaluators.tasks.task import Task, metric_names, named
from orchestration.families.registry import family
from orchestration.ledger.columns import numbers
from orchestration.ledger.entries.items import is_of_metric, of_metric
from orchestration.plan.plan import by_arm
from orchestration.study.errors import StudyError
from orchestration.study.run import Run

if TYPE_CHECKING:
    import pyarrow as pa

    from evaluators.significance.claims import ClaimSide
    from evaluators.significance.paired_items import Items, ItemsError
    from orchestration.ledger.entries.record import Metric, Record
    from orchestration.ledger.failures import Failure
    from orchestration.ledger.ledger import Ledger
    from orchestration.study.study import Study


NAMING = ("item_id", "group_id", "gold")


class ItemNames:
    """The names, groups (resampled together) and gold values of the M items of a metric."""

    def __init__(self, table: pa.Table, metric: str) -> None:
        """table: the file of a run, which may hold other metrics too."""
        self._metric, rows = metric, of_metric(table, metric)
        self._file = {name: table[name] for name in ("metric", *NAMING)}
        self._place = _as_slice(is_of_metric(table, metric))
        self._columns = {name: rows[name] for name in NAMING}
        self.ids: tuple[str, ...] = tuple(rows["item_id"].to_pylist())
        self.groups: tuple[str, ...] = tuple(rows["group_id"].to_pylist())
        gold = rows["gold"]
        self.gold: np.ndarray | None = None if gold.null_count else numbers(gold)  # (M,)

    @cached_property
    def descriptions(self) -> dict[str, str]:
        """Item -> its group and gold, in words."""
        whole = [] if self.gold is None else [repr(one).removesuffix(".0") for one in self.gold.tolist()]
        gold = [f" and gold {one}" for one in whole] or [""] * len(self.ids)
        rows = zip(self.ids, self.groups, gold, strict=True)
        return {item: f"group {group}{compared}" for item, group, compared in rows}

    def values(self, table: pa.Table) -> np.ndarray | None:
        """The values of these items in a run's file, (M,); None if it has other items or another order.

        Usually all columns of names are equal, which is compared first.
        """
        if all(column.equals(table[name]) for name, column in self._file.items()):
            return np.array(numbers(table["value"])[self._place])  # a copy, as the file may hold many more
        rows = of_metric(table, self._metric)
        alike = all(column.equals(rows[name]) for name, column in self._columns.items())
        return numbers(rows["value"]) if alike else None


def _as_slice(chosen: np.ndarray) -> slice | np.ndarray:
    """The chosen rows as a slice if they are adjacent, which is faster to take; else `chosen`. (rows,) bool."""
    rows = np.flatnonzero(chosen)
    adjacent = len(rows) and rows[-1] - rows[0] + 1 == len(rows)
    return slice(int(rows[0]), int(rows[-1]) + 1) if adjacent else chosen


class RunItems(NamedTuple):
    """The M items of one metric of one run."""

    names: ItemNames
    values: np.ndarray  # (M,)


@dataclass(frozen=True)
class Reads:
    """A cache of what was read of a ledger's entries, which never change.

    records: run id -> its training with its scores. figures: entry -> its scores, for runs that were read in part.
    items: (run id, metric) -> its items. names: metric -> the names of its items. compared: metric and both sides
    of a claim -> the runs behind its difference, and their items.
    """

    figures: dict[str, Record] = field(default_factory=dict)
    records: dict[str, Record] = field(default_factory=dict)
    items: dict[tuple[str, str], RunItems] = field(default_factory=dict)
    names: dict[str, ItemNames] = field(default_factory=dict)
    compared: dict[tuple[str, ClaimSide, ClaimSide], tuple[tuple[str, ...], Items | None]] = field(
        default_factory=dict
    )


@dataclass(frozen=True)
class StudyRecords:
    """The ledger's records of the runs of a plan. held: the entries of the ledger, if known."""

    study: Study
    runs: Sequence[Run]
    ledger: Ledger
    held: Collection[str] | None = None
    reads: Reads = field(default_factory=Reads)

    def of(self, runs: Sequence[Run]) -> StudyRecords:
        """The records of these runs instead, with the same cache."""
        return replace(self, runs=runs)

    @cached_property
    def there(self) -> Collection[str]:
        """The entries of the runs that the ledger holds, including those of unfinished runs."""
        return self.ledger.held(self.runs) if self.held is None else self.held

    @cached_property
    def entries(self) -> Mapping[str, tuple[str, ...]]:
        """Id of a finished run -> its entries, its training first."""
        return {run.id: run.entries_in(self.there) for run in self.runs if not run.lacking(self.there)}

    def records_of(self, runs: Sequence[Run]) -> list[Record]:
        """The records of the finished runs among these, each once."""
        ids = [run_id for run_id in dict.fromkeys(run.id for run in runs) if run_id in self.entries]
        unread = {run_id: self.entries[run_id] for run_id in ids if run_id not in self.reads.records}
        known = self.reads.figures
        trainings = self.ledger.trainings(entries[0] for entries in unread.values())
        scores = known | self.ledger.scores_of(
            entry for entries in unread.values() for entry in entries[1:] if entry not in known
        )
        for run_id, (trained, *scored) in unread.items():
            record = trainings[trained]
            for entry in scored:
                record = record.with_scores(scores[entry])
                known.pop(entry, None)
            self.reads.records[run_id] = replace(record, id=run_id, run=self._by_id[run_id])
        return [self.reads.records[run_id] for run_id in ids]

    def record(self, run_id: str) -> Record:
        """The record of a finished run."""
        (record,) = self.records_of([self._by_id[run_id]])
        return record

    def measured(self, run_id: str, figure: str) -> Metric | None:
        """A figure of a finished run, or None if the run has none. Reads only the entry that holds it."""
        holding = self._holding(run_id, figure)
        return None if holding is None else holding.metrics.get(figure)

    def _holding(self, run_id: str, figure: str) -> Record | None:
        """The record with a figure: the whole run if it was read or is one old entry, else a task's scores."""
        if run_id in self.reads.records or len(self.entries[run_id]) == 1:
            return self.record(run_id)
        run, task = self._by_id[run_id], self._task_of.get(figure)
        if task is None:
            return None
        entry = run.entry(task)
        if entry not in self.reads.figures:  # read with it those of the arm's other seeds, which are needed next
            of_arm = [one for one in self.runs_of[run.arm, run.backbone] if len(self.entries.get(one.id, ())) > 1]
            unread = {
                one.entry(task) for one in of_arm if one.id not in self.reads.records
            } - self.reads.figures.keys()
            self.reads.figures.update(self.ledger.scores_of(sorted(unread | {entry})))
        return self.reads.figures[entry]

    @cached_property
    def _by_id(self) -> Mapping[str, Run]:
        return {run.id: run for run in self.runs}

    @cached_property
    def _task_of(self) -> Mapping[str, str]:
        return {figure: task.name for task in self.tasks for figure in task.metrics}

    @cached_property
    def failed(self) -> Mapping[str, Failure]:
        """Run id -> the failure of its last attempt."""
        return self.ledger.failed(self.runs)

    @cached_property
    def _by_place(self) -> Mapping[tuple[str, str, int | None], Run]:
        return {(run.arm, run.backbone, run.seed): run for run in self.runs}

    @cached_property
    def runs_of(self) -> Mapping[tuple[str, str], Sequence[Run]]:
        """(arm, backbone) -> its runs, in the order of the plan."""
        return by_arm(self.runs)

    @cached_property
    def compared(self) -> frozenset[str]:
        """The figures that claims compare. Only their items are kept."""
        return frozenset(one for part in self.study.parts for one in self.study.figures_of(part.metric))

    @cached_property
    def larger_is_better(self) -> Mapping[str, bool]:
        """Every metric, including means in claims -> whether larger is better."""
        known = metric_names(self.tasks)
        means = {name: of for name, of in self.study.figures.items() if is_mean(name) and known.keys() >= set(of)}
        return known | {name: known[figures[0]] for name, figures in means.items()}

    @cached_property
    def tasks(self) -> list[Task[Any, Any]]:
        """The tasks that the study evaluates."""
        return named(family(self.study.family).tasks(self.study.data), self.study.evaluate)

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """Every seed that some run of the plan has, in the order in which seeds are added.

        If no arm is trained, these are the initial seeds of the study. The one run of each arm is then paired with
        all of them; its deltas are equal there, so that only the items count.
        """
        present = {run.seed for run in self.runs}
        if present == {None}:
            return self.study.seeds.initial
        return tuple(seed for seed in self.study.seeds.all if seed in present)

    @cached_property
    def paired_seeds(self) -> tuple[int, ...]:
        """The seeds that an untrained arm is paired with: `seeds`, and a second one if there is only one.

        With two pairs the items of two untrained arms can be tested. Trained arms have no run at that second seed.
        """
        return (*self.seeds, self.seeds[0] + 1) if len(self.seeds) == 1 else self.seeds

    def run(self, arm: str, backbone: str, seed: int) -> Run | None:
        """The run of an arm at a seed; an arm without training has one run for every seed."""
        return self._by_place.get((arm, backbone, seed)) or self._by_place.get((arm, backbone, None))

    def finished(self, arm: str, backbone: str) -> dict[int, str]:
        """seed -> id of the arm's finished run."""
        found = {seed: self.run(arm, backbone, seed) for seed in self.paired_seeds}
        return {seed: run.id for seed, run in found.items() if run is not None and run.id in self.entries}

    def values(self, arm: str, backbone: str, metric: str) -> dict[int, float | None]:
        """seed -> score, for every seed that the plan has for this arm.

        None for an unfinished run, nan for one without the figure: an encoder with all words equally far apart has
        no correlation.
        """
        runs = {seed: run for seed in self.paired_seeds if (run := self.run(arm, backbone, seed)) is not None}
        return {seed: self.value(run, metric) if run.id in self.entries else None for seed, run in runs.items()}

    def value(self, run: Run, metric: str) -> float:
        """A figure of a finished run, or the mean of the figures of `mean(…)`; nan if one of them is missing."""
        figures = self.study.figures_of(metric)
        measured = {figure: self.measured(run.id, figure) for figure in figures}
        return mean_of({figure: one.value for figure, one in measured.items() if one}, figures)

    def items(self, run_id: str, metric: str) -> RunItems:
        """The items of one metric of one run. Its file is read once for all metrics that claims compare."""
        if (run_id, metric) not in self.reads.items:
            holding = self._holding(run_id, metric)
            assert holding is not None, f"{run_id} has no {metric}"
            entry = holding.metrics[metric].entry
            table = self.ledger.items(entry, holding)
            for name in {metric, *self.compared} & holding.metrics.keys():
                if holding.metrics[name].entry == entry:
                    self.reads.items[run_id, name] = self._named(name, table)
        return self.reads.items[run_id, metric]

    def _named(self, metric: str, table: pa.Table) -> RunItems:
        """The items of a metric in a file. Runs whose names agree, as they should, share one `ItemNames`."""
        known = self.reads.names.get(metric)
        values = None if known is None else known.values(table)
        if known is None or values is None:
            known = ItemNames(table, metric)
            values = known.values(table)
            assert values is not None, "a file has the items that it names"
            self.reads.names.setdefault(metric, known)
        return RunItems(known, values)


def contradiction(records: StudyRecords, error: ItemsError) -> StudyError:
    """The error for items that cannot be judged; it names the wrong run if one is found.

    That is the first run whose items do not give its score, else one with other items than most runs. An entry
    that is as its run wrote it would be the same after another run.
    """
    held = _held(records)
    broken = ((one, f"{one.metric} {why}", True) for one in held if (why := _contradicts(one.found, one.items)))
    odd = (
        (one, f"{one.metric} of {one.run.label} {why}", not records.record(one.run.id).sealed)
        for one, why in _unlike_others(held)
    )
    wrong, why, changed = next(chain(broken, odd), (None, "", False))
    if wrong is None:
        return StudyError(
            f"{records.ledger.url}: {error}\n  accepted: items in two groups or more that make up each score"
        )
    entry = wrong.found.entry
    remedy = (
        f"Put the file back from a copy, or move the entry aside with `semray set-aside {entry}`: "
        "the next `semray run` computes it again"
        if changed
        else "It is as its run wrote it, and would be again: write every item in every run, in one group and with "
        "one gold"
    )
    return StudyError(
        f"{records.ledger.url}/{entry}/scores.parquet: {why}\n"
        f"  accepted: the items that its score was made of, the same in every run. {remedy}"
    )


class _Held(NamedTuple):
    """A figure of a run that a claim compares, with its items."""

    run: Run
    metric: str
    found: Metric
    items: RunItems


def _held(records: StudyRecords) -> list[_Held]:
    return [
        _Held(record.run, metric, found, records.items(record.id, metric))
        for record in records.records_of(records.runs)
        for metric, found in record.metrics.items()
        if metric in records.compared and found.aggregate is not None
    ]


def _unlike_others(held: Sequence[_Held]) -> Iterator[tuple[_Held, str]]:
    """The figures whose items differ from those of most runs of the metric, with the difference in words."""
    by_metric: dict[str, list[dict[str, str]]] = {}
    for one in held:
        by_metric.setdefault(one.metric, []).append(one.items.names.descriptions)
    usual = {metric: _usual(items) for metric, items in by_metric.items()}
    for one in held:
        if why := _unlike(one.items.names.descriptions, usual[one.metric]):
            yield one, why


def _usual(runs: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Item -> its description in most runs, for the items that at least half of the runs have."""
    found: dict[str, Counter[str]] = {}
    for described in runs:
        for item, words in described.items():
            found.setdefault(item, Counter())[words] += 1
    return {item: counts.most_common(1)[0][0] for item, counts in found.items() if 2 * counts.total() >= len(runs)}


def _unlike(own: Mapping[str, str], usual: Mapping[str, str]) -> str:
    """How the items of a run differ from those of most runs, in words; "" if they do not."""
    for verb, these, others in (("lacks", usual, own), ("has", own, usual)):
        if odd := [item for item in these if item not in others]:
            more = f" and {len(odd) - 1} more" if len(odd) > 1 else ""
            return f"{verb} item {odd[0]}{more}, which other runs {'have' if verb == 'lacks' else 'lack'}"
    odd = [item for item in usual if own[item] != usual[item]]
    return f"has item {odd[0]} with {own[odd[0]]}, which other runs have with {usual[odd[0]]}" if odd else ""


def _contradicts(found: Metric, items: RunItems) -> str:
    """Why a figure is not the aggregate of its items; "" if it is."""
    assert found.aggregate is not None
    if (twice := repeated(items.names.ids)) is not None:
        return f"has the item {twice!r} twice"
    try:
        value = aggregate(found.aggregate, items.values, items.names.gold)
    except ValueError as error:
        return f"cannot be made of its items: {error}"
    return "" if makes_up(value, found.value) else f"is {found.value}, but its items give {value}"
