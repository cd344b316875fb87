"""Studies of the difficulty family: what their report says beside a claim."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from corpora.difficulty.pairs import PairData
from evaluators.metrics.scores import Score
from orchestration.commands.cli import main
from orchestration.families.contract import ArmSeen
from orchestration.families.difficulty import FAMILY
from orchestration.lanes.lane import Lease, execute
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import Facts, gather_facts, plan, planned_run, prepare
from orchestration.plan.slips import slips
from orchestration.reading.read_study import read_study
from orchestration.report import forms
from orchestration.search.trials import Selection, selections
from orchestration.study.errors import StudyError
from orchestration.study.run import WITHOUT_DEV, Job, Result, Run, RunsFailed
from orchestration.study.study import Study
from orchestration.verdicts.declared import declare
from orchestration.verdicts.find import find
from tests.lanes import lane_here
from tests.results import finish
from tests.small_study import study_in
from tests.tiny import tiny_backbone
from trainers.difficulty.settings import Settings
from trainers.engine.world import Progress, World

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


SIZES = """\
question: Does every size go with the backbone?
family: difficulty
backbones: [PLACE/tiny]
data: {path: PLACE, tasks: [stsb]}
train: {steps: 2, batch_size: 32}
arms: {frozen: {form: baseline}, narrow: {form: pair_ungated}, bent: {form: proj_only}}
evaluate: [similarity]
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backbone whose vectors have 32 numbers, and forty pairs of each split."""
    folder = tmp_path_factory.mktemp("sizes")
    tiny_backbone(folder / "tiny")
    for split in ("train", "dev", "test"):
        rows = (f"main\tMSRvid\t2012\t1\t{row % 5}\ta cup {row}\ta dog {row}\n" for row in range(40))
        (folder / f"sts-{split}.csv").write_text("".join(rows))
    return folder


JUDGED = SIZES.replace("tasks: [stsb]}", "tasks: [stsb], judge: JUDGE}").replace(
    "bent: {form: proj_only}",
    "bent: {form: judge_scorer}, lex: {form: pair_lex}, even: {form: pair_lex, gamma: 1.0}",
)
CLAIM = """\
compare:
  - {claim: A, treatment: TREATMENT, control: CONTROL, metric: METRIC, expect: better}
"""


def test_a_judge_that_is_no_cross_encoder_is_refused_before_it_judges(place: Path) -> None:
    """The backbone itself, of which transformers would make one with a head drawn at random."""
    study = study_in(place, JUDGED, "JUDGE", f"{place}/tiny, judge_saw: [nli]")
    with pytest.raises(
        StudyError, match=r"data\.judge = '.*tiny': .*config\.json says .*\n  accepted: a cross-enc"
    ):
        gather_facts(study)


def claimed(treatment: str, control: str, metric: str) -> str:
    return CLAIM.replace("TREATMENT", treatment).replace("CONTROL", control).replace("METRIC", metric)


def judged_study(place: Path, more: str = "", saw: str = "stsb") -> Study:
    """The judge is a file of scores with one for every pair."""
    pairs = "".join(f"a cup {row}\ta dog {row}\t0.5\n" for row in range(40))
    (place / "scores.tsv").write_text(pairs)
    judge = f"scores_file, scores_file: {place}/scores.tsv, judge_saw: [{saw}]"
    text = JUDGED.replace("[similarity]", "[similarity, retrieval, isolation]")
    return study_in(place, text.replace("JUDGE", judge) + more)


@pytest.mark.parametrize(
    ("treatment", "control", "metric", "said"),
    [
        (
            "lex",
            "narrow",
            "stsb/isolated_gain",
            r"arms\.narrow\.form = 'pair_ungated', of which stsb/isolated_gain",
        ),
        ("lex", "frozen", "mean(stsb/isolated_gain, stsb/spearman)", r"arms\.frozen\.form = 'baseline', of which"),
        (
            "bent",
            "frozen",
            "stsb/recall@1",
            r"arms\.bent\.form = 'judge_scorer', of which .*\n  accepted: any other",
        ),
        (
            "bent",
            "frozen",
            "stsb/mrr_restricted",
            r"arms\.bent\.form = 'judge_scorer', of which stsb/mrr_restricted",
        ),
    ],
)
def test_a_claim_on_a_figure_that_its_arm_never_has_is_refused_before_training(
    place: Path, treatment: str, control: str, metric: str, said: str
) -> None:
    quoted = f'"{metric}"'
    with pytest.raises(StudyError, match=said):
        gather_facts(judged_study(place, claimed(treatment, control, quoted)))


def test_a_claim_on_figures_that_its_arms_have_is_not_refused(place: Path) -> None:
    for treatment, control, metric in (("lex", "even", "isolated_gain"), ("lex", "frozen", "recall@1")):
        gather_facts(judged_study(place, claimed(treatment, control, f"stsb/{metric}")))


def test_a_claim_on_a_correlation_with_one_gold_is_refused_before_training(place: Path, tmp_path: Path) -> None:
    """Retrieval goes by places in a list, not by gold."""
    for split in ("train", "dev"):
        rows = (f"main\tMSRvid\t2012\t1\t{row % 5}\ta cup {row}\ta dog {row}\n" for row in range(40))
        (tmp_path / f"sts-{split}.csv").write_text("".join(sorted(rows, key=lambda row: row.split("\t")[4])))
    text = SIZES.replace("data: {path: PLACE", f"data: {{path: {tmp_path}, eval_cap: 8")
    text = text.replace("[similarity]", "[similarity, retrieval]")
    said = r"stsb/pearson is claimed, and all 8 evaluated rows have gold 0: .*\n  accepted: rows of at least two"
    with pytest.raises(StudyError, match=said):
        prepare(study_in(place, text + claimed("narrow", "frozen", "stsb/pearson")))
    prepare(study_in(place, text + claimed("narrow", "frozen", "stsb/recall@1")))


SEARCH = """\
search:
  space: difficulty
  arms: [ARM]
  dimensions: {d_h: all, init: all}
  trials: 2
  objective: {metric: METRIC, mode: max}
  seeds: [100]
"""


def searched(place: Path, arm: str, metric: str) -> Study:
    text = SIZES + SEARCH.replace("ARM", arm).replace("METRIC", metric)
    return study_in(place, text, "[similarity]", "[similarity, isolation]")


def test_a_search_for_a_figure_that_its_arm_never_has_is_refused_before_its_first_run(place: Path) -> None:
    with pytest.raises(StudyError, match=r"arms\.narrow\.form = 'pair_ungated', of which dev/stsb/isolated_gain"):
        gather_facts(searched(place, "narrow", "dev/stsb/isolated_gain"))
    gather_facts(searched(place, "narrow", "dev/stsb/spearman"))


def selection_of(study: Study) -> Selection:
    (found,) = selections(study, gather_facts(study))
    return found


def test_a_run_of_a_search_trains_without_the_rows_that_the_search_judges_by(place: Path) -> None:
    """They are a part of the training rows: a run of the study trains on all, and is another run."""
    study = searched(place, "narrow", "dev/stsb/spearman")
    found = selection_of(study)
    of_search = found.run(0, {}, 100)
    own = planned_run(study, found.facts, "narrow", found.backbone, 100)
    assert of_search.defining == {**own.defining, WITHOUT_DEV: True}
    assert WITHOUT_DEV not in own.defining
    assert of_search.id != own.id


def test_a_choice_that_the_backbone_cannot_have_is_refused_before_a_search_starts(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its vectors have 32 numbers: a projection of a sentence has no more, a pair's heads may have."""
    path = searched(place, "bent", "dev/stsb/spearman").path
    assert main(["search", str(path), "--ledger", str(tmp_path)]) == 2
    said = "arms.bent (search.dimensions.d_h: 64): d_h = 64\n  accepted for proj_only: at most 32"
    assert said in capsys.readouterr().err
    found = selection_of(searched(place, "narrow", "dev/stsb/spearman"))
    assert [(arm.init, arm.d_h) for arm in found.at_choices.arms.values()] == [
        ("linear", None), ("linear", None), ("identity", "full"),
        ("linear", None), ("linear", 64), ("linear", 256), ("linear", "full"),
    ]  # fmt: skip
    prepare(found.at_choices)


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ("a cup 0\ta dog 0\t0.5\n", r"39 of 40 pairs have no score, the first is 'a cup 1' / 'a dog 1'"),
        ("caf\xe9\ta dog 0\t0.5\n", r"scores\.tsv cannot be read: .*\n  accepted: text in UTF-8"),
        ("a cup 0\ta dog 0\t5\n", r"scores\.tsv, line 1: .*\n  accepted: a, b, score in \[0, 1\]"),
    ],
)
def test_a_file_of_scores_is_read_before_a_lane_starts(place: Path, scores: str, said: str) -> None:
    study = judged_study(place)
    prepare(study)
    (place / "scores.tsv").write_bytes(scores.encode("latin-1"))
    with pytest.raises(StudyError, match=said):
        prepare(study)


def test_a_set_that_no_claim_can_be_warned_of_is_told_by_the_plan(place: Path) -> None:
    def told(saw: str) -> list[str]:
        return [slip for slip in slips(judged_study(place, saw=saw)) if "judge_saw" in slip]

    assert told("STS-B") == []
    assert told("") == ["bent: data.judge_saw = [] leaves open whose labels scores_file learned from"]
    (unknown,) = told("stsb, stsbenchmrk")
    assert unknown.startswith("bent: data.judge_saw: no claim is warned of 'stsbenchmrk'; known: stsb, mrpc, ")
    alone = judged_study(place)
    arms = {name: arm for name, arm in alone.arms.items() if not arm.needs_judge}
    assert not [slip for slip in slips(replace(alone, arms=arms)) if "judge_saw" in slip]


def test_the_plan_says_which_rows_are_published_as_test(place: Path) -> None:
    """Of paws_offline, as of the yearly sets, though a run's name for them stays `validation`."""
    (place / "paws" / "final").mkdir(parents=True)
    for split in ("dev", "test"):
        (place / "paws" / "final" / f"{split}.tsv").write_text("1\ta\tb\t1\n2\tc\td\t0\n")
    data = PairData(path=str(place), tasks=("stsb", "paws_offline"))
    assert [one.words for one in FAMILY.rows(data) or ()] == [
        "stsb: 40 train; held out 40 of validation",
        "paws_offline: 2 train; held out 2 of test",
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "pair_ungated",
            "pair_ungated, init: identity",
            r"arms\.narrow: init = .*\n  accepted: d_h: full, .* = 32",
        ),
        ("proj_only", "proj_only, d_h: 64", r"arms\.bent: d_h = 64\n  accepted for proj_only: at most 32"),
    ],
)
def test_a_size_that_the_backbone_does_not_allow_is_found_before_it_costs_the_other_arms(
    place: Path, old: str, new: str, said: str
) -> None:
    with pytest.raises(StudyError, match=said):
        prepare(study_in(place, SIZES, old, new))
    prepare(study_in(place, SIZES, "pair_ungated", "pair_ungated, init: identity, d_h: full"))


def test_of_a_stack_each_adapter_that_diverges_is_told_of_by_itself(place: Path) -> None:
    study = study_in(place, SIZES, "batch_size: 32}", "batch_size: 32}\nseeds: 1")
    (job,) = plan(study, gather_facts(study)).jobs
    wild = [
        replace(run, settings={**run.settings, "learning_rate": 1e38}) if run.arm != "frozen" else run
        for run in job.runs
    ]
    finished = []
    with pytest.raises(RunsFailed) as told:
        finished.extend(FAMILY.execute(Job(runs=tuple(wild)), World()))
    assert {one.run.arm for one in finished} == {"frozen"}
    forms_of = {run.id: run.settings["form"] for run in wild if run.arm != "frozen"}
    assert told.value.errors.keys() == forms_of.keys()
    for run_id, error in told.value.errors.items():
        assert forms_of[run_id] in str(error)
        assert str(error).count("loss is not finite") == 1


STEP = 100.0  # seconds that go by, as clocks have it, with each step of a model


def with_long_steps(job: Job, world: World) -> Iterator[Result]:
    clock, gone = time.perf_counter, 0.0

    def report(progress: Progress) -> None:
        nonlocal gone
        gone = STEP * progress.step
        world.report(progress)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "perf_counter", lambda: clock() + gone)
        yield from execute(job, replace(world, report=report))


def finished(study: Study, ledger: Ledger) -> dict[str, Run]:
    """The runs of a study by arm, after a lane has done what the ledger lacked of them."""
    runs = plan(study, gather_facts(study)).runs
    left = tuple(ledger.remaining(run) for run in runs if not ledger.holds(run))
    with ledger.drive("study"):
        state = lane_here(with_long_steps, ledger.url).work(
            Lease(job=Job(runs=left), attempts={run.id: ledger.lease(run.id) for run in left})
        )
        assert state.problem is None
        assert all(ledger.commit(entry, attempt) for entry, attempt in state.staged)
    return {run.arm: run for run in runs}


def test_a_run_that_is_scored_alone_is_not_billed_for_the_training_of_others(place: Path, tmp_path: Path) -> None:
    """The first arm lacks a task when the second is added: four steps, and all of them the second's."""
    arms = "{frozen: {form: baseline}, narrow: {form: pair_ungated}, bent: {form: proj_only}}"
    one, two = (
        f"{{narrow: {{form: pair_ungated}}{more}}}" for more in ("", ", bent: {form: proj_only, steps: 4}")
    )
    text, ledger = SIZES.replace("backbones", "seeds: 1\nbackbones"), Ledger(tmp_path / "ledger")
    finished(study_in(place, text, arms, one), ledger)
    runs = finished(study_in(place, text.replace("[similarity]", "[similarity, retrieval]"), arms, two), ledger)
    scored = ledger.scores(runs["narrow"].entry("retrieval/stsb")).cost["seconds"]
    trained = ledger.training(runs["bent"].id).cost["seconds"]
    assert (scored // STEP, trained // STEP) == (0, 4)


def test_runs_that_are_one_stack_already_are_not_told_that_they_train_one_by_one(place: Path) -> None:
    said = r"resources\.runs_per_stack = 4\n  accepted: 1: this family trains all its runs as one stacked model already"
    with pytest.raises(StudyError, match=said):
        study_in(place, SIZES + "resources: {runs_per_stack: 4}\n")


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        ("precision: bf16", r"precision = 'bf16'\n  accepted: auto or fp32: .* one stacked model, in fp32"),
        ("deepspeed: {zero_stage: 2}", r"deepspeed\.zero_stage = 2\n  accepted: 0: .*, without DeepSpeed"),
        ("checkpoint_every: 5", r"checkpoint_every = 5\n  accepted: 0: .*, which keeps no checkpoints"),
    ],
)
def test_what_no_stack_of_adapters_does_is_refused(place: Path, resources: str, said: str) -> None:
    with pytest.raises(StudyError, match=rf"resources\.{said}"):
        study_in(place, SIZES + f"resources: {{{resources}}}\n")


def test_no_size_is_refused_where_the_length_of_the_vectors_is_not_known(place: Path, tmp_path: Path) -> None:
    """A module of the backbone's own may make them longer."""
    tiny_backbone(tmp_path / "tiny")
    modules = [{"idx": 0, "name": "0", "path": "", "type": "Transformer"}]
    modules += [
        {"idx": n, "name": str(n), "path": f"{n}_{kind}", "type": kind}
        for n, kind in ((1, "Pooling"), (2, "Dense"))
    ]
    (tmp_path / "tiny" / "modules.json").write_text(json.dumps(modules))
    FAMILY.prepare(study_in(place, SIZES, "proj_only", "proj_only, d_h: 64"), [tmp_path / "tiny"])
