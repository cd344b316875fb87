"""A study of the san family from its file to scores, and opened again; what cannot work is found before a lane starts."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from corpora.san.data import SanData
from corpora.store.columns import Texts
from corpora.store.errors import CorpusError
from orchestration.families.san import FAMILY, check_backbones
from orchestration.plan.plan import Facts, gather_facts, plan, prepare
from orchestration.search.confirm import confirmation
from orchestration.search.trials import Searched, Selection, Trial, selections
from orchestration.study.errors import StudyError
from orchestration.study.run import Job, Run, Scored, Trained
from orchestration.study.study import Study
from tests.corpora.semcor_samples import write_lexicon
from tests.small_study import study_in
from tests.tiny import WORDS, tiny_backbone
from tests.trainers.san.corpus import san_corpus
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


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("max_length: 8", "texts cut at max_length"),
        ("max_length: 4, read_length: 8", "texts cut at read_length"),
        ("max_length: 4, read_length: 40", None),
    ],
)
def test_a_run_says_at_which_length_texts_were_cut(place: Path, given: str, told: str | None) -> None:
    """A query has eight pieces, ten tokens with [CLS] and [SEP]."""
    (run,) = (one for one in planned(place, "simcse: {}", f"simcse: {{{given}}}") if one.arm == "simcse")
    _, scored = FAMILY.execute(Job(runs=(run,)), World())
    assert isinstance(scored, Scored)
    assert set(scored.notes) == ({told} if told else set())


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
        ("rl_every: 2", "rl_every: 3", r"arms\.rlrd\.rl_every = 3\n  accepted: up to 2, the steps of this arm"),
        (
            "rl_every: 2",
            "rl_every: 2, conform: authors",
            r"rl_every = 2\n  accepted: 3 and more, up to 2, the steps",
        ),
        (
            "rl_every: 2",
            "rl_every: 1, conform: authors, rl_update: reinforce",
            r"rl_every = 1\n  accepted: 2 and more, up to 2, the steps .* never learn; or rl_update fixed",
        ),
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


@pytest.mark.parametrize(
    ("plain", "said"),
    [
        ("{host: sncse, tau1: 0.1}", r"arms\.simcse\+san on tiny: train\.p2 = 0\.2\n  accepted: a backbone with"),
        ("{}", r"arms\.simcse on tiny: train\.p1 = None\n  accepted: a rate such as 0\.1, or a backbone that"),
    ],
)
def test_a_rate_for_a_backbone_that_drops_nothing_or_none_for_equal_views_is_found_first(
    place: Path, tmp_path: Path, plain: str, said: str
) -> None:
    from transformers import MambaConfig

    shutil.copytree(place / "tiny", tmp_path / "tiny")
    MambaConfig(vocab_size=20, hidden_size=16, num_hidden_layers=3).save_pretrained(tmp_path / "tiny")
    study = study_in(place, STUDY, "simcse: {}", f"simcse: {plain}")
    with pytest.raises(ValueError, match=said):
        check_backbones(study, [tmp_path / "tiny"], san_corpus())


def test_a_sentence_that_no_template_takes_is_found_first(place: Path) -> None:
    """Else the training would end at the step that draws it."""
    held = replace(san_corpus(), sentences=Texts.of(["the old dog runs", "a [MASK] is a word", "the fire"]))
    backbones, said = [place / "tiny"], r"'a \[MASK\] is a word' holds \[MASK\]\n  accepted: texts without it"
    with pytest.raises(CorpusError, match=said):
        check_backbones(study_in(place, STUDY), backbones, held)
    bare = STUDY.replace("host: sncse", "tau1: 0.1").replace("host: rlrd", "host: rankcse")
    check_backbones(study_in(place, bare), backbones, held)


SEARCH = """\
search:
  space: san
  arms: [simcse+san]
  dimensions: DIMENSIONS
  trials: 2
  seeds: [100]
  objective: {metric: dev/sts/STS-B/spearman, mode: max, confirm: rerank/SciDocsRR/map}
"""
FACTS = Facts(backbones={}, corpus="c", tasks={"dev/sts/STS-B": "t", "rerank/SciDocsRR": "t"}, precision="fp32")


def searching(place: Path, dimensions: str) -> Study:
    return study_in(place, STUDY + SEARCH.replace("DIMENSIONS", dimensions))


def found(selection: Selection, *, best: dict[str, Any]) -> Searched:
    """A search of two points, of which the second is the better one; of one where nothing moves."""
    start = {one.name: getattr(selection.settings, one.name) for one in selection.space}
    points = [start, start | {name: best[name] for name in start}][: selection.trials]
    trials = [Trial(number=at, point=point, scores={100: (0.5 + at,)}) for at, point in enumerate(points)]
    return Searched(selection=selection, trials=tuple(trials))


def test_controls_are_searched_too_and_hold_the_first_dropout_that_was_best_beside_them(place: Path) -> None:
    study = searching(place, "{tau1: all, p1: all}")
    facts = replace(FACTS, backbones=dict.fromkeys(study.backbones, "b"))
    look = partial(found, best={"p1": 0.15, "tau1": 0.04})
    treatment, control = selections(study, facts, lambda one: look(one).at_best)
    assert [treatment.arm, control.arm] == ["simcse+san", "simcse"]
    assert [one.name for one in treatment.space] == ["p1", "tau1"]
    assert [one.name for one in control.space] == ["tau1"]
    assert (control.settings.p1, control.start, control.budget) == (0.15, "simcse@0", treatment.budget)
    confirmed = confirmation(study, [look(treatment), look(control)])
    assert {name: arm.p1 for name, arm in confirmed.arms.items()} == {
        "simcse+san": None,
        "simcse+san@1": 0.15,
        "simcse@0": 0.15,
        "simcse@1": 0.15,
    }
    assert [(one.claim, one.treatment, one.control) for one in confirmed.compare] == [
        ("search simcse+san", "simcse+san@1", "simcse+san"),
        ("search simcse", "simcse@1", "simcse@0"),
        ("C1 tuned", "simcse+san@1", "simcse@1"),
    ]


def test_an_arm_that_no_claim_connects_with_the_others_has_a_first_dropout_of_its_own(place: Path) -> None:
    study = searching(place, "{tau1: all, p1: all}")
    assert study.search is not None
    apart = replace(study.arms["simcse"], learning_rate=1e-4)
    study = replace(
        study, arms=study.arms | {"apart": apart}, search=replace(study.search, arms=(*study.search.arms, "apart"))
    )
    facts = replace(FACTS, backbones=dict.fromkeys(study.backbones, "b"))
    look = partial(found, best={"p1": 0.15, "tau1": 0.04})
    *_, last = selections(study, facts, lambda one: look(one).at_best)
    assert ([one.name for one in last.space], last.held, last.start) == (["p1", "tau1"], {}, "apart")


def test_a_control_in_which_nothing_else_moves_has_one_point(place: Path) -> None:
    study = searching(place, "{tau2: all, p1: all}")
    facts = replace(FACTS, backbones=dict.fromkeys(study.backbones, "b"))
    look = partial(found, best={"p1": 0.1, "tau2": 0.1})
    treatment, control = selections(study, facts, lambda one: look(one).at_best)
    assert (control.space, control.trials, control.start) == ((), 1, "simcse@0")
    confirmed = confirmation(study, [look(treatment), look(control)])
    assert [(one.claim, one.treatment, one.control) for one in confirmed.compare] == [
        ("search simcse+san", "simcse+san@1", "simcse+san"),
        ("C1 tuned", "simcse+san@1", "simcse@0"),
    ]


def test_a_search_over_the_papers_grid_needs_its_four_sets(place: Path) -> None:
    scaled = (STUDY + SEARCH.replace("DIMENSIONS", "paper")).replace("negatives: san}", "negatives: scale-20}")
    scaled = scaled.replace("{san: {iter", "{scale-20: {iter")
    with pytest.raises(StudyError, match=r"negatives: scale-10, .*\n  accepted: a list of some of scale-20, un"):
        gather_facts(study_in(place, scaled))


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_matched_control_is_searched_and_confirmed_from_the_command_line(place: Path) -> None:
    """Each arm at its own best temperature, both at the dropout that was best beside negatives, on fresh seeds."""
    write_graded_pairs(place / "STS" / "STSBenchmark")
    text = (STUDY + SEARCH).replace("DIMENSIONS", "{tau1: all, p1: all}\n  match_control: true")
    text = text.replace("trials: 2", "trials: 4").replace("steps: 2,", "steps: 12, learning_rate: 1.0e-3,")
    (place / "matched.yaml").write_text(text.replace("PLACE", str(place)))
    searches = answered(place, "search")
    assert [one["arm"] for one in searches] == ["simcse+san", "simcse"]
    assert [[*one["points"][1]["point"]] for one in searches] == [["p1", "tau1"], ["tau1"]]
    assert [len(one["points"]) for one in searches] == [4, 4]
    confirmed = answered(place, "confirm")
    tuned, control = (f"{one['arm']}@{one['best']}" for one in searches)
    claims = {one["claim"]: (one["treatment"], one["control"]) for one in confirmed["verdicts"]}
    assert claims["C1 tuned"] == (tuned, control)
    better = {one["arm"] for one in searches if one["best"]}  # than its start, which is point 0
    assert {one["arm"] for one in confirmed["optimism"]} == better != set()
    assert {one["fresh_seeds"] for one in confirmed["optimism"]} == {1}


def write_graded_pairs(folder: Path) -> None:
    """STS-B's files: sixty pairs of sentences of which both words are alike, one or none."""
    draw, lines = random.Random(0), []
    for number in range(60):
        one, other, third, fourth = draw.sample(NOUNS, 4)
        grade, pair = draw.choice([(5, (one, other)), (2.5, (one, third)), (0, (third, fourth))])
        texts = [f"the {first} runs to the old {second} ." for first, second in ((one, other), pair)]
        lines.append("\t".join(["main", "x", "2012", f"{number:04}", f"{grade:.3f}", *texts]))
    folder.mkdir(parents=True)
    for part in ("train", "dev", "test"):
        (folder / f"sts-{part}.csv").write_text("\n".join(lines) + "\n")


def answered(place: Path, word: str) -> Any:
    """What a command prints of the matched search."""
    command = [sys.executable, "-m", "orchestration", word, "matched.yaml", "--json", "--ledger", "ledger"]
    root = Path(__file__).resolve().parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
