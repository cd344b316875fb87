"""The settings of a defsent study, and which of them can change a result.

Defaults: DefSent (Tsukagoshi et al.), BERT-base with [CLS]; sections and tables beside them are the paper's, and
"code" is that of its authors. Arms are settings: defsent {}, defsent-mean {readout: mean, lr_exponent: 3.5},
frozen {train: false}, sbert {objective: inference, readout: mean, learning_rate: 2.0e-5}.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le

from corpora.store.fields import Count, Length, Positive, check_fields
from trainers.engine.limits import Batch, Steps

UNIT_RATE = 1e-6  # the paper's rates are powers of two of it


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The `train:` block of a defsent study. Raises ValueError naming a field whose value is not accepted.

    objective: predict the word of a definition, or the label of a sentence pair (Sentence-BERT: softmax over
    [u; v; |u - v|], with a linear warm-up and decay, training all weights). head_source: the origin of the
    word-prediction head.
      pretrained  the backbone's own masked-LM head, as in the paper
      mlm_fit     a head fitted on the frozen backbone, by masked words of the training definitions
      tied_only   no transform: the score of a word is its embedding times the sentence vector
      random      an untrained transform, as a control
    freeze: "head" includes the word embeddings, which the head shares; "head+embeddings" the whole embedding
    module (as the authors' code); "head_untied" the head alone, with a copy of the embeddings; "none" trains all,
    untied. learning_rate: None for 2^lr_exponent · 1e-6. batch_size: texts (pairs) per step over all workers.
    steps: None for epochs. matched_budget (inference only): as many steps as one epoch of definitions. order: of
    definitions, shuffled by the seed, or as in the file, where those of a word are adjacent (as the authors);
    sentence pairs are always shuffled. mlm_texts: number of definitions that mlm_fit reads, None for all;
    mlm_epochs: its epochs.
    """

    train: bool = True
    objective: Literal["definitions", "inference"] = "definitions"  # section 2.3; the other is section 2.2
    readout: Literal["cls", "mean", "max", "sep", "sum"] = "cls"  # table 5: the best of BERT-base by MRR
    head_source: Literal["pretrained", "mlm_fit", "tied_only", "random"] = "pretrained"  # section 2.3
    freeze: Literal["head", "head+embeddings", "head_untied", "none"] = "head+embeddings"  # code
    lr_exponent: Annotated[float, Ge(-20), Le(20)] = 2.5  # table 5, BERT-base with CLS
    learning_rate: Positive | None = None  # ours
    batch_size: Batch = 16  # section 3.2
    epochs: Count = 1  # section 3.2
    steps: Steps | None = None  # ours
    warmup_ratio: Annotated[float, Ge(0), Le(1)] = 0.1  # section 3.2
    order: Literal["shuffled", "file"] = "shuffled"  # ours; the code does not shuffle
    matched_budget: bool = False  # ours
    max_length: Length = 512  # the code: what the tokenizers of BERT and RoBERTa allow
    mlm_texts: Count | None = None  # ours: the paper's backbones have their heads
    mlm_epochs: Count = 8  # ours: the paper's backbones have their heads

    def __post_init__(self) -> None:
        check_fields(self, "train")
        if self.matched_budget and (self.objective != "inference" or self.steps is not None):
            raise ValueError(
                "train.matched_budget = True\n  accepted: with objective inference and steps null: definitions set"
                " the number of steps"
            )

    @property
    def ordered(self) -> Literal["shuffled", "file"]:
        """The order of rows. Pairs, whose file lists them premise by premise, are always shuffled."""
        return self.order if self.objective == "definitions" else "shuffled"

    @property
    def rate(self) -> float:
        """The peak learning rate, after the warm-up."""
        return 2**self.lr_exponent * UNIT_RATE if self.learning_rate is None else self.learning_rate


FITTED = frozenset({"mlm_texts", "mlm_epochs"})
UNTRAINED = frozenset({"train", "readout", "head_source", "max_length"}) | FITTED
OF_DEFINITIONS = frozenset({"freeze"})
OF_INFERENCE = frozenset({"matched_budget"})


def defining(settings: Settings) -> dict[str, Any]:
    """The settings that can change the result. For an untrained arm these are its readout, head and max_length.
    The default rate is always given by its exponent."""
    default = Settings()
    if settings.rate == default.rate:
        settings = replace(settings, lr_exponent=default.lr_exponent, learning_rate=None)
    kept = asdict(settings) | {"order": settings.ordered}
    left_out = {"learning_rate" if settings.learning_rate is None else "lr_exponent"}
    left_out |= OF_INFERENCE if settings.objective == "definitions" else OF_DEFINITIONS
    if settings.head_source != "mlm_fit":
        left_out |= FITTED
    if settings.steps is not None or settings.matched_budget:
        left_out.add("epochs")
    if not settings.train:
        left_out |= kept.keys() - UNTRAINED
    return {name: value for name, value in kept.items() if name not in left_out}
