"""Does a plan promise what the verdict can keep?

    python benchmarks/plan_against_verdicts.py [--replications 2000] [--study FILE --ledger FOLDER]

Simulated: a plan sees three finished pairs and says the smallest difference that eight seeds can show with power
.80; then studies of eight seeds are drawn in which the true difference is just that, and judged. Beside it the
promise of a plan that knows the true spreads, and of one that asks a paired t and forgets the items.

A study with its ledger: what the plan said of each claim when three seeds were finished, against the same figure
from the spreads that the finished study found.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tables import save

from evaluators.significance.claims import Claim
from evaluators.significance.comparisons import PairedSeeds
from evaluators.significance.evidence import noise_of
from evaluators.significance.item_tests import crossed_t, item_variance
from evaluators.significance.level import ALPHA
from evaluators.significance.paired_items import ItemScores
from evaluators.significance.power import Noise, smallest_effect

PILOT, SEEDS, ITEMS = 3, 8, 300
# sd of what a seed, an item and a single cell add to the difference; in "both" seeds and items weigh alike
REGIMES = {
    "items dominate": (0.005, 0.5, 0.2),
    "both": (0.05, 0.3, 0.2),
    "seeds dominate": (0.1, 0.1, 0.1),
}
CLAIM = Claim(claim="H", treatment="A", control="B", metric="m", expect="better")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=2_000)
    parser.add_argument("--study", type=Path, help="a study that is finished in the ledger")
    parser.add_argument("--ledger", type=Path)
    given = parser.parse_args()
    rng = np.random.default_rng(13)
    rows = [row for regime in REGIMES for row in simulated(regime, given.replications, rng)]
    if given.study:
        rows += finished(given.study, given.ledger)
    save(
        "plan_against_verdicts",
        f"What a plan promises of {SEEDS} seeds, and what finished studies find",
        rows,
        [
            f"Simulated: {ITEMS} items; promised: mean of the smallest difference with power .80; found: share of "
            f"{given.replications:,} studies with that difference whose crossed t rejects.",
            f"{PILOT} pairs, from which a plan begins to rest on them, know their spread badly: single promises "
            "scatter.",
            "Studies: promised after three seeds, and the same figure from what the finished study found.",
        ],
    )


def simulated(regime: str, replications: int, rng: np.random.Generator) -> Iterator[dict[str, object]]:
    seed, item, cell = REGIMES[regime]
    truth = Noise(
        sd=float(np.hypot(seed, cell / ITEMS**0.5)), item=item / ITEMS**0.5, cell=cell / ITEMS**0.5, groups=ITEMS
    )

    pilots = [
        noise_of(CLAIM, drawn(PILOT, 0.0, regime, rng), with_items=True) for _ in range(max(1, replications // 4))
    ]
    plans = {
        "the true spreads": [truth],
        "three pairs": pilots,
        "the true sd, items forgotten": [Noise(sd=truth.sd)],
    }
    for known, noises in plans.items():
        promised = [smallest_effect(SEEDS, noise=noise) for noise in noises]
        studies = range(replications // len(noises))
        found = [shown(drawn(SEEDS, effect, regime, rng)) for effect in promised for _ in studies]
        yield {
            "study": f"simulated, {regime}",
            "plan knows": known,
            "promised": round(float(np.mean(promised)), 4),
            "from what was found": round(smallest_effect(SEEDS, noise=truth), 4),
            "found": round(float(np.mean(found)), 3),
        }


def drawn(n: int, effect: float, regime: str, rng: np.random.Generator) -> PairedSeeds:
    seed, item, cell = REGIMES[regime]
    control = np.zeros((n, ITEMS))
    treatment = effect + seed * rng.normal(size=(n, 1)) + item * rng.normal(size=ITEMS)
    treatment = treatment + cell * rng.normal(size=(n, ITEMS))
    ids = tuple(map(str, range(ITEMS)))
    items = ItemScores(aggregate="mean", treatment=treatment, control=control, item_ids=ids, group_ids=ids)
    means = tuple(treatment.mean(1).tolist())
    return PairedSeeds(seeds=tuple(range(n)), treatment=means, control=(0.0,) * n, items=items)


def shown(pairs: PairedSeeds) -> bool:
    assert pairs.items is not None
    variance = item_variance(pairs.items, np.random.default_rng(0))  # in closed form: nothing is drawn
    return crossed_t(pairs.deltas, variance.v_item, ITEMS, variance.v_both).p <= ALPHA


def finished(path: Path, ledger_folder: Path) -> Iterator[dict[str, object]]:
    from dataclasses import replace

    from orchestration.ledger.ledger import Ledger
    from orchestration.plan.held import planned
    from orchestration.plan.reach import reachability
    from orchestration.reading.read_study import read_study
    from orchestration.verdicts.pairing import seen
    from orchestration.verdicts.records import StudyRecords

    study, ledger = read_study(path), Ledger(ledger_folder)
    whole = planned(study, ledger)
    early = study.seeds.all[:PILOT]
    first = replace(whole, runs=tuple(run for run in whole.runs if run.seed in (None, *early)))
    said = [reachability(whole, seen(StudyRecords(study, plan.runs, ledger))) for plan in (first, whole)]
    for before, after in zip(*said, strict=True):
        yield {
            "study": f"{study.name}, {before.claim}",
            "plan knows": ", ".join(before.whence),
            "promised": round(before.smallest_difference or 0.0, 4),
            "from what was found": round(after.smallest_difference or 0.0, 4),
            "found": "",
        }


if __name__ == "__main__":
    main()
