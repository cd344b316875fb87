"""Softmax over rows of attention shorter than an instruction is wide, and where rows go on their way back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.tiny import tiny_backbone
from trainers.encoders.encoder import Encoder
from trainers.encoders.packing import LANES, Rectangle, softmax
from trainers.encoders.tokens import groups


@pytest.mark.parametrize("columns", [1, 2, 7, 8, 15, 16, 17, 40])
def test_softmax_and_its_gradient_are_those_of_exact_arithmetic(columns: int) -> None:
    torch.manual_seed(columns)
    scores = torch.randn(3, 2, 5, columns) * 4
    scores[0, ..., 1:] = -torch.inf  # a text of one token
    given, exact = scores.requires_grad_(), scores.detach().double().requires_grad_()
    found, wanted = softmax(given), exact.softmax(-1)
    assert found.shape == scores.shape
    assert found.dtype == torch.float32
    assert torch.equal(found[0, ..., 1:], torch.zeros_like(found[0, ..., 1:]))
    torch.testing.assert_close(found.double(), wanted, rtol=0, atol=2e-7)
    slope = torch.randn(scores.shape)
    found.backward(slope)
    wanted.backward(slope.double())
    assert given.grad is not None
    assert exact.grad is not None
    torch.testing.assert_close(given.grad.double(), exact.grad, rtol=0, atol=2e-6)


def test_scores_keep_their_precision() -> None:
    assert softmax(torch.ones(2, 3, dtype=torch.bfloat16)).dtype == torch.bfloat16
    assert softmax(torch.ones(2, 3, dtype=torch.float64)).dtype == torch.float64


def test_no_row_of_attention_over_terms_is_shorter_than_an_instruction(tmp_path: Path) -> None:
    """A CPU takes such rows number by number, forward and back."""

    class Widths(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if "softmax" in str(func):
                found.append(int(args[0].shape[-1]))
            return func(*args, **(kwargs or {}))

    found: list[int] = []
    encoder = Encoder.load(tiny_backbone(tmp_path / "backbone")).train()
    with Widths():
        rows: Tensor = encoder(encoder.tokenise(["the cat", "a dog runs", "word"]))
        rows.sum().backward()
    assert found
    assert min(found) >= LANES


def test_a_rectangle_sends_back_what_its_tokens_got(tmp_path: Path) -> None:
    """Padding is a copy of some token, and adds nothing to its gradient."""
    texts = ["the man sits and the dog runs", "the dog runs", "cat"]
    tokens, _ = Encoder.load(tiny_backbone(tmp_path / "backbone")).tokenise(texts).longest_first()
    (group,) = groups(tokens, slack=1000)
    area = Rectangle.of(group, torch.device("cpu"))
    assert not area.full
    rows = torch.randn(len(tokens.ids), 3, requires_grad=True)
    cells = area.padded(rows)
    assert cells.shape == (3, area.mask.shape[1], 3)
    assert torch.equal(cells[area.mask], rows)
    weights = torch.randn(cells.shape)
    (found,) = torch.autograd.grad((cells * weights).sum(), rows)
    assert torch.equal(found, weights[area.mask])


def test_nothing_is_added_up_on_its_way_back_but_words(tmp_path: Path) -> None:
    """A card that is to be deterministic would take the many copies of a token one by one."""

    class Additions(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if any(word in str(func) for word in ("index_add", "index_put", "scatter", "index_select_backward")):
                found.append(str(func))
            return func(*args, **(kwargs or {}))

    found: list[str] = []
    encoder = Encoder.load(tiny_backbone(tmp_path / "backbone")).train()
    tokens = encoder.tokenise(["the cat", "a dog runs", "word", "the man sits and the dog runs"])
    with Additions():
        encoder(tokens).sum().backward()
    assert found == []
