"""The record of a judged comparison, and its construction from evidence and decision."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from corpora.store.json_text import finite
from evaluators.metrics.item_metrics import pearson
from evaluators.significance.claims import Claim
from evaluators.significance.comparisons import PairedSeeds
from evaluators.significance.decision import Decision, Word, as_expected
from evaluators.significance.evidence import Evidence, Rules, generator_key, stream
from evaluators.significance.futility import HOPELESS
from evaluators.significance.level import ALPHA
from evaluators.significance.seed_tests import bca, effect_dz, hedges_factor, levelled, sd, sign_test, wilcoxon
from evaluators.significance.sequential import Anytime

# Raised whenever the same scores would be judged otherwise: docs/significance.md lists the changes of each rule,
# and a test compares golden outcomes.
RULE = 10
DECLARED = ("claim", "metric", "expect", "margin", "min_effect", "matched_control", "signal")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A verdict with all the evidence behind it. Numbers that do not exist are None, never NaN.

    Deltas are positive if the treatment is better, in units of the metric. `p` belongs to the difference (to "not
    worse", if that was declared), `tost_p` to equivalence; adjusted ones are corrected for the group. Fields with
    a default describe a single difference and are empty for a joint claim.
    """

    # the declaration
    id: str
    claim: str
    treatment: str
    control: str
    backbone: str
    metric: str
    larger_is_better: bool
    expect: str
    margin: float | None = None
    min_effect: float | None = None
    declared_scope: str
    matched_control: str | None = None
    signal: str | None = None
    group: str
    exploratory: bool
    alpha: float
    family_size: int  # null hypotheses of the group that can be true together: what p is corrected for
    family_digest: str

    # the seeds
    n_seeds: int
    per_seed: tuple[dict[str, float], ...] = ()  # seed, treatment, control, delta, matched_control if there is one
    dropped: tuple[tuple[int, str], ...]
    delta_mean: float | None = None
    delta_sd: float | None = None
    delta_min: float | None = None
    delta_max: float | None = None
    k_agree: int = 0
    sign_agreement: float | None = None
    effect_dz: float | None = None
    hedges_g: float | None = None
    correlation: float | None = None  # between the arms at equal seed
    unpaired_seeds: int | None = None  # seeds per arm that would give the same standard error without pairing

    # the test
    test: str | None
    statistic: float | None = None
    df: float | None = None  # of the seeds
    p: float | None
    p_adjusted: float | None
    tost_p: float | None = None
    tost_p_adjusted: float | None = None
    worse_p: float | None = None  # where "not worse" was declared
    worse_p_adjusted: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    ci_bonferroni_low: float | None = None
    ci_bonferroni_high: float | None = None
    # sign and Wilcoxon p, BCa limits from 10 seeds: they decide nothing
    descriptive: dict[str, float] = field(default_factory=dict)

    # the items
    n_items: int | None = None
    n_groups: int | None = None
    v_seed: float | None = None
    v_item: float | None = None
    v_both: float | None = None
    v_item_method: str | None = None
    df_items: float | None = None
    p_seeds_alone: float | None = None
    p_items_alone: float | None = None
    p_crossed: float | None = None
    two_level_low: float | None = None
    two_level_high: float | None = None
    single_run: dict[str, Any] | None = None
    # test, statistic, p of each seed's two correlations: they decide nothing
    each_run: tuple[dict[str, Any], ...] = ()

    # growing seeds
    e_values: tuple[float, ...] = ()
    cs_low: float | None = None
    cs_high: float | None = None

    # signal isolation
    signal_p: float | None = None
    signal_p_adjusted: float | None = None
    signal_delta: float | None = None
    share: float | None = None
    share_low: float | None = None
    share_high: float | None = None

    # the outcome
    verdict: Word
    words: str
    advice: str = ""  # with a shown difference: what would tell on which side of the margin it lies
    sentence: str
    scope: str
    as_expected: bool | None  # None while open
    k_more: int | None = None
    k_more_upper: int | None = None
    flags: tuple[str, ...] = ()
    generator_seed: int = 0
    parts: int | None = None  # number of parts of a joint claim, which have the differences
    part_of: str | None = None  # the joint claim that this is a part of; a part's p is not corrected
    chance_left: float | None = None  # if open: the chance that all seeds of a study until decided would show it

    @property
    def seedless(self) -> bool:
        """True if neither arm varies with the seed: one run of each stands at all seeds, so none can agree."""
        return len({(pair["treatment"], pair["control"]) for pair in self.per_seed}) == 1 < self.n_seeds

    @property
    def hopeless(self) -> bool:
        """True if no further seeds are added for it, since even all of them could hardly show it."""
        return self.chance_left is not None and self.chance_left < HOPELESS

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers, strings and None, ready for json."""
        return {field.name: finite(getattr(self, field.name)) for field in fields(self)}


def record(
    claim: Claim, pairs: PairedSeeds, evidence: Evidence, q: dict[str, float], decision: Decision, rules: Rules
) -> dict[str, Any]:
    """Every field of a `Verdict` except words and sentence."""
    verdict = decision.verdict
    primary = "not worse" if claim.expect == "not_worse" else "difference"
    return {
        **{name: getattr(claim, name) for name in DECLARED},
        "treatment": str(claim.treatment),
        "control": str(claim.control),
        "backbone": claim.backbone or "",
        "group": claim.family or "",
        "exploratory": pairs.exploratory,
        "declared_scope": claim.scope,
        "id": claim.id,
        "larger_is_better": pairs.larger_is_better,
        "alpha": ALPHA,
        "family_size": rules.nulls,
        "family_digest": rules.digest,
        "verdict": verdict,
        "as_expected": as_expected(claim, evidence, verdict, q),
        "advice": decision.advice,
        "scope": evidence.scope,
        "flags": evidence.flags,
        "chance_left": decision.chance_left,
        "k_more": decision.more.k if decision.more else None,
        "k_more_upper": decision.more.k_upper if decision.more else None,
        "test": evidence.test,
        "p": _number(evidence.lines[primary]),
        "p_adjusted": _number(q[primary]),
        "tost_p": _number(evidence.lines.get("equivalent")),
        "tost_p_adjusted": _number(q.get("equivalent")),
        "worse_p": _number(evidence.lines.get("worse")),
        "worse_p_adjusted": _number(q.get("worse")),
        "generator_seed": generator_key(claim.scores, "items"),
        **_seed_numbers(claim, pairs, evidence, verdict),
        **_test_numbers(evidence, rules),
        **_item_numbers(pairs, evidence),
        **_signal_numbers(evidence, q),
    }


def _seed_numbers(claim: Claim, pairs: PairedSeeds, evidence: Evidence, verdict: Word) -> dict[str, Any]:
    deltas, n = evidence.deltas, len(evidence.deltas)
    scores = zip(pairs.seeds, pairs.treatment, pairs.control, deltas.tolist(), strict=True)
    per_seed = [{"seed": s, "treatment": t, "control": c, "delta": d} for s, t, c, d in scores]
    for row, value in zip(per_seed, pairs.matched_control or (), strict=False):
        row["matched_control"] = value
    shown = {"better": 1.0, "worse": -1.0}.get(verdict)  # the mean of growing seeds may have changed sign since
    direction = np.sign(deltas.mean()) if shown is None and n else shown
    agree = 0 if pairs.identical else int(np.sum(np.sign(levelled(deltas, pairs.scale)) == direction))
    spread = n >= 2 and not pairs.flat
    treatment, control = np.array(pairs.treatment), np.array(pairs.control)
    both_vary = n >= 3 and np.ptp(treatment) > 0 and np.ptp(control) > 0
    unpaired = n * sum((sd(arm) / sd(deltas)) ** 2 for arm in (treatment, control)) if spread else None
    return {
        "n_seeds": n,
        "per_seed": tuple(per_seed),
        "dropped": pairs.dropped,
        "delta_mean": float(deltas.mean()) if n else None,
        "delta_sd": (sd(deltas) if spread else 0.0) if n >= 2 else None,
        "delta_min": float(deltas.min()) if n else None,
        "delta_max": float(deltas.max()) if n else None,
        "k_agree": agree,
        "sign_agreement": agree / n if n else None,
        "effect_dz": effect_dz(deltas) if spread else None,
        "hedges_g": effect_dz(deltas) * hedges_factor(n) if spread and n >= 3 else None,
        "correlation": pearson(treatment, control) if both_vary else None,
        "unpaired_seeds": None if unpaired is None else int(np.ceil(unpaired - 1e-9)),
        "descriptive": _described(claim, deltas, pairs.scale) if evidence.refusal is None else {},
    }


def _described(claim: Claim, deltas: np.ndarray, scale: float) -> dict[str, float]:
    levels = levelled(deltas, scale)
    described = {"sign_p": sign_test(levels).p, "wilcoxon_p": wilcoxon(levels).p}
    interval = bca(deltas, stream(claim.scores, "bca")) if len(deltas) >= 10 else None
    return described if interval is None else described | {"bca_low": interval.low, "bca_high": interval.high}


def _test_numbers(evidence: Evidence, rules: Rules) -> dict[str, Any]:
    estimate = evidence.estimate
    low, high = estimate.interval(ALPHA) if estimate else (None, None)
    wide = estimate.interval(ALPHA / rules.nulls) if estimate else (None, None)
    e_values: tuple[float, ...] = ()
    statistic = df = None
    if isinstance(estimate, Anytime):
        e_values = tuple(estimate.path.tolist())
        statistic = e_values[-1]
    elif evidence.test and "sign-flip" in evidence.test:
        statistic = float(evidence.deltas.mean())
    elif estimate is not None:
        statistic, df = estimate.t, estimate.df
    return {
        "statistic": statistic,
        "df": df,
        "ci_low": _number(low),
        "ci_high": _number(high),
        "ci_bonferroni_low": _number(wide[0]),
        "ci_bonferroni_high": _number(wide[1]),
        "e_values": e_values,
        "cs_low": _number(low) if e_values else None,
        "cs_high": _number(high) if e_values else None,
    }


def _item_numbers(pairs: PairedSeeds, evidence: Evidence) -> dict[str, Any]:
    view = evidence.items.view if evidence.items else None
    crossed = evidence.items.crossed if evidence.items else None
    low, high = view.two_level if view and view.two_level else (None, None)
    return {
        "n_items": len(pairs.items.item_ids) if pairs.items else None,
        "n_groups": view.groups if view else None,
        "v_seed": _number(sd(evidence.deltas) ** 2 / len(evidence.deltas)) if view else None,
        "v_item": view.variance.v_item if view else None,
        "v_both": view.variance.v_both if view else None,
        "v_item_method": view.variance.method if view else None,
        "df_items": view.effective - 1 if view else None,
        "p_crossed": crossed.p if crossed else None,
        "p_seeds_alone": evidence.p_seeds_alone,
        "p_items_alone": evidence.p_items_alone,
        "two_level_low": low,
        "two_level_high": high,
        "single_run": asdict(evidence.single_run) if evidence.single_run else None,
        "each_run": tuple(asdict(test) for test in evidence.each_run),
    }


def _signal_numbers(evidence: Evidence, q: dict[str, float]) -> dict[str, Any]:
    second, share = evidence.against_matched, evidence.share
    return {
        "signal_p": _number(evidence.lines.get("signal")),
        "signal_p_adjusted": _number(q.get("signal")),
        "signal_delta": float(second.deltas.mean()) if second else None,
        "share": share.value if share else None,
        "share_low": share.low if share else None,
        "share_high": share.high if share else None,
    }


def _number(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)
