"""Names of items, made from their texts, so that two tasks give an item that they share the same name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from corpora.benchmarks.pairs import Pairs, joined, numbered, text_key
from corpora.sources.occurrences import Occurrence
from evaluators.metrics.scores import Items


def pair_items(pairs: Pairs) -> Items:
    """Each pair by a name of its content, tied to those that share a sentence with it.

    The same pair has the same name in every task: STS-B is drawn from the yearly sets.
    """
    ids = numbered(pairs.text_keys())
    return Items(ids, Pairs(tuple(ids), pairs.a, pairs.b, pairs.gold).groups())


def pair_item_texts(pairs: Pairs) -> dict[str, str]:
    """What a person reads of each of `pair_items`: both texts."""
    return both_texts(pair_items(pairs).ids, pairs)


def both_texts(ids: Iterable[str], pairs: Pairs) -> dict[str, str]:
    """What a person reads of pairs that have these names."""
    return {name: f"{a} | {b}" for name, a, b in zip(ids, pairs.a, pairs.b, strict=True)}


def subset_item_texts(subsets: Mapping[str, Pairs], metric: str) -> dict[str, str]:
    """Display texts of all pairs of a task, whichever of them it scores."""
    whole = pair_item_texts(joined(subsets.values()))
    return whole | {name: text for pairs in subsets.values() for name, text in pair_item_texts(pairs).items()}


def marked(word: Occurrence) -> str:
    """The sentence, with the target word in brackets."""
    return f"{word.text[: word.start]}[{word.target}]{word.text[word.end :]}"


def text_items(texts: Sequence[str]) -> Items:
    """Each text by a name of its content, tied to its repetitions: SST2 is drawn from MR."""
    keys = [text_key(text) for text in texts]
    return Items(numbered(keys), keys)
