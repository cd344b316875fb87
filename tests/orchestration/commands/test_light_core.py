"""Without the extra `train` semray judges, and says of the rest in words what it needs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from orchestration.study.extras import TRAIN

ROOT = Path(__file__).resolve().parents[3]
JUDGING = ["judge", "scores.csv", "--treatment", "B", "--control", "A", "--metric", "acc"]
WITHOUT = f"""
import sys
from importlib.machinery import PathFinder
class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.split(".")[0] in {[name.replace("-", "_") for name in TRAIN]!r} else PathFinder.find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(PathFinder)] = Without
"""
ASKING = """
import json
from orchestration.commands.cli import main
for words in json.loads(sys.argv[1]):
    print(words[0], main(words), flush=True)
"""
STUDY = """\
question: Is it shown?
family: command
seeds: 2
data: {watch: [train.py], metrics: {acc: higher}}
train: {run: [python, train.py, "{seed}", "{x}", "{out}"]}
arms: {A: {x: 1}, B: {x: 2}}
evaluate: [scores]
compare:
  - {claim: H1, treatment: B, control: A, metric: scores/acc, expect: better}
"""
FROM_PYTHON = """
import pandas, semray
scores = pandas.read_csv("scores.csv")
claim = {"claim": "H1", "treatment": "B", "control": "A", "metric": "acc", "expect": "better"}
found = semray.judge(scores, compare=[claim])
assert found.findings[0].verdict.verdict == "better"
assert "<iframe" in found._repr_html_()
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table of scores and a study."""
    folder = tmp_path_factory.mktemp("light")
    rows = [
        f"{arm},{seed},acc,{base + seed / 1000}" for arm, base in (("A", 0.5), ("B", 0.6)) for seed in range(8)
    ]
    (folder / "scores.csv").write_text("\n".join(["arm,seed,metric,score", *rows]) + "\n")
    (folder / "asked.yaml").write_text(STUDY)
    (folder / "train.py").write_text("")
    return folder


def asked(place: Path, *commands: list[str]) -> tuple[dict[str, int], str]:
    """The exit code of every command in a process without the extra, and what they said on stderr."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT + ASKING, json.dumps(commands)],
        capture_output=True,
        text=True,
        check=False,
        cwd=place,
    )
    assert done.returncode == 0, done.stderr
    return {word: int(code) for word, code in re.findall(r"^([\w-]+) (\d)$", done.stdout, re.M)}, done.stderr


def test_what_judges_works_without_the_extra(place: Path) -> None:
    codes, said = asked(
        place,
        [*JUDGING, "--passport", "p.json"],
        ["verify", "p.json"],
        ["check-claim", "76.25", "77.05", "--like", "simcse-bert-base", "--seeds", "1"],
        ["plan", "asked.yaml"],
        ["status", "asked.yaml"],
        ["gate", "asked.yaml", "H1"],
    )
    assert codes == {"judge": 0, "verify": 0, "check-claim": 0, "plan": 0, "status": 0, "gate": 3}
    assert "semray[train]" not in said


def test_what_trains_says_what_it_needs(place: Path) -> None:
    commands = [[word, "asked.yaml"] for word in ("run", "sync", "ui")]
    codes, said = asked(place, *commands, ["reproducible", "asked.yaml", "B"], ["doctor"])
    assert set(codes.values()) == {2}
    assert said.count('to get it: pip install "semray[train]"') == 5
    assert "asked.yaml: needs ray, which is not installed" in said
    assert "semray doctor: needs torch, which is not installed" in said
    assert "Traceback" not in said


def test_python_judges_a_frame_without_the_extra(place: Path) -> None:
    subprocess.run([sys.executable, "-c", WITHOUT + FROM_PYTHON], check=True, cwd=place)


def test_the_modules_are_those_that_the_project_declares() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [re.split(r"[\[<>=]", entry)[0] for entry in project["optional-dependencies"]["train"]]
    assert [name.replace("scikit-learn", "sklearn") for name in named] == list(TRAIN)


@pytest.mark.long
def test_a_fresh_environment_of_the_core_judges(place: Path, tmp_path: Path) -> None:
    """What pip installs for `semray` alone, by the pins: nothing that trains, and verdicts."""
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    install = ["-m", "pip", "install", "-q", "--disable-pip-version-check", "-c", ROOT / "constraints.txt", ROOT]
    done = subprocess.run([python, *install], capture_output=True, text=True, check=False)
    if "No matching distribution" in done.stderr:
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr
    words = [*JUDGING, "--out", str(tmp_path / "out")]
    subprocess.run([python.with_name("semray"), *words], check=True, cwd=place)
    absent = "import sys; from orchestration.study.extras import TRAIN, missing_packages as mp; assert mp() == list(TRAIN)"
    subprocess.run([python, "-c", absent], check=True, cwd=place)
