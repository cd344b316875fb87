"""The table of scores that were made elsewhere: what it may hold, and what is said of one that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpora.elsewhere.table import read_table, readings
from corpora.store.errors import CorpusError

CSV = "arm,seed,metric,item,score\nA,0,acc,x,1\nA,0,acc,y,0\nA,1,acc,x,1\nA,1,acc,y,1\nB,,acc,x,0\nB,,acc,y,0\n"


def written(place: Path, text: str, name: str = "t.csv") -> Path:
    (place / name).write_text(text)
    return place / name


def test_rows_by_arm_and_seed(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, CSV))
    assert {run: columns["acc"].scores for run, columns in table.items()} == {
        ("A", "", 0): [1.0, 0.0],
        ("A", "", 1): [1.0, 1.0],
        ("B", "", None): [0.0, 0.0],
    }


def test_a_metric_has_parts_that_a_ledger_takes(tmp_path: Path) -> None:
    read_table(written(tmp_path, CSV.replace("acc", f"{'a' * 200}/{'b' * 200}")))
    with pytest.raises(CorpusError, match=r"metric = 'a{201}'\n  accepted: .*each of at most 200 characters"):
        read_table(written(tmp_path, CSV.replace("acc", "a" * 201)))


def test_lines_of_json_say_the_same(tmp_path: Path) -> None:
    import csv
    import json

    rows = [json.dumps({**row, "score": float(row["score"])}) for row in csv.DictReader(CSV.splitlines())]
    assert read_table(written(tmp_path, "\n".join(rows), "t.jsonl")) == read_table(written(tmp_path, CSV))


def test_a_column_of_whole_numbers_that_a_table_keeps_as_fractions(tmp_path: Path) -> None:
    """pandas writes seeds as 0.0 where an arm has none."""
    table = read_table(written(tmp_path, CSV.replace("A,0,", "A,0.0,")))
    assert [run.seed for run in table] == [0, 1, None]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_a_table_of_another_encoding_is_said(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(CSV.replace("A", "Ä"), encoding=encoding)
    with pytest.raises(
        CorpusError, match=r"t\.csv: cannot be read \(byte 0x\w\w is not UTF-8; save it again with that"
    ):
        read_table(path)


def test_half_of_a_surrogate_pair_is_no_name(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"arm": "\\ud83d", "seed": 0, "metric": "acc", "score": 1}\n')
    with pytest.raises(CorpusError, match=r"t\.jsonl: row 1: arm = '\\ud83d'\n  accepted: a text without halves"):
        read_table(path)


def test_several_backbones(tmp_path: Path) -> None:
    path = written(tmp_path, "arm,backbone,seed,metric,score\nA,x,0,acc,1\nA,y,0,acc,2\n")
    assert set(read_table(path)) == {("A", "x", 0), ("A", "y", 0)}


def test_how_a_metric_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, "arm,seed,metric,score,larger_is_better\nA,0,loss,1,false\nA,0,acc,1,\n")
    assert readings(path, read_table(path), {}) == {"loss": "lower", "acc": "higher"}
    path = written(tmp_path, "arm,seed,metric,item,score,gold\nA,0,sts,x,1,3\nA,0,sts,y,2,4\n")
    assert readings(path, read_table(path), {"sts": "spearman"}) == {"sts": "spearman"}
    with pytest.raises(CorpusError, match=r"sts has gold, and nothing says how(.|\n)*--read sts=.*spearman"):
        readings(path, read_table(path), {})
    with pytest.raises(CorpusError, match=r"--read stS: has no row of that metric\n  accepted: sts"):
        readings(path, read_table(path), {"sts": "spearman", "stS": "auc"})


def test_the_direction_of_a_metric_is_what_any_of_its_rows_says(tmp_path: Path) -> None:
    """Whichever run comes first; rows that differ have none."""
    head, rows = "arm,seed,metric,score,larger_is_better\n", ["A,0,loss,1,", "B,0,loss,2,false"]
    for order in (rows, rows[::-1]):
        path = written(tmp_path, head + "\n".join(order))
        assert readings(path, read_table(path), {}) == {"loss": "lower"}
    path = written(tmp_path, head + "A,0,acc,1,true\nA,0,loss,1,true\nB,0,loss,2,false\n")
    for given in ({}, {"loss": "lower"}):
        with pytest.raises(CorpusError, match="loss: larger_is_better is true in some rows and false in others"):
            readings(path, read_table(path), given)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "arm,seed,metric\n",
            "lacks the column score; it has 'arm', 'seed', 'metric'\n"
            "  accepted: arm, seed, metric, score, and any of backbone, item",
        ),
        ("", "lacks the column arm; it has none\n"),
        (
            "arm;seed;metric;score\nA;0;a;1\n",
            "it has 'arm;seed;metric;score'\n.*, parted by commas; or with --arm",
        ),
        (
            "run,seed,loss,accuracy\n",
            "lacks the column arm; it has 'run', .*\n.*; or with --arm COLUMN --seed COLUMN a table with",
        ),
        ("," * 99, "it has '', '', '', '', '', '', '', '' and 92 more\n"),
        ("arm,seed,metric,score\n,0,a,1\n", "row 1: arm is empty"),
        ("arm,seed,metric,score\nA,x,a,1\n", "row 1: seed = 'x'\n  accepted: a whole number, or nothing"),
        ("arm,seed,metric,score\nA,٣,a,1\n", "row 1: seed = '٣'\n  accepted: a whole number, or nothing"),
        ("arm,seed,metric,score\nA,0,a,1\nA,0,a,2\n", "A, seed 0: a: 2 rows and no items"),
        ("arm,seed,metric,score\nA,,a,1\nA,,a,2\n", "csv: A: a: 2 rows and no items"),
        ("arm,seed,metric,score\nA,0,a,1\nA,,a,2\n", "A has rows with a seed and rows without"),
        ("arm,seed,metric,score\n", "holds no row"),
        ("arm,seed,metric,score,score\nA,0,a,1,2\n", "names two columns 'score'\n  accepted: each name once"),
        (
            "arm,seed,metric,score\nA,4294967295,a,1\nA,4294967296,a,1\n",
            "row 2: seed = 4294967296\n  accepted: a whole number up to 4294967295, or nothing",
        ),
        (f"arm,seed,metric,score\nA,{'9' * 5000},a,1\n", "row 1: seed = 9+\n  accepted: a whole number up to"),
        ("arm,seed,metric,score\nA,0,my metric,1\n", "metric = 'my metric'\n  accepted: names of letters, digits"),
        ("arm,backbone,seed,metric,score\nA,x,0,a,1\nA,,1,a,2\n", "a backbone in some rows and not in others"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=said):
        read_table(written(tmp_path, text))


GOLD = "arm,backbone,seed,metric,item,score,group,gold\n"
FIRST = "A,x,0,sts,i1,0.5,g,3\nA,x,0,sts,i2,0.7,h,0\n"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("B,x,0,sts,i1,0.5,g,3\n", "lacks the item 'i2', which A on x, seed 0 has"),
        (FIRST.replace("A,", "B,") + "B,x,0,sts,i3,0.1,h,0\n", "has the item 'i3', which A on x, seed 0 lacks"),
        ("B,x,0,sts,,0.5,,\n", "lacks the item 'i1', which A on x, seed 0 has"),
        (
            FIRST.replace("A,", "B,").replace("g,3", "k,3"),
            "the item 'i1' is in the group 'k', in A on x, seed 0 in 'g'",
        ),
        (
            FIRST.replace("A,", "B,").replace("h,0", "h,4.5"),
            "the item 'i2' has the gold 4.5, in A on x, seed 0 0.0",
        ),
        ("B,x,0,sts,i1,0.5,g,\nB,x,0,sts,i2,0.7,h,\n", "has no gold, other than A on x, seed 0"),
    ],
)
def test_runs_of_a_metric_that_are_not_of_the_same_items(rows: str, said: str, tmp_path: Path) -> None:
    accepted = "the same items of a metric in all runs, in the same groups and with the same gold"
    with pytest.raises(CorpusError, match=rf"t\.csv: B on x, seed 0: sts: {said}\n  accepted: {accepted}"):
        read_table(written(tmp_path, GOLD + FIRST + rows))


def test_the_order_of_items_is_nobodys(tmp_path: Path) -> None:
    """Nor need runs share their metrics, or metrics their items."""
    back = "".join(line + "\n" for line in reversed(FIRST.replace("A,", "B,").splitlines()))
    table = read_table(written(tmp_path, GOLD + FIRST + back + "B,x,0,acc,j,1,,\nC,x,0,acc,j,1,,\n"))
    assert [columns.keys() for columns in table.values()] == [{"sts"}, {"sts", "acc"}, {"acc"}]


def test_lines_of_json_may_begin_with_a_mark(tmp_path: Path) -> None:
    row = '{"arm": "A", "seed": 0, "metric": "acc", "score": 0.5}'
    for name in ("t.jsonl", "t.json"):
        text = row if name == "t.jsonl" else f"[{row}]"
        assert read_table(written(tmp_path, "\ufeff" + text, name)) == read_table(written(tmp_path, text, name))


def test_a_line_that_names_a_key_twice_is_named_by_its_number(tmp_path: Path) -> None:
    row = '{"arm": "A", "seed": 0, "metric": "acc", "score": 0.5}'
    twice = '{"arm": "A", "seed": 1, "metric": "acc", "score": 0.5, "score": 0.9}'
    with pytest.raises(CorpusError, match=r"t\.jsonl: line 2 names 'score' twice\n  accepted: each name once"):
        read_table(written(tmp_path, f"{row}\n{twice}\n", "t.jsonl"))


def test_a_line_that_is_no_json_is_named_by_its_number(tmp_path: Path) -> None:
    row = '{"arm": "A\u2028", "seed": 0, "metric": "acc", "score": 0.5}'
    assert len(read_table(written(tmp_path, f"{row}\r\n\n", "t.jsonl"))) == 1
    with pytest.raises(CorpusError, match=r"t\.jsonl: line 3 is no JSON .*\n  accepted: an object in every line"):
        read_table(written(tmp_path, f"{row}\n\nnope\n", "t.jsonl"))


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"no table of scores\n  accepted: a file that ends in \.csv"):
        read_table(written(tmp_path, CSV, "t.xlsx"))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"scores\.csv: no such file\n  accepted: "):
        read_table(tmp_path / "scores.csv")
