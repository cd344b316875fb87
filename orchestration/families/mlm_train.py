"""`semray mlm-train`: its flags, and the training of a generator of aligned negatives."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpora.san.data import SanData
from orchestration.families.flags import add_fields, add_precision, made
from orchestration.families.san_generate import DATA
from orchestration.study.errors import StudyError
from orchestration.study.names import typed
from orchestration.study.writable import new_folder

if TYPE_CHECKING:
    from corpora.store.telling import HowFar
    from orchestration.families.contract import Write
    from trainers.engine.world import Precision
    from trainers.san.masked_settings import MaskedSettings

SUMMARY = "train a backbone to fill masks on a corpus, as a generator for san-generate"
SENTENCES = {name: text for name, text in DATA.items() if name != "lexicon"}
TRAINING = {
    "steps": "of training",
    "batch_size": "sentences of a step",
    "max_length": "tokens of a sentence that are read",
    "learning_rate": "of the layers, decaying to 0",
    "head_rate": "of the head",
    "seed": "of order, masks and a new head",
}


def add_arguments(command: ArgumentParser) -> None:
    from trainers.san.masked_settings import MaskedSettings

    command.add_argument(
        "--backbone", required=True, metavar="NAME", help="the encoder to train, by name or folder"
    )
    command.add_argument("--out", required=True, metavar="FOLDER", help="where the model is kept")
    add_fields(command, SanData, SENTENCES)
    add_fields(command, MaskedSettings, TRAINING)
    add_precision(command, "part of the model's id")


@dataclass(frozen=True, kw_only=True)
class TrainingOrder:
    """The training to do: backbone, sentences, output folder and device. id: the model's `identity`."""

    settings: MaskedSettings
    backbone: str
    data: SanData
    folder: Path
    device: str
    precision: Precision
    id: str


class GeneratorTraining:
    """See `contract.OwnWork`. The whole training is a single piece of work."""

    unit = "steps"

    def __init__(self, order: TrainingOrder) -> None:
        from trainers.san.masked_settings import about

        self.order = order
        found = about(order.folder)
        if order.folder.exists() and (found is None or found["id"] != order.id):
            what = "another folder" if found is None else f"another model, of {found['backbone']}"
            raise StudyError(
                f"--out {order.folder}: holds {what}\n  accepted: a folder that is not there yet, or the flags it"
                " was made with"
            )
        self.pending: Mapping[int, int] = {} if found else {0: order.settings.steps}

    @property
    def written(self) -> str:
        return f"trained for {self.order.settings.steps} steps"

    def writer(self) -> Callable[[], Write]:
        return partial(_open_writer, self.order)

    def outcome(self) -> tuple[dict[str, Any], str]:
        from trainers.san.masked_settings import about

        found = about(self.order.folder)
        assert found is not None
        words = [
            f"{self.order.folder}   model {found['id'][:12]}",
            f"{found['backbone']} after {found['settings']['steps']} steps names {found['accuracy']:.3f} of"
            f" {found['targets']:,} masked words; the most frequent one has {found['most_frequent']:.3f}",
            f"next    {typed('san-generate', '--generator', self.order.folder)} --out FOLDER",
        ]
        return found, "\n".join(words)


def work_of(options: Namespace) -> GeneratorTraining:
    """The training that the flags describe. Raises StudyError naming a flag whose value is not accepted."""
    from corpora.san.build import selection_key
    from trainers.encoders.backbones import BackboneError, backbone_fingerprint, check_precision, resolve_backbone
    from trainers.engine.precision import best_precision
    from trainers.san.masked_settings import MaskedSettings, identity

    given = vars(options)
    settings = made(MaskedSettings, given)
    folder = new_folder(options.out).resolve()
    data = made(SanData, given)
    device = "cuda" if options.gpus else "cpu"
    precision = options.precision or best_precision(device)
    try:
        at = resolve_backbone(options.backbone)
        backbone = backbone_fingerprint(at)
    except BackboneError as error:
        raise StudyError(str(error)) from error
    try:
        check_precision(at, precision)
    except BackboneError:
        problem = f"--precision {precision}: {options.backbone} is of a kind that transformers cannot train in it"
        raise StudyError(f"{problem}\n  accepted: --precision fp32") from None
    return GeneratorTraining(
        TrainingOrder(
            settings=settings,
            backbone=options.backbone,
            data=data,
            folder=folder,
            device=device,
            precision=precision,
            id=identity(settings, backbone, selection_key(data), precision),
        )
    )


def _open_writer(order: TrainingOrder) -> Write:
    def write(shard: int, how_far: HowFar) -> None:
        from corpora.san.build import selected
        from corpora.store.errors import CorpusError
        from trainers.engine.world import World
        from trainers.errors import TrainerError
        from trainers.san.masked_training import train

        world = World(
            device=order.device, precision=order.precision, report=lambda progress: how_far(progress.step)
        )
        try:
            train(order.settings, order.backbone, selected(order.data).texts, order.folder, world, name=order.id)
        except (TrainerError, ValueError) as error:
            raise CorpusError(str(error)) from error

    return write
