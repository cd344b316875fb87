"""What names the data of a difficulty study: its pairs and who judged them. Known without torch."""

from __future__ import annotations

from pathlib import Path

from corpora.difficulty import pairs
from corpora.difficulty.pairs import STANDIN, PairData
from corpora.store.cache import key_of
from corpora.store.errors import CorpusError
from trainers.encoders.backbones import backbone_fingerprint, read_json, resolve_backbone

CLASSIFIER = "ForSequenceClassification"  # how transformers ends the names of models with a trained head
LABELS = 2  # of a configuration that does not say how many


def fingerprint(data: PairData) -> str:
    """Names what is trained on, with its targets: pairs, settings and, where a cross-encoder judges, its weights.

    Raises CorpusError when a task or a file is missing or the judge is no cross-encoder, BackboneError when it is
    missing.
    """
    return _with_judge(pairs.fingerprint(data), data)


def former_fingerprint(data: PairData) -> str:
    """The one name of training and test rows in old ledgers, where scores had no entries of their own."""
    return _with_judge(pairs.former_fingerprint(data), data)


def _with_judge(named: str, data: PairData) -> str:
    if data.judge in ("none", "scores_file", STANDIN):
        return named
    folder = resolve_backbone(data.judge)
    check_cross_encoder(data.judge, folder)
    return key_of({"pairs": named, "judge": backbone_fingerprint(folder)})


def check_cross_encoder(name: str, folder: Path) -> None:
    """Raise CorpusError unless its configuration tells of a trained head with one output.

    Of any other model transformers makes a cross-encoder as well, with a head that it draws at random.
    """
    config = read_json(folder / "config.json")
    kind = ", ".join(config.get("architectures") or ("a model of no kind",))
    labels = len(config.get("id2label") or ()) or config.get("num_labels", LABELS)
    if not kind.endswith(CLASSIFIER) or labels != 1:
        found = f"{kind} with {labels} labels" if kind.endswith(CLASSIFIER) else kind
        raise CorpusError(
            f"data.judge = {name!r}: {folder / 'config.json'} says {found}\n"
            f"  accepted: a cross-encoder that was trained to score pairs, …{CLASSIFIER} with one label"
        )
