"""The Python face says what the commands say, and to import it costs nothing."""

from __future__ import annotations

import enum
import json
import re
import subprocess
import sys
import threading
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import semray
from orchestration.commands.cli import main
from orchestration.ledger.ledger import Ledger
from orchestration.plan.held import planned
from tests.corpora.conftest import write_small_wordnet
from tests.finished_study import fill
from tests.tiny import tiny_backbone

ROOT = Path(__file__).resolve().parents[2]
STUDY = """\
question: Is Python told what the terminal is told?
family: concept
backbones: [{backbone}]
seeds: 3
data: {{wordnet: {wordnet}, n_hh: 20, n_id: 20, n_dev: 10}}
arms:
  B0: {{train: false}}
  B1: {{hard_negatives: true}}
evaluate: [t2d]
compare:
  - {{claim: H1, treatment: B1, control: B0, metric: t2d/recall@10, expect: better}}
"""
PUBLISHED = "{source: a paper, backbone: a model, seeds: 1, studies: {python: {H1: 0.1}}}"


def test_a_finished_study_from_python(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_small_wordnet(tmp_path / "wordnet")
    file, ledger = tmp_path / "python.yaml", tmp_path / "ledger"
    file.write_text(STUDY.format(backbone=tiny_backbone(tmp_path / "tiny"), wordnet=tmp_path / "wordnet"))
    study = semray.load_study(file)
    fill(Ledger(ledger), planned(study, Ledger(ledger)).runs)
    (tmp_path / "published").mkdir()
    (tmp_path / "published/concept.yaml").write_text(PUBLISHED)
    found = semray.run(study, ledger)  # nothing is left to train
    assert [one.verdict.words for one in semray.judge(study, ledger).findings] == [
        one.verdict.words for one in found.findings
    ]
    monkeypatch.setenv("SEMRAY_LEDGER", str(ledger))  # as for the commands
    assert semray.judge(study).ledger == semray.run(study).ledger == found.ledger
    with pytest.raises(
        semray.StudyError, match=r"^semray\.report: Study is none of a study's findings\n  accepted: "
    ):
        semray.report(study, tmp_path / "out")  # type: ignore[arg-type]
    page = semray.report(found, tmp_path / "out")
    capsys.readouterr()
    assert main(["report", str(file), "--ledger", str(ledger)]) == 0
    assert capsys.readouterr().out == f"{found}\n"
    assert main(["report", str(file), "--json", "--ledger", str(ledger)]) == 0
    assert json.loads((page.parent / "report.json").read_text()) == json.loads(capsys.readouterr().out)
    assert main(["report", str(file), "--out", str(tmp_path / "told"), "--ledger", str(ledger)]) == 0
    for name in ("report.html", "report.md", "report.tex", "report.json"):
        told = (tmp_path / "told" / name).read_text()
        assert _undated((page.parent / name).read_text()) == _undated(told)
    assert "What training costs" in page.read_text()
    assert "0.1 on a model" in page.read_text()  # as the paper prints it
    with pytest.raises(semray.StudyError, match="no such file"):
        semray.load_study(tmp_path / "none.yaml")
    with pytest.raises(semray.StudyError, match=r"holds no finished run of python\n  next: semray run "):
        semray.judge(study, tmp_path / "another")
    monkeypatch.chdir(tmp_path)
    assert semray.load_study("python").arms == study.arms  # by its name, as on the command line
    for given in ("python", tmp_path / "python.yaml", None):
        with pytest.raises(
            semray.StudyError, match=r"is no study\n  accepted: what semray\.load_study\(FILE\) gives"
        ):
            semray.judge(given)
        with pytest.raises(semray.StudyError, match="is no study"):
            semray.run(given)


def _undated(text: str) -> str:
    """Without the moment at which the study was judged."""
    return re.sub(r"20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?", "", text)


def test_a_data_frame_of_scores(tmp_path: Path) -> None:
    """Eight seeds, each better by far: all of 2^8 sign flips but one are less extreme, so p = 2/256."""
    pandas = pytest.importorskip("pandas")
    rows = [(arm, seed, "acc", (seed + 50 * (arm == "B")) / 100) for arm in "AB" for seed in range(8)]
    frame = pandas.DataFrame(rows, columns=["arm", "seed", "metric", "score"])
    claim = {"claim": "H1", "treatment": "B", "control": "A", "metric": "acc", "expect": "better"}
    found = semray.judge(frame, compare=[claim], read={"acc": "higher"}, folder=tmp_path)
    (finding,) = found.findings
    assert finding.verdict.verdict == "better"
    assert finding.verdict.exploratory
    page = found._repr_html_()
    assert page.startswith("<iframe")
    assert "H1" in page
    assert "What do the scores in a data frame show?" in page
    assert found.notes[0] == "scores: made elsewhere, read from a data frame"
    assert str(found).startswith("claim ")
    with pytest.raises(semray.StudyError, match=r"DataFrame is no study.*\n.*compare=\[\{\.\.\.\}\]"):
        semray.judge(frame)
    with pytest.raises(semray.StudyError, match="accepted: A, B"):
        semray.judge(frame, compare=[{**claim, "treatment": "C"}], folder=tmp_path)


def test_each_data_frame_has_a_place_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several may be judged at one time, as by the processes of a pool."""
    pandas = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    claim = {"claim": "H1", "treatment": "B", "control": "A", "metric": "acc", "expect": "better"}
    tables = list[Path]()
    for gain in (0.5, 0.3, 0.5):
        rows = [(arm, seed, "acc", seed / 100 + gain * (arm == "B")) for arm in "AB" for seed in range(8)]
        frame = pandas.DataFrame(rows, columns=["arm", "seed", "metric", "score"])
        found = semray.judge(frame, compare=[claim])
        tables.append(Path(found.asked_by.data.table))
        assert found.findings[0].verdict.delta_mean == pytest.approx(gain)
    assert tables[0] == tables[2] != tables[1]
    assert set(Path().glob("judged/*/scores.parquet")) == set(tables)


def test_runs_of_several_threads_wait_for_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process has one Ray, which ends with the run that started it."""
    from orchestration.commands import run_study

    write_small_wordnet(tmp_path / "wordnet")
    file = tmp_path / "python.yaml"
    file.write_text(STUDY.format(backbone=tiny_backbone(tmp_path / "tiny"), wordnet=tmp_path / "wordnet"))
    study, real, inside, most = semray.load_study(file), run_study.run_study, list[str](), list[int]()
    both = threading.Barrier(2)

    def watched(asked: Any, ledger: Ledger) -> Any:
        inside.append(ledger.url)
        most.append(len(inside))
        done = real(asked, ledger)
        inside.remove(ledger.url)
        return done

    def one(name: str) -> None:
        fill(Ledger(tmp_path / name), planned(study, Ledger(tmp_path / name)).runs)
        both.wait(60)
        semray.run(study, tmp_path / name)

    monkeypatch.setattr(run_study, "run_study", watched)
    threads = [threading.Thread(target=one, args=(name,)) for name in ("first", "second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1]


def test_what_makes_no_table_of_scores_is_said(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    rows = [(arm, seed, "acc", seed / 100) for arm in "AB" for seed in range(8)]
    frame = pandas.DataFrame(rows, columns=["arm", "seed", "metric", "score"])
    claim = {"claim": "H1", "treatment": "B", "control": "A", "metric": "acc", "expect": "better"}
    mixed = frame.assign(arm=[0 if arm == "A" else arm for arm in frame["arm"]])
    twice = pandas.concat([frame, frame[["score"]]], axis=1)
    for given, said in (
        (
            mixed,
            r"the data frame makes no table \(.*column arm.*\)\n  accepted: the columns of `semray judge`, each",
        ),
        (frame.assign(run=[object() for _ in rows]), r"makes no table \(.*column run"),
        (frame.assign(run=[1j for _ in rows]), "makes no table"),
        (twice, r"makes no table \(.*score"),
        (rows, r"list is no table of scores\n  accepted: a data frame of pandas, or the path of a table"),
    ):
        with pytest.raises(semray.StudyError, match=rf"^semray\.judge: .*{said}"):
            semray.judge(given, compare=[claim], folder=tmp_path)
    for read in (["acc"], pandas.Series({"acc": "lower", "f1": "lower"})):
        with pytest.raises(
            semray.StudyError, match=r"^semray\.judge: read = .*\n(.*\n)*  accepted: how metrics are read"
        ):
            semray.judge(frame, compare=[claim], read=read, folder=tmp_path)  # type: ignore[call-overload]
    with pytest.raises(semray.StudyError, match=r"^--read acc=foo\n  accepted: METRIC=READING, with higher"):
        semray.judge(frame, compare=[claim], read={"acc": "foo"}, folder=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(semray.StudyError, match=r"file: is no folder\n  accepted: a folder, new or there already"):
        semray.judge(frame, compare=[claim], folder=tmp_path / "file")


def test_claims_that_are_no_list_of_claims_are_said(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    rows = [(arm, seed, "acc", seed / 100) for arm in "AB" for seed in range(8)]
    frame = pandas.DataFrame(rows, columns=["arm", "seed", "metric", "score"])
    claim = {"claim": "H1", "treatment": "B", "control": "A", "metric": "acc", "expect": "better"}
    for given, said in (
        (claim, "a dict"),
        (pandas.DataFrame([claim]), "a DataFrame"),
        (Path("claims.yaml"), "a PosixPath"),
        ("B > A", "'B > A'"),
        (["B > A"], "a list"),
    ):
        with pytest.raises(
            semray.StudyError, match=rf"^semray\.judge: compare = {said}\n  accepted: a list of claims, such as"
        ):
            semray.judge(frame, compare=given, folder=tmp_path)
    assert not list(tmp_path.iterdir())


def test_numbers_of_numpy_in_claims_are_numbers(tmp_path: Path) -> None:
    """As a margin that comes from the scores themselves."""
    pandas = pytest.importorskip("pandas")
    rows = [(arm, seed, "acc", seed / 100 + (arm == "B") / 1000) for arm in "AB" for seed in range(8)]
    frame = pandas.DataFrame(rows, columns=["arm", "seed", "metric", "score"])
    claim = {"claim": "H1", "treatment": "B", "control": "A", "metric": "acc", "expect": "equivalent"}
    told = [
        repr(semray.judge(frame, compare=[{**claim, "margin": margin}], folder=tmp_path / str(place)))
        for place, margin in enumerate((frame.score.max() / 2, float(frame.score.max() / 2)))
    ]
    assert told[0] == told[1]
    assert "equivalent" in told[0]


@pytest.mark.parametrize(
    "entry",
    [{"expect": enum.Enum("Expect", ["better"]).better}, {"margin": Decimal("0.1")}, {Path("margin"): 0.1}],
)
def test_what_no_study_file_holds_is_said(entry: dict[Any, Any], tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([("A", 0, "acc", 0.5)], columns=["arm", "seed", "metric", "score"])
    with pytest.raises(
        semray.StudyError, match=r"^semray\.judge: compare holds .*\n  accepted: text, numbers, lists and mappings"
    ):
        semray.judge(frame, compare=[{"claim": "H1", **entry}], folder=tmp_path)


def test_type_checkers_see_the_annotations() -> None:
    """Of an installed semray too: every package says that it is typed, and the distribution takes that along."""
    for package in ("semray", "orchestration", "trainers", "search_spaces", "evaluators", "corpora"):
        assert (ROOT / package / "py.typed").is_file()
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "py.typed" in told["tool"]["setuptools"]["package-data"]["*"]


def test_the_import_loads_nothing_heavy() -> None:
    code = (
        "import semray, sys; print([name for name in ('torch', 'ray', 'mlflow', 'yaml') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
