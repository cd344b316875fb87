"""`semray check-claim`: is a published difference believable, and what would settle it?"""

from __future__ import annotations

import json
import math
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, variance

from evaluators.significance.level import ALPHA, POWER
from evaluators.significance.power import Noise, least_n, power
from evaluators.significance.published import SeedSpread, published
from evaluators.significance.repeats import Repeat, repeat
from evaluators.significance.sequential import Sequential, level_of_t, smallest_anytime_p
from orchestration.commands.terminal import DONE, ledger_of, say, study_file
from orchestration.families.registry import names
from orchestration.plan.held import planned
from orchestration.reading.read_study import read_study
from orchestration.study.errors import StudyError, written_to
from orchestration.study.writable import file_fits

PERCENT = 10  # figures so many times as large as a ledger's scores are percentages, so many times as small shares
FEWEST, MOST = 8, 200  # limits on seeds in the study that --write writes


@dataclass(frozen=True, kw_only=True)
class _Noise:
    """The spread of a figure over seeds, and the degrees of freedom of its estimate.

    typical: the mean size of the figure; 0 if published for shares. hours: of one run, if known.
    """

    spread: SeedSpread
    degrees: int
    typical: float = 0.0
    larger_is_better: bool = True
    hours: float | None = None


def check_claim(options: Namespace) -> int:
    """Print the noise of such figures, the chance that a repeat keeps the sign, and how many seeds settle it."""
    figures = (options.control, options.treatment)
    smaller, larger = sorted(map(abs, figures))
    if options.write:
        _check_new(Path(options.write))
    noise = _noise_of(options)
    unit = _unit(larger, noise.typical)
    in_two_units = 0 < smaller <= 1 and larger >= 10  # a share against a percentage
    if in_two_units or (larger > 100 and unit == 100):  # a perplexity of a ledger is no percentage
        raise StudyError(
            f"figures: {figures}\n  accepted: two figures of one metric, both as .7625 or both as 76.25"
        )
    sd = noise.spread.sd * unit
    found = repeat(*figures, sd, noise.degrees, options.seeds)
    if options.json:
        print(json.dumps(asdict(found) | {"spread": asdict(noise.spread), "hours_a_run": noise.hours}, indent=1))
    else:
        print("\n".join(_words(options, found, noise, sd, unit)))
    if options.write:
        _write(Path(options.write), options, found, noise, sd)
    return DONE


def _unit(larger: float, typical: float) -> float:
    """How many units of the figures are one of a ledger's scores, or of the published shares, whose typical is 0.

    larger: of the two figures.
    """
    if larger > 1 and larger > PERCENT * typical:
        return 100
    return 0.01 if larger <= 1 < typical and typical > PERCENT * larger else 1


def _noise_of(options: Namespace) -> _Noise:
    if options.study is not None:
        return _of_ledger(options)
    if options.metric is not None:
        raise StudyError(f"--metric {options.metric}\n  accepted: together with --study STUDY")
    if options.like not in published():
        raise StudyError(
            f"--like {options.like}: no figures of many seeds are known by that name\n  accepted: "
            f"{', '.join(published())}, or --study STUDY --metric METRIC for what a ledger holds"
        )
    spread = published()[options.like]
    return _Noise(spread=spread, degrees=spread.seeds - 1)


def _of_ledger(options: Namespace) -> _Noise:
    from orchestration.verdicts.find import find
    from orchestration.verdicts.growing import grown

    study, ledger = read_study(study_file(options.study)), ledger_of(options)
    findings = find(study, grown(planned(study, ledger), ledger).runs, ledger)
    if options.metric not in findings.metrics:
        given = "is missing" if options.metric is None else options.metric
        raise StudyError(f"--metric {given}\n  accepted: {', '.join(findings.metrics)}")
    arms = {(row.arm, row.backbone) for row in findings.runs}
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
    return _Noise(
        spread=spread,
        degrees=degrees,
        typical=fmean(abs(value) for values in kept for value in values),
        larger_is_better=findings.metrics[options.metric],
        hours=fmean(seconds) / 3600 if seconds else None,
    )


def _words(options: Namespace, found: Repeat, noise: _Noise, sd: float, unit: float) -> Sequence[str]:
    spread, digits = noise.spread, 2 if unit == 100 else 4
    alone = options.seeds == 1
    of_each, two = ("one seed each", "runs") if alone else (f"{options.seeds} seeds each", "such means")
    lines = [
        f"difference  {found.difference:+.{digits}f}, {of_each}",
        f"noise       {sd:.{digits}f} over seeds ({spread.metric}; {spread.source})",
        f"by chance   two {two} of one recipe differ as much in {_share(found.by_chance)} of cases",
        f"repeat      keeps the sign with a chance of {_share(found.keeps_sign)}, by these two figures alone",
    ]
    if noise.typical and unit != 1:
        taken = "percentages" if unit == 100 else "shares, and those of the ledger as percentages"
        lines.insert(
            0, f"unit        figures taken as {taken}: there {spread.metric} is about {noise.typical:.2g}"
        )
    if found.seeds is None:
        return [*lines, "settled by  no number of seeds up to 10,000"]
    cost = f", {found.seeds * 2 * noise.hours:.1f} hours at this ledger's pace" if noise.hours else ""
    return [*lines, f"settled by  {found.seeds} seeds each, unpaired{cost}; fewer where runs are paired by seed"]


def _check_new(path: Path) -> None:
    """Raise StudyError if the path exists or cannot be written."""
    if path.exists():
        raise StudyError(f"--write {path}: is there already\n  accepted: a file that is not")
    file_fits(path)


def _share(chance: float) -> str:
    """A chance in whole percents, never 0 % or 100 %."""
    return "less than 1%" if chance < 0.005 else "more than 99%" if chance > 0.995 else f"{chance:.0%}"


def _write(path: Path, options: Namespace, found: Repeat, noise: _Noise, sd: float) -> None:
    """Write a study file that would settle the claim, with seeds and claim; the person fills in the recipes.

    Its seeds suffice without pairing, by the e-process that judges studies with growing seeds.
    """
    spread, tau2 = noise.spread, Sequential().tau2
    unpaired = Noise(sd=sd * math.sqrt(2))

    def shown(seeds: int) -> bool:
        if smallest_anytime_p(seeds, tau2) > ALPHA:
            return False
        return power(seeds, unpaired, effect=found.difference, alpha=level_of_t(seeds, tau2, ALPHA)) >= POWER

    needed = least_n(shown, cap=MOST)
    most = max(FEWEST, needed or MOST)
    opening = f"Up to {most} seeds show" if needed else f"It would take more than {most} seeds to show"
    better = found.difference > 0 if noise.larger_is_better else found.difference < 0
    text = (
        f"# {options.control:g} against {options.treatment:g}: would it happen again? {spread.source}.\n"
        f"# {opening} a difference of this size without pairing; `semray plan` says what pairing saves.\n"
        "question: Is the published difference there?\n"
        f"family: FAMILY  # one of {', '.join(names())}\n"
        "backbones: [BACKBONE]\n"
        f"seeds: {{start: {min(FEWEST, found.seeds or MOST)}, max: {most}}}\n"
        "arms:\n"
        "  control: {}  # the settings of the first figure\n"
        "  treatment: {}  # the settings of the second\n"
        "evaluate: [TASK]\n"
        "compare:\n"
        "  - {claim: again, treatment: treatment, control: control,"
        f" metric: {spread.metric}, expect: {'better' if better else 'worse'}}}\n"
    )
    with written_to(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    say(f"study     {path}")
