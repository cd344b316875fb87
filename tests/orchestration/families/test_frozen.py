"""Encoders as they are, from a study file to figures on the field's tasks; what is not at hand is said by the plan."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from corpora.store import hub
from orchestration.lanes.in_this_process import carry_out
from orchestration.lanes.lane import execute
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import gather_facts, plan, prepare
from orchestration.reading.read_study import read_study
from orchestration.report import forms, plots
from orchestration.report.html import html
from orchestration.study.errors import StudyError
from orchestration.study.run import Job, Scored
from orchestration.study.study import Study
from orchestration.verdicts.find import find
from orchestration.verdicts.records import StudyRecords
from orchestration.verdicts.why import chain
from tests.evaluators.tasks import mteb_sets
from tests.tiny import WORDS, tiny_backbone
from trainers.engine.world import World

STUDY = """\
question: How is it best read?
family: frozen
backbones: [{folder}/tiny]
data: {{path: {folder}}}
arms:
  mean: {{readout: mean}}
  cls: {{readout: cls}}
evaluate: [sts/STS-B, geometry/STS-B, senteval-sklearn/CR]
compare:
  - {{claim: H1, treatment: mean, control: cls, metric: sts/STS-B/spearman, expect: better}}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tiny backbone, STS-B's test part and CR, and no way to the hub."""
    monkeypatch.delenv("SEMRAY_DATA", raising=False)
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / "cache"))

    def away(of: hub.HubSet) -> None:
        raise ConnectionError("no network")

    monkeypatch.setattr(hub, "_fetched", away)
    tiny_backbone(tmp_path / "tiny")
    rows = [
        f"main\tnews\t2012\t1\t{n % 6}\ta {a} is\tthe {b}\n" for n, (a, b) in enumerate(pairwise(WORDS[25:55]))
    ]
    (tmp_path / "STSBenchmark").mkdir()
    (tmp_path / "STSBenchmark" / "sts-test.csv").write_text("".join(rows))
    (tmp_path / "CR").mkdir()
    for name, words in (("custrev.pos", WORDS[:20]), ("custrev.neg", WORDS[20:40])):
        (tmp_path / "CR" / name).write_text("".join(f"a {word}\n" for word in words))
    return tmp_path


def written(place: Path, text: str = STUDY) -> Study:
    (place / "frozen.yaml").write_text(text.format(folder=place))
    return read_study(place / "frozen.yaml")


def test_every_arm_is_measured_once_and_nothing_is_trained(place: Path) -> None:
    study = written(place)
    runs = plan(study, gather_facts(study)).runs
    assert [(run.arm, run.seed) for run in runs] == [("mean", None), ("cls", None)]
    # each stands beside every seed: the pairs are complete and their deltas equal
    assert StudyRecords(study, runs, Ledger(place / "ledger")).seeds == study.seeds.initial != ()
    figures = {}
    for run in runs:
        results = [result for result in execute(Job(runs=(run,)), World()) if isinstance(result, Scored)]
        assert [result.task for result in results] == list(study.evaluate)
        figures[run.arm] = {score.metric: score for result in results for score in result.scores}
    assert {"sts/STS-B/spearman", "geometry/STS-B/uniformity"} <= figures["mean"].keys()
    spearman = {arm: found["sts/STS-B/spearman"] for arm, found in figures.items()}
    assert spearman["mean"].value != spearman["cls"].value
    assert spearman["mean"].item_ids == spearman["cls"].item_ids
    assert len(figures["mean"]["senteval-sklearn/CR/accuracy"].values) == 40


@pytest.mark.parametrize("probe", ["senteval", "senteval-sklearn"])
def test_a_run_reports_while_its_classifiers_are_fitted(place: Path, probe: str) -> None:
    """Else it would be ended as one that stands still, as nothing is read meanwhile."""
    study = written(place, STUDY.replace("senteval-sklearn/CR", f"{probe}/CR"))
    run = plan(study, gather_facts(study)).runs[0]
    told = list[str]()
    for _ in execute(Job(runs=(run,)), World(report=lambda progress: told.append(progress.doing))):
        pass
    assert len({words for words in told if words.startswith("fitting classifiers")}) > 50


def test_no_seed_is_said_to_agree(place: Path) -> None:
    """One run of each arm stands at every seed: what is told is one run, in every form."""
    study, ledger = written(place), Ledger(place / "ledger")
    runs = plan(study, gather_facts(study)).runs
    carry_out(runs, ledger)
    findings = find(study, runs, ledger)
    (verdict,) = (finding.verdict for finding in findings.findings)
    assert (verdict.test, verdict.n_items) == ("crossed t", 29)
    assert "one run of each arm; on the task" in verdict.sentence
    shown = (forms.table(findings), forms.markdown(findings), forms.latex(findings), html(findings, plots.every(findings)), chain(findings))  # fmt: skip
    for form in (verdict.sentence, *shown):
        assert "8/8" not in form
        assert "seed 0" not in form
        assert "8 seeds" not in form
    assert "one run of each arm: no seed moves a figure; crossed t" in forms.table(findings)
    assert "one run of each arm" in shown[3]


def test_other_rows_are_other_scores_of_the_same_run(place: Path) -> None:
    study = written(place)
    before = plan(study, gather_facts(study)).runs[0]
    with (place / "STSBenchmark" / "sts-test.csv").open("a") as file:
        file.write("main\tnews\t2012\t1\t5\ta cat\tthe cat\n")
    again = written(place)
    after = plan(again, gather_facts(again)).runs[0]
    assert after.id == before.id
    changed = {task for task in before.tasks if before.tasks[task] != after.tasks[task]}
    assert changed == {"sts/STS-B", "geometry/STS-B"}


def test_a_set_that_is_not_at_hand_is_said_before_anything_runs(place: Path) -> None:
    study = written(place, STUDY.replace("geometry/STS-B", "sts"))
    assert "sts/SICK-R" in study.evaluate
    with pytest.raises(StudyError, match=r"STS12 not found; looked at(.|\n)*no network(.|\n)*then: export"):
        gather_facts(study)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{{readout: cls}}", "{{readout: cls, train: true}}", "train"),
        ("{{readout: cls}}", "{{readout: first}}", "readout"),
        ("{{readout: cls}}", "{{max_length: 0}}", "max_length"),
        ("sts/STS-B,", "sts/STSB,", r"sts/STSB(.|\n)*sts/STS-B"),
    ],
)
def test_what_is_refused(place: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        written(place, STUDY.replace(old, new))


def test_a_study_names_any_task_of_mteb(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims rest on mteb's own figure with its pairs; a mistake in a name, and data that are nowhere, are told."""
    pytest.importorskip("mteb", reason="the extra [mteb] is not installed")
    mteb_sets.write(place)
    text = STUDY.replace("[sts/STS-B, geometry/STS-B, senteval-sklearn/CR]", "[mteb/STS12, mteb/STS17]")
    text = text.replace("sts/STS-B/spearman", "mteb/STS12/cosine_spearman")
    study = written(place, text)
    run, _ = plan(study, gather_facts(study)).runs
    prepare(study)
    results = [result for result in execute(Job(runs=(run,)), World()) if isinstance(result, Scored)]
    scores = {score.metric: score for result in results for score in result.scores}
    assert len(scores["mteb/STS12/cosine_spearman"].item_ids) == len(mteb_sets.PAIRS)
    assert len(scores) == 1 + 1 + len(mteb_sets.LANGUAGES)
    with pytest.raises(StudyError, match=r"evaluate\[1\].*\n.*did you mean mteb/STS17\?"):
        written(place, text.replace("mteb/STS17", "mteb/STS171"))
    with pytest.raises(StudyError, match=r"compare\[H1\].metric(.|\n)*mteb/STS12/cosine_spearman"):
        written(place, text.replace("cosine_spearman", "cosine"))
    with pytest.raises(StudyError) as raised:
        written(place, text.replace("mteb/STS12", "mteb/STS121"))
    assert "metric" not in str(raised.value)  # which is no mistake of its own
    shutil.rmtree(place / "mteb")
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", place / "nothing")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(
        StudyError, match=r"STS12 of mteb not found(.|\n)*hf download mteb/sts12-sts(.|\n)*STS17 of mteb not found"
    ):
        gather_facts(written(place, text))
