"""Words, figures and rows of tables that all forms of the report share.

Differences are oriented: positive favours the treatment, even if smaller is better.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

from evaluators.significance.level import places_of_p
from orchestration.study.names import in_one_line, slug
from orchestration.study.run import of_seed, on

if TYPE_CHECKING:
    from evaluators.significance.verdict import Verdict, Word
    from orchestration.verdicts.findings import Finding, Findings

NONE = "–"
MOST_PLACES = 6  # decimals of a figure
PUBLISHED = "published"  # a column that is shown if a paper prints a figure for a claim
FLAGS = {
    "check_arms_differ": "both score the same at every seed: the metric may be at its end, or the arms alike",
    "degenerate": "its differences are equal at all seeds: there is no noise to hold them against",
    "within_rounding": "both score the same but for rounding: the arms may be alike, or an offset too large",
}
TOO_MANY = "over 20 % of the pairs, or two or more in one arm alone, are too many to compare the others"
CLAIM_HEAD = ("claim", "comparison", "metric", "difference [95 %]", "seeds agree", "verdict")


@dataclass(frozen=True, kw_only=True)
class ClaimRow:
    """One comparison in words."""

    claim: str
    comparison: str  # "B1 - B0", with the backbone when the study has several
    metric: str
    difference: str  # "+0.102 [+0.098, +0.106]"
    agree: str  # "8/8"
    verdict: str  # "better (difference p = .012)"
    kind: Word
    remarks: tuple[str, ...]  # "exploratory", "not as expected", "1 pair incomplete"
    published: str  # "+0.102 (1 seed), same sign"


@dataclass(frozen=True, kw_only=True)
class ArmCell:
    """The result of one arm on one metric: "0.512 ± 0.003" over n seeds."""

    text: str
    n: int


def anchor(verdict: Verdict) -> str:
    """A unique name of the comparison for ids in a page and for file names."""
    return f"claim-{slug(json.dumps([verdict.claim, verdict.backbone, verdict.metric], ensure_ascii=False))}"


def claim_rows(findings: Findings) -> list[ClaimRow]:
    """One row per comparison, in the order they were declared."""
    several = len(findings.backbones) > 1
    return [_claim_row(finding, several) for finding in findings.findings]


def _claim_row(finding: Finding, several: bool) -> ClaimRow:
    verdict = finding.verdict
    comparison = f"{verdict.treatment} - {verdict.control}"
    return ClaimRow(
        claim=verdict.claim,
        comparison=f"{comparison} on {verdict.backbone}" if several and verdict.backbone else comparison,
        metric=verdict.metric,
        difference=difference(verdict),
        agree=agreement(verdict),
        verdict=verdict.words + (f" ({answers(verdict)})" if answers(verdict) else ""),
        kind=verdict.verdict,
        remarks=(*remarks(verdict), *finding.caveats),
        published=finding.published,
    )


def agreement(verdict: Verdict) -> str:
    """How many paired seeds agree with the verdict, else with the mean, in sign: "8/8"; NONE without a mean, or
    if seeds change neither arm."""
    has_sign = verdict.sign_agreement is not None and not verdict.seedless
    return f"{verdict.k_agree}/{verdict.n_seeds}" if has_sign else NONE


def agreement_words(finding: Finding) -> str:
    """The agreement in words beside a verdict: "8/8 seeds agree"; "" if no mean has a sign."""
    from evaluators.significance.wording import ALIKE, ONE_RUN

    if finding.verdict.seedless:
        return ONE_RUN if finding.one_run else ALIKE
    return "" if finding.verdict.sign_agreement is None else f"{agreement(finding.verdict)} seeds agree"


def remarks(verdict: Verdict) -> tuple[str, ...]:
    """Reservations about the verdict that its own words do not give."""
    found = []
    if verdict.as_expected is False:
        found.append(expected(verdict))
    if verdict.advice:
        found.append(verdict.advice)
    if conflict := _conflict(verdict):
        found.append(conflict)
    if verdict.dropped:
        too_many = f": {TOO_MANY}" if "runs missing" in verdict.words else ""
        found.append(f"no pair for seed {_dropped(verdict)}{too_many}")
    return (
        *found,
        *(FLAGS.get(flag, flag.replace("_", " ")) for flag in verdict.flags if flag not in verdict.words),
    )


def _dropped(verdict: Verdict) -> str:
    """Seeds without a pair, by the reason: "1, 4 (control: no finished run)"."""
    by_reason: dict[str, list[str]] = {}
    for seed, reason in verdict.dropped:
        by_reason.setdefault(reason, []).append(str(seed))
    return "; ".join(f"{', '.join(seeds)} ({reason})" for reason, seeds in by_reason.items())


def _conflict(verdict: Verdict) -> str:
    """A remark if the sign-flip test and Student's interval disagree on whether the difference is 0; else ""."""
    flips = verdict.test is not None and "sign-flip" in verdict.test
    on_difference = verdict.expect != "equivalent" or verdict.verdict in ("better", "worse")
    if not (flips and on_difference and known(verdict.p) and known(verdict.ci_low) and known(verdict.ci_high)):
        return ""
    holds = verdict.ci_low <= 0 <= verdict.ci_high
    if holds == (verdict.p > verdict.alpha):
        return ""
    interval = f"the interval is Student's t and {'holds' if holds else 'leaves out'} 0"
    return f"{interval}; the sign-flip test, which decides, has p {p_text(verdict.p)} alone"


def expected(verdict: Verdict) -> str:
    """The declared expectation: "expected not worse", "expected all of 2 to hold"."""
    return f"expected {verdict.expect.replace('_', ' ')}{' to hold' if verdict.parts else ''}"


def answers(verdict: Verdict) -> str:
    """The corrected p values of the verdict with their questions, the deciding first: "difference p = .012"."""
    from evaluators.significance.wording import questions

    return ", ".join(f"{one.asked} p {p_text(one.adjusted)}" for one in questions(verdict))


def difference(verdict: Verdict) -> str:
    """Mean delta and its 95 % interval, or only the mean if there is no interval."""
    if not known(verdict.delta_mean):
        return NONE
    places = decimals(verdict)
    mean = figure(verdict.delta_mean, places, "+")
    if not (known(verdict.ci_low) and known(verdict.ci_high)):
        return mean
    return f"{mean} [{figure(verdict.ci_low, places, '+')}, {figure(verdict.ci_high, places, '+')}]"


def decimals(verdict: Verdict) -> int:
    """So many decimals that one digit of the interval's half width shows, at least three as a rule."""
    if known(verdict.ci_low) and known(verdict.ci_high):
        return places_for((verdict.ci_high - verdict.ci_low) / 2)
    return places_for(abs(verdict.delta_mean or 0.0))


def places_for(width: float) -> int:
    """Decimals that show one digit of `width`, between 3 and 6; fewer for widths of 10 and more."""
    if not known(width) or width <= 0:
        return 3
    magnitude = math.floor(math.log10(width))
    return max(0, 2 - magnitude) if magnitude >= 1 else min(MOST_PLACES, max(3, -magnitude))


def figure(value: float, places: int, sign: str = "") -> str:
    """The value with so many decimals; as 1.54e-08 if even the most decimals would show only zeros."""
    if places >= MOST_PLACES and 0 < abs(value) < 10.0**-MOST_PLACES:
        return f"{value:{sign}#.3g}"
    return f"{value:{sign}z.{places}f}"


def p_text(p: float | None) -> str:
    """`= .012`; `< .0001` below that; near the level, enough digits to see on which side of it p is."""
    if p is None or not known(p):
        return NONE
    if p < 1e-4:
        return "< .0001"
    return f"= {p:.{places_of_p(p, 4 if p < 0.01 else 3)}f}".replace("0.", ".", 1)


def known(value: float | None) -> TypeGuard[float]:
    """Whether the value is a finite number."""
    return value is not None and math.isfinite(value)


def complete_pairs(verdict: Verdict) -> list[dict[str, float]]:
    """The pairs that both arms have, for plots; only the first if seeds change neither arm."""
    complete = [pair for pair in verdict.per_seed if known(pair["treatment"]) and known(pair["control"])]
    return complete[:1] if verdict.seedless else complete


def each_run(verdict: Verdict) -> str:
    """The range of the tests that compare two correlations seed by seed; "" if there are none."""
    if not verdict.each_run:
        return ""
    statistics, ps = ([one[name] for one in verdict.each_run] for name in ("statistic", "p"))
    spans = [
        f"{min(values):{form}} to {max(values):{form}}" for values, form in ((statistics, "+.2f"), (ps, ".3g"))
    ]
    return (
        f"{verdict.each_run[0]['test']} {spans[0]}, p {spans[1]}, of {len(statistics)} runs of each arm; "
        "they share their items and are never pooled"
    )


def compared_metrics(findings: Findings) -> list[str]:
    """The metrics that comparisons name, in table order; all metrics if there are no comparisons."""
    named = {finding.verdict.metric for finding in findings.findings}
    return [metric for metric in findings.metrics if metric in named] or list(findings.metrics)


def arm_cell(values: Iterable[float]) -> ArmCell:
    """Mean ± standard deviation over seeds (n - 1 in the denominator); a single value without ±."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return ArmCell(text=NONE, n=0)
    mean = statistics.fmean(finite)
    if len(finite) == 1:
        return ArmCell(text=figure(mean, places_for(abs(mean) / 100)), n=1)
    spread = statistics.stdev(finite)
    places = places_for(spread)
    return ArmCell(text=f"{figure(mean, places)} ± {figure(spread, places)}", n=len(finite))


def arm_rows(findings: Findings, metrics: Sequence[str]) -> list[tuple[str, ...]]:
    """A row for every arm: its name, its backbone, and "0.512 ± 0.003 (8)" for each metric."""

    def cell(arm: str, backbone: str, metric: str) -> str:
        found = arm_cell(findings.values(arm, backbone, metric).values())
        return f"{found.text} ({found.n})"

    return [
        (arm, backbone, *(cell(arm, backbone, metric) for metric in metrics))
        for backbone in findings.backbones
        for arm in findings.arms
        if findings.of(arm, backbone)
    ]


def any_published(several: Iterable[Findings]) -> bool:
    """Whether a paper prints a figure for any claim."""
    return any(finding.published for findings in several for finding in findings.findings)


def claim_head(several: Iterable[Findings]) -> tuple[str, ...]:
    """The head of a table of claims of these studies."""
    return (*CLAIM_HEAD, PUBLISHED) if any_published(several) else CLAIM_HEAD


def claim_cells(findings: Findings, published: bool | None = None) -> list[tuple[str, ...]]:
    """The rows below `claim_head`; a star points to the remarks. published: whether to add that column."""
    with_published = any_published([findings]) if published is None else published
    return [
        (
            row.claim,
            row.comparison,
            row.metric,
            row.difference,
            row.agree,
            row.verdict + (" *" if row.remarks else ""),
            *([row.published or NONE] if with_published else []),
        )
        for row in claim_rows(findings)
    ]


def arm_cells(findings: Findings) -> list[tuple[str, ...]]:
    """Head and rows of the table of arms on the compared metrics, with backbones if there are several."""
    metrics, several = compared_metrics(findings), len(findings.backbones) > 1
    rows = [("arm", "backbone", *metrics), *arm_rows(findings, metrics)]
    return rows if several else [(arm, *cells) for arm, _, *cells in rows]


def cost_rows(findings: Findings) -> list[tuple[str, str, str, str, str, str]]:
    """Rows on training time: arm, backbone, runs, seconds a step with range, per 1,000 rows, against controls.

    Controls are the arms that claims compare the arm with, on the same backbone.
    """
    a_step = {(cost.arm, cost.backbone): cost.a_step for cost in findings.costs}
    controls: dict[str, dict[str, None]] = {}
    for finding in findings.findings:
        controls.setdefault(finding.verdict.treatment, {})[finding.verdict.control] = None
    return [
        (
            cost.arm,
            cost.backbone,
            str(cost.runs),
            _seconds(cost.a_step)
            + (f" ({_seconds(cost.least)} to {_seconds(cost.most)})" if cost.runs > 1 else ""),
            NONE if cost.thousand_rows is None else _seconds(cost.thousand_rows),
            ", ".join(
                f"{cost.a_step / a_step[control, cost.backbone]:.2f} × {control}"
                for control in controls.get(cost.arm, ())
                if (control, cost.backbone) in a_step
            )
            or NONE,
        )
        for cost in findings.costs
    ]


def _seconds(value: float) -> str:
    return f"{value:#.3g}".rstrip(".")


def caption(findings: Findings) -> str:
    """The caption of a table of claims: seeds, tests, corrections, correlation of arms, gain by pairing."""
    verdicts = [finding.verdict for finding in findings.findings]
    counts = sorted({verdict.n_seeds for verdict in verdicts if not verdict.seedless})
    tests = tests_of(verdicts)
    correlations = [verdict.correlation for verdict in verdicts if known(verdict.correlation)]
    if any(known(verdict.tost_p) for verdict in verdicts):
        tests.append("two one-sided tests for equivalence")
    parts = [f"{_range(counts)} seed{'s' * (counts != [1])}, paired"] if counts else []
    parts += _seedless(findings.findings)
    parts.append(", ".join((*tests, *_corrections(verdicts))))
    if correlations:
        parts.append(f"arms correlate {_range([round(value, 2) for value in sorted(correlations)])} at equal seed")
    unpaired = sorted(verdict.unpaired_seeds for verdict in verdicts if verdict.unpaired_seeds)
    if unpaired:
        parts.append(f"pairing stands for {_range(unpaired)} unpaired seeds an arm")
    return "; ".join(part for part in parts if part)


def _seedless(findings: Sequence[Finding]) -> Iterator[str]:
    """Parts of the caption on claims whose arms do not vary with the seed: one run each, or equal runs."""
    from evaluators.significance.wording import ALIKE, ONE_RUN

    seedless = [finding for finding in findings if finding.verdict.seedless]
    single = sum(finding.one_run for finding in seedless)
    for words, count, why in ((ONE_RUN, single, ": no seed moves a figure"), (ALIKE, len(seedless) - single, "")):
        if count:
            which = "" if count == len(findings) else f" in {count} of {len(findings)} claims"
            yield words + which + why


def _corrections(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Parts of the caption: corrections of p values, with how many comparisons; a joint claim counts once."""
    whole = [verdict for verdict in verdicts if not verdict.part_of]
    declared = [verdict for verdict in whole if not verdict.exploratory]
    late = [verdict for verdict in whole if verdict.exploratory]

    def over(size: int, claims: int) -> str:
        return str(size) if size == claims else f"{size} hypotheses in {claims}"

    groups = {verdict.group: verdict.family_size for verdict in declared}
    if max(groups.values(), default=0) > 1:
        sizes = [
            over(size, sum(verdict.group == group for verdict in declared)) + (f" of {group}" if group else "")
            for group, size in groups.items()
        ]
        yield f"Holm over {' and over '.join(sizes)} declared comparisons"
    if late and late[0].family_size > 1:
        yield f"Benjamini-Hochberg over {over(late[0].family_size, len(late))} exploratory comparisons"


def tests_of(verdicts: Sequence[Verdict]) -> list[str]:
    """The names of the tests of these verdicts, each once."""
    return list(dict.fromkeys(verdict.test for verdict in verdicts if verdict.test))


def _range(ordered: Sequence[float]) -> str:
    low, high = ordered[0], ordered[-1]
    return f"{low}" if low == high else f"{low} to {high}"


def unfinished(findings: Findings) -> list[str]:
    """A line for each failed run, and one for all missing runs."""
    lines = [
        f"failed   {row.arm}{on(row.backbone)}{of_seed(row.seed)}   {in_one_line(row.problem)}"
        for row in findings.with_status("failed")
    ]
    missing = findings.with_status("missing")
    if missing:
        arms = ", ".join(dict.fromkeys(row.arm for row in missing))
        lines.append(f"missing  {len(missing)} of {len(findings.runs)} runs ({arms}): not in the ledger")
    return lines
