"""The run body: it trains on what was planned or not at all, and says what it had to cut."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from evaluators.tasks.pair_similarity import tasks
from orchestration.families.registry import execute
from orchestration.plan.plan import gather_facts, plan
from orchestration.reading.read_study import read_study
from orchestration.study.errors import StudyError
from orchestration.study.run import Job, Run
from tests.corpora.conftest import SMALL_EXCEPTIONS, small_entries, write_wordnet
from tests.results import outcome
from tests.tiny import WORDS, tiny_backbone
from trainers.engine.world import World

STUDY = """\
question: Is it what was planned?
family: concept
backbones: [{backbone}]
data: {{wordnet: {wordnet}, n_hh: 20, n_id: 20, n_dev: 10}}
arms:
  B0: {{train: false}}
  short: {{train: false, max_length: 4}}
evaluate: [t2d]
"""
PAIRS = """\
question: Is it what was planned?
family: difficulty
backbones: [{backbone}]
data: {{path: {folder}, tasks: [stsb]}}
arms:
  frozen: {{form: baseline}}
evaluate: [similarity]
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    (folder / "wordnet").mkdir()
    write_wordnet(folder / "wordnet", small_entries(), SMALL_EXCEPTIONS)
    backbone = tiny_backbone(folder / "tiny")
    (folder / "small.yaml").write_text(STUDY.format(backbone=backbone, wordnet=folder / "wordnet"))
    return folder


@pytest.fixture
def runs(place: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Run]:
    monkeypatch.setenv("SEMRAY_CACHE", str(place / "cache"))
    study = read_study(place / "small.yaml")
    return {run.arm: run for run in plan(study, gather_facts(study)).runs}


def test_what_was_planned_is_what_runs_and_cut_texts_are_told(runs: dict[str, Run]) -> None:
    told = {}
    for name, run in runs.items():
        result = outcome(execute(Job(runs=(run,)), World()))
        assert result.scores
        told[name] = result.notes
    assert told["B0"] == {}
    assert told["short"]["texts cut at max_length"] > 20


def test_development_data_are_scored_in_the_middle_of_training(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the steps asked for, on development data alone; the result and its id stay what they were."""
    monkeypatch.setenv("SEMRAY_CACHE", str(place / "cache"))
    trained = STUDY.replace("{{train: false, max_length: 4}}", "{{steps: 4, batch_size: 4, warmup: 1}}")
    (place / "trained.yaml").write_text(
        trained.format(backbone=place / "tiny", wordnet=place / "wordnet").replace("[t2d]", "[t2d, dev/t2d]")
    )
    study = read_study(place / "trained.yaml")
    run = next(run for run in plan(study, gather_facts(study)).runs if run.arm == "short")
    looked = replace(run, look_at=(2, 3))
    assert looked.id == run.id
    plain, result = (outcome(execute(Job(runs=(one,)), World())) for one in (run, looked))
    assert [score.value for score in result.scores] == [score.value for score in plain.scores]
    found = {point.step: set(point.figures) for point in result.curve if point.figures}
    assert found.keys() == {2, 3}
    assert all(name.startswith("dev/t2d/") for names in found.values() for name in names)
    assert not any(point.figures for point in plain.curve)


def test_another_backbone_of_that_name_is_refused(runs: dict[str, Run], place: Path, tmp_path: Path) -> None:
    other = tiny_backbone(tmp_path / "other", seed=1)
    with pytest.raises(StudyError, match="backbone") as raised:
        next(execute(Job(runs=(replace(runs["B0"], backbone=str(other)),)), World()))
    assert str(other) in str(raised.value)
    assert f"expected {runs['B0'].backbone_fingerprint}" in str(raised.value)


def test_another_corpus_of_that_name_is_refused(runs: dict[str, Run]) -> None:
    elsewhere = replace(runs["B0"], data={**runs["B0"].data, "n_id": 19})
    with pytest.raises(StudyError, match=r"rows of the task t2d(.|\n)*expected"):
        list(execute(Job(runs=(elsewhere,)), World()))
    trained = replace(elsewhere, seed=0, settings={**elsewhere.settings, "train": True, "steps": 1})
    with pytest.raises(StudyError, match=r"corpus of the concept family(.|\n)*expected"):
        next(execute(Job(runs=(trained,)), World()))


def test_a_stack_runs_on_what_was_planned_or_not_at_all(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMRAY_CACHE", str(place / "cache"))
    line = "main\tMSRvid\t2012\t0001\t{}\t{}\t{}\n"
    for split in ("train", "dev", "test"):
        (place / f"sts-{split}.csv").write_text(
            "".join(line.format(gold, f"a {a}", f"the {b}") for gold, (a, b) in enumerate(pairwise(WORDS[25:31])))
        )
    (place / "pairs.yaml").write_text(PAIRS.format(backbone=place / "tiny", folder=place))
    study = read_study(place / "pairs.yaml")
    (run,) = plan(study, gather_facts(study)).runs
    result = outcome(execute(Job(runs=(run,)), World()))
    assert {score.metric for score in result.scores} >= {"stsb/spearman", "stsb/pearson"}
    with (place / "sts-dev.csv").open("a") as file:
        file.write(line.format(5, "a cup", "a cup"))
    with pytest.raises(StudyError, match="rows of the task similarity/stsb"):
        next(execute(Job(runs=(run,)), World()))
    with (place / "sts-train.csv").open("a") as file:
        file.write(line.format(5, "a cup", "a cup"))
    with pytest.raises(StudyError, match="corpus of the difficulty family"):
        next(execute(Job(runs=(run,)), World()))


def test_a_run_of_a_search_sees_training_pairs_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The validation file decides nothing: with any other rows in it the dev figures stay, to the last digit."""
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / "cache"))
    line = "main\tMSRvid\t2012\t0001\t{}\t{}\t{}\n"
    backbone = tiny_backbone(tmp_path / "tiny")
    text = PAIRS.format(backbone=backbone, folder=tmp_path).replace("[similarity]", "[similarity, isolation]")
    text = text.replace("frozen: {form: baseline}", "gated: {form: pair_lex, steps: 5, batch_size: 32}")
    (tmp_path / "pairs.yaml").write_text(text)
    told = []
    for first in (0, 20):
        for split in ("train", "dev", "test"):
            rows = [(gold % 6, a, b) for gold, (a, b) in enumerate(pairwise(WORDS))]
            (tmp_path / f"sts-{split}.csv").write_text(
                "".join(line.format(*row) for row in (rows if split == "train" else rows[first : first + 30]))
            )
        study = read_study(tmp_path / "pairs.yaml")
        (run, *_) = plan(study, gather_facts(study)).runs
        searching = replace(study, evaluate=("dev/similarity/stsb",))
        dev = {name: task.fingerprint for name, task in tasks(study.data).items() if name in searching.evaluate}
        facts = replace(gather_facts(study), tasks=dev)
        (selecting, *_) = plan(searching, facts).runs
        chosen = outcome(execute(Job(runs=(selecting,)), World()))
        tested = outcome(execute(Job(runs=(run,)), World()))
        told.append({name: value for name, value in chosen.values.items() if "/diag/" not in name})
        assert {score.metric for score in tested.scores} >= {"stsb/spearman", "stsb/isolated_gain"}
    assert told[0].keys() == {"dev/stsb/spearman", "dev/stsb/pearson", "dev/stsb/isolated_gain"}
    assert told[0] == told[1]
