"""The seeds that a claim is declared with. More or other seeds, chosen after a look, make another test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchestration.study.names import listed

if TYPE_CHECKING:
    from orchestration.study.study import Study


def seeds_of(study: Study) -> dict[str, Any]:
    """The field declared with a claim that has trained arms: its seeds, or the range in which they grow."""
    seeds = study.seeds
    grow = {"start": len(seeds.initial), "max": len(seeds.all)}
    return {"seeds": grow if seeds.reserve else sorted(seeds.initial)}


def on_other_seeds(written: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a claim was declared with other seeds; False for old ledgers without seeds.

    Growing seeds may grow further than declared, since their test holds at any time.
    """
    first, second = written.get("seeds"), now.get("seeds")
    if first is None or second is None or (isinstance(first, dict) and isinstance(second, dict)):
        return False
    return first != second


def other_seeds_in_words(claims: Sequence[str], first: Any, now: Any) -> str:
    """The note for a reader on claims declared with other seeds, and what would confirm them."""
    were, are = ("was", "is") if len(claims) == 1 else ("were", "are")
    return (
        f"{listed(claims)} {were} declared with seeds {_span(first)} and {are} judged on {_span(now)}: "
        "exploratory, and counted as declared; fresh seeds in a new study would show it, or `seeds: {start, max}` "
        "from the start"
    )


def _span(seeds: Mapping[str, int] | Sequence[int]) -> str:
    if isinstance(seeds, Mapping):
        return f"{{start: {seeds['start']}, max: {seeds['max']}}}"
    whole = len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]} to {seeds[-1]}" if whole else listed([str(seed) for seed in seeds])
