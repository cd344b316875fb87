"""The batch of a SAN step depends only on (seed, step), and is then sliced by worker.

Arms of one seed have the same anchors in the same order, whatever their other columns hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from trainers.encoders.tokens import Tokens, tokenise
from trainers.engine.limits import check_shared
from trainers.engine.streams import number, numpy_stream
from trainers.san import columns
from trainers.san.settings import PROMPTED, TAUGHT, Settings
from trainers.san.templates import OTHER_VIEW, VIEW, Template, in_template

if TYPE_CHECKING:
    from corpora.san.records import SanCorpus
    from trainers.encoders.encoder import Encoder
    from trainers.engine.world import World
    from trainers.san.columns import Column

Tokenise = Callable[[Sequence[str]], Tokens]


@dataclass(frozen=True, eq=False)
class SanBatch:
    """This worker's b of the B anchors of a step.

    columns: their names. views: texts encoded at dropout p1, b of each column, column after column. apart: texts
    of the last column if it is encoded at p2, else None. stream: seed of the dropout stream of `apart`. rows (B,):
    the anchors' rows in the corpus. negative_rows (B,): the rows of the negatives. own (b,): indices of this
    worker's anchors among the B. keep, keep_negatives (b, B) bool: the second views and negatives that count for
    each anchor.
    """

    columns: tuple[str, ...]
    views: Tokens
    apart: Tokens | None
    stream: int
    step: int
    rows: np.ndarray
    negative_rows: np.ndarray
    own: np.ndarray
    keep: np.ndarray
    keep_negatives: np.ndarray

    def __len__(self) -> int:
        return len(self.rows) * len(self.columns)


def batches(
    settings: Settings, corpus: SanCorpus, encoder: Encoder, seed: int, world: World
) -> Callable[[int], SanBatch]:
    """The function from step to batch. Raises ValueError as `check_set`."""
    check_set(settings, corpus, world.size)
    share, size = settings.batch_size // world.size, len(corpus)
    mine = slice(world.rank * share, (world.rank + 1) * share)
    names, held = columns_of(settings), _corpus_columns(settings, corpus)
    last = names[-1] if settings.san != "off" or settings.p2_of == "second_view" else None
    tokenise = tokenisers(settings, encoder)
    shuffled = lru_cache(1)(partial(_shuffled, size, seed))
    random = settings.column == "random"

    def batch(step: int) -> SanBatch:
        epoch, at = divmod(step, size // settings.batch_size)
        rows = shuffled(epoch)[at * settings.batch_size : (at + 1) * settings.batch_size]
        negative_rows = others(size, rows, seed, step) if random else rows
        places = {name: negative_rows if name == "negative" else rows for name in names}
        tokens = _read(names, held, places, tokenise, mine)
        views = [tokens[name] for name in names if name != last]
        own = np.arange(mine.start, mine.stop)
        keep, keep_negatives = np.ones((2, share, len(rows)), bool)
        if settings.san != "off":
            keep_negatives &= ~held["negative"].missing[negative_rows]
        if settings.dedup:
            _leave_out_equals(held, places, tokens, mine, keep, keep_negatives)
        return SanBatch(
            columns=names,
            views=Tokens.joined(views),
            apart=None if last is None else tokens[last],
            stream=number(seed, "dropout/san", step, world.rank),
            step=step,
            rows=rows,
            negative_rows=negative_rows,
            own=own,
            keep=keep,
            keep_negatives=keep_negatives,
        )

    return batch


def columns_of(settings: Settings) -> tuple[str, ...]:
    """The columns that a host encodes, negatives last; supervised `hard` replaces contradictions by them (NL)."""
    if settings.host == "simcse_sup":
        hard = ("contradiction",) if settings.san != "hard" else ()
    else:
        hard = ("soft",) if settings.host in PROMPTED else ()
    return ("anchor", "second", *hard, *(("negative",) if settings.san != "off" else ()))


def check_set(settings: Settings, corpus: SanCorpus, workers: int) -> None:
    """Raise ValueError if the corpus lacks data that the arm reads, or workers cannot share its batch."""
    size = settings.batch_size
    check_shared(size, workers)
    if len(corpus) < size:
        raise ValueError(f"train.batch_size = {size}\n  accepted: at most {len(corpus)}, the sentences there are")
    if settings.needs_set and settings.negatives not in corpus.sets:
        raise ValueError(f"train.negatives = {settings.negatives!r}\n  accepted: {', '.join(corpus.sets)}")
    unknown = sorted(set(settings.teachers) - corpus.teachers.keys()) if settings.host in TAUGHT else []
    if unknown:
        known = ", ".join(corpus.teachers) or "names in data.teachers, which has none"
        raise ValueError(f"train.teachers = {list(settings.teachers)!r}\n  accepted: {known}")
    if settings.host == "simcse_sup" and (corpus.entailed is None or corpus.contradicted is None):
        raise ValueError(
            "train.host = 'simcse_sup'\n  accepted: with a corpus of premise, entailment and contradiction"
        )


def steps_of(settings: Settings, corpus: SanCorpus) -> int:
    """The number of steps of an arm: `steps`, or that of `epochs` with full batches."""
    return settings.steps or settings.epochs * (len(corpus) // settings.batch_size)


def tokenisers(settings: Settings, encoder: Encoder) -> Mapping[str, Tokenise]:
    """The tokeniser of each column. Prompted hosts use SNCSE's templates: VIEW for anchors, else OTHER_VIEW."""
    names, length = columns_of(settings), min(settings.max_length, encoder.max_length)
    if settings.host not in PROMPTED:
        return dict.fromkeys(names, partial(_without_template, encoder, length))
    first, other = (partial(_in_template, encoder, length, template) for template in (VIEW, OTHER_VIEW))
    return {name: first if name == "anchor" else other for name in names}


def others(size: int, rows: np.ndarray, seed: int, step: int) -> np.ndarray:
    """For each row a random other row. (B,) -> (B,)."""
    return (rows + numpy_stream(seed, "others", step).integers(1, size, len(rows))) % size


def _without_template(encoder: Encoder, length: int, texts: Sequence[str]) -> Tokens:
    return tokenise(encoder.tokenizer, texts, length, encoder.prefix)


def _in_template(encoder: Encoder, length: int, template: Template, texts: Sequence[str]) -> Tokens:
    return in_template(encoder.tokenizer, texts, template, max_length=length)


def _shuffled(size: int, seed: int, epoch: int) -> np.ndarray:
    return numpy_stream(seed, "data", epoch).permutation(size)


def _corpus_columns(settings: Settings, corpus: SanCorpus) -> Mapping[str, Column]:
    """The columns of the whole corpus by name."""
    anchors = columns.whole(corpus.sentences)
    held = {"anchor": anchors, "second": anchors, "soft": columns.negations(corpus)}
    if settings.host == "simcse_sup":
        assert corpus.entailed is not None
        assert corpus.contradicted is not None
        held["second"] = columns.whole(corpus.entailed)
        held["contradiction"] = columns.whole(corpus.contradicted)
    if settings.san != "off":
        held["negative"] = columns.negatives(settings, corpus)
    return held


def _read(
    names: Sequence[str],
    held: Mapping[str, Column],
    places: Mapping[str, np.ndarray],
    tokenise: Mapping[str, Tokenise],
    mine: slice,
) -> dict[str, Tokens]:
    """This worker's tokens of each column. Texts shared by columns, as in SimCSE, are tokenised once."""
    tokenised: dict[tuple[int, int, int], Tokens] = {}
    tokens = {}
    for name in names:
        key = id(held[name]), id(places[name]), id(tokenise[name])
        if key not in tokenised:
            tokenised[key] = tokenise[name](held[name].take(places[name][mine]))
        tokens[name] = tokenised[key]
    return tokens


def _leave_out_equals(
    held: Mapping[str, Column],
    places: Mapping[str, np.ndarray],
    tokens: Mapping[str, Tokens],
    mine: slice,
    keep: np.ndarray,
    keep_negatives: np.ndarray,
) -> None:
    """Set keep to False for second views equal to an anchor or to its own second view, and keep_negatives for
    negatives equal to an anchor. An anchor's own negative is compared as far as the encoder reads both."""
    numbers: dict[str, int] = {}  # text -> number; arrays of numbers are compared a hundred times as fast

    def numbered(name: str) -> np.ndarray:
        return np.array([numbers.setdefault(text, len(numbers)) for text in held[name].take(places[name])])

    anchors = numbered("anchor")
    seconds = anchors if held["second"] is held["anchor"] else numbered("second")
    own = np.arange(mine.stop - mine.start), np.arange(mine.start, mine.stop)
    for side in (anchors, seconds):
        keep &= side[mine, None] != seconds[None, :]
    keep[own] = True
    if "negative" in tokens:
        negatives = numbered("negative")
        keep_negatives &= anchors[mine, None] != negatives[None, :]
        like = "second" if tokens["second"].read is not None else "anchor"  # the one in the negatives' template
        keep_negatives[own] &= tokens["negative"].differ_from(tokens[like])
