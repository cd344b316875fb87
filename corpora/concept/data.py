"""What a concept study may ask of its corpus: the `data:` block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from corpora.store.errors import CorpusError

LEXICONS = ("wordnet",)
EVALUATED = ("test_concepts", "stress_concepts")  # fields that choose test rows alone


@dataclass(frozen=True, kw_only=True)
class ConceptData:
    """The `data:` block of a concept study. CorpusError names a field whose value is not accepted.

    wordnet: folder or zip of WordNet 3.0; None looks where it is usually kept. n_hh, n_id, n_dev: concepts held
    out as head-holdout, in-domain test and dev. test_concepts, stress_concepts: evaluate on the first so many
    concepts of the in-domain test, stress-test the first so many of each split; None for all.
    mask_scope: take every lemma of the synset out of a training definition, or only the row's own term (pools
    always use the synset). mask_token: put this in place of a deleted term. mask_derivations: also mask
    derivationally related words. The last four belong to the hard negatives (corpora.concept.negatives).
    """

    lexicons: tuple[str, ...] = ("wordnet",)
    wordnet: str | None = None
    split: Literal["in-domain"] = "in-domain"
    split_seed: int = 0
    n_hh: int = 2000
    n_id: int = 2000
    n_dev: int = 1000
    test_concepts: int | None = None
    stress_concepts: int | None = None
    mask_scope: Literal["synset", "term"] = "synset"
    mask_token: str | None = None
    mask_derivations: bool = False
    negatives_seed: int = 0
    antonym_fallback: Literal["none", "random_same_pos"] = "none"
    prefix_fallback: Literal["initial3", "none"] = "initial3"
    type_mode: Literal["replace", "edit"] = "replace"

    def __post_init__(self) -> None:
        for name, accepted in CHOICES.items():
            if getattr(self, name) not in accepted:
                raise CorpusError(f"data.{name} = {getattr(self, name)!r}\n  accepted: {', '.join(accepted)}")
        if not self.lexicons or set(self.lexicons) - set(LEXICONS):
            raise CorpusError(f"data.lexicons = {list(self.lexicons)!r}\n  accepted: {', '.join(LEXICONS)}")
        for name in ("n_hh", "n_id", "n_dev", "test_concepts", "stress_concepts"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise CorpusError(f"data.{name} = {value!r}\n  accepted: a whole number of 0 or more")


CHOICES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "split": ("in-domain",),
        "mask_scope": ("synset", "term"),
        "antonym_fallback": ("none", "random_same_pos"),
        "prefix_fallback": ("initial3", "none"),
        "type_mode": ("replace", "edit"),
    }
)
