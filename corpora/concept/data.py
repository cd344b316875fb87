"""The `data:` block of a concept study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge

from corpora.store.errors import CorpusError
from corpora.store.fields import check_fields, words

Lexicon = Literal["wordnet", "gcide", "wiktextract"]
Size = Annotated[int, Ge(0)]
EVALUATED = ("test_concepts", "stress_concepts", "test_surfaces")  # fields that choose test rows alone
# Fields added later: with these values, which may differ from defaults, a corpus keeps its earlier fingerprint.
ADDED = {"d2d_monosemous": False, "dev_apart": False, "test_surfaces": "normalised", "ontology": "none"}
PLACES = ("wordnet", "gcide", "wiktextract", "dbpedia")  # places of sources, whose content counts


@dataclass(frozen=True, kw_only=True)
class ConceptData:
    """The `data:` block of a concept study. CorpusError names a field whose value is not accepted.

    lexicons: what is trained on. With a dictionary beside WordNet its senses are rows too, and definitions of one
    term in both are pairs (view d2d); d2d_monosemous: only where the term has one sense in each, so that they mean
    the same. ontology: its comments and labels beside them, for arms that train on these alone (`rows: ontology`);
    dbpedia: its folder or file. wordnet: folder or zip of WordNet 3.0, gcide: the folder or file of GCIDE; None
    looks where they are usually kept. wiktextract: an extract of Wiktionary. split: "in-domain" tests held-out
    concepts of WordNet; "source-holdout" tests the same ones after training on other dictionaries alone. n_hh,
    n_id, n_dev: concepts held out as head-holdout, in-domain test and dev. test_concepts, stress_concepts:
    evaluate on the first so many concepts of the in-domain test, stress-test the first so many of each split; None
    for all. dev_apart: no dev concept shares a surface or a wording with a tested one. test_surfaces: write tested
    terms as WordNet and so the training rows have them, or in lower case without hyphens. mask_scope: take every
    lemma of the synset out of a training definition, or only the row's own term (pools always use the synset).
    mask_token: put this in place of a deleted term. mask_derivations: also mask derivationally related words. The
    last four belong to the hard negatives (corpora.concept.negatives).
    """

    lexicons: tuple[Lexicon, ...] = ("wordnet",)  # ours: what every machine has
    wordnet: str | None = None  # a place, no choice
    gcide: str | None = None  # a place, no choice
    wiktextract: str | None = None  # a place, no choice
    dbpedia: str | None = None  # a place, no choice
    ontology: Literal["none", "dbpedia"] = "none"  # an arm of section 5.6 asks for it
    d2d_monosemous: bool = False  # section 4.5: all definitions of a term are grouped
    split: Literal["in-domain", "source-holdout"] = "in-domain"  # section 4.5 has both
    split_seed: int = 0  # ours
    n_hh: Size = 2000  # ours: section 4.5 says the most frequent
    n_id: Size = 2000  # ours: the paper gives no size
    n_dev: Size = 1000  # ours: the paper names no dev part
    dev_apart: bool = True  # ours: so that nothing chosen by dev has seen what is tested
    test_surfaces: Literal["as-written", "normalised"] = "as-written"  # ours: as in training
    test_concepts: Size | None = None  # all
    stress_concepts: Size | None = None  # all
    mask_scope: Literal["synset", "term"] = "synset"  # ours: so that a synset has one text
    mask_token: str | None = None  # section 4.5: the headword is removed
    mask_derivations: bool = False  # section 4.5: the term is removed, not its kin
    negatives_seed: int = 0  # ours
    antonym_fallback: Literal["none", "random_same_pos"] = "none"  # appendix G, as worded
    prefix_fallback: Literal["initial3", "none"] = "initial3"  # ours: none leaves 7 % of the rows
    type_mode: Literal["replace", "edit"] = "replace"  # appendix G, as worded

    def __post_init__(self) -> None:
        check_fields(self, "data", CorpusError)
        if self.test_concepts is not None and self.test_concepts > self.n_id:
            raise CorpusError(
                f"data.test_concepts = {self.test_concepts}\n"
                f"  accepted: at most n_id, the in-domain concepts that are held out, {self.n_id}"
            )
        if not self.lexicons or len(set(self.lexicons)) < len(self.lexicons):
            raise CorpusError(f"data.lexicons = {list(self.lexicons)!r}\n  accepted: {words(Lexicon)}, each once")
        if ("wordnet" in self.lexicons) != (self.split == "in-domain"):
            within = self.split == "in-domain"
            accepted = "wordnet, alone or with others" if within else "gcide, wiktextract, but not wordnet"
            given = f"data.lexicons = {list(self.lexicons)!r} and data.split = {self.split!r}"
            raise CorpusError(f"{given}\n  accepted: {accepted}, with this split")

    @property
    def crosses(self) -> bool:
        """Whether two sources give definitions of the same terms."""
        return len(self.lexicons) > 1 and "wordnet" in self.lexicons

    @property
    def views(self) -> frozenset[str]:
        """The kinds of pairs that these sources give. GCIDE's lists of synonyms are not read."""
        given = {
            "syn": set(self.lexicons) != {"gcide"},
            "t2d": True,
            "d2d": self.crosses,
            "c2l": self.ontology != "none",
        }
        return frozenset(view for view, is_given in given.items() if is_given)
