"""The precision in which this machine trains fastest; mostly found without torch, whose import takes seconds."""

from __future__ import annotations

from pathlib import Path

from trainers.engine.world import Precision
from trainers.errors import TrainerError

CPU_FACTS = Path("/proc/cpuinfo")
AMX, AVX512 = "amx_bf16", "avx512_bf16"  # as Linux and torch call these features of a processor


def best_precision(device: str = "cpu") -> Precision:
    """bf16 if the hardware multiplies it faster than fp32, else fp32.

    Every GPU is assumed to be from 2020 or later and to do so: a machine that only plans may have none to examine.
    `require` examines the GPU that a run uses.
    """
    return "bf16" if _is_gpu(device) or fast_at_bf16(device) else "fp32"


def require(precision: Precision, device: str) -> None:
    """Raise TrainerError if a run asks for bf16 on a GPU that would only emulate it, slowly."""
    if precision == "bf16" and _is_gpu(device) and not fast_at_bf16(device):
        raise TrainerError(
            f"resources.precision: bf16, which the GPU {device} does not multiply\n  accepted: fp32"
        )


def fast_at_bf16(device: str) -> bool:
    """True if this machine's device is a GPU of Ampere or later, a CPU with AMX, or one of AMD with AVX512-bf16.

    Intel's AVX512-bf16 multiplies at half the pace of fp32, so that a step takes 1.7 times as long
    (benchmarks/results/training_throughput_intel_without_amx.md). Intel CPUs before AMX have only that, and so do
    virtual machines that hide AMX.
    """
    if _is_gpu(device):
        import torch

        return torch.cuda.is_bf16_supported(including_emulation=False)
    features, maker = _processor()
    return AMX in features or (AVX512 in features and maker == "AuthenticAMD")


def multiplies_bf16() -> bool:
    """True if this processor has instructions for bf16; others emulate it number by number."""
    return bool({AMX, AVX512} & _processor()[0])


def _is_gpu(device: str) -> bool:
    return device.partition(":")[0] == "cuda"


def _processor() -> tuple[set[str], str]:
    """The processor's features and its maker, from Linux, which lists only features that programs may use.

    On other systems from torch, which does not know the maker ("").
    """
    if CPU_FACTS.is_file():
        lines = [line.partition(":") for line in CPU_FACTS.read_text().splitlines()]
        facts = {name.strip(): value.strip() for name, _, value in reversed(lines)}  # of the first processor
        return set(facts.get("flags", "").split()), facts.get("vendor_id", "")
    import torch

    return {name for name, there in torch.cpu.get_capabilities().items() if there is True}, ""
