"""`semray check-claim`: is a published difference believable, and what would settle it?"""

from __future__ import annotations

import json
import math
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean, variance

from evaluators.significance.published import SeedSpread, published
from evaluators.significance.repeats import Repeat, repeat
from orchestration.commands.terminal import DONE, ledger_of, say, study_file
from orchestration.families.registry import names
from orchestration.plan.held import planned
from orchestration.reading.read_study import read_study
from orchestration.study.errors import StudyError, written_to
from orchestration.study.writable import file_fits


def check_claim(options: Namespace) -> int:
    """The noise of such figures, the chance that a repeat keeps the sign, and the seeds that would settle it."""
    figures = (options.control, options.treatment)
    smaller, larger = sorted(map(abs, figures))
    in_two_units = 0 < smaller <= 1 and larger >= 10  # a share against a percentage
    if not (math.isfinite(smaller) and larger <= 100) or in_two_units:
        raise StudyError(
            f"figures: {figures}\n  accepted: two figures of one metric, both as .7625 or both as 76.25"
        )
    if options.write:
        _free(Path(options.write))
    unit = 100.0 if larger > 1 else 1.0
    spread, degrees, hours = _spread_of(options)
    found = repeat(*figures, spread.sd * unit, degrees, options.seeds)
    if options.json:
        print(json.dumps(asdict(found) | {"spread": asdict(spread), "hours_a_run": hours}, indent=1))
    else:
        print("\n".join(_words(options, found, spread, unit, hours)))
    if options.write:
        _write(Path(options.write), options, found, spread)
    return DONE


def _spread_of(options: Namespace) -> tuple[SeedSpread, int, float | None]:
    """The spread over seeds, its degrees of freedom, and hours a run where they are known."""
    if options.study:
        return _of_ledger(options)
    if options.metric:
        raise StudyError(f"--metric {options.metric}\n  accepted: together with --study STUDY")
    if options.like not in published():
        raise StudyError(
            f"--like {options.like}: no figures of many seeds are known by that name\n  accepted: "
            f"{', '.join(published())}, or --study STUDY --metric METRIC for what a ledger holds"
        )
    spread = published()[options.like]
    return spread, spread.seeds - 1, None


def _of_ledger(options: Namespace) -> tuple[SeedSpread, int, float | None]:
    from orchestration.verdicts.find import find
    from orchestration.verdicts.growing import grown

    study, ledger = read_study(study_file(options.study)), ledger_of(options)
    findings = find(study, grown(planned(study, ledger), ledger).runs, ledger)
    if options.metric not in findings.metrics:
        raise StudyError(f"--metric {options.metric}\n  accepted: {', '.join(findings.metrics)}")
    arms = {(row.arm, row.backbone) for row in findings.runs if row.seed is not None}
    groups = [list(findings.values(*arm, options.metric).values()) for arm in sorted(arms)]
    kept = [values for values in groups if len(values) > 1]
    if not kept:
        raise StudyError(
            f"{ledger.url}: holds no arm of {study.name} with {options.metric} at two seeds\n"
            "  accepted: a study that ran"
        )
    degrees = sum(len(values) - 1 for values in kept)
    pooled = math.sqrt(sum(variance(values) * (len(values) - 1) for values in kept) / degrees)
    if not pooled:
        raise StudyError(f"{ledger.url}: {options.metric} is the same at every seed: nothing there tells of noise")
    seconds = [row.seconds for row in findings.runs if row.seconds and row.seed is not None]
    source = f"{ledger.url}: {len(kept)} arms of {study.name}, {sum(map(len, kept))} runs"
    spread = SeedSpread(metric=options.metric, sd=pooled, seeds=sum(map(len, kept)), source=source)
    return spread, degrees, fmean(seconds) / 3600 if seconds else None


def _words(
    options: Namespace, found: Repeat, spread: SeedSpread, unit: float, hours: float | None
) -> Sequence[str]:
    digits = 2 if unit == 100 else 4
    of_each = "one seed each" if options.seeds == 1 else f"{options.seeds} seeds each"
    lines = [
        f"difference  {found.difference:+.{digits}f}, {of_each}",
        f"noise       {spread.sd * unit:.{digits}f} over seeds ({spread.metric}; {spread.source})",
        f"by chance   two runs of one recipe differ as much in {found.by_chance:.0%} of cases",
        f"repeat      keeps the sign with a chance of {found.keeps_sign:.0%}, by these two figures alone",
    ]
    if found.seeds is None:
        return [*lines, "settled by  no number of seeds up to 10,000"]
    cost = f", {found.seeds * 2 * hours:.1f} hours at this ledger's pace" if hours else ""
    return [*lines, f"settled by  {found.seeds} seeds each, unpaired{cost}; fewer where runs are paired by seed"]


def _free(path: Path) -> None:
    """StudyError where no new file can be put."""
    if path.exists():
        raise StudyError(f"--write {path}: is there already\n  accepted: a file that is not")
    file_fits(path)


def _write(path: Path, options: Namespace, found: Repeat, spread: SeedSpread) -> None:
    """A study file that would settle it: seeds and claim are there, recipes are the person's to fill in."""
    seeds = min(found.seeds or 200, 200)
    expect = "better" if found.difference > 0 else "worse"
    text = (
        f"# {options.control:g} against {options.treatment:g}: would it happen again? {spread.source}.\n"
        f"# {seeds} seeds show a difference of this size without pairing; `semray plan` says what pairing saves.\n"
        "question: Is the published difference there?\n"
        f"family: FAMILY  # one of {', '.join(names())}\n"
        "backbones: [BACKBONE]\n"
        f"seeds: {{start: {min(8, seeds)}, max: {max(8, seeds)}}}\n"
        "arms:\n"
        "  control: {}  # the settings of the first figure\n"
        "  treatment: {}  # the settings of the second\n"
        "evaluate: [TASK]\n"
        "compare:\n"
        "  - {claim: again, treatment: treatment, control: control,"
        f" metric: {spread.metric}, expect: {expect}}}\n"
    )
    with written_to(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    say(f"study     {path}")
