"""A search of a recipe for sentence-transformers' own trainer, by rows that are held out, and its confirmation."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from orchestration.commands.cli import main
from orchestration.families.registry import family
from orchestration.ledger.ledger import Ledger
from orchestration.reading.read_search import space_of
from orchestration.reading.read_study import read_study
from orchestration.study.errors import StudyError
from semray.testing import WORDS
from tests.tiny import tiny_backbone

STUDY = """\
question: Which rate and which scale?
family: sentence_transformers
backbones: [PLACE/tiny]
seeds: 2
data:
  datasets:
    mine: {source: PLACE/pairs.tsv, columns: [anchor, positive], hold: {test: 0.2, dev: 0.2}}
train:
  max_steps: 100
  per_device_train_batch_size: 16
  learning_rate: 1.0e-6
  loss: {name: MultipleNegativesRankingLoss, scale: 20.0}
arms:
  base: {train: false}
  mnrl: {}
evaluate: [held/mine]
compare:
  - {claim: H1, treatment: mnrl, control: base, metric: held/mine/mrr, expect: better}
search:
  space: sentence_transformers
  arms: [mnrl]
  dimensions: {learning_rate: [1.0e-6, 1.0e-4], loss.scale: [20.0, 40.0]}
  sampler: grid
  trials: 4
  objective: {metric: dev/held/mine/mrr, mode: max}
  seeds: [100, 101]
  stop_early: {rule: median, at: [80], least: 1}
resources: {lanes: 1}
"""


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / "cache"))
    tiny_backbone(tmp_path / "tiny")
    rows = [f"a {a} is\tthe {b} of {a}\n" for a, b in pairwise(WORDS)]
    (tmp_path / "pairs.tsv").write_text("anchor\tpositive\n" + "".join(rows))
    (file := tmp_path / "mine.yaml").write_text(STUDY.replace("PLACE", str(tmp_path)))
    return file


def test_a_recipe_is_searched_and_its_best_point_confirmed(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["search", str(study), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    points = {one["number"]: one["point"] for one in found["points"]}
    assert points[0] == {"learning_rate": 1e-6, "loss.scale": 20.0}  # the arm itself
    tried = {(point["learning_rate"], point["loss.scale"]) for point in points.values()}
    assert tried == {(rate, scale) for rate in (1e-6, 1e-4) for scale in (20.0, 40.0)}
    assert points[found["best"]]["learning_rate"] == 1e-4
    assert main(["confirm", str(study), "--json"]) == 0
    verdicts = json.loads(capsys.readouterr().out)["verdicts"]
    best = f"mnrl@{found['best']}"
    assert [(one["treatment"], one["control"]) for one in verdicts] == [(best, "mnrl"), (best, "base")]
    assert all(one["n_seeds"] == 2 for one in verdicts)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "loss.scale: [20.0, 40.0]",
            "loss.margin: all",
            "with a value in the arm, where the search starts: loss: {…, margin: …}",
        ),
        (
            "[20.0, 40.0]",
            "[30.0, 40.0]",
            "bounds or values that hold 20.0, where arms.mnrl is: a search starts there",
        ),
        (", dev: 0.2", "", "dev/paws/ap; dev/held/mine comes with `dev` in `hold:` under data.datasets.mine"),
        (
            "dev/held/mine/mrr, mode: max",
            '"mean(dev/sts/STS-B, dev/held/yours)", mode: max, confirm: held/mine/mrr',
            "; held/NAME, for one of data.datasets that has `hold:`: mine",
        ),
        ("at: [80]", "at: [80, 100]", "steps below 100, which mnrl is trained for"),
        ("loss.scale:", "loss.scal:", "loss.scale"),
        (
            "scale: 20.0}",
            "scale: 200.0}",
            "search.dimensions.loss.scale is 200.0 in arms.mnrl\n"
            "  accepted: dimensions without this one, or an arm within 5.0 to 100.0 (log)",
        ),
    ],
)
def test_what_cannot_be_searched_is_refused(old: str, new: str, said: str, study: Path) -> None:
    study.write_text(study.read_text().replace(old, new))
    with pytest.raises(StudyError) as refused:
        read_study(study)
    assert said in str(refused.value)


def test_a_grid_asks_for_lists_of_what_moves_alone(study: Path) -> None:
    """The arm's loss has neither temperature nor margin."""
    all_of_it = study.read_text().replace(
        "  dimensions: {learning_rate: [1.0e-6, 1.0e-4], loss.scale: [20.0, 40.0]}\n", ""
    )
    study.write_text(all_of_it)
    with pytest.raises(StudyError, match=r"each of learning_rate, weight_decay, loss\.scale$"):
        read_study(study)


def test_a_data_set_that_is_called_as_an_argument_moves_nothing(study: Path) -> None:
    """Its loss stands where an argument of one loss for all would."""
    text = study.read_text().replace("mine: {source", "scale: {source").replace("held/mine", "held/scale")
    text = text.replace(
        "{name: MultipleNegativesRankingLoss, scale: 20.0}", "{scale: MultipleNegativesRankingLoss}"
    )
    study.write_text(text)
    with pytest.raises(StudyError, match=r"loss\.scale changes nothing in the arms searched"):
        read_study(study)
    study.write_text(
        text.replace("{learning_rate: [1.0e-6, 1.0e-4], loss.scale: [20.0, 40.0]}", "null").replace("grid", "tpe")
    )
    found = read_study(study)
    assert found.search is not None
    moving = {one.name for one in space_of(found.search, family(found.family), found.arms["mnrl"])}
    assert "learning_rate" in moving
    assert "loss.scale" not in moving


def test_what_no_run_of_a_later_search_could_train_is_told_before_the_first_starts(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A batch of 16 is more than the second arm has rows."""
    (tmp_path / "few.tsv").write_text("one\ttwo\n" + "".join(f"{word}\t{word} {word}\n" for word in WORDS[:12]))
    text = study.read_text()
    for old, new in (
        ("train:\n  max", "    few: {source: few.tsv, columns: [one, two]}\ntrain:\n  max"),
        ("train_batch_size: 16", "train_batch_size: 8"),
        ("mnrl: {}", "mnrl: {datasets: [mine]}\n  other: {datasets: [few]}"),
        ("arms: [mnrl]", "arms: [mnrl, other]"),
        ("learning_rate: [1.0e-6, 1.0e-4]", "per_device_train_batch_size: [8, 16]"),
    ):
        text = text.replace(old, new)
    study.write_text(text)
    assert main(["search", str(study)]) == 2
    assert "arms.other (search.dimensions.per_device_train_batch_size: 16)" in capsys.readouterr().err
    assert not Ledger(tmp_path / "ledger").ids()
