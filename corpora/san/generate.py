"""Rewrites sentences into rows: an aligned negative of each, its flags, and a soft negative.

table = rows(rewriter, texts)          # a text's row does not depend on the others
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa

from corpora.san.importance import Masking, read_scores
from corpora.san.mask_predict import Generator, TaggedTokens, batched, batches, mask_predict
from corpora.san.quality import flags_of
from corpora.san.recipe import SetRecipe
from corpora.san.records import FAILS
from corpora.san.splicing import spliced
from corpora.san.uniforms import sid_of
from corpora.store.telling import HowFar

SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("sid", pa.uint64()),
        ("text", pa.large_string()),
        ("san", pa.large_string()),
        ("earlier", pa.large_string()),  # of the nearest earlier iteration without a flag, "" where there is none
        ("soft", pa.large_string()),
        ("n_tokens", pa.int16()),
        ("n_masked", pa.list_(pa.int16())),
        ("kept", pa.float32()),
        ("flags", pa.uint16()),
    ]
)


@dataclass(frozen=True, kw_only=True)
class Rewriter:
    """The parts of rewriting. tag: tags words in context; None for the static lexicon."""

    generator: Generator
    recipe: SetRecipe
    negate: Callable[[Sequence[str]], Iterable[str]]
    tag: Callable[[Sequence[str], Sequence[TaggedTokens]], Iterable[TaggedTokens]] | None = None


def rows(
    rewriter: Rewriter, texts: Sequence[str], first: int = 0, how_far: HowFar = lambda done: None
) -> pa.Table:
    """A row of SCHEMA for each text, in their order; rows count from `first`.

    how_far: called with the number of texts that are rewritten, and of which a soft negative is written, by now.
    """
    generator, recipe = rewriter.generator, rewriter.recipe
    masking = Masking(recipe.law, recipe.scale, read_scores(recipe.importance))
    tokens = generator.encode(texts, recipe.max_tokens)
    if rewriter.tag is not None:
        tokens = list(rewriter.tag(texts, tokens))
    sids = np.array([sid_of(text) for text in texts], np.uint64)
    states = np.empty(len(texts), object)  # of each text, ids after each iteration (iterations, T)
    masked, soft = np.zeros((len(texts), recipe.iterations), np.int16), list[str]()
    negated = iter(rewriter.negate(texts))
    for group in batches(tokens, texts, generator.budget):
        batch = batched([tokens[row] for row in group], [texts[row] for row in group], sids[group])
        rewritten = mask_predict(batch, generator, recipe, masking)
        masked[group] = rewritten.masked.T
        for place, row in enumerate(group):
            states[row] = rewritten.ids[:, place, : len(tokens[row].ids)].copy()
        soft += islice(negated, len(group))  # in their own order: a parser's batches stay as they are
        how_far(len(soft))
    made = [
        _made(text, each, state, generator.surfaces)
        for text, each, state in zip(texts, tokens, states, strict=True)
    ]
    columns = {
        "row": np.arange(first, first + len(texts)),
        "sid": sids,
        "text": list(texts),
        "san": [last for last, _, _, _ in made],
        "earlier": [earlier for _, earlier, _, _ in made],
        "soft": soft,
        "n_tokens": [len(each.ids) for each in tokens],
        "n_masked": masked.tolist(),
        "kept": np.array([share for _, _, _, share in made], np.float32),
        "flags": [flags for _, _, flags, _ in made],
    }
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns.values(), SCHEMA, strict=True)], SCHEMA
    )


def _made(
    text: str, tokens: TaggedTokens, states: np.ndarray, surfaces: Sequence[str]
) -> tuple[str, str, int, float]:
    """The last iteration's text, the stand-in of an earlier one, the last's flags and share of kept words."""
    last, *before = (spliced(text, tokens, state, surfaces) for state in states[::-1])
    flags, share = flags_of(text, last)
    earlier = ""
    if flags & FAILS["semray"]:
        earlier = next((other for other in before if not flags_of(text, other)[0] & FAILS["semray"]), "")
    return last, earlier, flags, share
