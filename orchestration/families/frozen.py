"""The frozen family compares untrained encoders on published tasks.

Seeds change nothing, so significance of a difference rests on the items of the tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestration.families.contract import Family, Opener
from orchestration.families.encoder_checks import length_slips, of_arm
from orchestration.families.encoders import EncoderFamily
from trainers.encoders.own_reading import own_readout
from trainers.frozen.settings import FrozenData, Settings, defining

if TYPE_CHECKING:
    from orchestration.study.study import Study
    from trainers.encoders.encoder import Encoder


@dataclass(frozen=True)
class NoCorpus:
    """The empty corpus of encoders that are not trained."""

    fingerprint: str = ""


def check_modules(study: Study, backbones: Sequence[Path]) -> None:
    """Raise ValueError for a backbone with modules of its own that semray does not implement."""
    for name, arm in study.arms.items():
        for folder in backbones if arm.readout == "own" else ():
            with of_arm(name):
                own_readout(folder)


def told(encoder: Encoder) -> dict[str, str]:
    """The readout and max_length of the encoder, for tables."""
    return {"read by": f"{encoder.readout}, at most {encoder.max_length} tokens"}


def opener() -> Opener:
    from trainers.frozen import training

    return training


FAMILY: Family = EncoderFamily(
    settings=Settings,
    data=FrozenData,
    defining=defining,
    fingerprint=lambda data: "",
    load=lambda data: NoCorpus(),
    trainer=opener,
    told=told,
    backbone_checks=(check_modules,),
    slips=length_slips(defining),
)
