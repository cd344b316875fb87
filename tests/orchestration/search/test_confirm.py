"""The confirmation of a search: which study it is, and what it says of the search's own figures."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluators.significance.claims import Joint
from evaluators.significance.verdict import RULE
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import Facts
from orchestration.reading.read_study import read_study
from orchestration.search.confirm import confirmation, not_repeated, optimism
from orchestration.search.shown import begun_anew, next_step, summary
from orchestration.search.trials import Searched, Selection, Trial, selections
from orchestration.study.blocks import Objective
from orchestration.study.errors import StudyError
from orchestration.study.study import Study
from orchestration.verdicts.findings import Findings, RunRow
from tests.searching import AUC, MRR, ROWS, STUDY, selection

ROOT = Path(__file__).resolve().parents[3]
START = {"temperature": 0.05, "hn_margin": 0.2}
TUNED = {"temperature": 0.03, "hn_margin": 0.3}


def a_search(folder: Path, *points: dict[str, float]) -> Searched:
    return scored(selection(folder), *points)


def scored(chosen: Selection, *points: dict[str, Any]) -> Searched:
    """Points that score 0.5, 0.6, ... at the first seed, and 0.1 more at each later one."""
    return Searched(
        selection=chosen,
        trials=tuple(
            Trial(
                number=number,
                point=point,
                scores={seed: (0.5 + 0.1 * (number + place),) for place, seed in enumerate(chosen.seeds)},
            )
            for number, point in enumerate(points)
        ),
    )


def study_of(folder: Path) -> Study:
    return read_study(folder / "margins.yaml")


def test_the_best_point_stands_beside_the_arm_it_started_from(tmp_path: Path) -> None:
    found = a_search(tmp_path, START, TUNED)
    study = confirmation(study_of(tmp_path), [found])
    assert list(study.arms) == ["B0", "B1", "B1@1"]
    tuned, start = study.arms["B1@1"], study.arms["B1"]
    assert tuned == replace(start, **TUNED)
    said = [(c.claim, c.treatment, c.control, c.metric, c.expect) for c in study.compare]
    assert said == [
        ("search B1", "B1@1", "B1", "t2d/mrr", "better"),
        ("H1 tuned", "B1@1", "B0", "t2d/mrr", "better"),
    ]
    assert set(study.seeds.all).isdisjoint(found.selection.seeds)
    assert study.evaluate == ("t2d", "pair_auc")
    assert study.search is None
    assert study.name == "margins-confirmed"


ACROSS = """\
  - {claim: H2, treatment: B1, control: B0, metric: t2d/mrr, expect: better, backbone: tiny}
  - claim: H3
    treatment: {arm: B1, backbone: wide}
    control: {arm: B1, backbone: tiny}
    metric: t2d/mrr
    expect: better
"""


@pytest.mark.parametrize(("more", "backbone"), [("", "tiny"), ("\n  backbone: wide", "wide")])
def test_a_search_is_run_and_confirmed_on_one_backbone(tmp_path: Path, more: str, backbone: str) -> None:
    """On the first, or on the one that it names. Claims that need another are none of the confirmation's."""
    path = tmp_path / "margins.yaml"
    text = STUDY.replace("[tiny]", "[tiny, wide]").replace("search:\n", f"{ACROSS}search:\n")
    path.write_text(text.replace("trials: 12", f"trials: 12{more}"))
    study = read_study(path)
    facts = Facts(backbones={"tiny": "t", "wide": "w"}, corpus="c", tasks=ROWS, precision="fp32")
    (chosen,) = selections(study, facts)
    run = chosen.run(1, TUNED, 100)
    assert (chosen.backbone, run.backbone, run.backbone_fingerprint) == (backbone, backbone, backbone[0])
    confirmed = confirmation(study, [scored(chosen, START, TUNED)])
    assert confirmed.backbones == (backbone,)
    expected = ["search B1", "H1 tuned", *(["H2 tuned"] if backbone == "tiny" else [])]
    assert [(claim.claim, claim.backbone) for claim in confirmed.compare] == [
        (name, backbone) for name in expected
    ]


def test_parts_of_a_claim_are_named_apart_from_what_the_search_claims(tmp_path: Path) -> None:
    """Even a part that is called as the search's own claim will be."""
    found, study = a_search(tmp_path, START, TUNED), study_of(tmp_path)
    parts = tuple(replace(study.compare[0], claim=name) for name in ("search B1", "part"))
    confirmed = confirmation(replace(study, compare=(Joint(claim="J", all=parts),)), [found])
    names = [one.claim for claim in confirmed.compare for one in dict.fromkeys((claim, *claim.parts))]
    assert names == ["search B1", "J tuned", "search B1 tuned", "part tuned"]


def test_a_control_that_lacks_only_the_signal_is_tuned_alike() -> None:
    """Or C14 would measure what the search bought. The frozen cosine has nothing to tune, and stays."""
    study = read_study(ROOT / "studies" / "difficulty_search.yaml")
    tasks = dict.fromkeys([f"{part}similarity/{name}" for name in study.data.tasks for part in ("", "dev/")], "r")
    facts = Facts(backbones=dict.fromkeys(study.backbones, "b"), corpus="c", tasks=tasks, precision="fp32")
    (chosen,) = selections(study, facts)
    start = {"gamma": 0.25, "lambda_rank": 0.1, "lambda_hard": 0.5, "learning_rate": 1e-3}
    confirmed = confirmation(study, [scored(chosen, start, start | {"gamma": 0.5, "lambda_hard": 1.0})])
    assert [(c.claim, c.treatment, c.control) for c in confirmed.compare] == [
        ("search lex", "lex@1", "lex"),
        ("gain tuned", "lex@1", "baseline"),
        ("C14-shuffled tuned alike", "lex@1", "lex_shuffled@lex@1"),
    ]
    assert list(confirmed.arms) == ["baseline", "lex", "lex@1", "lex_shuffled@lex@1"]
    tuned, control = confirmed.arms["lex@1"], confirmed.arms["lex_shuffled@lex@1"]
    assert (control.gamma, control.lambda_hard) == (0.5, 1.0)
    assert replace(control, form=tuned.form) == tuned


def with_arms(folder: Path, **others: dict[str, Any]) -> Study:
    """The study with other trained arms, each the matched control of a claim on B1 against B0."""
    study = study_of(folder)
    arms = {name: replace(study.arms["B1"], **settings) for name, settings in others.items()}
    claims = [replace(study.compare[0], claim=f"by {arm}", matched_control=arm, signal="it") for arm in others]
    return replace(study, arms=study.arms | arms, compare=tuple(claims))


def test_where_two_arms_differ_is_what_they_are_compared_for(tmp_path: Path) -> None:
    """A setting of its own stays; so does an arm for which nothing that moved matters."""
    found = a_search(tmp_path, START, {**START, "hn_margin": 0.3})
    others = {"cls": {"readout": "cls"}, "near": {"hn_margin": 0.1}, "plain": {"hard_negatives": False}}
    confirmed = confirmation(with_arms(tmp_path, **others), [found])
    assert [(c.claim, c.control, c.matched_control) for c in confirmed.compare[1:]] == [
        ("by cls tuned alike", "B0", "cls@B1@1"),
        ("by near tuned", "B0", "near"),
        ("by plain tuned", "B0", "plain"),
    ]
    assert confirmed.arms["cls@B1@1"] == replace(confirmed.arms["B1@1"], readout="cls")
    assert confirmed.arms["near"].hn_margin == 0.1


@pytest.mark.parametrize(("points", "control"), [((START,), "cls"), ((START, TUNED), "cls@1")])
def test_an_arm_with_a_search_of_its_own_has_its_own_point(
    tmp_path: Path, points: tuple[dict[str, float], ...], control: str
) -> None:
    """Also where that is the arm itself."""
    found = a_search(tmp_path, START, {**START, "hn_margin": 0.3})
    study = with_arms(tmp_path, cls={"readout": "cls"})
    own = replace(found.selection, arm="cls", study=replace(study, arms={"cls": study.arms["cls"]}))
    (repeated,) = (c for c in confirmation(study, [found, scored(own, *points)]).compare if "by" in c.claim)
    assert (repeated.claim, repeated.treatment, repeated.matched_control) == ("by cls tuned", "B1@1", control)


def test_a_comparison_in_which_nothing_was_tuned_is_not_repeated(tmp_path: Path) -> None:
    """The best point of cls is cls itself: by its claim against B0 the confirmation would test no choice."""
    found = a_search(tmp_path, START, {**START, "hn_margin": 0.3})
    study = with_arms(tmp_path, cls={"readout": "cls"})
    own = replace(found.selection, arm="cls", study=replace(study, arms={"cls": study.arms["cls"]}))
    untouched = replace(study.compare[0], claim="alone", treatment="cls", matched_control=None, signal=None)
    study = replace(study, compare=(*study.compare, untouched))
    searches = [found, scored(own, START)]
    assert [one.claim for one in confirmation(study, searches).compare] == ["search B1", "by cls tuned"]
    rows = [
        RunRow(id=arm, arm=arm, backbone="tiny", seed=0, metrics={"t2d/mrr": value})
        for arm, value in (("B1", 0.4), ("B1@1", 0.6))
    ]
    assert [told.arm for told in optimism(searches[::-1], findings(tuple(rows)))] == ["B1"]


def test_a_best_point_that_is_the_other_side_of_a_claim_leaves_nothing_to_compare(tmp_path: Path) -> None:
    """Nor does it count as a comparison among those that are corrected for."""
    found, study = a_search(tmp_path, START, TUNED), study_of(tmp_path)
    first, rival = study.compare[0], replace(study.arms["B1"], **TUNED)
    others = [
        replace(first, claim="against it", control="rival"),
        replace(first, claim="against some", control=("B0", "rival")),
        replace(first, claim="beside it", matched_control="rival", signal="it"),
        Joint(claim="both", all=(replace(first, claim="part"), replace(first, claim="other", control="rival"))),
    ]
    study = replace(study, arms=study.arms | {"rival": rival}, compare=(*study.compare, *others))
    confirmed = confirmation(study, [found])
    assert [claim.claim for claim in confirmed.compare] == ["search B1", "H1 tuned"]
    assert list(confirmed.arms) == ["B0", "B1", "B1@1"]
    assert list(not_repeated(study, [found])) == [f"{one.claim} tuned" for one in others]


@pytest.mark.parametrize("metric", [MRR, f"mean({AUC}, {MRR})"])
def test_a_claim_about_development_data_is_not_confirmed_by_them(tmp_path: Path, metric: str) -> None:
    """The best point is the best one there: what it has before the others would be repeated, and be no news."""
    found, study = a_search(tmp_path, START, TUNED), study_of(tmp_path)
    of_dev = replace(study.compare[0], claim="dev", metric=metric)
    joint = Joint(claim="both", all=(replace(of_dev, claim="part"), replace(study.compare[0], claim="other")))
    study = replace(study, compare=(*study.compare, of_dev, joint), figures={f"mean({AUC}, {MRR})": (AUC, MRR)})
    assert [claim.claim for claim in confirmation(study, [found]).compare] == ["search B1", "H1 tuned"]
    left_out = not_repeated(study, [found])
    assert list(left_out) == ["dev tuned", "both tuned"]
    assert all("development data" in why for why in left_out.values())


def test_another_winner_makes_other_claims(tmp_path: Path) -> None:
    """What is declared of one point says nothing of the next: its claims come later, and count as exploratory."""
    earlier, later = (
        a_search(tmp_path, START, TUNED),
        a_search(tmp_path, START, TUNED, {**TUNED, "hn_margin": 0.31}),
    )
    claims = [set(confirmation(study_of(tmp_path), [found]).compare) for found in (earlier, later)]
    assert claims[0].isdisjoint(claims[1])


def test_an_arm_that_is_its_own_best_leaves_nothing_to_confirm(tmp_path: Path) -> None:
    found = a_search(tmp_path, START)
    with pytest.raises(StudyError, match="no point better than the arms it started from"):
        confirmation(study_of(tmp_path), [found])


def test_a_search_ends_with_what_can_be_done_next(tmp_path: Path) -> None:
    better = a_search(tmp_path, START, TUNED)
    study = study_of(tmp_path)
    assert (
        next_step(study, [better], "s3://a b/led")
        == f"next    semray confirm {study.path} --ledger 's3://a b/led'"
    )
    assert next_step(study, [better], "s3://led", ["--mlflow", "uri"]).endswith(" --ledger s3://led --mlflow uri")
    assert "there is nothing to confirm" in next_step(study, [replace(better, trials=better.trials[:1])], "")
    for scores in ({100: (0.9,)}, {}):
        short = replace(better.trials[1], scores=scores)
        said = next_step(study, [replace(better, trials=(short,))], "")
        assert "the search around B1 has no point with all seeds" in said


def test_optimism_by_hand(tmp_path: Path) -> None:
    """Chosen at 0.7, 0.1 above the arm; confirmed at 0.45 and 0.43, 0.04 above: 0.06 of the gain was luck."""
    found = a_search(tmp_path, START, TUNED)
    values = {"B1": {0: 0.41, 1: 0.39, 2: 0.9}, "B1@1": {0: 0.45, 1: 0.43}}  # seed 2 of the tuned arm is lost
    rows = tuple(
        RunRow(id=f"{arm}{seed}", arm=arm, backbone="tiny", seed=seed, metrics={"t2d/mrr": value})
        for arm, by_seed in values.items()
        for seed, value in by_seed.items()
    )
    (told,) = optimism([found], findings(rows))
    assert (told.arm, told.point, told.selection_seeds, told.fresh_seeds) == ("B1", 1, 3, 2)
    assert (told.chosen, told.confirmed) == (pytest.approx(0.7), pytest.approx(0.44))
    assert (told.gain_chosen, told.gain_confirmed) == (pytest.approx(0.1), pytest.approx(0.04))
    assert "+0.0600 was luck" in told.line


def test_where_more_is_confirmed_than_was_chosen_nothing_was_luck(tmp_path: Path) -> None:
    rows = tuple(
        RunRow(id=arm, arm=arm, backbone="tiny", seed=0, metrics={"t2d/mrr": value})
        for arm, value in (("B1", 0.4), ("B1@1", 0.6))
    )
    (told,) = optimism([a_search(tmp_path, START, TUNED)], findings(rows))
    assert told.line.endswith("+0.1000 when chosen, +0.2000 confirmed; none of it was luck")


def test_a_gain_over_what_has_no_score_is_not_known(tmp_path: Path) -> None:
    """The arm failed at every selection seed, or at every fresh one: no figure is made of that."""
    found = a_search(tmp_path, START, TUNED)
    lost = replace(found, trials=(replace(found.trials[0], scores={}), found.trials[1]))
    tested = RunRow(id="1", arm="B1@1", backbone="tiny", seed=0, metrics={"t2d/mrr": 0.6})
    start = replace(tested, id="0", arm="B1", metrics={"t2d/mrr": 0.4})
    (told,) = optimism([lost], findings((tested, start)))
    assert told.gain_chosen is None
    assert told.line.endswith("not known when chosen, +0.2000 confirmed; no selection seed has scores of both")
    for row in (replace(start, status="failed"), replace(start, metrics={"t2d/mrr": math.nan})):
        (told,) = optimism([found], findings((tested, row)))
        assert (told.confirmed, told.optimism, told.gain_confirmed, told.fresh_seeds) == (None, None, None, 0)
        assert "selection seeds, t2d/mrr not known\n" in told.line
        assert told.line.endswith("+0.1000 when chosen, not known confirmed; no fresh seed has scores of both")


def test_a_search_of_another_space_is_said_to_be_new(tmp_path: Path) -> None:
    first, ledger = selection(tmp_path), Ledger(tmp_path / "ledger")
    assert begun_anew(first, ledger, []) == []
    for number, point in enumerate((START, TUNED)):
        ledger.points("margins", first.id).suggest(number, point)
    assert begun_anew(first, ledger, []) == []  # it goes on
    other = replace(first, space=first.space[:1])
    (said,) = begun_anew(other, ledger, [])
    assert said.startswith("a new search of B1: the 2 points of margins in the ledger are of another space, arm,")
    assert begun_anew(other, ledger, [scored(first)]) == []  # those of the arm before it


def test_fewer_runs_than_were_spent_is_no_budget(tmp_path: Path) -> None:
    found = scored(selection(tmp_path, trials=1), START, TUNED)
    assert summary(found).endswith("2 points, 6 runs, 3 of them beyond what the study asks for now")


def test_where_smaller_is_better_a_choice_that_got_larger_was_too_good(tmp_path: Path) -> None:
    """Chosen at 0.7 where the arm has 0.8; confirmed at 0.9 where it has 0.95: too good by 0.2, half the gain luck."""
    chosen = selection(tmp_path, objective=Objective(metric="dev/t2d/mrr", mode="min"))
    trials = [
        Trial(number=n, point=point, scores={100: (score,)})
        for n, (point, score) in enumerate([(START, 0.8), (TUNED, 0.7)])
    ]
    rows = [
        RunRow(id=arm, arm=arm, backbone="tiny", seed=0, metrics={"t2d/mrr": value})
        for arm, value in (("B1", 0.95), ("B1@1", 0.9))
    ]
    (told,) = optimism([Searched(selection=chosen, trials=tuple(trials))], findings(tuple(rows)))
    assert told.optimism == pytest.approx(0.2)
    assert (told.gain_chosen, told.gain_confirmed) == (pytest.approx(0.1), pytest.approx(0.05))
    assert "over 1 fresh ones: +0.2000" in told.line


def findings(rows: tuple[RunRow, ...]) -> Findings:
    fields = dict.fromkeys(("study", "question", "family", "revision", "declared", "created", "ledger"), "")
    return Findings(
        **fields,
        rule=RULE,
        seeds=(0, 1, 2),
        metrics={"t2d/mrr": True},
        headlines=(),
        arms={},
        data={},
        corpus_fingerprint="",
        runs=rows,
        findings=(),
    )
