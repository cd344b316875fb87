"""The published spread of a sentence encoder between seeds, for plans of studies without finished pairs."""

from __future__ import annotations

from evaluators.significance.published import published


def of_simcse() -> tuple[float, str]:
    """The standard deviation of SimCSE's mean over the STS sets, rounded to four digits, and its source."""
    found = published()["simcse-bert-base"]
    return round(found.sd, 4), f"public: SimCSE on BERT-base, 7 STS tasks, {found.seeds} seeds (Tsukagoshi 2022)"
