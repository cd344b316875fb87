"""What is held out stays out. Each check runs on the real files and on the small lexicon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from corpora.concept.build import build_concept, training_rows
from corpora.concept.data import ConceptData
from corpora.concept.masking import irregular_of, masker, pattern_of
from corpora.concept.records import RULES
from corpora.concept.splits import Splits, split_of, surfaces_of, wordings_of
from corpora.concept.tables import BuiltCorpus
from corpora.concept.views import definition_rows, synonym_rows
from corpora.sources.texts import norm, normdef, word_count
from corpora.sources.wordnet import Synset, Wordnet, read
from corpora.sources.wordnet_files import WordnetFiles
from tests.corpora.conftest import SMALL_EXCEPTIONS, Entry, small_entries, write_wordnet


@dataclass(frozen=True)
class Case:
    lexicon: Wordnet
    masked: dict[str, str]
    splits: Splits
    corpus: BuiltCorpus
    data: ConceptData

    def text(self, indices: np.ndarray) -> set[str]:
        return {self.corpus.texts[index] for index in np.unique(indices)}


def _splits(lexicon: Wordnet, masked: dict[str, str], data: ConceptData, seed: int = 0) -> Splits:
    sizes = {"n_hh": data.n_hh, "n_id": data.n_id, "n_dev": data.n_dev}
    return split_of(lexicon.synsets, masked, seed=seed, dev_apart=data.dev_apart, **sizes)


@pytest.fixture(scope="module", params=["small", "real"])
def case(request: pytest.FixtureRequest) -> Case:
    lexicon: Wordnet = request.getfixturevalue(request.param)
    data = request.getfixturevalue("small_data") if request.param == "small" else ConceptData()
    mask = masker(lexicon)
    masked = (
        request.getfixturevalue("real_masked")
        if request.param == "real"
        else {synset.id: mask(synset, synset.lemmas) for synset in lexicon.synsets.values()}
    )
    corpus = request.getfixturevalue(f"{request.param}_corpus")
    return Case(lexicon, masked, _splits(lexicon, masked, data), corpus, data)


def test_the_three_splits_are_apart_and_of_the_size_asked_for(case: Case) -> None:
    data = case.data
    hh, test, dev = set(case.splits.hh), set(case.splits.id), set(case.splits.dev)
    assert (len(hh), len(test), len(dev)) == (data.n_hh, data.n_id, data.n_dev)
    assert len(hh | test | dev) == data.n_hh + data.n_id + data.n_dev


def test_no_held_out_concept_in_training(case: Case) -> None:
    """Of the held-out concepts alone no row is left to train on; without the split there are many."""
    held = {identifier: case.lexicon.synsets[identifier] for identifier in sorted(case.splits.concepts)}
    assert training_rows(held, case.splits, _masked(case)) == ([], [])
    nothing = Splits((), (), (), frozenset(), frozenset())
    assert all(training_rows(held, nothing, _masked(case)))


def _synset(identifier: str, lemma: str, definition: str, uses: int = 0) -> Synset:
    return Synset(identifier, "n", 3, (lemma,), definition, definition, (uses,), (), None, (), ())


def test_what_is_too_short_or_said_of_a_frequent_concept_is_not_drawn() -> None:
    """The head-holdout asks for three words and goes by use, then by id; the other parts ask for two words beside
    the term, and for a surface that the head-holdout lacks."""
    listed = [
        _synset("1-n", "brief", "two words", 9),
        _synset("3-n", "Wind-mill", "three words here", 8),
        _synset("2-n", "earlier", "also three words", 8),
        _synset("4-n", "rarer", "another three words", 7),
        _synset("5-n", "wind_mill", "a sense of the first", 1),
        _synset("6-n", "masked", "masked alone"),
    ]
    synsets = {synset.id: synset for synset in listed}
    masked = {synset.id: synset.definition for synset in listed} | {"6-n": "alone"}
    splits = split_of(synsets, masked, seed=0, n_hh=2, n_id=9, n_dev=9, dev_apart=True)
    assert splits.hh == ("2-n", "3-n")
    assert (set(splits.id), splits.dev) == ({"1-n", "4-n"}, ())
    assert splits.surfaces == {"brief", "wind mill", "earlier", "rarer"}


@pytest.mark.parametrize(
    ("told", "bare"),
    [(("A kind of cup!", "a kind of cup"), ("of a", "of b")), (("one", "two"), ("kind, of", "kind of"))],
)
def test_dev_shares_no_wording_with_a_test_whichever_is_drawn(
    told: tuple[str, str], bare: tuple[str, str]
) -> None:
    """Of two concepts with one wording, with their terms or without, one is tested and the other is left out."""
    synsets = {f"{n}-n": _synset(f"{n}-n", f"w{n}", text) for n, text in enumerate(told)}
    masked = dict(zip(synsets, bare, strict=True))
    for seed in range(4):
        apart, mixed = (
            split_of(synsets, masked, seed=seed, n_hh=0, n_id=1, n_dev=1, dev_apart=part) for part in (True, False)
        )
        assert (len(apart.id), len(apart.dev), len(mixed.dev)) == (1, 0, 1)


def _masked(case: Case) -> Callable[[Synset, str], str]:
    return lambda synset, lemma: case.masked[synset.id]


def test_no_held_out_surface_in_training(case: Case) -> None:
    corpus = case.corpus
    sides = case.text(corpus.syn.left) | case.text(corpus.syn.right) | case.text(corpus.t2d.left)
    assert {norm(term) for term in sides}.isdisjoint(case.splits.surfaces)
    for split in corpus.splits.values():
        assert {norm(term) for term in sides}.isdisjoint(split.terms)


def test_the_surface_check_can_fail(case: Case) -> None:
    """With concepts alone held out, another sense of a held-out word would be trained on."""
    synsets = [synset for synset in case.lexicon.synsets.values() if synset.id not in case.splits.concepts]
    assert any(norm(row.left) in case.splits.surfaces for row in synonym_rows(synsets))
    assert any(norm(row.term) in case.splits.surfaces for row in definition_rows(synsets, _masked(case)))


def test_no_held_out_wording_in_training(case: Case) -> None:
    """Neither as a positive nor, by the accident of an edit, as a negative."""
    trained = {normdef(text) for text in case.text(case.corpus.t2d.right)}
    trained |= {normdef(text) for text in case.text(case.corpus.negatives.texts.values)}
    for split in case.corpus.splits.values():
        assert trained.isdisjoint(map(normdef, split.definitions))
    assert trained.isdisjoint(case.splits.wordings)


def test_an_edit_that_says_a_held_out_definition_is_dropped(tmp_path: Path) -> None:
    """Of two definitions that an antonym tells apart the more frequent concept's is held out."""
    told = [Entry("held", "n", 6, ("held",), "a hot room of old", tags=99)]
    told += [
        Entry("kept", "n", 6, ("kept",), "a cold room of old"),
        Entry("free", "n", 6, ("free",), "a cold cup"),
    ]
    write_wordnet(tmp_path, [*small_entries(), *told], SMALL_EXCEPTIONS)
    data = ConceptData(wordnet=str(tmp_path), n_hh=1, n_id=0, n_dev=0)
    corpus = build_concept(data, read(WordnetFiles(tmp_path)))
    assert corpus.splits["hh"].definitions == ("a hot room of old",)
    flipped = {corpus.texts[index] for index in corpus.negatives.texts.values[corpus.negatives.rule == 0]}
    assert "a hot cup" in flipped
    assert "a hot room of old" not in corpus.texts


def test_training_negatives_come_from_train_definitions(case: Case) -> None:
    """Replacements are train definitions; edits keep the words of the row's own but one."""
    negatives = case.corpus.negatives
    trained = case.text(case.corpus.t2d.right)
    drawn = np.isin(negatives.rule, [RULES.index(rule) for rule in ("pos_random", "pos_prefix", "type_swap")])
    assert case.text(negatives.texts.values[drawn]) <= trained
    edited = RULES.index("antonym"), RULES.index("negate")
    for row in range(0, len(negatives), max(1, len(negatives) // 500)):
        own = case.corpus.texts[case.corpus.t2d.right[row]].split()
        span = slice(*negatives.texts.offsets[row : row + 2])
        for index, rule in zip(negatives.texts.values[span], negatives.rule[span], strict=True):
            if rule in edited:
                assert len(set(own) - set(case.corpus.texts[index].split())) <= 2  # the word and its article


def test_no_definition_matches_its_own_mask(case: Case) -> None:
    irregular = irregular_of(case.lexicon)
    held_out = [case.lexicon.synsets[identifier] for identifier in sorted(case.splits.concepts)]
    for synset in held_out:
        assert not pattern_of(synset.lemmas, synset.pos, irregular).search(case.masked[synset.id])


def test_definitions_keep_two_words(case: Case) -> None:
    pools = [text for split in case.corpus.splits.values() for text in split.definitions]
    assert all(word_count(text) >= 2 for text in [*pools, *case.text(case.corpus.t2d.right)])


def test_dev_is_apart_from_the_test(case: Case) -> None:
    """By surface and by wording, of both tests; of the real 1,000, 28 share a surface else and 2 a wording."""
    mixed = _splits(case.lexicon, case.masked, replace(case.data, dev_apart=False))
    assert (mixed.hh, mixed.id, len(mixed.dev)) == (case.splits.hh, case.splits.id, case.data.n_dev)

    def shared(splits: Splits) -> tuple[int, int]:
        """Of how many dev concepts a surface is tested, of how many a wording."""
        tested = (*splits.id, *splits.hh)
        surfaces = surfaces_of(tested, case.lexicon.synsets)
        wordings = wordings_of(tested, case.lexicon.synsets, case.masked)
        said = [surfaces_of((one,), case.lexicon.synsets) for one in splits.dev]
        told = [wordings_of((one,), case.lexicon.synsets, case.masked) for one in splits.dev]
        return sum(not one.isdisjoint(surfaces) for one in said), sum(not one.isdisjoint(wordings) for one in told)

    assert shared(case.splits) == (0, 0)
    assert shared(mixed)[0]
    if case.data.n_dev == 1000:
        assert shared(mixed) == (28, 2)


def test_another_seed_moves_the_test_but_not_the_head_holdout(case: Case) -> None:
    data = case.data
    other = _splits(case.lexicon, case.masked, data, seed=1)
    assert other.hh == case.splits.hh
    assert set(other.id) != set(case.splits.id)


def test_head_holdout_is_the_most_frequent(case: Case) -> None:
    frequencies = [case.lexicon.synsets[identifier].frequency for identifier in case.splits.hh]
    assert frequencies == sorted(frequencies, reverse=True)
    chosen = set(case.splits.hh)
    wordy = (synset for synset in case.lexicon.synsets.values() if word_count(synset.definition) >= 3)
    rest = (synset.frequency for synset in wordy if synset.id not in chosen)
    assert frequencies[-1] >= max(rest)


# n_hh, least frequency, head-holdout rows, t2d rows left, t2d rows lost by surface, syn left, syn lost
EFFECT = [
    (500, 65, 1_489, 187_588, 12_697, 269_018, 34_272),
    (2000, 21, 5_542, 178_283, 18_090, 246_028, 44_454),
]


@pytest.mark.parametrize("row", EFFECT)
def test_what_holding_out_costs(real: Wordnet, real_masked: dict[str, str], row: tuple[int, ...]) -> None:
    """Before short and repeated definitions are dropped; every column is within 1 % of an independent count."""
    splits = split_of(real.synsets, real_masked, seed=0, n_hh=row[0], n_id=2000, n_dev=1000, dev_apart=False)
    least = real.synsets[splits.hh[-1]].frequency
    rest = [synset for synset in real.synsets.values() if synset.id not in splits.concepts]
    terms = [norm(lemma) in splits.surfaces for synset in rest for lemma in synset.lemmas]
    pairs = [
        norm(pair.left) in splits.surfaces or norm(pair.right) in splits.surfaces for pair in synonym_rows(rest)
    ]
    held = sum(len(real.synsets[identifier].lemmas) for identifier in splits.hh)
    counted = (row[0], least, held, len(terms) - sum(terms), sum(terms), len(pairs) - sum(pairs), sum(pairs))
    assert counted == row


def test_sizes_on_the_real_files(real: Wordnet, real_masked: dict[str, str], real_corpus: BuiltCorpus) -> None:
    first = _splits(real, real_masked, ConceptData()).id[:1000]
    assert len({norm(lemma) for identifier in first for lemma in real.synsets[identifier].lemmas}) == 1_667
    assert {name: (len(split.terms), len(split.definitions)) for name, split in real_corpus.splits.items()} == {
        "dev": (1_654, 1_000),
        "id": (3_358, 1_999),
        "hh": (3_892, 1_991),
    }
    assert (len(real_corpus.syn), len(real_corpus.t2d)) == (246_160, 176_308)


def test_sizes_with_a_dev_part_that_shares_words(real: Wordnet, real_masked: dict[str, str]) -> None:
    splits = _splits(real, real_masked, ConceptData(dev_apart=False))
    assert (len(surfaces_of(splits.dev, real.synsets)), len(splits.dev)) == (1_670, 1_000)
    rows = training_rows(real.synsets, splits, lambda synset, lemma: real_masked[synset.id])
    assert tuple(map(len, rows)) == (246_028, 176_313)


def test_how_many_tested_terms_keep_a_capital_or_a_hyphen(real_corpus: BuiltCorpus) -> None:
    kept = {name: sum(term != norm(term) for term in split.terms) for name, split in real_corpus.splits.items()}
    assert kept == {"dev": 488, "id": 951, "hh": 134}
