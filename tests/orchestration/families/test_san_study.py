"""A study of the san family from its file to scores, and opened again; what cannot work is found before a lane starts."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from corpora.san.data import SanData
from orchestration.families.san import FAMILY
from orchestration.plan.plan import gather_facts, plan, prepare
from orchestration.reading.read_study import read_study
from orchestration.study.errors import StudyError
from orchestration.study.run import Job, Run, Scored, Trained
from tests.corpora.semcor_samples import write_lexicon
from tests.small_study import study_in
from tests.tiny import WORDS, tiny_backbone
from trainers.engine.world import World

STUDY = """\
question: Does every host train?
family: san
backbones: [PLACE/tiny]
seeds: [3]
data:
  sentences: PLACE/lines.txt
  wordnet: PLACE/wordnet
  path: PLACE
  negatives: {san: {iterations: 2, scale: 10}, uniform: {law: uniform, scale: 10}}
  teachers: {whole: PLACE/tiny@mean, words: PLACE/tiny@idf}
train: {readout: mean, layers: 2, steps: 2, batch_size: 4, rl_every: 2, max_length: 40}
arms:
  base: {train: false}
  simcse: {}
  simcse+san: {san: hince, negatives: san}
  simcse-uniform: {san: hince, negatives: uniform, san_pass: fused}
  sncse: {host: sncse}
  rankcse+san: {host: rankcse, teachers: [whole, words], san: hince, negatives: san}
  rlrd: {host: rlrd, teachers: [whole, words]}
evaluate: [rerank/SciDocsRR]
compare:
  - {claim: C1, treatment: simcse+san, control: simcse, metric: rerank/SciDocsRR/map, expect: better}
"""
NOUNS = WORDS[26:50]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    write_lexicon(folder / "wordnet")
    tiny_backbone(folder / "tiny")
    lines = [f"the {one} runs to the old {other} ." for one, other in pairwise(NOUNS)]
    (folder / "lines.txt").write_text("\n".join(lines) + "\n")
    (folder / "reranking").mkdir()
    rows = [{"query": line, "positive": [line[4:]], "negative": ["a cup", "the fire"]} for line in lines[:4]]
    (folder / "reranking" / "SciDocsRR.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    return folder


@pytest.fixture(autouse=True)
def _own_cache(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMRAY_CACHE", str(place / "cache"))
    monkeypatch.delenv("SEMRAY_DATA", raising=False)


def planned(place: Path, old: str = "", new: str = "") -> tuple[Run, ...]:
    """The runs of the study, prepared, with one part of its text changed."""
    study = study_in(place, STUDY, old, new)
    runs = plan(study, gather_facts(study)).runs
    prepare(study)
    return runs


def test_every_arm_ends_in_scores_and_is_opened_again_with_the_same(place: Path, tmp_path: Path) -> None:
    for run in planned(place):
        record = Run.from_dict(json.loads(json.dumps(run.to_dict())))  # as a ledger keeps it
        results = list(FAMILY.execute(Job(runs=(record,)), World()))
        trained, scored = results
        assert isinstance(trained, Trained)
        assert isinstance(scored, Scored)
        assert set(trained.notes) == told(run.arm)
        values = {score.metric: score.value for score in scored.scores}
        assert set(values) == {f"rerank/SciDocsRR/{name}" for name in ("map_at_1", "mrr_at_1", "map")}
        if trained.save_model is not None:
            folder = tmp_path / run.arm
            folder.mkdir()
            trained.save_model(folder)
            (again,) = FAMILY.execute(Job(runs=(record,), models={record.id: folder}), World())
            assert isinstance(again, Scored)
            assert {score.metric: score.value for score in again.scores} == pytest.approx(values, abs=1e-6)


def told(arm: str) -> set[str]:
    """The names of what a run says of the texts that its arm is pushed away from."""
    name = {"simcse+san": "san", "rankcse+san": "san", "simcse-uniform": "uniform"}.get(arm)
    samples = {f"negatives of {name}, sample {number}" for number in range(1, 9)}
    own = {f"negatives of {name} by", f"negatives of {name}", *samples} if name else set()
    return own | ({"negations by"} if name or arm in ("sncse", "rlrd") else set())


def test_a_run_says_who_made_its_negatives(place: Path) -> None:
    """By name, stand-ins as such, with what the set is like and eight samples; the report prints these notes."""
    (run,) = (one for one in planned(place) if one.arm == "simcse+san")
    trained = next(iter(FAMILY.execute(Job(runs=(run,)), World())))
    assert isinstance(trained, Trained)
    assert set(trained.notes) == told("simcse+san")
    assert "a stand-in for a masked language model" in trained.notes["negatives of san by"]
    assert "a stand-in for a dependency parse" in trained.notes["negations by"]
    assert trained.notes["negatives of san"].startswith("kept 0.")
    first, _, made = trained.notes["negatives of san, sample 1"].partition(" → ")
    assert first == (place / "lines.txt").read_text().splitlines()[0]
    assert made not in ("", first)


def test_what_the_report_plots_is_measured() -> None:
    known = {metric for task in FAMILY.tasks(SanData()).values() for metric in task.metrics}
    plotted = {metric for parts in FAMILY.distributions.values() for metric in parts.values()}
    assert len(plotted) == 16
    assert plotted <= known


def test_other_teachers_make_other_runs(place: Path) -> None:
    ids = {run.arm: run.id for run in planned(place)}
    other = {run.arm: run.id for run in planned(place, "words: PLACE/tiny@idf", "words: PLACE/tiny@cls")}
    assert other["rlrd"] != ids["rlrd"]
    assert other["base"] == ids["base"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "negatives: uniform, san",
            "negatives: unifrom, san",
            r"train\.negatives = 'unifrom'\n  accepted: san, uniform",
        ),
        ("rlrd, teachers: [whole, words]", "rlrd, teachers: [whole, bert]", r"accepted: whole, words"),
        ("batch_size: 4", "batch_size: 400", r"train\.batch_size = 400\n  accepted: at most 23"),
        ("max_length: 40", "max_length: 9", r"train\.max_length = 9\n  accepted: "),
        ("layers: 2", "layers: 5", r"layers = 5\n  accepted: up to 3"),
        ("whole: PLACE/tiny@mean", "whole: PLACE/missing@mean", r"missing: no such folder"),
        (
            "whole: PLACE/tiny@mean",
            "whole: PLACE/tiny",
            r"teachers .*\n  accepted: names, each with BACKBONE@READOUT",
        ),
    ],
)
def test_what_cannot_work_is_found_first(place: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        planned(place, old, new)


def test_a_search_moves_both_sides_or_neither(place: Path) -> None:
    search = "search: {space: san, arms: [ARMS], dimensions: {tau1: all}, trials: 2, seeds: [100], objective: {metric: dev/sts/STS-B/spearman, mode: max, confirm: rerank/SciDocsRR/map}}\n"
    (place / "searched.yaml").write_text(STUDY.replace("PLACE", str(place)) + search.replace("ARMS", "simcse+san"))
    study = read_study(place / "searched.yaml")
    with pytest.raises(StudyError, match=r"search\.arms: simcse\+san\n  accepted: both of simcse\+san and simcse"):
        prepare(study)
