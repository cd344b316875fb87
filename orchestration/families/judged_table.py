"""The family of runs that were made and scored elsewhere: it reads scores from a table and trains nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from corpora.command.data import Reading
from corpora.elsewhere.table import Table, TableRun, read_table
from corpora.store.cache import digest_of
from corpora.store.errors import CorpusError
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
AS_IN_THE_TABLE = ""  # prefix of metric names: none, so that figures are named as in the table


@dataclass(frozen=True, kw_only=True)
class ElsewhereSettings:
    """An arm of the table, by its name there. train: false if the table has no seeds for it."""

    arm: Annotated[str, "the name of an arm in the table"] = ""
    train: bool = True


@dataclass(frozen=True, kw_only=True)
class ElsewhereData:
    """table: the file. metrics: its metrics, and how rows of each are read. declared: the SHA-256 of the claims as
    published before, "" without one. made_of: the name of the input that the table was made from, if any."""

    table: str = ""
    metrics: Mapping[str, Reading] = field(default_factory=dict)
    declared: str = ""
    made_of: str = ""


class ElsewhereFamily(PlainFamily):
    """See `contract.Family`. `semray judge` writes and executes its studies."""

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
        """The digest of the whole table."""
        return digest_of(Path(data.table))

    def check(self, study: Study) -> None:
        """Refuse every study: run by `semray run`, claims on known scores would count as declared beforehand."""
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
        rows = table_of(path, run.corpus_fingerprint)[TableRun(settings.arm, backbone, run.seed)]
        there = {metric: reading for metric, reading in data.metrics.items() if metric in rows}
        notes = {"scores": f"made elsewhere, read from {data.made_of or path.name}", **_shown(data)}
        notes |= {f"{metric} is left out": LEFT_OUT for metric in rows if metric not in data.metrics}
        if lacking := ", ".join(metric for metric in data.metrics if metric not in there):
            notes[f"{run.label} has no figure of"] = lacking
        yield Trained(run=run, notes=notes)
        if NAME in run.tasks:
            yield Scored(run=run, task=NAME, scores=figures(path, there, rows, names))


@lru_cache(maxsize=1)
def table_of(path: Path, digest: str) -> Table:
    """The table, read once for its check and all its runs. CorpusError as of `read_table`.

    digest: of its content, "" for no file. A table that is written to meanwhile is refused: figures of one content
    would be recorded as those of another.
    """
    table = read_table(path)
    if digest_of(path) != digest:
        raise changed(path)
    return table


def changed(path: Path) -> CorpusError:
    return CorpusError(f"{path}: changed while it was judged\n  accepted: a table that nobody writes to then")


def study_of_table(
    path: Path,
    table: Table,
    metrics: Mapping[str, str],
    claims: Sequence[Mapping[str, Any]],
    *,
    declared: str,
    made_of: str,
) -> dict[str, Any]:
    """The study of a table, as the content of a study file.

    metrics: how each is read. declared, made_of: see ElsewhereData.
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
    """The metrics without those that no claim names and whose scores are outside the range that their names imply:
    these would keep claims on other metrics from being judged."""
    named = claimed(claims)
    if not named <= metrics.keys():  # an unknown name, which reading the study reports, with all known names
        return dict(metrics)
    beyond = {
        metric
        for columns in table.values()
        for metric, rows in columns.items()
        if metric not in named and outside_range(metric, metrics[metric], rows)
    }
    return {metric: reading for metric, reading in metrics.items() if metric not in beyond}


def claimed(claims: Any) -> set[str]:
    """The metric names in claims. Malformed parts are skipped, as the claims have not been checked yet."""
    entries = [entry for entry in claims if isinstance(entry, Mapping)] if isinstance(claims, Sequence) else []
    metrics = [entry["metric"] for entry in entries if isinstance(entry.get("metric"), str)]
    return {name for metric in metrics for name in names_of(metric)}.union(
        *(claimed(entry.get("all")) for entry in entries)
    )


def _shown(data: ElsewhereData) -> dict[str, str]:
    told = f"SHA-256 {data.declared}, shown as declared before; when it was published is for the reader to check"
    return {"claims": told} if data.declared else {}


FAMILY: Family = ElsewhereFamily()
