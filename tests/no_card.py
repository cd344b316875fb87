"""CUDA graphs without a card: what one captures is done anew each time that it runs, and attention text after text."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor

from trainers.encoders import captured_pass, graphs, packing
from trainers.encoders.packed_texts import PackedTexts


def put_graphs(patch: pytest.MonkeyPatch) -> None:
    """Let encoders without dropout train as graphs on the CPU."""
    patch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    patch.setattr(captured_pass, "aside", lambda device: nullcontext())
    patch.setattr(captured_pass, "captured", lambda act, pool: act)
    patch.setattr(graphs, "attends", lambda device, dtype, width: True)
    patch.setattr(packing, "attends", lambda device, dtype, width: True)
    patch.setattr(packing, "attention_at_once", one_by_one)


def one_by_one(rows: Tensor, texts: PackedTexts, *, scaling: float, dropout: float) -> Tensor:
    """What attention at once computes."""
    assert not dropout
    begins = texts.begins.tolist()
    assert begins[-1] == len(rows)
    assert max(np.diff(begins)) <= texts.longest
    mixed = []
    for begin, end in pairwise(begins):
        query, key, value = rows[begin:end].float().permute(1, 2, 0, 3)
        chances = (query @ key.transpose(1, 2) * scaling).softmax(-1)
        mixed.append((chances @ value).transpose(0, 1).to(rows.dtype))
    return torch.cat(mixed)
