"""The commands that only show load no library that trains: they answer while torch would still be on its way."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestration.commands.cli import main
from orchestration.families.registry import FAMILIES, WRITTEN
from orchestration.ledger.ledger import Ledger
from orchestration.plan.held import planned
from orchestration.plan.plan import extend
from orchestration.reading.read_study import read_study
from orchestration.study.run import Run
from tests.corpora.conftest import write_small_wordnet
from tests.finished_study import fill
from tests.tiny import tiny_backbone

STUDY = """\
question: Who looks without torch?
family: concept
backbones: [{backbone}]
seeds: {{start: 3, max: 5}}
data: {{wordnet: {wordnet}, n_hh: 20, n_id: 20, n_dev: 10}}
arms:
  B0: {{train: false}}
  B1: {{hard_negatives: true}}
  B1-noHN: {{hard_negatives: false}}
evaluate: [t2d, stress, geometry]
compare:
  - {{claim: H1, treatment: B1, control: B0, metric: t2d/recall@10, expect: better}}
  - {{claim: H3b, treatment: B1, control: B1-noHN, metric: t2d/recall@10, expect: equivalent, margin: 0.03}}
"""
HEAVY = ["torch", "transformers", "deepspeed", "ray", "mlflow", "sentence_transformers", "datasets", "sklearn"]
LOOKING = """
import contextlib, io, json, sys
from orchestration.commands.cli import main
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as said:
        code = main(words)
    print(json.dumps([words[0], code, [name for name in json.loads(sys.argv[2]) if name in sys.modules]]))
    assert said.getvalue()
"""
INTERRUPTED_AT = """
import os, signal, sys
from orchestration.commands import waiting
from orchestration.commands.cli import main
waiting.SILENT_SECONDS = 600.0  # on a full machine an import takes longer than a second, which is told
class Interrupt:
    def find_spec(self, name, path, target=None):
        if name == moment:
            os.kill(os.getpid(), signal.SIGINT)
moment = sys.argv[1]
signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a terminal, also where these tests run in the background
sys.meta_path.insert(0, Interrupt())
sys.exit(main(sys.argv[2:]))
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study whose runs are all in the ledger, with scores made up."""
    folder = tmp_path_factory.mktemp("looks")
    write_small_wordnet(folder / "wordnet")
    study = folder / "looks.yaml"
    study.write_text(STUDY.format(backbone=tiny_backbone(folder / "tiny"), wordnet=folder / "wordnet"))
    ledger = Ledger(folder / "ledger")
    fill(ledger, planned(read_study(study), ledger).runs)
    return folder


def test_looking_loads_nothing_that_trains(place: Path) -> None:
    study, ledger = str(place / "looks.yaml"), ["--ledger", str(place / "ledger")]
    report = ["report", study, *ledger, "--out", str(place / "out"), "--passport", str(place / "passport.zip")]
    words = [
        ["plan", study, *ledger],
        ["plan", study, "--json", *ledger],
        ["status", study, *ledger],
        ["why", study, "H1", *ledger],
        report,
        ["verify", str(place / "passport.zip")],
    ]
    done = subprocess.run(
        [sys.executable, "-c", LOOKING, json.dumps(words), json.dumps(HEAVY)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [[word[0], 0, []] for word in words]
    assert (place / "out" / "report.html").is_file()


def test_what_a_script_said_last_acts_on_no_screen_and_a_row_stays_one(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study, ledger = place / "looks.yaml", Ledger(tmp_path / "ledger")
    run, *others = planned(read_study(study), ledger).runs
    fill(ledger, others)
    ledger.fail(run, ledger.lease(run.id), "CommandRefused: \x1b[31mno\n  accepted: a yes", "", final=True)
    said = {}
    for word in ("plan", "status", "report"):
        out = ["--out", str(tmp_path / "out")] if word == "report" else []
        assert main([word, str(study), "--ledger", ledger.url, *out]) == 0
        said[word] = capsys.readouterr().out
        assert r"CommandRefused: \x1b[31mno" in said[word]
    assert "  accepted: a yes   " in said["plan"].splitlines()[3]
    for word in ("status", "report"):
        assert r"CommandRefused: \x1b[31mno; accepted: a yes" in said[word]


def test_a_growing_study_is_not_done_while_a_claim_is_open(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Plan and status count the seeds that were added, and tell of the one that `run` would add next."""
    study, ledger = place / "looks.yaml", Ledger(tmp_path / "ledger")
    first = planned(read_study(study), ledger)
    arms = {(run.arm, run.backbone) for run in first.runs if run.seed is not None}

    def told(*words: str) -> list[str]:
        assert main([*words, str(study), "--ledger", ledger.url]) == 0
        return capsys.readouterr().out.splitlines()

    def ids(runs: Sequence[Run]) -> list[str]:
        return [run.id for run in runs]

    def as_json() -> tuple[list[str], list[str]]:
        held, standing = (json.loads("\n".join(told(word, "--json"))) for word in ("plan", "status"))
        assert standing["next_seed"] == held["next_seed"]
        assert [run["id"] for run in standing["runs"]] == [run["id"] for run in held["runs"]]
        return [run["id"] for run in held["runs"]], [run["id"] for run in held["next_seed"]]

    fill(ledger, first.runs)
    more = "open    claims on B1, B1-noHN: `semray run` adds seed 3, and more up to 4 while they stay open"
    assert told("plan")[-2:] == [more, f"next    semray run {study} --ledger {ledger.url}"]
    assert told("status")[-2:] == ["looks   done 7   failed 0   left 0", more]
    fourth = extend(first, [3], arms)
    assert as_json() == (ids(first.runs), ids(fourth.runs[7:]))
    fill(ledger, fourth.runs[7:8])
    counts = told("plan")[1]
    assert counts.startswith("done 8   left 1   about")
    assert counts.endswith("(from 8 finished runs)")
    assert told("plan")[-1] == f"next    semray run {study} --ledger {ledger.url}"
    assert told("status")[-1] == "looks   done 8   failed 0   left 1"
    fill(ledger, fourth.runs[8:])  # with four seeds both claims are decided
    assert told("plan")[0].startswith("looks   9 runs = 2 arms x 4 seeds x 1 backbone")
    assert told("plan")[-1] == f"next    semray report {study} --ledger {ledger.url}"
    assert told("status")[-1] == "looks   done 9   failed 0   left 0"
    assert as_json() == (ids(fourth.runs), [])


def test_run_begins_with_the_plan_of_the_seeds_that_were_added(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `plan` does. It then judges seed by seed from the first ones, for which no lane starts."""
    study, ledger = place / "looks.yaml", Ledger(tmp_path / "ledger")
    first = planned(read_study(study), ledger)
    fill(ledger, extend(first, [3], {(run.arm, run.backbone) for run in first.runs if run.seed is not None}).runs)
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / "cache"))
    assert main(["run", str(study), "--ledger", ledger.url, "--json"]) == 0
    said = capsys.readouterr().err
    assert said.startswith("looks   9 runs = 2 arms x 4 seeds x 1 backbone")
    assert "still open: H1, H3b; seed 3 for their arms" in said


def test_run_finds_the_last_mistakes_before_it_adds_a_seed(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As before any other runs: here all that were planned are in the ledger."""
    study, ledger = tmp_path / "large.yaml", Ledger(tmp_path / "ledger")
    study.write_text((place / "looks.yaml").read_text().replace("n_hh: 20", "n_hh: 100000"))
    fill(ledger, planned(read_study(study), ledger).runs)
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / "cache"))
    assert main(["run", str(study), "--ledger", ledger.url]) == 2
    assert f"{study}: arms.B1: train.syn_weight = 1" in capsys.readouterr().err


def test_of_a_growing_study_the_last_seed_is_told_as_the_last(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study, ledger = tmp_path / "short.yaml", Ledger(tmp_path / "ledger")
    study.write_text((place / "looks.yaml").read_text().replace("max: 5", "max: 4"))
    fill(ledger, planned(read_study(study), ledger).runs)
    assert main(["status", str(study), "--ledger", ledger.url]) == 0
    last = "open    claims on B1, B1-noHN: `semray run` adds seed 3, the last one"
    assert capsys.readouterr().out.splitlines()[-1] == last


@pytest.mark.parametrize("moment", ["commands.terminal", "commands.show", "verdicts.growing"])
def test_ctrl_c_while_the_command_is_still_being_imported(moment: str, place: Path) -> None:
    words = ["status", str(place / "looks.yaml"), "--ledger", str(place / "ledger")]
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT, f"orchestration.{moment}", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130
    assert done.stderr == "stopped; finished runs are kept, the same command goes on from here\n"


@pytest.mark.parametrize("name", sorted(FAMILIES | WRITTEN))
def test_to_know_a_family_is_to_load_nothing_that_trains(name: str) -> None:
    """Its settings, data, tasks, metrics and fingerprint are known without."""
    code = "import json, sys; from orchestration.families.registry import family; family(sys.argv[1]);"
    code += "print([name for name in json.loads(sys.argv[2]) if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code, name, json.dumps(HEAVY)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
