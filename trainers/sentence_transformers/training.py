"""Trains a recipe of sentence-transformers: gives model, losses, rows and arguments to the library's trainer.

Random streams: (seed, "data", data set, epoch) for the order of rows, (seed, "data", "mixture", epoch) for the
mixture, (seed, "dropout", step) for dropout, (seed, "init", …) for initial weights of a loss or of LoRA. A loss
that draws inside a step (MatryoshkaLoss its dimensions, AdaptiveLayerLoss its layers) uses the process's
generators, which each step seeds from its stream; its arm's dropout then differs from other arms'.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from trainers.sentence_transformers.losses import LOSSES, inner
from trainers.sentence_transformers.settings import LoraSettings, Settings

if TYPE_CHECKING:
    from corpora.sentence_transformers.corpus import Columns, RecipeCorpus
    from trainers.engine.world import Progress, World
    from trainers.sentence_transformers.encoder import SentenceModel

ARGUMENTS = (  # of the library, which are settings of the same name
    "per_device_train_batch_size",
    "gradient_accumulation_steps",
    "dataloader_drop_last",
    "learning_rate",
    "weight_decay",
    "warmup_steps",
    "lr_scheduler_type",
    "max_grad_norm",
)


def read(settings: Settings, folder: Path, world: World) -> SentenceModel:
    """Open a backbone, or a model that a run saved."""
    from trainers.sentence_transformers.encoder import opened

    return opened(settings, folder, world)


def fit(
    settings: Settings, backbone: Path, corpus: RecipeCorpus, seed: int, world: World
) -> tuple[SentenceModel, list[Progress]]:
    """Train with the library's trainer. Raises Diverged, or Stopped if world.stopping()."""
    import torch

    from trainers.engine.process import reset_process
    from trainers.engine.streams import number
    from trainers.engine.world import Stopped
    from trainers.sentence_transformers.trainer import RecipeTrainer, Steps, newest

    reset_process(seed, world)
    encoder = read(settings, backbone, world)  # the library's steps turn dropout on, its `encode` off
    names = settings.datasets or tuple(corpus.sets)
    specs = settings.losses(names)
    torch.manual_seed(number(seed, "init", "lora"))
    if settings.lora is not None:
        _add_lora(encoder, settings.lora)

    def loss_of(name: str) -> Any:
        return _loss(specs[name], encoder, settings, corpus, number(seed, "init", name))

    if settings.loss_by_dataset:
        losses = {name: loss_of(name) for name in specs}
    else:
        losses = dict.fromkeys(specs, loss_of(next(iter(specs))))
    rows = {name: _dataset(corpus.sets[name], specs[name]) for name in names}
    steps = Steps(seed, world, partial(world.look, encoder))
    with TemporaryDirectory(prefix="semray-recipe-") as room, _workers_as_in(world):
        place = (world.scratch or Path(room)) / "checkpoints"
        last, steps.curve = newest(place)
        trainer = RecipeTrainer(
            model=encoder.model,
            args=_arguments(settings, names, place, seed, world),
            train_dataset=rows if len(rows) > 1 else next(iter(rows.values())),
            loss=losses if len(rows) > 1 else next(iter(losses.values())),
            settings=settings,
            names=names,
            seed=seed,
            steps=steps,
        )
        trainer.finish(last)
    if steps.stopped:
        raise Stopped(f"after step {steps.curve[-1].step}")
    if settings.lora is not None:
        _merge_lora(encoder)
    encoder.model.eval()
    return encoder, steps.curve


def _arguments(settings: Settings, names: Sequence[str], place: Path, seed: int, world: World) -> Any:
    from sentence_transformers import SentenceTransformerTrainingArguments

    from trainers.engine.streams import number

    length = "max_steps" if settings.num_train_epochs is None else "num_train_epochs"
    prompts: dict[str, Any] = dict(settings.prompts)
    if prompts and len(names) > 1:  # else the library confuses names of columns and of data sets
        prompts = dict.fromkeys(names, prompts)
    return SentenceTransformerTrainingArguments(
        output_dir=str(place),
        seed=number(seed, "process") % 2**32,
        prompts=prompts or None,
        use_cpu=not world.on_card,
        bf16=world.precision == "bf16",
        save_strategy="no",
        save_total_limit=2,
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
        dataloader_pin_memory=world.device != "cpu",
        **{name: getattr(settings, name) for name in (*ARGUMENTS, length)},
    )


def _dataset(columns: Columns, spec: Mapping[str, Any]) -> Any:
    """The rows as a `Dataset`, with labels of the loss's type."""
    from datasets import Dataset

    made: dict[str, Any] = {name: list(texts) for name, texts in columns.texts.items()}
    if columns.labels is not None:
        classes = LOSSES[inner(spec)["name"]].label == "class"
        made["label"] = [int(label) if classes else float(label) for label in columns.labels]
    return Dataset.from_dict(made)


def _loss(
    spec: Mapping[str, Any], encoder: SentenceModel, settings: Settings, corpus: RecipeCorpus, seed: int
) -> Any:
    """The loss of a spec, with the one that it wraps. seed: for its initial weights."""
    import torch
    from sentence_transformers.sentence_transformer import losses

    given = {name: value for name, value in spec.items() if name != "name"}
    if "loss" in given:
        given["loss"] = _loss(given["loss"], encoder, settings, corpus, seed)
    if "guide" in given:
        given["guide"] = _guide(corpus.guides[given["guide"]], encoder)
    if spec["name"] == "SoftmaxLoss":
        given["embedding_dimension"] = encoder.model.get_embedding_dimension()
    if "directions" in given:
        given["directions"] = tuple(given["directions"])
    torch.manual_seed(seed)
    return getattr(losses, spec["name"])(encoder.model, **given)


def _guide(name: str, encoder: SentenceModel) -> Any:
    from trainers.encoders.backbones import resolve_backbone
    from trainers.sentence_transformers.encoder import opened

    guide = opened(Settings(train=False), resolve_backbone(name, fetch=False), encoder.world).model
    return guide.requires_grad_(False)


def _add_lora(encoder: SentenceModel, lora: LoraSettings) -> None:
    from trainers.sentence_transformers.lora import with_lora

    encoder.model.requires_grad_(False)  # only the updates are trained
    body: Any = encoder.model[0]
    body.model = with_lora(body.model, lora)


def _merge_lora(encoder: SentenceModel) -> None:
    """Add the updates to the weights, so that the scored and saved model is a plain encoder."""
    body: Any = encoder.model[0]
    body.model = body.model.merge_and_unload()


@contextmanager
def _workers_as_in(world: World) -> Iterator[None]:
    """Set the environment variables from which the library reads the number of workers, as the world has it.

    The process group exists already, so its address is never used.
    """
    import torch
    from accelerate.state import AcceleratorState, PartialState

    from trainers.engine.world import GROUP

    kept = {name: os.environ.pop(name) for name in GROUP if name in os.environ}
    if world.size > 1:
        card = torch.device(world.device).index  # the library takes the one of that number
        os.environ |= {"RANK": f"{world.rank}", "LOCAL_RANK": f"{world.rank if card is None else card}"}
        os.environ |= {"WORLD_SIZE": f"{world.size}", "LOCAL_WORLD_SIZE": f"{world.size}"}
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}  # never used
    AcceleratorState._reset_state(True)
    try:
        yield
    finally:
        AcceleratorState._reset_state(True)
        PartialState._reset_state()
        for name in GROUP:
            os.environ.pop(name, None)
        os.environ.update(kept)
