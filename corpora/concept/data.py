"""What a concept study may ask of its corpus: the `data:` block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge

from corpora.store.errors import CorpusError
from corpora.store.fields import check_fields, words

Lexicon = Literal["wordnet"]
Size = Annotated[int, Ge(0)]
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

    lexicons: tuple[Lexicon, ...] = ("wordnet",)
    wordnet: str | None = None
    split: Literal["in-domain"] = "in-domain"
    split_seed: int = 0
    n_hh: Size = 2000
    n_id: Size = 2000
    n_dev: Size = 1000
    test_concepts: Size | None = None
    stress_concepts: Size | None = None
    mask_scope: Literal["synset", "term"] = "synset"
    mask_token: str | None = None
    mask_derivations: bool = False
    negatives_seed: int = 0
    antonym_fallback: Literal["none", "random_same_pos"] = "none"
    prefix_fallback: Literal["initial3", "none"] = "initial3"
    type_mode: Literal["replace", "edit"] = "replace"

    def __post_init__(self) -> None:
        check_fields(self, "data", CorpusError)
        if self.test_concepts is not None and self.test_concepts > self.n_id:
            raise CorpusError(
                f"data.test_concepts = {self.test_concepts}\n"
                f"  accepted: at most n_id, the in-domain concepts that are held out, {self.n_id}"
            )
        if not self.lexicons:
            raise CorpusError(f"data.lexicons = []\n  accepted: {words(Lexicon)}")
