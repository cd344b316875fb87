"""A second dropout rate for some texts of a step: aligned negatives are encoded at p2, the two views at p1.

SAN's code applies p2 in the place of both rates, hidden and attention, at all four sites of a layer. Here either
those texts draw from a stream of their own, in the pass of the views (`trainers.encoders.second_stream`) or in one
after it while the rates of the body are others (`at`), or every site knows the rate of each token (`ByText`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from trainers.encoders import packing
from trainers.encoders.dropout import Drop, ask
from trainers.encoders.encoder import Encoder
from trainers.encoders.tokens import Tokens
from trainers.engine.transfers import moved


def check_sites(body: nn.Module, rates: Mapping[str, float]) -> None:
    """ValueError where a body drops nothing, for the first of the rates that it is to have, by field."""
    for field, rate in rates.items():
        if not _sites(body):
            raise ValueError(
                f"train.{field} = {rate:g}\n  accepted: a backbone with dropout, such as BERT or RoBERTa"
            )


def drops(body: nn.Module) -> bool:
    """Whether a body has a rate above 0 anywhere."""
    return any(getattr(module, name) for module, name in _sites(body))


def set_rate(body: nn.Module, rate: float) -> None:
    """Give every dropout of a body this rate."""
    for module, name in _sites(body):
        setattr(module, name, rate)


def rate_of(body: nn.Module) -> float:
    """The rate of a body, whose sites all have one; 0 where it has none. ValueError when they differ."""
    rates = sorted({getattr(module, name) for module, name in _sites(body)})
    if len(rates) > 1:
        raise ValueError(f"train.p1 = None\n  accepted: a rate, since those of this backbone differ: {rates}")
    return rates[0] if rates else 0.0


@contextmanager
def at(body: nn.Module, rate: float) -> Iterator[None]:
    """Every dropout of a body at this rate, for a while."""
    before = [(module, name, getattr(module, name)) for module, name in _sites(body)]
    try:
        set_rate(body, rate)
        yield
    finally:
        for module, name, own in before:
            setattr(module, name, own)


def _sites(body: nn.Module) -> list[tuple[nn.Module, str]]:
    """Where a body keeps its rates: its dropout modules, and such numbers as ModernBERT's `attention_dropout`."""
    return [
        (module, name)
        for module in body.modules()
        for name, value in vars(module).items()
        if (name == "p" if isinstance(module, nn.Dropout) else "dropout" in name and type(value) in (int, float))
    ]


def check_fused(backbone: Path) -> None:
    """ValueError when a backbone cannot run packed, by its configuration."""
    if (kind := packing.padded_kind(backbone)) is not None:
        raise not_packed(kind)


def not_packed(kind: str) -> ValueError:
    """The error of a backbone of this model_type that is to run `fused`."""
    known = ", ".join(sorted(packing.PACKED))
    return ValueError(f"train.san_pass = 'fused'\n  accepted: separate, or fused with {known}, not {kind}")


def dropout_by_row(values: Tensor, rates: Tensor) -> Tensor:
    """Dropout at rates below 1 that broadcast against the values, in the values' own precision."""
    scale = (torch.rand(values.shape, device=values.device) >= rates) / (1 - rates)
    return values * scale.to(values.dtype)


def _by_row(values: Tensor, rate: float, *, rates: Tensor) -> Tensor:
    return dropout_by_row(values, rates)


class ByText:
    """Dropout rates by text, for an encoder that runs packed.

        table = ByText(encoder)
        with table.rates(tokens, np.array([.1, .1, .2])):
            encoder.pooled(tokens)

    An encoder cuts texts, longest first, into passes; each pass takes the rates of its tokens off the table.
    """

    def __init__(self, encoder: Encoder) -> None:
        if not encoder.packed:
            raise not_packed(encoder.backbone.config.model_type)
        self.of_tokens: Tensor | None = None  # of the pass that runs, (m,)
        self._waiting: tuple[Tensor, Tensor] | None = None  # of the tokens and of the texts still to pass
        ask(encoder.backbone, self)
        encoder.backbone.register_forward_pre_hook(self._next_pass, with_kwargs=True)

    @property
    def dropped(self) -> Drop | None:
        """How the pass that runs drops hidden states (1, m, H)."""
        return None if self.of_tokens is None else partial(_by_row, rates=self.of_tokens[None, :, None])

    @contextmanager
    def rates(self, tokens: Tokens, rates: np.ndarray) -> Iterator[None]:
        """These rates (N,) for N texts while they are encoded, once."""
        ordered, order = tokens.longest_first()
        texts = torch.from_numpy(rates[order].astype(np.float32))
        self._waiting = texts.repeat_interleave(torch.from_numpy(ordered.lengths)), texts
        try:
            yield
        finally:
            self._waiting = self.of_tokens = None

    def _next_pass(self, body: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if self._waiting is None:
            return None
        tokens, texts = self._waiting
        row, areas = named["inputs_embeds"], []
        for area in named["layout"]:
            own, texts = texts[: len(area.mask)], texts[len(area.mask) :]
            rates = moved(own.numpy(), row.device)[:, None, None, None]
            areas.append(replace(area, dropped=partial(_by_row, rates=rates)))
        self.of_tokens = moved(tokens[: row.shape[1]].numpy(), row.device)
        self._waiting = tokens[row.shape[1] :], texts
        return given, {**named, "layout": areas}
