"""`make bench` names results that are older than the code they measured."""

from __future__ import annotations

import importlib
import subprocess
from pathlib import Path

import pytest


def commit(root: Path, at: str, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    date = {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at, "PATH": "/usr/bin:/bin:/usr/local/bin"}
    for words in (["add", "-A"], [*who, "commit", "-q", "-m", at]):
        subprocess.run(["git", *words], cwd=root, check=True, env=date)


def test_a_result_is_named_when_its_code_changed_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """fast.py imports one module, which changes after the result; slow.py another, of which the docstring does;
    parted.py the first, by a part of its own."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1] / "benchmarks"))
    outdated = importlib.import_module("outdated")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert list(outdated.last_changes(tmp_path)) == []
    scripts = {
        "benchmarks__fast.py": "def go():\n    from trainers.x import step\n",
        "benchmarks__slow.py": 'import evaluators.y\nNAME = "quite_slow"\n',
        "benchmarks__slow_start.py": "import trainers.x\n",
        "benchmarks__parted.py": "from parts import one\n",
        "benchmarks__parts__one.py": "import trainers.x\n",
    }
    modules = {"trainers__x.py": "step = 1\n", "evaluators__y.py": "\n"}
    commit(tmp_path, "2026-01-01T00:00:00Z", **scripts, **modules)
    names = (
        "fast",
        "fast_large",
        "fast-on-a-card",
        "slow_fp32",
        "slow_start_fp32",
        "quite_slow",
        "parted",
        "nobodys",
    )
    commit(tmp_path, "2026-01-02T00:00:00Z", **{f"benchmarks__results__{name}.json": "{}" for name in names})
    commit(tmp_path, "2026-01-03T00:00:00Z", **{"trainers__x.py": "step = 2\n"})
    later = {"trainers__x.py": '"""Said anew."""\n\nstep = 2  # so\n', "evaluators__y.py": '"""Nothing."""\n'}
    commit(tmp_path, "2026-01-04T00:00:00Z", **later)
    place = tmp_path / "benchmarks"
    texts = {path: path.read_text() for path in place.glob("*.py")}
    results = [place / "results" / f"{name}.json" for name in names]
    said = list(outdated.told(results, texts, outdated.last_changes(tmp_path), tmp_path))
    late = "1 of the 2 files that fast.py measures are newer, trainers/x.py of 2026-01-04 00:00 the last"
    assert said == [
        f"fast: of 2026-01-02 00:00; {late}",
        f"fast_large: of 2026-01-02 00:00; {late}",
        f"fast-on-a-card: of 2026-01-02 00:00; {late}",
        f"slow_start_fp32: of 2026-01-02 00:00; {late.replace('fast', 'slow_start')}",
        f"parted: of 2026-01-02 00:00; {late.replace('2 files', '3 files').replace('fast', 'parted')}",
        "nobodys: no script here writes it",
    ]


def test_a_study_rests_on_its_file_and_on_what_its_family_trains_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two studies of two families, one file's name the beginning of the other's; the trainer of one changes."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1] / "benchmarks"))
    outdated = importlib.import_module("outdated")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    runs = 'name = "_".join(filter(None, ("study", name)))\n'
    studies = {"studies__tiny.yaml": "family: san\n", "studies__tiny_pair.yaml": "family: cale\n"}
    code = {"trainers__san__fit.py": "", "trainers__cale__fit.py": "", "trainers__engine__loop.py": ""}
    commit(tmp_path, "2026-01-01T00:00:00Z", **{"benchmarks__study_runs.py": runs}, **studies, **code)
    names = ("study_tiny", "study_tiny_pair", "study_tiny_pair_fp32", "study_gone")
    commit(tmp_path, "2026-01-02T00:00:00Z", **{f"benchmarks__results__{name}.json": "{}" for name in names})
    commit(tmp_path, "2026-01-03T00:00:00Z", **{"trainers__cale__fit.py": "steps = 2\n"})
    place = tmp_path / "benchmarks"
    texts = {path: path.read_text() for path in place.glob("*.py")}
    results = [place / "results" / f"{name}.json" for name in names]
    said = list(outdated.told(results, texts, outdated.last_changes(tmp_path), tmp_path))
    late = (
        "1 of the 4 files that study_runs.py measures are newer, trainers/cale/fit.py of 2026-01-03 00:00 the last"
    )
    assert said == [f"{name}: of 2026-01-02 00:00; {late}" for name in ("study_tiny_pair", "study_tiny_pair_fp32")]
