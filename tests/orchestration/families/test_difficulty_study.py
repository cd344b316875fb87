"""Studies of the difficulty family: what their report says beside a claim."""

from __future__ import annotations

from pathlib import Path

from corpora.difficulty.pairs import PairData
from evaluators.metrics.scores import Score
from orchestration.families.contract import ArmSeen
from orchestration.families.difficulty import FAMILY
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import Facts, plan
from orchestration.reading.read_study import read_study
from orchestration.report import forms
from orchestration.verdicts.declared import declare
from orchestration.verdicts.find import find
from tests.results import finish
from trainers.difficulty.settings import Settings

SEES_STSB = "the judge of A0 learned from labels of stsb"
STUDY = """\
question: Does the report say what the judge has seen?
family: difficulty
backbones: [tiny]
seeds: 2
data: {tasks: [stsb, sickr, paws_offline], judge: token_match_standin}
arms: {frozen: {form: baseline}, judged: {form: pair_judge}, lex: {form: pair_lex}}
evaluate: [similarity]
compare:
  - {claim: seen, treatment: judged, control: frozen, metric: stsb/spearman, expect: better}
  - {claim: mixed, treatment: judged, control: lex, metric: "mean(stsb/spearman, paws_offline/spearman)", expect: better}
  - {claim: unseen, treatment: judged, control: frozen, metric: paws_offline/spearman, expect: better}
  - {claim: unjudged, treatment: lex, control: frozen, metric: stsb/spearman, expect: better}
"""


def said(form: str, figure: str, **data: object) -> tuple[str, ...]:
    fields: dict[str, object] = {"judge": "some/cross-encoder", **data}
    arm = ArmSeen(name="A0", settings=Settings(form=form), means={})  # type: ignore[arg-type]
    return FAMILY.caveats([arm], PairData(**fields), [figure])  # type: ignore[arg-type]


def test_a_claim_on_labels_that_the_judge_learned_says_so() -> None:
    saw = {"judge_saw": ("stsb",)}
    assert said("pair_judge", "stsb/spearman", **saw) == (SEES_STSB,)
    assert said("pair_judge", "dev/stsb/isolated_gain", **saw) == (SEES_STSB,)
    assert said("judge_scorer", "mrpc/recall@1", **saw) == (f"{SEES_STSB}, which shares pairs with mrpc",)
    assert said("pair_judge", "sts13/pearson", **saw) == (f"{SEES_STSB}, which shares pairs with sts13",)
    assert said("pair_judge", "qqp/spearman", **saw) == ()
    assert said("pair_lex", "stsb/spearman", **saw) == ()  # no judge has a part in it
    assert said("pair_judge", "stsb/spearman") == ()
    assert said("pair_judge", "stsb/spearman", judge="token_match_standin") == (SEES_STSB,)
    assert said("pair_judge", "mrpc/spearman", judge="token_match_standin") == ()  # it leaves MSRpar out


def test_the_report_has_it_beside_the_claim(tmp_path: Path) -> None:
    path = tmp_path / "judged.yaml"
    path.write_text(STUDY)
    study, ledger = read_study(path), Ledger(tmp_path / "ledger")
    facts = Facts(
        backbones={"tiny": "t" * 8},
        corpus="c" * 8,
        tasks={task: task for task in study.evaluate},
        precision="fp32",
    )
    runs = plan(study, facts).runs
    declare(study, runs, ledger)
    for run in runs:
        names = [f"{one}/{figure}" for one in study.data.tasks for figure in ("spearman", "pearson")]
        finish(ledger, run, [Score(metric=name, value=0.5 + 0.1 * (run.seed or 0)) for name in names])
    findings = find(study, runs, ledger)
    beside = {one.verdict.claim: one.caveats for one in findings.findings}
    words = "the judge of judged learned from labels of stsb"
    assert beside == {"seen": (words,), "mixed": (words,), "unseen": (), "unjudged": ()}
    assert forms.markdown(findings).count(words) == 2
