"""The study passport: one file that holds every score behind a report, and the check that recomputes the report.

A zip: `<study>.yaml`, `runs.json` (every run of the plan, resolved), `findings.json` (what was printed) and
`ledger/`, the study's part of the ledger without models. `verify` needs neither models nor data nor network.
"""

from __future__ import annotations

import json
import math
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestration.study.errors import StudyError
from orchestration.study.run import Run

if TYPE_CHECKING:
    from orchestration.ledger.ledger import Ledger
    from orchestration.study.study import Study
    from orchestration.verdicts.findings import Findings

FORMAT = 1
PLACES = ("created", "ledger", "location", "problem")  # where and when, not what: allowed to differ
RULE = "rule"  # told apart: another version of the rule may well judge the same scores otherwise


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What `verify` did: how many figures it recomputed, and those that differ as (place, printed, recomputed).

    rules: the versions of the rule by which the study was judged when it was printed, and here; 0: not told.
    """

    study: str
    rules: tuple[int, int]
    figures: int
    differences: tuple[tuple[str, Any, Any], ...]


def write_passport(path: Path, study: Study, runs: Sequence[Run], ledger: Ledger, findings: Findings) -> None:
    """Write the study's scores, claims, versions and printed figures into one file, atomically."""
    from orchestration.verdicts.declared import declaration_of
    from orchestration.verdicts.evidence import StudyRecords

    held = ledger.entries()
    temporary = path.with_name(f".{path.name}.tmp")
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("passport.json", json.dumps({"format": FORMAT, "study": study.name}))
        archive.writestr(f"{study.name}.yaml", study.path.read_bytes())
        archive.writestr("runs.json", json.dumps([run.to_dict() for run in runs], indent=1))
        archive.writestr("findings.json", json.dumps(plain(findings), indent=1))
        finished = [run for run in runs if not run.lacking(held)]
        for entry in dict.fromkeys(entry for run in finished for entry in ledger.entries_of(run)):
            for name, content in ledger.files(entry).items():
                archive.writestr(f"ledger/{entry}/{name}", content)
        failures = [asdict(failure) for failure in ledger.failed().values() if failure.id in {r.id for r in runs}]
        archive.writestr("failures.json", json.dumps(failures))
        declaration = declaration_of(StudyRecords(study, runs, ledger))
        if declaration is not None:
            archive.writestr("declared.json", json.dumps([dict(claim) for claim in declaration.claims]))
    temporary.replace(path)


def verify(path: Path) -> Verification:
    """Recompute every figure of a passport from its item-level scores. StudyError when the file is not one."""
    with tempfile.TemporaryDirectory(prefix="semray-passport-") as folder:
        name = _unpack(path, Path(folder))
        return _check(name, Path(folder))


def plain(findings: Findings) -> dict[str, Any]:
    """The findings as JSON types, without nan."""
    return json.loads(json.dumps(_without_nan(asdict(findings))))


def _unpack(path: Path, folder: Path) -> str:
    """Unzip and return the study's name."""
    try:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)  # zipfile drops absolute names and ".."
        header = json.loads((folder / "passport.json").read_text())
        if header["format"] != FORMAT:
            raise ValueError(f"format {header['format']}, this version reads {FORMAT}")
        if not (folder / f"{header['study']}.yaml").resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"study {header['study']!r} is not a name")
        return header["study"]
    except FileNotFoundError:
        raise StudyError(
            f"{path}: not found\n  accepted: a file that `semray report --passport FILE` wrote"
        ) from None
    except (zipfile.BadZipFile, OSError, ValueError, KeyError, TypeError) as error:
        raise StudyError(f"{path}: not a readable passport ({error})") from None


def _check(name: str, folder: Path) -> Verification:
    from orchestration.ledger.ledger import Ledger
    from orchestration.reading.read_study import read_study
    from orchestration.verdicts.distributions import with_distributions
    from orchestration.verdicts.find import find

    study, ledger = read_study(folder / f"{name}.yaml"), Ledger(folder / "ledger")
    try:
        runs = [Run.from_dict(fields) for fields in json.loads((folder / "runs.json").read_text())]
        for failure in json.loads((folder / "failures.json").read_text()):
            ledger.fail(Run.from_dict(failure["run"]), failure["attempt"], failure["error"], "")
        printed = json.loads((folder / "findings.json").read_text())
        if (folder / "declared.json").exists():
            ledger.declare(name, json.loads((folder / "declared.json").read_text()))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StudyError(f"{name}: the passport is damaged ({error})") from None
    again = plain(with_distributions(find(study, runs, ledger), ledger))
    rules = printed.pop(RULE, 0), again.pop(RULE)
    differences = [*_differing_aggregates(runs, ledger), *_differing("", printed, again)]
    return Verification(
        study=name, rules=rules, figures=sum(1 for _ in _figures(again)), differences=tuple(differences)
    )


def _differing_aggregates(runs: Sequence[Run], ledger: Ledger) -> Iterator[tuple[str, Any, Any]]:
    """Metrics that are not the aggregate of their items."""
    from evaluators.metrics.item_metrics import aggregate

    held = ledger.entries()
    for run in {run.id: run for run in runs if not run.lacking(held)}.values():
        metrics = ledger.record(run).metrics
        for entry in dict.fromkeys(metric.entry for metric in metrics.values()):
            for metric, rows in ledger.items(entry).to_pandas().groupby("metric", observed=True):
                gold = None if rows["gold"].isna().all() else rows["gold"].to_numpy()
                kind = metrics[metric].aggregate
                if kind is None:
                    raise StudyError(f"{run.label}: {metric} has items but no way to add them up")
                again = aggregate(kind, rows["value"].to_numpy(), gold)
                if not _same(metrics[metric].value, again):
                    yield f"{run.label}: {metric}", metrics[metric].value, again


def _differing(place: str, printed: Any, again: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(printed, Mapping) and isinstance(again, Mapping):
        for key in dict.fromkeys((*printed, *again)):
            if key not in PLACES:
                yield from _differing(f"{place}.{key}".lstrip("."), printed.get(key), again.get(key))
    elif isinstance(printed, list) and isinstance(again, list) and len(printed) == len(again):
        for index, (left, right) in enumerate(zip(printed, again, strict=True)):
            yield from _differing(f"{place}[{_name(left, index)}]", left, right)
    elif not _same(printed, again):
        yield place, printed, again


def _name(entry: Any, index: int) -> str:
    """How a person calls an entry of a list: its claim, its run or its number."""
    if isinstance(entry, Mapping):
        named = entry.get("verdict")
        if isinstance(named, Mapping):
            return str(named.get("claim", index))
        return str(entry.get("id", entry.get("seed", index)))
    return str(index)


def _same(left: Any, right: Any) -> bool:
    """Equal to 12 digits: processors may differ in the last bits of a sum."""
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-12, abs_tol=1e-15) or (math.isnan(left) and math.isnan(right))
    return left == right


def _figures(value: Any) -> Iterator[float]:
    if isinstance(value, Mapping):
        for entry in value.values():
            yield from _figures(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _figures(entry)
    elif isinstance(value, float):
        yield value


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _without_nan(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(entry) for entry in value]
    if hasattr(value, "item"):  # a numpy scalar
        value = value.item()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
