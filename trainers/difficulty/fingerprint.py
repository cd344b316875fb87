"""What names the data of a difficulty study: its pairs and who judged them. Known without torch."""

from __future__ import annotations

from corpora.difficulty import pairs
from corpora.difficulty.pairs import STANDIN, PairData
from corpora.store.cache import key_of
from trainers.encoders.backbones import backbone_fingerprint, resolve_backbone


def fingerprint(data: PairData) -> str:
    """Names what is trained on, with its targets: pairs, settings and, where a cross-encoder judges, its weights.

    Raises CorpusError when a task or a file is missing, BackboneError when the judge is.
    """
    return _with_judge(pairs.fingerprint(data), data)


def former_fingerprint(data: PairData) -> str:
    """The one name of training and test rows in ledgers of before scores had entries of their own."""
    return _with_judge(pairs.former_fingerprint(data), data)


def _with_judge(named: str, data: PairData) -> str:
    if data.judge in ("none", "scores_file", STANDIN):
        return named
    return key_of({"pairs": named, "judge": backbone_fingerprint(resolve_backbone(data.judge))})
