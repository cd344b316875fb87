"""The run body: it trains on what was planned or not at all, and says what it had to cut."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from corpora.concept.corpus import fingerprint_of_all
from evaluators.tasks.pair_similarity import tasks
from orchestration.families.registry import family
from orchestration.lanes.lane import execute
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import gather_facts, plan
from orchestration.reading.read_study import read_study
from orchestration.study.errors import StudyError
from orchestration.study.run import Job, Run, Scored
from orchestration.verdicts.findings import ItemDelta
from orchestration.verdicts.item_texts import with_item_texts
from tests.corpora.conftest import write_small_wordnet
from tests.finished_study import CLAIMS, findings_of
from tests.named_study import RECALL, STRESS
from tests.results import outcome
from tests.tiny import WORDS, tiny_backbone
from tests.workers import together
from trainers.encoders.tokens import Tokens
from trainers.encoders.vectors import VARIABLE
from trainers.engine.world import Progress, World

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
    write_small_wordnet(folder / "wordnet")
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
    cut, read = told["short"]["texts cut at max_length"].removesuffix(" evaluated").split(" of ")
    assert 20 < int(cut) <= int(read)


def test_a_report_reads_items_where_their_texts_are_built(
    place: Path, tmp_path: Path, runs: dict[str, Run]
) -> None:
    """Each of the task whose figure it is, and no others. It builds nothing for that: elsewhere names stand alone."""
    study = replace(read_study(place / "small.yaml"), evaluate=("stress", "t2d"))
    ledger = Ledger(tmp_path / "ledger")
    findings = findings_of(ledger, 2, CLAIMS[:2])
    tasks = family("concept").tasks(study.data)
    term = tasks["t2d"].benchmark.load().terms[0]
    stress = tasks["stress"]
    assert stress.item_texts is not None
    question, asks = next(iter(stress.item_texts(stress.benchmark.load(), STRESS).items()))
    items = [
        ItemDelta(item_id=name, group_id="", treatment=1.0, control=0.0, delta=1.0) for name in (term, question)
    ]
    shown = zip(findings.findings, items, strict=True)
    named = replace(findings, findings=tuple(replace(one, items=(item,)) for one, item in shown))
    told = with_item_texts(named, study, ledger).item_texts
    assert told[STRESS] == {question: asks}
    assert list(told[RECALL]) == [term]
    assert told[RECALL][term].startswith(f"{term}: ")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEMRAY_CACHE", str(tmp_path / "empty"))
        assert with_item_texts(named, study, ledger).item_texts == {}
    assert not list((tmp_path / "empty").rglob("manifest.json"))


@pytest.mark.timeout(60)
def test_a_run_says_what_it_waits_for_before_its_first_step(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would be ended as one that stands still while another process builds its corpus."""
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path))
    trained = STUDY.replace("{{train: false, max_length: 4}}", "{{steps: 1, batch_size: 4, warmup: 0}}")
    (tmp_path / "study.yaml").write_text(trained.format(backbone=place / "tiny", wordnet=place / "wordnet"))
    study = read_study(tmp_path / "study.yaml")
    run = next(run for run in plan(study, gather_facts(study)).runs if run.arm == "short")
    lock = tmp_path / "concept" / f"{fingerprint_of_all(study.data)}.lock"
    lock.parent.mkdir()
    told = list[str]()
    with lock.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)

        def report(progress: Progress) -> None:
            told.append(progress.doing)
            fcntl.flock(other, fcntl.LOCK_UN)

        outcome(execute(Job(runs=(run,)), World(report=report)))
    assert told[0].startswith("waiting for another process to make concept, ")


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


def test_a_group_reads_together_what_rank_0_scores(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After training with ZeRO 3: rank 0 has every score, the other none; its model, read alone, has the same."""
    monkeypatch.setenv("SEMRAY_CACHE", str(place / "cache"))
    monkeypatch.setenv(VARIABLE, "0")  # so that nobody's vectors are looked up
    shared = STUDY.replace("{{train: false, max_length: 4}}", "{{steps: 2, batch_size: 4, warmup: 1}}")
    shared += "resources: {{workers_per_run: 2, launcher: train, precision: fp32, deepspeed: {{zero_stage: 3}}}}\n"
    (place / "shared.yaml").write_text(shared.format(backbone=place / "tiny", wordnet=place / "wordnet"))
    study = read_study(place / "shared.yaml")
    run = next(run for run in plan(study, gather_facts(study)).runs if run.arm == "short")
    (tmp_path / "run.json").write_text(json.dumps(run.to_dict()))
    together(2, _trained_and_scored, tmp_path)
    alone = outcome(execute(Job(runs=(run,), models={run.id: tmp_path / "model"}), World()))
    found = json.loads((tmp_path / "scores.json").read_text())
    assert found == pytest.approx({score.metric: score.value for score in alone.scores}, abs=1e-6)
    shares = [json.loads((tmp_path / f"read.{rank}").read_text()) for rank in (0, 1)]
    assert abs(shares[0] - shares[1]) <= 1
    assert sum(shares) > 40


def _trained_and_scored(rank: int, size: int, folder: Path) -> None:
    from trainers.encoders.encoder import Encoder

    read, portions = [], Encoder.portions

    def counted(encoder: Encoder, tokens: Tokens) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        read.append(len(tokens))
        return portions(encoder, tokens)

    Encoder.portions = counted  # type: ignore[method-assign]
    run = Run.from_dict(json.loads((folder / "run.json").read_text()))
    scores = {}
    for result in execute(Job(runs=(run,)), World(rank=rank, size=size, zero_stage=3)):
        if isinstance(result, Scored):
            scores |= {score.metric: score.value for score in result.scores}
        elif rank == 0 and result.save_model is not None:
            (folder / "model").mkdir()
            result.save_model(folder / "model")
    assert bool(scores) == (rank == 0)
    if rank == 0:
        (folder / "scores.json").write_text(json.dumps(scores))
    (folder / f"read.{rank}").write_text(json.dumps(sum(read)))
