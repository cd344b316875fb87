"""Rules that put another concept's definition in place: what they may draw, and that they draw by name alone."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from corpora.concept.negatives import (
    TYPES,
    HardNegatives,
    NegativePool,
    NegativeSettings,
    SynsetFacts,
    pool_of,
    prefix_of,
    types_of,
)
from corpora.concept.records import RULES
from corpora.sources.texts import norm
from corpora.sources.wordnet import Wordnet


@pytest.fixture(scope="module")
def facts(small: Wordnet) -> SynsetFacts:
    return SynsetFacts(small)


@pytest.fixture(scope="module")
def rows(small: Wordnet) -> list[tuple[str, str]]:
    return [(synset.id, lemma) for synset in small.synsets.values() for lemma in synset.lemmas]


@pytest.fixture(scope="module")
def pool(small: Wordnet, facts: SynsetFacts, rows: list[tuple[str, str]]) -> NegativePool:
    return pool_of(rows, _texts(small), facts)


def _texts(lexicon: Wordnet) -> dict[str, str]:
    return {synset.id: synset.definition for synset in lexicon.synsets.values()}


def test_types_of_the_real_nouns(real: Wordnet) -> None:
    counts = Counter(TYPES[index][0] for index in types_of(real).values())
    assert counts == {
        "person": 10_297,
        "organization": 1_262,
        "biological": 9_295,
        "location": 3_364,
        "artifact": 10_682,
        "event": 8_075,
        "abstraction": 30_124,
    }


def test_prefixes(real: Wordnet) -> None:
    words = {lemma for lemma, _ in real.senses}
    prefixes = {
        term: prefix_of(term, words.__contains__) for term in ("rewrite", "uncle", "region", "non-stick", "undo")
    }
    assert prefixes == {"rewrite": "re", "uncle": None, "region": None, "non-stick": "non", "undo": None}
    rows = [lemma for synset in real.synsets.values() for lemma in synset.lemmas]
    assert sum(prefix_of(term, words.__contains__) is not None for term in rows) == pytest.approx(14_857, abs=5)


def test_three_letters_find_a_mate_for_nearly_every_term(real: Wordnet) -> None:
    rows = {
        (norm(lemma)[:3], synset.pos, synset.id) for synset in real.synsets.values() for lemma in synset.lemmas
    }
    mates = Counter((initial, pos) for initial, pos, _ in rows)
    terms = [(norm(lemma)[:3], synset.pos) for synset in real.synsets.values() for lemma in synset.lemmas]
    assert sum(mates[term] > 1 for term in terms) / len(terms) == pytest.approx(0.987, abs=0.002)


def test_replacements_keep_what_the_rule_keeps(
    small: Wordnet, facts: SynsetFacts, pool: NegativePool, rows: list[tuple[str, str]]
) -> None:
    """pos_random and pos_prefix keep the part of speech, type_swap changes the type, none shares a surface."""
    rules = HardNegatives(facts, pool, NegativeSettings())
    holders: dict[str, list[str]] = {}
    for synset in small.synsets.values():
        holders.setdefault(synset.definition, []).append(synset.id)
    drawn = 0
    for concept, term in rows:
        own = small.synsets[concept]
        for negative in (rules.pos_random, rules.pos_prefix, rules.type_swap):
            made = negative(concept, term, own.definition)
            if made is None:
                continue
            drawn += 1
            others = [small.synsets[other] for other in holders[made.text]]
            assert concept not in holders[made.text]
            assert all(other.pos == own.pos for other in others)
            assert any(facts.surfaces[concept].isdisjoint(facts.surfaces[other.id]) for other in others)
            if made.rule == "type_swap":
                assert own.pos == "n"
                assert any(
                    facts.types.get(other.id, facts.types.get(concept)) != facts.types.get(concept)
                    for other in others
                )
    assert drawn > len(rows)


def test_a_prefix_mate_shares_the_prefix(small: Wordnet, facts: SynsetFacts, pool: NegativePool) -> None:
    rewrite = small.synsets[small.senses["rewrite", "v"][0]]
    made = HardNegatives(facts, pool, NegativeSettings()).pos_prefix(rewrite.id, "rewrite", rewrite.definition)
    assert made is not None
    assert (made.kind, made.text) == ("morph", "settle in a new place")


def test_draws_do_not_depend_on_order(small: Wordnet, facts: SynsetFacts, rows: list[tuple[str, str]]) -> None:
    shuffled = rows.copy()
    Random(1).shuffle(shuffled)
    backwards = pool_of(shuffled, _texts(small), facts)
    one, other = (
        HardNegatives(facts, p, NegativeSettings()) for p in (pool_of(rows, _texts(small), facts), backwards)
    )
    assert {row: one.of(*row, small.synsets[row[0]].definition) for row in rows} == {
        row: other.of(*row, small.synsets[row[0]].definition) for row in reversed(shuffled)
    }


def test_the_seed_moves_the_draws(
    small: Wordnet, facts: SynsetFacts, pool: NegativePool, rows: list[tuple[str, str]]
) -> None:
    def drawn(seed: int) -> list[object]:
        rules = HardNegatives(facts, pool, NegativeSettings(seed=seed))
        return [rules.pos_random(*row, small.synsets[row[0]].definition) for row in rows]

    assert drawn(0) == drawn(0)
    assert drawn(0) != drawn(1)


def test_types_are_drawn_uniformly(small: Wordnet, facts: SynsetFacts, rows: list[tuple[str, str]]) -> None:
    """600 seeds over six other types: 100 each, with a standard deviation of 9."""
    named = pool_of(rows, {identifier: identifier for identifier in small.synsets}, facts)
    concept = small.senses["x1y", "n"][0]
    counts: Counter[int] = Counter()
    for seed in range(600):
        made = HardNegatives(facts, named, NegativeSettings(seed=seed)).type_swap(concept, "x1y", "")
        assert made is not None
        counts[facts.types[made.text]] += 1
    assert sorted(counts) == [index for index in range(len(TYPES)) if index != facts.types[concept]]
    assert all(60 < count < 140 for count in counts.values())


def test_switches(small: Wordnet, facts: SynsetFacts, pool: NegativePool) -> None:
    def rules(**changes: object) -> HardNegatives:
        return HardNegatives(facts, pool, NegativeSettings(**changes))  # type: ignore[arg-type]

    kettle = small.senses["x3y", "n"][0]
    assert rules().antonym(kettle, "x3y", "a pot for water") is None
    fallback = rules(antonym_fallback="random_same_pos").antonym(kettle, "x3y", "a pot for water")
    assert fallback is not None
    assert fallback.kind == "fallback"
    made = rules().pos_prefix(kettle, "x3y", "a pot for water")
    assert made is None  # no other lemma begins with x3y
    item = small.senses["item_5", "n"][0]
    init = rules().pos_prefix(item, "item_5", "a pot")
    assert init is not None
    assert init.kind == "init3"
    assert rules(prefix_fallback="none").pos_prefix(item, "item_5", "a pot") is None


def test_type_edit_changes_the_genus_word(real: Wordnet) -> None:
    """A mayor is a kind of leader: the first word of the definition that names something broader is edited."""
    facts = SynsetFacts(real)
    mayor = real.senses["mayor", "n"][0]
    rules = HardNegatives(facts, pool_of([], {}, facts), NegativeSettings(type_mode="edit"))
    made = rules.type_swap(mayor, "mayor", "the elected leader of a town")
    assert made is not None
    assert made.kind == "edit"
    words = {f"the elected {word} of a town" for _, _, word in TYPES[1:]}  # every type but the mayor's own
    assert made.text in words


@pytest.mark.parametrize(
    ("definition", "before", "after", "types"),
    [
        (
            "two artifacts of a town",
            "two ",
            " of a town",
            {"people", "organizations", "organisms", "places", "events", "ideas"},
        ),
        (
            "An Artifact or item",
            "",
            " or item",
            {"A Person", "An Organization", "An Organism", "A Place", "An Event", "An Idea"},
        ),
    ],
)
def test_type_edit_keeps_number_case_and_article(
    definition: str,
    before: str,
    after: str,
    types: set[str],
    small: Wordnet,
    facts: SynsetFacts,
    pool: NegativePool,
) -> None:
    """The fifth item is a kind of artifact: of 60 seeds each other type is named by some, and itself by none."""
    item = small.senses["x4y", "n"][0]
    made = {
        HardNegatives(facts, pool, NegativeSettings(seed=seed, type_mode="edit")).type_swap(
            item, "x4y", definition
        )
        for seed in range(60)
    }
    assert made == {("type_swap", "edit", f"{before}{one}{after}") for one in types}
    rules = HardNegatives(facts, pool, NegativeSettings(type_mode="edit"))
    assert rules.type_swap(item, "x4y", "a thing that names nothing broader") is None


def test_rules_come_in_their_order(small: Wordnet, facts: SynsetFacts, pool: NegativePool) -> None:
    concept = small.senses["item_5", "n"][0]
    made = HardNegatives(facts, pool, NegativeSettings()).of(concept, "item_5", small.synsets[concept].definition)
    assert [negative.rule for negative in made] == list(RULES)
    assert made[0].text == small.synsets[concept].definition.replace("cold", "hot")
