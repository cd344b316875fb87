"""Do verdicts hold their error rates? Simulated coverage of the crossed t and type-I error of every verdict path.

    python benchmarks/verdict_error_rates.py [PART …] [--replications 200]

Parts: coverage, coverage_few_seeds, again, few_seeds, type_one, papers, few_items; all unless some are named.
`again` simulates afresh, with four times the replications, what lay outside of 93-98 % in the kept table, `papers`
only the rows of means over tasks, gains, backbones and joint claims, `few_items` those of rare classes, few
groups and groups of which one is large.

World: gold g ~ N(0, 1); a model of quality rho predicts rho·g + sqrt(1 - rho²)·noise, half of the noise
shared by all seeds (what an item does to this recipe) and half fresh. rho varies with the seed. The true
values follow from orthant probabilities: accuracy and balanced accuracy 1/2 + asin(rho)/pi, AUC
1/2 + 2 asin(rho/sqrt 2)/pi, Spearman 6/pi asin(rho/2), averaged over the law of rho.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import special
from tables import RESULTS, save

from evaluators.metrics.item_metrics import aggregate
from evaluators.metrics.scores import Aggregate
from evaluators.significance.claims import Claim, Joint
from evaluators.significance.comparisons import PairedSeeds
from evaluators.significance.item_bootstrap import resampled_deltas
from evaluators.significance.item_tests import closed_form_variance, crossed_t, resampled_variance
from evaluators.significance.judge import judge
from evaluators.significance.level import ALPHA
from evaluators.significance.paired_items import ItemScores, ItemSum
from evaluators.significance.seed_tests import critical
from evaluators.significance.sequential import Sequential

QUALITY = (0.70, 0.65)  # of treatment and control
SEED_SD = {"items dominate": 0.003, "both": 0.02, "seeds dominate": 0.06}
KINDS: tuple[Aggregate, ...] = ("mean", "balanced_accuracy", "auc", "spearman")
INSIDE = (0.93, 0.98)  # the coverage that is asked for
OF_RHO: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "mean": lambda rho: 0.5 + np.arcsin(rho) / np.pi,
    "balanced_accuracy": lambda rho: 0.5 + np.arcsin(rho) / np.pi,
    "auc": lambda rho: 0.5 + 2 * np.arcsin(rho / np.sqrt(2)) / np.pi,
    "spearman": lambda rho: 6 / np.pi * np.arcsin(rho / 2),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", default=list(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--replications", type=int, default=200, help="of a cell with 10,000 items")
    given = parser.parse_args()
    for part in given.parts:
        PARTS[part](given.replications)


def look_at_few(replications: int) -> None:
    """Simulate the cells of two and three seeds."""
    rng = np.random.default_rng(6)
    sizes = (100, 1_000)
    cells = [(n, size, regime) for n in (2, 3) for size in sizes for regime in SEED_SD]
    rows = [row for n, size, regime in cells for row in coverage(n, size, regime, replications * MORE[size], rng)]
    save(
        "crossed_t_coverage_few_seeds",
        "Coverage of the nominal 95 % crossed-t interval at two and three seeds",
        rows,
        coverage_notes(rows),
    )


def look(replications: int) -> None:
    """Simulate every cell of five seeds and more."""
    rng = np.random.default_rng(7)
    rows = [
        row
        for n in (5, 10, 20)
        for size in (100, 1_000, 10_000)
        for regime in (SEED_SD if size < 10_000 else ["both"])
        for row in coverage(n, size, regime, replications * MORE[size], rng)
    ]
    save(
        "crossed_t_coverage",
        "Coverage of the nominal 95 % crossed-t interval",
        rows,
        coverage_notes(rows),
    )


def type_one(replications: int) -> None:
    """Simulate every verdict path where the truth is known."""
    save(
        "verdict_error_rates",
        "Type-I error of every verdict path at alpha = .05",
        list(type_one_rows(6 * replications, np.random.default_rng(9))),
        [
            "Every row is the whole path from scores to verdict; an error is a verdict that the simulated truth "
            "contradicts.",
            "Limit: .05 plus 2.6 standard errors.",
        ],
    )


def few_seeds(replications: int) -> None:
    """Simulate the crossed interval at few seeds."""
    save(
        "crossed_t_few_seeds",
        "Type-I error of the crossed t at two to four seeds, alpha = .05",
        list(crossed_grid(100 * replications, np.random.default_rng(9))),
        [
            f"seeds:items: the variance of the mean by seeds over that by {GRID_ITEMS} items; cell noise: of "
            "single (seed, item) cells, as much as the items' variance.",
            "From item scores to the interval; beside it what the same draws give with Satterthwaite's degrees of "
            "freedom.",
            "Limit: .05 plus 2.6 standard errors.",
        ],
    )


def look_again(replications: int) -> None:
    """Add a second, larger simulation of every cell with a metric outside of 93-98 %."""
    rng = np.random.default_rng(8)
    kept = json.loads((RESULTS / "crossed_t_coverage.json").read_text())
    first = [row for row in kept["rows"] if not row["regime"].endswith("again")]
    outside = [row for row in first if not INSIDE[0] <= row["coverage"] <= INSIDE[1]]
    cells = dict.fromkeys((row["seeds"], row["items"], row["regime"]) for row in outside)
    second = [
        row | {"regime": f"{row['regime']}, again"}
        for n, size, regime in cells
        for row in coverage(n, size, regime, 4 * replications, rng)
    ]
    if not second:
        return
    save(
        "crossed_t_coverage",
        kept["title"],
        [*first, *second],
        [
            *coverage_notes(first),
            "Rows `again`: cells with a metric outside, simulated afresh with four times the replications.",
        ],
    )


def coverage_notes(rows: list[dict[str, Any]]) -> list[str]:
    covered = [row["coverage"] for row in rows]
    errors = ", ".join(
        f"{100 * np.sqrt(0.0475 / count):.1f} with {count:,}"
        for count in sorted({row["replications"] for row in rows}, reverse=True)
    )
    sds = ", ".join(f"{regime} {sd}" for regime, sd in SEED_SD.items())
    return [
        f"{sum(INSIDE[0] <= share <= INSIDE[1] for share in covered)} of {len(covered)} cells lie in 93-98 %, "
        f"{sum(share > INSIDE[1] for share in covered)} above, {sum(share < INSIDE[0] for share in covered)} "
        f"below; mean {np.mean(covered):.3f}.",
        f"Standard error of a cell at 95 %, in points, by replications: {errors}.",
        "The four metrics of a cell share their simulated data and stray together.",
        "With 10,000 items one regime or none, for the time it takes.",
        f"True quality {QUALITY[0]} against {QUALITY[1]}; sd of quality over seeds: {sds}.",
        f"Item variance of AUC and Spearman from {BOOTSTRAP:,} resamples here, 2,000 in a verdict.",
    ]


BOOTSTRAP = 100
MORE = {100: 10, 1_000: 3, 10_000: 1}  # replications, relative to the largest cell


def coverage(n: int, size: int, regime: str, replications: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    truth = {
        kind: float(
            np.diff(
                [
                    weights @ of(quality_of(quality, SEED_SD[regime], nodes)) / weights.sum()
                    for quality in QUALITY[::-1]
                ]
            )[0]
        )
        for kind, of in OF_RHO.items()
    }
    hits = dict.fromkeys(KINDS, 0)
    for _ in range(replications):
        gold, arms = world(n, size, SEED_SD[regime], QUALITY, rng)
        for kind in KINDS:
            low, high = interval(scored(kind, gold, arms), rng)
            hits[kind] += low <= truth[kind] <= high
    return [
        {"seeds": n, "items": size, "regime": regime, "metric": "accuracy" if kind == "mean" else kind}
        | {"coverage": round(hit / replications, 4), "replications": replications}
        for kind, hit in hits.items()
    ]


def world(
    n: int,
    size: int,
    seed_sd: float,
    quality: tuple[float, ...],
    rng: np.random.Generator,
    common: float = 0.5,
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Gold (M,) and the predictions (n, M) of arms, which have this share of what seeds and items do in common."""
    shared, own = np.sqrt(common), np.sqrt(1 - common)
    gold = rng.normal(size=size)
    seed_common, item_common = rng.normal(size=n), rng.normal(size=size)
    arms = []
    for rho in quality:
        seed = shared * seed_common + own * rng.normal(size=n)
        item = shared * item_common + own * rng.normal(size=size)
        rho_i = quality_of(rho, seed_sd, seed)[:, None]
        noise = (item + rng.normal(size=(n, size))) / np.sqrt(2)
        arms.append(rho_i * gold + np.sqrt(1 - rho_i**2) * noise)
    return gold, arms


def quality_of(mean: float, sd: float, z: np.ndarray) -> np.ndarray:
    return np.clip(mean + sd * z, -0.99, 0.99)


def scored(kind: Aggregate, gold: np.ndarray, arms: list[np.ndarray]) -> ItemScores:
    """Items of one metric; balanced accuracy decides at 1/2, so predictions are shifted."""
    label = (gold > 0).astype(float)
    if kind == "mean":
        rows = [((arm > 0) == (gold > 0)).astype(float) for arm in arms]
    else:
        rows = [arm + 0.5 for arm in arms]
    ids = tuple(map(str, range(len(gold))))
    return ItemScores(
        aggregate=kind,
        treatment=rows[0],
        control=rows[1],
        gold=gold if kind == "spearman" else label,
        item_ids=ids,
        group_ids=ids,
    )


def interval(items: ItemScores, rng: np.random.Generator) -> tuple[float, float]:
    deltas = np.array([t - c for t, c in zip(*scores_of(items), strict=True)])
    variance = closed_form_variance(items)
    if variance is None:
        drawn = resampled_deltas(items, rng, BOOTSTRAP)
        assert drawn is not None
        variance = resampled_variance(items, drawn)
    return crossed_t(deltas, variance.v_item, items.effective, variance.v_both).interval(ALPHA)


def scores_of(items: ItemScores) -> list[tuple[float, ...]]:
    arms = (items.treatment, items.control)
    return [tuple(aggregate(items.aggregate, row, items.gold) for row in rows) for rows in arms]


def type_one_rows(replications: int, rng: np.random.Generator) -> Iterator[dict[str, object]]:
    for n in (2, 3, 5, 7):
        yield rate(f"better, paired t, n = {n}", replications, lambda n=n: one(rng.normal(size=n)))
    for n in (8, 10, 16):
        yield rate(f"better, exact sign-flip, n = {n}", replications, lambda n=n: one(rng.normal(size=n)))
    yield rate("better, drawn sign-flip, n = 20", replications // 10, lambda: one(rng.normal(size=20)))
    for n, heavy in ((5, "t, 4 df"), (10, "t, 4 df")):
        yield rate(f"better, {heavy}, n = {n}", replications, lambda n=n: one(rng.standard_t(4, size=n)))
    for n in (3, 5, 10):
        yield rate(
            f"equivalent at the edge of its margin (2 sd), n = {n}",
            replications,
            lambda n=n: one(rng.normal(2, 1, size=n), "equivalent", margin=2.0, wrong=("equivalent",)),
        )
        yield rate(
            f"not worse at its margin (1 sd), n = {n}",
            replications,
            lambda n=n: one(rng.normal(-1, 1, size=n), "not_worse", margin=1.0, wrong=("not worse",)),
        )
    yield rate("better or equivalent (margin 2 sd) at a difference of 2 sd, n = 5", replications, lambda: one(
        rng.normal(2, 1, size=5), margin=2.0, wrong=("equivalent", "worse")))  # fmt: skip
    yield rate("family of 5, Holm, n = 8: any error", replications // 4, lambda: family(rng, 8))
    yield rate(
        "family of 5 with margins, half at the edge, n = 10: any error", replications // 4, lambda: mixed(rng, 10)
    )
    yield rate(
        "gain due to the signal though only the control is beaten, n = 5", replications, lambda: signal(rng)
    )
    for n in (5, 7):
        yield rate(
            f"margin and matched control, both nulls true, n = {n}",
            replications,
            lambda n=n: margin_and_control(rng, n),
        )
    yield rate("growing seeds, looked at from 2 to 20", replications // 10, lambda: growing(rng))
    yield from rows_of_papers(replications, rng)
    yield from rows_of_few_items(replications, rng)
    for regime in SEED_SD:
        for kind, share in (("mean", 4), ("spearman", 20)):
            yield rate(
                f"crossed t, {'accuracy' if kind == 'mean' else kind}, n = 5, 300 items, {regime}",
                replications // share,
                lambda kind=kind, regime=regime: crossed(kind, SEED_SD[regime], rng),
            )


TASKS: tuple[tuple[Aggregate, int], ...] = (("mean", 300), ("spearman", 150), ("auc", 80))  # items of each
SEEDS = 8  # of a study that names none: untrained arms stand at each


def papers(replications: int) -> None:
    """Simulate again, of the kept table, what claims as papers make them give."""
    keep_beside(rows_of_papers(6 * replications, np.random.default_rng(10)))


def few_items(replications: int) -> None:
    """Simulate again, of the kept table, rare classes and few groups."""
    keep_beside(rows_of_few_items(6 * replications, np.random.default_rng(11)))


def keep_beside(rows: Iterator[dict[str, object]]) -> None:
    """Put these rows into the kept table of error rates."""
    kept = json.loads((RESULTS / "verdict_error_rates.json").read_text())
    found = {str(row["path"]): row for row in rows}
    old = [row for row in kept["rows"] if row["path"] not in found]
    save("verdict_error_rates", kept["title"], [*old, *found.values()], kept["notes"])


def rows_of_few_items(replications: int, rng: np.random.Generator) -> Iterator[dict[str, object]]:
    """Figures by class of which one is rare, means over few groups, and figures by class of a few large groups."""
    kinds: tuple[Aggregate, ...] = ("auc", "balanced_accuracy")
    for kind in kinds:
        for ones in (2, 3, 5, 10, 100):
            yield rate(
                f"crossed t, {kind}, n = 5, {ones} of 200 items labelled 1, items dominate",
                replications // 4,
                lambda kind=kind, ones=ones: rare_class(kind, ones, rng),
            )
    for groups in (5, 10, 30):
        yield rate(
            f"crossed t, mean over {groups} groups of 8 to 12 items, n = 5, groups dominate",
            replications // 4,
            lambda groups=groups: few_groups(groups, rng),
        )
    for kind in kinds:
        for texts, size, alone in ((1, 30, 100), (5, 40, 50), (1, 100, 50)):
            yield rate(
                f"crossed t, {kind}, n = 5, {texts} x {size} items in a text and {alone} alone, texts dominate",
                replications // 4,
                lambda kind=kind, sizes=[size] * texts + [1] * alone: large_texts(kind, sizes, rng),
            )


def rare_class(kind: Aggregate, ones: int, rng: np.random.Generator) -> bool:
    """Two arms of one quality: an item gets much of each, whatever its label, and little by chance."""
    label = np.where(np.arange(200) < ones, 0.5, -0.5)
    both = label + rng.normal(0, 0.5, 200)
    arms = [both + rng.normal(0, 0.7, 200) + rng.normal(0, 0.2, (5, 200)) for _ in range(2)]
    return told_apart([scored(kind, label, arms)])


def few_groups(groups: int, rng: np.random.Generator) -> bool:
    """Two arms that differ by what a group adds to either, and by noise of items and of single cells."""
    group = np.repeat(np.arange(groups), rng.integers(8, 13, size=groups))
    arms = [
        rng.normal(size=groups)[group] + rng.normal(0, 0.3, len(group)) + rng.normal(0, 0.1, (5, len(group)))
        for _ in range(2)
    ]
    items = scored("mean", arms[0][0], arms)
    return told_apart(
        [replace(items, treatment=arms[0], control=arms[1], group_ids=tuple(map(str, group.tolist())))]
    )


def large_texts(kind: Aggregate, sizes: Sequence[int], rng: np.random.Generator) -> bool:
    """Two arms of one quality: a text adds to either on all of its items, and on those labelled 1 once more."""
    text = np.repeat(np.arange(len(sizes)), sizes)
    label = np.tile([1.0, 0.0], len(text))[: len(text)]
    arms = []
    for _ in range(2):
        of_text, of_label = rng.normal(0, (0.6, 0.8), size=(len(sizes), 2)).T
        item = 0.6 * label + of_text[text] + of_label[text] * label + rng.normal(0, 0.4, len(text))
        arms.append(item + rng.normal(0, 0.1, (5, len(text))))
    return told_apart([replace(scored(kind, label - 0.5, arms), group_ids=tuple(map(str, text.tolist())))])


def rows_of_papers(replications: int, rng: np.random.Generator) -> Iterator[dict[str, object]]:
    """Means over tasks, gains against gains, other backbones, and several claims as one."""
    for regime in SEED_SD:
        for n in (3, 5):
            yield rate(
                f"mean of three tasks (accuracy, Spearman, AUC), 300, 150 and 80 items, n = {n}, {regime}",
                replications // 10,
                lambda n=n, regime=regime: over_tasks(n, SEED_SD[regime], rng),
            )
    yield rate(
        "crossed t, standard deviation over items, n = 5, 300 items",
        replications // 10,
        lambda: crossed("sd", SEED_SD["both"], rng),
    )
    for name, tasks in (
        ("accuracy, 300 items", (("mean", 300),)),
        ("Spearman, 150 items", (("spearman", 150),)),
        ("mean of three tasks, 300, 150 and 80 items", TASKS),
    ):
        yield rate(
            f"encoders as they are, one run of each arm, {name}",
            replications // 4,
            lambda tasks=tasks: as_they_are(tasks, rng),
        )
    yield rate(
        "mean of two tasks that share a third of their items, n = 5, items dominate",
        replications // 10,
        lambda: over_tasks(5, SEED_SD["items dominate"], rng, shared=100),
    )
    for regime in SEED_SD:
        yield rate(
            f"gain against gain, Spearman, n = 5, 200 items, {regime}",
            replications // 10,
            lambda regime=regime: gains(5, SEED_SD[regime], rng),
        )
    yield rate(
        "other backbones: arms with nothing in common, n = 5, 300 items",
        replications // 4,
        lambda: crossed("mean", SEED_SD["both"], rng, common=0.0),
    )
    for true, least, n in ((2, 3, 3), (2, 3, 6), (1, 2, 5), (0, 1, 5)):
        words = "all three" if least == 3 else f"at least {least} of three"
        yield rate(
            f"{words} hold, {true} of them truly, n = {n}",
            replications,
            lambda true=true, least=least, n=n: joined(true, least, n, rng),
        )
    yield rate("at least 2 of three hold, none truly or otherwise, n = 5: holds or fails", replications,
               lambda: joined(0, 2, 5, rng, wrong=("holds", "fails")))  # fmt: skip
    yield rate("better than each of two controls, level with one, n = 5", replications, lambda: joined(
        1, 2, 5, rng, parts=2))  # fmt: skip
    yield rate("better and equivalent at the edge of its margin, n = 5", replications, lambda: mixed_parts(rng))
    yield rate(
        "Holm over three joint claims of two, each with one null part, n = 5: any error",
        replications // 2,
        lambda: several_joint(rng),
    )


def over_tasks(n: int, seed_sd: float, rng: np.random.Generator, shared: int = 0) -> bool:
    """A mean over tasks, none of which differs; with `shared`, of two with so many items in common."""
    if shared:
        gold, arms = world(n, 600 - shared, seed_sd, (0.65, 0.65), rng)
        places = (slice(0, 300), slice(300 - shared, 600 - shared))
        terms = [
            named_items(scored("spearman", gold[at], [arm[:, at] for arm in arms]), "pair", at.start)
            for at in places
        ]
    else:
        terms = [
            named_items(scored(kind, *world(n, size, seed_sd, (0.65, 0.65), rng)), kind) for kind, size in TASKS
        ]
    return told_apart(terms)


def as_they_are(tasks: Sequence[tuple[Aggregate, int]], rng: np.random.Generator) -> bool:
    """Two untrained arms, neither better: one run of each, which stands at all seeds of the study."""
    terms = []
    for kind, size in tasks:
        once = named_items(scored(kind, *world(1, size, 0.0, (0.65, 0.65), rng)), kind)
        treatment, control = (np.repeat(rows, SEEDS, axis=0) for rows in (once.treatment, once.control))
        terms.append(replace(once, treatment=treatment, control=control))
    return told_apart(terms)


def told_apart(terms: Sequence[ItemScores]) -> bool:
    """Whether a claim on the mean over these tasks is decided, where no arm is better."""
    items = terms[0] if len(terms) == 1 else ItemSum(tuple((1 / len(terms), term) for term in terms))
    means = np.mean([scores_of(term) for term in terms], axis=0)  # (2, n)
    seeds = tuple(range(means.shape[1]))
    pairs = PairedSeeds(seeds=seeds, treatment=tuple(means[0]), control=tuple(means[1]), items=items)
    return judge([(claim(), pairs)])[0].verdict != "undecided"


def named_items(items: ItemScores, task: str, first: int = 0) -> ItemScores:
    """The same items under names of their task's own."""
    names = tuple(f"{task}/{first + int(item)}" for item in items.item_ids)
    return replace(items, item_ids=names, group_ids=names)


def gains(n: int, seed_sd: float, rng: np.random.Generator) -> bool:
    """Two arms that truly gain as much, each over an arm of its own, on the same items."""
    gold, arms = world(n, 200, seed_sd, (0.68, 0.60, 0.68, 0.60), rng)
    parts = [scored("spearman", gold, arms[at : at + 2]) for at in (0, 2)]
    gained = [np.subtract(*map(np.array, scores_of(part))) for part in parts]
    items = ItemSum(((1.0, parts[0]), (-1.0, parts[1])))
    pairs = PairedSeeds(seeds=tuple(range(n)), treatment=tuple(gained[0]), control=tuple(gained[1]), items=items)
    return judge([(claim(), pairs)])[0].verdict != "undecided"


def joined(
    true: int, least: int, n: int, rng: np.random.Generator, parts: int = 3, wrong: tuple[str, ...] = ("holds",)
) -> bool:
    """Of some parts, `true` hold by far and in all others nothing differs."""
    together = Joint(claim="J", all=tuple(claim(name=f"P{k}") for k in range(parts)), at_least=least)
    scores = [paired(rng.normal(6 if k < true else 0, 1, size=n)) for k in range(parts)]
    return judge([(together, scores)])[0].verdict in wrong


def mixed_parts(rng: np.random.Generator) -> bool:
    """Better by far on one metric, as far apart as the margin on the other."""
    together = Joint(claim="J", all=(claim(name="P1"), claim("equivalent", name="P2", margin=2.0)))
    scores = [paired(rng.normal(mean, 1, size=5)) for mean in (6.0, 2.0)]
    return judge([(together, scores)])[0].verdict == "holds"


def several_joint(rng: np.random.Generator) -> bool:
    cases = [
        (
            Joint(claim=f"J{k}", all=(claim(name=f"J{k}.1"), claim(name=f"J{k}.2"))),
            [paired(rng.normal(mean, 1, size=5)) for mean in (6.0, 0.0)],
        )
        for k in range(3)
    ]
    return any(found.verdict == "holds" for found in judge(cases))


RATIOS = (0, 0.1, 0.3, 1, 3, 10, 30, 100)  # seed variance of the mean over its item variance
GRID_ITEMS, CELL = 100, 1.0  # noise of single cells, as a multiple of the item variance of the mean


def crossed_grid(replications: int, rng: np.random.Generator) -> Iterator[dict[str, object]]:
    """From item scores to the crossed interval where the null holds: few seeds, every share of seeds and items."""
    for n in (2, 3, 4):
        for cell in (0.0, CELL):
            for ratio in RATIOS:
                sds = np.sqrt([n * ratio, GRID_ITEMS, cell * n * GRID_ITEMS])
                parts = [beyond(n, sds, size, rng) for size in [1_000] * (replications // 1_000)]
                wrong, satterthwaite = np.concatenate(parts, axis=1)
                cells = {"seeds": n, "seeds:items": ratio, "cell noise": "yes" if cell else "no"}
                yield cells | share(wrong) | {"by Satterthwaite's df": round(float(satterthwaite.mean()), 4)}


def beyond(n: int, sds: np.ndarray, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Whether the interval of each draw misses the true 0, and whether Satterthwaite's would. (2, draws)

    sds: of what a seed, an item and a single cell add to the difference of two arms.
    """
    seed, item = rng.normal(size=(draws, n, 1)), rng.normal(size=(draws, 1, GRID_ITEMS))
    cell = rng.normal(size=(draws, n, GRID_ITEMS))
    differences = sds[0] * seed + sds[1] * item + sds[2] * cell
    deltas = differences.mean(2)
    v_seed = deltas.var(1, ddof=1) / n
    v_item = differences.mean(1).var(1, ddof=1) / GRID_ITEMS
    each = differences.var(2, ddof=1).mean(1) / GRID_ITEMS  # a seed's own, as in `ItemVariance.of`
    v_both = np.maximum(0, each - v_item) / (n - 1)
    variance = np.maximum(np.maximum(v_seed + v_item - v_both, v_seed), v_item)
    errors = np.abs(deltas.mean(1)) / np.sqrt(variance)
    df = variance**2 / (v_seed**2 / (n - 1) + v_item**2 / (GRID_ITEMS - 1))
    limit = critical(ALPHA / 2, n - 1, GRID_ITEMS - 1, v_item / (v_seed + v_item))
    return np.array([errors >= limit, errors >= -special.stdtrit(df, ALPHA / 2)])


def margin_and_control(rng: np.random.Generator, n: int) -> bool:
    """A treatment as far above the control as the margin, and level with the matched control."""
    pairs = paired(rng.normal(2, 1, size=n))
    matched = tuple(np.array(pairs.treatment) - rng.normal(0, 1, size=n))
    declared = claim(margin=2.0, matched_control="C", signal="the signal")
    found = judge([(declared, replace(pairs, matched_control=matched))])[0]
    return found.verdict in ("equivalent", "worse") or ", due to" in found.words


def rate(path: str, replications: int, wrong: Callable[[], bool]) -> dict[str, object]:
    return {"path": path, **share(np.array([wrong() for _ in range(max(1, replications))]))}


def share(wrong: np.ndarray) -> dict[str, object]:
    """How often a path went wrong, and whether that is within alpha. wrong (R,): of each replication."""
    found, limit = float(wrong.mean()), ALPHA + 2.6 * np.sqrt(ALPHA * (1 - ALPHA) / len(wrong))
    return {
        "type-I error": round(found, 4),
        "limit": round(float(limit), 4),
        "holds": "yes" if found <= limit else "no",
        "replications": len(wrong),
    }


def claim(expect: str = "better", name: str = "H", **declared: object) -> Claim:
    return Claim(claim=name, treatment="A", control="B", metric="m", expect=expect, **declared)  # type: ignore[arg-type]


def paired(deltas: np.ndarray, **more: object) -> PairedSeeds:
    control = np.sin(np.arange(len(deltas)))  # any scores that vary
    arms = {"treatment": tuple(control + deltas), "control": tuple(control)}
    return PairedSeeds(seeds=tuple(range(len(deltas))), **arms, **more)  # type: ignore[arg-type]


def one(
    deltas: np.ndarray, expect: str = "better", *, wrong: tuple[str, ...] = ("better", "worse"), **declared: object
) -> bool:
    return judge([(claim(expect, **declared), paired(deltas))])[0].verdict in wrong


def family(rng: np.random.Generator, n: int) -> bool:
    found = judge([(claim(name=f"H{k}"), paired(rng.normal(size=n))) for k in range(5)])
    return any(verdict.verdict != "undecided" for verdict in found)


def mixed(rng: np.random.Generator, n: int) -> bool:
    """Two claims without a difference, three at the edge of their margin of 1.5 sd."""
    true = (0.0, 0.0, 1.5, 1.5, 1.5)
    found = judge(
        [(claim(name=f"H{k}", margin=1.5), paired(rng.normal(mean, 1, size=n))) for k, mean in enumerate(true)]
    )
    null = [verdict.verdict in ("better", "worse") for verdict in found[:2]]
    return any(null) or any(verdict.verdict in ("equivalent", "worse") for verdict in found[2:])


def signal(rng: np.random.Generator) -> bool:
    pairs = paired(rng.normal(3, 1, size=5))
    matched = tuple(np.array(pairs.treatment) - rng.normal(0, 1, size=5))
    declared = claim(matched_control="C", signal="the signal")
    pairs = PairedSeeds(
        seeds=pairs.seeds, treatment=pairs.treatment, control=pairs.control, matched_control=matched
    )
    return ", due to" in judge([(declared, pairs)])[0].words


def growing(rng: np.random.Generator) -> bool:
    deltas = rng.normal(size=20)
    rule = Sequential()
    return any(
        judge([(claim(), paired(deltas[:n]))], sequential=rule)[0].verdict != "undecided" for n in range(2, 21)
    )


def crossed(kind: Aggregate, seed_sd: float, rng: np.random.Generator, common: float = 0.5) -> bool:
    gold, arms = world(5, 300, seed_sd, (0.65, 0.65), rng, common)
    items = scored(kind, gold, arms)
    treatment, control = scores_of(items)
    pairs = PairedSeeds(seeds=tuple(range(5)), treatment=treatment, control=control, items=items)
    return judge([(claim(), pairs)])[0].verdict != "undecided"


PARTS: dict[str, Callable[[int], None]] = {
    "coverage": look,
    "coverage_few_seeds": look_at_few,
    "again": look_again,
    "few_seeds": few_seeds,
    "type_one": type_one,
    "papers": papers,
    "few_items": few_items,
}

if __name__ == "__main__":
    main()
