"""Measures what a run costs: time, GPU hours, energy if the machine shows it, and its share of peak FLOP/s.

Floating-point operations are counted for the matrix products of linear layers and attention, forward and backward.
Measuring changes no result, and no id or verdict depends on it.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from trainers.engine.energy import CARD, Energy

if TYPE_CHECKING:
    from torch import nn

    from trainers.engine.world import Precision

SIDES = {"cpu": 1024, "cuda": 8192}  # side lengths of the square matrices that measure a device's peak
TRIES = 3
PROJECTIONS = (
    ("query", "key", "value"),
    ("q", "k", "v"),
    ("q_lin", "k_lin", "v_lin"),
    ("q_proj", "k_proj", "v_proj"),
    ("query_proj", "key_proj", "value_proj"),
    ("Wqkv", "Wqkv", "Wqkv"),  # one layer computes all three, also in the next row
    ("in_proj", "in_proj", "in_proj"),
)
FUSED = "fused_weight"  # attribute of an attention module that computes its three projections as one product
ADDED_UP = ("seconds", "step_seconds", "gpu_hours", "joules", "gpu_joules", "flops")  # summed over a run's entries
ENERGIES = ("joules", "gpu_joules")  # summed only if both entries have them: a partial sum would look complete
log = logging.getLogger(__name__)


class Meter:
    """Measures the cost of a run from one `take` to the next, in the process that does the work.

    gpus: how many GPUs this process holds, or its share of one; that share of the GPU's energy is counted.
    workers: the number of workers of the run; each is assumed to cost what this one does.
    """

    def __init__(self, device: str, precision: Precision, gpus: float = 0.0, workers: int = 1) -> None:
        self._device, self._precision, self._gpus, self._workers = device, precision, gpus, workers
        self._begin()

    def _begin(self) -> None:
        self._flops = self._step_seconds = 0.0
        self._earlier: Mapping[str, float] = {}
        self._began, self._energy = time.perf_counter(), Energy(self._device)

    def add(self, flops: float, seconds: float) -> None:
        """Add one training step: its floating-point operations and its duration."""
        self._flops += flops
        self._step_seconds += seconds
        self.watch()

    def watch(self) -> None:
        """Read the energy counters; to be called so often that none runs through its whole range in between."""
        self._energy.watch()

    def go_on(self, cost: Mapping[str, float]) -> None:
        """Add the cost of an earlier attempt (its `so_far`), whose checkpoint this attempt continues."""
        known = {name: cost[name] for name in ADDED_UP if name in cost}
        self._earlier = added(self._earlier, known)

    def so_far(self) -> dict[str, float]:
        """The cost since the last `take` plus that of earlier attempts: the figures of ADDED_UP, no rates."""
        seconds = time.perf_counter() - self._began
        cost = {"seconds": seconds, "gpu_hours": self._workers * seconds * self._gpus / 3600}
        cost |= {name: self._workers * joules for name, joules in self._joules().items()}
        if self._flops:
            cost |= {"flops": self._workers * self._flops, "step_seconds": self._step_seconds}
        return added(cost, self._earlier)

    def take(self) -> dict[str, float]:
        """The cost since the last call, plus that of earlier attempts at the same training; then start anew.

        Keys: seconds, gpu_hours; for a training flops and step_seconds; for one device, in this attempt alone,
        flops_per_second and peak_share (its fraction of `peak`); gpu_joules if the GPU counts energy, joules if
        all parts do.
        """
        cost = self.so_far()
        if self._flops:
            cost["flops_per_second"] = reached = self._flops / self._step_seconds
            if limit := _peak_or_none(self._device, self._precision):
                cost["peak_share"] = reached / limit
        self._begin()
        return cost

    def _joules(self) -> dict[str, float]:
        """Energy of one worker. On a GPU the total needs both the GPU's energy and the processors'."""
        energy = self._energy.joules()
        if CARD in energy:
            energy[CARD] *= min(self._gpus, 1.0)
        found = {"gpu_joules": energy[CARD]} if CARD in energy else {}
        parts = ("processors", CARD) if self._device.startswith("cuda") else ("processors",)
        return found | (
            {"joules": sum(energy[part] for part in parts)} if all(part in energy for part in parts) else {}
        )


def added(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """Add up the costs of two entries of a run. Rates, which only its training has, are kept.

    An energy that only one of the two has is dropped.
    """
    if not one or not other:
        return {**one, **other}
    sums = {name: one[name] + other[name] for name in ADDED_UP if name in one and name in other}
    partial = {name for name in ENERGIES if (name in one) != (name in other)}
    return {name: value for name, value in ({**other, **one} | sums).items() if name not in partial}


def part_of(cost: Mapping[str, float], share: float) -> dict[str, float]:
    """One run's share of a cost that several runs caused together; rates are left as they are."""
    return {name: share * value if name in ADDED_UP else value for name, value in cost.items()}


@contextmanager
def counting(model: nn.Module) -> Iterator[Callable[[], float]]:
    """Yield a function that returns the operations (FLOP) of linear layers and attention since its last call.

    A product of (n, i) and (i, o) costs 2·n·i·o forward, and as much again for the gradient of each side that
    needs one. Activations recomputed in the backward pass are not counted twice, as they are no progress; if their
    first pass ran without gradients, only the gradients are counted then. A module counts as attention if it has
    projections under one of the names in `PROJECTIONS`; products with padding are counted too.
    """
    import torch
    from torch import nn

    counted, pending = 0.0, defaultdict[Any, float](float)  # pending: per module, passed without gradients so far

    def add(module: Any, amount: float, forward: int, backward: int) -> None:
        """Add the forward products of this size, and the backward ones if there are gradients."""
        nonlocal counted
        with_gradients = torch.is_grad_enabled()
        if torch._C._current_graph_task_id() == -1:
            counted += amount * (forward + with_gradients * backward)
            pending[module] += amount * (not with_gradients and not torch.is_inference_mode_enabled())
        elif with_gradients and pending[module] > 0:  # recomputed within a backward pass
            counted += amount * backward
            pending[module] -= amount

    def add_linear(layer: Any, inputs: tuple[Any, ...], out: Any) -> None:
        count(layer, inputs[0])

    def count(layer: Any, rows: torch.Tensor) -> None:
        features = layer.in_features * layer.out_features  # not of the weight: ZeRO 3 partitions it
        amount = 2.0 * rows.numel() / layer.in_features * features
        add(layer, amount, 1, int(rows.requires_grad) + int(layer.weight.requires_grad))

    def add_attention(module: Any, inputs: tuple[Any, ...], named: Mapping[str, Any], out: Any) -> None:
        states = (each for each in (*inputs, *named.values()) if isinstance(each, torch.Tensor) and each.ndim == 3)
        rows = next(states, None)  # (n, T, D): argument names differ between architectures
        if rows is None:
            return
        layers = _projections(module)
        query, key, value = (rows.requires_grad or layer.weight.requires_grad for layer in layers)
        scores, mixed = query + key, (query or key) + value  # gradients of Q and of K; of P and of V
        width = layers[0].out_features / (3 if layers[0] is layers[1] else 1)
        add(module, 2.0 * _cells(rows, named) * width, 2, scores + mixed)  # Q Kᵀ, P V
        for layer in layers if FUSED in vars(module) else ():
            count(layer, rows)

    def take() -> float:
        nonlocal counted
        found, counted = counted, 0.0
        pending.clear()
        return found

    hooks = [layer.register_forward_hook(add_linear) for layer in model.modules() if isinstance(layer, nn.Linear)]
    attentions = [module for module in model.modules() if _projections(module)]
    hooks += [module.register_forward_hook(add_attention, with_kwargs=True) for module in attentions]
    try:
        yield take
    finally:
        for hook in hooks:
            hook.remove()


def _projections(module: nn.Module) -> tuple[Any, ...]:
    """A self-attention's linear layers for queries, keys and values; () for any other module."""
    from torch import nn

    for names in PROJECTIONS:
        layers = tuple(getattr(module, name, None) for name in names)
        if all(isinstance(layer, nn.Linear) for layer in layers):
            return layers
    return ()


def _cells(rows: Any, named: Mapping[str, Any]) -> int:
    """How many attention scores a head computes: n · T² for n texts of T tokens, or the layout's rectangles."""
    shapes = [area.mask.shape for area in named["layout"]] if "layout" in named else [rows.shape[:2]]
    return sum(texts * length**2 for texts, length in shapes)


def _peak_or_none(device: str, precision: Precision) -> float | None:
    """`peak`, or None if it cannot be measured, as on a full GPU: no training is lost for that."""
    try:
        return peak(device, precision)
    except (RuntimeError, MemoryError) as error:
        log.warning("the limit of %s was not measured: %s", device, error)
        return None


@cache
def peak(device: str, precision: Precision) -> float:
    """Floating-point operations per second of a large matrix product on this device. Measured once a process.

    The matrices are random: with constants a GPU takes less power, and is faster than in any training.
    """
    import torch

    kind = torch.device(device).type
    side, dtype = SIDES[kind], torch.bfloat16 if precision == "bf16" else torch.float32
    generator = torch.Generator(device).manual_seed(0)  # the process's own stream belongs to the run
    matrix = torch.randn(side, side, dtype=dtype, device=device, generator=generator)
    best = 0.0
    with torch.inference_mode():
        for _ in range(TRIES + 1):  # the first try includes the library's set-up
            began = time.perf_counter()
            matrix @ matrix
            if kind == "cuda":
                torch.cuda.synchronize(device)
            best = max(best, 2 * side**3 / (time.perf_counter() - began))
    return best
