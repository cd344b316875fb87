"""A second dictionary: which of its senses are trained on, what pairs them with WordNet's, and that nothing leaks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.concept.build import build_concept
from corpora.concept.corpus import fingerprint, load
from corpora.concept.data import ConceptData
from corpora.concept.dictionaries import capped, cross_rows, senses
from corpora.concept.records import RULES, EvalSplit
from corpora.concept.splits import Splits
from corpora.concept.tables import BuiltCorpus
from corpora.sources import gcide
from corpora.sources.dictionary import DictionarySense
from corpora.sources.texts import norm, normdef
from corpora.sources.wordnet import Synset, Wordnet
from corpora.store.errors import CorpusError
from tests.corpora.sources.test_gcide import dictionary

KNOWN = "a amber anvil that holds cold things number 0"  # word for word of the small WordNet


def _page(lexicon: Wordnet) -> str:
    """An entry for every other noun: of two senses, one of which names the noun, and one that was WordNet's."""
    heads = sorted({lemma for synset in lexicon.synsets.values() if synset.pos == "n" for lemma in synset.lemmas})
    entries = [
        f"{head.capitalize()} \\{head}\\, n.\n   1. a thing called {head} in the books of men {number}.\n"
        f"      [1913 Webster]\n\n   2. an old word for goods number {number}; as, the {head} of a house.\n"
        for number, head in enumerate(heads)
        if number % 2 == 0
    ]
    return "\n".join([
        *entries,
        f"Fresh \\fresh\\, n.\n   1. {KNOWN}.\n\n   2. a thing that no other book has in it.\n",
        "FRESH \\fresh\\, n.\n   a thing that no other book has in it.\n",
        "Stolen \\stolen\\, n.\n   a sense that stands in another dictionary.\n   [WordNet 1.5]\n",
        "Kind \\kind\\\n   a word without a part of speech to it.\n",
    ])  # fmt: skip


@pytest.fixture(scope="module")
def both(small_data: ConceptData, small: Wordnet, tmp_path_factory: pytest.TempPathFactory) -> ConceptData:
    folder = tmp_path_factory.mktemp("gcide")
    dictionary(folder, _page(small))
    return replace(small_data, lexicons=("wordnet", "gcide"), gcide=str(folder))


@pytest.fixture(scope="module")
def alone(both: ConceptData) -> ConceptData:
    return replace(both, lexicons=("gcide",), split="source-holdout")


@pytest.fixture(scope="module")
def built(both: ConceptData, small: Wordnet) -> BuiltCorpus:
    return build_concept(both, small)


def _rows(corpus: BuiltCorpus, view: str) -> Iterator[tuple[str, str]]:
    pairs = getattr(corpus, view)
    return ((corpus.texts[left], corpus.texts[right]) for left, right in zip(pairs.left, pairs.right, strict=True))


def test_senses_are_masked_and_nothing_is_taken_that_wordnet_says(both: ConceptData, small: Wordnet) -> None:
    listed = [(sense.term, sense.definition) for sense in senses(both, small)]
    found = set(listed)
    assert len(found) == len(listed)
    assert ("fresh", "a thing that no other book has in it") in found
    assert not any(term in ("stolen", "kind") for term, _ in found)
    assert KNOWN not in {definition for _, definition in found}
    assert any(definition.startswith("a thing called in the books") for _, definition in found)
    assert not any("; as," in definition for _, definition in found)
    in_place = {sense.definition for sense in senses(replace(both, mask_token="[T]"), small)}
    assert any(definition.startswith("a thing called [T] in the books") for definition in in_place)


def test_wordnets_own_rows_stay_and_others_are_added(built: BuiltCorpus, small_corpus: BuiltCorpus) -> None:
    assert list(_rows(built, "syn")) == list(_rows(small_corpus, "syn"))
    own, together = list(_rows(small_corpus, "t2d")), list(_rows(built, "t2d"))
    assert together[: len(own)] == own
    assert len(together) > len(own)
    assert built.splits == small_corpus.splits
    assert len(built.negatives) == len(together)


def _surfaces(splits: dict[str, EvalSplit]) -> set[str]:
    return {term for split in splits.values() for term in split.terms}


def _wordings(splits: dict[str, EvalSplit]) -> set[str]:
    return {normdef(text) for split in splits.values() for text in split.definitions}


def test_nothing_held_out_is_trained_on_whatever_the_source(
    both: ConceptData, built: BuiltCorpus, small: Wordnet
) -> None:
    """And the check has teeth: the dictionary does define held-out words."""
    surfaces, wordings = _surfaces(built.splits), _wordings(built.splits)
    assert {norm(sense.term) for sense in senses(both, small)} & surfaces
    sides = {norm(side) for pair in _rows(built, "syn") for side in pair}
    sides |= {norm(term) for term, _ in _rows(built, "t2d")}
    assert not sides & surfaces
    defined = {normdef(text) for _, text in _rows(built, "t2d")}
    defined |= {normdef(text) for pair in _rows(built, "d2d") for text in pair}
    assert not defined & wordings
    by_definition = dict(pair[::-1] for pair in _rows(built, "t2d"))
    assert (
        not {norm(by_definition[side]) for pair in _rows(built, "d2d") for side in pair if side in by_definition}
        & surfaces
    )
    negatives = {normdef(built.texts[index]) for index in built.negatives.texts.values}
    assert not negatives & wordings


def test_d2d_pairs_definitions_of_one_term_across_sources(
    both: ConceptData, built: BuiltCorpus, small: Wordnet
) -> None:
    rows = list(_rows(built, "d2d"))
    assert rows
    assert len(set(rows)) >= len(rows) / 4
    mine = {text for _, text in _rows(build_concept(replace(both, lexicons=("wordnet",)), small), "t2d")}
    theirs = {sense.definition for sense in senses(both, small)}
    assert all(left in mine and right in theirs for left, right in rows)
    assert built.d2d is not None
    assert all(
        len(built.d2d.concept_ids[row]) >= 4 for row in range(len(built.d2d))
    )  # term, two concepts, wordings
    single = build_concept(replace(both, d2d_monosemous=True), small).d2d
    assert single is None or len(single) < len(rows)


def test_which_definitions_of_a_term_are_paired() -> None:
    """Three of each side, in order, where they differ. Of WordNet's one is of a held-out concept, two have a held-out
    wording, with the term or without, one keeps one word, one repeats, and one is beyond the three."""
    told = {
        "first": "mill of old",
        "held": "mill of a test",
        "worded": "mill of another",
        "masked": "mill of yet another",
        "short": "mill",
        "again": "mill of old",
        "second": "mill of new",
        "third": "mill of both",
        "fourth": "mill of none",
    }
    synsets = {
        name: Synset(name, "n", 3, ("Wind-mill",), f"{name} whole", "", (0,), (), None, (), ()) for name in told
    }
    lexicon = Wordnet(synsets, {("wind-mill", "n"): tuple(synsets), ("wind_mill", "v"): ("first",)}, {}, {}, {})
    theirs = [
        ("n", "thing zero"),
        ("v", "go round"),
        ("n", "mill of new"),
        ("n", "thing zero"),
        ("n", "2 things x"),
    ]
    others = [
        DictionarySense(f"gcide:{number}-{pos}", "wind mill", text)
        for number, (pos, text) in enumerate([*theirs, ("n", "beyond the three")])
    ]
    splits = Splits((), ("held",), (), frozenset(["cup"]), frozenset(["worded whole", "mill of yet another"]))
    rows = cross_rows(lexicon, others, splits, lambda synset, lemma: told[synset.id])
    assert [(row.concepts, row.left, row.right) for row in rows if row.term == "wind mill"] == [
        ((own, f"gcide:{other}-n"), told[own], others[other].definition)
        for own in ("first", "second", "third")
        for other in (0, 2, 4)
        if (own, other) != ("second", 2)
    ] + [(("first", "gcide:1-v"), "mill of old", "go round")]


def test_whether_a_term_has_one_sense_is_a_matter_of_all_senses_of_a_dictionary(
    small_data: ConceptData, small: Wordnet, small_corpus: BuiltCorpus, tmp_path: Path
) -> None:
    """Four terms have one sense in WordNet, the first of them in both other dictionaries, too. GCIDE has two of
    the rest, one of which is left out: as WordNet has it, illegible, or taken from there. So has Wiktionary of the
    second."""
    terms = dict.fromkeys(term for term, _ in _rows(small_corpus, "t2d") if re.fullmatch(r"x\d+y", term))
    single, copied, illegible, taken = list(terms)[:4]
    own = small.synsets[small.senses[copied, "n"][0]].definition
    senses_of = {
        single: "   a thing that one book tells of.\n",
        copied: f"   1. {own}.\n\n   2. an old word for some goods.\n",
        illegible: "   1. a box of ??? and more.\n\n   2. an old word for a road.\n",
        taken: f"   a herb of field and wood.\n\n{taken} \\{taken}\\, n.\n   a thing from elsewhere.\n   [WordNet 1.5]\n",
    }
    dictionary(tmp_path, "\n".join(f"{term} \\{term}\\, n.\n{told}" for term, told in senses_of.items()))
    glosses = {single: ["A thing of another book."], copied: ["A thing of that book, too.", ""]}
    extract = tmp_path / "words.jsonl"
    extract.write_text(
        "\n".join(
            json.dumps(
                {
                    "word": term,
                    "pos": "noun",
                    "lang_code": "en",
                    "senses": [
                        *({"glosses": [gloss]} for gloss in listed),
                        {"glosses": ["plural of some word"], "form_of": [{"word": "word"}]},
                    ],
                }
            )
            for term, listed in glosses.items()
        )
    )
    three = replace(
        small_data,
        lexicons=("wordnet", "gcide", "wiktextract"),
        gcide=str(tmp_path),
        wiktextract=str(extract),
        d2d_monosemous=True,
    )
    assert {right for _, right in _rows(build_concept(three, small), "d2d")} == {
        "a thing that one book tells of",
        "A thing of another book",
    }


def test_the_wrong_type_is_told_of_wordnets_nouns_alone(built: BuiltCorpus, small_corpus: BuiltCorpus) -> None:
    first = built.negatives.texts.offsets[len(small_corpus.t2d)]
    rules = {RULES[rule] for rule in built.negatives.rule[first:]}
    assert {"negate", "pos_random"} <= rules
    assert "type_swap" not in rules


def test_source_holdout_trains_on_one_and_tests_on_the_other(
    alone: ConceptData, small: Wordnet, small_corpus: BuiltCorpus
) -> None:
    corpus = build_concept(alone, small)
    assert corpus.splits == small_corpus.splits
    assert corpus.d2d is None
    assert len(corpus.syn) == 0  # GCIDE's lists of synonyms belong to no sense
    theirs = {sense.definition for sense in senses(alone, small)}
    assert {text for _, text in _rows(corpus, "t2d")} <= theirs
    assert not {norm(term) for term, _ in _rows(corpus, "t2d")} & _surfaces(corpus.splits)


def test_what_is_loaded_and_what_it_is_called(both: ConceptData, small_data: ConceptData, own_cache: Path) -> None:
    """A second source is part of the name, where it lies is not; without one its settings are no part of it."""
    corpus = load(both)
    assert corpus.d2d is not None
    assert corpus.d2d.view == "d2d"
    assert corpus.fingerprint == fingerprint(both) != fingerprint(small_data)
    assert fingerprint(replace(small_data, gcide="/nowhere", d2d_monosemous=True)) == fingerprint(small_data)
    assert fingerprint(replace(both, d2d_monosemous=True)) != fingerprint(both)
    assert load(small_data).d2d is None


def test_a_corpus_without_synonyms_is_read_as_it_was_built(
    alone: ConceptData, small: Wordnet, own_cache: Path
) -> None:
    built, read = build_concept(alone, small), load(alone)
    assert (len(read.syn), read.d2d) == (len(built.syn), built.d2d) == (0, None)
    assert len(read.syn.concept_ids) == 0
    assert list(read.t2d.left) == list(built.t2d.left)
    assert read.splits == built.splits


@pytest.mark.parametrize(
    ("lexicons", "split"), [(("gcide",), "in-domain"), (("wordnet", "gcide"), "source-holdout"), ((), "in-domain")]
)
def test_lexicons_that_do_not_go_with_a_split_are_refused(lexicons: tuple[str, ...], split: str) -> None:
    with pytest.raises(CorpusError, match=r"data\.lexicons = .*\n  accepted: "):
        ConceptData(lexicons=lexicons, split=split)


@pytest.mark.parametrize("split", ["in-domain", "source-holdout"])
@pytest.mark.parametrize(
    ("which", "held", "said"),
    [
        ("wiktextract", [], r"train on\n  accepted: an extract of English Wiktionary"),
        ("wiktextract", ["de", "de"], r"train on; left out: 2 other language\n  accepted: an extract"),
        ("gcide", ["this is some other dictionary"], r"train on\n  accepted: GCIDE as Debian packs it: apt-get"),
        (
            "gcide",
            [f"Fresh \\fresh\\, n.\n   {KNOWN}.", "Kind \\kind\\\n   a word of no part."],
            r"train on; left out: 1 as WordNet has it, 1 no part of speech\n  accepted: GCIDE",
        ),
    ],
)
def test_a_dictionary_that_gives_no_sense_is_refused(
    both: ConceptData, small: Wordnet, tmp_path: Path, split: str, which: str, held: list[str], said: str
) -> None:
    """WordNet's rows would stand for it, alone or with those of the dictionary beside it."""
    if which == "gcide":
        place = dictionary(tmp_path, "\n\n".join(held))
    else:
        place = tmp_path / "words.jsonl"
        senses = [{"glosses": ["ein Topf zum Kochen von Wasser"]}]
        lines = [{"word": "Topf", "pos": "noun", "lang_code": code, "senses": senses} for code in held]
        place.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    own = ("wordnet",) if split == "in-domain" else ()
    named = ("gcide", "wiktextract") if which == "wiktextract" else ("gcide",)
    data = replace(both, lexicons=(*own, *named), split=split, **{which: str(place)})
    with pytest.raises(CorpusError, match=rf"corpora: {re.escape(str(place))} holds no sense to {said}"):
        build_concept(data, small)


@given(st.integers(0, 20), st.integers(0, 20))
def test_at_most_six_definitions_of_a_term(ours: int, theirs: int) -> None:
    first, second = capped(ours, theirs)
    assert first <= ours
    assert second <= theirs
    assert first + second == min(6, ours + theirs)
    assert first >= min(ours, 3)
    assert second >= min(theirs, 3)


def test_counts_on_the_real_files(real: Wordnet) -> None:
    """Debian's dict-gcide 0.48.5+nmu2. Counted elsewhere, sub-senses apart: 142,338 senses of 89,503 words."""
    try:
        place = gcide.locate()
    except CorpusError as error:
        pytest.skip(f"needs GCIDE: {error}")
    found = list(gcide.senses(place))
    words = {(norm(sense.term), sense.pos) for sense in found}
    assert 0.9 * 142_338 < len(found) < 142_338
    assert 0.97 * 89_503 < len(words) < 89_503
    pairs = build_concept(ConceptData(lexicons=("wordnet", "gcide"), d2d_monosemous=True), real).d2d
    assert pairs is not None
    assert len(pairs) == 15_478  # docs/concept.md
