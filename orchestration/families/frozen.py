"""The frozen family: which of these encoders, as they are, is better on the tasks of the field?

Nothing is trained, so no seed moves a figure: what vouches for a difference is the items it was measured on.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestration.families.contract import Family, Opener
from orchestration.families.encoders import EncoderFamily
from trainers.frozen.settings import FrozenData, Settings, defining


@dataclass(frozen=True)
class NoCorpus:
    """What an encoder is trained on that is not trained."""

    fingerprint: str = ""


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
)
