"""`make gpu` runs end to end on a CPU too, in sizes of seconds: what it lacks here is the card alone."""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
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
    keep = lambda found: kept.append((len(found[0]), len(found[2])))  # noqa: E731
    rows, left, failed = gpu.measured(bench, 1.0, ["broken", "whole"], keep)
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


def test_lanes_do_not_wait_for_one_that_failed_and_its_error_is_the_one_that_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A card with too little memory for all of them is found out at once."""
    gpu = script(monkeypatch)
    bench = gpu.Bench(device="cpu", sizes=gpu.TINY, folder=tmp_path)
    gate = threading.Barrier(2)
    monkeypatch.setattr(gpu.together, "_gate", [gate])

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("out of memory")

    def waits() -> float:
        return float(gate.wait(gpu.together.TOGETHER))

    monkeypatch.setattr(gpu.together, "trained", fails)
    with ThreadPoolExecutor(2) as threads:
        lanes = [threads.submit(waits), threads.submit(gpu.together._lane, bench, 2)]
        with pytest.raises(RuntimeError, match="out of memory"):
            gpu.together._of_all(lanes)


def test_figures_are_kept_where_a_package_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As DeepSpeed may be on a machine that is lent: its sections fail, and the others' figures stay."""
    gpu = script(monkeypatch)
    monkeypatch.setitem(gpu.save.__globals__, "RESULTS", tmp_path)
    gpu.save("one", "One", [{"what": "a product", "figure": 1.0}], [], packages=("torch", "no-such-package"))
    assert "no-such-package not installed" in (tmp_path / "one.md").read_text()


def test_sections_that_were_not_asked_for_keep_their_figures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gpu = script(monkeypatch)
    monkeypatch.setattr(gpu, "RESULTS", tmp_path)
    monkeypatch.setitem(gpu.save.__globals__, "RESULTS", tmp_path)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "Made Up 9/1")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=2**30))

    def row(section: str, figure: float) -> dict[str, object]:
        return {"section": section, "what": "it", "figure": figure, "unit": "s", "": ""}

    gpu.keep([], ([row("training", 1.0), row("parts", 2.0)], [], []))
    earlier = gpu.kept_of(gpu.SECTIONS.keys() - {"training"})
    gpu.keep(earlier, ([row("training", 3.0)], ["limits"], []))
    kept = json.loads((tmp_path / "gpu-made-up-9-1.json").read_text())
    assert [(one["section"], one["figure"]) for one in kept["rows"]] == [("training", 3.0), ("parts", 2.0)]
    assert {"Of an earlier run: parts.", "Left out for want of time: limits."} <= set(kept["notes"])


def test_a_section_that_there_is_not_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        script(monkeypatch).main(["--only", "training,lunch"])
    assert "--only lunch: accepted are limits, training, " in capsys.readouterr().err


def test_a_test_that_waits_for_ever_is_told_by_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    gpu = script(monkeypatch)
    waiting = tmp_path / "test_waiting.py"
    waiting.write_text("def test_that_hangs():\n    import threading\n    threading.Event().wait()\n")
    monkeypatch.setattr(gpu.right, "HOLDS", {"fp32": (str(waiting), "-n", "0")})
    monkeypatch.setattr(gpu.right, "EACH", 1)
    with pytest.raises(RuntimeError, match="does not hold"):
        list(gpu.right.tests(gpu.Bench(device="cuda:0", sizes=gpu.TINY, folder=tmp_path)))
    assert "in test_that_hangs" in capfd.readouterr().err
