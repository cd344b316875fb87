"""What a person types in the first hour, on a ledger that is already filled: no Ray, no training."""

from __future__ import annotations

import argparse
import errno
import io
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from orchestration.commands.cli import MODULES, main
from orchestration.commands.ls import in_bytes
from orchestration.commands.run_study import next_steps
from orchestration.commands.words import OF_FAMILIES, add_all
from orchestration.families.registry import FAMILIES
from orchestration.ledger.ledger import Ledger
from orchestration.ledger.storage import LocalStorage
from orchestration.plan.held import planned
from orchestration.reading.read_study import read_study
from orchestration.study.names import printable
from orchestration.verdicts.declared import declare
from tests.corpora.conftest import write_small_wordnet
from tests.finished_study import fill
from tests.tiny import tiny_backbone
from tests.waiting import free_port

STUDY = """\
question: What does a person see first?
family: concept
backbones: [{backbone}]
seeds: 6
data: {{wordnet: {wordnet}, n_hh: 20, n_id: 20, n_dev: 10}}
train: {{steps: 60, warmup: {warmup}, learning_rate: {rate}}}
arms:
  B0: {{train: false}}
  B1: {{hard_negatives: true}}
  B1-noHN: {{hard_negatives: false}}
evaluate: [t2d]
compare:
  - {{claim: H1, treatment: B1, control: B0, metric: t2d/recall@10, expect: better}}
  - {{claim: H3b, treatment: B1, control: B1-noHN, metric: t2d/recall@10, expect: equivalent, margin: 0.03}}
"""
ROOT = Path(__file__).resolve().parents[3]
Ask = Callable[..., tuple[int, str, str]]


def written(folder: Path) -> None:
    (folder / "config.json").write_text("{}")
    (folder / "config.json").chmod(0o600)  # as safetensors' own files are


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two studies in `studies/`, whose runs are in the ledger with scores made up."""
    folder = tmp_path_factory.mktemp("first")
    (folder / "studies").mkdir()
    (folder / "deeper").mkdir()
    write_small_wordnet(folder / "wordnet")
    backbone, ledger = tiny_backbone(folder / "tiny"), Ledger(folder / "ledger")
    for name, warmup, rate in (("first", 2, "1.0e-4"), ("second", 2, "2.0e-4"), ("slips", 60, "10.0")):
        study = folder / f"studies/{name}.yaml"
        study.write_text(STUDY.format(backbone=backbone, wordnet=folder / "wordnet", warmup=warmup, rate=rate))
        if name != "slips":
            plan = planned(read_study(study), ledger)
            declare(plan.study, plan.runs, ledger)
            fill(ledger, plan.runs, save_model=written)
    return folder


@pytest.fixture
def ask(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    monkeypatch.chdir(place)

    def call(*words: str, typed: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        capsys.readouterr()
        code = main(words)
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_every_word_stands_in_help_once_in_the_order_of_the_day(capsys: pytest.CaptureFixture[str]) -> None:
    groups = add_all(argparse.ArgumentParser().add_subparsers())
    assert sorted(name for group, of in groups.items() if group != OF_FAMILIES for name in of) == sorted(MODULES)
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    places = [text.index(f"\n  {name} ") for told in groups.values() for name in told]
    assert places == sorted(places)
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("semray ")


def test_the_usage_of_a_word_names_it_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["report", "--help"])
    assert capsys.readouterr().out.startswith("usage: semray report [-h] ")
    with pytest.raises(SystemExit):
        main(["plan"])
    assert "\nsemray plan: error: the following arguments are required: STUDY" in capsys.readouterr().err


def test_an_empty_name_of_a_ledger_is_none(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEMRAY_LEDGER", "")
    assert "\ndone 13   left 0" in ask("plan", "first")[1]
    with pytest.raises(SystemExit):
        main(["plan", "first", "--ledger", ""])
    assert "--ledger ''\n  accepted: a folder, or a URL" in capsys.readouterr().err


def test_an_address_of_pages_is_no_place_for_a_ledger(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given by the option or by the environment: the endpoint of a store, as a rule."""
    said = (
        "ledger https://store.local/b: pages are read there, and nothing is kept\n  accepted: a folder, or a URL "
    )
    monkeypatch.setenv("SEMRAY_LEDGER", "https://store.local/b")
    for place in (("--ledger", "https://store.local/b"), ()):
        code, out, err = ask("ls", *place)
        assert (code, out) == (2, "")
        assert said in err
        assert "AWS_ENDPOINT_URL" in err


def test_an_audit_of_a_place_without_a_ledger_is_refused_where_a_plan_begins_one(ask: Ask, tmp_path: Path) -> None:
    for place in (tmp_path / "mistyped", tmp_path):  # one that is not there, and one that is no ledger
        code, out, err = ask("audit", "--ledger", str(place))
        assert (code, out) == (2, "")
        assert f"{place}: holds nothing of a study\n  accepted: the ledger of a study that ran\n" in err
        assert ask("plan", "first", "--ledger", str(place))[0] == 0
    Ledger(tmp_path).declare("first", [{"claim": "H1"}])
    assert ask("audit", "--ledger", str(tmp_path))[0] == 0


def test_why_of_a_claim_without_runs_says_that_nothing_is_declared_or_tested(ask: Ask, tmp_path: Path) -> None:
    code, said, _ = ask("why", "first", "H1", "--ledger", str(tmp_path / "empty"))
    assert code == 0
    assert "  not declared yet: the first run writes it down\n" in said
    assert "None" not in said
    assert "declared before" in ask("why", "first", "H1")[1]


def test_places_that_cannot_be_written_are_named(ask: Ask, place: Path) -> None:
    """A file where a folder should be: what a disk that may not be written, or is full, comes to too."""
    (place / "file").write_text("")
    below = str(place / "file" / "below")
    for words in (
        ("report", "first", "--out", below),
        ("report", "first", "--out", str(place / "out"), "--passport", f"{below}.passport"),
        ("export", "B1", below, "--seed", "0", "--study", "first"),
        ("check-claim", "70", "71", "--write", f"{below}.yaml"),
        ("init", "family", "mine", "--path", below),
        ("plan", "x" * 300),
    ):
        code, _, err = ask(*words)
        assert code == 2, words
        *_, said, accepted = err.splitlines()
        assert re.search(r"(file|x{300})\S*: \w", said), err
        assert accepted.startswith("  accepted: "), err


def test_a_database_that_cannot_be_written_is_not_asked_for_minutes(ask: Ask, place: Path) -> None:
    (place / "file").write_text("")
    began = time.monotonic()
    code, _, err = ask("sync", "first", "--mlflow", f"sqlite:///{place}/file/mlflow.db")
    assert code == 1
    assert "/file cannot be written; the ledger has everything" in err
    assert "next " not in err
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    ("uri", "end"),
    [
        ("sqlite:////data/other.db", "semray ui first --mlflow sqlite:////data/other.db"),
        ("http://me:pw@h", "ui first"),
    ],
)
def test_what_is_printed_to_type_next_names_the_mlflow_that_was_asked_for(
    uri: str, end: str, ask: Ask, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = SimpleNamespace(problem="", line="mlflow  done")
    monkeypatch.setattr("orchestration.commands.publish._sync", lambda *_: synced)
    code, _, err = ask("sync", "first", "--mlflow", uri)
    assert (code, err.splitlines()[-1].endswith(end)) == (0, True)
    verdict: Any = SimpleNamespace(findings=[], ledger=str(place / "ledger"))
    for whole, word in ((True, "ui"), (False, "run")):
        (line,) = next_steps("first", verdict, whole, uri)
        assert line.startswith(f"next    semray {end.replace('semray ', '').replace('ui', word, 1)}   ")


def test_pages_of_a_server_that_is_away(ask: Ask) -> None:
    code, _, err = ask("ui", "first", "--mlflow", f"http://me:secret@127.0.0.1:{free_port()}")
    assert code == 2
    assert re.search(
        r"mlflow http://127\.0\.0\.1:\d+: the server does not answer\n  accepted: a server that answers", err
    )
    assert "secret" not in err


def test_a_folder_that_is_gone(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    code, _, err = ask("plan", str(place / "studies" / "first.yaml"))
    assert code == 2
    assert "the folder that this was called in is gone\n  accepted: " in err


@pytest.mark.parametrize(
    ("closed", "shown"), [("", 13), ("2>&-", 13), ("0<&- 2>&-", 13), (">&-", 0), (">/dev/full", 0)]
)
def test_streams_that_take_nothing(place: Path, closed: str, shown: int) -> None:
    words = f"{sys.executable} -m orchestration status ../studies/first.yaml --json {closed}"
    path = {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["/bin/sh", "-c", words],
        cwd=place / "deeper",
        env=os.environ | path,
        capture_output=True,
        text=True,
        check=False,
    )
    full = "full" in closed
    assert done.returncode == (2 if full else 0), done.stderr
    assert len(json.loads(done.stdout)["runs"] if done.stdout else []) == shown
    said = [line for line in done.stderr.splitlines() if not line.startswith(("importing", "ledger  none at"))]
    assert said == full * [
        "standard output: No space left on device",
        "  accepted: a place that may be read and written, and has room",
    ]


def test_a_study_is_found_by_its_name(ask: Ask) -> None:
    code, out, _ = ask("plan", "first")
    assert code == 0
    assert out.startswith("first   13 runs = 2 arms x 6 seeds x 1 backbone + 1 untrained arm x 1 backbone")
    code, _, err = ask("plan", "frist")
    assert code == 2
    assert err == (
        "frist: no such file, and no study of that name here or in studies/\n"
        "  accepted: first, second, slips (did you mean first?)\n"
    )


def test_a_name_of_a_study_where_there_are_none(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = ask("plan", "quickstart")
    assert code == 2
    assert "  accepted: `semray init study quickstart` writes one\n" in err


def test_the_nearest_ledger_is_named(ask: Ask, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place / "deeper")
    code, _, err = ask("plan", "../studies/first.yaml")
    assert code == 0
    assert err.splitlines()[0] == "ledger  none at ledger; the nearest is ../ledger:  --ledger ../ledger"


def test_slips_are_told_by_name(ask: Ask) -> None:
    _, out, _ = ask("plan", "slips")
    assert "warn    B1, B1-noHN: learning_rate = 10 is far above what trains" in out
    assert "warn    B1, B1-noHN: warmup = 60 lasts as long as the training of 60 steps" in out
    assert "lasts as long" not in ask("plan", "first")[1]


@pytest.mark.parametrize(
    ("features", "asked", "told"),
    [("avx2", "bf16", True), ("avx2", "fp32", False), ("avx2", "auto", False), ("avx512_bf16", "bf16", False)],
)
def test_a_precision_in_which_this_processor_is_slow_is_told(
    features: str, asked: str, told: bool, ask: Ask, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text(f"vendor_id\t: AuthenticAMD\nflags\t: fpu {features}\n")
    monkeypatch.setattr("trainers.engine.precision.CPU_FACTS", tmp_path / "cpuinfo")
    text = (place / "studies/slips.yaml").read_text() + f"resources: {{precision: {asked}}}\n"
    (place / "asked.yaml").write_text(text)
    # a ledger without runs: `auto` goes on in the precision of those that there are
    _, out, _ = ask("plan", "asked", "--ledger", str(tmp_path / "empty"))
    assert ("note    bf16, in which this processor takes longer than in fp32" in out) == told


def test_more_test_concepts_than_there_are(ask: Ask, place: Path) -> None:
    text = (place / "studies/first.yaml").read_text().replace("n_id: 20", "n_id: 20, test_concepts: 21")
    (place / "many.yaml").write_text(text)
    code, _, err = ask("plan", "many")
    assert (code, "at most n_id, the in-domain concepts that are held out, 20" in err) == (2, True)


def test_a_report_ends_with_what_it_comes_to(ask: Ask) -> None:
    code, out, err = ask("report", "first")
    assert code == 0
    assert out.rstrip().splitlines()[-1].startswith("in short  ")
    assert "across tasks" not in out
    assert err.splitlines()[-1] == "report  reports/first/report.html"


def test_a_table_across_tasks_that_there_cannot_be_says_what_it_takes(ask: Ask) -> None:
    code, out, err = ask("report", "first", "--across")
    assert code == 0
    assert "across tasks" not in out  # the study has a task alone
    assert (
        "across  no table over all tasks: it takes two arms of a claim on one backbone, with two seeds of" in err
    )
    assert "across" not in ask("report", "first")[2]


def test_two_studies_side_by_side(ask: Ask) -> None:
    code, out, _ = ask("report", "first", "second")
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines() if " B1 - B0 " in line] == [
        ["first", "H1"],
        ["second", "H1"],
    ]
    code, out, _ = ask("report", "first", "second", "--json")
    assert set(json.loads(out)) == {"first", "second"}
    assert ask("report", "first", "second", "--methods")[0] == 2


def test_studies_of_one_name_are_not_told_apart_and_are_refused(ask: Ask, place: Path) -> None:
    (place / "other").mkdir()
    (place / "other" / "first.yaml").write_text((place / "studies" / "first.yaml").read_text())
    for form in ((), ("--json",)):
        code, out, said = ask("report", "first", "other/first.yaml", *form)
        assert (code, out) == (2, "")
        assert "first.yaml and other/first.yaml: both are first\n  accepted: studies of different names" in said


@pytest.mark.parametrize(
    "words",
    [
        "second --png",
        "second --price 3",
        "second --out elsewhere",
        "--methods --passport p.zip",
        "--methods --out elsewhere",
        "--methods --json",
        "--json --format latex",
        "--json --across",
    ],
)
def test_an_option_that_nothing_would_come_of_is_refused(ask: Ask, place: Path, words: str) -> None:
    code, out, said = ask("report", "first", *words.split())
    assert (code, out) == (2, "")
    assert re.search(r"^.*--\w+: nothing comes of it with .*\n  accepted: one without the other", said, re.M)
    assert not (place / "elsewhere").exists()


def test_the_methods_paragraph(ask: Ask) -> None:
    code, out, _ = ask("report", "first", "--methods")
    assert code == 0
    assert "Each trained recipe (B1 and B1-noHN) was run with 6 random seeds (0 to 5)" in out
    assert "B0 is not trained and stands beside every seed with one result" in out
    assert "two one-sided tests" in out
    assert "Holm" in out
    assert "torch 2." in out
    assert "on tiny" in out  # a folder by its name: where it lies is no one's business


def test_ls(ask: Ask, place: Path) -> None:
    code, out, _ = ask("ls")
    assert code == 0
    assert re.search(r"^studies/first.yaml +20\d\d-.*see first\?$", out, re.M)
    assert re.search(r"^studies/slips.yaml +not run +What", out, re.M)
    found = json.loads(ask("ls", "--json")[1])
    assert [one["runs"] for one in found["runs"]] == [1 + 2 * 2 * 6]
    assert found["bytes"] > 0


def test_ls_names_what_is_damaged(ask: Ask, place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "ledger", tmp_path / "ledger")
    run_id = min(Ledger(place / "ledger").ids())
    (tmp_path / "ledger" / run_id / "result.json").unlink()
    code, out, _ = ask("ls", "--ledger", str(tmp_path / "ledger"))
    assert code == 0
    assert out.endswith(f"\ndamaged: {run_id}; what mends it:  semray audit\n")


def test_ls_names_a_study_whose_declaration_is_damaged(ask: Ask, place: Path, tmp_path: Path) -> None:
    """It ran, and `semray plan` will refuse it: whether its file is here, or nothing of it is."""
    shutil.copytree(place / "ledger", tmp_path / "ledger")
    (tmp_path / "ledger/.declared/first.json").write_text("{")
    (tmp_path / "ledger/.declared/a%2Fb.json").write_text("{")
    code, out, _ = ask("ls", "--ledger", str(tmp_path / "ledger"))
    assert code == 0
    assert re.search(r"^studies/first.yaml +damaged +.*see first\?$", out, re.M)
    assert re.search(r"^a/b +damaged +its file is elsewhere$", out, re.M)
    assert out.endswith("\ndamaged: studies/first.yaml, a/b; what mends it:  semray audit\n")
    found = json.loads(ask("ls", "--json", "--ledger", str(tmp_path / "ledger"))[1])
    assert {one["study"] for one in found["studies"] if one["damaged"]} == {"studies/first.yaml", "a/b"}


def test_ls_looks_for_no_file_of_a_confirmation(ask: Ask, place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "ledger", tmp_path / "ledger")
    Ledger(tmp_path / "ledger").declare("first-confirmed", [])
    out = ask("ls", "--ledger", str(tmp_path / "ledger"))[1]
    assert re.search(r"^first-confirmed +20\d\d-\S+ +the confirmation of a search of first$", out, re.M)


def test_a_printed_command_names_the_ledger_without_detours(ask: Ask, place: Path, tmp_path: Path) -> None:
    """But for one through a link, behind which `..` is another folder."""
    (tmp_path / "y").mkdir()
    code, out, _ = ask("plan", "slips", "--ledger", f"{tmp_path}/y/../b/ledger")
    assert (code, out.splitlines()[-1].endswith(f" --ledger {tmp_path}/b/ledger")) == (0, True)
    assert "--ledger" not in ask("plan", "first", "--ledger", "studies/../ledger")[1]
    (tmp_path / "far" / "z").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "z")
    out = ask("plan", "slips", "--ledger", f"{tmp_path}/link/../b")[1]
    assert out.splitlines()[-1].endswith(f" --ledger {tmp_path}/link/../b")


@pytest.mark.timeout(30)
def test_ls_among_files_that_are_no_studies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pipe is not waited for, nothing nested without end is followed, and no question acts on the terminal."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.yaml")
    Path("folder.yaml").mkdir()
    Path("deep.yaml").write_text("question: " + "[" * 10_000)
    Path("odd.yaml").write_text('question: "Is it \\e[2J \\u202e so?"')
    assert main(["ls"]) == 0
    out = capsys.readouterr().out
    assert printable(out, keep="\n") == out
    assert [line.split()[0] for line in out.splitlines() if ".yaml" in line] == ["odd.yaml"]


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (999_400, "999 kB"),
        (999_600, "1 MB"),
        (12_345_678, "12.3 MB"),
        (2.5e12, "2.5 TB"),
        (2.5e16, "25,000 TB"),
    ],
)
def test_room_is_told_without_powers_of_ten(count: float, said: str) -> None:
    assert in_bytes(count) == said


@pytest.mark.parametrize(("asked", "of"), [("create", ".drivers/"), ("write", "/seal.json")])
def test_prune_on_a_full_disk_says_what_helps(
    ask: Ask, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str, of: str
) -> None:
    """Neither for a lock nor for a seal there is room: all models stay, and all entries are whole."""
    written = getattr(LocalStorage, asked)

    def full(storage: LocalStorage, name: str, content: bytes, *, durable: bool = True) -> None:
        if of in name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written(storage, name, content, durable=durable)

    ledger = tmp_path / "ledger"
    shutil.copytree(place / "ledger", ledger)
    models = {*ledger.glob("*/model")}
    words = ("prune", "first", "--models", "none", "--yes", "--ledger", str(ledger))
    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, asked, full)
        code, _, err = ask(*words)
    assert code == 2
    assert err.endswith(
        f"ledger {ledger}: No space left on device: to give room back takes a little first\n"
        "  accepted: the same command once more, after some 100 kB were freed there by other means\n"
    )
    assert {*ledger.glob("*/model")} == models
    assert ask("audit", "--ledger", str(ledger))[0] == 0
    assert ask(*words)[0] == 0
    assert {*ledger.glob("*/model")} < models


def test_export_by_arm_and_seed_with_a_card(ask: Ask, tmp_path: Path) -> None:
    code, _, err = ask("export", "B1", str(tmp_path / "b1"), "--seed", "3")
    assert (code, "2 runs there" in err) == (2, True)  # both studies have one
    code, out, _ = ask("export", "B1", str(tmp_path / "b1"), "--seed", "3", "--study", "first")
    assert code == 0, out
    card = (tmp_path / "b1/README.md").read_text()
    head = yaml.safe_load(card.split("---")[1])
    assert head["library_name"] == "sentence-transformers"
    for part in (
        "# B1, seed 3",
        "| hard_negatives | True |",
        "| t2d/recall@10 | 0.",
        "- H1: B1 is better than B0",
        "SHA-256",
    ):
        assert part in card
    for asked, accepted in (
        (("B2", "3"), "B0, B1, B1-noHN"),
        (("B1", "99"), "--seed 0, 1, 2, 3"),
        (("B0", "3"), "a trained arm"),
    ):
        code, _, err = ask("export", asked[0], str(tmp_path / "b2"), "--seed", asked[1])
        assert (code, f"accepted: {accepted}" in err) == (2, True), err


def test_a_model_of_a_ledger_that_was_put_away_is_exported_to_be_written(ask: Ask, tmp_path: Path) -> None:
    """A copy of its modes made a draft into which no card could be put."""
    ledger = shutil.copytree("ledger", tmp_path / "ledger")
    for model in ledger.glob("*/model"):
        for place in (*model.rglob("*"), model):
            place.chmod(0o555 if place.is_dir() else 0o444)
    words = ("export", "B1", str(tmp_path / "b1"), "--seed", "3", "--study", "first", "--ledger", str(ledger))
    assert ask(*words)[0] == 0
    assert all(place.stat().st_mode & stat.S_IWUSR for place in (tmp_path / "b1").rglob("*"))


def test_the_model_of_a_family_that_is_not_installed_is_refused_in_words(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = next(path.parent.name for path in Path("ledger").glob("*/model"))
    monkeypatch.delitem(FAMILIES, "concept")
    code, _, err = ask("export", run, str(tmp_path / "b1"))
    assert (code, "family = concept: no package here brings it" in err) == (2, True), err
    assert not (tmp_path / "b1").exists()


@pytest.mark.parametrize("there", [False, True])
def test_an_export_that_ends_midway_leaves_no_part_of_a_model(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    """Of a full disk nothing is left but an empty folder; what is killed before leaves a draft that nothing opens."""
    target, midway = tmp_path / "b1", []

    def full(*_: object) -> str:
        midway.extend(path.name for path in target.iterdir())
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if there:
        target.mkdir()
    words = ("export", "B1", str(target), "--seed", "3", "--study", "first")
    with monkeypatch.context() as patch:
        patch.setattr("orchestration.commands.entries.model_card", full)
        assert ask(*words)[0] == 2
    assert [name[:7] for name in midway] == [".draft-"]
    assert [*target.iterdir()] == []
    assert ask(*words)[0] == 0
    assert sorted(path.name for path in target.iterdir()) == ["README.md", "config.json"]


def test_files_of_a_ledger_honour_the_umask(place: Path) -> None:
    """A colleague may read what others of the ledger's folder may: models are no secret of who trained them."""
    mask = os.umask(0)
    os.umask(mask)
    files = [path for path in (place / "ledger").rglob("*") if path.is_file() and ".lock" not in path.name]
    assert any(path.parent.name == "model" for path in files)
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o666 & ~mask}


def test_init_writes_a_study_from_answers(ask: Ask, place: Path) -> None:
    typed = f"nosuch\nconcept\n{place / 'tiny'}\nhard_negatives\nfalse\ntrue\nt2d/recall@10\n"
    code, out, err = ask("init", "study", "mine", typed=typed)
    assert (code, out) == (0, "mine.yaml is written; next:  semray plan mine.yaml\n")
    assert "nosuch: accepted: " in err
    study = read_study(place / "mine.yaml")
    assert (study.family, [vars(arm)["hard_negatives"] for arm in study.arms.values()]) == (
        "concept",
        [False, True],
    )
    assert study.compare[0].metric == "t2d/recall@10"
    page = re.search(r"docs/\w+\.md", (place / "mine.yaml").read_text())
    assert page is not None
    assert (ROOT / page[0]).is_file()
    assert ask("init", "study", "mine")[0] == 2  # nothing is overwritten
    options = ["--family", "san", "--backbone", "tiny", "--setting", "train", "--metric", "sts/STS-B/spearman"]
    assert ask("init", "study", "other", *options)[0] == 0
    assert [settings.train for settings in read_study(place / "other.yaml").arms.values()] == [False, True]


@pytest.mark.parametrize(("family", "own"), [("concept", "t2d/recall@10"), ("cale", "spcd/test/ba_all")])
def test_init_asks_for_a_score_of_the_family_first(ask: Ask, place: Path, family: str, own: str) -> None:
    """Of hundreds of scores the question shows a few, the family's own before those of the field."""
    code, _, err = ask("init", "study", f"by-{family}", "--family", family, typed="\n" * 3)
    assert code == 0
    question = err[err.index("Which score decides?") :].splitlines()[0]
    assert question.startswith(f"Which score decides? ({own}, ")
    assert re.search(r" and \d{3} more\) \[", question)
    assert len(question) < 1_000
    assert read_study(place / f"by-{family}.yaml").compare[0].metric == own


def test_init_asks_until_it_has_a_value_and_says_what_the_file_lacks(ask: Ask, place: Path) -> None:
    """A treatment has no default; a setting that cannot be says so, and the file is not called ready."""
    typed = "concept\ntiny\nreadout\n\n\nweighted\n\n"
    assert ask("init", "study", "readouts", typed=typed)[0] == 0
    assert [arm.readout for arm in read_study(place / "readouts.yaml").arms.values()] == ["mean", "weighted"]
    code, out, err = ask("init", "study", "script", "--family", "command", typed="tiny\nseed\n1\n2\n\n")
    assert (code, out.count("but for what is said above")) == (0, 1)
    assert "arms.treatment.seed = 2\n  accepted: absent; {seed} is filled in for every run" in err
    refused = ask("init", "study", "still", "--family", "frozen", "--backbone", "tiny", "--setting", "train")
    assert refused[2].startswith("--setting train\n  accepted: readout")  # nothing else could stand there


def test_status_ends_with_how_many_and_an_empty_ledger_has_no_arm_to_export(ask: Ask, tmp_path: Path) -> None:
    lines = ask("status", "first")[1].splitlines()
    assert (len(lines), lines[-1]) == (14, "first   done 13   failed 0   left 0")
    code, _, err = ask("export", "B1", str(tmp_path / "b1"), "--seed", "0", "--ledger", str(tmp_path / "empty"))
    assert code == 2
    assert "  accepted: an arm of a finished run; there is none yet\n" in err


def test_a_bad_indent_shows_both_lines(ask: Ask, place: Path) -> None:
    (place / "bent.yaml").write_text("question: why\nfamily: concept\n   seeds: 8\n")
    code, _, err = ask("plan", "bent")
    assert code == 2
    assert "     2 | family: concept\n     3 |    seeds: 8\n" in err


def test_a_folder_that_is_not_there(ask: Ask, place: Path) -> None:
    text = (place / "studies/first.yaml").read_text().replace(str(place / "tiny"), "./tyni")
    (place / "typo.yaml").write_text(text)
    code, _, err = ask("plan", "typo")
    assert code == 2
    assert f"backbones: ./tyni: no such folder; near it: {place / 'tiny'}" in err
    assert "hf download" not in err
