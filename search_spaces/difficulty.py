"""The search space of the difficulty family: which settings of a pair or per-sentence arm may move, and how far.

One trial is one stack: the treated arm and its control, all selection seeds. The objective to search by is
`dev/{task}/isolated_gain`: Spearman on held-out training pairs, over the better of the control without the
difficulty signal and the frozen cosine. Spearman alone would reward a small gamma, which is no difficulty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from trainers.difficulty import Settings, defining


@dataclass(frozen=True)
class LogUniform:
    """A number between low and high, equally likely in every octave."""

    low: float
    high: float


@dataclass(frozen=True)
class Choice:
    """One of these values."""

    values: tuple[Any, ...]


SPACE: dict[str, LogUniform | Choice] = {
    "gamma": LogUniform(0.02, 2.0),
    "lambda_rank": Choice((0.0, 0.03, 0.1, 0.3)),
    "lambda_hard": Choice((0.1, 0.5, 1.0)),
    "lambda_anchor": Choice((0.0, 0.05, 0.2)),
    "learning_rate": LogUniform(1e-4, 3e-3),
    "weight_decay": Choice((0.0, 1e-2, 1e-1)),
    "steps": Choice((200, 400, 600, 800)),
    "batch_size": Choice((64, 128)),
    "d_h": Choice((64, 128, 256, "full")),
    "m": Choice((32, 64, 128)),
    "alpha0": Choice((0.05, 0.2, 0.5)),
    "init": Choice(("linear", "identity")),
    "ce_map": Choice(("half", "identity")),
}


def space_of(settings: Settings) -> dict[str, LogUniform | Choice]:
    """The part of SPACE that can change the result of this arm."""
    return {name: move for name, move in SPACE.items() if name in defining(settings)}


def settings_at(settings: Settings, point: Mapping[str, Any]) -> Settings:
    """The arm at a point of its space. The identity is a start of full width alone, so there `d_h` follows `init`.

    ValueError for a name that is not in the arm's space.
    """
    unknown = sorted(set(point) - set(space_of(settings)))
    if unknown:
        raise ValueError(f"{', '.join(unknown)}: accepted for {settings.form}: {', '.join(space_of(settings))}")
    at = {**point, "d_h": "full"} if point.get("init") == "identity" else dict(point)
    return replace(settings, **at)
