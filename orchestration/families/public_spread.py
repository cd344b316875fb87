"""How far a sentence encoder moves between seeds, for plans of studies that have no finished pairs."""

from __future__ import annotations

from evaluators.significance.published import published


def of_simcse() -> tuple[float, str]:
    """The standard deviation of SimCSE's mean over the STS sets, to the four digits that are ever shown of it."""
    found = published()["simcse-bert-base"]
    return round(found.sd, 4), f"public: SimCSE on BERT-base, 7 STS tasks, {found.seeds} seeds (Tsukagoshi 2022)"
