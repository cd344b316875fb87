"""Encoders as they are: they are read, and no setting trains them."""

from __future__ import annotations

from pathlib import Path

from trainers.encoders.encoder import Encoder
from trainers.engine.world import World
from trainers.frozen.settings import Settings


def read(settings: Settings, folder: Path, world: World) -> Encoder:
    """A backbone read as these settings say."""
    encoder = Encoder.load(
        folder, readout=settings.readout, max_length=settings.max_length, precision=world.precision
    )
    return encoder.to(world.device)
