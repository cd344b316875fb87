"""Adding seeds until the claim is decided: error rate at any stopping time, and what the freedom costs or saves.

    python benchmarks/seeds_until_decided.py [--replications 20000] [--futility 2000]

A/A: both arms equal, looked at after every seed up to 50. A/B: deltas with a true effect of dz, stopped at
the first rejection or at the declared maximum of 20 seeds. Futility: the same with a smallest effect worth
reporting, which stops where 20 seeds could hardly show it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from scipy import stats
from tables import save

from evaluators.significance.futility import HOPELESS, chance_left
from evaluators.significance.power import Noise, power_paired_t, seeds_required
from evaluators.significance.sequential import Sequential, e_values, running_moments

N_MAX, LOOKS, ALPHA = 20, 50, 0.05
TAU2 = Sequential().tau2
START = 5  # seeds before the first look for futility
PLANNED_DZ = 0.8  # the smallest effect a fixed design would have been sized for


def crashing(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Both arms lose 4 sd in 5 % of their seeds: deltas stay symmetric."""
    lost = (rng.uniform(size=(2, *shape)) < 0.05) * 4.0
    return rng.normal(size=shape) + lost[0] - lost[1]


NOISE: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "t, 4 df": lambda rng, shape: rng.standard_t(4, size=shape),
    "crashes in both arms": crashing,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=20_000)
    parser.add_argument("--futility", type=int, default=2_000, help="replays of a row of the second table")
    options = parser.parse_args()
    replications = options.replications
    rng = np.random.default_rng(20)
    rows = [null_row(name, draw(rng, (replications, LOOKS))) for name, draw in NOISE.items()]
    rows += [
        effect_row(dz, rng.normal(dz, 1, size=(replications, N_MAX))) for dz in (0.5, 0.8, 1.0, 1.5, 2.0, 3.0)
    ]
    fixed = seeds_required(Noise(), effect=PLANNED_DZ)
    save(
        "seeds_until_decided",
        f"Seeds until decided: t e-process, {replications:,} replays per row",
        rows,
        [
            f"No effect: looks after every seed from 2 to {LOOKS}; the standard error of a rate of .05 is "
            f"{np.sqrt(0.05 * 0.95 / replications):.4f}.",
            f"With an effect: at most {N_MAX} seeds; wrong sign counts as a false positive.",
            "Fixed, equal power: seeds a paired t test would need for the power reached (at most .999), had the "
            "effect been known beforehand. It never is: looking costs seeds against that.",
            f"Fixed, planned: a design sized for dz = {PLANNED_DZ} runs {fixed} seeds whatever the effect.",
        ],
    )

    hopeless(options.futility)


def hopeless(replications: int) -> None:
    """The second table: what stopping for futility saves, and what it loses."""
    rng = np.random.default_rng(21)
    rows = [futile_row(worth, dz, replications, rng) for worth in (0.5, 0.8, 1.2) for dz in (0.0, 0.4, 0.8, 1.2)]
    save(
        "seeds_until_futile",
        f"Stopping for futility: {replications:,} replays per row, looks from seed {START} to {N_MAX}",
        rows,
        [
            f"Effects in sds of the deltas. Given up where the chance of showing it by seed {N_MAX}, were the "
            "effect worth reporting the true one (or the observed one, where that is larger), is below "
            f"{HOPELESS:g}.",
            "Shown: rejected with the sign that was claimed. At least: 1 - beta / (1 - .1), the bound of Lan, "
            "Simon and Halperin for effects up to the one worth reporting, their sd taken as known.",
            "False positives: rejections where the true effect is 0, of either sign.",
            f"The standard error of a rate of .5 is {np.sqrt(0.25 / replications):.3f}, of .05 "
            f"{np.sqrt(0.05 * 0.95 / replications):.4f}.",
        ],
    )


def futile_row(worth: float, dz: float, replications: int, rng: np.random.Generator) -> dict[str, object]:
    deltas = rng.normal(dz, 1, size=(replications, N_MAX))
    crossed = e_values(deltas, TAU2) >= 1 / ALPHA
    whole = np.where(crossed.any(1), crossed.argmax(1) + 1, N_MAX)
    whole = np.maximum(whole, START)  # these seeds run whatever they show
    positive = running_moments(deltas)[0][np.arange(replications), crossed.argmax(1)] > 0
    given_up = np.array([futile_at(row, worth, end, rng) for row, end in zip(deltas, whole, strict=True)])
    decided = crossed.any(1)
    shown, kept = decided & positive, decided & (given_up == 0)
    beta = 1 - shown.mean()
    ends = np.where(given_up > 0, given_up, whole)
    return {
        "worth reporting": worth,
        "true effect": dz,
        "shown, all looks": round(float(shown.mean()), 4),
        "shown, with futility": round(float((kept & positive).mean()), 4),
        "at least": round(max(0.0, 1 - beta / (1 - HOPELESS)), 4) if dz <= worth else "-",
        "false positives": round(float(kept.mean()), 4) if dz == 0 else "-",
        "given up": round(float((given_up > 0).mean()), 4),
        "mean seeds, all looks": round(float(whole.mean()), 2),
        "mean seeds, with futility": round(float(ends.mean()), 2),
        "saved": f"{100 * (1 - ends.mean() / whole.mean()):.0f} %",
    }


def futile_at(deltas: np.ndarray, worth: float, end: int, rng: np.random.Generator) -> int:
    """The number of seeds at which the study gives up before its end; 0: never."""
    for n in range(START, end):
        if chance_left(deltas[:n], worth, n_max=N_MAX, rng=rng, tau2=TAU2) < HOPELESS:
            return n
    return 0


def null_row(name: str, deltas: np.ndarray) -> dict[str, object]:
    mean, sd = running_moments(deltas)
    n = np.arange(2, LOOKS + 1)
    t = np.abs(mean[:, 1:]) / sd[:, 1:] * np.sqrt(n)
    repeated = (t > stats.t.ppf(1 - ALPHA / 2, n - 1)).any(1).mean()
    return row(f"A/A, {name}", false=(e_values(deltas, TAU2) >= 1 / ALPHA).any(1).mean(), repeated=float(repeated))


def effect_row(dz: float, deltas: np.ndarray) -> dict[str, object]:
    crossed = e_values(deltas, TAU2) >= 1 / ALPHA
    stop = np.where(crossed.any(1), crossed.argmax(1) + 1, N_MAX)
    at_stop = running_moments(deltas)[0][np.arange(len(deltas)), stop - 1]
    power = float((crossed.any(1) & (at_stop > 0)).mean())
    planned = seeds_required(Noise(), effect=PLANNED_DZ) or 0
    equal = seeds_required(Noise(), effect=dz, power_asked=min(power, 0.999)) or 0
    return row(
        f"A/B, dz = {dz}",
        false=(crossed.any(1) & (at_stop < 0)).mean(),
        power=power,
        mean=float(stop.mean()),
        median=float(np.median(stop)),
        equal=equal,
        saved_equal=f"{100 * (1 - stop.mean() / equal):+.0f} %",
        planned=f"{planned} (power {power_paired_t(planned, dz):.3f})",
        saved=f"{100 * (1 - stop.mean() / planned):+.0f} %",
    )


def row(case: str, *, false: float, **known: object) -> dict[str, object]:
    return {
        "case": case,
        "false positives": round(float(false), 4),
        "repeated t test": known.get("repeated", "-"),
        "decided": known.get("power", "-"),
        "mean seeds": known.get("mean", "-"),
        "median seeds": known.get("median", "-"),
        "fixed, equal power": known.get("equal", "-"),
        "saved": known.get("saved_equal", "-"),
        "fixed, planned": known.get("planned", "-"),
        "saved against the plan": known.get("saved", "-"),
    }


if __name__ == "__main__":
    main()
