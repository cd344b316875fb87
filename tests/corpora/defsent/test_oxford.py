"""The Oxford data in Ishiwatari's format: columns, repeats, and the authors' cleaning, slip included."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpora.defsent.corpus import load
from corpora.defsent.data import DefsentData
from corpora.defsent.oxford import cleaned
from corpora.store.errors import CorpusError


def line(word: str, number: int, definition: str) -> str:
    return f"{word}%oxford.{number}\tpos\toxford\t{definition}\t[]\t[]\n"


def oxford(folder: Path, words: int = 40) -> Path:
    """Forty words; every definition stands twice, as if it had two examples."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [line(f"word{n}", 1, f"the meaning number {n} , plainly .") * 2 for n in range(words)]
    rows[0] = line("100%cotton", 1, "made of cotton alone .")
    (folder / "train.txt").write_text("".join(rows[:30]))
    (folder / "valid.txt").write_text("".join(rows[30:35]))
    (folder / "test.txt").write_text("".join(rows[35:]))
    return folder


@pytest.mark.parametrize(
    ("given", "authors", "fixed"),
    [
        ("a cup , a jug ; and so on .", "a cup, a jug; and so on.", "a cup, a jug; and so on."),
        ("( of a cup ) one 's own", "(of a cup) one's own", "(of a cup) one's own"),
        ("the word `` HELLO there ''", "the word Hello there", "the word Hello there"),
        ("a ‘ round ’ cup", "a ’round’ cup", "a ‘round’ cup"),
        ("  plain  ", "plain", "plain"),
    ],
)
def test_cleaning(given: str, authors: str, fixed: str):
    assert cleaned(given, fixed=False) == authors
    assert cleaned(given, fixed=True) == fixed


def test_copies_stay_and_are_trained_on_unless_a_study_says_otherwise(tmp_path: Path, own_cache: Path):
    folder = str(oxford(tmp_path / "oxford"))
    kept = load(DefsentData(sources=("oxford",), oxford=folder))
    once = load(DefsentData(sources=("oxford",), oxford=folder, dedupe_definitions=True))
    assert sum(map(len, kept.rows.values())) == 79
    assert sum(map(len, once.rows.values())) == 40
    assert {name: len(set(rows.keys)) for name, rows in kept.rows.items()} == {"train": 32, "dev": 4, "test": 4}
    words = {word for rows in kept.rows.values() for word in rows.words}
    assert "100%cotton" in words  # the word ends at the LAST percent sign
    assert (kept.text_overlap, DefsentData().overlap) == ("keep", "drop_from_train")


@pytest.mark.parametrize(("split_key", "keys"), [("normalised", {"cup"}), ("surface", {"Cup", "cup", "cúp"})])
def test_what_is_one_word_to_the_split(split_key: str, keys: set[str], tmp_path: Path, own_cache: Path):
    folder = oxford(tmp_path / "oxford")
    with (folder / "train.txt").open("a") as file:
        file.writelines(line(word, 1, "a vessel") for word in ("Cup", "cup", "cúp"))
    rows = load(DefsentData(sources=("oxford",), oxford=str(folder), split_key=split_key)).rows
    key_of = {word: key for part in rows.values() for word, key in zip(part.words, part.keys, strict=True)}
    assert {key_of[word] for word in ("Cup", "cup", "cúp")} == keys
    assert key_of["word7"] == "word7"


def test_a_line_of_another_form_is_named(tmp_path: Path, own_cache: Path):
    folder = oxford(tmp_path / "oxford")
    with (folder / "valid.txt").open("a") as file:
        file.write("cup\ta vessel\n")
    with pytest.raises(CorpusError, match=r"valid\.txt, line 11: 2 columns"):
        load(DefsentData(sources=("oxford",), oxford=str(folder)))


def test_a_missing_file_is_named(tmp_path: Path):
    folder = oxford(tmp_path / "oxford")
    (folder / "test.txt").unlink()
    with pytest.raises(CorpusError, match=r"data\.oxford = .* lacks test\.txt"):
        load(DefsentData(sources=("oxford",), oxford=str(folder)))
    with pytest.raises(CorpusError, match=r"data\.oxford = null"):
        load(DefsentData(sources=("oxford",)))
