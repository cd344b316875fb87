"""The `data:` block of a san study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from corpora.san.recipe import SetRecipe
from corpora.store.fields import Count, check_fields

SETS = "names, each with a recipe {law, scale, iterations, seed, …} or the folder of a `semray san-generate`"
LEXICON = "auto, spacy, or a file of lines of word, tab and part of speech"
READOUTS = ("cls", "mean", "mask", "idf")
TEACHERS = (
    f"names, each with BACKBONE@READOUT, READOUT one of {', '.join(READOUTS)}, such as all-MiniLM-L6-v2@mean"
)


@dataclass(frozen=True, kw_only=True)
class SanData:
    """The `data:` block of a san study. ValueError names a field whose value is not accepted.

    sentences: one of sentences.NAMES, or a file of one's own. negatives: sets of aligned negatives by the name
    that arms give: a recipe for the count-based generator, or the folder of a set that was made before. All sets
    negate alike, so that arms differ in their aligned negatives alone. least_words, most_words: sentences of other
    lengths are left out. sample: so many of them, chosen by their text. lexicon: what tags the vocabulary: auto,
    spacy, or a file. path: a folder to look in first for wiki1m, nli and snli. wordnet, semcor: where these are
    kept; None looks where they usually are. teachers: frozen encoders by the name that arms give, as
    BACKBONE@READOUT; what they say of the sentences is made once and kept.
    """

    sentences: str = "wordnet"  # ours: what every machine has; section 4.1: wiki1m
    negatives: Annotated[Mapping[str, SetRecipe | str], SETS] = field(
        default_factory=lambda: {"san": SetRecipe()}  # section 3.1; what its fields hold says more
    )
    least_words: Count = 1  # the paper's: none is left out
    most_words: Count | None = None  # the paper's: none is left out
    sample: Count | None = None  # the paper's: all
    lexicon: Annotated[str, LEXICON] = "auto"  # ours: spaCy, the authors', where it is installed
    path: str | None = None  # a place, no choice
    wordnet: str | None = None  # a place, no choice
    semcor: str | None = None  # a place, no choice
    teachers: Annotated[Mapping[str, str], TEACHERS] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rebuilt = {
            name: SetRecipe(**given) if isinstance(given, dict) else given
            for name, given in self.negatives.items()
        }
        object.__setattr__(self, "negatives", rebuilt)  # recipes come as mappings from a ledger's record
        check_fields(self, "data")
        if self.most_words is not None and self.most_words < self.least_words:
            raise ValueError(f"most_words: accepted: at least least_words, {self.least_words}")
        for teacher in self.teachers.values():
            backbone, _, readout = teacher.rpartition("@")
            if not backbone or readout not in READOUTS:
                raise ValueError(f"teachers: accepted: {TEACHERS}")
        if not self.negatives:
            raise ValueError(f"negatives: accepted: {SETS}")
        recipes = [given for given in self.negatives.values() if isinstance(given, SetRecipe)]
        if len({recipe.negator for recipe in recipes}) > 1:
            raise ValueError(
                "negatives: accepted: recipes with one `negator`, so that arms differ in negatives alone"
            )
