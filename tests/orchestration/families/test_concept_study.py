"""A study of the concept family from its file to its report, on a WordNet of tiny files: layers, mixtures, caveats."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from corpora.concept.data import ConceptData
from orchestration.families.concept import caveats, check_layers
from orchestration.families.contract import ArmSeen
from orchestration.lanes.lane import execute
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import Facts, gather_facts, plan, prepare
from orchestration.report import forms
from orchestration.study.errors import StudyError
from orchestration.study.run import Job
from orchestration.verdicts.declared import declare
from orchestration.verdicts.find import find
from orchestration.verdicts.findings import Findings
from tests.corpora.conftest import write_small_wordnet
from tests.results import put, without_model
from tests.small_study import study_in
from tests.tiny import tiny_backbone
from trainers.concept.settings import Settings, defining
from trainers.engine.world import World

STUDY = """\
question: Does a mixture of layers find more than the last?
family: concept
backbones: [PLACE/tiny]
seeds: 2
data: {wordnet: PLACE/wordnet, n_hh: 20, n_id: 20, n_dev: 10}
train: {steps: 3, batch_size: 4, warmup: 1, max_length: 32, layers: 2, hard_negatives: true, learning_rate: 1.0e-6}
arms:
  B0-WM: {readout: weighted, train: false}
  B1: {}
  B2: {readout: cls}
  M1: {readout: weighted}
  M2: {readout: gated, pool_lr_multiplier: 1.0e+6}
  M3: {readout: weighted, deep_supervision: beside}
evaluate: [t2d, layers, readout, hh/stress, hh/pair_auc]
compare:
  - {claim: H2-M1, treatment: M1, control: B1, metric: t2d/mrr, expect: equivalent, margin: 0.1}
  - {claim: H2-M2, treatment: M2, control: B1, metric: t2d/mrr, expect: equivalent, margin: 0.1}
  - {claim: sharper, treatment: B1, control: B2, metric: layers/last_gain, expect: better}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    write_small_wordnet(folder / "wordnet")
    tiny_backbone(folder / "tiny")
    return folder


@pytest.fixture(scope="module")
def findings(place: Path) -> Findings:
    """Every run of the study, executed here one after another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEMRAY_CACHE", str(place / "cache"))
        study, ledger = study_in(place, STUDY), Ledger(place / "ledger")
        runs = plan(study, gather_facts(study)).runs
        prepare(study)
        declare(study, runs, ledger)
        for run in runs:
            put(ledger, run, map(without_model, execute(Job(runs=(run,)), World())))
        return find(study, runs, ledger)


def test_every_arm_is_read_layer_by_layer(findings: Findings) -> None:
    tiny = findings.backbones[0]
    for arm in findings.arms:
        for row in findings.of(arm, tiny):
            assert row.status == "finished", row.problem
            assert {f"layers/{layer}/mrr" for layer in range(4)} <= set(row.metrics)
            assert "hh/stress/negate/auc" in row.metrics
            assert ("readout/shift" in row.metrics) == (arm != "B2")  # the first token is no mixture of means
    frozen = findings.of("B0-WM", tiny)[0].metrics
    assert frozen["readout/alpha_2"] == frozen["readout/alpha_3"] == 0.5
    assert frozen["readout/divergence_max"] <= frozen["readout/bound_sharp"] + 1e-6
    assert findings.of("B1", tiny)[0].metrics["readout/divergence"] == 0


def test_a_mixture_that_stayed_uniform_is_no_test_and_the_report_says_so(findings: Findings) -> None:
    said = {finding.verdict.claim: finding.caveats for finding in findings.findings}
    assert said["H2-M1"] == ("untested: the layer weights of M1 stayed within 0.03 of uniform (0.000)",)
    assert said["H2-M2"] == ()  # its rate is a million times as high
    assert said["sharper"] == ()
    for form in (forms.table(findings), forms.markdown(findings)):
        assert "stayed within 0.03 of uniform" in form
    assert [claim["caveats"] for claim in forms.as_json(findings)] == [list(said[claim]) for claim in said]


def test_caveats_speak_of_trained_mixtures_against_others_alone() -> None:
    mean, mixed = Settings(), Settings(readout="gated")

    def sides(*pairs: tuple[Settings, dict[str, float]]) -> tuple[str, ...]:
        seen = [ArmSeen(name=f"A{n}", settings=arm, means=means) for n, (arm, means) in enumerate(pairs)]
        return caveats(seen, ConceptData(), ["t2d/recall@10"])

    assert "A1 stayed within" in sides((mean, {}), (mixed, {"readout/shift": 0.03}))[0]
    assert sides((mean, {}), (mixed, {"readout/shift": 0.031})) == ()
    assert "`evaluate: readout` tells" in sides((mean, {}), (mixed, {}))[0]
    assert sides((mixed, {}), (mixed, {"readout/shift": 0.0})) == ()
    assert sides((mean, {}), (replace(mixed, train=False), {"readout/shift": 0.0})) == ()
    assert sides((mean, {}), (mean, {})) == ()


def test_layers_that_a_readout_cannot_mix_are_refused(place: Path) -> None:
    deep = study_in(place, STUDY, "M2: {readout: gated,", "M2: {readout: gated, layers: 4,")
    with pytest.raises(ValueError, match=r"arms\.M2\.layers = 4\n  accepted: up to 3"):
        check_layers(deep, [place / "tiny"])
    check_layers(study_in(place, STUDY), [place / "tiny"])


def test_a_readout_that_nothing_would_train_is_refused_where_the_study_is_read(place: Path) -> None:
    for unpushed in ("hn_mode: unified", "hn_coefficient: 0", "hard_negatives: false"):
        alone = f"deep_supervision: instead, {unpushed}"
        with pytest.raises(
            StudyError, match=r"arms\.M3\.deep_supervision = 'instead'\n  accepted: beside, or hard_"
        ):
            study_in(place, STUDY, "deep_supervision: beside", alone)
    Settings(readout="weighted", deep_supervision="instead", train=False)
    study_in(place, STUDY, "deep_supervision: beside", "deep_supervision: instead")


def test_a_pair_alone_in_its_batch_is_told_from_hard_negatives_or_refused(place: Path) -> None:
    """Its loss would be 0 at every step."""
    said = r"arms\.B2\.batch_size = 1\n  accepted: 2 and more, or with hard_negatives"
    for alone in ("hard_negatives: false", "hn_coefficient: 0"):
        with pytest.raises(StudyError, match=said):
            study_in(place, STUDY, "{readout: cls}", f"{{readout: cls, batch_size: 1, {alone}}}")
    for told_apart in ("hn_coefficient: 0.5", "hn_coefficient: 0, hn_mode: unified"):
        study_in(place, STUDY, "{readout: cls}", f"{{readout: cls, batch_size: 1, {told_apart}}}")
    Settings(batch_size=1, train=False)


def test_hard_negatives_are_those_of_definitions_that_are_trained_on(place: Path) -> None:
    with pytest.raises(StudyError, match=r"train\.hard_negatives = true\n  accepted: false with t2d_weight: 0"):
        study_in(place, STUDY, "{readout: cls}", "{readout: cls, t2d_weight: 0}")
    study_in(place, STUDY, "{readout: cls}", "{readout: cls, t2d_weight: 0, hard_negatives: false}")


def test_a_mixture_in_bf16_has_an_id_of_its_own_since_it_is_mixed_in_fp32(place: Path) -> None:
    """All else has the ids that its settings alone give, in bf16 as in fp32."""
    study = study_in(place, STUDY)
    facts = Facts(
        backbones=dict.fromkeys(study.backbones, "b"),
        corpus="c",
        tasks=dict.fromkeys(study.evaluate, "t"),
        precision="fp32",
    )
    for precision in ("fp32", "bf16"):
        for run in plan(study, replace(facts, precision=precision)).runs:
            before = replace(run, defining=defining(study.arms[run.arm]))
            assert (run.id == before.id) == (precision == "fp32" or run.arm in ("B1", "B2")), run.label
