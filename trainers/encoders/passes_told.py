"""Tells how far a model of sentence-transformers is while it encodes, or scores, many texts at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from corpora.store.telling import Tell, counted


@contextmanager
def passes_told(
    model: nn.Module, many: int, tell: Tell, *, doing: str = "encoding texts", gives: str = "sentence_embedding"
) -> Iterator[None]:
    """Until the block ends, tell after each forward pass of the model how many of so many texts, or pairs, it has
    read. gives: the feature that has a row for each of them."""
    count = counted(doing, many, tell)

    def after(_: nn.Module, given: Any, features: Mapping[str, Tensor]) -> None:
        count(len(features[gives]))

    handle = model.register_forward_hook(after)
    try:
        yield
    finally:
        handle.remove()
