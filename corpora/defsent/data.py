"""The `data:` block of a defsent study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from corpora.store.errors import CorpusError
from corpora.store.fields import Count, check_fields, words

Source = Literal["wordnet", "gcide", "oxford"]
SIZES = ("dev_definitions", "test_definitions")  # of test rows; training does not depend on them


@dataclass(frozen=True, kw_only=True)
class DefsentData:
    """The `data:` block of a defsent study. CorpusError names a field whose value is not accepted.

    sources: dictionaries. wordnet, gcide, oxford: where they lie; None looks where the first two are usually kept.
    oxford_cleaning: as the authors' code, or "fixed". dedupe_definitions: a definition once a word; None for all
    but oxford, whose lines repeat with their examples and were trained on so. split_key: words that differ in
    case or accents are one word, or each as it is written ("surface", the authors'). text_overlap: what to do
    where a training row has the definition of a dev or test row (synonyms share theirs); None keeps it with
    oxford and else drops the training row. drop_self_mention: leave out training rows that name their word.
    dev_definitions, test_definitions: evaluate on the first so many rows; None for all. nli: pairs for the
    Sentence-BERT arm. path: folder with evaluation data and the local NLI sets. plain_text: a file whose lines
    the fit of a head reads beside the definitions.
    """

    sources: tuple[Source, ...] = ("wordnet",)  # ours: the paper's is given out on request alone
    wordnet: str | None = None  # a place, no choice
    gcide: str | None = None  # a place, no choice
    oxford: str | None = None  # a place, no choice
    path: str | None = None  # a place, no choice
    plain_text: str | None = None  # none: definitions alone
    oxford_cleaning: Literal["authors", "fixed"] = "authors"  # the authors' code
    dedupe_definitions: bool | None = None  # of oxford the code's, else ours
    split_key: Literal["normalised", "surface"] = "normalised"  # ours: the code's parts share case variants
    split_seed: int = 0  # ours: the code shuffles without one
    text_overlap: Literal["drop_from_train", "drop_from_eval", "keep"] | None = (
        None  # of oxford the code's, else ours
    )
    drop_self_mention: bool = False  # the code keeps them
    dev_definitions: Count | None = None  # all
    test_definitions: Count | None = None  # all
    nli: Literal["none", "snli_mnli", "snli_devtest", "sick_e"] = "none"  # none: of the Sentence-BERT arm alone

    def __post_init__(self) -> None:
        check_fields(self, "data", CorpusError)
        if not self.sources or len(set(self.sources)) < len(self.sources):
            raise CorpusError(f"data.sources = {list(self.sources)!r}\n  accepted: {words(Source)}, each once")
        self._check_read()

    def _check_read(self) -> None:
        """CorpusError for a setting that none of the sources reads, as it would describe the rows wrongly."""
        asked = [(source, source, "null") for source in get_args(Source) if getattr(self, source) is not None]
        asked += [("oxford_cleaning", "oxford", "authors")] * (self.oxford_cleaning != "authors")
        asked += [("dedupe_definitions", "oxford", "true or null")] * (self.dedupe_definitions is False)
        for name, source, accepted in asked:
            if source not in self.sources:
                given = f"data.{name} = {getattr(self, name)!r}"
                raise CorpusError(f"{given}\n  accepted: {accepted} unless {source} is of data.sources")

    @property
    def overlap(self) -> str:
        """text_overlap, or its default for these sources."""
        return self.text_overlap or ("keep" if "oxford" in self.sources else "drop_from_train")
