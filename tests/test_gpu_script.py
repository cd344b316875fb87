"""`make gpu` runs end to end on a CPU too, in sizes of seconds: what it lacks here is the card alone."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
import torch

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a card: `make gpu` measures it")
def test_every_section_runs_and_nothing_is_kept_without_a_card(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    gpu = importlib.import_module("gpu")
    for name in ("gpu", "ragged_attention", "steps", "tables", "stacked_adapters", "stacked_encoders"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    before = sorted(BENCHMARKS.glob("results/gpu-*"))
    assert gpu.main([]) == 0
    said = capsys.readouterr().out
    assert all(f" s  {name} " in said for name in gpu.SECTIONS)
    assert "there is no card here" in said
    assert sorted(BENCHMARKS.glob("results/gpu-*")) == before
