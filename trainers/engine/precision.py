"""In which precision this machine trains best: mostly known without torch, which takes seconds to load."""

from __future__ import annotations

from pathlib import Path

from trainers.engine.world import Precision

MULTIPLY_BF16 = {"amx_bf16", "avx512_bf16"}  # as Linux and torch call these features of a processor
CPU_FACTS = Path("/proc/cpuinfo")


def best_precision(device: str = "cpu") -> Precision:
    """bf16 where the hardware multiplies it (AMX or AVX512-bf16 on a CPU; Ampere and later), else fp32."""
    if device.partition(":")[0] == "cuda":
        import torch

        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    return "bf16" if MULTIPLY_BF16 & _features() else "fp32"


def _features() -> set[str]:
    """What the processor can do: of Linux, which lists no feature that it keeps programs from, else of torch."""
    if CPU_FACTS.is_file():
        lines = (line.partition(":") for line in CPU_FACTS.read_text().splitlines())
        return next((set(told.split()) for name, _, told in lines if name.strip() == "flags"), set())
    import torch

    return {name for name, there in torch.cpu.get_capabilities().items() if there is True}
