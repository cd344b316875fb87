"""When even all seeds could hardly show a claim: stopping a study until decided for futility.

Method: stochastic curtailment (Lan, Simon and Halperin 1982). An open claim is given up where the chance that it
would still be shown, were the true difference what it was declared to be worth reporting, is below `HOPELESS`.

The rule is not binding: it never enters a p. The e-process rejects a true null at any of its looks in at most
alpha of all studies (Ville's inequality), and giving up can only take looks away, so the type-I error is not
raised, nor is it where seeds are added all the same. What it costs is power: for the declared difference, or any
smaller one, the chance of missing it grows from beta to at most beta / (1 - HOPELESS) (their bound).

Departures: they take the sd for known. Here it is drawn from what the deltas seen so far leave open, the true
difference given (1/sigma prior), so that few seeds do not pass for certainty. And where more was observed than
declared, the observed difference is taken for the true one, so that a large effect is not given up because a small
one was declared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from evaluators.significance.claims import Claim
from evaluators.significance.level import ALPHA
from evaluators.significance.sequential import e_values, log_e, running_moments

HOPELESS = 0.10
DRAWS = 1000  # of what is still to come; a chance of HOPELESS is then known to .01


def may_stop(claim: Claim) -> bool:
    """True if a claim may stop for futility: a claim of a difference with a smallest effect worth reporting.

    A claim with a margin does not stop, since it may still be found equivalent. Only claims of a difference
    can lack one.
    """
    return claim.min_effect is not None and claim.margin is None


def chance_left(
    deltas: np.ndarray,
    worth: float,
    *,
    n_max: int,
    rng: np.random.Generator,
    tau2: float,
    draws: int = DRAWS,
) -> float:
    """Chance that the e-process has crossed 1/ALPHA above zero by n_max seeds, if `worth` or more is true.

    deltas (n,): seen so far, n >= 2 and not all equal, turned so that positive is what is claimed. worth > 0. 1
    where they crossed it already. The level is that of a claim alone: no correction asks less, so none understates
    the chance.
    """
    if np.any((e_values(deltas, tau2) >= 1 / ALPHA) & (running_moments(deltas)[0] > 0)):
        return 1.0
    n, true = len(deltas), max(worth, float(deltas.mean()))
    spread = math.sqrt(np.square(deltas - true).sum())
    seen = (deltas - true) / spread  # all that follows is measured from the true difference in this unit
    coming = rng.standard_normal((draws, n_max - n)) / np.sqrt(rng.chisquare(n, size=(draws, 1)))
    seeds = np.arange(n + 1, n_max + 1)
    total = seen.sum() + coming.cumsum(axis=1)  # (draws, n_max - n)
    squares = 1 + np.square(coming).cumsum(axis=1)
    mean = total / seeds + true / spread
    variance = squares - total**2 / seeds  # (n - 1) sd²
    t2_over_df = mean**2 * seeds / variance
    shown = (log_e(t2_over_df, seeds, tau2) >= -math.log(ALPHA)) & (mean > 0)
    return float(shown.any(axis=1).mean())


def joint_chance(chances: Sequence[float], least: int) -> float:
    """An upper bound of the chance that at least `least` parts are shown, from the chance of each part.

    At least u of n parts are shown only if one of any n - u + 1 is; so the sum of the n - u + 1 smallest chances
    is a bound, however the parts depend on each other (Bonferroni).
    """
    return min(1.0, math.fsum(sorted(chances)[: len(chances) - least + 1]))
