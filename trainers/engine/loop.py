"""The one training loop: DeepSpeed on a CPU or a GPU, one worker or several.

    curve = fit(encoder, loss, batches, groups=groups, recipe=Recipe(steps=60), seed=0, world=World())

A step's data is `batches(step)` and its dropout stream is (seed, step, rank): a function of the step alone, so a
run that resumes from a checkpoint goes on exactly as if it had never stopped.
"""

from __future__ import annotations

import gc
import math
import os
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from trainers.engine.ahead import Ahead
from trainers.engine.halves import Half, with_halves
from trainers.engine.memory import REMEMBERED, kept_memory, tell_workspace
from trainers.engine.meter import counting
from trainers.engine.micro_batches import MicroBatch, within_memory
from trainers.engine.optimisation import alike_as_one, clip, schedule
from trainers.engine.row_gradients import RowGradients
from trainers.engine.shortage import state_told
from trainers.engine.streams import number
from trainers.engine.transfers import Arriving
from trainers.engine.world import Progress, Stopped, World
from trainers.errors import TrainerError

if TYPE_CHECKING:
    from deepspeed import DeepSpeedEngine


class StepBatch(Protocol):
    def __len__(self) -> int:
        """How many texts the step encodes, over all workers."""


B = TypeVar("B", bound=StepBatch)
Encode = Callable[..., Tensor]  # the model as DeepSpeed runs it: what forward takes and gives


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Length and shape of training; rates and decay are in the parameter groups.

    clip_norm 0: gradients are not clipped. shape: the share of the rates at a step counted from 0; None for a
    linear warm-up and a linear decay to 0.
    """

    steps: int
    warmup: int = 0
    clip_norm: float = 1.0
    shape: Callable[[int], float] | None = None


class Diverged(TrainerError):
    """A loss was not finite. `step` counts from 1, `terms` are the weighted terms of that step."""

    def __init__(self, step: int, terms: Mapping[str, float]) -> None:
        self.step, self.terms = step, dict(terms)
        listed = ", ".join(f"{name} = {value:g}" for name, value in self.terms.items())
        super().__init__(f"loss is not finite at step {step}: {listed}")

    def __reduce__(self) -> tuple[type[Diverged], tuple[int, dict[str, float]]]:
        return Diverged, (self.step, self.terms)


def fit(
    model: nn.Module,
    loss: Callable[[Encode, B], Mapping[str, Tensor]],
    batches: Callable[[int], B],
    *,
    groups: Sequence[Mapping[str, Any]],
    recipe: Recipe,
    seed: int,
    world: World,
    look: Callable[[], Mapping[str, float]] = dict,
    micro: MicroBatch | None = None,
    halved: Sequence[Half] = (),
) -> list[Progress]:
    """Train the model in place and return its curve, one Progress per step; it is ready for use afterwards.

    loss(encode, batch): every weighted term of the sum that is minimised, by name; a figure without gradient is
    only reported. It runs outside of autocast, so in float32 when the model returns float32.
    batches(step): the data of a step, counted from 0; on a GPU that is asked for in a thread of its own.
    look(): figures of the model after each of the steps world.look_at; rank 0 alone calls it.
    micro: how many texts the model reads at a time, if it can be told; with "auto" a step that finds too little
    memory makes it smaller, and from then on the curve has the figure "micro_batch".
    halved: weights that autocast alone uses, whose bfloat16 copies are then made all at once.

    With world.scratch and world.checkpoint_every the run leaves checkpoints there and continues from the newest.
    Raises OutOfMemory, Diverged after the first step whose loss is not finite, Stopped when world.stopping() says
    so.
    """
    from trainers.engine import checkpoints

    _assert_covered(model, groups)
    seat = world.seat
    if halved and world.precision == "bf16" and not world.zero_stage and seat is None:
        loss = _with_halves(loss, halved)
    on_gpu = torch.device(world.device).type != "cpu"
    ahead = Ahead(batches, recipe.steps) if on_gpu and seat is None else None
    with (
        _linear_kept(),
        counting(model) as flops,
        nullcontext() if seat is None else seat.joined(model),
        _deepspeed_engine(model, groups, recipe, seed, world) as engine,
        _gradients_for_optimizer(model, recipe, world) as prepare_gradients,
        ahead or nullcontext(),
    ):
        curve = [] if world.scratch is None else checkpoints.resume(engine, world, _checkpointed())
        if micro is not None and curve and (smaller := curve[-1].figures.get("micro_batch")):
            micro.size = int(smaller)  # parts draw their own dropout: the run goes on as it went
        engine.train()
        steps = _Steps(
            engine=engine,
            loss=loss,
            batches=ahead or batches,
            recipe=recipe,
            seed=seed,
            world=world,
            micro=micro,
            prepare_gradients=prepare_gradients,
        )
        for step in range(len(curve), recipe.steps):
            began = time.perf_counter()
            done = steps.take(step)
            in_stack = seat.flops() if seat else 0.0
            world.spent(flops() + in_stack, time.perf_counter() - began)
            if done.step in world.look_at and world.rank == 0:
                if ahead is not None:
                    ahead.settle()
                done = replace(done, figures={**done.figures, **look()})
                flops()  # a look is no training
                engine.train()
            curve.append(done)
            world.report(done)
            due = world.checkpoint_every and done.step % world.checkpoint_every == 0
            stopping = world.stopping()
            if world.scratch is not None and (due or stopping):
                checkpoints.save(engine, world, curve)
            if stopping:
                raise Stopped(f"after step {done.step}")
    model.eval()
    return curve


@dataclass(frozen=True, eq=False, kw_only=True)
class _Steps(Generic[B]):
    """What the steps of a training have in common. prepare_gradients: as `_gradients_for_optimizer` gives it."""

    engine: DeepSpeedEngine
    loss: Callable[[Encode, B], Mapping[str, Tensor]]
    batches: Callable[[int], B]
    recipe: Recipe
    seed: int
    world: World
    micro: MicroBatch | None
    prepare_gradients: Callable[[], None]

    def take(self, step: int) -> Progress:
        """One step, counted from 0. Its figures are read last: a GPU, which is behind by then, need not wait."""
        began = time.perf_counter()
        engine, micro, batch = self.engine, self.micro, self.batches(step)
        rate = max(group["lr"] for group in engine.optimizer.param_groups)

        def gradients() -> _Figures:
            torch.manual_seed(number(self.seed, "dropout", step, self.world.rank))
            return _gradients(engine, self.loss, batch, self.world)

        figures = within_memory(gradients, engine.optimizer.zero_grad, micro, len(batch), self.world)
        self.prepare_gradients()
        with state_told(self.world.seat):  # the first step lays the optimiser's state out
            engine.step()
        values = figures.read()
        terms = {name: values[name] for name in figures.learnt}
        if not math.isfinite(values["loss"]):
            raise Diverged(step + 1, terms)
        size = {"micro_batch": float(micro.size)} if micro and micro.auto and micro.size else {}
        return Progress(
            step=step + 1,
            steps=self.recipe.steps,
            loss=values["loss"],
            terms=terms,
            figures={name: value for name, value in values.items() if name not in terms and name != "loss"} | size,
            learning_rate=rate,
            sentences_per_second=len(batch) / (time.perf_counter() - began),
        )


@contextmanager
def _gradients_for_optimizer(model: nn.Module, recipe: Recipe, world: World) -> Iterator[Callable[[], None]]:
    """Within, a function to call between the backward pass and the update: it clips the gradients.

    On one CPU it also makes dense gradients of large tables from those of their rows. ZeRO clips by itself.
    """
    on_cpu = torch.device(world.device).type == "cpu"
    tables = RowGradients(model.modules() if on_cpu and world.size == 1 and not world.zero_stage else ())
    learnt = [one for one in model.parameters() if one.requires_grad]  # policies learn by themselves, in between
    clipped = learnt if recipe.clip_norm and not world.zero_stage else []

    def prepare() -> None:
        tables.sum()
        clip(clipped, recipe.clip_norm, workers=world.size)
        tables.lay()

    with tables.in_use():
        yield prepare


def _with_halves(
    loss: Callable[[Encode, B], Mapping[str, Tensor]], copies: Sequence[Half]
) -> Callable[[Encode, B], Mapping[str, Tensor]]:
    def of(encode: Encode, batch: B) -> Mapping[str, Tensor]:
        return loss(with_halves(encode, copies), batch)

    return of


@dataclass(frozen=True)
class _Figures:
    """A step's terms and their sum, averaged over the workers, on their way from the device.

    learnt: the names of the terms with gradient.
    """

    names: Sequence[str]
    learnt: Sequence[str]
    numbers: Arriving

    @staticmethod
    def of(terms: Mapping[str, Tensor], learnt: Sequence[str], total: Tensor, world: World) -> _Figures:
        numbers = torch.stack([*(term.detach() for term in terms.values()), total.detach()])
        if world.size > 1:
            dist.all_reduce(numbers)
            numbers /= world.size
        return _Figures([*terms, "loss"], learnt, Arriving(numbers))

    def read(self) -> dict[str, float]:
        return dict(zip(self.names, self.numbers.read(), strict=True))


def _gradients(
    engine: DeepSpeedEngine, loss: Callable[[Encode, B], Mapping[str, Tensor]], batch: B, world: World
) -> _Figures:
    """The backward pass of a step, which leaves the gradients at the parameters; and the step's figures."""
    terms = loss(engine, batch)
    learnt = [name for name, term in terms.items() if term.requires_grad]
    total = torch.stack([terms[name] for name in learnt]).sum()
    figures = _Figures.of(terms, learnt, total, world)  # on their way before the backward pass begins
    engine.backward(total)
    if world.seat is not None:
        world.seat.backward()
    return figures


def _assert_covered(model: nn.Module, groups: Sequence[Mapping[str, Any]]) -> None:
    held = [id(parameter) for group in groups for parameter in group["params"]]
    trainable = {id(parameter): name for name, parameter in model.named_parameters() if parameter.requires_grad}
    missing = [name for key, name in trainable.items() if key not in set(held)]
    assert not missing, f"parameters in no optimizer group: {missing}"
    assert len(held) == len(set(held)) == len(trainable), (
        "a parameter is in two optimizer groups, or is not trained"
    )


@contextmanager
def _deepspeed_engine(
    model: nn.Module, groups: Sequence[Mapping[str, Any]], recipe: Recipe, seed: int, world: World
) -> Iterator[DeepSpeedEngine]:
    """A DeepSpeed engine around the model, taken down afterwards: many runs share one process."""
    from trainers.engine import deep_speed  # seconds of imports, for what trains alone

    reset_process(seed, world)
    deepspeed = deep_speed.prepared()
    _join_process_group(world)
    # A client optimizer and scheduler: DeepSpeed's own would overwrite the rates of the groups.
    with state_told(world.seat):
        model.to(world.device)
    held = [dict(group) for group in groups] if world.zero_stage else alike_as_one(groups)
    optimizer = torch.optim.AdamW(held, betas=(0.9, 0.999), eps=1e-8, fused=True)
    usual = partial(schedule, steps=recipe.steps, warmup=recipe.warmup)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, recipe.shape or usual)
    with deep_speed.quiet(), state_told(world.seat):
        engine, *_ = deepspeed.initialize(
            model=model, optimizer=optimizer, lr_scheduler=scheduler, config=_configuration(recipe, world)
        )
    if world.size == 1 and world.zero_stage == 0:
        engine.enable_backward_allreduce = False  # nobody to average with: saves copying every gradient
    if not world.zero_stage:  # its own looks through all modules for what is trained
        engine.zero_grad = optimizer.zero_grad
    try:
        with kept_memory():
            yield engine
        if world.zero_stage == 3:
            _make_whole(model, engine)
    finally:
        engine.destroy()
        optimizer.state.clear()  # the engine itself is a cycle; its bulk goes now
        model.zero_grad(set_to_none=True)


@contextmanager
def _linear_kept() -> Iterator[None]:
    """ZeRO 3 puts a linear layer of its own in the place of torch's, for the whole process, and leaves it there.

    It rounds in another way: so would what the process does next, whether it trains or scores.
    """
    own = torch.nn.functional.linear
    try:
        yield
    finally:
        torch.nn.functional.linear = own


def _make_whole(model: nn.Module, engine: DeepSpeedEngine) -> None:
    """Give every rank all parameters of a model that ZeRO 3 had shared out, and take DeepSpeed's hooks off it.

    Every rank calls it; what it leaves is an ordinary module, to be evaluated and saved by any rank alone.
    """
    from deepspeed.runtime.zero import GatheredParameters

    engine.optimizer.parameter_offload._remove_module_hooks()
    parameters = list(model.parameters())
    with GatheredParameters(parameters):
        whole = [parameter.detach().clone() for parameter in parameters]
    for parameter, values in zip(parameters, whole, strict=True):  # the very parameter: others may hold it, too
        parameter.data = values
        vars(parameter).clear()  # what DeepSpeed keeps of it, by which it would be shared out again


def _configuration(recipe: Recipe, world: World) -> dict[str, Any]:
    """bf16 is autocast over float32 weights, everywhere: those weights are the master copy.

    One step of MiniLM over 96 short texts, one thread of an AVX512-bf16 core (EPYC, torch 2.13, DeepSpeed 0.19.8):
    fp32 1.19 s, autocast 0.49 s, DeepSpeed's bf16 engine 0.77 s (ZeRO 0) and 0.82 s (ZeRO 1), which copy weights
    and gradients between formats; autocast with ZeRO 1 1.99 s, so on one CPU the stage is best left at 0.
    """
    return {
        "train_micro_batch_size_per_gpu": 1,  # bookkeeping only: batches come from us
        "gradient_clipping": recipe.clip_norm
        if world.zero_stage
        else 0.0,  # else `clip`: this one waits for a GPU
        "timers": {"throughput": {"enabled": False}},  # on a GPU they wait for all work, twice a step
        "steps_per_print": 10**9,
        "zero_allow_untested_optimizer": True,
        "zero_optimization": {"stage": world.zero_stage},
        "torch_autocast": {"enabled": world.precision == "bf16", "dtype": "bfloat16"},
    }


def reset_process(seed: int, world: World) -> None:
    """Give every run the same process, whatever ran in it before."""
    gc.collect()  # engines of earlier runs
    device = torch.device(world.device)
    os.environ["DS_ACCELERATOR"] = device.type
    os.environ["LOCAL_RANK"] = str(device.index or 0)
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if world.threads > 1 else "false"
    os.environ.setdefault(*REMEMBERED)
    if device.type == "cuda":
        torch.cuda.set_device(device.index or 0)  # refuses a device without an index
        tell_workspace(device)
    torch.set_num_threads(world.threads)
    torch.set_default_dtype(torch.float32)
    torch.use_deterministic_algorithms(True, warn_only=device.type == "cuda")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # every new tensor would be filled with NaN
    random.seed(number(seed, "process"))
    np.random.seed(number(seed, "process") % 2**32)  # noqa: NPY002 - for libraries that draw from it
    torch.manual_seed(number(seed, "process"))


def _checkpointed() -> list[type]:
    """The classes of DeepSpeed that its checkpoints hold (ZeRO 1 and above)."""
    from deepspeed.runtime.fp16.loss_scaler import DynamicLossScaler, LossScaler
    from deepspeed.runtime.zero.config import ZeroStageEnum
    from deepspeed.utils.tensor_fragment import fragment_address

    # Python before 3.11.4 writes a member of an enumeration as a call of getattr, which no safe load accepts
    ZeroStageEnum.__reduce_ex__ = lambda member, protocol: (ZeroStageEnum, (member.value,))
    return [LossScaler, DynamicLossScaler, ZeroStageEnum, fragment_address]


def _join_process_group(world: World) -> None:
    """DeepSpeed wants a process group even for one worker; that one lives in memory and listens on loopback."""
    if dist.is_initialized():
        assert dist.get_world_size() == world.size, "the process group is not the world's"
        return
    assert world.size == 1, "a world of several workers comes with its process group"
    name = "GLOO_SOCKET_IFNAME"
    before = os.environ.get(name)
    os.environ[name] = "lo0" if sys.platform == "darwin" else "lo"
    try:
        backend = "nccl" if torch.device(world.device).type == "cuda" else "gloo"
        # Told its card, torch would split off the group that DeepSpeed makes of this one by ncclCommSplit, which
        # fails for one worker on some machines (DeepSpeed's issue 8248). Untold, it takes the card that is set.
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
        warnings.filterwarnings("ignore", r"barrier\(\): using the device under current context")
    finally:
        os.environ.pop(name) if before is None else os.environ.update({name: before})
