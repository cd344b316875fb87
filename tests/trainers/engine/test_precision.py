"""The precision of a machine, as Linux tells it, is that which torch finds by asking the processor itself."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from trainers.engine import precision
from trainers.engine.precision import best_precision, require
from trainers.errors import TrainerError

FLAGS = """processor\t: 0
vendor_id\t: {maker}
flags\t\t: fpu vme avx512f {features}
bugs\t\t: spectre_v1

processor\t: 1
vendor_id\t: {maker}
flags\t\t: fpu vme avx512f {features}
"""


def features_by_torch() -> set[str]:
    return {name for name, there in torch.cpu.get_capabilities().items() if there is True}


def test_this_processor_as_torch_sees_it() -> None:
    features, _ = precision._processor()
    assert features & {"amx_bf16", "avx512_bf16"} == features_by_torch() & {"amx_bf16", "avx512_bf16"}


@pytest.mark.parametrize(
    ("maker", "features", "expected"),
    [
        ("AuthenticAMD", "avx512_bf16", "bf16"),
        ("GenuineIntel", "avx512_bf16", "fp32"),  # which it multiplies at half the pace of fp32
        ("GenuineIntel", "avx512_bf16 amx_tile amx_bf16", "bf16"),
        ("GenuineIntel", "avx512_vnni", "fp32"),
        ("AuthenticAMD", "avx512_vnni", "fp32"),
    ],
)
def test_as_linux_lists_it(
    maker: str, features: str, expected: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "cpuinfo").write_text(FLAGS.format(maker=maker, features=features))
    monkeypatch.setattr(precision, "CPU_FACTS", tmp_path / "cpuinfo")
    assert best_precision() == expected


def test_where_no_file_tells_torch_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(precision, "CPU_FACTS", tmp_path / "none")
    assert best_precision() == ("bf16" if "amx_bf16" in features_by_torch() else "fp32")


def test_an_arm_processor_lists_no_flags(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nFeatures\t: fp asimd bf16\n")
    monkeypatch.setattr(precision, "CPU_FACTS", tmp_path / "cpuinfo")
    assert best_precision() == "fp32"


@pytest.mark.parametrize(("seen", "refused"), [(True, False), (False, True)])
def test_a_gpu_is_planned_in_bf16_and_looked_at_where_the_run_is(
    seen: bool, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: including_emulation or seen)
    assert best_precision("cuda") == "bf16"
    require("fp32", "cuda:0")
    require("bf16", "cpu")  # a CPU that is asked for it emulates it, as was asked
    with pytest.raises(TrainerError, match="cuda:0 does not multiply") if refused else nullcontext():
        require("bf16", "cuda:0")
