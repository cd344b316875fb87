"""Claims as papers make them, from YAML to verdict: means, other backbones, gains, several controls, several parts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evaluators.metrics.scores import Score
from orchestration.commands.cli import main
from orchestration.ledger.ledger import Ledger
from orchestration.plan.described import describe
from orchestration.plan.plan import Facts, Plan, plan
from orchestration.plan.reach import reachability
from orchestration.reading.read_study import read_study
from orchestration.report import forms, plots
from orchestration.report.html import html
from orchestration.report.methods import methods
from orchestration.report.short import in_short
from orchestration.report.tables import NONE, claim_rows
from orchestration.study.errors import StudyError
from orchestration.study.run import Run
from orchestration.tracking.entries import planned as entries_of
from orchestration.verdicts.declared import declare
from orchestration.verdicts.distributions import with_distributions
from orchestration.verdicts.find import find, undecided_arms
from orchestration.verdicts.findings import Finding, Findings
from orchestration.verdicts.pairing import seen
from orchestration.verdicts.passport import verify, write_passport
from orchestration.verdicts.records import StudyRecords
from orchestration.verdicts.why import chain
from tests.results import finish

STUDY = """\
question: Which claims can be made?
family: concept
backbones: [small, large]
seeds: 4
arms:
  B0: {train: false}
  B1: {hard_negatives: true}
  B1-noHN: {hard_negatives: false}
  M1: {readout: weighted, layers: 2, hard_negatives: true}
  M1-noHN: {readout: weighted, layers: 2, hard_negatives: false}
evaluate: [t2d, d2t]
compare:
"""
FACTS = Facts(
    backbones={"small": "s" * 8, "large": "l" * 8},
    corpus="c" * 8,
    tasks={"t2d": "t" * 8, "d2t": "d" * 8},
    precision="fp32",
)
MEAN = '{claim: mean, treatment: B1, control: B0, metric: "mean(t2d, d2t)", expect: better, backbone: small}'
BACKBONES = (
    "{claim: larger, treatment: {arm: B1, backbone: large}, control: {arm: B1, backbone: small},"
    " metric: t2d/recall@10, expect: better}"
)
GAIN = (
    "{claim: more, treatment: {arm: M1, over: M1-noHN}, control: {arm: B1, over: B1-noHN}, metric: d2t/mrr,"
    " expect: better, backbone: small}"
)
CONTROLS = (
    "{claim: both, treatment: M1, control: [B0, B1-noHN], metric: t2d/recall@10, expect: better, backbone: large}"
)
EACH = (
    "{claim: some, treatment: B1, control: B0, metric: 'each(t2d/mrr, d2t/mrr)', at_least: 1, expect: better,"
    " backbone: large}"
)
ALL = """
    claim: P3
    all:
      - {claim: P3a, treatment: B1, control: B1-noHN, metric: t2d/recall@10, expect: better, backbone: small}
      - {claim: P3b, treatment: B1, control: B1-noHN, metric: d2t/mrr, expect: equivalent, margin: 0.1, backbone: small}
"""
STILL = (
    "{claim: still, treatment: {arm: B0, backbone: large}, control: {arm: B0, backbone: small}, metric: t2d/mrr,"
    " expect: better}"
)
CLAIMS = (MEAN, BACKBONES, STILL, GAIN, CONTROLS, EACH, ALL)
EFFECT = {"B0": 0.0, "B1-noHN": 0.10, "B1": 0.20, "M1-noHN": 0.12, "M1": 0.30}
METRICS = ("t2d/recall@10", "t2d/mrr", "d2t/recall@10", "d2t/mrr")


def scores_of(run: Run) -> list[Score]:
    """Items with the arm's effect, the backbone's and a seed's noise; tasks share their concepts."""
    seed = 0 if run.seed is None else run.seed
    items = np.random.default_rng(5).uniform(0.2, 0.4, 60)
    found = []
    for number, metric in enumerate(METRICS):
        own = np.random.default_rng([seed, list(EFFECT).index(run.arm), number, ord(run.backbone[0])])
        shift = EFFECT[run.arm] + (0.15 if run.backbone == "large" else 0.0) + own.normal(0, 0.003)
        values = items + shift + own.normal(0, 0.02, 60)
        names = [f"concept {k}" for k in range(60)]
        found.append(
            Score(metric=metric, value=float(values.mean()), aggregate="mean", item_ids=names, values=values)
        )
    return found


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, Ledger, Findings]:
    path = tmp_path_factory.mktemp("papers") / "papers.yaml"
    path.write_text(STUDY + "".join(f"  - {claim.strip()}\n" for claim in CLAIMS))
    study, ledger = read_study(path), Ledger(path.parent / "ledger")
    asked = plan(study, FACTS)
    declare(study, asked.runs, ledger)
    for run in asked.runs:
        finish(ledger, run, scores_of(run))
    return asked, ledger, find(study, asked.runs, ledger)


def of(findings: Findings, claim: str) -> Finding:
    (found,) = (one for one in findings.findings if one.verdict.claim == claim)
    return found


def by_seed(findings: Findings, arm: str, backbone: str, metric: str) -> np.ndarray:
    values = findings.values(arm, backbone, metric)
    return np.array([values[None]] * 4 if None in values else [values[seed] for seed in range(4)])


def test_a_mean_is_taken_run_by_run(finished: tuple[Plan, Ledger, Findings]) -> None:
    _, _, findings = finished
    verdict = of(findings, "mean").verdict
    two = [
        by_seed(findings, "B1", "small", metric) - by_seed(findings, "B0", "small", metric)
        for metric in ("t2d/recall@10", "d2t/recall@10")
    ]
    assert [row["delta"] for row in verdict.per_seed] == pytest.approx(np.mean(two, axis=0))
    assert (verdict.verdict, verdict.test, verdict.scope) == ("better", "crossed t", "on these tasks")
    assert (verdict.n_items, verdict.n_groups) == (60, 60)  # both tasks ask the same concepts
    assert findings.metrics["mean(t2d, d2t)"]
    assert findings.values("B1", "small", "mean(t2d, d2t)").keys() == {0, 1, 2, 3}


def test_a_claim_across_backbones_is_judged_once(finished: tuple[Plan, Ledger, Findings]) -> None:
    _, _, findings = finished
    verdict = of(findings, "larger").verdict
    metric = "t2d/recall@10"
    deltas = by_seed(findings, "B1", "large", metric) - by_seed(findings, "B1", "small", metric)
    assert [row["delta"] for row in verdict.per_seed] == pytest.approx(deltas)
    assert (verdict.treatment, verdict.control, verdict.backbone) == ("B1 on large", "B1 on small", "")
    assert verdict.verdict == "better"


def test_models_that_are_not_trained_are_compared_by_their_items(finished: tuple[Plan, Ledger, Findings]) -> None:
    verdict = of(finished[2], "still").verdict
    assert (verdict.verdict, verdict.test, verdict.v_seed) == ("better", "crossed t", 0.0)
    assert len({row["delta"] for row in verdict.per_seed}) == 1


def test_a_gain_against_a_gain(finished: tuple[Plan, Ledger, Findings]) -> None:
    _, _, findings = finished
    found = of(findings, "more")
    arms = {arm: by_seed(findings, arm, "small", "d2t/mrr") for arm in EFFECT}
    deltas = (arms["M1"] - arms["M1-noHN"]) - (arms["B1"] - arms["B1-noHN"])
    assert [row["delta"] for row in found.verdict.per_seed] == pytest.approx(deltas)
    assert (found.verdict.treatment, found.verdict.control) == ("(M1 - M1-noHN)", "(B1 - B1-noHN)")
    assert (found.verdict.verdict, found.verdict.test) == ("better", "crossed t")
    assert [run.count(" - ") for run in found.treatment_runs.values()] == [1] * 4
    assert {arm for arm, _ in found.places} == {"M1", "M1-noHN", "B1", "B1-noHN"}


def test_joint_claims_are_followed_by_their_parts_and_count_once(finished: tuple[Plan, Ledger, Findings]) -> None:
    _, _, findings = finished
    names = [one.verdict.claim for one in findings.findings]
    expected = [
        "mean",
        "larger",
        "still",
        "more",
        "both",
        "both.1",
        "both.2",
        "some",
        "some.1",
        "some.2",
        "P3",
        "P3a",
        "P3b",
    ]
    assert names == expected
    both, some, all_ = (of(findings, name).verdict for name in ("both", "some", "P3"))
    parts = [of(findings, name).verdict for name in ("both.1", "both.2")]
    assert both.p == pytest.approx(max(part.p or 1 for part in parts))  # intersection-union
    assert (both.words, both.family_size, both.treatment) == ("holds: all of 2", 7, "M1")
    assert both.control == "B0, B1-noHN"
    each = [of(findings, name).verdict for name in ("some.1", "some.2")]
    assert some.p == pytest.approx(2 * min(part.p or 1 for part in each))  # at least one of two: Bonferroni
    assert some.words == "holds: at least 1 of 2"
    own = [of(findings, "P3a").verdict, of(findings, "P3b").verdict]
    assert (all_.verdict, all_.p) == (
        "undecided",
        pytest.approx(own[1].tost_p),
    )  # better indeed, but not equivalent
    assert all_.words == "undecided: 1 of 2 parts shown, 2 asked; open: P3b"
    assert parts[0].words.endswith("(part of both)")
    assert (parts[0].part_of, parts[0].family_size, both.parts) == ("both", 1, 2)


def test_only_a_mean_has_seeds_that_agree_with_it(finished: tuple[Plan, Ledger, Findings]) -> None:
    """A joint claim has none; its parts say how many of their seeds do."""
    _, _, findings = finished
    rows = {row.claim: row.agree for row in claim_rows(findings)}
    assert (rows["both"], rows["both.1"], rows["P3"]) == (NONE, "4/4", NONE)
    drawn = plots.every(findings)
    for page in (html(findings, drawn), drawn["forest"].svg):
        assert "0/4 seeds" not in page
        assert "4/4 seeds" in page


def test_the_methods_name_the_tests_of_parts_and_that_items_were_sampled(
    finished: tuple[Plan, Ledger, Findings],
) -> None:
    """An intersection-union test compares nothing by itself: its parts do."""
    _, _, findings = finished
    said = methods(findings)
    assert "paired by seed and tested with the crossed t test at a level of 0.05." in said
    assert "Where items were sampled from the task, their chance is counted beside that of the seeds." in said
    assert "by the p-values of its parts (intersection-union and partial conjunction)." in said
    joint = of(findings, "P3").verdict
    alone = [one for one in findings.findings if "P3" in (one.verdict.claim, one.verdict.part_of)]
    said = methods(replace(findings, findings=tuple(alone)))
    assert (joint.parts, "with the crossed t test at" in said, "two one-sided tests" in said) == (2, True, True)


def test_every_form_shows_them(finished: tuple[Plan, Ledger, Findings]) -> None:
    asked, ledger, findings = finished
    for shown in (forms.table(findings), forms.markdown(findings), forms.latex(findings)):
        assert "holds: all of 2" in shown.replace("\\", "")
    page = html(findings, plots.every(findings), {})
    assert "holds: all of 2" in page
    assert "(M1 - M1-noHN)" in page
    assert "7 comparisons were declared" in methods(findings)
    assert "in short  6 of 7 claims hold" in in_short(findings)
    assert "mean(t2d, d2t)" in page
    assert "P3b" in chain(findings)
    assert [one["claim"] for one in forms.as_json(findings)] == [one.verdict.claim for one in findings.findings]
    tracked = [one for one in entries_of(findings, ledger) if one.kind == "comparison"]
    assert len({one.key for one in tracked}) == len(findings.findings) == 13
    assert {one.build().tags["verdict"] for one in tracked} >= {"better", "holds"}
    told = describe(asked, reaches=reachability(asked, seen(StudyRecords(asked.study, asked.runs, ledger))))
    assert "both.1 on large" in told
    assert "larger: 4 seeds can show" in told


def test_a_passport_holds_them(finished: tuple[Plan, Ledger, Findings], tmp_path: Path) -> None:
    asked, ledger, findings = finished
    passport = tmp_path / "papers.passport"
    write_passport(passport, asked, ledger, with_distributions(findings, ledger))
    done = verify(passport)
    assert done.differences == ()
    declared = ledger.declared("papers")
    assert declared is not None
    assert done.declared == declared.digest


def test_open_joint_claims_ask_for_more_seeds_of_all_their_arms(finished: tuple[Plan, Ledger, Findings]) -> None:
    _, _, findings = finished
    still_open = {one.verdict.claim for one in findings.findings if one.verdict.verdict == "undecided"}
    places = {place for name in still_open for place in of(findings, name).places}
    assert undecided_arms(findings) <= places


def test_a_gate_asks_for_the_whole_and_not_for_a_part(
    finished: tuple[Plan, Ledger, Findings], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, ledger, _ = finished
    done = replace(asked, finished=ledger.entries())
    monkeypatch.setattr("orchestration.commands.gate.planned", lambda study, ledger: done)

    def gate(claim: str, *more: str) -> int:
        return main(["gate", str(asked.study.path), claim, "--ledger", ledger.url, *more])

    assert [gate(claim) for claim in ("both", "P3", "larger", "more")] == [0, 1, 0, 0]
    assert "shown  larger: " in capsys.readouterr().out
    assert gate("both", "--budget", "papers") == 0
    assert gate("P3a") == 2
    assert "P3a is a part of P3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("claim", "told"),
    [
        ("{claim: H, treatment: {arm: B1, backbone: large}, control: B0, metric: t2d/mrr, expect: better}",
         "a backbone on both sides"),
        ("{claim: H, treatment: {arm: B1, backbone: huge}, control: {arm: B1, backbone: small}, metric: t2d/mrr,"
         " expect: better}", "backbone = 'huge'"),
        ("{claim: H, treatment: {arm: B1, bakbone: large}, control: B0, metric: t2d/mrr, expect: better}",
         "did you mean backbone?"),
        ("{claim: H, treatment: {arm: B1, backbone: small}, control: {arm: B1, backbone: small}, metric: t2d/mrr,"
         " expect: better}", "another arm than treatment, or another backbone"),
        ("{claim: H, treatment: {arm: B1, over: B2}, control: {arm: M1, over: B0}, metric: t2d/mrr, expect: better}",
         "treatment.over = 'B2'"),
        ("{claim: H, treatment: {arm: B1, over: B0}, control: M1, metric: t2d/mrr, expect: better}",
         "a gain over another arm on both sides"),
        ("{claim: H, treatment: {arm: B1, over: B1}, control: {arm: M1, over: B0}, metric: t2d/mrr, expect: better}",
         "another arm than B1"),
        ("{claim: H, treatment: B1, control: [B0, B0], metric: t2d/mrr, expect: better}", "each once"),
        ("{claim: H, treatment: B1, control: [B0, B9], metric: t2d/mrr, expect: better}", "control[1] = 'B9'"),
        ("{claim: H, treatment: B1, control: [B0], metric: t2d/mrr, expect: better}", "a list of several"),
        ("{claim: H, treatment: B1, control: B0, metric: mean(t2d), expect: better}", "two figures or more"),
        ("{claim: H, treatment: B1, control: B0, metric: 'mean(t2d, t2d/recall@10)', expect: better}", "each once"),
        ("{claim: H, treatment: B1, control: B0, metric: 'mean(t2d, sts)', expect: better}", "t2d"),
        ("{claim: H, treatment: B1, control: B0, metric: 'mean(t2d, stress)', expect: better}",
         "stress comes with `evaluate: stress`"),
        ("{claim: H, treatment: B1, control: B0, metric: t2d/mrr, at_least: 2, expect: better}", "each(…)"),
        ("{claim: H, treatment: B1, control: B0, metric: 'each(t2d, d2t)', at_least: 3, expect: better}", "1 to 2"),
        ("{claim: H, treatment: B1, control: [B0, M1], metric: t2d/mrr, expect: better, matched_control: B1-noHN,"
         " signal: it}", "matched_control"),
        ("{claim: H, all: [{claim: A, treatment: B1, control: B0, metric: t2d/mrr, expect: better}]}",
         "two claims or more"),
        ("{claim: H, all: B1}", "a list of claims"),
        ("{claim: H, margin: 0.1, all: [{claim: A, treatment: B1, control: B0, metric: t2d/mrr, expect: better},"
         " {claim: A, treatment: M1, control: B0, metric: t2d/mrr, expect: better}]}", "margin"),
        ("{claim: H, all: [{claim: A, treatment: B1, control: B0, metric: t2d/mrr, expect: better},"
         " {claim: A, treatment: M1, control: B0, metric: t2d/mrr, expect: better}]}", "that no other comparison has"),
        ("{claim: H, all: [{claim: A, treatment: B1, control: B0, metric: t2d/mrr, expect: better},"
         " {claim: B, treatment: M7, control: B0, metric: t2d/mrr, expect: better}]}", "all[B].treatment = 'M7'"),
        ("{claim: H, all: [{claim: A, treatment: B1, control: B0, metric: t2d/mrr, expect: better},"
         " {claim: B, treatment: M1, control: B0, metric: t2d/mrr, expect: better, family: own}]}",
         "without a family of their own"),
    ],
)  # fmt: skip
def test_a_claim_that_cannot_be_is_refused_in_words(tmp_path: Path, claim: str, told: str) -> None:
    assert told in refusal_of(tmp_path, claim)


def refusal_of(folder: Path, claim: str) -> str:
    """What a person is told of a study with this claim."""
    path = folder / "broken.yaml"
    path.write_text(f"{STUDY}  - {claim}\n")
    with pytest.raises(StudyError) as caught:
        read_study(path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("treatment", "control", "told"),
    [
        ("B1", "{arm: B1}", "another arm than treatment"),
        ("{arm: B1, over: B0}", "B0", "a gain over another arm on both sides"),
        ("{arm: B1, over: B0}", "B1", "a gain over another arm on both sides"),
        ("{arm: B1, backbone: large}", "B1", "a backbone on both sides"),
    ],
)
def test_two_sides_that_do_not_go_together_are_one_mistake(
    tmp_path: Path, treatment: str, control: str, told: str
) -> None:
    claim = f"{{claim: H, treatment: {treatment}, control: {control}, metric: t2d/mrr, expect: better}}"
    refusal = refusal_of(tmp_path, claim)
    assert refusal.count("accepted: ") == refusal.count(told) == 1


def test_a_figure_of_a_mean_is_named_by_task_or_metric(tmp_path: Path) -> None:
    path = tmp_path / "named.yaml"
    claim = "{claim: H, treatment: B1, control: B0, metric: 'mean(t2d, d2t/mrr)', expect: better}"
    path.write_text(f"{STUDY}  - {claim}\n")
    assert read_study(path).figures == {"mean(t2d, d2t/mrr)": ("t2d/recall@10", "d2t/mrr")}
