"""The study passport: one file that holds every score behind a report, and the check that recomputes the report.

It is a zip of `<study>.yaml`, `passport.json` (the study's facts: fingerprints, precision), `findings.json` (the
printed findings), `declared.json` (the claims as first declared), `failures.json`, `repeats.json` (the outcomes of
running a run twice), and `ledger/`, the study's entries with their seals, without models. `verify` derives the
runs from the study again, and needs no models, data or network. docs/report.md says what that proves.
"""

from __future__ import annotations

import json
import math
import tempfile
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpora.store.cache import digest_of
from evaluators.metrics.item_metrics import aggregate
from orchestration.ledger.columns import numbers
from orchestration.ledger.entries.items import of_metric
from orchestration.ledger.ledger import Ledger
from orchestration.ledger.notes import LaterFormat, LedgerError
from orchestration.ledger.repeats import Reproduction
from orchestration.ledger.seal import CHANGED
from orchestration.plan.plan import Facts, Plan, extend, plan
from orchestration.reading.read_study import read_study
from orchestration.study.errors import StudyError
from orchestration.study.names import cut
from orchestration.study.run import Run
from orchestration.study.writable import drafted
from orchestration.verdicts.declared import declaration_of
from orchestration.verdicts.distributions import with_distributions
from orchestration.verdicts.find import find
from orchestration.verdicts.growing import grown
from orchestration.verdicts.records import StudyRecords
from orchestration.verdicts.unpacking import HEADER, read_json, refused, unpack

if TYPE_CHECKING:
    from orchestration.study.study import Study
    from orchestration.verdicts.findings import Findings

FORMAT = 2  # 1 held the runs themselves, which a forger could choose
# fields of findings, and of their runs, that are no results and may differ at verification
WHEN_AND_WHERE = ("created", "ledger", "costs", "price", "item_texts")
OF_A_RUN = ("location", "problem", "training", "cost")
BESIDE = ("beside", "confirmed")  # fields of findings that no passport holds, as they may change later
OF_A_FINDING = ("moves", "scored", "taken_for")  # fields of a finding that no passport holds
OMITTED_FACTS = ("seconds", "scoring", "costs", "before")  # facts that no run of the passport rests on
RULE = "rule"  # compared apart: another version of the rule may judge the same scores otherwise
MOMENT = (1980, 1, 1, 0, 0, 0)  # the time of every member, so that equal content gives equal files


class Altered(StudyError):
    """An entry in a passport is not as its run wrote it."""


@dataclass(frozen=True, kw_only=True)
class Verification:
    """The result of `verify`: how many figures it recomputed, and differences as (place, printed, recomputed).

    rules: the versions of the rule that judged the study when it was printed, and now; 0: unknown. sha256: of the
    passport file. declared: the digest of the claims as first declared, "" without any. runs: status -> how many
    runs of the study have it. unsealed: runs recorded before entries had seals.
    """

    study: str
    rules: tuple[int, int]
    figures: int
    differences: tuple[tuple[str, Any, Any], ...]
    sha256: str
    declared: str
    runs: Mapping[str, int]
    unsealed: int


def write_passport(path: Path, plan: Plan, ledger: Ledger, findings: Findings) -> str:
    """Write the study's scores, claims, versions and printed figures into one file, atomically.

    Returns its SHA-256. LedgerError if an entry is damaged, or has a link or a folder in place of a file.
    """
    study, held = plan.study, ledger.entries()
    path.parent.mkdir(parents=True, exist_ok=True)
    with drafted(path) as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:

        def add(name: str, content: bytes) -> None:
            member = zipfile.ZipInfo(name, MOMENT)
            member.external_attr = 0o100644 << 16  # a plain file
            archive.writestr(member, content, zipfile.ZIP_DEFLATED)

        facts = {name: value for name, value in asdict(plan.facts).items() if name not in OMITTED_FACTS}
        add(HEADER, _json({"format": FORMAT, "study": study.name, "facts": facts}))
        add(f"{study.name}.yaml", study.path.read_bytes())
        add("findings.json", _json(plain(findings)))
        failed = ledger.failed()
        failures = [failed[run.id] for run in plan.runs if run.id in failed]
        add(
            "failures.json",
            _json([{"id": one.id, "attempt": one.attempt, "error": one.error} for one in failures]),
        )
        repeats = ledger.repeats([run.id for run in plan.runs])
        add("repeats.json", _json([asdict(one) for one in repeats]))
        declaration = declaration_of(StudyRecords(study, plan.runs, ledger))
        if declaration is not None:
            add("declared.json", _json([dict(claim) for claim in declaration.claims]))
        for entry in dict.fromkeys(entry for run in plan.runs for entry in _entries_held(run, held)):
            for name, content in sorted(ledger.files(entry).items()):
                add(f"ledger/{entry}/{name}", content)
    return digest_of(path)


def verify(path: Path) -> Verification:
    """Recompute every figure of a passport from its item-level scores.

    StudyError if the file is no passport; Altered if an entry in it is not as its run wrote it.
    """
    with tempfile.TemporaryDirectory(prefix="semray-passport-") as folder:
        header = unpack(path, Path(folder))
        if header.get("format") != FORMAT:
            reason = f"it has the format {cut(str(header.get('format')), 60)}"
            raise refused(path, reason, f"format {FORMAT}: write it again with `semray report --passport FILE`")
        try:
            return _check(path, header, Path(folder))
        except StudyError as error:
            if isinstance(error, LedgerError) and not isinstance(error, LaterFormat):
                raise Altered(str(refused(path, _told_of_members(error, folder)))) from None
            raise StudyError(str(error).replace(f"{folder}/", f"{path}: ")) from None
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
            # a stranger's file may have any content
            raise refused(path, f"it is damaged ({type(error).__name__}: {error})") from None


def _told_of_members(error: LedgerError, folder: str) -> str:
    """What a ledger says of the unpacked entry, told of the passport's member: the folder is gone by then."""
    told = str(error).partition("\n")[0].replace(f"{folder}/", "")
    return told.replace(f": {CHANGED}", " is not as its seal says")


def _json(content: Any) -> bytes:
    return (json.dumps(content, indent=1) + "\n").encode()


def plain(findings: Findings) -> dict[str, Any]:
    """The findings as JSON types, with nan as text, and without the fields that no passport holds."""
    content = asdict(findings)
    for name in BESIDE:
        del content[name]
    for finding in content["findings"]:
        for name in OF_A_FINDING:
            del finding[name]
    return json.loads(json.dumps(_without_nan(content)))


def _check(path: Path, header: Mapping[str, Any], folder: Path) -> Verification:
    study, ledger = read_study(folder / f"{header['study']}.yaml"), Ledger(folder / "ledger")
    printed = read_json(path, folder / "findings.json")
    if (folder / "declared.json").exists():
        ledger.declare(study.name, read_json(path, folder / "declared.json"))
    first = plan(study, _facts(header["facts"], study), ledger.entries())
    _put_failures(ledger, first, read_json(path, folder / "failures.json"))
    runs = grown(first, ledger).runs
    if (folder / "repeats.json").exists():  # old passports have none
        _put_repeats(ledger, runs, read_json(path, folder / "repeats.json"))
    findings = with_distributions(find(study, runs, ledger), ledger)
    again, records = plain(findings), [ledger.record(run) for run in runs if ledger.holds(run)]
    rules = printed.pop(RULE, 0), again.pop(RULE)
    differences = [
        *_strange_entries(runs, ledger),
        *_differing_metrics(runs, ledger, findings.metrics),
        *differing("", comparable(printed), comparable(again)),
    ]
    return Verification(
        study=study.name,
        rules=rules,
        figures=_figures_in(again),
        differences=tuple(differences),
        sha256=digest_of(path),
        declared=findings.declared,
        runs={status: len(findings.with_status(status)) for status in ("finished", "failed", "missing")},
        unsealed=sum(not record.sealed for record in records),
    )


def _facts(given: Mapping[str, Any], study: Study) -> Facts:
    names = {field.name for field in fields(Facts)}.difference(OMITTED_FACTS)
    if set(given) != names or given["precision"] not in ("fp32", "bf16"):
        raise ValueError(f"facts: {', '.join(sorted(names))} are wanted, precision fp32 or bf16")
    for name, wanted in (("backbones", study.backbones), ("tasks", study.evaluate)):
        if missing := [one for one in wanted if not isinstance(given[name].get(one), str)]:
            raise ValueError(f"facts.{name} lacks {missing[0]}")
    return Facts(**given)


def _put_failures(ledger: Ledger, plan: Plan, failures: Sequence[Mapping[str, Any]]) -> None:
    """Record the failures in the ledger, if they are of runs that the study has, or may have with more seeds."""
    study = plan.study
    pairs = {(arm, backbone) for arm in study.arms for backbone in study.backbones}
    runs = {run.id: run for run in extend(plan, study.seeds.reserve, pairs).runs}
    for failure in failures:
        ledger.fail(runs[failure["id"]], int(failure["attempt"]), str(failure["error"]), "")


def _put_repeats(ledger: Ledger, runs: Sequence[Run], repeats: Sequence[Mapping[str, Any]]) -> None:
    """Record in the ledger the outcomes of running runs twice. ValueError if the study does not have the run."""
    known = {run.id: run.label for run in runs}
    for repeat in repeats:
        if known.get(repeat["run"]) != repeat["label"]:
            raise ValueError("repeats.json tells of a run that the study does not ask for")
        ledger.keep_repeat(Reproduction(**repeat))


def _entries_held(run: Run, held: Collection[str]) -> Iterator[str]:
    """The entries of a run in the ledger, even if it is unfinished: they show what was seen of a claim."""
    return (entry for entry in run.entries_in(held) if entry in held)


def _strange_entries(runs: Sequence[Run], ledger: Ledger) -> Iterator[tuple[str, Any, Any]]:
    """A difference for each entry that belongs to no run of the study."""
    held = ledger.entries()
    own = {entry for run in runs for entry in _entries_held(run, held)}
    for entry in sorted(held - own):
        yield f"ledger/{entry}", "enclosed", "of no run that the study asks for"


def _differing_metrics(
    runs: Sequence[Run], ledger: Ledger, better: Mapping[str, bool]
) -> Iterator[tuple[str, Any, Any]]:
    """A difference for each metric that is not the aggregate of its items, or has not its task's direction."""
    held = ledger.entries()
    for run in {run.id: run for run in runs if not run.lacking(held)}.values():
        metrics = ledger.record(run).metrics
        for name, found in metrics.items():
            if found.larger_is_better != better.get(name, found.larger_is_better):
                yield f"{run.label}: {name}: larger_is_better", found.larger_is_better, better[name]
        for entry in dict.fromkeys(metric.entry for metric in metrics.values()):
            items = ledger.items(entry)
            for metric in items["metric"].unique().to_pylist():
                rows = of_metric(items, metric)
                gold = None if rows["gold"].null_count == rows.num_rows else numbers(rows["gold"])
                kind = metrics[metric].aggregate
                if kind is None:
                    raise StudyError(f"{run.label}: {metric} has items but no way to add them up")
                again = aggregate(kind, numbers(rows["value"]), gold)
                if not _same(metrics[metric].value, again):
                    yield f"{run.label}: {metric}", metrics[metric].value, again


def comparable(printed: Mapping[str, Any]) -> dict[str, Any]:
    """The printed findings without fields that may differ. Deeper keys, such as names of arms, are kept."""
    kept = _without(WHEN_AND_WHERE, printed)
    return kept | {"runs": [_without(OF_A_RUN, row) for row in kept["runs"]]}


def _without(names: Collection[str], content: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if name not in names}


def differing(place: str, printed: Any, again: Any) -> Iterator[tuple[str, Any, Any]]:
    """Every place where the printed value is not the recomputed one: (place, printed, again)."""
    if isinstance(printed, Mapping) and isinstance(again, Mapping):
        for key in dict.fromkeys((*printed, *again)):
            yield from differing(f"{place}.{key}".lstrip("."), printed.get(key), again.get(key))
    elif isinstance(printed, list) and isinstance(again, list) and len(printed) == len(again):
        for index, (left, right) in enumerate(zip(printed, again, strict=True)):
            yield from differing(f"{place}[{_name(left, index)}]", left, right)
    elif not _same(printed, again):
        yield place, printed, again


def _name(entry: Any, index: int) -> str:
    """The name of a list's entry for a person: its claim, its run or its number."""
    if isinstance(entry, Mapping):
        verdict = entry.get("verdict")
        if isinstance(verdict, Mapping):
            return str(verdict.get("claim", index))
        return str(entry.get("id", entry.get("seed", index)))
    return str(index)


def _same(left: Any, right: Any) -> bool:
    """Equal to 12 digits: processors may differ in the last bits of a sum."""
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-12, abs_tol=1e-15) or (math.isnan(left) and math.isnan(right))
    return left == right


def _figures_in(content: Any) -> int:
    """The number of floats in nested lists and mappings."""
    if isinstance(content, Mapping):
        content = list(content.values())
    return sum(map(_figures_in, content)) if isinstance(content, list) else int(isinstance(content, float))


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _without_nan(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(entry) for entry in value]
    if hasattr(value, "item"):  # a numpy scalar
        value = value.item()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
