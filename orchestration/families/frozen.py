"""The frozen family: which of these encoders, as they are, is better on the tasks of the field?

Nothing is trained, so no seed moves a figure: what vouches for a difference is the items it was measured on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestration.families.contract import Family, Opener
from orchestration.families.encoder_checks import of_arm
from orchestration.families.encoders import EncoderFamily
from trainers.encoders.own_reading import own_readout
from trainers.frozen.settings import FrozenData, Settings, defining

if TYPE_CHECKING:
    from orchestration.study.study import Study
    from trainers.encoders.encoder import Encoder


@dataclass(frozen=True)
class NoCorpus:
    """What an encoder is trained on that is not trained."""

    fingerprint: str = ""


def check_modules(study: Study, backbones: Sequence[Path], corpus: NoCorpus) -> None:
    """What a backbone's own modules do is all done here."""
    for name, arm in study.arms.items():
        for folder in backbones if arm.readout == "own" else ():
            with of_arm(name):
                own_readout(folder)


def told(encoder: Encoder) -> dict[str, str]:
    """What the model's own readout and length are."""
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
    checks=(check_modules,),
)
