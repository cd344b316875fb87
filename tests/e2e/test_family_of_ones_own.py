"""The documented example, installed in an environment of its own: found, planned, run to a verdict, held to the
contract."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.tiny import tiny_backbone

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's folder, copied and installed without a network; `bin/python` above it has it, and no other does."""
    above = tmp_path_factory.mktemp("own")
    venv.create(above / "env", symlinks=True, with_pip=False)
    (site,) = (above / "env").glob("lib/python*/site-packages")
    here = [path for path in sys.path if path.endswith("site-packages")]
    (site / "all.pth").write_text(
        "\n".join([str(ROOT), *here]) + "\n"
    )  # what is installed here, and this checkout
    shutil.copytree(ROOT / "examples" / "family", above / "family")
    python = above / "env" / "bin" / "python"
    words = ["install", "-q", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-e"]
    subprocess.run([sys.executable, "-m", "pip", "--python", python, *words, above / "family"], check=True)
    tiny_backbone(above / "family" / "tiny", layers=2)
    return above / "family"


def asked(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command of that environment, in the example's folder."""
    hidden = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    settings = {"SEMRAY_CACHE": str(place / "cache")}
    return subprocess.run(
        [place.parent / "env" / "bin" / "python", *words],
        cwd=place,
        env=hidden | settings,
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_is_found_and_its_version_is_part_of_the_id(place: Path) -> None:
    text = (place / "study.yaml").read_text().replace("all-MiniLM-L6-v2", "tiny").replace("seeds: 8", "seeds: 2")
    (place / "small.yaml").write_text(text.replace("steps: 30", "steps: 4"))
    first = asked(place, "-m", "orchestration", "plan", "small.yaml", "--json")
    assert first.returncode == 0, first.stderr
    ids = [run["id"] for run in json.loads(first.stdout)["runs"]]
    assert len(ids) == 5  # two arms of two seeds, and the one that is not trained
    (record,) = (place.parent / "env").glob("lib/python*/site-packages/semray_partners-0.1.0.dist-info/METADATA")
    metadata = record.read_text()
    try:
        record.write_text(metadata.replace("Version: 0.1.0", "Version: 0.2.0"))
        second = asked(place, "-m", "orchestration", "plan", "small.yaml", "--json")
    finally:
        record.write_text(metadata)
    assert second.returncode == 0, second.stderr
    assert set(ids).isdisjoint(run["id"] for run in json.loads(second.stdout)["runs"])


def test_it_runs_to_a_verdict_on_a_real_ray(place: Path) -> None:
    done = asked(place, "-m", "orchestration", "run", "small.yaml", "--json")
    assert done.returncode == 0, done.stderr[-3000:]
    assert [verdict["claim"] for verdict in json.loads(done.stdout)] == ["H1", "H2"]


def test_its_task_is_every_familys(place: Path) -> None:
    """A study of encoders as they are names a task that the package brings."""
    text = """\
question: Does the readout notice word order?
family: frozen
backbones: [tiny]
arms: {mean: {}, cls: {readout: cls}}
evaluate: [partners/word_order]
compare:
  - {claim: H1, treatment: mean, control: cls, metric: partners/word_order/accuracy, expect: better}
"""
    (place / "order.yaml").write_text(text)
    done = asked(place, "-m", "orchestration", "plan", "order.yaml")
    assert done.returncode == 0, done.stderr
    assert "2 runs" in done.stdout


def test_it_passes_the_contract_that_it_was_given(place: Path) -> None:
    done = asked(place, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
    assert done.returncode == 0, done.stdout[-3000:]
    assert re.search(r"^\d+ passed(, \d+ warnings?)? in ", done.stdout, re.MULTILINE), done.stdout[
        -3000:
    ]  # none fails, none is skipped
