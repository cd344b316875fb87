"""What a run costs: time, share of GPUs, energy where the machine tells it, and how near it comes to the limit.

Counted are the products of linear layers and of attention, forward and back, as they are asked for. No result
changes for it, and no id or verdict rests on it.
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

SIDES = {"cpu": 1024, "cuda": 8192}  # of the matrices that measure a device's limit
TRIES = 3
PROJECTIONS = (
    ("query", "key", "value"),
    ("q", "k", "v"),
    ("q_lin", "k_lin", "v_lin"),
    ("q_proj", "k_proj", "v_proj"),
    ("query_proj", "key_proj", "value_proj"),
    ("Wqkv", "Wqkv", "Wqkv"),  # all three in one product, as in the next
    ("in_proj", "in_proj", "in_proj"),
)
FUSED = "fused_weight"  # that of an attention whose projections are one product, and no layers of their own
ADDED_UP = ("seconds", "step_seconds", "gpu_hours", "joules", "gpu_joules", "flops")  # over the entries of a run
ENERGIES = ("joules", "gpu_joules")  # told of both parts of a sum, or the sum would pass for what it is not
log = logging.getLogger(__name__)


class Meter:
    """Counts from one `take` to the next, in the process that does the work.

    gpus: how many are held, or the share of one; of their energy the same share counts. workers: how many do the
    same work beside it, this one among them; what it spends is taken for what each of them spends.
    """

    def __init__(self, device: str, precision: Precision, gpus: float = 0.0, workers: int = 1) -> None:
        self._device, self._precision, self._gpus, self._workers = device, precision, gpus, workers
        self._begin()

    def _begin(self) -> None:
        self._flops = self._step_seconds = 0.0
        self._earlier: Mapping[str, float] = {}
        self._began, self._energy = time.perf_counter(), Energy(self._device)

    def add(self, flops: float, seconds: float) -> None:
        """A step of training took these products of matrices, and so long."""
        self._flops += flops
        self._step_seconds += seconds
        self.watch()

    def watch(self) -> None:
        """Work goes on: to be called often enough that no counter of energy begins anew unseen."""
        self._energy.watch()

    def go_on(self, cost: Mapping[str, float]) -> None:
        """A checkpoint is continued, up to which this was spent (`so_far`, of an earlier attempt)."""
        known = {name: cost[name] for name in ADDED_UP if name in cost}
        self._earlier = added(self._earlier, known)

    def so_far(self) -> dict[str, float]:
        """What was spent since the last `take`, and by earlier attempts: all that adds up, no rates."""
        seconds = time.perf_counter() - self._began
        cost = {"seconds": seconds, "gpu_hours": self._workers * seconds * self._gpus / 3600}
        cost |= {name: self._workers * joules for name, joules in self._joules().items()}
        if self._flops and self._step_seconds:
            cost |= {"flops": self._workers * self._flops, "step_seconds": self._step_seconds}
        return added(cost, self._earlier)

    def take(self) -> dict[str, float]:
        """What was spent since the last call, and by earlier attempts on what is trained since then.

        seconds, gpu_hours; of training flops, step_seconds, and of one device flops_per_second and peak_share (of
        what it reaches in one large product), both of this attempt; gpu_joules where the card tells them, joules
        where all parts do.
        """
        cost = self.so_far()
        if self._flops and self._step_seconds:
            cost["flops_per_second"] = reached = self._flops / self._step_seconds
            if limit := _peak_if_told(self._device, self._precision):
                cost["peak_share"] = reached / limit
        self._begin()
        return cost

    def _joules(self) -> dict[str, float]:
        """Of one worker. What holds a card has no total without both the card's part and the processors'."""
        told = self._energy.told()
        if CARD in told:
            told[CARD] *= min(self._gpus or 1.0, 1.0)
        found = {"gpu_joules": told[CARD]} if CARD in told else {}
        parts = ("processors", CARD) if self._device.startswith("cuda") else ("processors",)
        return found | (
            {"joules": sum(told[part] for part in parts)} if all(part in told for part in parts) else {}
        )


def added(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """The cost of two entries of a run: what adds up is added, and the rates are those of its training.

    Energy that only one of them tells is dropped.
    """
    if not one or not other:
        return {**one, **other}
    sums = {name: one.get(name, 0.0) + other.get(name, 0.0) for name in ADDED_UP if name in one or name in other}
    untold = {name for name in ENERGIES if (name in one) != (name in other)}
    return {name: value for name, value in ({**other, **one} | sums).items() if name not in untold}


def part_of(cost: Mapping[str, float], share: float) -> dict[str, float]:
    """What a run has of a cost that several share; the rates are those of all."""
    return {name: share * value if name in ADDED_UP else value for name, value in cost.items()}


@contextmanager
def counting(model: nn.Module) -> Iterator[Callable[[], float]]:
    """Within, a function that gives the floating-point operations of linear layers and attention since its last
    call.

    A product of (n, i) and (i, o) costs 2·n·i·o forward, and as much again for the gradient of either side, where
    that is asked for. What is read again for its gradient is not counted twice: it is no progress. Of what was
    first read without one, the gradients are counted then. Attention is what has projections by one of the names
    `PROJECTIONS`; padding is multiplied too, where there is some.
    """
    import torch
    from torch import nn

    counted, owed = 0.0, defaultdict[Any, float](float)  # by module: what was read without a gradient

    def tell(module: Any, amount: float, forward: int, backward: int) -> None:
        """So many products of this size, of which some would be for gradients."""
        nonlocal counted
        asked = torch.is_grad_enabled()
        if torch._C._current_graph_task_id() == -1:
            counted += amount * (forward + asked * backward)
            owed[module] += amount * (not asked and not torch.is_inference_mode_enabled())
        elif asked and owed[module] > 0:  # within a backward pass: read once more, for the gradients alone
            counted += amount * backward
            owed[module] -= amount

    def hear(layer: Any, given: tuple[Any, ...], out: Any) -> None:
        count(layer, given[0])

    def count(layer: Any, rows: torch.Tensor) -> None:
        features = layer.in_features * layer.out_features  # ZeRO 3 shares the weight itself out
        amount = 2.0 * rows.numel() / layer.in_features * features
        tell(layer, amount, 1, int(rows.requires_grad) + int(layer.weight.requires_grad))

    def attend(module: Any, given: tuple[Any, ...], named: Mapping[str, Any], out: Any) -> None:
        told = (one for one in (*given, *named.values()) if isinstance(one, torch.Tensor) and one.ndim == 3)
        rows = next(told, None)  # (n, T, D), whatever a package calls it
        if rows is None:
            return
        layers = _projections(module)
        query, key, value = (rows.requires_grad or one.weight.requires_grad for one in layers)
        scores, mixed = query + key, (query or key) + value  # gradients of Q and of K; of P and of V
        width = layers[0].out_features / (3 if layers[0] is layers[1] else 1)
        tell(module, 2.0 * _cells(rows, named) * width, 2, scores + mixed)  # Q Kᵀ, P V
        for layer in layers if FUSED in vars(module) else ():
            count(layer, rows)

    def take() -> float:
        nonlocal counted
        found, counted = counted, 0.0
        owed.clear()
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


def _peak_if_told(device: str, precision: Precision) -> float | None:
    """The limit; None where it cannot be measured, as on a card that is full: no training is lost for that."""
    try:
        return peak(device, precision)
    except (RuntimeError, MemoryError) as error:
        log.warning("the limit of %s was not measured: %s", device, error)
        return None


@cache
def peak(device: str, precision: Precision) -> float:
    """Operations a second of a large product on this device, with the threads of this process. Measured once.

    Of random numbers: with constants a card takes less power, and is faster than in any training.
    """
    import torch

    kind = torch.device(device).type
    side, dtype = SIDES[kind], torch.bfloat16 if precision == "bf16" else torch.float32
    drawn = torch.Generator(device).manual_seed(0)  # the process's own numbers are the run's
    one = torch.randn(side, side, dtype=dtype, device=device, generator=drawn)
    best = 0.0
    with torch.inference_mode():
        for _ in range(TRIES + 1):  # the first sets the library up
            began = time.perf_counter()
            one @ one
            if kind == "cuda":
                torch.cuda.synchronize(device)
            best = max(best, 2 * side**3 / (time.perf_counter() - began))
    return best
