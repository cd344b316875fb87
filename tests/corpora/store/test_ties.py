"""Chains of ties by hand."""

from __future__ import annotations

from corpora.store.ties import tied


def test_a_chain_of_ties_makes_one_group() -> None:
    """a-b, c-d and b-c are one chain; e-f is another; g is tied to nothing."""
    group = tied([("a", "b"), ("c", "d"), ("e", "f"), ("b", "c")])
    assert len({group(name) for name in "abcd"}) == 1
    assert len({group(name) for name in "aefg"}) == 3
