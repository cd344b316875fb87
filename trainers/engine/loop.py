"""The one training loop: DeepSpeed on a CPU or a GPU, one worker or several.

    curve = fit(encoder, loss, batches, groups=groups, recipe=Recipe(steps=60), seed=0, world=World())

A step's data is `batches(step)` and its dropout stream is (seed, step, rank): a function of the step alone, so a
run that resumes from a checkpoint goes on exactly as if it had never stopped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from trainers.engine.ahead import Ahead
from trainers.engine.bf16_copies import Bf16Copy, with_bf16_copies
from trainers.engine.flat_groups import FlatGroups
from trainers.engine.flat_parameters import FlatParameters
from trainers.engine.memory import keeping_memory
from trainers.engine.meter import counting
from trainers.engine.micro_batches import MicroBatch, within_memory
from trainers.engine.optimisation import clip, merge_groups, parameters_of, schedule
from trainers.engine.process import join_process_group, reset_process
from trainers.engine.row_gradients import RowGradients
from trainers.engine.shortage import reporting_state_shortage
from trainers.engine.streams import number, seed_global
from trainers.engine.transfers import Arriving
from trainers.engine.world import Progress, Stopped, World
from trainers.errors import TrainerError

if TYPE_CHECKING:
    from deepspeed import DeepSpeedEngine


class StepBatch(Protocol):
    def __len__(self) -> int:
        """The number of texts that the step encodes, over all workers."""


class Beside(Protocol):
    """What runs a part of the model in its stead: a seat in a stack, or graphs."""

    def joined(self, model: nn.Module) -> AbstractContextManager[None]:
        """Until the block ends, run that part."""

    def flops(self) -> float:
        """Floating-point operations of that part since the last call."""


class AsGraphs(Beside, Protocol):
    """Runs an encoder's passes as CUDA graphs."""

    @property
    def parameters(self) -> Sequence[nn.Parameter]:
        """Those whose gradients it computes."""

    def take(self, flats: Sequence[FlatParameters]) -> None:
        """Give the gradients of all `parameters` to these, in which they are now. Called before the first pass."""

    def forget(self) -> bool:
        """Give back the memory of all graphs. -> whether there were any."""


B = TypeVar("B", bound=StepBatch)
Encode = Callable[..., Tensor]  # the model wrapped by DeepSpeed; takes and returns what its forward does


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Length and learning-rate schedule of a training; base rates and decay are in the parameter groups.

    clip_norm 0: gradients are not clipped. shape: maps a step, counted from 0, to the factor on the base rates;
    None for a linear warm-up and a linear decay to 0.
    """

    steps: int
    warmup: int = 0
    clip_norm: float = 1.0
    shape: Callable[[int], float] | None = None


class Diverged(TrainerError):
    """The loss of a step was not finite. `step` counts from 1; `terms` are that step's weighted loss terms."""

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
    bf16_copies: Sequence[Bf16Copy] = (),
    graphs: AsGraphs | None = None,
) -> list[Progress]:
    """Train the model in place and return its curve, one Progress per step. The model is left in evaluation mode.

    loss(encode, batch): the weighted loss terms by name, which are summed and minimised; a term without gradient
    is only reported. It runs outside of autocast, so in float32 when the model returns float32.
    batches(step): the data of a step, counted from 0; on a GPU a second thread calls it, one step ahead.
    look(): measures the model after each of the steps world.look_at; only rank 0 calls it, and the others wait.
    micro: how many texts the model encodes at a time; None for a model that cannot divide a batch. With "auto" a
    step that runs out of memory makes it smaller, and from then on the curve has the figure "micro_batch".
    bf16_copies: weights that only autocast reads; their bfloat16 copies are then made all at once.
    graphs: run the passes of the model's encoder, and make copies of their own (`trainers.encoders.graphs`). Until
    this returns their parameters are parts of few tensors, and have no gradients of their own.

    With world.scratch and world.checkpoint_every the run leaves checkpoints there and continues from the newest.
    Raises OutOfMemory; Diverged after the first step whose loss is not finite; Stopped when world.stopping()
    returns True.
    """
    from trainers.engine import checkpoints

    _assert_covered(model, groups)
    seat = world.seat
    if micro is not None:
        micro.reentrant = graphs is not None
    beside: Beside | None = seat or graphs  # what runs the encoder's layers, if the model does not
    if bf16_copies and world.precision == "bf16" and not world.zero_stage and beside is None:
        loss = _with_copies(loss, bf16_copies)
    ahead = Ahead(batches, recipe.steps) if world.on_card and seat is None else None
    with (
        counting(model) as flops,
        nullcontext() if beside is None else beside.joined(model),
        _deepspeed_engine(model, groups, recipe, seed, world, graphs) as engine,
        _gradients_for_optimizer(model, engine.optimizer, recipe, world) as prepare_gradients,
        ahead or nullcontext(),
    ):
        curve = [] if world.scratch is None else checkpoints.resume(engine, world)
        if micro is not None and curve and (smaller := curve[-1].figures.get("micro_batch")):
            micro.size = int(smaller)  # dropout is drawn per part, so resuming needs the same parts
        engine.train()
        steps = _Steps(
            engine=engine,
            loss=loss,
            batches=ahead or batches,
            recipe=recipe,
            seed=seed,
            world=world,
            micro=micro,
            graphs=graphs,
            prepare_gradients=prepare_gradients,
        )
        for step in range(len(curve), recipe.steps):
            began = time.perf_counter()
            done = steps.take(step)
            others = beside.flops() if beside else 0.0
            world.spent(flops() + others, time.perf_counter() - began)
            if done.step in world.look_at:
                if world.rank == 0:
                    if ahead is not None:
                        ahead.settle()
                    done = replace(done, figures={**done.figures, **look()})
                    flops()  # a look is no training
                    engine.train()
                if world.size > 1:
                    # On cards they would ask for the next step's sums already. DeepSpeed's group, which has not
                    # our patience, ends a process whose sum has not come ten minutes after.
                    dist.barrier()
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
    """What all steps of a training share. prepare_gradients: from `_gradients_for_optimizer`."""

    engine: DeepSpeedEngine
    loss: Callable[[Encode, B], Mapping[str, Tensor]]
    batches: Callable[[int], B]
    recipe: Recipe
    seed: int
    world: World
    micro: MicroBatch | None
    graphs: AsGraphs | None
    prepare_gradients: Callable[[], None]

    def take(self, step: int) -> Progress:
        """Take one step, counted from 0. Its figures are read last, so that the GPU need not wait."""
        began = time.perf_counter()
        engine, micro, batch = self.engine, self.micro, self.batches(step)
        rate = max(group["lr"] for group in engine.optimizer.param_groups)

        def gradients() -> _Figures:
            seed_global(number(self.seed, "dropout", step, self.world.rank))
            return _gradients(engine, self.loss, batch, self.world)

        def undo() -> bool:
            engine.optimizer.zero_grad()
            return self.graphs is not None and self.graphs.forget()

        figures = within_memory(gradients, undo, micro, len(batch), self.world)
        self.prepare_gradients()
        if self.graphs is not None and not engine.optimizer.state:
            self.graphs.forget()  # they leave the state room; what there is none for then, the next step tells
        with reporting_state_shortage(self.world.seat):  # the first step allocates the optimiser's state
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
def _gradients_for_optimizer(
    model: nn.Module, optimizer: Any, recipe: Recipe, world: World
) -> Iterator[Callable[[], None]]:
    """Yield a function to call between the backward pass and the update: it clips the gradients.

    With one worker on a CPU it also turns the row gradients of large embedding tables into dense ones. Under ZeRO
    DeepSpeed clips.
    """
    on_cpu = not world.on_card
    tables = RowGradients(model.modules() if on_cpu and world.size == 1 and not world.zero_stage else ())
    # the optimiser's alone, as policies beside the model have another; in the model's order, on which the last
    # digits of a norm depend
    place = {id(parameter): at for at, parameter in enumerate(model.parameters())}
    learnt = sorted(parameters_of(optimizer.param_groups), key=lambda one: place.get(id(one), len(place)))
    clipped = learnt if recipe.clip_norm and not world.zero_stage else []

    def prepare() -> None:
        tables.sum_repeated()
        clip(clipped, recipe.clip_norm, workers=world.size)
        tables.make_dense()

    with tables.recording():
        yield prepare


def _with_copies(
    loss: Callable[[Encode, B], Mapping[str, Tensor]], copies: Sequence[Bf16Copy]
) -> Callable[[Encode, B], Mapping[str, Tensor]]:
    def loss_with_copies(encode: Encode, batch: B) -> Mapping[str, Tensor]:
        return loss(with_bf16_copies(encode, copies), batch)

    return loss_with_copies


@dataclass(frozen=True)
class _Figures:
    """A step's loss terms and their sum, averaged over the workers, while they are copied from the device.

    learnt: the names of the terms that have a gradient.
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
    """Run loss and backward pass of a step, which leaves the optimiser its gradients; return its figures."""
    terms = loss(engine, batch)
    if wrong := _wrong_in(terms):
        raise TrainerError(
            f"the loss gave {wrong}\n  accepted: a mapping of names to tensors without dimensions, at least one of"
            " them with a gradient"
        )
    learnt = [name for name, term in terms.items() if term.requires_grad]
    total = torch.stack([terms[name] for name in learnt]).sum()
    figures = _Figures.of(terms, learnt, total, world)  # the copy starts before the backward pass
    engine.backward(total)
    if world.seat is not None:
        world.seat.backward()
    return figures


def _wrong_in(terms: Any) -> str:
    """What a loss gave in place of terms that can be added up and learnt from; "" if nothing is wrong."""
    if not isinstance(terms, Mapping):
        return f"a {type(terms).__name__}"
    for name, term in terms.items():
        if not isinstance(term, Tensor):
            return f"{name} as a {type(term).__name__}"
        if term.ndim:
            return f"{name} with the shape {tuple(term.shape)}"
    if not any(term.requires_grad for term in terms.values()):
        return f"no term with a gradient: {', '.join(terms) or 'none at all'}"
    return ""


def _assert_covered(model: nn.Module, groups: Sequence[Mapping[str, Any]]) -> None:
    held = [id(parameter) for parameter in parameters_of(groups)]
    trainable = {id(parameter): name for name, parameter in model.named_parameters() if parameter.requires_grad}
    missing = [name for key, name in trainable.items() if key not in set(held)]
    assert not missing, f"parameters in no optimizer group: {missing}"
    assert len(held) == len(set(held)) == len(trainable), (
        "a parameter is in two optimizer groups, or is not trained"
    )


@contextmanager
def _deepspeed_engine(
    model: nn.Module,
    groups: Sequence[Mapping[str, Any]],
    recipe: Recipe,
    seed: int,
    world: World,
    graphs: AsGraphs | None,
) -> Iterator[DeepSpeedEngine]:
    """Yield a DeepSpeed engine around the model and its optimizer, in a process without traces of earlier runs."""
    from trainers.engine import deep_speed  # its import takes seconds, and only training needs it

    reset_process(seed, world)
    join_process_group(world)
    flat = FlatGroups([dict(group) for group in groups] if world.zero_stage else merge_groups(groups))
    try:
        with reporting_state_shortage(world.seat):
            model.to(world.device)
            if graphs:
                flat.join(graphs.parameters)
                graphs.take(flat.flats)
        # A client optimizer and scheduler: DeepSpeed's own would overwrite the rates of the groups.
        optimizer = torch.optim.AdamW(flat.held, betas=(0.9, 0.999), eps=1e-8, fused=True)
        flat.record_apart(optimizer)
        linear_decay = partial(schedule, steps=recipe.steps, warmup=recipe.warmup)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, recipe.shape or linear_decay)
        with (
            deep_speed.engine_of(model, optimizer, scheduler, recipe.clip_norm, world) as engine,
            keeping_memory(),
        ):
            yield engine
    finally:
        flat.separate()
