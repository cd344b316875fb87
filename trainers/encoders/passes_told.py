"""Tells how far a model of sentence-transformers is while it encodes, or scores, many texts at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from corpora.store.telling import Tell


@contextmanager
def passes_told(
    model: nn.Module, many: int, tell: Tell, *, doing: str = "encoding texts", gives: str = "sentence_embedding"
) -> Iterator[None]:
    """Until the block ends, tell after each forward pass of the model how many of so many texts, or pairs, it has
    read. gives: the feature that has a row for each of them."""
    done = 0

    def count(_: nn.Module, given: Any, features: Mapping[str, Tensor]) -> None:
        nonlocal done
        done += len(features[gives])
        tell(f"{doing}, {done:,} of {many:,} done")

    handle = model.register_forward_hook(count)
    try:
        yield
    finally:
        handle.remove()
