"""The library's trainer with semray's random streams, progress and checkpoints."""

from __future__ import annotations

import json
import math
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_model, save_model
from sentence_transformers import SentenceTransformerTrainer
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from transformers import PrinterCallback, TrainerCallback

from corpora.store.durable import flush, flush_tree
from trainers.engine.loop import Diverged
from trainers.engine.meter import counting
from trainers.engine.streams import number, seed_global
from trainers.engine.world import Progress, World
from trainers.errors import TrainerError
from trainers.sentence_transformers import order
from trainers.sentence_transformers.settings import Settings

# files of a checkpoint; the curve is written last
CURVE, COST, WEIGHTS = "curve.json", "cost.json", "model_and_loss.safetensors"


class Steps(TrainerCallback):
    """A callback around each step: its dropout stream, its point of the curve, its checkpoint, a stop.

    flops: gives the floating-point operations since its last call.
    """

    def __init__(self, seed: int, world: World, look: Callable[[], Mapping[str, float]]) -> None:
        self.seed, self.world, self.look = seed, world, look
        self.curve: list[Progress] = []
        self.losses: list[float] = []
        self.sentences, self.rate, self.began, self.stopped = 0, 0.0, 0.0, False
        self.flops: Callable[[], float] = float

    def on_step_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        seed_global(number(self.seed, "dropout", state.global_step, self.world.rank))
        random.seed(number(self.seed, "dropout", state.global_step, 0))  # a loss draws the same on all workers
        self.losses, self.sentences, self.began = [], 0, time.perf_counter()

    def add_batch(self, loss: float, sentences: int) -> None:
        """Add the loss and the sentences of one batch of the step."""
        self.losses.append(loss)
        self.sentences += sentences

    def on_pre_optimizer_step(
        self, args: Any, state: Any, control: Any, optimizer: Any = None, **rest: Any
    ) -> None:
        self.rate = max(group["lr"] for group in optimizer.param_groups)

    def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        step, loss = state.global_step, self._mean_of_workers(sum(self.losses) / len(self.losses))
        flops, seconds = self.flops(), time.perf_counter() - self.began
        self.world.spent(flops, seconds)
        if not math.isfinite(loss):  # all workers know it, and end together
            raise Diverged(step, {"loss": loss})
        done = Progress(
            step=step,
            steps=state.max_steps,
            loss=loss,
            terms={"loss": loss},
            learning_rate=self.rate,
            sentences_per_second=self.world.size * self.sentences / seconds,
        )
        if step in self.world.look_at and self.world.rank == 0:
            done = replace(done, figures=self.look())
            self.flops()  # a look does not count as training
        self.curve.append(done)
        self.world.report(done)
        due = self.world.checkpoint_every and step % self.world.checkpoint_every == 0
        self.stopped = self.world.stopping()
        control.should_save = self.world.scratch is not None and bool(due or self.stopped)
        control.should_training_stop = control.should_training_stop or self.stopped

    def on_train_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """Raise TrainerError for a training that ended early: the library stops where its rows do."""
        if state.global_step < state.max_steps and not self.stopped:
            raise TrainerError(
                f"the rows gave batches for {state.global_step} of {state.max_steps} steps\n"
                "  accepted: a smaller per_device_train_batch_size, or dataloader_drop_last: false"
            )

    def _mean_of_workers(self, loss: float) -> float:
        """The mean of a loss over all workers."""
        if self.world.size == 1:
            return loss
        shared = torch.tensor(loss, dtype=torch.float64, device=self.world.device)
        torch.distributed.all_reduce(shared)
        return float(shared) / self.world.size

    def on_save(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """Rank 0 completes the trainer's checkpoint; then all workers meet."""
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        if self.world.rank == 0:
            self._complete(folder)
        if self.world.save is not None:
            self.world.save(folder, state.global_step)

    def _complete(self, folder: Path) -> None:
        (folder / COST).write_text(json.dumps(dict(self.world.so_far())))
        draft = folder / f".{CURVE}"
        draft.write_text(json.dumps([asdict(point) for point in self.curve]))
        flush_tree(folder)
        os.replace(draft, folder / CURVE)
        flush(folder)


class RecipeTrainer(SentenceTransformerTrainer):
    """The library's trainer with our order of rows, and checkpoints without pickled models.

    A checkpoint also holds the loss's parameters, which the library's own lacks.
    """

    def __init__(self, *, settings: Settings, names: Sequence[str], seed: int, steps: Steps, **rest: Any) -> None:
        self.settings, self.names, self.seed, self.steps = settings, names, seed, steps
        super().__init__(callbacks=[steps], **rest)
        self.remove_callback(PrinterCallback)  # it prints to stdout, which is for results

    def finish(self, last: Path | None) -> None:
        """Train to the end, from the start or from this checkpoint."""
        curve = self.steps.curve
        if last is not None and (kept := last / COST).exists():  # old checkpoints have none
            self.steps.world.go_on(json.loads(kept.read_text()))
        if last is not None and curve[-1].step >= curve[-1].steps:
            self._load_from_checkpoint(str(last))  # the library would train one step more
            return
        with counting(self.model) as self.steps.flops:
            self.train(resume_from_checkpoint=None if last is None else str(last))

    def get_train_dataloader(self) -> Any:
        """The library's. A worker's share of the batches passes the epoch on, which a training that goes on in the
        middle of a later epoch tells it, and not the order of rows itself."""
        loader = super().get_train_dataloader()
        share: Any = loader.batch_sampler
        if (batches := getattr(share, "batch_sampler", None)) is not None:
            share.set_epoch = batches.set_epoch
        return loader

    def set_initial_training_values(self, args: Any, dataloader: Any) -> Any:
        """The library's, with as many steps on every worker.

        Of an epoch one worker may get a batch more than another, which would wait for the one that has ended.
        """
        values = super().set_initial_training_values(args, dataloader)
        if self.steps.world.size == 1 or args.max_steps > 0:
            return values
        most = torch.tensor(values[-1], device=self.steps.world.device)
        torch.distributed.all_reduce(most, torch.distributed.ReduceOp.MAX)
        args.max_steps = int(most)
        return super().set_initial_training_values(args, dataloader)

    def add_model_card_callback(self, default_args_dict: Mapping[str, Any]) -> None:
        """Add no callback, as it would look up data sets on the hub."""

    def compute_loss(self, model: Any, inputs: dict[str, Any], *args: Any, **rest: Any) -> Any:
        columns = [value for name, value in inputs.items() if name.endswith("input_ids")]
        loss: Any = super().compute_loss(model, inputs, *args, **rest)
        self.steps.add_batch(float(loss.detach()), sum(len(ids) for ids in columns))
        return loss

    def get_batch_sampler(self, dataset: Any, *args: Any, **rest: Any) -> Any:
        several = self.train_dataset if isinstance(self.train_dataset, dict) else {self.names[0]: dataset}
        (name,) = (name for name, rows in several.items() if rows is dataset)
        return order.of_rows(self.settings, dataset, name, self.seed)

    def get_multi_dataset_batch_sampler(
        self, dataset: Any, batch_samplers: list[Any], *args: Any, **rest: Any
    ) -> Any:
        return order.of_several(self.settings, dataset, batch_samplers, self.names, self.seed)

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        folder = Path(str(output_dir))
        folder.mkdir(parents=True, exist_ok=True)
        save_model(self._model_and_losses(), str(folder / WEIGHTS))

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        load_model(self._model_and_losses(), str(Path(resume_from_checkpoint) / WEIGHTS))

    def _load_rng_state(self, checkpoint: str | None) -> None:
        """Load nothing, as every step draws from its own stream."""

    def _model_and_losses(self) -> nn.Module:
        losses = self.loss if isinstance(self.loss, dict) else {"loss": self.loss}
        own = {f"loss {name}": _without_group(loss) for name, loss in losses.items()}
        return nn.ModuleDict({"model": self.model, **own})


def _without_group(module: nn.Module) -> nn.Module:
    """The module with the parameter names that it has without DistributedDataParallel around its parts."""
    if isinstance(module, DistributedDataParallel):
        return module.module
    twin = copy(module)
    twin._modules = {
        name: child if child is None else _without_group(child) for name, child in module._modules.items()
    }
    return twin


def newest(folder: Path) -> tuple[Path | None, list[Progress]]:
    """The last complete checkpoint, and the curve up to it."""
    complete = [file.parent for file in folder.glob(f"checkpoint-*/{CURVE}")]
    last = max(complete, key=lambda one: int(one.name.rpartition("-")[2]), default=None)
    points = json.loads((last / CURVE).read_text()) if last else []
    return last, [Progress(**point) for point in points]
