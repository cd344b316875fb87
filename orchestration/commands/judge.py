"""`semray judge TABLE`: verdicts on scores from elsewhere, by the same rule as for semray's own scores.

The table becomes a study with its own ledger, so that report, passport and `verify` work as for any study. Its
claims are exploratory, as the scores could be seen, unless the user shows their digest from before.
"""

from __future__ import annotations

import hashlib
import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from corpora.elsewhere.exports import of_mteb, of_runs, write_rows
from corpora.elsewhere.table import READINGS, Table, TableRun, readings, unsaid
from corpora.store.cache import digest_of
from corpora.store.errors import CorpusError
from orchestration.commands.show import check_outputs, show, write_report
from orchestration.commands.terminal import DONE, say, shown_path
from orchestration.commands.waiting import JUDGING, doing
from orchestration.families.judged_table import changed, claimed, study_of_table, table_of
from orchestration.families.registry import family
from orchestration.lanes.in_this_process import carry_out
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import Facts, Plan, plan
from orchestration.reading.checking import Checker
from orchestration.reading.document import Document, Mistake, Place, document_of, read
from orchestration.reading.limits import content_of
from orchestration.reading.read_study import read_study
from orchestration.study.errors import StudyError
from orchestration.study.names import printable, slug
from orchestration.study.run import NO_BACKBONE, Run, canonical
from orchestration.study.study import Study
from orchestration.study.writable import drafted
from orchestration.verdicts.declared import declare
from orchestration.verdicts.find import find
from orchestration.verdicts.findings import Findings

CLAIM_OPTIONS = ("treatment", "control", "metric", "expect", "margin", "min_effect")


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The findings on a table, and the study, ledger and folder that were made of it.

    taken_as_higher: metrics of its claims of which nobody said whether more is better.
    """

    findings: Findings
    plan: Plan
    ledger: Ledger
    folder: Path
    taken_as_higher: tuple[str, ...]


class _CommandLine(Document):
    """A claim from command-line options; messages name the option instead of field, file and line."""

    def field(self, place: Place) -> str:
        return f"--{str(place[-1]).replace('_', '-')}" if len(place) > 2 else "the claim"

    def found(self, place: Place) -> str:
        if not self.holds(place):
            return f"{self.field(place)} is missing"
        value = self.at(place)
        return f"{self.field(place)} {str(value) or repr(value)}"

    def message(self, mistake: Mistake) -> str:
        return mistake.words("")


def judge(options: Namespace) -> int:
    """Judge the claims of the command line or of a file; write the report and, if asked for, a passport."""
    check_outputs(options)
    given_readings, declared, claims = _readings(options.read), _declared_digest(options), _claims(options)
    given = Path(os.path.abspath(options.table))  # `.` has no name of its own
    # a folder's whole name: of res-v1.5 and res-v1.6 the stem is one, and the reports would replace each other
    folder = Path(options.out or f"judged/{slug(given.name if given.is_dir() else given.stem)}")
    with doing(JUDGING):
        table = _as_table(options, claims, folder)
        made_of = "" if table == Path(options.table) else printable(given.name)
        done = judged(table, claims, given_readings, folder, declared, made_of)
    show(options, done.findings)
    if not given.is_dir():  # of MTEB's main scores more is better
        for metric in done.taken_as_higher:
            say(f"read    {metric}: more is better, as nothing says otherwise (--read {metric}=lower does)")
    write_report(options, done.plan, done.ledger, done.findings, done.folder)
    say(f"study   {shown_path(done.plan.study.path)}")
    return DONE


def judged(
    table_file: Path,
    claims: Sequence[Mapping[str, Any]] | Document,
    given_readings: Mapping[str, str],
    folder: str | Path | None = None,
    declared: str = "",
    made_of: str = "",
    digest: str = "",
) -> Judged:
    """Judge these claims on a table. given_readings: metric -> its reading, in addition to what the table says.

    claims: a list, or a document with them below `compare`. folder: for study and ledger. declared: a digest of
    the claims from before the scores, or "". made_of: the file that was converted to this table, or "". digest: of
    the table's content, where it is known.
    """
    given: dict[Place, Document] = {("compare",): claims} if isinstance(claims, Document) else {}
    claims = claims.content["compare"] if isinstance(claims, Document) else claims
    for metric, reading in given_readings.items():
        _check_reading(f"{metric}={reading}", metric, reading)
    try:
        digest = digest or (digest_of(table_file) if table_file.is_file() else "")
        table = table_of(table_file, digest)
        metrics = readings(table_file, table, given_readings)
    except CorpusError as error:
        raise StudyError(str(error)) from None
    name = slug(table_file.stem)
    folder = Path(folder or f"judged/{name}")
    content = study_of_table(table_file, table, metrics, claims, declared=declared, made_of=made_of)
    study = _written(folder / f"{name}.yaml", content, given)
    question = canonical([claims, dict(metrics), declared, *filter(None, [made_of])])
    place = hashlib.sha256(question + table_file.read_bytes()).hexdigest()[:16]
    ledger = Ledger(folder / "ledger" / place)  # another table, or other claims, get another ledger
    facts = _facts(study)
    if facts.corpus != digest:  # or the study is that of another table of this name, judged at this moment
        raise StudyError(str(changed(table_file)))
    if declared:
        declare(study, plan(study, facts).runs, ledger)
    done = _recorded(study, facts, table, ledger)
    declare(study, done.runs, ledger)  # claims not declared above count as seen
    taken = sorted(unsaid(table, given_readings) & claimed(claims))
    found = find(study, done.runs, ledger)
    return Judged(findings=found, plan=done, ledger=ledger, folder=folder, taken_as_higher=tuple(taken))


def _as_table(options: Namespace, claims: Document, folder: Path) -> Path:
    """The given table, or the export of another tool converted into a table in the folder."""
    given = Path(options.table)
    if (options.arm is None) != (options.seed is None):
        raise StudyError(
            "--arm, --seed: one without the other\n  accepted: both, for a table with a row for each run"
        )
    try:
        if given.is_dir():
            rows = list(of_mteb(given))
        elif options.arm is not None:
            rows = list(of_runs(given, options.arm, options.seed, claimed(claims.content["compare"])))
        else:
            return given
    except CorpusError as error:
        raise StudyError(str(error)) from None
    written = folder / "scores.csv"
    if written.exists() and written.samefile(given):
        raise StudyError(
            f"--out {folder}: {written} is the table itself, and would be written over\n  accepted: another folder"
        )
    folder.mkdir(parents=True, exist_ok=True)
    return write_rows(rows, written)


def _readings(entries: Sequence[str]) -> dict[str, str]:
    """Metric -> reading, from `--read METRIC=READING`. StudyError for an unknown reading."""
    found = {}
    for entry in entries:
        metric, _, reading = entry.rpartition("=")
        _check_reading(entry, metric, reading)
        found[metric] = reading
    return found


def _check_reading(entry: str, metric: str, reading: str) -> None:
    if not metric or reading not in READINGS:
        raise StudyError(f"--read {entry}\n  accepted: METRIC=READING, with {', '.join(READINGS)}")


def _claims(options: Namespace) -> Document:
    """A document with the claims below `compare`: those of the file, or the one of the command line."""
    one = {name: getattr(options, name) for name in CLAIM_OPTIONS if getattr(options, name) is not None}
    if options.claims is not None and one:
        raise StudyError("--claims: a file, and claims on the command line\n  accepted: one of both")
    if options.claims is not None:
        document = read(Path(options.claims))
        Checker(document).finish()  # mistakes that YAML accepts
        claims = document.content.get("compare")
        if not isinstance(claims, list) or not claims:
            raise StudyError(f"{options.claims}: no list of claims\n  accepted: `compare:` as in a study")
        return document
    if missing := [name for name in ("treatment", "control", "metric") if name not in one]:
        raise StudyError(
            f"--{missing[0]} is missing\n"
            "  accepted: --treatment ARM --control ARM --metric METRIC, or --claims FILE"
        )
    written = yaml.safe_dump({"compare": [{"claim": "H1", "expect": "better", **one}]}, allow_unicode=True)
    return _CommandLine(**vars(document_of(Path("command line"), written)))


def _declared_digest(options: Namespace) -> str:
    """The digest of `--declared`, or "". StudyError if it is not the digest of the claims."""
    if options.declared is None:
        return ""
    if options.claims is None:
        raise StudyError("--declared: the digest of a file of claims\n  accepted: together with --claims FILE")
    read(Path(options.claims))  # raises StudyError for a file that is no YAML
    digest = hashlib.sha256(content_of(Path(options.claims))).hexdigest()
    if options.declared.lower() != digest:
        raise StudyError(
            f"--declared {options.declared}: other claims than those in {options.claims}\n"
            f"  accepted: {digest}, the SHA-256 of that file, if that is what was published; or none"
        )
    return digest


def _written(path: Path, content: Mapping[str, Any], given: Mapping[Place, Document]) -> Study:
    """Write the study into a file and read it with all checks. given: as in `read_study`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with drafted(path) as draft:
        draft.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=110), encoding="utf-8")
    return read_study(path, given)


def _facts(study: Study) -> Facts:
    """The facts of the study: digests of the table. Backbones are mere names, and no model is looked for."""
    recipes = family(study.family)
    digests = {task: recipes.tasks(study.data)[task].fingerprint for task in study.evaluate}
    backbones = {name: "" if name == NO_BACKBONE else name for name in study.backbones}
    return Facts(backbones=backbones, corpus=recipes.fingerprint(study.data), tasks=digests, precision="fp32")


def _recorded(study: Study, facts: Facts, table: Table, ledger: Ledger) -> Plan:
    """Record the runs that the table has in the ledger; return the plan."""

    def in_table(run: Run) -> bool:
        backbone = "" if run.backbone == NO_BACKBONE else run.backbone
        return TableRun(run.arm, backbone, run.seed) in table

    with ledger.drive(study.name):
        try:
            carry_out(filter(in_table, plan(study, facts, ledger.entries()).left), ledger)
        except CorpusError as error:
            raise StudyError(str(error)) from None
    return plan(study, facts, ledger.entries())
