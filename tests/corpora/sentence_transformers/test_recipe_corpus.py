"""Rows of training sets: from files, benchmarks and folders in the hub's form, and what is said of broken ones."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora.sentence_transformers.corpus import load
from corpora.sentence_transformers.data import RecipeData, TrainingSet
from corpora.store.errors import CorpusError

ROWS = [{"a": 'the "old" cat', "b": "a dog", "gold": 5}, {"a": "fire", "b": "water", "gold": 2}]


def rows_of(source: Path | str, path: Path | None = None, **more: Any) -> Any:
    given = {"columns": ("a", "b"), "label": "gold", "largest": 5.0} | more
    one = TrainingSet(source=str(source), **given)
    return load(RecipeData(datasets={"one": one}, path=None if path is None else str(path)), []).sets["one"]


def written(place: Path, suffix: str) -> Path:
    file = place / f"rows{suffix}"
    if suffix == ".jsonl":
        file.write_text("\n".join(map(json.dumps, ROWS)) + "\n")
    elif suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), file)
    elif suffix == ".csv":
        file.write_text('a,b,gold\n"the ""old"" cat",a dog,5\nfire,water,2\n')
    else:
        file.write_text('a\tb\tgold\nthe "old" cat\ta dog\t5\nfire\twater\t2\n')
    return file


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_files_of_every_kind_say_the_same(suffix: str, tmp_path: Path) -> None:
    found = rows_of(written(tmp_path, suffix))
    assert found.texts == {"a": ['the "old" cat', "fire"], "b": ["a dog", "water"]}
    assert found.labels == [1.0, 0.4]
    unscaled = TrainingSet(source=str(tmp_path / f"rows{suffix}"), columns=("a", "b"), label="gold")
    assert load(RecipeData(datasets={"one": unscaled}), []).sets["one"].labels == [5.0, 2.0]


def test_a_folder_in_the_hubs_form(tmp_path: Path) -> None:
    (tmp_path / "sets" / "mine").mkdir(parents=True)
    (tmp_path / "sets" / "mine" / "train.jsonl").write_text("\n".join(map(json.dumps, ROWS)) + "\n")
    found = rows_of("somebody/mine", path=tmp_path / "sets")
    assert found.texts["a"] == ['the "old" cat', "fire"]


def test_a_folder_here_is_refused_for_the_files_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither all of $SEMRAY_DATA is read for it, nor is the hub asked; a data set of its name still comes first."""
    (tmp_path / "sub").mkdir()
    written(tmp_path / "sub", ".jsonl").rename(tmp_path / "sub" / "train.jsonl")
    monkeypatch.setenv("SEMRAY_DATA", str(tmp_path))
    assert len(rows_of("sub")) == len(rows_of("sub/")) == 2
    (tmp_path / "here" / "sub").mkdir(parents=True)
    (tmp_path / "here" / "sub" / "train.jsonl").write_text(json.dumps(ROWS[0]) + "\n")
    monkeypatch.chdir(tmp_path / "here")
    assert len(rows_of("sub", sample=9)) == 2
    written(tmp_path / "sub", ".csv").rename(tmp_path / "sub" / "also.csv")
    monkeypatch.chdir(tmp_path / "sub")
    for source, file in ((".", r"also\.csv, train\.jsonl;"), ("..", r"\.csv, "), ("../sub/..", r"\.csv, ")):
        with pytest.raises(CorpusError, match=rf"source = {source}: is a folder\n  accepted: a file .*{file}"):
            rows_of(source)
    monkeypatch.setenv("SEMRAY_DATA", str(tmp_path / "elsewhere"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").rename("own")
    with pytest.raises(
        CorpusError,
        match=r"source = own: is a folder\n  accepted: a file in it: own/also\.csv, own/train\.jsonl; or",
    ):
        rows_of("own/")


def test_a_folder_here_that_a_data_set_was_saved_to_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datasets import Dataset, DatasetDict

    DatasetDict({"train": Dataset.from_list(ROWS)}).save_to_disk(str(tmp_path / "saved"))
    monkeypatch.delenv("SEMRAY_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    assert rows_of("saved").texts["a"] == rows_of(tmp_path / "saved").texts["a"] == ['the "old" cat', "fire"]


@pytest.mark.parametrize("source", ["mine", "somebody/mine"])
def test_a_folder_that_changes_is_read_again(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a notebook that makes its rows anew: saved to a folder here, or where data sets are looked for."""
    from datasets import Dataset, DatasetDict

    monkeypatch.chdir(tmp_path)
    place = tmp_path / ("" if source == "mine" else "sets") / source
    for word in ("fire", "lamp"):
        if source == "mine":
            DatasetDict({"train": Dataset.from_list([{"a": word, "b": "water"}])}).save_to_disk(str(place))
        else:
            place.mkdir(parents=True, exist_ok=True)
            (place / "train.jsonl").write_text(json.dumps({"a": word, "b": "water"}) + "\n")
        assert rows_of(source, path=tmp_path / "sets", label=None).texts["a"] == [word]


@pytest.mark.parametrize("source", ["shut", "shut/rows.jsonl"])
def test_a_folder_that_may_not_be_entered_is_named(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its names may be listed. (Root may enter any folder: the answer is made up.)"""
    shut, look = tmp_path / "shut", os.stat
    shut.mkdir()
    written(shut, ".jsonl")

    def refused(path: Any, **more: Any) -> os.stat_result:
        if shut in Path(os.fspath(path)).parents:
            raise PermissionError(errno.EACCES, "Permission denied", os.fspath(path))
        return look(path, **more)

    monkeypatch.setattr(os, "stat", refused)
    told = rf"data\.datasets\.one\.source = {tmp_path}/{source}: {shut} may not be entered \(Permission denied\)\n"
    with pytest.raises(CorpusError, match=told):
        rows_of(tmp_path / source)


def test_a_data_set_that_is_nowhere_is_said_with_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    said = r"one: nobody/none not found; looked at\n    data\.path: .*/nobody/none\n(.|\n)*\n    the hub: nobody/none: "
    with pytest.raises(CorpusError, match=said) as error:
        rows_of("nobody/none", path=tmp_path, config="en")
    assert 'to get it: python -c \'from datasets import load_dataset; load_dataset("nobody/none", "en")' in str(
        error.value
    )


def test_an_absolute_folder_is_read_wherever_named_sets_are_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets" / "train.jsonl").write_text("\n".join(map(json.dumps, ROWS)) + "\n")
    monkeypatch.delenv("SEMRAY_DATA", raising=False)
    unset = rows_of(tmp_path / "sets").texts
    monkeypatch.setenv("SEMRAY_DATA", str(tmp_path / "elsewhere"))
    assert rows_of(tmp_path / "sets").texts == unset


def test_a_column_may_have_a_comma_in_its_name(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text('"text, cleaned"\na cat\n')
    assert rows_of(tmp_path / "one.csv", columns=("text, cleaned",), label=None).texts == {
        "text, cleaned": ["a cat"]
    }


def test_benchmarks_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever folder of such a name is here."""
    (tmp_path / "here" / "nli").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "STSBenchmark").mkdir()
    line = "main\tnews\t2012\t1\t2.5\ta cat\tthe dog\n"
    (tmp_path / "STSBenchmark" / "sts-train.csv").write_text(line)
    found = rows_of("STS-B/train", path=tmp_path, columns=(), label=None, largest=1.0)
    assert (found.texts, found.labels) == ({"sentence1": ["a cat"], "sentence2": ["the dog"]}, [0.5])
    bare = rows_of("STS-B/train", path=tmp_path, columns=("sentence2",), label=None)
    assert (bare.texts, bare.labels) == ({"sentence2": ["the dog"]}, None)
    (tmp_path / "nli_for_simcse.csv").write_text("sent0,sent1,hard_neg\na cat,an animal,a dog\n")
    triplets = rows_of("nli", path=tmp_path, columns=(), label=None)
    assert triplets.texts == {"anchor": ["a cat"], "positive": ["an animal"], "negative": ["a dog"]}


def test_a_sample_is_chosen_by_texts_and_not_by_order(tmp_path: Path) -> None:
    lines = [f"{word} one\t{word} two\t1" for word in "abcdefghij"]
    (tmp_path / "up.tsv").write_text("\n".join(["a\tb\tgold", *lines]))
    (tmp_path / "down.tsv").write_text("\n".join(["a\tb\tgold", *reversed(lines)]))
    up, down = (rows_of(tmp_path / name, sample=4) for name in ("up.tsv", "down.tsv"))
    assert len(up) == 4
    assert up == down
    assert up.texts["a"] not in ([f"{word} one" for word in of] for of in ("abcd", "ghij"))
    for all_of_them in (10, 11, None):  # nothing is chosen: the rows stay in their order
        found = rows_of(tmp_path / "down.tsv", sample=all_of_them)
        assert found.texts["a"] == [f"{word} one" for word in "jihgfedcba"]


def test_the_fingerprint_names_rows_labels_and_guides(tmp_path: Path) -> None:
    def named(data: RecipeData, *weights: str) -> str:
        return load(data, weights).fingerprint

    file = written(tmp_path, ".tsv")
    one = RecipeData(datasets={"one": TrainingSet(source=str(file), columns=("a", "b"), label="gold")})
    bare = RecipeData(datasets={"one": TrainingSet(source=str(file), columns=("a", "b"))})
    guided = RecipeData(datasets=one.datasets, guides={"g": "x"})
    names = [named(one), named(bare), named(guided, "w1"), named(guided, "w2")]
    assert len(set(names)) == 4
    file.write_text(file.read_text() + "one\tmore\t1\n")
    assert named(one) != names[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\tb\nx\ty\n", r"lacks the column 'gold'\n  accepted: a, b"),
        ("a\tb\tgold\nx\t\t1\n", r"row 1: b = ''\n  accepted: a text"),
        ("a\tb\tgold\nx\ty\tmuch\n", r"row 1: gold = 'much'\n  accepted: a number"),
        ("a\tb\tgold\nx\ty\t1_0\n", r"row 1: gold = '1_0'\n  accepted: a number"),
        ("a\tb\tgold\n", "holds no row"),
    ],
)
def test_a_broken_file_is_said(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "rows.tsv").write_text(text)
    with pytest.raises(CorpusError, match=said):
        rows_of(tmp_path / "rows.tsv")


INSIDE = [
    chr(code) for code in (0x0B, 0x0C, 0x1C, 0x1D, 0x1E, 0x85, 0x2028, 0x2029)
]  # `str.splitlines` cuts at each


@pytest.mark.parametrize("inside", INSIDE, ids=ascii)
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_a_row_ends_where_its_line_does(suffix: str, inside: str, tmp_path: Path) -> None:
    text, file = f"one{inside}two", tmp_path / f"rows{suffix}"
    comma = "," if suffix == ".csv" else "\t"
    table = comma.join(("a", "b", "c")) + "\n" + comma.join((text, "water", "left")) + "\n"
    row = json.dumps({"a": text, "b": "water"}, ensure_ascii=False) + "\n"
    file.write_text(row if suffix == ".jsonl" else table)
    assert rows_of(file, label=None).texts == {"a": [text], "b": ["water"]}


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_what_a_spreadsheet_writes_first_is_no_part_of_a_name(suffix: str, tmp_path: Path) -> None:
    file = written(tmp_path, suffix)
    plain = rows_of(file)
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert rows_of(file) == plain


def test_a_quote_of_a_table_parted_by_tabs_is_a_sign_as_others(tmp_path: Path) -> None:
    (tmp_path / "rows.tsv").write_text('a\tb\n"old\t"a" b\n"new"\tcat\n')
    assert rows_of(tmp_path / "rows.tsv", label=None).texts == {"a": ['"old', '"new"'], "b": ['"a" b', "cat"]}


def test_a_quote_that_does_not_end_takes_no_rows_in(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text('a,b\nfire,"water\nsun,moon\n')
    with pytest.raises(CorpusError, match=r"rows\.csv: unexpected end of data\n  accepted: a whole \.csv file"):
        rows_of(tmp_path / "rows.csv", label=None)


@pytest.mark.parametrize(("suffix", "sign"), [(".csv", ","), (".tsv", "\t")])
def test_a_text_may_be_a_whole_document(suffix: str, sign: str, tmp_path: Path) -> None:
    """By itself Python's reader takes no field above 131,072 characters."""
    document = "word " * 40_000
    (tmp_path / f"rows{suffix}").write_text(f"a{sign}b\nwhat is it{sign}{document}\n")
    assert rows_of(tmp_path / f"rows{suffix}", label=None).texts["b"] == [document]


def test_a_quoted_field_may_hold_lines(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text('a,b\r\n"one\ntwo",water\r\n', newline="")
    assert rows_of(tmp_path / "rows.csv", label=None).texts == {"a": ["one\ntwo"], "b": ["water"]}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("rows.csv", "a,b,a\nx,y,z\n", "rows.csv, line 1 names two columns 'a'"),
        ("rows.tsv", "a\tb\ta\nx\ty\tz\n", "rows.tsv, line 1 names two columns 'a'"),
        (
            "rows.jsonl",
            '{"a": "x", "b": "y"}\n{"a": "x", "b": "y", "a": "z"}\n',
            "rows.jsonl, line 2 names 'a' twice",
        ),
    ],
)
def test_of_two_columns_by_one_name_none_is_taken(name: str, text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(CorpusError, match=f"{said}\n  accepted: each name once"):
        rows_of(tmp_path / name, label=None)


def test_of_two_columns_of_parquet_by_one_name_none_is_taken(tmp_path: Path) -> None:
    pq.write_table(pa.table([["x"], ["y"], ["z"]], ["a", "b", "a"]), tmp_path / "rows.parquet")
    with pytest.raises(CorpusError, match=r"rows\.parquet names two columns 'a'\n  accepted: each name once"):
        rows_of(tmp_path / "rows.parquet", label=None)


def test_columns_without_a_name_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,b,,\nfire,water,,\n")
    assert rows_of(tmp_path / "rows.csv", label=None).texts == {"a": ["fire"], "b": ["water"]}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("more.csv", "a,b\nx,y\nWell, what is it?,A lamp\n"),
        ("fewer.csv", "a,b\nx,y\nWell\n"),
        ("more.tsv", "a\tb\nx\ty\nWell\twhat is it?\tA lamp\n"),
        ("fewer.tsv", "a\tb\nx\ty\nWell\n"),
    ],
)
def test_a_row_of_another_width_is_refused(name: str, text: str, tmp_path: Path) -> None:
    """Its texts stand under other names than those that they are read by."""
    (tmp_path / name).write_text(text)
    said = rf"data\.datasets\.one: .*{name}, line 3 has another number of columns\n  accepted: as many as its head"
    with pytest.raises(CorpusError, match=said):
        rows_of(tmp_path / name, label=None)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("rows.csv", "a;b\nWell, well;what is it?\n", "semicolons\n  accepted: parted by commas"),
        ("rows.csv", "a\tb\nx\ty\n", "tabs\n  accepted: parted by commas"),
        ("rows.tsv", "a,b\nx,y\n", "commas\n  accepted: parted by tabs"),
    ],
)
def test_columns_that_another_sign_parts_are_told_by_it(name: str, text: str, said: str, tmp_path: Path) -> None:
    """Not by the cells that a reader makes of them."""
    (tmp_path / name).write_text(text)
    with pytest.raises(CorpusError, match=rf"data\.datasets\.one: .*{name}, line 1 has columns parted by {said}"):
        rows_of(tmp_path / name, label=None)


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("null", r"rows.jsonl, line 2 is null\n  accepted: an object in every line"),
        ("5", r"rows.jsonl, line 2 is 5\n"),
        ('"a b gold"', r'rows.jsonl, line 2 is "a b gold"\n'),
        (json.dumps(ROWS), r"rows.jsonl, line 2 is \[\{.*…\n  accepted: an object in every line"),
        ('{"a": "x", "b": "y", "gold": ' + DEEP + "}", r"rows.jsonl, line 2 is no JSON \(.*recursion"),
        ('{"a": "x", ', r"rows.jsonl, line 2 is no JSON \("),
        ('{"a": "x", "b": "y", "gold": 1' + "0" * 400 + "}", r"row 2: gold = 10+\n  accepted: a number"),
        ('{"a": "x", "b": "y", "gold": 1e999}', r"row 2: gold = inf\n  accepted: a number"),
        ('{"a": "x", "b": "y", "gold": -1e999}', r"row 2: gold = -inf\n  accepted: a number"),
        ('{"a": "x", "b": "y", "gold": null}', r"row 2: gold = None\n  accepted: a number"),
        (r'{"a": "half \ud83d", "b": "y", "gold": 1}', r"row 2: a = 'half \\ud83d'\n  accepted: a text"),
    ],
    ids=[
        "null",
        "number",
        "text",
        "array",
        "deep",
        "broken",
        "large",
        "infinite",
        "below",
        "no label",
        "surrogate",
    ],
)
def test_a_line_that_is_no_row_is_said(line: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROWS[0]) + "\n" + line + "\n")
    with pytest.raises(CorpusError, match=said):
        rows_of(tmp_path / "rows.jsonl")
    with pytest.raises(CorpusError, match=said):
        rows_of(tmp_path / "rows.jsonl", sample=1)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_a_file_of_another_encoding_is_said(encoding: str, suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"rows{suffix}"
    file.write_text("café,b\n", encoding=encoding)
    told = r"is not UTF-8; save it again with that encoding\n  accepted: a whole \.\w+ file, text in UTF-8"
    with pytest.raises(CorpusError, match=rf"data\.datasets\.one: .*rows\{suffix}: byte 0x\w\w {told}"):
        load(RecipeData(datasets={"one": TrainingSet(source=str(file), columns=("café",))}), [])


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"data\.datasets\.one\.source = .*none\.csv: no such file, seen from /"):
        rows_of(tmp_path / "none.csv", path="~nobody/data")
    with pytest.raises(CorpusError, match=r"one\.source = ~nobody/none\.csv: no such file, seen from /"):
        rows_of("~nobody/none.csv")
    (tmp_path / "rows.txt").touch()
    with pytest.raises(
        CorpusError, match=r"source = .*rows\.txt\n  accepted: a file as \.csv, \.tsv, \.jsonl, \."
    ):
        rows_of(tmp_path / "rows.txt")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"source": "rows.tsv"}, "its columns of texts"),
        ({"source": "rows.tsv", "columns": ("a", "a")}, "each column once"),
        ({"source": "rows.tsv", "columns": ("a",), "label": "a"}, "the label none of the texts"),
        ({"source": "STS-B"}, "for one its columns of texts"),
        ({"source": "STS-B/train", "columns": ("anchor",)}, "the columns sentence1, sentence2, score; not anchor"),
        ({"source": "STS-B/train", "label": "score"}, "columns beside its label"),
        ({"source": "rows.tsv", "columns": ("text", "label")}, "by other names than dataset_name, .*; not label"),
        ({"source": "rows.tsv", "columns": ("scores", "text"), "label": "gold"}, "; not scores"),
        ({"source": "rows.tsv", "columns": ("text", "return_loss")}, "; not return_loss"),
        ({"source": "rows.tsv", "columns": ("a",), "largest": -1.0}, "largest = -1.0"),
        ({"source": "rows.tsv", "columns": ("a",), "sample": 0}, "sample = 0"),
    ],
)
def test_a_set_that_cannot_be_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        RecipeData(datasets={"one": TrainingSet(**given)})


def test_names_that_the_library_takes_for_its_own_may_be_measured_on() -> None:
    held = {"columns": ("text", "label"), "hold": {"test": 1.0}}
    assert RecipeData(datasets={"one": {"source": "rows.tsv", **held}}).datasets["one"].texts == ("text", "label")
    RecipeData(datasets={"one": {"source": "rows.tsv", "columns": ("text",), "label": "label"}})
