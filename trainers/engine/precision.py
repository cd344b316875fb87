"""In which precision this machine trains best: mostly known without torch, which takes seconds to load."""

from __future__ import annotations

from pathlib import Path

from trainers.engine.world import Precision
from trainers.errors import TrainerError

CPU_FACTS = Path("/proc/cpuinfo")
AMX, AVX512 = "amx_bf16", "avx512_bf16"  # as Linux and torch call these features of a processor


def best_precision(device: str = "cpu") -> Precision:
    """bf16 where the hardware multiplies it faster than fp32, else fp32.

    A GPU is taken for one of 2020 or later, which do: a machine that plans may have none to look at. `require`
    looks at the one that a run is on.
    """
    return "bf16" if _is_gpu(device) or fast_at_bf16(device) else "fp32"


def require(precision: Precision, device: str) -> None:
    """TrainerError for a GPU that does not multiply bf16, where a run asks for it: it would emulate it, slowly."""
    if precision == "bf16" and _is_gpu(device) and not fast_at_bf16(device):
        raise TrainerError(
            f"resources.precision: bf16, which the GPU {device} does not multiply\n  accepted: fp32"
        )


def fast_at_bf16(device: str) -> bool:
    """Whether a device that is here is: a GPU of Ampere or later, a CPU with AMX, one of AMD with AVX512-bf16.

    Intel's cores multiply by AVX512-bf16 at half the pace of fp32: a step takes 1.7 times as long
    (benchmarks/results/training_throughput_intel_without_amx.md). Such are those before AMX, and virtual machines
    that are kept from it.
    """
    if _is_gpu(device):
        import torch

        return torch.cuda.is_bf16_supported(including_emulation=False)
    features, maker = _processor()
    return AMX in features or (AVX512 in features and maker == "AuthenticAMD")


def multiplies_bf16() -> bool:
    """Whether this processor does at all; others emulate it, number after number."""
    return bool({AMX, AVX512} & _processor()[0])


def _is_gpu(device: str) -> bool:
    return device.partition(":")[0] == "cuda"


def _processor() -> tuple[set[str], str]:
    """What it can do, and who made it: of Linux, which lists no feature that it keeps programs from.

    Elsewhere of torch, which knows no makers.
    """
    if CPU_FACTS.is_file():
        lines = [line.partition(":") for line in CPU_FACTS.read_text().splitlines()]
        told = {name.strip(): value.strip() for name, _, value in reversed(lines)}  # the first processor's words
        return set(told.get("flags", "").split()), told.get("vendor_id", "")
    import torch

    return {name for name, there in torch.cpu.get_capabilities().items() if there is True}, ""
