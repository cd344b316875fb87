"""Which kernel attends to texts on a card; what the kernels compute is asked where they are."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from trainers.encoders import flash
from trainers.encoders.flash import NARROW, SHORT, attends, attention_at_once, compiles
from trainers.encoders.packed_texts import PackedTexts

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    compiles.cache_clear()
    yield
    compiles.cache_clear()


def test_texts_begin_one_after_another() -> None:
    texts = PackedTexts.of(np.array([3, 1, 4]), CPU)
    assert texts.begins.tolist() == [0, 3, 4, 8]
    assert texts.begins.dtype == torch.int32
    assert texts.longest == 4


@pytest.mark.parametrize(
    ("longest", "width", "works"),
    [(SHORT, NARROW, "short"), (SHORT + 1, NARROW, "flash"), (SHORT, NARROW + 8, "flash")],
)
def test_texts_go_to_the_kernel_of_their_size(
    longest: int, width: int, works: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, float, float]] = []

    def short(rows: Tensor, texts: PackedTexts, *, scaling: float, dropout: float) -> Tensor:
        asked.append(("short", scaling, dropout))
        return rows[:, 0]

    def long(rows: Tensor, texts: PackedTexts, scaling: float, dropout: float) -> Tensor:
        asked.append(("flash", scaling, dropout))
        return rows[:, 0]

    monkeypatch.setattr(flash, "compiles", lambda device: True)
    monkeypatch.setitem(sys.modules, "trainers.encoders.short_texts", SimpleNamespace(short_attention=short))
    monkeypatch.setattr(flash._Flash, "apply", long)
    rows = torch.zeros(longest, 3, 2, width)
    attention_at_once(rows, PackedTexts.of(np.array([longest]), CPU), scaling=0.5, dropout=0.1)
    assert asked == [(works, 0.5, 0.1)]


def test_without_a_compiler_flash_attention_takes_its_place_and_that_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: Any, **__: Any) -> Tensor:
        raise RuntimeError("Failed to find C compiler.\nAnd more.")

    kernel = SimpleNamespace(short_attention=fails, CANNOT_COMPILE=(RuntimeError,))
    monkeypatch.setitem(sys.modules, "trainers.encoders.short_texts", kernel)
    monkeypatch.setattr(flash._Flash, "apply", lambda rows, *_: rows[:, 0])
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            attention_at_once(
                torch.zeros(4, 3, 2, 8), PackedTexts.of(np.array([4]), CPU), scaling=0.5, dropout=0.0
            )
    (told,) = caplog.messages
    assert told == (
        "Triton compiles no kernels (RuntimeError: Failed to find C compiler.): attention within short texts takes"
        " several times as long"
    )


def test_without_triton_no_kernel_is_compiled_and_a_mistake_of_ours_is_not_taken_for_that(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def mistaken(*_: Any, **__: Any) -> Tensor:
        raise TypeError("ours")

    with monkeypatch.context() as without:
        without.setitem(sys.modules, "trainers.encoders.short_texts", None)
        assert not compiles(CPU)
    assert "Triton compiles no kernels (" in caplog.text
    compiles.cache_clear()
    kernel = SimpleNamespace(short_attention=mistaken, CANNOT_COMPILE=(RuntimeError,))
    monkeypatch.setitem(sys.modules, "trainers.encoders.short_texts", kernel)
    with pytest.raises(TypeError, match="ours"):
        compiles(CPU)


def test_a_lack_of_memory_says_nothing_of_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with monkeypatch.context() as full:
        kernel = SimpleNamespace(short_attention=fails, CANNOT_COMPILE=(RuntimeError,))
        full.setitem(sys.modules, "trainers.encoders.short_texts", kernel)
        with pytest.raises(torch.OutOfMemoryError):
            compiles(CPU)
    works = SimpleNamespace(short_attention=lambda rows, texts, **_: rows[:, 0], CANNOT_COMPILE=(RuntimeError,))
    monkeypatch.setitem(sys.modules, "trainers.encoders.short_texts", works)
    assert compiles(CPU)


@pytest.mark.parametrize(
    ("device", "dtype", "width", "answer"),
    [
        ("cuda:0", torch.bfloat16, 64, True),
        ("cuda:0", torch.float32, 64, False),
        ("cuda:0", torch.bfloat16, 60, False),
        ("cuda:0", torch.bfloat16, 192, True),
        ("cuda:0", torch.bfloat16, 200, False),
        ("cpu", torch.bfloat16, 64, False),
    ],
)
def test_cards_attend_at_once_in_half_precision(
    device: str, dtype: torch.dtype, width: int, answer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flash, "_recent", lambda device: True)
    assert attends(torch.device(device), dtype, width) is answer
    monkeypatch.setattr(flash, "_recent", lambda device: False)
    assert not attends(torch.device(device), dtype, width)
