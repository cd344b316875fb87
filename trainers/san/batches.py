"""The batch of a SAN step: a pure function of (seed, step), then sliced by worker.

Arms of one seed meet the same anchors in the same order, whatever stands in their other columns.
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

    columns: their names, those of `apart` last. views: what is encoded at p1, b texts of each column, one column
    after another; apart: what at p2. stream: the number of the stream from which `apart` draws its dropout. rows
    (B,): the anchors in the corpus; negative_rows (B,): the rows whose texts are the negatives. own (b,): which
    of the B are this worker's. keep, keep_negatives (b, B) bool: which second views and which negatives count
    for each anchor.
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
    """The function from step to batch. ValueError as `check_set` raises it."""
    check_set(settings, corpus, world.size)
    share, size = settings.batch_size // world.size, len(corpus)
    mine = slice(world.rank * share, (world.rank + 1) * share)
    names, held = columns_of(settings), _held(settings, corpus)
    last = names[-1] if settings.san != "off" or settings.p2_of == "second_view" else None
    tokenise = tokenisers(settings, encoder)
    shuffled = lru_cache(1)(partial(_shuffled, size, seed))
    random = settings.san != "off" and settings.column == "random"

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
    """The columns that a host encodes, negatives last; supervised `hard` has them for the contradictions (NL)."""
    if settings.host == "simcse_sup":
        hard = ("contradiction",) if settings.san != "hard" else ()
    else:
        hard = ("soft",) if settings.host in PROMPTED else ()
    return ("anchor", "second", *hard, *(("negative",) if settings.san != "off" else ()))


def check_set(settings: Settings, corpus: SanCorpus, workers: int) -> None:
    """ValueError when the corpus has not what the arm reads, or workers cannot share its batch."""
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
    """The steps of an arm: as set, or `epochs` of full batches."""
    return settings.steps or settings.epochs * (len(corpus) // settings.batch_size)


def tokenisers(settings: Settings, encoder: Encoder) -> Mapping[str, Tokenise]:
    """How each column becomes tokens: in SNCSE's templates, all but the anchor in the second, or as it is."""
    names, length = columns_of(settings), min(settings.max_length, encoder.max_length)
    if settings.host not in PROMPTED:
        return dict.fromkeys(names, partial(_as_it_is, encoder, length))
    first, other = (partial(_in_template, encoder, length, template) for template in (VIEW, OTHER_VIEW))
    return {name: first if name == "anchor" else other for name in names}


def others(size: int, rows: np.ndarray, seed: int, step: int) -> np.ndarray:
    """A random row other than each of these, from a stream of its own. (B,) -> (B,)."""
    return (rows + numpy_stream(seed, "others", step).integers(1, size, len(rows))) % size


def _as_it_is(encoder: Encoder, length: int, texts: Sequence[str]) -> Tokens:
    return tokenise(encoder.tokenizer, texts, length, encoder.prefix)


def _in_template(encoder: Encoder, length: int, template: Template, texts: Sequence[str]) -> Tokens:
    return in_template(encoder.tokenizer, texts, template, max_length=length)


def _shuffled(size: int, seed: int, epoch: int) -> np.ndarray:
    return numpy_stream(seed, "data", epoch).permutation(size)


def _held(settings: Settings, corpus: SanCorpus) -> Mapping[str, Column]:
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
    """This worker's texts of each column; those of several columns, as SimCSE's sentences, become tokens once."""
    found: dict[tuple[int, int, int], Tokens] = {}
    tokens = {}
    for name in names:
        what = id(held[name]), id(places[name]), id(tokenise[name])
        if what not in found:
            found[what] = tokenise[name](held[name].take(places[name][mine]))
        tokens[name] = found[what]
    return tokens


def _leave_out_equals(
    held: Mapping[str, Column],
    places: Mapping[str, np.ndarray],
    tokens: Mapping[str, Tokens],
    mine: slice,
    keep: np.ndarray,
    keep_negatives: np.ndarray,
) -> None:
    """What says the same as an anchor is no negative of it; nor is its own, if alike as far as read."""
    numbers: dict[str, int] = {}  # of texts: arrays of them are compared a hundred times as fast

    def numbered(name: str) -> np.ndarray:
        return np.array([numbers.setdefault(text, len(numbers)) for text in held[name].take(places[name])])

    anchors, seconds = numbered("anchor"), numbered("second")
    own = np.arange(mine.start, mine.stop), np.arange(mine.stop - mine.start)
    for side in (anchors, seconds):
        keep &= side[mine, None] != seconds[None, :]
    keep[own[1], own[0]] = True
    if "negative" in tokens:
        negatives = numbered("negative")
        keep_negatives &= anchors[mine, None] != negatives[None, :]
        read = "second" if tokens["second"].read is not None else "anchor"  # the one in the negatives' template
        keep_negatives[own[1], own[0]] &= tokens["negative"].differ_from(tokens[read])
