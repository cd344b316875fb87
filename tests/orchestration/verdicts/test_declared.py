"""Claims are known by what they say: names and files change nothing, another recipe or margin does."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestration.commands import plan_words
from orchestration.commands.plan_words import words_of
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import Facts, Plan, plan
from orchestration.reading.read_study import read_study
from orchestration.report import forms
from orchestration.report.methods import methods
from orchestration.report.short import in_short
from orchestration.study.run import Run
from orchestration.study.study import Study
from orchestration.verdicts import declared
from orchestration.verdicts.declared import declare
from orchestration.verdicts.distributions import with_distributions
from orchestration.verdicts.find import find
from orchestration.verdicts.findings import Findings
from orchestration.verdicts.passport import plain, verify, write_passport
from orchestration.verdicts.records import StudyRecords
from orchestration.verdicts.seen import could_be_seen
from tests.named_study import finish, finished, write_study

Study_ = dict[str, Any]
NOT_DECLARED = "not declared before the first run: exploratory, and corrected apart"
SAYS = declared._digests


def planned(study: Study, rows: str = "c", items: str = "7") -> Plan:
    tasks = dict.fromkeys(study.evaluate, items * 16)
    backbones = dict.fromkeys(study.backbones, "s" * 64)
    return plan(study, Facts(backbones=backbones, corpus=rows * 64, tasks=tasks, precision="fp32"))


def runs_of(study: Study, **rows: str) -> tuple[Run, ...]:
    return planned(study, **rows).runs


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A study that was declared before its first run and is finished."""
    path = write_study(tmp_path / "first.yaml", "Which?", ("B1", "B2", "B0"), ("H1", "H2", "H3"))
    study = read_study(path)
    declare(study, runs_of(study), Ledger(tmp_path / "ledger"))
    finished(path)
    assert all(Ledger(tmp_path / "ledger").holds(run) for run in runs_of(study))
    return path


def judged(path: Path, change: Callable[[Study_], object], name: str = "first") -> Findings:
    """The study as changed, under a name, from what the ledger holds."""
    content = yaml.safe_load(path.read_text())
    change(content)
    changed = path.with_name(f"{name}.yaml")
    changed.write_text(yaml.safe_dump(content, sort_keys=False))
    study = read_study(changed)
    return find(study, runs_of(study), Ledger(path.parent / "ledger"))


def exploratory(findings: Findings) -> list[bool]:
    return [finding.verdict.exploratory for finding in findings.findings]


def without_names(findings: Findings) -> list[Mapping[str, Any]]:
    names = {"claim": "", "family_digest": "", "treatment": "", "control": "", "id": "", "sentence": ""}
    return [replace(finding.verdict, generator_seed=0, **names).to_dict() for finding in findings.findings]


def nothing(study: Study_) -> None:
    pass


def test_renaming_claims_changes_nothing_else(path: Path) -> None:
    def rename(study: Study_) -> None:
        for claim in study["compare"]:
            claim["claim"] += " again"

    before, after = judged(path, nothing), judged(path, rename)
    assert exploratory(before) == exploratory(after) == [False] * 3
    assert without_names(before) == without_names(after)


def test_renaming_arms_and_the_order_of_claims_change_nothing(path: Path) -> None:
    def rename(study: Study_) -> None:
        study["arms"]["hard"] = study["arms"].pop("B1")
        for claim in study["compare"]:
            for role in ("treatment", "control"):
                claim[role] = claim[role].replace("B1", "hard")
        study["compare"].reverse()

    assert exploratory(judged(path, rename)) == [False] * 3


def test_renaming_the_file_keeps_what_was_declared(path: Path, tmp_path: Path) -> None:
    renamed = judged(path, nothing, "second")
    assert exploratory(renamed) == [False] * 3
    study, ledger = read_study(path.with_name("second.yaml")), Ledger(tmp_path / "ledger")
    write_passport(tmp_path / "p.passport", planned(study), ledger, with_distributions(renamed, ledger))
    assert verify(tmp_path / "p.passport").differences == ()
    declare(study, runs_of(study), ledger)  # as `semray run` does
    assert exploratory(judged(path, nothing, "second")) == [False] * 3


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda study: study["compare"][2].update(margin=0.2), [False, False, True]),
        (lambda study: study["compare"][0].update(expect="worse"), [True, False, False]),
        (lambda study: study["compare"][1].update(family="calibration"), [False, True, False]),
        (lambda study: study["arms"]["B1"].update(temperature=0.5), [True, True, True]),
        (lambda study: study["compare"].append({**study["compare"][0], "claim": "H4", "expect": "worse"}), [False, False, False, True]),
    ],
)  # fmt: skip
def test_another_claim_was_not_declared(
    path: Path, change: Callable[[Study_], object], expected: list[bool]
) -> None:
    found = judged(path, change)
    assert exploratory(found) == expected
    ledger = Ledger(path.parent / "ledger")
    asked = replace(planned(read_study(path)), finished=ledger.entries())
    reaches, notes = plan_words._reaches(asked, ledger)
    assert [reach.claims for reach in reaches] == [one.verdict.family_size for one in found.findings]
    late = ", ".join(one.verdict.claim for one in found.findings if one.verdict.exploratory)
    assert [note.partition(" w")[0] for note in notes if NOT_DECLARED in note] == [late]


def drop_the_second(study: Study_) -> None:
    del study["compare"][1]


WITHDRAWN = "withdrawn: H2 (B1 - B2, stress/negate/auc, better{}) was declared and is claimed no longer; it stays counted"  # fmt: skip


@pytest.mark.parametrize(("name", "of"), [("first", ""), ("second", ", of first")])
def test_a_claim_that_was_declared_stays_counted(path: Path, name: str, of: str) -> None:
    """Whoever drops what did not hold, or takes the rest to another file, is corrected as before, and told of."""
    whole, less = judged(path, nothing), judged(path, drop_the_second, name)
    first, third = (finding.verdict for finding in less.findings)
    assert exploratory(less) == [False, False]
    assert {verdict.family_size for verdict in (first, third)} == {3}
    was = whole.findings[0].verdict
    assert first.p_adjusted == pytest.approx(min(1.0, 3 * first.p))  # nobody's p stands before it
    assert (first.ci_bonferroni_low, first.ci_bonferroni_high) == (was.ci_bonferroni_low, was.ci_bonferroni_high)
    assert first.words.endswith("(1 of the 3 hypotheses it is corrected with were withdrawn)")
    assert less.notes[0] == WITHDRAWN.format(of)
    assert WITHDRAWN.format(of) in forms.table(less)
    assert "withdrawn" in forms.markdown(less)


@pytest.mark.parametrize(
    ("sides", "words"),
    [
        ({"control": ["B2", "B0"]}, "B1 - each of B2, B0"),
        ({"treatment": {"arm": "B1", "over": "B0"}, "control": {"arm": "B2", "over": "B0"}}, "(B1 - B0) - (B2 - B0)"),
    ],
)  # fmt: skip
def test_a_withdrawn_claim_with_more_than_two_arms_is_told_in_words(
    tmp_path: Path, sides: dict[str, Any], words: str
) -> None:
    path = write_study(tmp_path / "first.yaml", "Which?", ("B1", "B2", "B0"), ("H1", "H2", "H3"))
    content = yaml.safe_load(path.read_text())
    content["compare"][1] |= sides
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    study = read_study(path)
    declare(study, runs_of(study), Ledger(tmp_path / "ledger"))
    finished(path)
    assert judged(path, drop_the_second).notes[0] == WITHDRAWN.format("").replace("B1 - B2", words)


def test_a_withdrawal_is_told_by_the_plan_and_kept_by_the_passport(path: Path, tmp_path: Path) -> None:
    less, ledger = judged(path, drop_the_second, "second"), Ledger(tmp_path / "ledger")
    asked = replace(planned(read_study(path.with_name("second.yaml"))), finished=ledger.entries())
    assert WITHDRAWN.format(", of first") in words_of(asked, ledger)
    write_passport(tmp_path / "p.passport", asked, ledger, with_distributions(less, ledger))
    assert verify(tmp_path / "p.passport").differences == ()
    declare(asked.study, asked.runs, ledger)  # as `semray run` does: from now on it has its own words
    again = judged(path, drop_the_second, "second")
    assert [finding.verdict.family_size for finding in again.findings] == [3, 3]
    assert again.notes[0] == WITHDRAWN.format(", of first")


def test_a_changed_margin_is_another_claim_and_the_first_stays_counted(path: Path) -> None:
    changed = judged(path, lambda study: study["compare"][2].update(margin=0.2))
    assert [finding.verdict.family_size for finding in changed.findings] == [3, 3, 1]
    assert changed.notes[0].startswith("withdrawn: H3 ")


def test_a_claim_that_was_seen_when_it_was_declared_leaves_nothing_behind(path: Path) -> None:
    """It was corrected with nobody."""
    judged(path, lambda study: study["compare"][2].update(margin=0.2), "third")
    study = read_study(path.with_name("third.yaml"))
    declare(study, runs_of(study), Ledger(path.parent / "ledger"))

    def drop_the_third(content: Study_) -> None:
        del content["compare"][2]

    less = judged(path, drop_the_third, "third")
    assert [note[:13] for note in less.notes if note.startswith("withdrawn")] == ["withdrawn: H3"]  # of the first
    assert [finding.verdict.family_size for finding in less.findings] == [3, 3]


def test_a_new_study_of_seen_runs_is_exploratory(path: Path) -> None:
    """What no study had declared before its runs were there; nor does declaring it then make it a test."""
    for _ in range(2):
        changed = judged(path, lambda study: study["compare"][2].update(margin=0.2), "third")
        assert exploratory(changed) == [False, False, True]
        study = read_study(path.with_name("third.yaml"))
        declare(study, runs_of(study), Ledger(path.parent / "ledger"))


def test_of_several_declarations_the_unseen_one_with_the_same_seeds_holds(path: Path, tmp_path: Path) -> None:
    """Whatever the others are called: one that came late, one for other seeds."""
    ledger, first = Ledger(tmp_path / "ledger"), tmp_path / "ledger" / ".declared" / "first.json"
    first.rename(tmp_path / "kept")
    for name, seeds, late in (("0 late", 2, True), ("1 other", [5, 6], False)):
        judged(path, with_seeds(seeds), name)
        study = read_study(path.with_name(f"{name}.yaml"))
        assert [claim["seen"] for claim in declare(study, runs_of(study), ledger).claims] == [late] * 3
    (tmp_path / "kept").rename(first)
    assert exploratory(judged(path, nothing, "second")) == [False] * 3


def test_only_the_claims_of_its_group_follow_a_claim_to_another_study(tmp_path: Path) -> None:
    path = write_study(tmp_path / "first.yaml", "Which?", ("B1", "B2", "B0"), ("H1", "H2", "H3"))
    content = yaml.safe_load(path.read_text())
    content["compare"][2]["family"] = "apart"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    finished(path)

    def take_the_first(study: Study_) -> None:
        del study["compare"][1:]

    alone = judged(path, take_the_first, "second")
    assert [(one.verdict.exploratory, one.verdict.family_size) for one in alone.findings] == [(False, 2)]
    assert [note.split()[1] for note in alone.notes if note.startswith("withdrawn: ")] == ["H2"]


def test_declarations_of_before_are_known_by_their_words(path: Path, tmp_path: Path) -> None:
    """Then, only the words were written down, with the names of arms."""
    place = tmp_path / "ledger" / ".declared" / "first.json"
    body = json.loads(place.read_text())
    old = [
        {name: value for name, value in claim.items() if name not in ("says", "rows", "made_on")}
        for claim in body["claims"]
    ]
    place.unlink()
    Ledger(tmp_path / "ledger").declare("first", old)

    def rename(study: Study_) -> None:
        study["compare"][0]["claim"] = "main"
        study["compare"][2]["margin"] = 0.04

    assert exploratory(judged(path, rename)) == [False, False, True]


def test_the_version_of_the_rule_is_told_apart_from_the_figures(path: Path, tmp_path: Path) -> None:
    findings = judged(path, nothing)
    study, place = read_study(path), tmp_path / "p.passport"
    ledger = Ledger(tmp_path / "ledger")
    write_passport(place, planned(study), ledger, with_distributions(replace(findings, rule=1), ledger))
    check = verify(place)
    assert (check.rules, check.differences) == ((1, findings.rule), ())
    assert plain(findings)["rule"] == findings.rule


SEVERAL = [
    {"claim": "L", "treatment": "B1", "control": ["B2", "B0"], "metric": "stress/negate/auc", "expect": "better"},
    {
        "claim": "J",
        "all": [
            {"claim": f"J-{control}", "treatment": "B1", "control": control, "metric": metric, "expect": "better"}
            for control, metric in (("B2", "t2d/recall@10"), ("B0", "stress/negate/auc"))
        ],
    },
]


@pytest.mark.parametrize("name", ["first", "second"])
@pytest.mark.parametrize("before", [False, True])
def test_the_order_of_parts_is_no_part_of_what_is_claimed(
    before: bool, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ledgers of before hold the order in which the parts were declared, and are known by that."""

    def reverse(study: Study_) -> None:
        study["compare"][0]["control"].reverse()
        study["compare"][1]["all"].reverse()

    path = write_study(tmp_path / "first.yaml", "Which?", ("B1", "B2", "B0"), ("H1", "H2", "H3"))
    content = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**content, "compare": SEVERAL}, sort_keys=False))
    study, ledger = read_study(path), Ledger(tmp_path / "ledger")
    with monkeypatch.context() as patch:
        if before:
            patch.setattr(
                declared, "_digests", lambda records, claim, _=None: SAYS(records, claim, declared.AS_GIVEN)
            )
        declare(study, runs_of(study), ledger)
    finished(path)
    as_declared = judged(path, nothing, name)
    assert not any(exploratory(as_declared))
    assert not [note for note in as_declared.notes if "withdrawn" in note]
    if not before:
        turned = judged(path, reverse, name)
        assert not any(exploratory(turned))
        assert not [note for note in turned.notes if "withdrawn" in note]
        ids = [sorted(one.verdict.id for one in found.findings) for found in (as_declared, turned)]
        assert ids[0] == ids[1]
        less = judged(path, lambda study: study["compare"].pop(), name)
        assert less.notes[0].startswith("withdrawn: J (all of J-B2, J-B0")  # as it was declared


def test_what_a_side_is_made_of_is_part_of_what_is_claimed(tmp_path: Path) -> None:
    """Each arm of a list of controls, of a gain and of a backbone's own side: by its recipe, under any name."""
    path = write_study(tmp_path / "first.yaml", "Which?", ("B1", "B2", "B0"), ("H1", "H2", "H3"))
    content = yaml.safe_load(path.read_text())
    for arm, rate in (("C", 1.0e-5), ("D", 1.0e-6)):
        content["arms"][arm] = {"learning_rate": rate}
    gains = [{"arm": "B1", "over": "B2"}, {"arm": "C", "over": "D"}]
    sides = [{"arm": "B1", "backbone": "tiny"}, {"arm": "B2", "backbone": "small"}]
    shared = {"metric": "stress/negate/auc", "expect": "better"}
    content["backbones"] = ["tiny", "small"]
    content["compare"] = [
        {"claim": "list", "treatment": "B1", "control": ["B2", "D"], **shared},
        {"claim": "gain", "treatment": gains[0], "control": gains[1], **shared},
        {"claim": "side", "treatment": sides[0], "control": sides[1], **shared},
    ]
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    study, ledger = read_study(path), Ledger(tmp_path / "ledger")
    declare(study, runs_of(study), ledger)
    finish(ledger, runs_of(study))

    def rename(study: Study_) -> None:
        for old, new in (("D", "E"), ("B2", "F")):
            study["arms"][new] = study["arms"].pop(old)
        study["compare"][0]["control"] = ["F", "E"]
        study["compare"][1]["treatment"]["over"], study["compare"][1]["control"]["over"] = "F", "E"
        study["compare"][2]["control"]["arm"] = "F"

    def late(change: Callable[[Study_], object]) -> set[str]:
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        found = [one.verdict for one in judged(path, change).findings if not one.verdict.part_of]
        return {verdict.claim for verdict in found if verdict.exploratory}

    assert late(nothing) == late(rename) == set()
    assert late(lambda study: study["arms"]["B2"].update(temperature=0.5)) == {"list", "gain", "side"}
    assert late(lambda study: study["arms"]["D"].update(temperature=0.5)) == {"list", "gain"}
    assert late(lambda study: study["compare"][0].update(control=["B2", "C"])) == {"list"}
    assert late(lambda study: study["compare"][1]["control"].update(over="B2")) == {"gain"}
    assert late(lambda study: study["compare"][2]["control"].update(arm="C")) == {"side"}
    turned = {"treatment": sides[1], "control": sides[0]}
    assert late(lambda study: study["compare"][2].update(turned)) == {"side"}


def test_the_digest_of_a_claim_is_of_its_words_with_recipes_for_arms(tmp_path: Path) -> None:
    """Ledgers keep it: in another form the claims of today would be strangers tomorrow."""
    path = write_study(tmp_path / "first.yaml", "Which?", ("B1", "B2", "B0"), ("H1", "H2", "H3"))
    content = yaml.safe_load(path.read_text())
    metric, mean = "t2d/recall@10", "mean(t2d/recall@10, stress/negate/auc)"
    sides = [{"arm": arm, "over": "B0", "backbone": "tiny"} for arm in ("B1", "B2")]
    content["compare"] = [
        {"claim": "H1", "treatment": "B1", "control": "B0", "metric": metric, "expect": "better"},
        {"claim": "H2", "treatment": sides[0], "control": sides[1], "metric": mean, "expect": "worse", "family": "x"},
        {"claim": "H3", "treatment": {**sides[0], "over": None}, "control": {**sides[1], "over": None}, "metric": metric, "expect": "better"},
    ]  # fmt: skip
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    study = read_study(path)
    arms = {run.arm: dict(run.defining) for run in runs_of(study)}
    shared = {"scope": "task", "family of models": "concept"}
    gains = [{"arm": arms[arm], "over": arms["B0"], "backbone": "tiny"} for arm in ("B1", "B2")]
    alone = [{"arm": arms[arm], "backbone": "tiny"} for arm in ("B1", "B2")]
    plain = {
        "treatment": arms["B1"],
        "control": arms["B0"],
        "metric": metric,
        "expect": "better",
        "backbone": "tiny",
    }
    gain = {"treatment": gains[0], "control": gains[1], "metric": mean, "expect": "worse", "backbone": None}
    gain |= {"family": "x", "figures": [metric, "stress/negate/auc"]}
    apart = {"treatment": alone[0], "control": alone[1], "metric": metric, "expect": "better", "backbone": None}
    said = declare(study, runs_of(study), Ledger(tmp_path / "ledger")).claims
    for claim, backbone, words in zip(said, ("tiny", "", ""), (plain, gain, apart), strict=True):
        text = json.dumps(words | shared, sort_keys=True, separators=(",", ":"))
        assert claim["says"] == {backbone: hashlib.sha256(text.encode()).hexdigest()[:16]}


def one_task_more(study: Study_) -> None:
    study["evaluate"].append("geometry")


def test_another_task_makes_what_was_seen_no_less_seen(path: Path, tmp_path: Path) -> None:
    """Runs that lack scores on a task of no claim were scored on those of the claims all the same."""
    judged(path, one_task_more, "second")
    study, ledger = read_study(path.with_name("second.yaml")), Ledger(tmp_path / "ledger")
    assert not any(ledger.holds(run) for run in runs_of(study))
    (tmp_path / "ledger" / ".declared" / "first.json").unlink()  # as if nobody had claimed it then
    again = judged(path, one_task_more, "second")
    assert exploratory(again) == [True] * 3
    asked = replace(planned(study), finished=ledger.entries())
    write_passport(tmp_path / "p.passport", asked, ledger, with_distributions(again, ledger))
    assert verify(tmp_path / "p.passport").differences == ()
    assert [claim["seen"] for claim in declare(study, runs_of(study), ledger).claims] == [True] * 3


def test_another_task_leaves_no_claim_uncounted(path: Path) -> None:
    def take_the_first(study: Study_) -> None:
        one_task_more(study)
        del study["compare"][1:]

    alone = judged(path, take_the_first, "second")
    assert [(one.verdict.exploratory, one.verdict.family_size) for one in alone.findings] == [(False, 3)]


def test_what_another_study_declared_holds_beside_claims_of_which_nothing_is_seen(path: Path) -> None:
    def ask_more(study: Study_) -> None:
        one_task_more(study)
        study["compare"].append({**study["compare"][0], "claim": "H4", "metric": "geometry/effective_rank"})

    judged(path, ask_more, "second")
    study, ledger = read_study(path.with_name("second.yaml")), Ledger(path.parent / "ledger")
    assert NOT_DECLARED not in words_of(replace(planned(study), finished=ledger.entries()), ledger)
    assert [claim["seen"] for claim in declare(study, runs_of(study), ledger).claims] == [False] * 4
    assert exploratory(judged(path, ask_more, "second"))[:3] == [False] * 3


def test_claims_on_tasks_without_scores_are_declared_in_time(tmp_path: Path) -> None:
    """What is seen is told claim by claim: of a study of one task nothing of another can be known."""
    path = write_study(tmp_path / "first.yaml", "Which?", ("B1", "B2", "B0"), ("H1", "H2", "H3"))
    whole = yaml.safe_load(path.read_text())
    both = "mean(t2d/recall@10, stress/negate/auc)"
    whole["compare"].append({**whole["compare"][1], "claim": "H4", "metric": both})
    path.write_text(yaml.safe_dump({**whole, "evaluate": ["t2d"], "compare": []}, sort_keys=False))
    ledger = Ledger(tmp_path / "ledger")
    finish(ledger, runs_of(read_study(path)))
    path.write_text(yaml.safe_dump(whole, sort_keys=False))
    study = read_study(path)
    assert exploratory(find(study, runs_of(study), ledger)) == [True, False, True, True]  # as when declared now
    seen = {claim["claim"]: claim["seen"] for claim in declare(study, runs_of(study), ledger).claims}
    assert seen == {"H1": True, "H2": False, "H3": True, "H4": True}


def seen(study: Study, ledger: Ledger) -> list[bool]:
    records = StudyRecords(study, runs_of(study), ledger)
    return [could_be_seen(records, claim) for claim in study.compare]


def test_a_pair_is_two_arms_at_one_seed(tmp_path: Path) -> None:
    """B0, which is not trained, pairs with every seed of the others. What a gain is due to can be seen later."""
    path = write_study(tmp_path / "first.yaml", "Which?", ("B1", "B2", "B0"), ("H1", "H2", "H3"))
    content = yaml.safe_load(path.read_text())
    content["compare"][0] |= {"matched_control": "B2", "signal": "hard negatives"}
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    study, ledger = read_study(path), Ledger(tmp_path / "ledger")
    for done, expected in (
        ([("B1", 0), ("B2", 1)], [False, False, False]),
        ([("B0", None)], [True, False, False]),
        ([("B1", 1)], [True, True, True]),
    ):
        finish(ledger, [run for run in runs_of(study) if (run.arm, run.seed) in done])
        assert seen(study, ledger) == expected


def test_a_claim_is_seen_where_any_backbone_or_part_of_it_is(tmp_path: Path) -> None:
    path = write_study(tmp_path / "first.yaml", "Which?", ("B1", "B2", "B0"), ("H1", "H2", "H3"))
    content = yaml.safe_load(path.read_text())
    content |= {"backbones": ["tiny", "small"], "compare": [*content["compare"], SEVERAL[1]]}
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    study, ledger = read_study(path), Ledger(tmp_path / "ledger")
    assert seen(study, ledger) == [False] * 4
    finish(ledger, [run for run in runs_of(study) if run.backbone == "small" and run.arm != "B0"])
    assert seen(study, ledger) == [False, True, True, True]


def test_a_backbone_that_was_left_out_stays_counted(tmp_path: Path) -> None:
    """With each null hypothesis of its claims; one with both a margin and a matched control has two."""
    path = write_study(tmp_path / "first.yaml", "Which?", ("B1", "B2", "B0"), ("H1", "H2", "H3"))
    content = yaml.safe_load(path.read_text())
    content["compare"][0] |= {"margin": 0.01, "matched_control": "B2", "signal": "hard negatives"}
    content["compare"][1] |= {"matched_control": "B0", "signal": "training"}
    content["compare"][2]["family"] = "apart"
    path.write_text(yaml.safe_dump(content | {"backbones": ["tiny", "small"]}, sort_keys=False))
    study, ledger = read_study(path), Ledger(tmp_path / "ledger")
    declare(study, runs_of(study), ledger)
    finish(ledger, runs_of(study))
    whole = judged(path, nothing)
    less = judged(path, lambda study: study.update(backbones=["small"]))
    for findings, judgements in ((whole, 6), (less, 3)):
        sizes = [(one.verdict.claim, one.verdict.family_size) for one in findings.findings]
        assert len(sizes) == judgements
        assert set(sizes) == {("H1", 6), ("H2", 6), ("H3", 2)}
        assert exploratory(findings) == [False] * judgements
    assert [note.split()[1] for note in less.notes if note.startswith("withdrawn: ")] == ["H1", "H2", "H3"]
    assert not [note for note in whole.notes if note.startswith("withdrawn")]


NOTE = (
    "H1, H2, H3 were declared with seeds {} and are judged on {}: exploratory, and counted as declared; "
    "fresh seeds in a new study would show it, or `seeds: {{start, max}}` from the start"
)
GROWING = {"start": 2, "max": 4}


def with_seeds(seeds: object) -> Callable[[Study_], object]:
    return lambda study: study.update(seeds=seeds)


def about_seeds(findings: Findings) -> list[str]:
    return [note for note in findings.notes if "seeds" in note]


@pytest.mark.parametrize(
    ("seeds", "told"), [(4, "0 to 3"), ([1], "1"), ([0, 1, 7], "0, 1, 7"), (GROWING, "{start: 2, max: 4}")]
)
def test_other_seeds_after_a_look_are_no_declared_test(
    path: Path, tmp_path: Path, seeds: object, told: str
) -> None:
    """As many or as few as would show it, or the best of those that were run; under another file's name, too."""
    ledger = Ledger(tmp_path / "ledger")
    for name in ("first", "second"):
        other = judged(path, with_seeds(seeds), name)
        assert exploratory(other) == [True] * 3
        assert about_seeds(other) == [NOTE.format("0, 1", told)]
        assert in_short(other).startswith(
            "in short  no claim was declared with these seeds and rows before the runs: "
        )
        assert "No comparison was declared with these seeds and rows before the runs." in methods(other)
        study = read_study(path.with_name(f"{name}.yaml"))
        asked = replace(planned(study), finished=ledger.entries())
        assert NOTE.format("0, 1", told) in words_of(asked, ledger)
        declare(study, asked.runs, ledger)  # as `semray run` does: no look is forgotten by it
        finish(ledger, [run for run in asked.runs if not ledger.holds(run)])
        again = judged(path, with_seeds(seeds), name)
        assert exploratory(again) == [True] * 3
        asked = replace(asked, finished=ledger.entries())
        write_passport(tmp_path / "p.passport", asked, ledger, with_distributions(again, ledger))
        assert verify(tmp_path / "p.passport").differences == ()
        assert exploratory(judged(path, with_seeds(2), name)) == [False] * 3  # what was declared


def test_fresh_seeds_are_a_study_of_their_own(path: Path, tmp_path: Path) -> None:
    """In the study that was looked at they would be a second draw; of another one they are the first."""
    ledger = Ledger(tmp_path / "ledger")
    for name, late in (("first", True), ("second", False)):
        judged(path, with_seeds([5, 6, 7]), name)
        study = read_study(path.with_name(f"{name}.yaml"))
        told = words_of(planned(study), ledger)
        assert (NOTE.format("0, 1", "5 to 7") in told) == late
        declare(study, runs_of(study), ledger)
    finish(ledger, [run for run in runs_of(study) if not ledger.holds(run)])
    assert exploratory(judged(path, with_seeds([5, 6, 7]), "first")) == [True] * 3
    assert exploratory(judged(path, with_seeds([5, 6, 7]), "second")) == [False] * 3


def test_a_claim_of_which_nothing_is_seen_is_declared_with_the_seeds_of_its_own_study(tmp_path: Path) -> None:
    """Of the first study H1 and H3 are seen, on which the second's look is held against it; of H2 nothing is."""
    path, ledger = declared_alone(tmp_path, 2)
    whole = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**whole, "evaluate": ["t2d"], "compare": []}, sort_keys=False))
    finish(ledger, runs_of(read_study(path)))
    second = path.with_name("second.yaml")
    second.write_text(yaml.safe_dump({**whole, "seeds": [0, 5]}, sort_keys=False))
    study = read_study(second)
    claims = declare(study, runs_of(study), ledger).claims
    assert [(claim["seen"], claim["seeds"]) for claim in claims] == [
        (False, [0, 1]),
        (False, [0, 5]),
        (False, [0, 1]),
    ]
    finish(ledger, [run for run in runs_of(study) if not ledger.holds(run)])
    assert exploratory(find(study, runs_of(study), ledger)) == [True, False, True]


def declared_alone(folder: Path, seeds: object) -> tuple[Path, Ledger]:
    """A study with these seeds of which nothing ran."""
    path = write_study(folder / "first.yaml", "Which?", ("B1", "B2", "B0"), ("H1", "H2", "H3"))
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), "seeds": seeds}, sort_keys=False))
    study, ledger = read_study(path), Ledger(folder / "ledger")
    declare(study, runs_of(study), ledger)
    return path, ledger


def test_seeds_that_are_put_right_before_anything_is_seen_are_the_declared_ones(tmp_path: Path) -> None:
    path, ledger = declared_alone(tmp_path, 2)
    for seeds in (3, [4, 9], 3):
        assert about_seeds(judged(path, with_seeds(seeds))) == []
        study = read_study(path)
        assert "were declared with seeds" not in words_of(planned(study), ledger)
        declare(study, runs_of(study), ledger)
    finish(ledger, runs_of(study))
    assert exploratory(judged(path, with_seeds(3))) == [False] * 3
    assert exploratory(judged(path, with_seeds(2))) == [True] * 3


def test_seeds_that_grow_may_grow_further_and_not_stop_at_a_look(tmp_path: Path) -> None:
    path, ledger = declared_alone(tmp_path, GROWING)
    finish(ledger, runs_of(read_study(path)))
    assert exploratory(judged(path, with_seeds({"start": 2, "max": 9}))) == [False] * 3
    stopped = judged(path, with_seeds(2))
    assert exploratory(stopped) == [True] * 3
    assert about_seeds(stopped) == [NOTE.format("{start: 2, max: 4}", "0, 1")]


def test_claims_that_were_declared_without_seeds_are_left_alone(path: Path, tmp_path: Path) -> None:
    """As in ledgers of before."""
    place, ledger = tmp_path / "ledger" / ".declared" / "first.json", Ledger(tmp_path / "ledger")
    claims = json.loads(place.read_text())["claims"]
    place.unlink()
    ledger.declare("first", [{key: value for key, value in claim.items() if key != "seeds"} for claim in claims])
    for name in ("first", "second"):
        assert exploratory(judged(path, with_seeds([0]), name)) == [False] * 3
        study = read_study(path.with_name(f"{name}.yaml"))
        assert not any("seeds" in claim for claim in declare(study, runs_of(study), ledger).claims)


def test_what_was_seen_of_one_claim_leaves_no_seeds_of_the_others_open(tmp_path: Path) -> None:
    """Claims of which nothing can be seen yet are counted, and not corrected by fewer."""
    path, ledger = declared_alone(tmp_path, 2)
    study = read_study(path)
    finish(ledger, [run for run in runs_of(study) if run.arm != "B2"])  # H1 alone
    later = judged(path, with_seeds(4))
    assert exploratory(later) == [True] * 3
    changed = read_study(path)
    first = ledger.declared("first")
    assert declare(changed, runs_of(changed), ledger) == first


OTHERWISE = (
    "{} declared on other rows, or by another script, and {} judged on these: exploratory, and counted as declared; "
    "fresh seeds in a new study would show it"
)


@pytest.mark.parametrize("other", [{"rows": "d"}, {"items": "8"}])
def test_other_rows_after_a_look_are_no_declared_test(path: Path, tmp_path: Path, other: Any) -> None:
    """To train on or to measure on; a script is among the first."""
    ledger, study = Ledger(tmp_path / "ledger"), read_study(path)
    assert OTHERWISE.format("H1, H2, H3 were", "are") in words_of(planned(study, **other), ledger)
    first = ledger.declared("first")
    assert declare(study, runs_of(study, **other), ledger) == first
    finish(ledger, [run for run in runs_of(study, **other) if not ledger.holds(run)])
    later = find(study, runs_of(study, **other), ledger)
    assert exploratory(later) == [True] * 3
    assert OTHERWISE.format("H1, H2, H3 were", "are") in later.notes
    asked = replace(planned(study, **other), finished=ledger.entries())
    write_passport(tmp_path / "p.passport", asked, ledger, with_distributions(later, ledger))
    assert verify(tmp_path / "p.passport").differences == ()
    assert exploratory(find(study, runs_of(study), ledger)) == [False] * 3  # what was declared


def test_other_rows_after_a_look_are_no_declared_test_of_a_renamed_arm_either(path: Path, tmp_path: Path) -> None:
    """Its former rows are written down under its former name, so that what was seen on them cannot be told."""

    def rename(study: Study_) -> None:
        study["arms"]["hard"] = study["arms"].pop("B1")
        for claim in study["compare"]:
            claim.update({role: "hard" for role in ("treatment", "control") if claim[role] == "B1"})

    assert exploratory(judged(path, rename)) == [False] * 3
    study, ledger = read_study(path), Ledger(tmp_path / "ledger")
    first = ledger.declared("first")
    assert declare(study, runs_of(study, rows="d"), ledger) == first
    finish(ledger, [run for run in runs_of(study, rows="d") if not ledger.holds(run)])
    assert exploratory(find(study, runs_of(study, rows="d"), ledger)) == [True] * 3


def test_rows_that_are_put_right_before_anything_is_seen_are_the_declared_ones(tmp_path: Path) -> None:
    """As of a script that failed: what one arm alone gave shows no claim. H1 has a pair by then, B2 has no run."""
    path, ledger = declared_alone(tmp_path, 2)
    study = read_study(path)
    finish(ledger, [run for run in runs_of(study) if run.arm == "B1"])
    assert "by another script" not in words_of(planned(study, rows="d"), ledger)
    declare(study, runs_of(study, rows="d"), ledger)
    finish(ledger, [run for run in runs_of(study, rows="d") if run.arm != "B2"])
    declare(study, runs_of(study, rows="e"), ledger)
    finish(ledger, runs_of(study, rows="e"))
    found = find(study, runs_of(study, rows="e"), ledger)
    assert exploratory(found) == [True, False, False]
    assert OTHERWISE.format("H1 was", "is") in found.notes


def test_claims_that_were_declared_without_their_rows_are_left_alone(path: Path, tmp_path: Path) -> None:
    """As in ledgers of before."""
    place, ledger = tmp_path / "ledger" / ".declared" / "first.json", Ledger(tmp_path / "ledger")
    claims = json.loads(place.read_text())["claims"]
    place.unlink()
    ledger.declare("first", [{key: value for key, value in claim.items() if key != "made_on"} for claim in claims])
    study, was = read_study(path), ledger.declared("first")
    assert declare(study, runs_of(study, rows="d"), ledger) == was
    finish(ledger, runs_of(study, rows="d"))
    assert exploratory(find(study, runs_of(study, rows="d"), ledger)) == [False] * 3


@pytest.mark.parametrize("other", [{"precision": "bf16"}, {"corpus": "d" * 64}])
def test_a_look_is_not_forgotten_with_the_runs_that_gave_it(path: Path, tmp_path: Path, other: Any) -> None:
    """Runs of another precision or corpus have other ids, and nothing of these was seen."""
    ledger = Ledger(tmp_path / "ledger")
    judged(path, with_seeds(4))
    study = read_study(path)
    facts = Facts(backbones={"tiny": "s" * 64}, corpus="c" * 64, tasks={}, precision="fp32")
    asked = plan(study, replace(facts, tasks=dict.fromkeys(study.evaluate, "7" * 16), **other))
    declare(study, asked.runs, ledger)
    assert exploratory(judged(path, with_seeds(4))) == [True] * 3


def test_claims_that_no_seed_moves_have_none_to_declare(tmp_path: Path) -> None:
    """Between two arms that are not trained; beside others, whose claims stay counted."""

    def change(study: Study_) -> None:
        study["arms"]["B1"] = {"train": False, "readout": "cls"}
        study["compare"][0]["family"] = study["compare"][1]["family"] = "one"

    path = write_study(tmp_path / "first.yaml", "Which?", ("B1", "B2", "B0"), ("H1", "H2", "H3"))
    judged(path, change)
    study, ledger = read_study(path), Ledger(tmp_path / "ledger")
    for seeds in (3, 2):  # put right before anything is seen
        judged(path, with_seeds(seeds))
        study = read_study(path)
        claims = declare(study, runs_of(study), ledger).claims
        assert [claim.get("seeds") for claim in claims] == [None, [*range(seeds)], [*range(seeds)]]
    finish(ledger, runs_of(study))
    assert seen(study, ledger) == [True] * 3
    later = judged(path, with_seeds(3))
    assert exploratory(later) == [False, True, True]
    assert in_short(later).endswith("2 more were not declared with these seeds and rows before the runs")
    assert "2 further comparisons, made or given other seeds or rows later, are exploratory." in methods(later)
    assert later.findings[0].verdict.family_size == 2  # H2 is counted, if not as a declared claim
