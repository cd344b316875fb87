"""What a run costs: time, share of GPUs, energy where the machine tells it, and how near it comes to the limit.

Counted are the products of linear layers and of attention, forward and back, as they are asked for. No result
changes for it, and no id or verdict rests on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

    from trainers.engine.world import Precision

POWER_CAP = Path("/sys/class/powercap")  # where Linux shows RAPL, the energy counters of processors
SIDES = {"cpu": 1024, "cuda": 8192}  # of the matrices that measure a device's limit
TRIES = 3
PROJECTIONS = (
    ("query", "key", "value"),
    ("q", "k", "v"),
    ("q_lin", "k_lin", "v_lin"),
    ("q_proj", "k_proj", "v_proj"),
)
ADDED_UP = ("seconds", "step_seconds", "gpu_hours", "joules", "flops")  # over the entries of a run


class Meter:
    """Counts from one `take` to the next, in the process that does the work.

    gpus: how many are held, or the share of one; of their energy the same share counts. Of the processors' energy
    counts the share that this process has of all processors' work. workers: how many do the same work beside it,
    this one among them; what it spends is taken for what each of them spends.
    """

    def __init__(self, device: str, precision: Precision, gpus: float = 0.0, workers: int = 1) -> None:
        self._device, self._precision, self._gpus, self._workers = device, precision, gpus, workers
        self._flops = self._step_seconds = 0.0
        self._began, self._spent = time.perf_counter(), _energy(device)

    def add(self, flops: float, seconds: float) -> None:
        """A step of training took these products of matrices, and so long."""
        self._flops += flops
        self._step_seconds += seconds

    def take(self) -> dict[str, float]:
        """What was spent since the last call.

        seconds, gpu_hours; of training flops, step_seconds, and of one device flops_per_second and peak_share (of
        what it reaches in one large product); joules where machine or card tell them.
        """
        now, spent = time.perf_counter(), _energy(self._device)
        seconds = now - self._began
        cost = {"seconds": seconds, "gpu_hours": self._workers * seconds * self._gpus / 3600}
        if joules := _joules(self._spent, spent, self._gpus):
            cost["joules"] = self._workers * joules
        if self._flops and self._step_seconds:
            reached = self._flops / self._step_seconds
            cost |= {
                "flops": self._workers * self._flops,
                "step_seconds": self._step_seconds,
                "flops_per_second": reached,
            }
            cost["peak_share"] = reached / peak(self._device, self._precision)
        self._flops = self._step_seconds = 0.0
        self._began, self._spent = time.perf_counter(), _energy(self._device)
        return cost


def added(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """The cost of two entries of a run: what adds up is added, and the rates are those of its training."""
    return {**other, **one} | {
        name: one.get(name, 0.0) + other.get(name, 0.0) for name in ADDED_UP if name in one or name in other
    }


def part_of(cost: Mapping[str, float], runs: int) -> dict[str, float]:
    """What each of several runs has of a cost that they share evenly; the rates are those of all."""
    return {name: value / runs if name in ADDED_UP else value for name, value in cost.items()}


@contextmanager
def counting(model: nn.Module) -> Iterator[Callable[[], float]]:
    """Within, a function that gives the floating-point operations of linear layers and attention since its last
    call.

    A product of (n, i) and (i, o) costs 2·n·i·o forward, and as much again for the gradient of either side, where
    that is asked for. What is read again for its gradient is not counted twice: it is no progress. Attention is
    what has projections by one of the names `PROJECTIONS`; padding is multiplied too, where there is some.
    """
    import torch
    from torch import nn

    counted = 0.0

    def hear(layer: Any, given: tuple[Any, ...], out: Any) -> None:
        nonlocal counted
        if torch._C._current_graph_task_id() != -1:  # within a backward pass
            return
        (rows, *_), weight = given, layer.weight
        asked = torch.is_grad_enabled()
        backward = asked * (int(rows.requires_grad) + int(weight.requires_grad))
        features = layer.in_features * layer.out_features  # ZeRO 3 shares the weight itself out
        counted += 2.0 * rows.numel() / layer.in_features * features * (1 + backward)

    def attend(module: Any, given: tuple[Any, ...], named: Mapping[str, Any], out: Any) -> None:
        nonlocal counted
        if torch._C._current_graph_task_id() != -1:
            return
        told = (one for one in (*given, *named.values()) if isinstance(one, torch.Tensor) and one.ndim == 3)
        rows = next(told, None)  # (n, T, D), whatever a package calls it
        if rows is None:
            return
        asked, layers = torch.is_grad_enabled(), _projections(module)
        query, key, value = (asked and (rows.requires_grad or one.weight.requires_grad) for one in layers)
        scores = 1 + query + key  # Q Kᵀ, then the gradients of Q and of K
        mixed = 1 + (query or key) + value  # P V, then those of P and of V
        counted += 2.0 * _cells(rows, named) * layers[0].out_features * (scores + mixed)

    def take() -> float:
        nonlocal counted
        found, counted = counted, 0.0
        return found

    hooks = [layer.register_forward_hook(hear) for layer in model.modules() if isinstance(layer, nn.Linear)]
    attentions = [module for module in model.modules() if _projections(module)]
    hooks += [module.register_forward_hook(attend, with_kwargs=True) for module in attentions]
    try:
        yield take
    finally:
        for hook in hooks:
            hook.remove()


def _projections(module: nn.Module) -> tuple[Any, ...]:
    """Those of queries, keys and values, where the module is self-attention; () where it is none."""
    from torch import nn

    for names in PROJECTIONS:
        found = tuple(getattr(module, name, None) for name in names)
        if all(isinstance(one, nn.Linear) for one in found):
            return found
    return ()


def _cells(rows: Any, named: Mapping[str, Any]) -> int:
    """How many scores a head computes: of n texts of T tokens n · T², of texts without padding by their layout."""
    shapes = [area.mask.shape for area in named["layout"]] if "layout" in named else [rows.shape[:2]]
    return sum(texts * length**2 for texts, length in shapes)


@cache
def peak(device: str, precision: Precision) -> float:
    """Operations a second of a large product on this device, with the threads of this process. Measured once."""
    import torch

    kind = torch.device(device).type
    side, dtype = SIDES[kind], torch.bfloat16 if precision == "bf16" else torch.float32
    one = torch.full((side, side), 0.5, dtype=dtype, device=device)
    best = 0.0
    with torch.inference_mode():
        for _ in range(TRIES + 1):  # the first sets the library up
            began = time.perf_counter()
            one @ one
            if kind == "cuda":
                torch.cuda.synchronize(device)
            best = max(best, 2 * side**3 / (time.perf_counter() - began))
    return best


# Energy


def _energy(device: str) -> dict[str, float]:
    """Counters in joules, and the processors' seconds of work by which the first is shared out."""
    found: dict[str, float] = {}
    if (processors := _processors()) is not None:
        import psutil

        busy, own = psutil.cpu_times(), psutil.Process().cpu_times()
        found["processors"] = processors
        found["busy"] = sum(busy) - busy.idle - getattr(busy, "iowait", 0.0)
        found["own"] = own.user + own.system
    if device.startswith("cuda") and (card := _card(device)) is not None:
        found["card"] = card
    return found


def _joules(before: Mapping[str, float], after: Mapping[str, float], gpus: float) -> float:
    spent = {name: value - before[name] for name, value in after.items() if name in before}
    joules = spent.get("card", 0.0) * min(gpus or 1.0, 1.0)
    if spent.get("processors", 0.0) > 0 and spent.get("busy", 0.0) > 0:  # a counter that began anew tells nothing
        joules += spent["processors"] * min(spent["own"] / spent["busy"], 1.0)
    return max(joules, 0.0)


def _processors() -> float | None:
    """Joules of all packages since some time; None where they are not shown, or not to us."""
    try:
        packages = [place for place in POWER_CAP.glob("intel-rapl:*") if place.name.count(":") == 1]
        counts = [int((place / "energy_uj").read_text()) for place in packages]
    except (OSError, ValueError):
        return None
    return sum(counts) / 1e6 if counts else None


def _card(device: str) -> float | None:
    """Joules of a card since its driver was loaded; None without NVML, or where the card does not count them."""
    import torch

    with suppress(ImportError, RuntimeError, OSError):
        import pynvml

        with suppress(pynvml.NVMLError):
            pynvml.nvmlInit()
            uuid = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
            return pynvml.nvmlDeviceGetTotalEnergyConsumption(pynvml.nvmlDeviceGetHandleByUUID(uuid)) / 1000
    return None
