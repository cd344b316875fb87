"""Loads unchanged encoders; no setting trains them."""

from __future__ import annotations

from pathlib import Path

from trainers.encoders.encoder import Encoder
from trainers.encoders.own_reading import length_of, own_readout
from trainers.engine.world import World
from trainers.frozen.settings import Settings


def read(settings: Settings, folder: Path, world: World) -> Encoder:
    """Load a backbone with these settings. ValueError if it has modules that `Encoder` does not know."""
    readout = own_readout(folder) if settings.readout == "own" else settings.readout
    max_length = settings.max_length or length_of(folder)
    encoder = Encoder.load(folder, readout=readout, max_length=max_length, precision=world.precision)
    return encoder.to(world.device)
