"""What other tools export becomes rows of the table of scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corpora.elsewhere.exports import of_mteb, of_runs, write_rows
from corpora.elsewhere.table import read_table
from corpora.store.errors import CorpusError

RUNS = """\
Run ID,params.loss,params.seed,metrics.acc,metrics.loss,status,start_time
a1,mnrl,0,0.5,1.5,FINISHED,2026-01-01
a2,mnrl,1,0.6,,FINISHED,2026-01-01
a3,cosent,0,0.7,1.25,FINISHED,2026-01-02
"""


def result(folder: Path, model: str, task: str, scores: dict[str, list[dict[str, Any]]]) -> None:
    place = folder / model / "no_revision"
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{task}.json").write_text(json.dumps({"task_name": task, "scores": scores}))
    (place / "model_meta.json").write_text("{}")


def main_score(value: float, subset: str = "default") -> dict[str, Any]:
    return {"main_score": value, "hf_subset": subset, "spearman": 0.0}


def test_a_row_for_each_run(tmp_path: Path) -> None:
    """Columns of numbers are metrics; `Run ID`, words and dates are none, and a blank is no figure."""
    (tmp_path / "runs.csv").write_text(RUNS)
    assert [tuple(row) for row in of_runs(tmp_path / "runs.csv", "params.loss", "params.seed")] == [
        ("mnrl", "0", "metrics.acc", 0.5),
        ("mnrl", "0", "metrics.loss", 1.5),
        ("mnrl", "1", "metrics.acc", 0.6),
        ("cosent", "0", "metrics.acc", 0.7),
        ("cosent", "0", "metrics.loss", 1.25),
    ]


@pytest.mark.parametrize("left", ["NaN", "nan", "inf", "-Infinity"])
def test_a_figure_that_is_no_finite_number_is_lacking_in_its_run_alone(left: str, tmp_path: Path) -> None:
    """A column with no other, as `status` here, is no metric."""
    (tmp_path / "runs.csv").write_text(RUNS)
    blank = list(of_runs(tmp_path / "runs.csv", "params.loss", "params.seed"))
    (tmp_path / "runs.csv").write_text(RUNS.replace("0.6,,", f"0.6,{left},").replace("FINISHED", left))
    assert list(of_runs(tmp_path / "runs.csv", "params.loss", "params.seed")) == blank


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("80.6%,", r"row 1: metrics\.acc = '80\.6%'\n  accepted: a number, or nothing"),
        ("0.5,crashed", r"row 2: metrics\.acc = 'crashed'\n  accepted: a number, or nothing"),
        ("nan,", r"metrics\.acc has no finite number in any row\n  accepted: numbers"),
    ],
)
def test_a_claimed_column_that_holds_other_than_numbers_is_told_by_its_row(
    column: str, said: str, tmp_path: Path
) -> None:
    """Without a claim on it, it is a column of words like others, and left out."""
    first, second = column.split(",")
    text = f"arm,seed,metrics.acc,metrics.loss\nmnrl,0,{first},1.5\nmnrl,1,{second},1.25\n"
    (tmp_path / "runs.csv").write_text(text)
    assert {row.metric for row in of_runs(tmp_path / "runs.csv", "arm", "seed")} == {"metrics.loss"}
    with pytest.raises(CorpusError, match=said):
        list(of_runs(tmp_path / "runs.csv", "arm", "seed", ["metrics.acc"]))


def test_a_name_is_no_number_because_python_reads_one(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("params.loss,params.seed,run,acc\nmnrl,0,1_0,0.5\n")
    assert [row.metric for row in of_runs(tmp_path / "runs.csv", "params.loss", "params.seed")] == ["acc"]


def test_a_run_that_crashed_may_lack_its_last_cells(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("params.loss,params.seed,acc,loss\nmnrl,0,0.5,1\nmnrl,1,0.6\n")
    rows = of_runs(tmp_path / "runs.csv", "params.loss", "params.seed")
    assert [tuple(row[1:]) for row in rows] == [("0", "acc", 0.5), ("0", "loss", 1.0), ("1", "acc", 0.6)]


def test_columns_without_a_name_are_nobodys(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("params.loss,params.seed,acc,,\nmnrl,0,0.5,1,2\n")
    assert [row.metric for row in of_runs(tmp_path / "runs.csv", "params.loss", "params.seed")] == ["acc"]


@pytest.mark.parametrize(("metrics", "asked"), [("eval acc,_step", ()), ("eval acc,loss", ("rho", "eval acc"))])
def test_columns_of_numbers_by_names_that_are_no_metrics_are_named(
    tmp_path: Path, metrics: str, asked: tuple[str, ...]
) -> None:
    (tmp_path / "runs.csv").write_text(f"arm,seed,run name,{metrics}\nmnrl,0,a b,0.5,1\n")
    named = metrics.removesuffix(",loss").replace(",", ", ")
    with pytest.raises(CorpusError, match=rf"runs\.csv: .* called: {named}\n  accepted: names of letters, digits"):
        list(of_runs(tmp_path / "runs.csv", "arm", "seed", asked))


def test_columns_of_numbers_that_no_metric_may_be_called_are_left_out_beside_others(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("arm,seed,_step,eval acc,loss\nmnrl,0,9,0.5,1.25\n")
    rows = of_runs(tmp_path / "runs.csv", "arm", "seed", asked=("loss",))
    assert [tuple(row) for row in rows] == [("mnrl", "0", "loss", 1.25)]


def test_a_folder_of_mteb(tmp_path: Path) -> None:
    result(tmp_path, "cosent-seed1", "STSBenchmark", {"test": [main_score(0.8)], "validation": [main_score(0.7)]})
    result(tmp_path, "base__model", "STS22", {"test": [main_score(0.6, "en"), main_score(0.5, "de")]})
    assert {tuple(row) for row in of_mteb(tmp_path)} == {
        ("base__model", "", "STS22/en", 0.6),
        ("base__model", "", "STS22/de", 0.5),
        ("cosent", "1", "STSBenchmark", 0.8),
        ("cosent", "1", "STSBenchmark/validation", 0.7),
    }


def test_a_run_of_mteb_without_a_figure_lacks_it_alone(tmp_path: Path) -> None:
    """As of a collapsed encoder, whose cosines correlate with nothing."""
    result(tmp_path, "m-seed0", "STS17", {"test": [main_score(float("nan"), "en-en"), main_score(0.5, "es-es")]})
    result(tmp_path, "m-seed1", "STS17", {"test": [main_score(0.6, "en-en")]})
    assert [tuple(row) for row in of_mteb(tmp_path)] == [
        ("m", "0", "STS17/es-es", 0.5),
        ("m", "1", "STS17/en-en", 0.6),
    ]


def test_a_subset_of_mteb_by_a_name_of_words_is_a_metric(tmp_path: Path) -> None:
    result(tmp_path, "m-seed0", "ClusTREC-Covid", {"test": [main_score(0.5, "title and abstract")]})
    table = read_table(write_rows(of_mteb(tmp_path), tmp_path / "scores.csv"))
    assert [list(columns) for columns in table.values()] == [["ClusTREC-Covid/title_and_abstract"]]


def test_what_semray_wrote_into_the_folder_is_no_result(tmp_path: Path) -> None:
    """A report's folder has the judged study and its ledger; with `--out .` they stand in the folder itself."""
    result(tmp_path, "m-seed0", "x", {"test": [main_score(0.5)]})
    result(tmp_path, ".cache", "x", {"test": [main_score(0.7)]})
    for place in (tmp_path, tmp_path / "judged" / "res"):
        (place / "ledger" / "0123").mkdir(parents=True)
        for file in (place / "report.json", place / "scores.yaml", place / "ledger" / "0123" / "result.json"):
            file.write_text("{}")
    (tmp_path / "m-seed0" / "._x.json").write_text("left by a Mac")
    assert [tuple(row) for row in of_mteb(tmp_path)] == [("m", "0", "x", 0.5)]


def test_a_model_that_is_called_as_our_folder_is_read(tmp_path: Path) -> None:
    result(tmp_path, "judged-seed0", "x", {"test": [main_score(0.5)]})
    result(tmp_path, "ledger", "x", {"test": [main_score(0.6)]})
    assert {row.arm for row in of_mteb(tmp_path)} == {"judged", "ledger"}


def test_rows_are_read_again_as_a_table(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text(RUNS)
    rows = of_runs(tmp_path / "runs.csv", "params.loss", "params.seed")
    table = read_table(write_rows(rows, tmp_path / "scores.csv"))
    assert {run: columns["metrics.acc"].scores for run, columns in table.items()} == {
        ("mnrl", "", 0): [0.5],
        ("mnrl", "", 1): [0.6],
        ("cosent", "", 0): [0.7],
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            RUNS.replace("params.seed", "seed"),
            r"lacks the column params\.seed\n  accepted: Run ID, params\.loss, seed",
        ),
        (
            "params.loss;params.seed;acc\nmnrl;0;0,5\n",
            r"runs\.csv: has columns parted by semicolons\n  accepted: parted by commas",
        ),
        (RUNS.replace(",", "\t"), "parted by tabs"),
        (
            'params.loss,params.seed,acc,note\nmnrl,0,1,"so\nmnrl,1,2,so\n',
            r"runs\.csv: cannot be read \(unexpected end of data\)",
        ),
        ("params.loss,params.seed,note\nmnrl,0,good\n", "has no column of numbers"),
        ("params.loss,params.seed,acc,crashed\nmnrl,0,nan,\n", "has no column of numbers"),
        ("params.loss,params.seed,acc\n,0,1\n", r"row 1: params\.loss is empty"),
        ("params.loss,params.seed,acc\n", "holds no row"),
        (
            "params.loss,params.seed,acc,acc\nmnrl,0,1,2\n",
            r"runs\.csv: names two columns 'acc'\n  accepted: each name once",
        ),
        ("params.loss,params.seed,,,acc,acc\nmnrl,0,,,1,2\n", "names two columns 'acc'"),
        (
            "params.loss,params.seed,acc\nmnrl,0,0,80\n",
            r"line 2 has more columns than its head\n  accepted: as many",
        ),
        (
            "params.loss,params.seed,acc,auc\nmnrl,0,1,\nmnrl,1,2,\nmnrl,0,,3\nmnrl,1,4,5\n",
            r"runs\.csv: row 4: acc of params\.loss mnrl, params\.seed 1 stands in row 2, too\n  accepted: one row",
        ),
    ],
)
def test_a_broken_table_of_runs_is_said(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text(text)
    with pytest.raises(CorpusError, match=said):
        list(of_runs(tmp_path / "runs.csv", "params.loss", "params.seed"))


def test_a_comma_at_the_end_of_rows_is_no_figure(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("params.loss,params.seed,acc\nmnrl,0,0.5,\nmnrl,1,0.6,\n")
    assert [row.score for row in of_runs(tmp_path / "runs.csv", "params.loss", "params.seed")] == [0.5, 0.6]


def test_a_folder_that_holds_other_things_is_said(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="holds no result of MTEB"):
        list(of_mteb(tmp_path))
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "x.json").write_text('{"scores": 3}')
    with pytest.raises(CorpusError, match="is no result of MTEB"):
        list(of_mteb(tmp_path))
    result(tmp_path, "m", "x", {"test": [main_score(float("nan"))]})
    (tmp_path / "m" / "x.json").unlink()
    with pytest.raises(CorpusError, match="has no finite main score in any result"):
        list(of_mteb(tmp_path))


def test_two_revisions_of_a_model_are_told_by_their_files(tmp_path: Path) -> None:
    result(tmp_path, "m-seed0", "x", {"test": [main_score(0.5)]})
    first = tmp_path / "m-seed0" / "no_revision" / "x.json"
    second = tmp_path / "m-seed0" / "other" / "x.json"
    second.parent.mkdir()
    second.write_text(first.read_text().replace("0.5", "0.75"))
    told = rf"{second}: x of m-seed0 stands in {first}, too\n  accepted: one revision of a model"
    with pytest.raises(CorpusError, match=told):
        list(of_mteb(tmp_path))


def test_what_mteb_itself_writes_is_read(tmp_path: Path) -> None:
    """A result as the library's own class saves it."""
    mteb = pytest.importorskip("mteb.results.task_result")
    made = mteb.TaskResult(
        dataset_revision="r",
        task_name="STSBenchmark",
        mteb_version="2",
        scores={"test": [{**main_score(0.75), "languages": ["eng-Latn"]}]},
        evaluation_time=1.0,
    )
    (tmp_path / "mnrl-seed4" / "r").mkdir(parents=True)
    made.to_disk(tmp_path / "mnrl-seed4" / "r" / "STSBenchmark.json")
    assert [tuple(row) for row in of_mteb(tmp_path)] == [("mnrl", "4", "STSBenchmark", 0.75)]
