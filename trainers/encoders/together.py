"""Encodes texts for an evaluation on all workers of a group, and only texts that are not in the cache of vectors.

    with reading_together(encoder, world):
        if world.rank == 0:
            ...                          # what encodes here is split among all ranks; the others wait above

Only rank 0 runs the evaluation; the other ranks need none of its data.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from corpora.store.telling import counted, unheard
from trainers.encoders.encoder import Encoder
from trainers.encoders.tokens import Tokens
from trainers.encoders.vectors import Vectors, keys, limit
from trainers.engine.world import World

OVER = -1  # number of texts that tells the other ranks to stop


@contextmanager
def reading_together(encoder: Any, world: World) -> Iterator[None]:
    """Until the block ends, split what an encoder embeds among the ranks and cache it (`encoders.vectors`).

    encoder: an `Encoder`, or an object with one as its `encoder`; others read by themselves. While it reads, the
    run reports how far it is. Every rank must hold the same weights. Ranks other than 0 encode for rank 0 until it
    leaves the block.
    """
    inner = encoder if isinstance(encoder, Encoder) else getattr(encoder, "encoder", None)
    if not isinstance(inner, Encoder):
        with _telling(encoder, world):
            yield
    elif world.rank > 0:
        _serve(inner, world)
        yield
    else:
        inner.reading = _Reading(inner, world)
        try:
            with _telling(inner, world):
                yield
        finally:
            inner.reading = None
            if world.size > 1:
                _broadcast(np.array([OVER, 0, 0]), world)


@contextmanager
def _telling(encoder: Any, world: World) -> Iterator[None]:
    """Until the block ends, the run reports how far the readings of an encoder are, if that tells it to `tell`."""
    if not hasattr(encoder, "tell"):
        yield
        return
    encoder.tell = world.tell
    try:
        yield
    finally:
        encoder.tell = unheard


class _Reading:
    """Replaces an encoder's `embed` on rank 0."""

    def __init__(self, encoder: Encoder, world: World) -> None:
        self.encoder, self.world = encoder, world
        self.vectors = Vectors.of(encoder) if limit() else None

    def __call__(self, tokens: Tokens) -> np.ndarray:
        """Encode distinct texts once: two encodings of one text may differ by rounding, and only one is cached."""
        names, first, inverse = np.unique(keys(tokens), return_index=True, return_inverse=True)
        order = np.argsort(first)  # the order in which the texts came
        return self._distinct(names[order], tokens.take(first[order]))[np.argsort(order)[inverse]]

    def _distinct(self, names: np.ndarray, tokens: Tokens) -> np.ndarray:
        known, rows = np.zeros(len(tokens), bool), None
        if self.vectors is not None:
            known, rows = self.vectors.look_up(names)
        if not known.all():
            fresh = self._read(tokens.take(np.flatnonzero(~known)))
            if self.vectors is not None:
                self.vectors.keep(names[~known], fresh)
            rows = np.zeros((len(tokens), fresh.shape[1]), np.float32) if rows is None else rows
            rows[~known] = fresh
        assert rows is not None
        return rows

    def _read(self, tokens: Tokens) -> np.ndarray:
        size = self.world.size
        if size == 1:
            return _rows(self.encoder, tokens, self.world)
        marked = tokens.read is not None
        _broadcast(np.array([len(tokens), len(tokens.ids), int(marked)]), self.world)
        _broadcast(tokens.lengths, self.world)
        _broadcast(tokens.ids, self.world)
        if tokens.read is not None:
            _broadcast(tokens.read.astype(np.int64), self.world)
        parts = _gathered(_share(self.encoder, tokens, self.world), len(tokens), self.world)
        rows = np.zeros((len(tokens), parts[0].shape[1]), np.float32)
        order = tokens.longest_first()[1]
        for rank, part in enumerate(parts):
            rows[order[rank::size]] = part
        return rows


def _serve(encoder: Encoder, world: World) -> None:
    """Encode this rank's share of every request of rank 0, until it sends OVER."""
    while True:
        texts, length, marked = _broadcast(np.zeros(3, np.int64), world).tolist()
        if texts == OVER:
            return
        lengths = _broadcast(np.zeros(texts, np.int64), world)
        ids = _broadcast(np.zeros(length, np.int64), world)
        read = _broadcast(np.zeros(length, np.int64), world).astype(bool) if marked else None
        tokens = Tokens(ids, lengths, read=read)
        _gathered(_share(encoder, tokens, world), len(tokens), world)


def _share(encoder: Encoder, tokens: Tokens, world: World) -> np.ndarray:
    """Encode every size-th text by falling length, so that ranks have equal work. -> (n, D), n may be 0."""
    mine = tokens.longest_first()[1][world.rank :: world.size]
    return _rows(encoder, tokens.take(mine), world) if len(mine) else np.zeros((0, encoder.width), np.float32)


def _rows(encoder: Encoder, tokens: Tokens, world: World) -> np.ndarray:
    """Encode the texts on this rank and tell how far it is."""
    rows, count = (
        np.zeros((len(tokens), encoder.width), np.float32),
        counted("encoding texts", len(tokens), world.tell),
    )
    for texts, part in encoder.portions(tokens):
        rows[texts] = part
        count(len(texts))
    return rows


def _broadcast(numbers: np.ndarray, world: World) -> np.ndarray:
    """Rank 0's integers, on every rank. (n,) -> (n,) int64."""
    shared = torch.from_numpy(np.ascontiguousarray(numbers, np.int64)).to(world.device)
    dist.broadcast(shared, src=0)
    return shared.cpu().numpy()


def _gathered(rows: np.ndarray, texts: int, world: World) -> list[np.ndarray]:
    """The shares of all ranks, in rank order. Shares differ by one text at most."""
    longest = -(-texts // world.size)
    padded = torch.zeros(longest, rows.shape[1], device=world.device)
    padded[: len(rows)] = torch.from_numpy(rows).to(world.device)
    parts = [torch.empty_like(padded) for _ in range(world.size)]
    dist.all_gather(parts, padded)
    counts = [len(range(rank, texts, world.size)) for rank in range(world.size)]
    return [part[:count].cpu().numpy() for part, count in zip(parts, counts, strict=True)]
