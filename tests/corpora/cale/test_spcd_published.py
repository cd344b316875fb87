"""The published SPCD, from a folder in the hub's form: columns by any accepted name, synsets in any notation."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from corpora.cale.build import from_published
from corpora.cale.records import CATEGORIES, SPLITS
from corpora.cale.spcd_published import fingerprint, names_of, read
from corpora.sources.wordnet import Wordnet
from corpora.store.errors import CorpusError

SAID, SAYS = "He <t>said</t> so .", "She <t> says </t> no ."
STATED, RAN = "They <t>stated</t> it .", "I <t>ran</t> home ."


def pair(s1: str, l1: str, c1: str, s2: str, l2: str, c2: str, label: int) -> dict[str, Any]:
    names = ("sentence1", "lemma1", "synset1", "sentence2", "lemma2", "synset2", "label")
    return dict(zip(names, (s1, l1, c1, s2, l2, c2, label), strict=True))


SAY = "say.v.01"
TRAIN = [
    pair(SAID, "say", SAY, STATED, "state", "v01009258", 1),
    pair(SAID, "say", SAY, SAYS, "say", "01009258-v", 1),
]
VAL = [pair(SAYS, "say", SAY, STATED, "state", SAY, 1)]
TEST = [pair(RAN, "run", "run.v.01", SAID, "say", SAY, 0), pair(SAYS, "say", "say.v.02", SAID, "say", SAY, 0)]


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path_factory.mktemp("datasets"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)


def write(folder: Path, form: str, *, val: str = "validation", **splits: list[dict[str, Any]]) -> str:
    from datasets import Dataset, DatasetDict

    rows = {"train": TRAIN, val: VAL, "test": TEST} | splits
    whole = DatasetDict({name: Dataset.from_list(listed) for name, listed in rows.items()})
    if form == "saved":
        whole.save_to_disk(str(folder))
    else:
        folder.mkdir()
        for name, split in whole.items():
            split.to_parquet(str(folder / f"{name}.parquet"))
    return str(folder)


@pytest.mark.parametrize(("form", "val"), [("saved", "validation"), ("parquet", "validation"), ("saved", "dev")])
def test_a_folder_in_the_hubs_form(tmp_path: Path, real: Wordnet, form: str, val: str) -> None:
    spcd = from_published(read(write(tmp_path / "spcd", form, val=val)), real)
    occurrences = list(spcd.occurrences)
    assert {(one.text, one.target, one.lemma) for one in occurrences} == {
        ("He said so .", "said", "say"), ("She says no .", "says", "say"),
        ("They stated it .", "stated", "state"), ("I ran home .", "ran", "run"),
    }  # fmt: skip
    assert len(occurrences) == 5  # the same words with another synset are another occurrence
    told = {
        split: [
            (occurrences[anchor].target, occurrences[partner].target, CATEGORIES[category])
            for anchor, partner, category in zip(pairs.anchor, pairs.partner, pairs.category, strict=True)
        ]
        for split, pairs in spcd.pairs.items()
    }
    assert told["train"] == [("said", "says", "SC/SL"), ("said", "stated", "SC/DL")]
    assert told["val"] == [("says", "stated", "SC/DL")]
    assert sorted(told["test"]) == [("ran", "said", "DC/DL"), ("says", "said", "DC/SL")]
    assert "v01009258" in spcd.occurrences.concepts
    assert len(spcd.wu_palmer) == 2


def test_blanks_around_a_lemma_make_no_other(tmp_path: Path, real: Wordnet) -> None:
    blank = [pair(SAID, " say", SAY, SAYS, "say ", SAY, 1)]
    told = [
        read(write(tmp_path / name, "saved", train=rows))
        for name, rows in (("plain", TRAIN[1:]), ("blank", blank))
    ]
    plain, stripped = (from_published(rows, real) for rows in told)
    assert stripped.digests == plain.digests
    assert [CATEGORIES[category] for category in stripped.pairs["train"].category] == ["SC/SL"]
    assert fingerprint(told[1]) != fingerprint(read(write(tmp_path / "again", "saved", train=TRAIN)))


def test_names_of_any_number_of_occurrences_sort_as_their_places() -> None:
    """By which the sides of a pair are told."""
    names = names_of(1_000_001)
    assert names == sorted(names)
    assert names_of(1_000_000)[::999_999] == ["spcd:000000", "spcd:999999"]


def test_an_anchor_belongs_to_its_own_split(tmp_path: Path, real: Wordnet) -> None:
    """`ran` is asked for by test alone; `stated` is a partner in train first."""
    spcd = from_published(read(write(tmp_path / "spcd", "saved")), real)
    splits = {one.target: SPLITS[code] for one, code in zip(spcd.occurrences, spcd.occurrences.split, strict=True)}
    assert splits["ran"] == "test"
    assert splits["stated"] == "train"


def test_a_repeated_pair_is_kept_once(tmp_path: Path, real: Wordnet, caplog: pytest.LogCaptureFixture) -> None:
    """Two equal rows would be two items of one name. The pair turned round is another pair."""
    turned = pair(SAID, "say", SAY, RAN, "run", "run.v.01", 0)
    rows = read(write(tmp_path / "spcd", "saved", test=[*TEST, TEST[0], turned, TEST[0]]))
    with caplog.at_level(logging.INFO):
        pairs = from_published(rows, real).pairs["test"]
    sides = list(zip(pairs.anchor.tolist(), pairs.partner.tolist(), strict=True))
    assert len(sides) == len(set(sides)) == 3
    assert "split test: 2 repeated pairs left out" in caplog.text
    assert "train" not in caplog.text


def test_the_form_makes_no_difference_and_a_row_does(tmp_path: Path) -> None:
    saved, parquet = (fingerprint(read(write(tmp_path / form, form))) for form in ("saved", "parquet"))
    other = fingerprint(read(write(tmp_path / "other", "saved", test=TEST[:1])))
    assert saved == parquet != other


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"sentence1": "no mark"}, r"split test, row 0: 'no mark'\n  accepted: a sentence with one target"),
        ({"sentence1": "<t>a</t> <t>b</t>"}, "accepted: a sentence with one target"),
        ({"synset1": "ran.v.99"}, r"synset 'ran\.v\.99' is not in WordNet 3\.0\n  accepted: say\.v\.01"),
        (
            {"synset1": "quickly.r.01"},
            r"row 0: synset 'quickly\.r\.01' is one of adverbs\n  accepted: those of nouns",
        ),
        ({"synset1": "nonsense"}, "synset 'nonsense' is not in WordNet"),
        ({"label": 1}, r"label 1 with the synsets 'run\.v\.01' and 'say\.v\.01'\n  accepted: 1 for equal"),
    ],
)
def test_rows_that_cannot_be_are_named(tmp_path: Path, real: Wordnet, changed: dict[str, Any], told: str) -> None:
    source = write(tmp_path / "spcd", "saved", test=[TEST[0] | changed])
    with pytest.raises(CorpusError, match=told):
        from_published(read(source), real)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        *(
            ({name: None}, rf"split train, row 1: {name} = None\n  accepted: a text")
            for name in list(TRAIN[0])[:6]
        ),
        ({"lemma1": " "}, r"row 1: lemma1 = ' '\n  accepted: a text"),
        ({"label": None}, r"split train, row 1: label = None\n  accepted: 0, 1"),
        ({"label": 2}, r"row 1: label = 2\n  accepted: 0, 1"),
    ],
)
def test_a_cell_that_is_missing_is_named_before_anything_is_built(
    tmp_path: Path, changed: dict[str, Any], told: str
) -> None:
    source = write(tmp_path / "spcd", "saved", train=[TRAIN[0], TRAIN[1] | changed])
    with pytest.raises(CorpusError, match=told):
        read(source)


@pytest.mark.parametrize("split", ["validation", "test"])
@pytest.mark.parametrize("again", [TRAIN[0], pair(STATED, "state", SAY, SAID, "say", "01009258-v", 1)])
def test_a_pair_that_trains_measures_nothing(
    tmp_path: Path, real: Wordnet, split: str, again: dict[str, Any]
) -> None:
    """In either order and any notation. That one of its sides trains is no harm."""
    rows = read(write(tmp_path / "spcd", "saved", **{split: [*VAL, again]}))
    with pytest.raises(CorpusError, match=r"row 1: the pair stands in train, too\n  accepted: other pairs"):
        from_published(rows, real)


def test_what_is_missing_is_named_with_what_is_there(tmp_path: Path) -> None:
    renamed = [{"left" if name == "lemma1" else name: value for name, value in one.items()} for one in TEST]
    with pytest.raises(CorpusError) as error:
        read(write(tmp_path / "columns", "saved", test=renamed))
    assert "split test: no column for lemma1; it has sentence1, left, synset1" in str(error.value)
    assert "accepted: lemma1, lemma_1, word1" in str(error.value)
    with pytest.raises(
        CorpusError, match=r"no split for val; it has train, held, test\n  accepted: validation, val"
    ):
        read(write(tmp_path / "splits", "saved", val="held"))
    with pytest.raises(CorpusError, match=r"data\.spcd = 'nobody/nothing': .*\n  accepted: a data set on the hub"):
        read("nobody/nothing")
