"""`make gpu` runs end to end on a CPU too, in sizes of seconds: what it lacks here is the card alone."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script as a module, which is gone after the test."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    gpu = importlib.import_module("gpu")
    ours = [
        name for name, module in sys.modules.items() if str(BENCHMARKS) in str(getattr(module, "__file__", ""))
    ]
    for name in ours:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    return gpu


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a card: `make gpu` measures it")
def test_every_section_runs_and_nothing_is_kept_without_a_card(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gpu = script(monkeypatch)
    before = sorted(BENCHMARKS.glob("results/gpu-*"))
    assert gpu.main([]) == 0
    said = capsys.readouterr().out
    assert all(f" s  {name} " in said for name in gpu.SECTIONS)
    assert "there is no card here" in said
    assert sorted(BENCHMARKS.glob("results/gpu-*")) == before


def test_a_section_that_fails_takes_no_other_with_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gpu = script(monkeypatch)

    def broken(bench: object) -> object:
        raise RuntimeError("no compiler\nand more")

    monkeypatch.setattr(gpu, "SECTIONS", {"broken": broken, "whole": lambda bench: [gpu.Figure("one", 1.0, "s")]})
    kept: list[tuple[int, int]] = []
    bench = gpu.Bench(device="cpu", sizes=gpu.TINY, folder=BENCHMARKS)
    rows, left, failed = gpu.measured(bench, 1.0, lambda found: kept.append((len(found[0]), len(found[2]))))
    assert ([row["what"] for row in rows], left, failed) == (["one"], [], ["broken (RuntimeError: no compiler)"])
    assert kept == [(0, 1), (1, 1)]  # after each section, whatever becomes of the next
    assert "no compiler" in capsys.readouterr().err


def test_the_peer_is_not_told_that_it_is_one_of_several(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Our steps leave LOCAL_RANK behind, and on a card its trainer would wait for a process group."""
    gpu = script(monkeypatch)
    monkeypatch.setenv("LOCAL_RANK", "0")
    monkeypatch.setattr(
        gpu.training, "train_with_peer", lambda *_, **__: np.array([["LOCAL_RANK" in os.environ, 0]])
    )
    assert gpu.training.peer(gpu.Bench(device="cpu", sizes=gpu.TINY, folder=tmp_path), "tiny", 8).tolist() == [
        False
    ]
