"""The `data:` block of a cale study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Lt

from corpora.store.errors import CorpusError
from corpora.store.fields import Count, check_fields

Share = Annotated[float, Gt(0), Lt(1)]


@dataclass(frozen=True, kw_only=True)
class CaleData:
    """The `data:` block of a cale study. CorpusError names a field whose value is not accepted.

    semcor, wordnet: folder or archive; None looks where they are usually kept. spcd: the published pairs instead,
    by hub name or folder; the rules of the build are then left unused. path: a folder to look in first for the
    sets that tasks are measured on (dwug_<language>, cosimlex, wic, …).
    seed: of splits and partners, never that of a training run. length_unit, min_len, max_len: length of a sentence
    in annotated words or in tokens. multi_sense: a word with several senses counts with its first, or is dropped.
    min_count: occurrences a lemma must have with one part of speech. val, test: share of lemmas, and of concepts,
    held out. partner_pool: val and test anchors may take partners from train (one_sided) or not (strict).
    train_pairs, val_pairs, test_pairs: a fixed sample of so many pairs; None for all. threshold_pairs: how many
    train pairs help choose the decision threshold; None for all. held_sentences: share of the sentences that no
    train pair touches, whatever its target word. Without it nearly every test anchor stands in a sentence that
    trains with another target, and `spcd/unseen` has no pairs.
    """

    semcor: str | None = None  # a place, no choice
    wordnet: str | None = None  # a place, no choice
    spcd: str | None = None  # none: pairs are built from SemCor
    path: str | None = None  # a place, no choice
    seed: int = 42  # table 6
    length_unit: Literal["annotated", "tokens"] = "annotated"  # ours: nearer to the paper's counts
    min_len: Count = 10  # appendix A: 10 to 100 words
    max_len: Count = 100  # appendix A: 10 to 100 words
    multi_sense: Literal["first", "drop"] = "first"  # ours: the paper does not say
    min_count: Count = 10  # appendix A
    partner_pool: Literal["one_sided", "strict"] = "one_sided"  # ours: so pairs mix categories as the paper's do
    val: Share = 0.05  # section 3.2: 5 % of lemmas and concepts
    test: Share = 0.10  # section 3.2: 10 % of them
    train_pairs: Count | None = None  # the paper's: all
    val_pairs: Count | None = None  # the paper's: all
    test_pairs: Count | None = None  # the paper's: all
    threshold_pairs: Count | None = 20_000  # ours: as many as a threshold needs
    held_sentences: Annotated[float, Ge(0), Lt(1)] = 0.0  # the paper's: none is held out

    def __post_init__(self) -> None:
        check_fields(self, "data", CorpusError)
        if self.min_len > self.max_len:
            raise CorpusError(f"data.min_len = {self.min_len!r}\n  accepted: at most max_len, {self.max_len}")
        if self.val + self.test >= 1:
            raise CorpusError(
                f"data.test = {self.test!r}\n  accepted: beside val, {self.val}, a share that leaves some to train"
            )


SIZES = ("train_pairs", "val_pairs", "test_pairs", "threshold_pairs")
