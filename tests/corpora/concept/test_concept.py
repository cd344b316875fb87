"""The corpus a trainer and an evaluator get: interface, ids, gold, fingerprint and cache."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpora.concept.build import build_concept, eval_split
from corpora.concept.corpus import fingerprint, fingerprint_of_all, load
from corpora.concept.data import ConceptData
from corpora.concept.negatives import NegativeSettings, SynsetFacts
from corpora.concept.records import KINDS, RULES, ConceptCorpus, reverse_gold
from corpora.concept.tables import BuiltCorpus, write_corpus
from corpora.sources.texts import norm, shown
from corpora.sources.wordnet import Wordnet, read
from corpora.sources.wordnet_files import WordnetFiles
from corpora.store.columns import Ragged
from corpora.store.errors import CorpusError


@pytest.fixture
def loaded(small_data: ConceptData, own_cache: Path) -> ConceptCorpus:
    return load(small_data)


def test_what_is_loaded_is_what_was_built(loaded: ConceptCorpus, small_corpus: BuiltCorpus) -> None:
    assert list(loaded.texts) == small_corpus.texts
    assert loaded.texts[3] == small_corpus.texts[3]
    assert loaded.texts.take(np.array([4, 2])) == [small_corpus.texts[4], small_corpus.texts[2]]
    assert dict(loaded.splits) == small_corpus.splits
    for view in ("syn", "t2d"):
        mine, theirs = getattr(loaded, view), getattr(small_corpus, view)
        assert mine.view == view
        np.testing.assert_array_equal(mine.left, theirs.left)
        np.testing.assert_array_equal(mine.right, theirs.right)
        np.testing.assert_array_equal(mine.concept_ids.values, theirs.concept_ids.values)
        np.testing.assert_array_equal(mine.concept_ids.offsets, theirs.concept_ids.offsets)
    np.testing.assert_array_equal(loaded.negatives.rule, small_corpus.negatives.rule)
    np.testing.assert_array_equal(loaded.negatives.kind, small_corpus.negatives.kind)


def test_texts_are_distinct_and_rows_index_them(loaded: ConceptCorpus) -> None:
    assert len(set(loaded.texts)) == len(loaded.texts)
    for column in (
        loaded.syn.left,
        loaded.syn.right,
        loaded.t2d.left,
        loaded.t2d.right,
        loaded.negatives.texts.values,
    ):
        assert column.min() >= 0
        assert column.max() < len(loaded.texts)


def test_each_row_has_a_rule_at_most_once(loaded: ConceptCorpus) -> None:
    assert len(loaded.negatives) == len(loaded.t2d)
    rules = Ragged(loaded.negatives.rule, loaded.negatives.texts.offsets)
    assert all(len(set(rules[row].tolist())) == len(rules[row]) for row in range(len(rules)))
    assert {RULES[rule] for rule in loaded.negatives.rule} == set(RULES)
    assert {KINDS[kind] for kind in loaded.negatives.kind} <= set(KINDS)


def test_rows_of_one_surface_share_an_id_and_strangers_do_not(loaded: ConceptCorpus) -> None:
    by_surface: dict[str, list[set[int]]] = {}
    for row in range(len(loaded.t2d)):
        surface = norm(loaded.texts[loaded.t2d.left[row]])
        by_surface.setdefault(surface, []).append(set(loaded.t2d.concept_ids[row].tolist()))
    assert all(set.intersection(*rows) for rows in by_surface.values())
    unique = [rows[0] for surface, rows in by_surface.items() if surface in ("write", "relocate")]
    assert len(unique) == 2
    assert not set.intersection(*unique)


def test_synonyms_share_an_id_with_their_definitions(loaded: ConceptCorpus, small: Wordnet) -> None:
    """A pair's ids hold the ids of every t2d row of either side, whatever the sense."""
    rows: dict[str, set[int]] = {}
    for row in range(len(loaded.t2d)):
        rows.setdefault(loaded.texts[loaded.t2d.left[row]], set()).update(loaded.t2d.concept_ids[row].tolist())
    for row in range(0, len(loaded.syn), 7):
        ids = set(loaded.syn.concept_ids[row].tolist())
        for side in (loaded.syn.left[row], loaded.syn.right[row]):
            if loaded.texts[side] in rows:
                assert len(ids & rows[loaded.texts[side]]) >= 2  # the surface and at least one synset


def test_shared_wording_is_one_definition_with_all_its_terms(loaded: ConceptCorpus, small: Wordnet) -> None:
    shared = 0
    for split in loaded.splits.values():
        assert len(set(split.terms)) == len(split.terms)
        assert len(set(split.definitions)) == len(split.definitions)
        for definition, concepts in enumerate(split.concept_of_definition):
            shared += len(concepts) > 1
            expected = {norm(lemma) for concept in concepts for lemma in small.synsets[concept].lemmas}
            assert {split.terms[term] for term in reverse_gold(split)[definition]} == expected
    assert shared


def test_gold_and_its_reverse_are_one_relation(loaded: ConceptCorpus) -> None:
    for split in loaded.splits.values():
        forward = {(term, definition) for term, listed in enumerate(split.gold) for definition in listed}
        backward = {(term, definition) for definition, listed in enumerate(reverse_gold(split)) for term in listed}
        assert forward == backward
        assert all(split.gold)


def test_stress_rows_are_of_the_split(loaded: ConceptCorpus) -> None:
    for split in loaded.splits.values():
        for row in split.stress:
            assert row.term in split.terms
            assert row.definition in split.definitions
            assert row.negative != row.definition
            if row.rule in ("pos_random", "pos_prefix", "type_swap"):
                assert row.negative in split.definitions
        assert len({(row.concept, row.rule) for row in split.stress}) == len(split.stress)


def test_fewer_test_concepts_leave_training_alone(
    small_data: ConceptData, small: Wordnet, small_corpus: BuiltCorpus
) -> None:
    fewer = build_concept(replace(small_data, test_concepts=5, stress_concepts=2), small)
    assert fewer.texts == small_corpus.texts
    assert fewer.splits["id"].definitions == small_corpus.splits["id"].definitions[:5]
    assert fewer.splits["hh"].definitions == small_corpus.splits["hh"].definitions
    assert {len({row.concept for row in split.stress}) for split in fewer.splits.values()} == {2}


def test_term_scope_masks_the_own_term_only(tarn_and_mere: Path) -> None:
    nothing = ConceptData(n_hh=0, n_id=0, n_dev=0)

    def rows(data: ConceptData) -> dict[str, str]:
        built = build_concept(data, read(WordnetFiles(tarn_and_mere)))
        return {built.texts[a]: built.texts[b] for a, b in zip(built.t2d.left, built.t2d.right, strict=True)}

    assert {rows(nothing)[term] for term in ("tarn", "mere")} == {"a or in the hills"}
    assert rows(replace(nothing, mask_scope="term"))["tarn"] == "a or mere in the hills"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({}, "9afb8856e1b0c9b7"), ({"dev_apart": False, "test_surfaces": "normalised"}, "d8c4e8b824972a36")],
)
def test_the_builder_version_names_what_it_builds(
    settings: dict[str, Any], expected: str, small_data: ConceptData, small: Wordnet, tmp_path: Path
) -> None:
    """If this digest moves, the same sources give other rows: raise corpora.concept.corpus.BUILDER along with it."""
    built = build_concept(replace(small_data, **settings), small)
    digest = hashlib.sha256()
    digest.update("\n".join(built.texts).encode())
    for rows in (built.syn, built.t2d):
        for column in (rows.left, rows.right, rows.concept_ids.values, rows.concept_ids.offsets):
            digest.update(column.tobytes())
    negatives = built.negatives
    for column in (negatives.texts.values, negatives.texts.offsets, negatives.rule, negatives.kind):
        digest.update(column.tobytes())
    write_corpus(tmp_path, built)
    for name in ("dev", "id", "hh"):
        digest.update((tmp_path / f"{name}.json").read_bytes())
    assert digest.hexdigest()[:16] == expected


def test_fingerprint_follows_content_not_place(
    small_data: ConceptData, small_folder: Path, tmp_path: Path
) -> None:
    data = small_data
    moved = Path(shutil.copytree(small_folder, tmp_path / "moved"))
    assert fingerprint(data) == fingerprint(replace(data, wordnet=str(moved)))
    with (moved / "noun.exc").open("a") as file:
        file.write("kine cow\n")
    assert fingerprint(data) != fingerprint(replace(data, wordnet=str(moved)))
    others = [
        replace(data, split_seed=1),
        replace(data, n_dev=5),
        replace(data, type_mode="edit"),
        replace(data, mask_token="X"),
    ]
    assert len({fingerprint(other) for other in [data, *others]}) == 5


def test_fingerprint_of_the_real_files_is_quick(real_files: WordnetFiles) -> None:
    start = time.process_time()
    fingerprint(ConceptData(wordnet=str(real_files.place)))
    assert time.process_time() - start < 1


def test_same_settings_same_bytes_other_seed_other_test(
    small_data: ConceptData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpora = []
    for place, seed in (("one", 0), ("two", 0), ("two", 1)):
        monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / place))
        corpora.append(load(replace(small_data, split_seed=seed)))
    one, two, other = corpora
    assert one.digests == two.digests
    assert one.digests["hh.json"] == other.digests["hh.json"]
    assert one.digests["id.json"] != other.digests["id.json"]


def test_second_load_reads_the_cache(small_data: ConceptData, own_cache: Path) -> None:
    data = small_data
    first = load(data)
    (folder,) = (path for path in (own_cache / "concept").iterdir() if path.is_dir())
    assert folder.name == fingerprint_of_all(data)
    assert first.fingerprint == fingerprint(data)
    before = (folder / "manifest.json").stat().st_mtime_ns
    load(data)
    assert (folder / "manifest.json").stat().st_mtime_ns == before
    assert json.loads((folder / "manifest.json").read_text()) == first.digests


def test_tested_terms_are_written_as_training_has_them(
    small_data: ConceptData, small: Wordnet, small_corpus: BuiltCorpus
) -> None:
    """Their order, their gold and the rest stay; item_5 is "item 5" in both, WordNet's May keeps its capital."""
    normalised = build_concept(replace(small_data, test_surfaces="normalised"), small)
    for name, plain in normalised.splits.items():
        split = small_corpus.splits[name]
        assert tuple(map(norm, split.terms)) == plain.terms
        assert (split.gold, split.definitions) == (plain.gold, plain.definitions)
    capital = {
        identifier: replace(synset, lemmas=("Half-Moon_Bay",)) for identifier, synset in small.synsets.items()
    }
    spelt = [
        eval_split(
            "id",
            list(capital)[:2],
            capital,
            {**dict.fromkeys(capital, "bay"), next(iter(capital)): "a bay"},
            SynsetFacts(small),
            NegativeSettings(),
            None,
            how,
        )
        for how in (norm, shown)
    ]
    assert [split.terms for split in spelt] == [("half moon bay",), ("Half-Moon Bay",)]
    assert [{row.term for row in split.stress} for split in spelt] == [{"half moon bay"}, {"Half-Moon Bay"}]
    assert {split.definitions for split in spelt} == {("a bay",)}  # the other concept keeps a single word
    proper = {
        identifier: replace(synset, lemmas=tuple(map(str.capitalize, synset.lemmas)))
        for identifier, synset in small.synsets.items()
    }
    for written, how in (("as-written", str.capitalize), ("normalised", str.lower)):
        data = replace(small_data, test_surfaces=written)
        built = build_concept(data, replace(small, synsets=proper))
        assert all(term == how(term) for split in built.splits.values() for term in split.terms)
    assert fingerprint(replace(small_data, test_surfaces="normalised")) == fingerprint(small_data)


def test_a_corpus_of_former_defaults_keeps_its_name(small_data: ConceptData) -> None:
    """As they were called before there was a choice of either."""
    former = replace(small_data, dev_apart=False, test_surfaces="normalised")
    assert fingerprint(former)[:16] == "46434d7be5ee774d"
    assert fingerprint_of_all(former)[:16] == "27d5f653a1b031ab"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"lexicons": ("wordnet", "foldoc")},
            r"data\.lexicons = .*foldoc.*\n  accepted: a list of wordnet, gcide",
        ),
        ({"lexicons": ()}, r"data\.lexicons = "),
        ({"lexicons": ("wordnet", "wordnet")}, r"data\.lexicons = .*\n  accepted: wordnet, .*, each once"),
        ({"split": "source"}, r"data\.split = 'source'\n  accepted: in-domain"),
        ({"type_mode": "swap"}, r"data\.type_mode = 'swap'\n  accepted: replace, edit"),
        ({"n_hh": -1}, r"data\.n_hh = -1\n  accepted: a whole number"),
    ],
)
def test_mistakes_name_the_field_and_what_is_accepted(changes: dict[str, object], message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        ConceptData(**changes)  # type: ignore[arg-type]
