"""Encoders as they are: they are read, and no setting trains them."""

from __future__ import annotations

from pathlib import Path

from trainers.encoders.encoder import Encoder
from trainers.encoders.own_reading import length_of, own_readout
from trainers.engine.world import World
from trainers.frozen.settings import Settings


def read(settings: Settings, folder: Path, world: World) -> Encoder:
    """A backbone read as these settings say. ValueError for modules of its own that an `Encoder` has not."""
    readout = own_readout(folder) if settings.readout == "own" else settings.readout
    max_length = settings.max_length or length_of(folder)
    encoder = Encoder.load(folder, readout=readout, max_length=max_length, precision=world.precision)
    return encoder.to(world.device)
