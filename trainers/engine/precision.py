"""In which precision this machine trains best: mostly known without torch, which takes seconds to load."""

from __future__ import annotations

from pathlib import Path

from trainers.engine.world import Precision
from trainers.errors import TrainerError

MULTIPLY_BF16 = {"amx_bf16", "avx512_bf16"}  # as Linux and torch call these features of a processor
CPU_FACTS = Path("/proc/cpuinfo")


def best_precision(device: str = "cpu") -> Precision:
    """bf16 where the hardware multiplies it, else fp32.

    A GPU is taken for one of 2020 or later, which do: a machine that plans may have none to look at. `require`
    looks at the one that a run is on.
    """
    return "bf16" if _is_gpu(device) or multiplies_bf16(device) else "fp32"


def require(precision: Precision, device: str) -> None:
    """TrainerError for a GPU that does not multiply bf16, where a run asks for it: it would emulate it, slowly."""
    if precision == "bf16" and _is_gpu(device) and not multiplies_bf16(device):
        raise TrainerError(
            f"resources.precision: bf16, which the GPU {device} does not multiply\n  accepted: fp32"
        )


def multiplies_bf16(device: str) -> bool:
    """Whether a device that is here does: a CPU with AMX or AVX512-bf16, a GPU of Ampere or later."""
    if _is_gpu(device):
        import torch

        return torch.cuda.is_bf16_supported(including_emulation=False)
    return bool(MULTIPLY_BF16 & _features())


def _is_gpu(device: str) -> bool:
    return device.partition(":")[0] == "cuda"


def _features() -> set[str]:
    """What the processor can do: of Linux, which lists no feature that it keeps programs from, else of torch."""
    if CPU_FACTS.is_file():
        lines = (line.partition(":") for line in CPU_FACTS.read_text().splitlines())
        return next((set(told.split()) for name, _, told in lines if name.strip() == "flags"), set())
    import torch

    return {name for name, there in torch.cpu.get_capabilities().items() if there is True}
