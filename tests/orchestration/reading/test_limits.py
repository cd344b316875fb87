"""Files that no study is: each refused within a second, with the limit and its reason."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from orchestration.reading.limits import MISTAKES
from orchestration.reading.read_study import read_study
from orchestration.study.errors import StudyError

GOOD = """\
question: Is hard better?
family: concept
backbones: [small]
arms:
  B0: {train: false}
  B1: {hard_negatives: true}
evaluate: [t2d]
compare:
  - {claim: H1, treatment: B1, control: B0, metric: t2d/recall@10, expect: better}
"""
LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{letter}: &{letter} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, letter in zip("abcdefgh", "bcdefghi", strict=True)
)
BOMBS = {
    "aliases of aliases": (LAUGHS, "more than 10,000 values"),
    "aliases of a mapping": (LAUGHS.replace("[x, x, x, x, x, x, x, x, x]", "{k: v}"), "more than 10,000 values"),
    "10,000 lists in each other": (GOOD + "data: " + "[" * 10_000, "more than 20 lists and mappings inside each other"),
    "10,000 mappings in each other": (GOOD + "data: " + "{a: " * 10_000, "more than 20 lists and mappings"),
    "10,000 dashes": (GOOD + "data:\n  " + "- " * 10_000 + "a", "more than 20 lists and mappings"),
    "10,000 keys of keys": (GOOD + "? " * 10_000, "more than 20 lists and mappings"),
    "50 MB": (GOOD + "#" * 50_000_000, "larger than 256 KiB\n  accepted: a study, which is a page of text"),
    "20,000 seeds": (GOOD + f"seeds: {list(range(20_000))}\n", "more than 10,000 values\n  accepted: fewer: a study names"),
    "2,000 seeds": (GOOD + f"seeds: {list(range(2000))}\n", "seeds are 2000\n  accepted: at most 1000 seeds"),
    "10**12 steps": (GOOD + "train: {steps: 1000000000000}\n", "train.steps = 1000000000000\n  accepted: a whole number of at most 10 digits"),
    "10**9 steps": (GOOD + "train: {steps: 1000000000}\n", "train.steps = 1000000000\n  accepted: a whole number from 1 to 10,000,000, days of training"),
    "10**12 steps as text": (GOOD + "train: {steps: 10**12}\n", "train.steps = '10**12'\n  accepted: a whole number"),
    "a number of 1,900 hex digits": (GOOD + f"train: {{steps: 0x{'f' * 1900}}}\n", "at most 10 digits"),
    "a number in base 60": (GOOD + f"train: {{learning_rate: 1{':59' * 600}.5}}\n", ":59.5'\n  accepted: a number above 0"),
    "a long text": (GOOD + f"data: {{split: {'x' * 100_000}}}\n", "one text of 100,000 characters\n  accepted: at most 2,000"),
    "2,000 unknown keys": (GOOD + "".join(f"unknown_{n}: 1\n" for n in range(2000)), "unknown_0 = 1"),
    "runs beyond count": (GOOD.replace("[small]", f"[{', '.join(f'b{n}' for n in range(60))}]") + "seeds: 1000\n", "arms come to 2 arms x 60 backbones x 1000 seeds\n  accepted: at most 100,000 runs"),
    "retries without end": (GOOD + "resources: {retries: 1000000000}\n", "resources.retries = 1000000000\n  accepted: a whole number from 0 up to 100"),
    "a million lanes": (GOOD + "resources: {lanes: 1000000}\n", "resources.lanes = 1000000\n  accepted: a whole number from 1 up to 10000"),
    "a million workers": (GOOD + "resources: {workers_per_run: 1000000}\n", "accepted: a whole number from 1 up to 10000"),
    "10**9 trials": (GOOD + "search: {space: concept, arms: [B1], trials: 1000000000, objective: {metric: dev/t2d/mrr, mode: max}, seeds: [100]}\n", "search.trials = 1000000000\n  accepted: a whole number from 1 up to 100000"),
    "an explicit tag": (GOOD + "train: {steps: !!int ''}\n", "the tag tag:yaml.org,2002:int\n  accepted: plain text"),
}  # fmt: skip


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The family's own files, which the first study that is read pays for."""
    path = tmp_path_factory.mktemp("good") / "study.yaml"
    path.write_text(GOOD)
    read_study(path)


@pytest.mark.usefixtures("imported")
@pytest.mark.parametrize("bomb", BOMBS)
def test_bombs_are_refused_within_a_second(bomb: str, tmp_path: Path) -> None:
    content, says = BOMBS[bomb]
    path = tmp_path / "study.yaml"
    path.write_text(content)
    began = time.process_time()
    with pytest.raises(StudyError) as refused:
        read_study(path)
    assert time.process_time() - began < 1
    assert says in str(refused.value)
    assert "accepted:" in str(refused.value)


def test_as_many_runs_as_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(GOOD.replace("[small]", f"[{', '.join(f'b{n}' for n in range(50))}]") + "seeds: 1000\n")
    study = read_study(path)
    assert len(study.arms) * len(study.backbones) * len(study.seeds.all) == 100_000


def test_mistakes_without_end_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(GOOD + "".join(f"k{n}: 1\nk{n}: 2\n" for n in range(500)))
    with pytest.raises(StudyError, match=f"and {500 + 1 - MISTAKES} more mistakes"):
        read_study(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "study.yaml")
    with pytest.raises(StudyError, match="no plain file"):
        read_study(tmp_path / "study.yaml")


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ('"B1\\e[31m"', "arms.B1\\x1b[31m holds the character U+001B"),
        ('"B1\\u202e"', "arms.B1\\u202e holds the character U+202E"),
        ('"\\ud800"', "arms.\\ud800 holds the character U+D800"),
        ('"two\\nlines"', "arms.two\\nlines holds the character U+000A"),
        ('" B1"', "arms. B1 is the name of an arm\n  accepted: a name: 1 to 100 characters"),
        (
            '"אב"',
            "arms.אב is the name of an arm\n  accepted: a name: 1 to 100 characters that all show, from left",
        ),
        ("x" * 101, "is the name of an arm\n  accepted: a name: 1 to 100 characters"),
        ('""', "is the name of an arm"),
    ],
)
def test_names_that_would_not_come_out_right_are_refused(written: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(GOOD.replace("  B1:", f"  {written}:"))
    with pytest.raises(StudyError) as refused:
        read_study(path)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("metric", "margin", "says"),
    [
        ("each(np/strict/extensional_gap, t2d/recall@10)", 1.5, "below 1: "),
        ("mean(np/strict/extensional_gap, t2d/recall@10)", 2.6, "below 2.5: "),
        ("mean(np/strict/extensional_gap, t2d/recall@10)", 2.4, ""),
    ],
)
def test_no_margin_is_as_wide_as_what_it_is_of(metric: str, margin: float, says: str, tmp_path: Path) -> None:
    """A gap lies between -2 and 2, recall between 0 and 1: their mean between -1 and 1.5."""
    path = tmp_path / "study.yaml"
    claim = f"metric: '{metric}', expect: equivalent, margin: {margin}"
    study = GOOD.replace("metric: t2d/recall@10, expect: better", claim)
    path.write_text(study.replace("[t2d]", "[t2d, np]"))
    if not says:
        assert read_study(path).compare[0].margin == margin
        return
    with pytest.raises(StudyError, match=f"compare\\[H1\\].margin = {margin}\n  accepted: {says}"):
        read_study(path)


def test_a_question_may_take_several_lines(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(GOOD.replace("question: Is hard better?", "question: |\n  Is hard\n  better?"))
    assert read_study(path).question == "Is hard better?"
