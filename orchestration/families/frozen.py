"""The frozen family: which of these encoders, as they are, is better on the tasks of the field?

Nothing is trained, so no seed moves a figure: what vouches for a difference is the items it was measured on.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from orchestration.families.encoders import EncoderFamily
from trainers.frozen.settings import FrozenData, Settings, defining

if TYPE_CHECKING:
    from trainers.encoders.encoder import Encoder
    from trainers.engine.world import World


@dataclass(frozen=True)
class NoCorpus:
    """What an encoder is trained on that is not trained."""

    fingerprint: str = ""


def read(settings: Settings, folder: Path, world: World) -> Encoder:
    """A backbone read as these settings say."""
    from trainers.encoders.encoder import Encoder

    encoder = Encoder.load(
        folder,
        readout=settings.readout,
        max_length=settings.max_length,
        precision=world.precision,
    )
    return encoder.to(world.device)


def fit(settings: Settings, backbone: Path, corpus: NoCorpus, seed: int, world: World) -> NoReturn:
    raise AssertionError("no setting of this family trains")


FAMILY = EncoderFamily(
    settings=Settings,
    data=FrozenData,
    defining=defining,
    fingerprint=lambda data: "",
    load=lambda data: NoCorpus(),
    read=read,
    fit=fit,
    own_tasks=lambda data: {},  # the field's tasks are every family's
)
