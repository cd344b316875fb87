"""The file of scores that a script leaves: what it may hold, and what is said of one that is wrong."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

import pytest

from corpora.command.scores import read_scores, rows_of
from corpora.store.errors import CorpusError

CSV = """metric,item,score,group,gold,task
accuracy,a,1,g,,
accuracy,b,0,g,,
spearman,a,0.5,,3,sts
spearman,b,0.7,,4.5,sts
loss,,0.25,,,
"""


def written(place: Path, text: str, name: str = "scores.csv") -> Path:
    (place / name).write_text(text)
    return place / name


def test_a_table_of_items_and_figures(tmp_path: Path) -> None:
    found = read_scores(written(tmp_path, CSV))
    assert list(found) == ["accuracy", "sts/spearman", "loss"]
    assert (found["accuracy"].scores, found["accuracy"].items) == ([1.0, 0.0], ["a", "b"])
    assert found["accuracy"].groups == ["g", "g"]
    assert found["sts/spearman"].groups == ["a", "b"]  # each for itself
    assert found["sts/spearman"].gold == [3.0, 4.5]
    assert (found["loss"].scores, found["loss"].items) == ([0.25], [])


def test_which_way_is_better_is_written_in_words_or_digits(tmp_path: Path) -> None:
    rows = "".join(f"m{n},1,{said}\n" for n, said in enumerate(("true", "1", "FALSE", "0", "", "True")))
    found = read_scores(written(tmp_path, "metric,score,larger_is_better\n" + rows))
    assert [column.larger_is_better for column in found.values()] == [
        {True},
        {True},
        {False},
        {False},
        set(),
        {True},
    ]


def test_all_forms_say_the_same(tmp_path: Path) -> None:
    import csv
    import json

    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = list(csv.DictReader(CSV.splitlines()))
    typed = [
        {k: (float(v) if k in ("score", "gold") else v) if v else None for k, v in row.items()} for row in rows
    ]
    pq.write_table(pa.Table.from_pylist(typed), tmp_path / "scores.parquet")
    as_json = written(tmp_path, json.dumps(typed), "scores.json")
    expected = read_scores(written(tmp_path, CSV))
    assert read_scores(tmp_path / "scores.parquet") == expected
    assert read_scores(as_json) == expected
    assert read_scores(written(tmp_path, '{"loss": 0.25}', "scores.json")) == {"loss": expected["loss"]}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "scores.csv",
            "metric,item\n",
            "it has 'metric', 'item'\n  accepted: metric, score, and any of item, task, group, gold, larger_is_better$",
        ),
        ("scores.csv", "metric,score,seed\n", "has a column 'seed'"),
        ("scores.csv", "metric,score\na,x\n", "row 1: score = 'x'\n  accepted: a finite number"),
        ("scores.csv", "metric,score\na,-1e308\n", "score = '-1e308'\n  accepted: a number up to 1e"),
        ("scores.csv", "metric,score\na,nan\n", "row 1: score = 'nan'"),
        ("scores.csv", "metric,score\na,1\na,2\n", "a: 2 rows and no items"),
        ("scores.csv", "metric,item,score\na,x,1\na,,2\n", "an item in some rows"),
        ("scores.csv", "metric,item,score\na,x,1\na,x,2\n", "the item 'x' stands there twice"),
        ("scores.csv", "metric,item,score,gold\na,x,1,1\na,y,2,\n", "gold in some rows"),
        ("scores.csv", "metric,score\n,1\n", "row 1: metric is empty"),
        ("scores.csv", "metric,score\na,1,2\n", "another number of columns"),
        ("scores.csv", "metric,score\n", "holds no row\n  accepted: one for each item of each metric"),
        ("scores.json", "{}", "holds no row\n  accepted: one for each item of each metric"),
        ("scores.csv", 'metric,score,item\na,1,"x\na,2,y\n', r"cannot be read \(unexpected end of data\)"),
        ("scores.csv", "metric,score,larger_is_better\na,1,maybe\n", "larger_is_better = 'maybe'"),
        ("scores.csv", "metric,score\na,0_0.5_2\n", "row 1: score = '0_0.5_2'\n  accepted: a finite number"),
        ("scores.csv", "metric,score\na,\u0663\n", "row 1: score = '\u0663'"),
        ("scores.csv", "metric,item,score,gold\na,x,1,1_0\n", "row 1: gold = '1_0'"),
        ("scores.csv", "metric,score,score\na,1,2\n", "names two columns 'score'\n  accepted: each name once"),
        ("scores.json", '{"a": NaN}', "row 1: score = nan\n  accepted: a finite number"),
        ("scores.json", '{"a": null}', "row 1: score = None\n  accepted: a finite number"),
        ("scores.json", '{"a": 1, "a": 2}', "names 'a' twice\n  accepted: each name once"),
        ("scores.json", '[{"metric": "a", "score": 1, "score": 2}]', "names 'score' twice"),
        (
            "scores.json",
            '[{"metric": "a", "item": "\\ud800", "score": 1}]',
            r"row 1: item = '\\ud800'\n  accepted: a text",
        ),
        ("scores.json", '{"\\udfff": 1}', r"row 1: metric = '\\udfff'\n  accepted: a text"),
        (
            "scores.json",
            '[{"metric": "a", "score": 1}, {"metric": "b"}]',
            "lacks the column score; it has 'metric'",
        ),
        ("scores.json", '[{"metric": "a", "score": 1, "seed": 0}]', "has a column 'seed'"),
        ("scores.json", "3", "neither a list of objects"),
        ("scores.json", '[{"metric": "a", "score": 1}, 3]', "neither a list of objects"),
        ("scores.json", "[{", "cannot be read"),
        ("scores.json", "[" * 100_000, "cannot be read"),
        ("scores.parquet", "no parquet", "cannot be read"),
    ],
)
def test_what_is_wrong_is_said_by_file_row_and_column(name: str, text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=said) as caught:
        read_scores(written(tmp_path, text, name))
    assert str(tmp_path / name) in str(caught.value)


def test_what_a_spreadsheet_writes_before_the_head_is_no_part_of_a_name(tmp_path: Path) -> None:
    assert read_scores(written(tmp_path, "\ufeff" + CSV)) == read_scores(written(tmp_path, CSV))


def test_a_table_without_rows_is_told_of_its_columns_too(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"metric": pa.array([], pa.string())}), tmp_path / "scores.parquet")
    with pytest.raises(CorpusError, match=r"scores\.parquet: lacks the column score; it has 'metric'\n"):
        read_scores(tmp_path / "scores.parquet")


def test_a_table_that_would_fill_memory_is_refused(tmp_path: Path) -> None:
    """Before it is read where it is too large; else at the first row too many."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    os.truncate(written(tmp_path, ""), (1 << 30) + 1)
    with pytest.raises(CorpusError, match=r"scores\.csv: is larger than 1 GiB\n  accepted: scores, one row for"):
        read_scores(tmp_path / "scores.csv")
    pq.write_table(pa.table({"score": pa.nulls(2_000_001, pa.int8())}), tmp_path / "scores.parquet")
    rows = rows_of(tmp_path / "scores.parquet", ("score",), ())
    assert sum(1 for _ in islice(rows, 2_000_000)) == 2_000_000
    with pytest.raises(CorpusError, match=r"scores\.parquet: has more than 2,000,000 rows\n"):
        next(rows)


def test_dates_that_python_has_no_words_for(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    late = pa.array([2**60], pa.timestamp("us"))  # in the year 38505
    pq.write_table(pa.table([["a"], late, [1.0]], ["metric", "item", "score"]), tmp_path / "scores.parquet")
    with pytest.raises(CorpusError, match=r"scores\.parquet: cannot be read \(date value out of range\)"):
        read_scores(tmp_path / "scores.parquet")


def test_a_column_that_stands_in_parquet_twice(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table([["a"], [1.0], [2.0]], ["metric", "score", "score"]), tmp_path / "scores.parquet")
    with pytest.raises(
        CorpusError, match=r"scores\.parquet: names two columns 'score'\n  accepted: each name once"
    ):
        read_scores(tmp_path / "scores.parquet")
