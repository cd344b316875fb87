"""A study file: what a good one becomes, and that every mistake of a bad one is said at once, in its place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluators.significance.claims import Claim
from orchestration.reading.read_study import read_study
from orchestration.study.blocks import Resources, Seeds
from orchestration.study.errors import StudyError

GOOD = """\
question: Do hard negatives calibrate a concept encoder without improving its ranking?
family: concept
backbones: [all-MiniLM-L6-v2]
train: {steps: 300, batch_size: 32}
arms:
  B0: {train: false}
  B1: {hard_negatives: true}
  B1-noHN: {hard_negatives: false}
evaluate: [t2d, stress]
compare:
  - {claim: H1, treatment: B1, control: B0, metric: t2d/recall@10, expect: better}
  - {claim: H3b, treatment: B1, control: B1-noHN, metric: t2d/recall@10, expect: equivalent, margin: 0.01}
"""

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str) -> Path:
        path = tmp_path / "sample.yaml"
        path.write_text(text)
        return path

    return write


def complaint(path: Path) -> str:
    with pytest.raises(StudyError) as caught:
        read_study(path)
    return str(caught.value)


def test_a_good_study_is_read_whole(write: Write) -> None:
    study = read_study(write(GOOD))
    assert study.name == "sample"
    assert study.question.startswith("Do hard negatives")
    assert study.seeds == Seeds(initial=tuple(range(8)))
    assert list(study.arms) == ["B0", "B1", "B1-noHN"]
    assert study.evaluate == ("t2d", "stress")
    assert study.resources == Resources()
    assert study.compare[1] == Claim(
        claim="H3b",
        treatment="B1",
        control="B1-noHN",
        metric="t2d/recall@10",
        expect="equivalent",
        margin=0.01,
    )


def test_train_is_shared_and_an_arm_may_change_it(write: Write) -> None:
    study = read_study(write(GOOD.replace("B1: {hard_negatives: true}", "B1: {hard_negatives: true, steps: 20}")))
    assert [settings.steps for settings in study.arms.values()] == [300, 20, 300]
    assert [settings.train for settings in study.arms.values()] == [False, True, True]


@pytest.mark.parametrize(
    ("declared", "initial", "reserve"),
    [
        ("3", (0, 1, 2), ()),
        ("[7, 3, 1000]", (7, 3, 1000), ()),
        ("{start: 2, max: 5}", (0, 1), (2, 3, 4)),
        ("07", tuple(range(7)), ()),  # the same in eights and in tens
        ("[7, 4294967295]", (7, 4294967295), ()),
    ],
)
def test_seeds_in_each_of_their_forms(write: Write, declared: str, initial: tuple, reserve: tuple) -> None:
    study = read_study(write(GOOD + f"seeds: {declared}\n"))
    assert study.seeds == Seeds(initial=initial, reserve=reserve)
    assert study.seeds.all == initial + reserve


def test_comparisons_are_made_on_every_backbone_or_on_the_one_named(write: Write) -> None:
    text = GOOD.replace("[all-MiniLM-L6-v2]", "[one, two]").replace(
        "margin: 0.01}", "margin: 0.01, backbone: two}"
    )
    pairs = [(claim.claim, claim.backbone) for claim in read_study(write(text)).claims]
    assert pairs == [("H1", "one"), ("H1", "two"), ("H3b", "two")]


def test_anchors_and_merge_keys_are_plain_yaml(write: Write) -> None:
    text = GOOD.replace("B1: {hard_negatives: true}", "B1: &base {hard_negatives: true, steps: 40}")
    text = text.replace("B1-noHN: {hard_negatives: false}", "B1-noHN: {<<: *base, hard_negatives: false}")
    study = read_study(write(text))
    assert (study.arms["B1-noHN"].steps, study.arms["B1-noHN"].hard_negatives) == (40, False)


def test_a_whole_number_may_stand_for_a_float_but_not_the_other_way_round(write: Write) -> None:
    assert read_study(write(GOOD + "resources: {gpus_per_run: 1}\n")).resources.gpus_per_run == 1.0
    assert "train.steps = 300.5\n  accepted: a whole number" in complaint(write(GOOD.replace("300", "300.5")))


@pytest.mark.parametrize(
    ("metric", "more"),
    [
        ("mean(t2d/mrr, sts/STS-B/spearman)", "margin: 1.49"),
        ("each(t2d/mrr, sts/STS-B/spearman)", "margin: 0.99"),
        ("each(t2d/mrr, sts/STS-B/spearman)", "margin: 0.01, at_least: 2"),
        ("sts/STS12/mean", "margin: 9.0"),
        ("mean(t2d/mrr, sts/STS12/mean)", "margin: 9.0"),
    ],
)
def test_a_margin_may_be_nearly_as_wide_as_the_metric_can_differ(write: Write, metric: str, more: str) -> None:
    """0 to 1 and -1 to 1: their mean is 1.5 wide; of each the narrower counts. What a `mean` is of, nobody knows."""
    text = GOOD.replace("[t2d, stress]", "[t2d, stress, sts/STS-B, sts/STS12]")
    written = f"'{metric}', expect: equivalent, {more}"
    claim = read_study(write(text.replace("t2d/recall@10, expect: equivalent, margin: 0.01", written))).compare[1]
    assert isinstance(claim, Claim)
    assert (claim.metric, claim.margin) == (metric, float(more.split()[1].strip(",")))


def test_a_joint_claim_without_a_name_is_told_beside_the_slips_of_its_parts(write: Write) -> None:
    """Nothing else is said of it, and a good one is read with all its parts."""
    sides = "treatment: B1, control: B0, expect: better, metric: t2d"
    one, other = f"{{claim: a, {sides}/mrr}}", f"{{claim: b, {sides}/recall@1}}"
    said = complaint(write(f"{GOOD}  - {{all: [{one.replace('better', 'beter')}, {other}]}}\n"))
    assert said.count("accepted:") == 2
    assert "compare[2].claim is missing" in said
    assert "compare[2].all[a].expect = 'beter'" in said
    joint = read_study(write(f"{GOOD}  - {{claim: J, all: [{one}, {other}]}}\n")).compare[2]
    assert [part.metric for part in joint.parts] == ["t2d/mrr", "t2d/recall@1"]


def test_every_mistake_is_said_at_once_with_its_line(write: Write) -> None:
    text = """\
question: Does it?
family: concept
backbones: [all-MiniLM-L6-v2]
seeds: [1, 1]
train: {steps: 3e2, learning_rate: 3e-5, nonsense: 1}
arms:
  B0: {train: 0}
  B1: {readout: meen}
evaluate: [t2dd]
compare:
  - {claim: H1, treatment: B1, control: B2, metric: t2d/recall@10, expect: beter}
resources: {workers_per_run: 2, launcher: pool, deepspeed: {zero_stage: 4}}
"""
    path = write(text)
    said = complaint(path)
    expected = {
        4: ["seeds[1] = 1"],
        5: ["train.steps = '3e2'", "train.learning_rate = '3e-5'", "train.nonsense = 1"],
        7: ["arms.B0.train = 0"],
        8: ["arms.B1.readout = 'meen'"],
        9: ["evaluate[0] = 't2dd'"],
        11: ["compare[H1].expect = 'beter'", "compare[H1].control = 'B2'"],
        12: ["resources.launcher = 'pool'", "resources.deepspeed.zero_stage = 4"],
    }
    for line, problems in expected.items():
        for problem in problems:
            assert f"{path}:{line}: {problem}\n  accepted: " in said
    assert said.count("accepted:") == sum(map(len, expected.values()))


def test_one_mistake_in_train_is_said_once_however_many_arms_share_it(write: Write) -> None:
    assert complaint(write(GOOD.replace("300", "soon"))).count("train.steps") == 1


def test_a_range_of_the_settings_class_is_laid_at_the_field_that_was_written(write: Write) -> None:
    said = complaint(write(GOOD.replace("steps: 300, batch_size: 32", "steps: -5, batch_size: 0")))
    assert "train.steps = -5" in said
    assert "train.batch_size = 0" in said


# Every path into a good study, with values of every YAML kind put there: a study loads or is refused in words.
BASE = yaml.safe_load(
    GOOD + "resources: {deepspeed: {zero_stage: 1}}\nseeds: [1, 2]\ndata: {lexicons: [wordnet]}\n"
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 10**12),
    st.floats(),
    st.text(max_size=8),
    st.lists(st.one_of(st.none(), st.integers(), st.text(max_size=3)), max_size=3),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
)


def places(value: object, place: tuple = ()) -> list[tuple]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place, *(found for step, below in inner for found in places(below, (*place, step)))]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.sampled_from(places(BASE)[1:]), value=VALUES)
def test_whatever_is_written_is_read_or_refused_in_words(write: Write, place: tuple, value: object) -> None:
    study = yaml.safe_load(yaml.safe_dump(BASE))
    owner = study
    for step in place[:-1]:
        owner = owner[step]
    owner[place[-1]] = value
    path = write(yaml.safe_dump(study, sort_keys=False))
    try:
        read_study(path)
    except StudyError as error:
        said = str(error)
        assert said.count(f"{path}:") == said.count("\n  accepted: ") >= 1


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    at=st.integers(0, len(GOOD) - 1),
    text=st.text(alphabet="{}[]:,-&*!|>'\"%@`#?\t\n 0aé\x07", max_size=3),
    cut=st.integers(0, 5),
)
def test_a_damaged_file_is_read_or_refused_in_words(write: Write, at: int, text: str, cut: int) -> None:
    path = write(GOOD[:at] + text + GOOD[at + cut :])
    try:
        read_study(path)
    except StudyError as error:
        said = str(error)
        assert said.count(f"{path}:") == said.count("\n  accepted: ") >= 1


# The reference.

DOCS = (Path(__file__).resolve().parents[3] / "docs" / "studies.md").read_text()


def test_the_reference_names_every_field_and_every_choice() -> None:
    from dataclasses import fields

    from orchestration.reading.read_study import KEYS
    from orchestration.study.blocks import DeepSpeed, Growing, Objective, Search, StopEarly

    names = [
        *KEYS,
        *(
            f.name
            for kind in (Claim, Growing, Search, Objective, StopEarly, Resources, DeepSpeed)
            for f in fields(kind)
        ),
    ]
    choices = [
        "better",
        "worse",
        "equivalent",
        "not_worse",
        "task",
        "test_set",
        "pool",
        "train",
        "auto",
        "fp32",
        "bf16",
    ]
    assert [
        name
        for name in names + choices
        if f"`{name}`" not in DOCS and f"{name}:" not in DOCS and f"{{{name}, " not in DOCS
    ] == []


def test_the_reference_states_the_real_defaults() -> None:
    default = Resources()
    for line, value in (
        ("`gpus_per_run`", f"`{default.gpus_per_run:g}`"),
        ("`workers_per_run`", f"`{default.workers_per_run}`"),
        ("`runs_per_stack`", f"`{default.runs_per_stack}`"),
        ("`precision`", f"`{default.precision}`"),
        ("`retries`", f"`{default.retries}`"),
        ("`launcher`", f"`{default.launcher}`"),
        ("`deepspeed`", f"`{{zero_stage: {default.deepspeed.zero_stage}}}`"),
        ("`checkpoint_every`", f"`{default.checkpoint_every}`"),
        ("`stall_minutes`", f"`{default.stall_minutes:g}`"),
    ):
        row = next(row for row in DOCS.splitlines() if row.startswith(f"| {line} |"))
        assert row.split(" | ")[-1].strip(" |") == value


def test_the_study_of_the_reference_is_a_good_one(write: Write) -> None:
    assert len(read_study(write(DOCS.split("```yaml\n")[1].split("```")[0])).compare) == 3


def test_the_mistakes_of_the_reference_are_said_so(write: Write) -> None:
    text = DOCS.split("```yaml\n")[1].split("```")[0]
    text = text.replace("batch_size: 32", "learning_rate: 3e-5").replace(
        "B1: {hard_negatives", "B1: {hard_negative"
    )
    path = write(text)
    shown = DOCS.split("with exit code 2:\n\n```\n")[1].split("\n```")[0]
    assert complaint(path).replace(str(path), "studies/sample.yaml") == shown


@pytest.mark.parametrize(
    "name", ["...yaml", ".hidden.yaml", "a\\b.yaml", " blank.yaml", "two\nlines.yaml", "n" * 201 + ".yaml"]
)
def test_a_name_that_is_no_part_of_a_path(tmp_path: Path, name: str) -> None:
    """A study's name becomes folders: reports, the lock, the declaration."""
    path = tmp_path / name
    path.write_text(GOOD)
    assert "names its study" in complaint(path)
    assert "accepted: a name without /" in complaint(path)
