"""The plan: a pure function from a study to runs, what is left of them, and what their seeds can show."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from evaluators.metrics.scores import Aggregate
from evaluators.significance.comparisons import PairedSeeds
from evaluators.significance.judge import judge
from evaluators.significance.paired_items import ItemScores
from evaluators.significance.power import Noise, smallest_effect
from orchestration.commands.plan_words import rows_words
from orchestration.families.contract import RowsOf
from orchestration.ledger.failures import Failure
from orchestration.plan.described import describe, estimate, next_step
from orchestration.plan.launcher import launcher
from orchestration.plan.plan import Facts, extend, plan
from orchestration.plan.reach import reachability
from orchestration.plan.spread import Sample, Seen, SeenPairs
from orchestration.reading.read_study import read_study
from orchestration.study.run import Run
from orchestration.study.study import Study

STUDY = """\
question: Is hard better?
family: concept
backbones: [small, large]
seeds: 3
arms:
  B1: {hard_negatives: true}
  B0: {train: false}
  B1-noHN: {hard_negatives: false}
evaluate: [t2d, geometry]
compare:
  - {claim: H1, treatment: B1, control: B0, metric: t2d/recall@10, expect: better}
  - {claim: H3, treatment: B1, control: B1-noHN, metric: t2d/recall@10, expect: equivalent, margin: 0.01}
"""
TASKS = {"t2d": "t" * 8, "d2t": "d" * 8, "geometry": "g" * 8}
FACTS = Facts(backbones={"small": "s" * 8, "large": "l" * 8}, corpus="c" * 8, tasks=TASKS, precision="fp32")

Load = Callable[..., Study]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load(text: str = STUDY, name: str = "hard") -> Study:
        path = tmp_path / f"{name}.yaml"
        path.write_text(text)
        return read_study(path)

    return load


def entries(runs: Iterable[Run]) -> list[str]:
    """What a ledger holds in which these runs are done."""
    return [entry for run in runs for entry in run.entries]


def test_untrained_arms_come_first_then_all_arms_of_each_seed(load: Load) -> None:
    places = [(run.seed, run.backbone, run.arm) for run in plan(load(), FACTS).runs]
    assert places == [
        (None, "small", "B0"),
        (None, "large", "B0"),
        *((seed, name, arm) for seed in range(3) for name in ("small", "large") for arm in ("B1", "B1-noHN")),
    ]


def test_trained_runs_of_one_backbone_and_shape_stack(load: Load) -> None:
    """Full stacks in the order of the plan; who is trained already, or not at all, is nobody's neighbour."""
    text = STUDY + "resources: {runs_per_stack: 4}\n"
    planned = plan(load(text), FACTS)
    named = [[(run.arm, run.backbone, run.seed) for run in job.runs] for job in planned.jobs]
    pair = [(arm, seed) for seed in range(3) for arm in ("B1", "B1-noHN")]
    assert named[:2] == [[("B0", "small", None)], [("B0", "large", None)]]
    assert named[2:] == [
        [(arm, name, seed) for arm, seed in part] for part in (pair[:4], pair[4:]) for name in ("small", "large")
    ]
    held = [planned.runs[2].id]  # trained, and still to be scored
    assert [len(job.runs) for job in plan(load(text), FACTS, held).jobs] == [1, 1, 1, 4, 4, 1, 2]
    longer = text.replace("B1-noHN: {", "B1-noHN: {steps: 9, ")
    assert [len(job.runs) for job in plan(load(longer), FACTS).jobs] == [1, 1, 3, 3, 3, 3]
    alone = plan(load(), FACTS)
    assert {run.id for run in planned.runs} & {run.id for run in alone.runs} == {
        run.id for run in alone.runs if run.seed is None
    }


def test_the_same_file_gives_the_same_runs(load: Load) -> None:
    assert plan(load(), FACTS) == plan(load(), FACTS)
    again = STUDY.replace("Is hard better?", "Another question?  # and a comment")
    assert [run.id for run in plan(load(again), FACTS).runs] == [run.id for run in plan(load(), FACTS).runs]


def test_ids_are_the_same_in_another_process(load: Load) -> None:
    """No id may hang on the order of a set or on a salted hash."""
    study = load()
    code = (
        "from orchestration.plan.plan import *; from orchestration.reading.read_study import read_study; import sys\n"
        "tasks = {'t2d': 't' * 8, 'geometry': 'g' * 8}\n"
        "facts = Facts(backbones={'small': 's' * 8, 'large': 'l' * 8}, corpus='c' * 8, tasks=tasks, precision='fp32')\n"
        "print(*(run.id for run in plan(read_study(sys.argv[1]), facts).runs))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code, study.path],
        env={"PYTHONHASHSEED": "77", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.stdout.split() == [run.id for run in plan(study, FACTS).runs]


def test_a_run_has_another_id_when_anything_that_counts_changes(load: Load) -> None:
    def ids(text: str = STUDY, facts: Facts = FACTS) -> set[str]:
        return {run.id for run in plan(load(text), facts).runs}

    first = ids()
    untrained = {run.id for run in plan(load(), FACTS).runs if run.seed is None}
    assert len(first) == 14
    assert first & ids(facts=replace(FACTS, corpus="other")) == untrained  # they read none of its rows
    assert first.isdisjoint(ids(facts=replace(FACTS, backbones={"small": "x", "large": "y"})))
    for change in (
        "train: {learning_rate: 1.0e-3}",
        "resources: {workers_per_run: 2}",
        "resources: {deepspeed: {zero_stage: 2}}",
    ):
        assert first & ids(f"{STUDY}{change}\n") == untrained
    assert first.isdisjoint(ids(f"{STUDY}resources: {{precision: bf16}}\n"))  # it rounds what is encoded, too


def test_a_task_more_or_other_rows_to_test_on_train_nothing(load: Load) -> None:
    whole = plan(load(STUDY.replace("[t2d, geometry]", "[t2d]")), FACTS)
    more = plan(load(), FACTS, entries(whole.runs))
    assert [run.id for run in more.runs] == [run.id for run in whole.runs]
    assert more.to_score == more.left == more.runs
    assert all(tuple(run.tasks) == ("geometry",) for job in more.jobs for run in job.runs)
    other = plan(load(), replace(FACTS, tasks={**TASKS, "t2d": "other"}), entries(plan(load(), FACTS).runs))
    assert all(tuple(run.tasks) == ("t2d",) for job in other.jobs for run in job.runs)


def test_scores_of_another_precision_are_other_scores(load: Load) -> None:
    fp32, bf16 = (plan(load(), replace(FACTS, precision=one)).runs[0] for one in ("fp32", "bf16"))
    assert {name.partition(".")[2] for name in fp32.entries} & {n.partition(".")[2] for n in bf16.entries} == {""}


def test_what_the_ledger_holds_is_not_left(load: Load) -> None:
    whole = plan(load(), FACTS)
    part = plan(load(), FACTS, [*entries(whole.runs[:5]), "0123456789abcdef"])
    assert part.done == whole.runs[:5]
    assert part.left == whole.runs[5:]
    assert [job.runs for job in part.jobs] == [(run,) for run in whole.runs[5:]]
    assert part.to_score == ()


def test_arms_that_are_one_recipe_run_once(load: Load) -> None:
    """No file has such arms; the best points of two searches may be."""
    study = load()
    twins = replace(study, arms={**study.arms, "twin": study.arms["B1"]})
    made = plan(twins, FACTS)
    assert len({run.id for run in made.runs}) < len(made.runs)
    assert [run.id for run in made.left] == [run.id for run in plan(study, FACTS).left]
    assert "twin" not in {run.arm for run in made.left}
    assert plan(twins, FACTS, entries(made.left)).left == ()


def test_renaming_an_arm_or_adding_a_comparison_leaves_nothing_to_do(load: Load) -> None:
    done = entries(plan(load(), FACTS).runs)
    renamed = (
        STUDY.replace("B1-noHN", "plain")
        + "  - {claim: new, treatment: plain, control: B0, metric: t2d/mrr, expect: better}\n"
    )
    assert plan(load(renamed), FACTS, done).left == ()


@pytest.mark.parametrize(
    ("resources", "untrained", "trained"),
    [
        ("{}", "pool", "pool"),
        ("{workers_per_run: 2}", "pool", "train"),
        ("{launcher: train}", "train", "train"),
        ("{launcher: pool}", "pool", "pool"),
    ],
)
def test_launcher(load: Load, resources: str, untrained: str, trained: str) -> None:
    planned = plan(load(f"{STUDY}resources: {resources}\n"), FACTS)
    assert {job.runs[0].seed is None: launcher(job, planned.study.resources) for job in planned.jobs} == {
        True: untrained,
        False: trained,
    }


def test_precision_is_this_machines_best_unless_declared(load: Load) -> None:
    best = replace(FACTS, precision="bf16")
    assert {run.precision for run in plan(load(), best).runs} == {"bf16"}
    declared = load(STUDY + "resources: {precision: fp32}\n")
    assert {run.precision for run in plan(declared, best).runs} == {"fp32"}


def test_growing_adds_pairs_for_the_arms_that_need_them(load: Load) -> None:
    first = plan(load(STUDY.replace("seeds: 3", "seeds: {start: 2, max: 5}")), FACTS)
    assert first.seeds("B1", "small") == (0, 1)
    more = extend(first, [2, 3], {("B1", "small"), ("B0", "small"), ("B1-noHN", "small")})
    assert more.runs[: len(first.runs)] == first.runs
    assert [(run.arm, run.backbone, run.seed) for run in more.runs[len(first.runs) :]] == [
        (arm, "small", seed) for seed in (2, 3) for arm in ("B1", "B1-noHN")
    ]
    assert extend(more, [2, 3], {("B1", "small")}) == more
    assert more.seeds("B1", "large") == (0, 1)


def test_an_untrained_arm_stands_beside_every_seed(load: Load) -> None:
    planned = plan(load(), FACTS)
    assert planned.run("B0", "small", 0) is planned.run("B0", "small", 2)
    assert planned.run("B1", "small", 2) in planned.runs[6:]
    assert planned.run("B1", "small", 99) is None


def test_a_run_survives_the_ledger(load: Load) -> None:
    for run in plan(load(), FACTS).runs:
        assert type(run).from_dict(run.to_dict()) == run


def test_importing_the_plan_loads_neither_torch_nor_ray() -> None:
    code = (
        "import sys, orchestration.plan.plan, orchestration.plan.described, orchestration.plan.reach as r; "
        "print([m for m in ('torch', 'ray', 'mlflow', 'scipy', 'transformers') if m in sys.modules])"
    )
    env = {"PYTHONPATH": ":".join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True).stdout == "[]\n"


# What the seeds can show. Golden: MDE at power .80 in sds of the deltas is 1.682 for 5 seeds, 1.156 for 8.


def one_claim(load: Load, seeds: str, claim: str = "") -> Study:
    text = STUDY.split("compare:")[0].replace("[small, large]", "[small]").replace("seeds: 3", f"seeds: {seeds}")
    claim = claim or "{claim: H, treatment: B1, control: B0, metric: t2d/mrr, expect: better}"
    return load(f"{text}compare:\n  - {claim}\n")


@pytest.mark.parametrize(
    ("seeds", "test", "least", "floor", "effect"),
    [(5, "paired t", 0.0, 0.0625, 1.682), (8, "exact sign-flip", 0.0078125, 0.0078125, 1.156)],
)
def test_smallest_p_and_smallest_effect(
    load: Load, seeds: int, test: str, least: float, floor: float, effect: float
) -> None:
    (reach,) = reachability(plan(one_claim(load, str(seeds)), FACTS))
    assert (reach.test, reach.smallest_p, reach.sign_flip_floor) == (test, least, floor)
    assert reach.can_decide
    assert reach.smallest_effect == pytest.approx(effect, abs=5e-4)
    assert reach.smallest_difference == pytest.approx(effect * 0.0084, abs=1e-5)
    assert "SimCSE" in reach.whence[0]
    assert "the items' part is not known" in reach.whence[1]


def test_one_seed_shows_nothing(load: Load) -> None:
    (reach,) = reachability(plan(one_claim(load, "1"), FACTS))
    assert (reach.test, reach.smallest_p, reach.smallest_effect) == ("none", 1.0, None)
    assert not reach.can_decide
    claim = "{claim: H, treatment: B1, control: B0, metric: t2d/mrr, expect: equivalent, margin: 0.1}"
    assert reachability(plan(one_claim(load, "1", claim), FACTS))[0].test == "none"


def test_five_seeds_cannot_reach_five_percent_by_an_exact_test(load: Load) -> None:
    (five,) = reachability(plan(one_claim(load, "5"), FACTS))
    assert any("cannot go below p = 0.0625" in warning for warning in five.warnings)
    assert "; without items the verdict rests on the paired t test" in five.warnings[0]  # else on the crossed t
    assert "(from 8 seeds on the sign-flip test decides)" in five.warnings[0]
    tests = [reachability(plan(one_claim(load, seeds), FACTS))[0].test for seeds in ("6", "7", "8")]
    assert tests == ["paired t", "paired t", "exact sign-flip"]
    (six,) = reachability(plan(one_claim(load, "6"), FACTS))
    assert six.warnings == ()
    both, _ = reachability(
        plan(load(STUDY.replace("seeds: 3", "seeds: 5").replace("small, large", "small")), FACTS)
    )
    assert "cannot go below p = 0.0625, or 0.125 over 2 claims; without items the verdict" in both.warnings[0]


def test_holm_counts_every_claim_on_every_backbone(load: Load) -> None:
    reaches = reachability(plan(load(STUDY.replace("seeds: 3", "seeds: 8")), FACTS))
    assert [(reach.claim, reach.backbone, reach.claims) for reach in reaches] == [
        ("H1", "small", 4),
        ("H1", "large", 4),
        ("H3", "small", 4),
        ("H3", "large", 4),
    ]
    more = reachability(plan(load(), FACTS), None, {None: 3, "others": 7})  # that were withdrawn
    assert {reach.claims for reach in more} == {4 + 3}
    assert [reach.test for reach in reaches] == ["paired t"] * 2 + ["TOST"] * 2  # 2^-7 > .05 / (5 · 4)


def test_two_trained_arms_double_the_variance_until_their_correlation_is_known(load: Load) -> None:
    claim = "{claim: H, treatment: B1, control: B1-noHN, metric: t2d/mrr, expect: better}"
    (reach,) = reachability(plan(one_claim(load, "8", claim), FACTS))
    assert reach.sd == pytest.approx(0.0084 * math.sqrt(2))
    assert reach.correlation is None


def seen(treatment: list[float], control: list[float], items: np.ndarray | None = None) -> Seen:
    """A ledger of these pairs; items (2, n, M) of both arms where the metric keeps them."""
    ids = () if items is None else tuple(map(str, range(items.shape[2])))
    kept = None
    if items is not None:
        kept = ItemScores(aggregate="mean", treatment=items[0], control=items[1], item_ids=ids, group_ids=ids)
    pairs = PairedSeeds(
        seeds=tuple(range(len(treatment))), treatment=tuple(treatment), control=tuple(control), items=kept
    )
    return lambda claim: SeenPairs(pairs=pairs, sample=None)


def test_finished_pairs_replace_the_public_spread(load: Load) -> None:
    claim = "{claim: H, treatment: B1, control: B1-noHN, metric: t2d/mrr, expect: better}"
    planned = plan(one_claim(load, "8", claim), FACTS)
    treatment, control = [0.50, 0.53, 0.51, 0.58], [0.48, 0.52, 0.47, 0.57]
    (reach,) = reachability(planned, seen(treatment, control))
    deltas = np.subtract(treatment, control)
    assert reach.sd == pytest.approx(np.std(deltas, ddof=1))
    assert reach.correlation == pytest.approx(np.corrcoef(treatment, control)[0, 1])
    assert reach.whence == ("4 finished pairs",)
    assert "public" in reachability(planned, seen(treatment[:2], control[:2]))[0].whence[0]
    (equal,) = reachability(planned, seen([0.5, 0.5, 0.5], [0.25, 0.25, 0.25]))
    assert (equal.sd, equal.whence) == (None, ("3 finished pairs are all equal",))
    saturated = np.ones((2, 3, 30))
    (equal,) = reachability(planned, seen([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], saturated))
    assert (equal.sd, equal.whence) == (None, ("3 finished pairs are all equal",))


@pytest.mark.parametrize(("pairs", "few"), [(0, "no"), (1, "fewer than 3"), (2, "fewer than 3")])
def test_too_few_finished_pairs_are_not_called_none(
    pairs: int, few: str, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = "{claim: H, treatment: B1, control: B1-noHN, metric: t2d/mrr, expect: better}"
    planned = plan(one_claim(load, "8", claim), FACTS)
    monkeypatch.setattr("orchestration.plan.spread._own_unit", lambda study, claim: True)
    (reach,) = reachability(planned, seen([0.5, 0.6][:pairs], [0.4, 0.3][:pairs]))
    assert reach.whence == (f"{few} finished pairs, and no public figure for such a score",)


def test_items_are_part_of_what_a_plan_promises(load: Load) -> None:
    """The plan takes both variances from the pairs, as the verdict does, and asks the same interval."""
    rng = np.random.default_rng(0)
    items = rng.normal(0.5, 0.3, (2, 4, 200)) + rng.normal(0, 0.1, (2, 1, 200))
    treatment, control = items.mean(2).tolist()
    claim = "{claim: H, treatment: B1, control: B1-noHN, metric: t2d/mrr, expect: equivalent, margin: 0.09}"
    planned = plan(one_claim(load, "8", claim), FACTS)
    (reach,) = reachability(planned, seen(treatment, control, items))
    (blind,) = reachability(planned, seen(treatment, control))
    verdict = judge([(next(planned.study.claims), seen(treatment, control, items)(None).pairs)])[0]  # type: ignore[arg-type]
    assert reach.item_sd == pytest.approx((verdict.v_item - verdict.v_both) ** 0.5)  # type: ignore[operator]
    assert reach.sd == pytest.approx(verdict.delta_sd)
    assert (reach.test, reach.items, reach.whence) == (
        "TOST by crossed t",
        200,
        ("4 finished pairs, items included",),
    )
    assert reach.smallest_difference > 1.2 * blind.smallest_difference  # type: ignore[operator]
    assert reach.seeds_for_margin == 4 + (verdict.k_more or 0) or verdict.verdict == "equivalent"
    assert "200 items" in describe(planned, reaches=[reach])


def test_items_count_where_the_verdict_counts_them(load: Load) -> None:
    """Not in a claim about this test set, nor while seeds are added. With them no sign-flip test is spoken of."""
    items = np.random.default_rng(0).normal(0.5, 0.3, (2, 4, 200))
    look = seen(*items.mean(2).tolist(), items)
    for seeds, scope, expected in (("5", "task", 200), ("5", "test_set", 0), ("{start: 4, max: 9}", "task", 0)):
        claim = f"{{claim: H, treatment: B1, control: B1-noHN, metric: t2d/mrr, expect: better, scope: {scope}}}"
        (reach,) = reachability(plan(one_claim(load, seeds, claim), FACTS), look)
        assert reach.items == expected
        assert ("sign-flip" in " ".join(reach.warnings)) == (seeds == "5" and not expected)


def test_two_untrained_arms_are_a_t_test_of_their_items(load: Load) -> None:
    """Without noise of seeds: statsmodels' power of a paired t test over 40 items."""
    text = STUDY.replace("B1: {hard_negatives: true}", "B1: {train: false, readout: weighted}")
    text = text.replace("[small, large]", "[small]").split("  - {claim: H3")[0]
    rng = np.random.default_rng(0)
    items = np.repeat(rng.normal(0.5, 0.3, (2, 1, 40)), 2, axis=1)
    text += "  - {claim: H2, treatment: B1, control: B0, metric: t2d/mrr, expect: equivalent, margin: 0.5, family: x}\n"
    reach, alike = reachability(plan(load(text), FACTS), seen(*items.mean(2).tolist(), items))
    deltas = items[0, 0] - items[1, 0]
    effect = TTestPower().solve_power(nobs=40, alpha=0.05, power=0.8)
    assert reach.items == 40
    assert reach.smallest_difference == pytest.approx(effect * deltas.std(ddof=1), rel=1e-3)
    assert (reach.smallest_effect, reach.correlation) == (None, None)
    assert (alike.smallest_difference, alike.seeds_for_margin) == (reach.smallest_difference, None)


def test_a_guess_of_items_has_the_freedom_of_the_rarer_class(load: Load) -> None:
    empty = PairedSeeds(seeds=(), treatment=(), control=())
    differences = []
    for rarest in (3, 200):
        sample = Sample(arm="B0", score=0.5, groups=400, effective=rarest, aggregate="auc")
        look = lambda claim, sample=sample: SeenPairs(pairs=empty, sample=sample)  # noqa: E731
        (reach,) = reachability(plan(one_claim(load, "8"), FACTS), look)
        noise = Noise(sd=0.0084, item=0.025, groups=400, item_df=rarest - 1)  # .5 · .5 / 400 = .025²
        assert reach.smallest_difference == pytest.approx(smallest_effect(8, noise=noise))
        differences.append(reach.smallest_difference)
    assert differences[0] > 1.3 * differences[1]  # t(.975, 2) = 4.30


def test_a_margin_that_the_items_keep_open_is_said(load: Load) -> None:
    rng = np.random.default_rng(0)
    items = np.repeat(rng.uniform(0, 1, (2, 1, 60)), 3, 1) + rng.normal(0, 0.01, (2, 3, 60))
    centred = items - items.mean(2, keepdims=True) + 0.5 + rng.normal(0, 0.001, (2, 3, 1))
    for margin, words in ((0.02, "no number of seeds settles the margin: the 60 items limit it"),):
        claim = (
            f"{{claim: H, treatment: B1, control: B1-noHN, metric: t2d/mrr, expect: equivalent, margin: {margin}}}"
        )
        look = seen(*centred.mean(2).tolist(), centred)
        (reach,) = reachability(plan(one_claim(load, "8", claim), FACTS), look)
        assert (reach.seeds_for_margin, reach.on_margin) == (None, words)


def test_a_margin_is_planned_at_the_difference_that_was_seen(load: Load) -> None:
    claim = "{claim: H, treatment: B1, control: B1-noHN, metric: t2d/mrr, expect: equivalent, margin: 0.02}"
    planned = plan(one_claim(load, "8", claim), FACTS)
    needed = {
        shift: reachability(planned, seen([0.5 + shift, 0.51 + shift, 0.49 + shift], [0.5, 0.5, 0.5]))[0]
        for shift in (0.0, 0.01, 0.03)
    }
    assert needed[0.0].seeds_for_margin < needed[0.01].seeds_for_margin  # type: ignore[operator]
    assert needed[0.03].seeds_for_margin is None
    assert needed[0.03].on_margin == "the difference seen so far lies outside the margin"


@pytest.mark.parametrize(
    ("expect", "shift", "outside"),
    [
        ("equivalent", -0.03, True),
        ("equivalent", 0.03, True),
        ("not_worse", -0.03, True),
        ("not_worse", -0.01, False),
        ("not_worse", 0.03, False),
    ],
)
def test_not_worse_has_a_margin_on_one_side_and_equivalent_on_both(
    load: Load, expect: str, shift: float, outside: bool
) -> None:
    claim = f"{{claim: H, treatment: B1, control: B1-noHN, metric: t2d/mrr, expect: {expect}, margin: 0.02}}"
    planned = plan(one_claim(load, "8", claim), FACTS)
    look = seen([0.5 + shift, 0.51 + shift, 0.49 + shift], [0.5, 0.5, 0.5])
    (reach,) = reachability(planned, look)
    assert (reach.seeds_for_margin is None) == outside
    assert ("lies outside the margin" in reach.on_margin) == outside


@pytest.mark.parametrize(
    ("aggregate", "score", "groups", "sd", "formula"),
    [
        ("mean", 0.36, 400, 0.024, "p(1 - p)/M"),  # .36 · .64 / 400 = .024²
        ("mean", 1.0, 400, 0.0, "p(1 - p)/M"),
        ("spearman", 0.6, 400, 0.032, "(1 - r²)²/M"),  # .64² / 400 = .032²
        ("pearson", -0.6, 400, 0.032, "(1 - r²)²/M"),
        ("sd", 0.3, 200, 0.015, "s²/2M"),  # .09 / 400 = .015²
        ("mean", 1.2, 400, None, ""),  # no share of items
        ("mean", -0.2, 400, None, ""),
    ],
)
def test_an_arms_own_items_are_a_named_guess(
    load: Load, aggregate: Aggregate, score: float, groups: int, sd: float | None, formula: str
) -> None:
    empty = PairedSeeds(seeds=(), treatment=(), control=())
    sample = Sample(arm="B0", score=score, groups=groups, effective=groups, aggregate=aggregate)
    (reach,) = reachability(plan(one_claim(load, "8"), FACTS), lambda claim: SeenPairs(pairs=empty, sample=sample))
    if sd is None:
        assert (reach.item_sd, reach.items) == (0.0, 0)
        assert "the items' part is not known" in reach.whence[1]
        return
    assert reach.item_sd == pytest.approx(sd)
    assert (reach.items, reach.test) == ((groups, "crossed t") if sd else (0, "exact sign-flip"))
    assert reach.whence[1] == f"items: {formula} of B0 at {score:.3f} with {groups} items, a guess"


def test_groups_of_claims_are_counted_apart(load: Load) -> None:
    text = STUDY.replace("[small, large]", "[small]")
    text += "  - {claim: R, treatment: B1, control: B0, metric: t2d/mrr, expect: better, family: ranking}\n"
    reaches = reachability(plan(load(text), FACTS))
    assert [(reach.claim, reach.claims) for reach in reaches] == [("H1", 2), ("H3", 2), ("R", 1)]


def test_a_margin_needs_its_seeds(load: Load) -> None:
    """TOST at power .80 and no true difference: a margin of one sd takes 11 seeds, of half an sd 36."""
    sd = 0.0084 * math.sqrt(2)
    for margin, needed in ((sd, 11), (sd / 2, 36)):
        claim = f"{{claim: H, treatment: B1, control: B1-noHN, metric: t2d/mrr, expect: equivalent, margin: {margin:.12f}}}"
        (reach,) = reachability(plan(one_claim(load, "8", claim), FACTS))
        assert reach.seeds_for_margin == needed
        assert any(f"it takes {needed} or more" in warning for warning in reach.warnings)
        for seeds, warned in ((needed - 1, True), (needed, False)):
            (reach,) = reachability(plan(one_claim(load, str(seeds), claim), FACTS))
            assert any("it takes" in warning for warning in reach.warnings) == warned
    tiny = "{claim: H, treatment: B1, control: B1-noHN, metric: t2d/mrr, expect: equivalent, margin: 0.00001}"
    (reach,) = reachability(plan(one_claim(load, "8", tiny), FACTS))
    assert (reach.seeds_for_margin, reach.on_margin) == (10_000, "the margin takes 10,000 seeds")


def test_a_margin_needs_more_seeds_among_several_claims(load: Load) -> None:
    """By the power of TOST at no true difference, E[(2Φ(√n·margin/sd - t·√(V/ν)) - 1)₊], over draws of V."""
    sd = 0.0084 * math.sqrt(2)
    claim = (
        f"{{claim: H, treatment: B1, control: B1-noHN, metric: t2d/mrr, expect: equivalent, margin: {sd:.12f}}}"
    )
    (reach,) = reachability(plan(one_claim(load, "8", claim), FACTS), None, {None: 4})

    def power(n: int) -> float:
        share = stats.chi2.ppf((np.arange(20_000) + 0.5) / 20_000, n - 1) / (n - 1)
        inner = 2 * stats.norm.cdf(math.sqrt(n) - stats.t.ppf(1 - 0.05 / 5, n - 1) * np.sqrt(share)) - 1
        return float(np.maximum(inner, 0).mean())

    assert reach.claims == 5
    assert reach.seeds_for_margin == next(n for n in range(2, 100) if power(n) >= 0.8)


def test_growing_seeds_are_judged_by_the_e_process(load: Load) -> None:
    """|t| of 3.87 rejects at n = 10 (tau² = 2), where a fixed t test asks for 2.26: more is needed to be seen."""
    (growing,) = reachability(plan(one_claim(load, "{start: 4, max: 10}"), FACTS))
    (fixed,) = reachability(plan(one_claim(load, "10"), FACTS))
    assert growing.test == "t e-process"
    assert growing.seeds == 10
    assert (growing.smallest_effect or 0) > (fixed.smallest_effect or 0) > 0
    assert growing.warnings == ()
    (few,) = reachability(plan(one_claim(load, "{start: 2, max: 3}"), FACTS))
    assert (few.can_decide, few.smallest_effect, few.smallest_difference) == (False, None, None)
    assert few.warnings[0].endswith("nothing can be decided; raise seeds.max")
    asked = plan(one_claim(load, "{start: 2, max: 4}"), FACTS)  # E = (1 + 4 · 2)^1.5 = 27 at most
    assert reachability(asked)[0].warnings == ()
    (several,) = reachability(asked, None, {None: 1})
    assert (several.can_decide, several.smallest_p) == (False, pytest.approx(1 / 27))
    assert "p = 0.037, or 0.074 over 2 claims: nothing can be decided" in several.warnings[0]
    (many,) = reachability(plan(one_claim(load, "{start: 4, max: 300}"), FACTS))
    assert 0 < (many.smallest_effect or 0) < (growing.smallest_effect or 0)


def test_no_seed_changes_two_untrained_arms(load: Load) -> None:
    text = STUDY.replace("B1: {hard_negatives: true}", "B1: {train: false, readout: weighted}").split(
        "  - {claim: H3"
    )[0]
    for reach in reachability(plan(load(text), FACTS)):
        assert reach.seeds == 0
        assert reach.smallest_effect is None
        assert "only the items can speak" in reach.warnings[0]


def test_scores_without_a_public_spread_are_said_in_sds(load: Load) -> None:
    claim = "{claim: P, treatment: B1, control: B0, metric: geometry/effective_rank, expect: better}"
    planned = plan(one_claim(load, "8", claim), FACTS)
    (reach,) = reachability(planned)
    assert reach.smallest_difference is None
    assert "1.16 sds of the paired deltas" in describe(planned, reaches=[reach])


# The plan in words.


def test_words_of_a_fresh_plan(load: Load) -> None:
    planned = plan(load(), FACTS)
    assert describe(planned).splitlines() == [
        "hard   14 runs = 2 arms x 3 seeds x 2 backbones + 1 untrained arm x 2 backbones",
        "done 0   left 14",
        "runs    14 runs in pooled lanes, fp32, ZeRO 0",
    ]
    assert next_step(planned, None, os.path.abspath("ledger")) == f"next    semray run {planned.study.path}"


@pytest.mark.parametrize(
    ("resources", "lines"),
    [
        ("{workers_per_run: 2}", ["2 runs in pooled lanes", "12 runs in Ray Train groups of 2 workers"]),
        ("{launcher: train, workers_per_run: 2}", ["14 runs in Ray Train groups of 2 workers"]),
        ("{runs_per_stack: 4}", ["14 runs in pooled lanes, stacked as 6 jobs"]),  # of B0, and of 4, 4, 2, 2
    ],
)
def test_words_of_where_runs_go(load: Load, resources: str, lines: list[str]) -> None:
    words = describe(plan(load(f"{STUDY}resources: {resources}\n"), FACTS)).splitlines()
    assert [line for line in words if line.startswith("runs")] == [
        f"runs    {line}, fp32, ZeRO 0" for line in lines
    ]


def test_words_of_what_a_claim_can_show(load: Load) -> None:
    """Golden as above: 1.156 sds of 0.0084 for 8 seeds, whose sign-flip test goes down to 2 / 2^8."""
    planned = plan(one_claim(load, "8"), FACTS)
    (reach,) = reachability(planned)
    by_items = replace(reach, items=2000, item_sd=0.0123, correlation=0.625)
    for told, words in (
        (reach, "8 seeds can show a difference of 0.0097 (exact sign-flip, sd 0.0084, exact p down to 0.0078)"),
        (replace(reach, test="t e-process", smallest_p=1e-4), "8 seeds can show a difference of 0.0097 (t e-process, sd 0.0084, p down to 0.0001)"),
        (replace(reach, test="t e-process", smallest_p=0.0), "8 seeds can show a difference of 0.0097 (t e-process, sd 0.0084, p below 1e-300)"),
        (by_items, "8 seeds can show a difference of 0.0097 (exact sign-flip, sd 0.0084, 2,000 items 0.012, arms correlate 0.62)"),
        (replace(by_items, seeds=0, sd=None, correlation=None, on_margin="so far"), "the items can show a difference of 0.0097, so far (exact sign-flip, 2,000 items 0.012)"),
    ):  # fmt: skip
        said = describe(planned, reaches=[told]).splitlines()
        assert [line for line in said if line.startswith("claims")] == [f"claims  H: {words}"]
    both = plan(load(), FACTS)
    said = [line for line in describe(both, reaches=reachability(both)).splitlines() if line.startswith("claims")]
    assert [line.partition(":")[0].removeprefix("claims  ") for line in said] == [
        "H1 on small", "H1 on large", "H3 on small", "H3 on large"
    ]  # fmt: skip


def test_words_of_rows() -> None:
    """What there is none of is not told."""
    rows = RowsOf("mine", 2117, {"to measure on": 616, "to choose by": 0}, {"beyond the sample": 1000})
    assert rows.words == "mine: 2,117 train; held out 616 to measure on; left out 1,000 beyond the sample"
    assert RowsOf("all", 12).words == "all: 12 train"


def test_rows_are_told_where_something_is_left_to_train(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path))
    fresh = plan(load(), FACTS)
    assert rows_words(fresh) == ["counted by the first run, which builds them"]
    assert rows_words(plan(load(), FACTS, entries(fresh.runs))) == []
    assert "rows    a line" in describe(fresh, rows=["a line"]).splitlines()


def test_words_count_what_is_done_failed_and_left(load: Load) -> None:
    half = plan(load(), FACTS).runs[:8]
    planned = plan(load(), replace(FACTS, seconds={run.id: 100.0 for run in half}), entries(half))
    stuck = planned.left[0]
    failure = Failure(
        id=stuck.id, run=stuck, attempt=2, error="loss is nan at step 212", log="ledger/x.log", at=""
    )
    said = describe(planned, failed={stuck.id: failure}, lanes=2)
    assert "done 8   failed 1   left 5   about 5 min on 2 lanes (from 8 finished runs)" in said
    assert f"failed  {stuck.label}   loss is nan at step 212   ledger/x.log" in said


def test_the_estimate_takes_the_same_arm_where_it_can(load: Load) -> None:
    whole = plan(load(), FACTS)
    seconds = {run.id: 10.0 if run.arm == "B1" else 1.0 for run in whole.runs[:6]}
    planned = plan(load(), replace(FACTS, seconds=seconds), entries(whole.runs[:6]))
    expected = sum(10.0 if run.arm == "B1" else 1.0 for run in planned.left)
    told = estimate(planned)
    assert told is not None
    assert told.seconds == pytest.approx(expected)
    assert estimate(whole) is None
    # B0 on both backbones, and a run of B1: 1 s, 1 s, 10 s
    first = {run.id: seconds[run.id] for run in whole.runs[:3]}
    begun = estimate(plan(load(), replace(FACTS, seconds=first), entries(whole.runs[:3])))
    assert begun is not None
    assert (begun.seconds, begun.finished) == (11 * 10.0, 3)  # other arms are timed by what trained
    only_untrained = {run.id: 1.0 for run in whole.runs[:2]}
    assert estimate(plan(load(), replace(FACTS, seconds=only_untrained), entries(whole.runs[:2]))) is None


def test_words_of_a_finished_plan_point_to_the_report(load: Load) -> None:
    study = load()
    done = entries(plan(study, FACTS).runs)
    assert (
        next_step(plan(study, FACTS, done), None, os.path.abspath("ledger"))
        == f"next    semray report {study.path}"
    )


def test_one_warning_is_said_once_for_all_its_claims(load: Load) -> None:
    text = STUDY + "  - {claim: H2, treatment: B1, control: B0, metric: t2d/mrr, expect: worse}\n"
    planned = plan(load(text.replace("[small, large]", "[small]")), FACTS)
    warnings = [
        line for line in describe(planned, reaches=reachability(planned)).splitlines() if line.startswith("warn")
    ]
    assert [line.split(":")[0] for line in warnings] == ["warn    H1, H2", "warn    H3"]
