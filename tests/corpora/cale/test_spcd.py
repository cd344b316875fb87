"""SPCD: which words are kept, who is held out, who is paired with whom; the digests of the default build."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.cale.data import CaleData
from corpora.cale.records import CATEGORIES, SPLITS, OccurrencePairs, Tagged
from corpora.cale.spcd import Reserved, concept_of, synset_id, tagged
from corpora.cale.spcd_pairs import digests_of, pairs_of
from corpora.sources.occurrences import Occurrence
from corpora.sources.semcor import Sentence, Word, read
from corpora.sources.semcor_files import SemcorFiles
from corpora.sources.texts import keyed_sha256
from corpora.sources.wordnet import Wordnet

POOLS = ("one_sided", "strict")


def row(name: str, lemma: str, concept: str, split: str = "test") -> Tagged:
    return Tagged(name, Occurrence(lemma, 0, len(lemma), lemma), concept, split=split)


def listed(rows: Sequence[Tagged], pairs: OccurrencePairs) -> dict[str, set[str]]:
    """Per category the pairs, as `anchor>partner`."""
    told: dict[str, set[str]] = {name: set() for name in CATEGORIES}
    for anchor, partner, category in zip(pairs.anchor, pairs.partner, pairs.category, strict=True):
        told[CATEGORIES[category]].add(f"{rows[anchor].id}>{rows[partner].id}")
    return told


def test_the_keyed_hash() -> None:
    """First 8 bytes, big-endian, of SHA-256 of the parts joined by `|`; computed with `sha256sum`."""
    assert keyed_sha256(42, "lemma", "say") == 10645560513370369439
    assert keyed_sha256(42, "f:1:0", "SC/SL") == 3438215866066394825
    assert keyed_sha256(42, "f:1:0", "DC/DL", 0) == 7204339669495674223
    assert keyed_sha256(7, "concept", "n02084071") == 13890717130043209795


def test_pairs_of_eight_occurrences() -> None:
    """Worked out apart from this code, by the rules of the module's docstring with seed 42."""
    rows = [
        row("f:1:0", "bank", "n1"), row("f:1:4", "river", "n9"), row("f:2:1", "bank", "n1"),
        row("f:2:5", "bank", "n2"), row("f:3:2", "shore", "n1"), row("f:3:3", "money", "n7"),
        row("f:4:0", "depository", "n2"), row("f:4:2", "river", "n9"),
    ]  # fmt: skip
    pairs = pairs_of(rows, seed=42, partner_pool="one_sided")["test"]
    assert listed(rows, pairs) == {
        "SC/SL": {"f:1:0>f:2:1", "f:1:4>f:4:2", "f:2:1>f:1:0", "f:4:2>f:1:4"},
        "SC/DL": {"f:1:0>f:3:2", "f:2:1>f:3:2", "f:2:5>f:4:0", "f:3:2>f:1:0", "f:4:0>f:2:5"},
        "DC/SL": {"f:1:0>f:2:5", "f:2:1>f:2:5", "f:2:5>f:2:1"},
        "DC/DL": {
            "f:1:0>f:4:2", "f:1:4>f:2:5", "f:2:1>f:4:2", "f:2:5>f:1:4", "f:3:2>f:3:3", "f:3:3>f:4:0",
            "f:4:0>f:4:2", "f:4:2>f:3:2",
        },
    }  # fmt: skip
    assert pairs.label.tolist() == [CATEGORIES[code].startswith("SC") for code in pairs.category]
    assert pairs.same_lemma.tolist() == [CATEGORIES[code].endswith("SL") for code in pairs.category]


@st.composite
def corpora(draw: st.DrawFn) -> list[Tagged]:
    """Occurrences of few lemmas and concepts, so that every category occurs, each with its split."""
    sides = st.tuples(st.sampled_from("abcdefghij"), st.sampled_from("klmnopqrst"))
    drawn = draw(st.lists(sides, min_size=2, max_size=60))
    rows = sorted(row(f"f:{number}:0", lemma, f"n{concept}") for number, (lemma, concept) in enumerate(drawn))
    reserved = Reserved.of(rows, CaleData(seed=draw(st.integers(0, 99)), val=0.2, test=0.3))
    return [one._replace(split=reserved.split_of(one)) for one in rows]


@settings(max_examples=60, deadline=None)
@given(rows=corpora(), pool=st.sampled_from(POOLS), seed=st.integers(0, 9))
def test_nothing_held_out_reaches_training(rows: list[Tagged], pool: str, seed: int) -> None:
    pairs = pairs_of(rows, seed=seed, partner_pool=pool)  # type: ignore[arg-type]
    check_for_leaks(rows, pairs, pool)


def check_for_leaks(rows: Sequence[Tagged], pairs: dict[str, OccurrencePairs], pool: str) -> None:
    """Train pairs know train alone; val and test pairs have an unseen side; categories are what they say."""
    splits = np.array([SPLITS.index(one.split) for one in rows])
    lemmas = np.array([one.occurrence.lemma for one in rows])
    concepts = np.array([one.concept for one in rows])
    assert (splits[pairs["train"].anchor] == 0).all()
    assert (splits[pairs["train"].partner] == 0).all()
    in_train = splits == 0
    seen_lemmas, seen_concepts = set(lemmas[in_train]), set(concepts[in_train])
    for code, split in enumerate(SPLITS):
        chosen = pairs[split]
        assert (splits[chosen.anchor] == code).all()
        allowed = {code} if pool == "strict" else {0, code}
        assert set(splits[chosen.partner]) <= allowed
        assert (chosen.anchor != chosen.partner).all()
        assert (chosen.label == (concepts[chosen.anchor] == concepts[chosen.partner])).all()
        assert (chosen.same_lemma == (lemmas[chosen.anchor] == lemmas[chosen.partner])).all()
        if split != "train":
            for place in np.unique(chosen.anchor):
                assert lemmas[place] not in seen_lemmas or concepts[place] not in seen_concepts


@settings(max_examples=40, deadline=None)
@given(rows=corpora(), pool=st.sampled_from(POOLS))
def test_every_category_that_can_be_is_there_once(rows: list[Tagged], pool: str) -> None:
    pairs = pairs_of(rows, seed=42, partner_pool=pool)  # type: ignore[arg-type]
    for split in SPLITS:
        allowed = {split} if pool == "strict" else {split, "train"}
        has = Counter(zip(pairs[split].anchor.tolist(), pairs[split].category.tolist(), strict=True))
        wanted = Counter(
            {
                (place, 2 * (one.concept != other.concept) + (one.occurrence.lemma != other.occurrence.lemma)): 1
                for place, one in enumerate(rows)
                for other in rows
                if one.split == split and other.split in allowed and other is not one
            }
        )
        assert has == wanted


def test_reserved_lemmas_come_in_their_keyed_order() -> None:
    """H(42, "lemma", .) orders shore, money, bank, depository, river; `round` is to even: round(.5) = 0."""
    rows = [row(lemma, lemma, "n1") for lemma in ("bank", "depository", "money", "river", "shore")]
    reserved = Reserved.of(rows, CaleData(val=0.2, test=0.4))
    assert reserved.lemmas == {"shore": "val", "money": "test", "bank": "test"}
    assert Reserved.of(rows, CaleData(val=0.1, test=0.1)) == ({}, {})


@pytest.mark.parametrize(
    ("lemma", "concept", "split"),
    [("a", "n1", "val"), ("b", "n1", "test"), ("c", "n1", "train"), ("a", "n2", "test"), ("c", "n3", "val")],
)
def test_test_wins_over_val_and_val_over_train(lemma: str, concept: str, split: str) -> None:
    reserved = Reserved({"a": "val", "b": "test"}, {"n2": "test", "n3": "val"})
    assert reserved.split_of(row("f:1:0", lemma, concept)) == split


class TestRules:
    """One sentence of ten annotated words and one token more, on WordNet as it is."""

    KEPT = Word(0, "say", ("say%2:32:00::",), False)

    def kept(self, real: Wordnet, *words: Word, data: CaleData | None = None) -> list[Tagged]:
        filling = [Word(11, "", (), True)] * (10 - len(words))
        sentence = Sentence("br-x01", "7", ("said_it", *("word",) * 10, "."), (*words, *filling))
        return tagged([sentence], real, data or CaleData(min_count=1))

    def test_what_an_occurrence_is(self, real: Wordnet) -> None:
        (one,) = self.kept(real, self.KEPT)
        assert (one.id, one.concept, one.pos, one.lexname) == (
            "br-x01:7:0",
            "v01009258",
            "v",
            "verb.communication",
        )
        assert one.occurrence == Occurrence("said it" + " word" * 10 + " .", 0, 7, "say")
        assert synset_id(one.concept) == "01009258-v"
        assert concept_of(real.synsets["01009258-v"]) == one.concept

    @pytest.mark.parametrize(
        ("word", "concept"),
        [
            (Word(1, "each", ("each%5:00:00:all(a):00",), False), "a02269636"),  # the head keeps its marker
            (Word(1, "recent", ("recent%5:00:00:past:00",), False), "a01730445"),  # satellites are adjectives
            (Word(1, "such", ("such%5:00:01:specified:00",), False), None),  # sense 0: no such key
            (Word(1, "far", ("far%4:02:00::",), False), None),  # adverb
            (Word(1, "jury", ("jury%1:14:00::",), True), None),  # proper noun
            (Word(1, "friday", ("friday%1:28:00::",), False), None),  # WordNet writes Friday
            (Word(1, "take_place", ("take_place%2:30:00::",), False), None),  # two words
            (Word(1, "be", ("be%2:42:03::",), False), None),  # two letters
            (Word(1, "x-ray", ("x-ray%1:06:00::",), False), None),  # not letters alone
        ],
    )
    def test_which_words_are_kept(self, real: Wordnet, word: Word, concept: str | None) -> None:
        assert [one.concept for one in self.kept(real, word)] == ([concept] if concept else [])

    def test_of_several_senses_the_first_that_wordnet_has(self, real: Wordnet) -> None:
        both = self.KEPT._replace(keys=("say%2:99:00::", "say%2:32:01::", "say%2:32:00::"))
        (one,) = self.kept(real, both)
        assert one.concept == concept_of(real.synsets[real.keys["say%2:32:01::"]])
        assert self.kept(real, both, data=CaleData(min_count=1, multi_sense="drop")) == []

    def test_length_of_a_sentence(self, real: Wordnet) -> None:
        """10 annotated words among 12 tokens."""
        for unit, accepted in (("annotated", 10), ("tokens", 12)):
            exact = CaleData(min_count=1, length_unit=unit, min_len=accepted, max_len=accepted)  # type: ignore[arg-type]
            assert len(self.kept(real, self.KEPT, data=exact)) == 1
            assert (
                self.kept(real, self.KEPT, data=replace(exact, max_len=accepted + 1, min_len=accepted + 1)) == []
            )

    def test_a_lemma_counts_with_each_part_of_speech_apart(self, real: Wordnet) -> None:
        noun, verb = Word(1, "run", ("run%1:04:00::",), False), Word(2, "run", ("run%2:38:00::",), False)
        assert len(self.kept(real, noun, verb, data=CaleData(min_count=1))) == 2
        assert self.kept(real, noun, verb, data=CaleData(min_count=2)) == []


def test_the_order_of_files_makes_no_difference(real_semcor: SemcorFiles, real: Wordnet) -> None:
    some = list(real_semcor.texts.items())[:20]
    forwards, backwards = (tagged(read(dict(files)), real, CaleData()) for files in (some, some[::-1]))
    assert forwards == backwards
    assert len(forwards) > 1000


def test_the_default_build(real_tagged: list[Tagged]) -> None:
    """Digests and counts of a build apart from this code, seed 42."""
    pairs = pairs_of(real_tagged, seed=42, partner_pool="one_sided")
    assert {name: whole[:16] for name, whole in digests_of(real_tagged, pairs).items()} == {
        "occurrences": "92dad750aa288745",
        "train": "9bea38c0aad32990",
        "val": "2d53490999df78e1",
        "test": "65670f604b3f47ce",
    }
    counts = {split: np.bincount(chosen.category).tolist() for split, chosen in pairs.items()}
    assert counts == {
        "train": [47_340, 11_776, 40_577, 48_402],
        "val": [4_857, 1_203, 4_123, 4_993],
        "test": [13_467, 3_916, 11_908, 13_730],
    }
    assert Counter(one.pos for one in real_tagged) == {"n": 35_367, "v": 17_563, "a": 14_195}
    check_for_leaks(real_tagged, pairs, "one_sided")
    strict = pairs_of(real_tagged, seed=42, partner_pool="strict")
    assert np.bincount(strict["test"].category).tolist() == [13_467, 2_473, 8_630, 13_730]
    check_for_leaks(real_tagged, strict, "strict")


def test_the_example_of_the_first_sentence(real_tagged: list[Tagged]) -> None:
    one = next(one for one in real_tagged if one.id == "br-a01:1:2")
    assert one.concept == "v01009258"
    text, target = one.occurrence.text, one.occurrence.target
    assert target == "said"
    assert text.startswith(
        "The Fulton County Grand Jury said Friday an investigation of Atlanta 's recent primary"
    )
