"""Rows of one's own that are kept from training: no key is parted, no text is on both sides, no row moves another."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.benchmarks.pairs import text_key
from corpora.sentence_transformers import corpus as reading
from corpora.sentence_transformers.corpus import PARTS, Columns, Part, held_out, load
from corpora.sentence_transformers.data import HeldOut, RecipeData, TrainingSet
from corpora.store.errors import CorpusError

HOLD = HeldOut(test=0.3, dev=0.2)


def data_of(
    place: Path, rows: Sequence[tuple[str, str, str]], hold: HeldOut | None = HOLD, **more: Any
) -> RecipeData:
    """Two sets of one file of question, answer and subject; the second holds nothing out."""
    file = place / "mine.tsv"
    file.write_text("question\tanswer\tsubject\n" + "".join("\t".join(row) + "\n" for row in rows))
    one = {"source": str(file), "columns": ("question", "answer")}
    return RecipeData(datasets={"mine": TrainingSet(**one, hold=hold, **more), "again": TrainingSet(**one)})


def rows_of(columns: Columns) -> list[tuple[str, ...]]:
    return list(zip(*columns.texts.values(), strict=True))


def parts_of(data: RecipeData) -> dict[Part, list[tuple[str, ...]]]:
    found = {part: rows_of(held_out(data, "mine", part)) for part in PARTS[:2]}
    return {**found, "train": rows_of(load(data, []).sets["mine"])}


def many(count: int = 200) -> list[tuple[str, str, str]]:
    return [(f"question {row}", f"answer {row}", f"subject {row // 4}") for row in range(count)]


def test_shares_are_as_asked_and_every_row_has_one_place(tmp_path: Path) -> None:
    parts = parts_of(data_of(tmp_path, many(2_000)))
    assert [round(len(parts[part]) / 2_000, 1) for part in PARTS] == [0.3, 0.2, 0.5]
    assert sorted(row for rows in parts.values() for row in rows) == sorted((a, b) for a, b, _ in many(2_000))


def test_rows_of_one_key_stay_together(tmp_path: Path) -> None:
    parts = parts_of(data_of(tmp_path, many(), HeldOut(test=0.3, dev=0.2, by="subject")))
    subject = {question: subject for question, _, subject in many()}
    seen = [{subject[question] for question, _ in rows} for rows in parts.values()]
    assert sum(map(len, seen)) == len(set().union(*seen)) == 50


def test_rows_that_are_added_move_none(tmp_path: Path) -> None:
    before, after = (parts_of(data_of(tmp_path, many(count))) for count in (200, 400))
    for part in PARTS:
        assert set(before[part]) <= set(after[part])


def test_what_shares_a_text_with_a_held_row_is_not_trained_on_in_any_set(tmp_path: Path) -> None:
    data = data_of(tmp_path, [*many(), *((f"other {row}", f"ANSWER {row}!", "") for row in range(200))])
    corpus = load(data, [])
    assert corpus.left_out["mine"] > 0
    held = {text_key(text) for part in PARTS[:2] for row in rows_of(held_out(data, "mine", part)) for text in row}
    for name, columns in corpus.sets.items():
        assert held.isdisjoint(text_key(text) for row in rows_of(columns) for text in row), name
    assert corpus.left_out["again"] == 400 - len(corpus.sets["again"])
    assert corpus.held["mine"] == {part: len(held_out(data, "mine", part)) for part in PARTS[:2]}
    assert corpus.beyond == {"mine": 0, "again": 0}


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(*[st.sampled_from("abcdefghijklmnopqrst")] * 3), min_size=60, max_size=120), st.booleans()
)
def test_no_text_is_in_two_parts(tmp_path_factory: pytest.TempPathFactory, rows: list[Any], by: bool) -> None:
    data = data_of(tmp_path_factory.mktemp("rows"), rows, HeldOut(test=0.2, dev=0.2, by="subject" if by else None))
    try:
        parts = parts_of(data)
    except CorpusError:  # nothing is left of one of them
        return
    texts = [{text for row in rows for text in row} for rows in parts.values()]
    assert sum(map(len, texts)) == len(set().union(*texts))


def test_a_text_in_another_encoding_is_the_same(tmp_path: Path) -> None:
    """Each question stands there composed and decomposed: its marks are letters of their own in the second."""
    rows = [
        (unicodedata.normalize(form, f"Où est le café {row} ?"), f"réponse {row} {form}", "")
        for row in range(100)
        for form in ("NFC", "NFD")
    ]
    parts = [{unicodedata.normalize("NFC", a) for a, _ in of} for of in parts_of(data_of(tmp_path, rows)).values()]
    assert sum(map(len, parts)) == len(set().union(*parts)) == 100


def test_words_that_differ_by_their_vowel_signs_are_held_out_apart(tmp_path: Path) -> None:
    """Of 100 words of two consonants and a sign, each has a place of its own; no row is lost for another's text."""
    words = [f"{one}{sign}{two}" for one in "कखगघच" for sign in ("ा", "ि", "ी", "ु", "ू") for two in "तथदध"]
    data = data_of(
        tmp_path, [(word, f"meaning {row}", "") for row, word in enumerate(words)], HeldOut(test=0.3, by="answer")
    )
    corpus = load(data, [])
    assert corpus.left_out["mine"] == 0
    assert len(corpus.sets["mine"]) + len(held_out(data, "mine", "test")) == len(words) == 100


def test_sets_that_hold_nothing_out_are_called_as_before(tmp_path: Path) -> None:
    whole = data_of(tmp_path, many(), None)
    assert load(whole, []).left_out == {}
    assert len(load(whole, []).sets["mine"]) == 200
    held = data_of(tmp_path, many())
    assert load(held, []).fingerprint != load(whole, []).fingerprint


def test_a_sample_is_of_what_is_trained_on(tmp_path: Path) -> None:
    data = data_of(tmp_path, many(), sample=10)
    assert len(load(data, []).sets["mine"]) == 10
    assert held_out(data, "mine", "test").texts == held_out(data_of(tmp_path, many()), "mine", "test").texts


def test_a_file_with_a_test_of_ones_own_trains_nothing(tmp_path: Path) -> None:
    """Every row is measured on, and the training file goes without the rows that share a text with one."""
    rows = {"train": many(100), "test": [*many(103)[100:], many(1)[0]]}
    for name, of in rows.items():
        (tmp_path / f"{name}.tsv").write_text(
            "question\tanswer\tsubject\n" + "".join("\t".join(r) + "\n" for r in of)
        )
    files = {name: {"source": str(tmp_path / f"{name}.tsv"), "columns": ("question", "answer")} for name in rows}
    data = RecipeData(datasets={"mine": TrainingSet(**files["train"]), "own": TrainingSet(**files["test"], hold=HeldOut(test=1.0))})  # type: ignore[arg-type]  # fmt: skip
    corpus = load(data, [])
    assert {name: len(columns) for name, columns in corpus.sets.items()} == {"mine": 99}
    assert len(held_out(data, "own", "test")) == 4
    assert corpus.left_out == {"mine": 1, "own": 0}
    alone = RecipeData(datasets={"mine": data.datasets["mine"]})
    assert load(alone, []).fingerprint != corpus.fingerprint  # a row less
    beside = dict(data.datasets) | {"more": TrainingSet(**files["test"], hold=HeldOut(test=0.5, dev=0.5))}  # type: ignore[arg-type]
    assert load(RecipeData(datasets=beside), []).fingerprint == corpus.fingerprint  # nothing else to train on


def test_two_rows_can_be_measured_on(tmp_path: Path) -> None:
    assert rows_of(held_out(data_of(tmp_path, many(2), HeldOut(test=1.0)), "mine", "test")) == [
        ("question 0", "answer 0"),
        ("question 1", "answer 1"),
    ]
    with pytest.raises(CorpusError, match=r"leaves 1 rows for it\n  accepted: a larger share, or"):
        held_out(data_of(tmp_path, many(1), HeldOut(test=1.0)), "mine", "test")


def test_texts_are_named_no_more_often_than_they_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names are most of what a plan of a million rows waits for: a row's is made for its key, and for each text where
    it is held, and where it is looked for among those that are."""
    named: list[str] = []
    monkeypatch.setattr(reading, "text_key", lambda text: named.append(text) or text_key(text))
    corpus = load(RecipeData(datasets={"mine": data_of(tmp_path, many()).datasets["mine"]}), [])
    held, train = corpus.held["mine"], len(corpus.sets["mine"])
    assert len(named) == 200 + 2 * (held["test"] + 2 * held["dev"] + train)


@pytest.mark.parametrize("keys", [["x", None], ["x", " "], [1.0, float("nan")]])
def test_a_row_without_its_key_is_refused(keys: list[Any], tmp_path: Path) -> None:
    """All such rows would be one key, and stand in one part together."""
    table = {"question": ["a", "b"], "answer": ["c", "d"], "subject": keys}
    pq.write_table(pa.table(table), tmp_path / "rows.parquet")
    one = TrainingSet(
        source=str(tmp_path / "rows.parquet"), columns=("question", "answer"), hold=HeldOut(by="subject")
    )
    with pytest.raises(CorpusError, match=r"row 2: subject = .*\n  accepted: a value in every row"):
        load(RecipeData(datasets={"mine": one}), [])


def test_labels_that_are_all_the_same_are_no_test(tmp_path: Path) -> None:
    """No cosine correlates with them, which was seen when all runs were done."""
    rows = [(f"question {row}", f"answer {row}", str(int(row > 0))) for row in range(3)]
    given = data_of(tmp_path, rows, HeldOut(test=1.0), label="subject")
    assert held_out(given, "mine", "test").labels == [0.0, 1.0, 1.0]
    given = data_of(tmp_path, rows[1:], HeldOut(test=1.0), label="subject")
    with pytest.raises(CorpusError, match=r"hold\.test: all 2 rows that .* leaves for it have the same subject"):
        held_out(given, "mine", "test")


def test_what_cannot_be_held_out_is_said(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"hold.test: .*mine.tsv leaves 0 rows for it"):
        held_out(data_of(tmp_path, many(3), HeldOut(test=0.01)), "mine", "test")
    with pytest.raises(CorpusError, match="leaves no row to train on"):
        load(data_of(tmp_path, [(f"question {row}", "yes", "") for row in range(40)]), [])
    with pytest.raises(CorpusError, match=r"lacks the column 'topic'\n  accepted: question, answer, subject"):
        load(data_of(tmp_path, many(), HeldOut(by="topic")), [])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"columns": ("a",), "label": "class", "hold": {"test": 0.3}},
            "with 2 columns of texts, or with 3 and no label",
        ),
        ({"columns": ("a", "b", "c"), "label": "d", "hold": {"test": 0.3}}, "with 2 columns of texts"),
        ({"columns": ("a", "b"), "hold": {"test": 0.6, "dev": 0.5}}, "a test and a dev of at most 1 together"),
        ({"columns": ("a", "b"), "hold": {"test": 1.1}}, "datasets.mine.hold.test = 1.1"),
    ],
)
def test_what_is_no_split_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=r"hold") as error:
        RecipeData(datasets={"mine": {"source": "mine.tsv", **given}})  # type: ignore[dict-item]  # as a ledger has it
    assert said in str(error.value)


def test_a_benchmark_has_the_keys_of_its_own_columns() -> None:
    with pytest.raises(ValueError, match=r"for one.hold.by sentence1, sentence2"):
        RecipeData(datasets={"one": TrainingSet(source="STS-B/train", hold=HeldOut(by="genre"))})
    second = {"source": "STS-B/train", "columns": ["sentence1", "sentence2"], "hold": {"by": "sentence2"}}
    made = RecipeData(datasets={"one": second}).datasets["one"]  # type: ignore[dict-item]  # as a ledger has it
    assert (made.key, made.columns) == ("sentence2", ("sentence1", "sentence2"))
