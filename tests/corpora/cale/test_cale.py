"""The corpus a trainer and an evaluator of the cale family get: columns, samples, fingerprint and cache."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from corpora.cale.corpus import fingerprint, fingerprint_of_test, load, sample
from corpora.cale.data import CaleData
from corpora.cale.records import POS, SPLITS, CaleCorpus, OccurrencePairs, Occurrences, Tagged
from corpora.sources.occurrences import Occurrence
from corpora.store.errors import CorpusError
from evaluators.tasks import suite
from evaluators.tasks.cale import tasks
from tests.corpora.semcor_samples import LEMMAS, tagfiles, write_archive, write_folder, write_lexicon, write_zip


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    write_archive(folder / "semcor3.0.tar.gz", tagfiles())
    write_lexicon(folder / "wordnet")
    return folder


@pytest.fixture
def data(sources: Path, own_cache: Path) -> CaleData:
    return CaleData(
        semcor=str(sources), wordnet=str(sources / "wordnet"), min_len=4, val=0.2, test=0.2, threshold_pairs=50
    )


@pytest.fixture
def corpus(data: CaleData) -> CaleCorpus:
    return load(data)


def test_columns_say_what_the_occurrences_are(corpus: CaleCorpus) -> None:
    occurrences = corpus.occurrences
    assert set(occurrences.lemmas) == set(LEMMAS)
    assert list(occurrences.lexnames) == ["noun.location", "noun.object"]
    assert occurrences.ids.to_pylist() == sorted(occurrences.ids.to_pylist())
    everything = list(occurrences)
    assert len(everything) == len(occurrences) == 352 * 3 * 4
    for place in (0, 7, len(occurrences) - 1):
        one = occurrences[place]
        assert one == everything[place] == occurrences.take([place])[0]
        assert one.lemma == occurrences.lemmas[occurrences.lemma[place]]
        assert one.target == f"{one.lemma}s"
        assert occurrences.concepts[occurrences.concept[place]].startswith(POS[occurrences.pos[place]])
    assert occurrences[3:5] == everything[3:5]
    assert occurrences[-1] == everything[-1]


def test_pairs_index_the_occurrences(corpus: CaleCorpus) -> None:
    occurrences = corpus.occurrences
    for code, split in enumerate(SPLITS):
        pairs = corpus.pairs[split]
        assert len(pairs) > 0
        assert (occurrences.split[pairs.anchor] == code).all()
        assert (pairs.label == (occurrences.concept[pairs.anchor] == occurrences.concept[pairs.partner])).all()
        assert (pairs.same_lemma == (occurrences.lemma[pairs.anchor] == occurrences.lemma[pairs.partner])).all()
        assert (pairs.anchor.dtype, pairs.category.dtype) == (np.int32, np.uint8)
        with pytest.raises(ValueError, match="read-only"):
            pairs.anchor[0] = 1
    assert len(corpus.wu_palmer) == len(corpus.pairs["test"])
    assert (corpus.wu_palmer[corpus.pairs["test"].label] == 1).all()


def test_the_second_load_is_from_the_cache(
    data: CaleData, corpus: CaleCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corpora.cale.corpus.from_semcor", None)  # nothing is built again
    again = load(data)
    assert list(again.occurrences) == list(corpus.occurrences)
    assert dict(again.digests) == dict(corpus.digests)
    assert again.fingerprint == corpus.fingerprint == fingerprint(data)
    smaller = load(replace(data, test_pairs=5))  # nor for another size
    assert len(smaller.pairs["test"]) == 5


def test_the_cached_folder_says_what_it_is(data: CaleData, corpus: CaleCorpus, own_cache: Path) -> None:
    (about,) = own_cache.glob("cale/*/about.json")
    told = json.loads(about.read_text())
    assert told["rules"]["min_len"] == 4
    assert told["counts"]["test"]["pairs"] == len(corpus.pairs["test"])
    assert told["counts"]["val"]["SC/SL"] == int((corpus.pairs["val"].category == 0).sum())
    assert "Princeton" in told["licence"]


def test_another_process_builds_the_same(data: CaleData, corpus: CaleCorpus, tmp_path: Path) -> None:
    """Another cache, another hash seed of Python, another order of the archive's files."""
    packed = write_archive(tmp_path / "other.tar.gz", dict(reversed(tagfiles().items())))
    code = (
        "import json, sys; from corpora.cale.corpus import load; from corpora.cale.data import CaleData; "
        "c = load(CaleData(**json.loads(sys.argv[1]))); print(json.dumps([c.fingerprint, dict(c.digests)]))"
    )
    settings = {name: getattr(data, name) for name in ("wordnet", "min_len", "val", "test", "threshold_pairs")}
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(settings | {"semcor": str(packed)})],
        env={"SEMRAY_CACHE": str(tmp_path / "cache"), "PYTHONHASHSEED": "7"},
        cwd=Path(__file__).resolve().parents[3],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == [corpus.fingerprint, dict(corpus.digests)]


def test_nltks_form_has_the_same_rows_under_another_name(
    data: CaleData, corpus: CaleCorpus, tmp_path: Path
) -> None:
    """The files differ, so the fingerprint does; what is read from them does not."""
    packed = write_zip(tmp_path / "semcor.zip", tagfiles())
    nltk = load(replace(data, semcor=str(packed)))
    assert dict(nltk.digests) == dict(corpus.digests)
    assert nltk.fingerprint != corpus.fingerprint


def test_samples_are_fixed_and_nested(corpus: CaleCorpus, data: CaleData) -> None:
    train = corpus.pairs["train"]
    few, more = (sample(corpus.occurrences, train, size) for size in (20, 60))
    assert set(few) < set(more)
    assert (np.diff(more) > 0).all()
    assert list(sample(corpus.occurrences, train, None)) == list(range(len(train)))
    assert list(corpus.threshold) == list(sample(corpus.occurrences, train, 50))
    backwards = train.take(np.arange(len(train))[::-1])
    assert set(len(train) - 1 - sample(corpus.occurrences, backwards, 20)) == set(few)
    small = load(replace(data, train_pairs=30, val_pairs=10, test_pairs=12, threshold_pairs=None))
    assert {split: len(pairs) for split, pairs in small.pairs.items()} == {"train": 30, "val": 10, "test": 12}
    assert len(small.threshold) == 30
    rows = sample(corpus.occurrences, corpus.pairs["test"], 12)
    assert (small.wu_palmer == corpus.wu_palmer[rows]).all()
    assert (small.pairs["test"].anchor == corpus.pairs["test"].anchor[rows]).all()


@pytest.mark.parametrize(
    "changed",
    [
        *({"seed": 43}, {"min_len": 3}, {"max_len": 4}, {"length_unit": "tokens"}, {"multi_sense": "drop"}),
        *({"min_count": 11}, {"partner_pool": "strict"}, {"val": 0.1}, {"test": 0.1}, {"train_pairs": 9}),
    ],
    ids=str,
)
def test_settings_that_change_rows_change_the_fingerprint(data: CaleData, changed: dict[str, object]) -> None:
    assert fingerprint(replace(data, **changed)) != fingerprint(data)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", ["val_pairs", "test_pairs", "threshold_pairs"])
def test_how_much_is_tested_changes_what_is_tested_alone(data: CaleData, size: str) -> None:
    fewer = replace(data, **{size: 9})  # type: ignore[arg-type]
    assert fingerprint(fewer) == fingerprint(data)
    before, after = tasks(data), tasks(fewer)
    assert before["spcd"].fingerprint != after["spcd"].fingerprint


def test_sources_count_by_what_they_hold(data: CaleData, sources: Path, tmp_path: Path) -> None:
    """Unpacked elsewhere: the same. One word of one file or one row of an evaluation set: another."""
    files = tagfiles()
    moved = write_folder(tmp_path / "moved", files)
    assert fingerprint(replace(data, semcor=str(moved))) == fingerprint(data)
    files["brown1/tagfiles/br-a01"] = files["brown1/tagfiles/br-a01"].replace(">The<", ">A<")
    changed = write_folder(tmp_path / "changed", files)
    assert fingerprint(replace(data, semcor=str(changed))) != fingerprint(data)
    told = []
    for label in "TF":
        for split in ("train", "dev", "test"):
            folder = tmp_path / "wic" / split
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{split}.data.txt").write_text("board\tN\t0-0\tboard\tboards\n")
            (folder / f"{split}.gold.txt").write_text(f"{label}\n")
        wic = suite.tasks(str(tmp_path))["wic"]
        told.append(wic.fingerprint)
    assert len(set(told)) == 2
    assert [pair.same for pair in wic.benchmark.load()["dev"]] == [False]


@pytest.mark.parametrize(
    ("field", "value", "accepted"),
    [
        ("length_unit", "words", "annotated, tokens"),
        ("multi_sense", "all", "first, drop"),
        ("partner_pool", "all", "one_sided, strict"),
        ("min_count", 0, "a whole number from 1"),
        ("test_pairs", 0, "a whole number from 1 or null"),
        ("min_len", 101, "at most max_len, 100"),
        ("val", 1.0, "a number above 0 below 1"),
        ("test", 0.96, "beside val, 0.05, a share that leaves some to train"),
    ],
)
def test_values_that_cannot_be_are_named(field: str, value: object, accepted: str) -> None:
    with pytest.raises(CorpusError) as error:
        CaleData(**{field: value})  # type: ignore[arg-type]
    assert str(error.value) == f"data.{field} = {value!r}\n  accepted: {accepted}"


def test_occurrences_made_in_memory() -> None:
    """Rows in any order; names are sorted, codes index them."""
    rows = [
        Tagged("f:2:0", Occurrence("money in banks", 9, 14, "bank"), "n2", split="val"),
        Tagged("f:1:0", Occurrence("shore of sand", 0, 5, "shore"), "n1", "n", "noun.object", "train"),
    ]
    made = Occurrences.of(rows)
    assert list(made) == [rows[1].occurrence, rows[0].occurrence]
    assert made.ids.to_pylist() == ["f:1:0", "f:2:0"]
    assert (made.lemmas, made.lemma.tolist()) == (("bank", "shore"), [1, 0])
    assert (made.concepts, made.concept.tolist()) == (("n1", "n2"), [0, 1])
    assert [SPLITS[code] for code in made.split] == ["train", "val"]


def test_pairs_know_label_and_lemma() -> None:
    pairs = OccurrencePairs(np.arange(4), np.arange(4), np.arange(4, dtype=np.uint8))
    assert pairs.label.tolist() == [True, True, False, False]
    assert pairs.same_lemma.tolist() == [True, False, True, False]
    assert pairs.take([2, 0]).category.tolist() == [2, 0]


def test_held_sentences_touch_no_train_pair_and_leave_pairs_that_nothing_trained(
    data: CaleData, corpus: CaleCorpus
) -> None:
    held = replace(data, held_sentences=0.4)
    other = load(held)
    test = other.pairs["test"]
    assert 0 < len(other.pairs["train"]) < len(corpus.pairs["train"])
    for one in (other, load(replace(held, train_pairs=5))):  # of the five some sentences train as partners alone
        sentence, train = one.occurrences.sentence, one.pairs["train"]
        trains = {*sentence[train.anchor].tolist(), *sentence[train.partner].tolist()}
        sides = zip(sentence[test.anchor].tolist(), sentence[test.partner].tolist(), strict=True)
        assert one.unseen.tolist() == [row for row, pair in enumerate(sides) if trains.isdisjoint(pair)] != []
    assert np.array_equal(test.anchor, corpus.pairs["test"].anchor)  # the paper's own column stays as it is
    assert other.fingerprint == fingerprint(held) != fingerprint(data)
    assert fingerprint_of_test(held) != fingerprint_of_test(data)
    with pytest.raises(CorpusError, match=r"data\.held_sentences = 1\.0"):
        replace(data, held_sentences=1.0)
