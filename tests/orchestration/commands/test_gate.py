"""The gate: exit codes for machines, and a budget that every question of a ledger is held against."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from evaluators.metrics.scores import Score
from evaluators.significance.sequential import e_values
from orchestration.commands.cli import main
from orchestration.commands.gate import _apart
from orchestration.ledger.ledger import Ledger
from orchestration.plan.held import planned
from orchestration.plan.plan import extend
from orchestration.reading.read_study import read_study
from orchestration.study.run import Run
from orchestration.verdicts import declared
from orchestration.verdicts.declared import claims_of, declaration_of, declare
from tests.corpora.conftest import write_small_wordnet
from tests.finished_study import fill
from tests.results import finish
from tests.tiny import tiny_backbone

STUDY = """\
question: May the loop go on?
family: concept
backbones: [{backbone}]
seeds: 8
data: {{wordnet: {wordnet}, n_hh: 20, n_id: 20, n_dev: 10}}
arms:
  B0: {{train: false}}
  B1: {{hard_negatives: true}}
  B1-noHN: {{hard_negatives: false}}
  M1: {{readout: weighted, layers: 1}}
evaluate: [t2d, stress, geometry]
compare:
  - {{claim: H1, treatment: B1, control: B0, metric: t2d/recall@10, expect: better}}
  - {{claim: H1-not, treatment: B1, control: B0, metric: t2d/recall@10, expect: worse}}
  - {{claim: H3b, treatment: B1, control: B1-noHN, metric: t2d/recall@10, expect: equivalent, margin: 0.15}}
  - {{claim: P1, treatment: B1, control: B0, metric: geometry/anisotropy, expect: worse}}
  - {{claim: M, treatment: M1, control: B1, metric: t2d/recall@10, expect: better}}
"""
OF_A_SCRIPT = """\
question: What does a loss move by?
family: command
seeds: 4
data: {watch: [train.py], metrics: {accuracy: higher, loss: lower, bleu: higher, points: higher, ppl: lower}}
train: {run: [python, train.py, --seed, "{seed}", --out, "{out}", --rate, "{lr}"]}
arms: {slow: {lr: 1.0e-3}, fast: {lr: 1.0e-1}}
evaluate: [scores]
compare:
  - {claim: H1, treatment: fast, control: slow, metric: scores/loss, expect: better}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A declared study of which all but the runs of M1 are in the ledger."""
    folder = tmp_path_factory.mktemp("gate")
    write_small_wordnet(folder / "wordnet")
    text = STUDY.format(backbone=tiny_backbone(folder / "tiny", layers=1), wordnet=folder / "wordnet")
    (folder / "gated.yaml").write_text(text)
    ledger, study = Ledger(folder / "ledger"), read_study(folder / "gated.yaml")
    plan = planned(study, ledger)
    declare(study, plan.runs, ledger)
    fill(ledger, [run for run in plan.runs if run.arm != "M1"])
    return folder


def ask(place: Path, claim: str, *words: str) -> int:
    return main(["gate", str(place / "gated.yaml"), claim, "--ledger", str(place / "ledger"), *words])


@pytest.mark.parametrize(("claim", "code"), [("H1", 0), ("H1-not", 1), ("H3b", 0), ("P1", 0), ("M", 3), ("H9", 2)])
def test_the_exit_code_is_the_answer(place: Path, claim: str, code: int) -> None:
    assert ask(place, claim) == code


def test_what_nobody_declared_before_it_could_be_seen_is_not_shown(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A claim of a new study is what another study declared, or is exploratory; then it spends nothing."""
    late = "  - {claim: late, treatment: B1-noHN, control: B0, metric: t2d/recall@10, expect: better}\n"
    (place / "late.yaml").write_text((place / "gated.yaml").read_text() + late)
    words = ["gate", str(place / "late.yaml"), "--ledger", str(place / "ledger")]
    assert main([*words, "H1"]) == 0
    assert capsys.readouterr().out.startswith("shown  H1 on ")
    assert main([*words, "late", "--budget", "late"]) == 1
    assert "declared after its outcome could be seen" in capsys.readouterr().out
    assert not (place / "ledger" / ".budgets" / "late").exists()


def test_a_claim_is_open_while_its_study_has_a_seed_to_add(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It spends nothing of a budget until then; that a run of another claim failed changes nothing."""
    text = (place / "gated.yaml").read_text()
    (place / "growing.yaml").write_text(text.replace("seeds: 8", "seeds: {start: 3, max: 4}"))
    study, ledger = read_study(place / "growing.yaml"), Ledger(tmp_path / "ledger")
    first = planned(study, ledger)
    declare(study, first.runs, ledger)
    words = ["gate", str(study.path), "H1", "--ledger", ledger.url, "--budget", "loop"]

    def train(runs: Iterable[Run]) -> None:
        fill(ledger, [run for run in runs if run.arm != "M1"])

    train(first.runs)
    assert main(words) == 3
    assert "a seed is to be added for it; next: semray run" in capsys.readouterr().out
    assert not (tmp_path / "ledger" / ".budgets").exists()
    train(extend(first, [3], {(run.arm, run.backbone) for run in first.runs}).runs[len(first.runs) :])
    assert main(words) == 1
    assert capsys.readouterr().out.startswith("not shown  H1 on ")


def test_of_several_backbones_and_of_joint_claims(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gate stays shut where one backbone does not show it; a joint claim has one answer, its parts have none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    for layers, name in enumerate(("one", "two"), 1):
        tiny_backbone(tmp_path / name, layers=layers)
    joint = (
        "  - claim: both\n    all:\n"
        "      - {claim: faster, treatment: fast, control: slow, metric: scores/loss, expect: better}\n"
        "      - {claim: truer, treatment: fast, control: slow, metric: scores/accuracy, expect: better}\n"
    )
    text = OF_A_SCRIPT.replace("seeds: 4", "seeds: 8\nbackbones: [./one, ./two]") + joint
    (tmp_path / "own.yaml").write_text(text)
    study, ledger = read_study(tmp_path / "own.yaml"), Ledger(tmp_path / "ledger")
    runs = planned(study, ledger).runs
    declare(study, runs, ledger)

    def told(claim: str) -> tuple[int, list[str]]:
        code = main(["gate", "own.yaml", claim])
        return code, [line.split(":")[0] for line in capsys.readouterr().out.splitlines()]

    for run in runs:
        gain = (run.arm == "fast") * (run.backbone == "./one") + 0.01 * np.random.default_rng(run.seed).normal()
        values = {"scores/loss": 2 - gain, "scores/accuracy": 0.5 + gain / 4}
        if (run.arm, run.backbone) != ("fast", "./two"):
            finish(ledger, run, [Score(metric=metric, value=value) for metric, value in values.items()])
    assert told("H1") == (3, ["shown  H1 on ./one", "open  H1 on ./two"])
    for run in planned(study, ledger).left:
        finish(ledger, run, [Score(metric=metric, value=value) for metric, value in values.items()])
    assert told("H1") == (1, ["shown  H1 on ./one", "not shown  H1 on ./two"])
    assert told("both") == (1, ["shown  both on ./one", "not shown  both on ./two"])
    assert main(["gate", "own.yaml", "truer"]) == 2
    assert "truer is a part of both\n  accepted: both, as it was declared" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("p", "level", "shown"),
    [
        (0.01, 0.02, ("0.01", "0.02")),
        (0.00134, 0.00126, ("0.00134", "0.00126")),
        (0.0013372, 0.0013368, ("0.0013372", "0.0013368")),
        (1 / 3, 1 / 3, ("0.33", "0.33")),
    ],
)
def test_a_p_and_its_level_are_told_apart(p: float, level: float, shown: tuple[str, str]) -> None:
    assert _apart(p, level) == shown


def test_a_budget_is_spent_once_for_each_question(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers = {}
    for claim in ("H1-not", "P1", "P1", "M", "H3b"):
        ask(place, claim, "--budget", "loop", "--json")
        (answers.setdefault(claim, []),)[0].append(json.loads(capsys.readouterr().out)[0])
    assert answers["P1"][0] == answers["P1"][1]
    assert answers["P1"][0]["answer"] == "shown"
    assert answers["H1-not"][0] | {"why": ""} == answers["H1-not"][0] | {
        "p": 1.0,
        "answer": "not shown",
        "why": "",
    }
    assert answers["M"][0]["level"] is None  # what is open spends nothing
    assert answers["H3b"][0]["level"] > answers["P1"][0]["level"]  # a claim that is shown earns
    assert len(list((place / "ledger" / ".budgets" / "loop").iterdir())) == 3


def test_a_question_goes_by_recipes_and_not_by_the_names_of_arms(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a claim which is shown earns once. What was asked when questions went by names keeps its answer."""

    def asked(claim: str, budget: str, study: str = "gated") -> dict[str, object]:
        words = ["--ledger", str(place / "ledger"), "--budget", budget, "--json"]
        main(["gate", str(place / f"{study}.yaml"), claim, *words])
        told = json.loads(capsys.readouterr().out)[0]
        return {key: told[key] for key in ("answer", "p", "level")}

    first = asked("H1", "names")
    for name in ("B10", "B11"):
        text = (place / "gated.yaml").read_text()
        (place / "renamed.yaml").write_text(re.sub(r"\bB1\b(?!-)", name, text))
        assert asked("H1", "names", "renamed") == first
    with monkeypatch.context() as before:
        before.setattr(
            declared, "ids_by_recipes", lambda of: {one.id: one.id for one, _ in claims_of(of, declaration_of(of))}
        )
        former = asked("P1", "old")
    assert asked("H3b", "old")["level"] != former["level"]
    assert asked("P1", "old") == former
    assert [len(list((place / "ledger" / ".budgets" / name).iterdir())) for name in ("names", "old")] == [1, 2]


def test_check_claim_takes_public_spreads_or_those_of_a_ledger(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["check-claim", "76.25", "77.05"]) == 0
    said = capsys.readouterr().out
    assert "+0.80, one seed each" in said
    assert "51%" in said  # by chance
    at = ["--study", str(place / "gated.yaml"), "--ledger", str(place / "ledger")]
    assert main(["check-claim", ".60", ".61", *at, "--metric", "t2d/recall@10", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["spread"]["seeds"] == 16  # two trained arms of eight seeds; M1 did not run
    ledger = Ledger(place / "ledger")
    runs = [run for run in planned(read_study(place / "gated.yaml"), ledger).done if run.seed is not None]
    records = [ledger.record(run) for run in runs]
    recall = [
        [one.metrics["t2d/recall@10"].value for one in records if one.run.arm == arm] for arm in ("B1", "B1-noHN")
    ]
    assert found["spread"]["sd"] == pytest.approx(np.mean(np.var(recall, axis=1, ddof=1)) ** 0.5)
    t = 0.01 / found["spread"]["sd"] / 2**0.5
    assert found["by_chance"] == pytest.approx(2 * stats.t.sf(t, 14))
    assert found["hours_a_run"] == pytest.approx(np.mean([sum(one.seconds.values()) for one in records]) / 3600)
    assert main(["check-claim", ".60", ".61", *at, "--metric", "none"]) == 2
    assert "--metric none\n  accepted: t2d/recall@1, " in capsys.readouterr().err
    assert main(["check-claim", ".60", ".61", "--like", "nobody"]) == 2
    assert "--like nobody: no figures of many seeds are known" in capsys.readouterr().err
    monkeypatch.chdir(place)
    assert main(["check-claim", ".60", ".61", "--study", "gated", "--metric", "t2d/recall@10"]) == 0
    assert main(["check-claim", ".60", ".61", "--metric", "t2d/recall@10"]) == 2  # whose noise would it be?
    assert "--metric t2d/recall@10\n  accepted: together with --study STUDY" in capsys.readouterr().err
    assert main(["check-claim", "76.25", ".7705"]) == 2
    assert "both as .7625 or both as 76.25" in capsys.readouterr().err
    assert main(["check-claim", "1", "10"]) == 2
    assert main(["check-claim", "100.1", "99"]) == 2
    with pytest.raises(SystemExit):
        main(["check-claim", "76,25", "77.05"])
    assert "76,25\n  accepted: a number such as 76.25 or .7625" in capsys.readouterr().err


def test_check_claim_writes_a_study_to_fill_in(tmp_path: Path) -> None:
    study = tmp_path / "studies" / "again.yaml"  # in a folder that is made for it
    words = ["check-claim", "76.25", "77.05", "--write", str(study)]
    assert main(words) == 0
    text = study.read_text()
    assert "seeds: {start: 8, max: 42}" in text
    assert "Up to 42 seeds show a difference of this size without pairing" in text
    assert main(words) == 2  # never over a file that is there
    deltas = np.random.default_rng(0).normal(0.8, 0.84 * 2**0.5, (2000, 42))
    looks = e_values(deltas, 2.0)[:, 7:] >= 20
    assert looks[:, -1].mean() == pytest.approx(0.8, abs=0.03)
    assert (
        looks[:, :13].any(axis=1).mean() < 0.5 < 0.8 < looks.any(axis=1).mean()
    )  # 20 of a fixed design are too few
    assert main(["check-claim", "76.25", "76.27", "--write", str(study.with_name("small.yaml"))]) == 0
    said = study.with_name("small.yaml").read_text()
    assert "It would take more than 200 seeds to show a difference of this size without pairing" in said
    assert "seeds: {start: 8, max: 200}" in said
    assert main(["check-claim", "70", "99", "--write", str(study.with_name("large.yaml"))]) == 0
    said = study.with_name("large.yaml").read_text()
    assert "seeds: {start: 2, max: 8}" in said
    assert "Up to 8 seeds show a difference of this size" in said


def test_check_claim_knows_a_mean_of_seeds_from_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Means of five differ less than runs do: twice the normal tail beyond .8 √5 / (.84 √2) errors."""
    assert main(["check-claim", "76.25", "77.05", "--seeds", "5"]) == 0
    assert "two such means of one recipe differ as much in 14% of cases" in capsys.readouterr().out
    assert main(["check-claim", "70", "99"]) == 0
    said = capsys.readouterr().out
    assert "two runs of one recipe differ as much in less than 1% of cases" in said
    assert "keeps the sign with a chance of more than 99%" in said


@pytest.mark.parametrize(
    ("figures", "noise", "settled"),
    [
        (("76.25", "77.05"), "0.84", "20 seeds each, unpaired; fewer where runs are paired by seed"),
        (("5", "5.8"), "0.84", "20 seeds each"),  # in percent, though small
        ((".7625", ".7705"), "0.0084", "20 seeds each"),
        (("76.25", "76.28"), "0.84", "no number of seeds up to 10,000"),
        (("0", "0"), "0.0084", "no number of seeds up to 10,000"),
        (("76.25", "76.30"), "0.84", "4479 seeds each"),
    ],
)
def test_check_claim_says_how_many_seeds_settle_it(
    capsys: pytest.CaptureFixture[str], figures: tuple[str, str], noise: str, settled: str
) -> None:
    """So many that a t test with as many differences, each of the noise of two, has a power of .8."""
    assert main(["check-claim", *figures]) == 0
    said = capsys.readouterr().out
    assert f"noise       {noise} over seeds" in said
    assert f"settled by  {settled}" in said
    assert main(["check-claim", *figures, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    if found["seeds"] is not None:
        sd = found["spread"]["sd"] * (1 if noise == "0.0084" else 100)
        size = (float(figures[1]) - float(figures[0])) / (sd * 2**0.5)
        assert found["by_chance"] == pytest.approx(2 * stats.t.sf(size, found["spread"]["seeds"] - 1))
        assert found["seeds"] == math.ceil(TTestPower().solve_power(effect_size=size, power=0.8, alpha=0.05))


def test_check_claim_reads_figures_in_the_unit_of_the_ledger(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loss of 3.2 is no share in percent, and a smaller one is better; an accuracy may be given as either.

    Of arms whose seeds all agree, and of one seed, no noise is known.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    (tmp_path / "own.yaml").write_text(OF_A_SCRIPT)
    study, ledger = read_study(tmp_path / "own.yaml"), Ledger(tmp_path / "ledger")
    for run in planned(study, ledger).runs:
        off = 0.05 * (-1) ** (run.seed or 0)
        values = {"scores/loss": 3.2 + off, "scores/accuracy": 0.6 + off / 10, "scores/bleu": 0.3}
        values |= {"scores/points": 85 + off, "scores/ppl": 120 + off}
        scores = [Score(metric=metric, value=value) for metric, value in values.items()]
        finish(ledger, run, scores, seconds={"train": 1800.0})

    def told(*figures: str, metric: str) -> str:
        words = ["--study", "own.yaml", "--metric", metric, "--write", f"{figures[0]}.yaml"]
        assert main(["check-claim", *figures, *words]) == 0
        return capsys.readouterr().out + (tmp_path / f"{figures[0]}.yaml").read_text()

    loss = told("3.25", "3.20", metric="scores/loss")
    assert "difference  -0.0500" in loss
    assert "noise       0.0577 over seeds" in loss  # .05 √(4/3) of four seeds
    assert "metric: scores/loss, expect: better}" in loss
    assert "settled by  23 seeds each, unpaired, 23.0 hours at this ledger's pace" in loss  # two runs in an hour
    assert "difference  -2.0000" in told("122", "120", metric="scores/ppl")
    assert main(["check-claim", "122", "120", "--study", "own.yaml", "--metric", "scores/accuracy"]) == 2
    assert "both as .7625 or both as 76.25" in capsys.readouterr().err
    accuracy = told("60", "61", metric="scores/accuracy")
    assert "unit        figures taken as percentages: there scores/accuracy is about 0.6\n" in accuracy
    assert "noise       0.58 over seeds" in accuracy
    assert "metric: scores/accuracy, expect: better}" in accuracy
    accuracy = told(".60", ".59", metric="scores/accuracy")
    assert "unit " not in accuracy
    assert "noise       0.0058 over seeds" in accuracy
    assert "metric: scores/accuracy, expect: worse}" in accuracy
    points = told(".850", ".851", metric="scores/points")  # of a script that writes percentages
    assert (
        "unit        figures taken as shares, and those of the ledger as percentages: there scores/points is"
        in points
    )
    assert "noise       0.0006 over seeds" in points
    points = told("85.0", "85.1", metric="scores/points")
    assert "unit " not in points
    assert "noise       0.0577 over seeds" in points
    words = ["check-claim", ".3", ".4", "--study", "own.yaml"]
    assert main([*words, "--metric", "scores/bleu"]) == 2
    assert "scores/bleu is the same at every seed: nothing there tells of noise" in capsys.readouterr().err
    (tmp_path / "own.yaml").write_text(OF_A_SCRIPT.replace("seeds: 4", "seeds: 1"))
    assert main([*words, "--metric", "scores/accuracy"]) == 2
    assert "holds no arm of own with scores/accuracy at two seeds" in capsys.readouterr().err
