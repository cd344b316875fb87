"""Runs that were made and scored elsewhere: nothing is trained here, a table says what each scored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from corpora.command.data import Reading
from corpora.elsewhere.table import Table, TableRun, read_table
from corpora.store.cache import digest_of
from evaluators.tasks.figures import names_of
from evaluators.tasks.scores_file import NAME, figures, outside_range, tasks
from orchestration.families.contract import Family
from orchestration.families.plain import PlainFamily
from orchestration.study.names import typed
from orchestration.study.run import NO_BACKBONE, Job, Result, Run, Scored, Trained, built

if TYPE_CHECKING:
    from evaluators.tasks.task import Tasks
    from orchestration.study.study import Study
    from trainers.engine.world import World

FAMILY_NAME = "scored_elsewhere"  # as registry.WRITTEN has it
LEFT_OUT = "no claim names it, and it has scores that do not lie where its name says"
AS_IN_THE_TABLE = ""  # what stands before a metric's name: its figures are called as there


@dataclass(frozen=True, kw_only=True)
class ElsewhereSettings:
    """An arm of the table, by its name there. train: false where the table names no seed of it."""

    arm: Annotated[str, "the name of an arm in the table"] = ""
    train: bool = True


@dataclass(frozen=True, kw_only=True)
class ElsewhereData:
    """table: the file. metrics: what it holds, and how its rows are read. declared: the SHA-256 of the claims that
    was shown from before. made_of: what was given instead of a table, of which this one was made."""

    table: str = ""
    metrics: Mapping[str, Reading] = field(default_factory=dict)
    declared: str = ""
    made_of: str = ""


class ElsewhereFamily(PlainFamily):
    """See `contract.Family`. `semray judge` makes the study and carries it out."""

    settings, data = ElsewhereSettings, ElsewhereData
    needs_backbone = False

    def tasks(self, data: ElsewhereData) -> Tasks:
        return tasks(data.metrics, AS_IN_THE_TABLE)

    def reads(self, settings: ElsewhereSettings) -> tuple[str, ...]:
        return (NAME,)

    def defining(self, settings: ElsewhereSettings) -> dict[str, Any]:
        return asdict(settings)

    def learns(self, settings: ElsewhereSettings) -> bool:
        return True

    def fingerprint(self, data: ElsewhereData) -> str:
        """Of the whole table."""
        return digest_of(Path(data.table))

    def check(self, study: Study) -> None:
        """Nothing is trained: a study of this family, run like others, would call its claims declared before."""
        raise ValueError(f"family = {study.family}\n  accepted: {typed('judge', study.data.table)}")

    def prepare(self, study: Study, backbones: Sequence[Path]) -> None:
        self.check(study)

    def execute(self, job: Job, world: World) -> Iterator[Result]:
        for run in job.runs:
            yield from self._execute(run)

    def _execute(self, run: Run) -> Iterator[Result]:
        data, settings = built(ElsewhereData, run.data), built(ElsewhereSettings, run.settings)
        path, backbone = Path(data.table), "" if run.backbone == NO_BACKBONE else run.backbone
        names = {metric: f"{AS_IN_THE_TABLE}{metric}" for metric in data.metrics}
        rows = _table(path, digest_of(path))[TableRun(settings.arm, backbone, run.seed)]
        there = {metric: reading for metric, reading in data.metrics.items() if metric in rows}
        notes = {"scores": f"made elsewhere, read from {data.made_of or path.name}", **_shown(data)}
        notes |= {f"{metric} is left out": LEFT_OUT for metric in rows if metric not in data.metrics}
        if lacking := ", ".join(metric for metric in data.metrics if metric not in there):
            notes[f"{run.label} has no figure of"] = lacking
        yield Trained(run=run, notes=notes)
        if NAME in run.tasks:
            yield Scored(run=run, task=NAME, scores=figures(path, there, rows, names))


@lru_cache(maxsize=1)
def _table(path: Path, digest: str) -> Table:
    """A table once read, for all runs in it. digest: of its content."""
    return read_table(path)


def study_of_table(
    path: Path,
    table: Table,
    metrics: Mapping[str, str],
    claims: Sequence[Mapping[str, Any]],
    *,
    declared: str,
    made_of: str,
) -> dict[str, Any]:
    """The study that a table answers, as the content of its file.

    metrics: how each is read. declared, made_of: as in its data, "" where there is none.
    """
    unseeded = {run.arm for run in table if run.seed is None}
    backbones = [name for name in dict.fromkeys(run.backbone for run in table) if name]
    more = {name: text for name, text in (("declared", declared), ("made_of", made_of)) if text}
    return {
        "question": f"What do the scores in {made_of or path.name} show?",
        "family": FAMILY_NAME,
        **({"backbones": backbones} if backbones else {}),
        "seeds": sorted({run.seed for run in table if run.seed is not None}) or [0],
        "data": {"table": str(path), "metrics": _declared(table, metrics, claims), **more},
        "arms": {
            arm: {"arm": arm, **({"train": False} if arm in unseeded else {})}
            for arm in dict.fromkeys(run.arm for run in table)
        },
        "evaluate": [NAME],
        "compare": list(claims),
    }


def _declared(table: Table, metrics: Mapping[str, str], claims: Any) -> dict[str, str]:
    """The metrics, but for those that would stand in the way of claims on others: no claim names them, and their
    scores do not lie where their names say."""
    named = claimed(claims)
    if not named <= metrics.keys():  # a slip, of which the study's reader tells with all names there are
        return dict(metrics)
    beyond = {
        metric
        for columns in table.values()
        for metric, rows in columns.items()
        if metric not in named and outside_range(metric, metrics[metric], rows)
    }
    return {metric: reading for metric, reading in metrics.items() if metric not in beyond}


def claimed(claims: Any) -> set[str]:
    """What the metrics of claims name, whatever else may be wrong with these: nobody has looked at them yet."""
    entries = [one for one in claims if isinstance(one, Mapping)] if isinstance(claims, Sequence) else []
    told = [one["metric"] for one in entries if isinstance(one.get("metric"), str)]
    return {name for metric in told for name in names_of(metric)}.union(
        *(claimed(one.get("all")) for one in entries)
    )


def _shown(data: ElsewhereData) -> dict[str, str]:
    told = f"SHA-256 {data.declared}, shown as declared before; when it was published is for the reader to check"
    return {"claims": told} if data.declared else {}


FAMILY: Family = ElsewhereFamily()
