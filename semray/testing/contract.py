"""Tests that every model family must pass, on one small study whose arms differ in their learning rate."""

from __future__ import annotations

import gc
import importlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from orchestration.families.contract import Family
from orchestration.families.encoders import EncoderFamily
from orchestration.families.registry import family
from orchestration.lanes.lane import execute
from orchestration.plan.plan import gather_facts, plan, prepare
from orchestration.reading.read_study import read_study
from orchestration.study.errors import StudyError
from orchestration.study.run import Job, Run, Scored, Trained, built
from semray.testing.outcomes import RunResults, outcome
from semray.testing.tiny import tiny_backbone
from trainers.encoders.backbones import resolve_backbone
from trainers.engine.world import Stopped, World

VANISHING = (1e-30, 2e-30, 3e-30)  # learning rates too small to change an fp32 weight
HEAD = """\
question: Does the family keep its word?
family: {family}
backbones: [{backbone}]
seeds: [3, 4]
"""


def world(**given: Any) -> World:
    """The world of the contract's runs: on the CPU and in fp32, or as told by SEMRAY_TEST_DEVICE, such as cuda:0,
    and SEMRAY_TEST_PRECISION."""
    usual: Any = {
        "device": os.environ.get("SEMRAY_TEST_DEVICE", "cpu"),
        "precision": os.environ.get("SEMRAY_TEST_PRECISION", "fp32"),
    }
    return World(**usual | given)


class Broken(NamedTuple):
    """A mistake in a study. written: text that occurs in it once. instead: the wrong text in its place. refused: a
    regular expression that the error message matches."""

    written: str
    instead: str
    refused: str


@dataclass(frozen=True)
class Small:
    """A family with the runs of its study, and the study's text."""

    family: Family
    place: Path
    text: str
    runs: tuple[Run, ...]

    def run(self, arm: str, seed: int | None = 3) -> Run:
        """The run of an arm at a seed. Skips the test if no setting of the family trains."""
        found = [run for run in self.runs if (run.arm, run.seed) == (arm, seed)]
        if not found and not any(run.seed is not None for run in self.runs):
            pytest.skip("no setting of this family trains")
        return found[0]

    @cached_property
    def plain(self) -> RunResults:
        """The results of `plain` at seed 3, executed once for all tests."""
        return outcome(execute(Job(runs=(self.run("plain"),)), world()))


@contextmanager
def prepared(
    name: str, study: str, write: Callable[[Path], object], place: Path, backbone: str = "tiny"
) -> Iterator[Small]:
    """Prepare a family's study in a folder, with a corpus cache in it. PLACE in `study` stands for the folder.

    write: puts the study's data into the folder. backbone: a folder in it; "tiny" is created.
    """
    text = (HEAD.format(family=name, backbone=place / backbone) + study).replace("PLACE", str(place))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEMRAY_CACHE", str(place / "cache"))
        patch.delenv("SEMRAY_DATA", raising=False)
        write(place)
        tiny_backbone(place / "tiny")
        (place / "study.yaml").write_text(text)
        study_of_it = read_study(place / "study.yaml")
        runs = plan(study_of_it, gather_facts(study_of_it)).runs
        prepare(study_of_it)
        for module in family(name).imports:
            importlib.import_module(module)
        gc.collect()
        gc.freeze()  # as in a lane; else each run's collections would go through all of torch
        yield Small(family(name), place, text, runs)


def at_rate(run: Run, rate: float) -> Run:
    """The run at another learning rate, which is a setting or stands in settings that are mappings."""
    own, changed = run.settings, {"learning_rate": rate}
    nested = {name: {**value, **changed} for name, value in own.items() if isinstance(value, Mapping)}
    return replace(run, settings={**own, **(changed if "learning_rate" in own else nested)})


def saved(trained: Trained | None, folder: Path) -> Path:
    """Save the model of a trained run into a folder; returns the folder."""
    assert trained is not None
    assert trained.save_model is not None
    folder.mkdir(exist_ok=True)
    trained.save_model(folder)
    return folder


class FamilyContract:
    """Tests of one family. A subclass names it and writes its study, from `data:` on.

    study: its untrained arm is `still`; `plain` and `fast` differ in their learning_rate alone, which is 1.0e-3
    for `fast`; an optional arm `more` is `plain` with another term of the loss. PLACE stands for the test's
    folder, which `write` fills. broken: a mistake in the study; by default a learning rate below 0.
    """

    family = ""
    study = ""
    broken = Broken("1.0e-3", "-1.0e-3", r"learning_rate = -1\.0e-3\n  accepted: .*above 0")

    def broken_in(self, small: Small) -> Broken:
        """The mistake that a test puts into this study."""
        return self.broken

    def write(self, place: Path) -> None:
        """Put the study's data into a folder."""

    @pytest.fixture(scope="class")
    @classmethod
    def small(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Small]:
        """The family's study, prepared once for all tests."""
        with prepared(cls.family, cls.study, cls().write, tmp_path_factory.mktemp("family")) as small:
            yield small

    def test_it_has_all_that_is_asked_of_a_family(self, small: Small) -> None:
        asked = {name for name in vars(Family) if not name.startswith("_")}
        assert {name for name in asked if not hasattr(small.family, name)} == set()

    def test_a_plan_tells_what_becomes_of_the_rows(self, small: Small) -> None:
        """The corpus is built by now."""
        row_counts = small.family.rows(built(small.family.data, small.run("plain").data))
        assert row_counts is not None
        assert all(rows.train > 0 for rows in row_counts)

    @pytest.mark.parametrize("arm", ["still", "plain"])
    def test_an_arm_s_encoder_has_a_reader_of_every_kind_that_it_is_said_to_read(
        self, small: Small, tmp_path: Path, arm: str
    ) -> None:
        if not isinstance(small.family, EncoderFamily):
            pytest.skip("what this family trains is scored by its own run body, no encoder")
        run = small.run(arm, None if arm == "still" else 3)
        settings, folder = built(small.family.settings, run.settings), resolve_backbone(run.backbone)
        if arm == "plain":
            folder = saved(small.plain.trained, tmp_path)
        encoder = small.family.trainer().read(settings, folder, world())
        assert set(small.family.reads(settings)) <= set(encoder.readers)

    def test_one_seed_gives_the_same_bits_twice_and_another_seed_others(
        self, small: Small, tmp_path: Path
    ) -> None:
        first = small.plain
        again, other = (outcome(execute(Job(runs=(small.run("plain", seed),)), world())) for seed in (3, 4))
        assert first.values == again.values
        assert [(p.step, p.loss, p.terms) for p in first.curve] == [(p.step, p.loss, p.terms) for p in again.curve]
        assert [point.loss for point in first.curve] != [point.loss for point in other.curve]
        one, two = (saved(of.trained, tmp_path / name) for of, name in ((first, "one"), (again, "two")))
        weights = [path.relative_to(one) for path in one.rglob("*.safetensors")]
        assert weights
        assert all((one / name).read_bytes() == (two / name).read_bytes() for name in weights)

    def test_arms_of_one_seed_see_the_same_batches_dropout_and_beginning(self, small: Small) -> None:
        """At rates too small to change a weight all arms have the same shared losses; at their own they differ
        after the first step. A GPU rounds products of other sizes otherwise, hence the tolerance there."""
        rounding = 1e-5 if world().device.startswith("cuda") else 0.0
        plain, fast = small.plain, outcome(execute(Job(runs=(small.run("fast"),)), world()))
        assert plain.curve[0].loss == fast.curve[0].loss
        assert plain.curve[-1].loss != fast.curve[-1].loss
        arms = [arm for arm in ("plain", "fast", "more") if any(run.arm == arm for run in small.runs)]
        still = [
            outcome(execute(Job(runs=(at_rate(small.run(arm), rate),)), world())).curve
            for arm, rate in zip(arms, VANISHING, strict=False)
        ]
        for steps in zip(*still, strict=True):
            terms = [step.terms or {"loss": step.loss} for step in steps]
            shared = set.intersection(*map(set, terms))
            assert shared
            for name in shared:
                first, *others = (one[name] for one in terms)
                assert others == pytest.approx([first] * len(others), rel=rounding, abs=0), (
                    f"step {steps[0].step}: {name}"
                )

    def test_a_run_that_was_stopped_goes_on_to_the_same_result(self, small: Small, tmp_path: Path) -> None:
        run, asked = small.run("plain"), count()
        if small.family.stacked:
            pytest.skip("a stack is trained in one go: what is missing of it is done again")
        stopped = world(scratch=tmp_path, checkpoint_every=1, stopping=lambda: next(asked) == 1)
        with pytest.raises(Stopped):
            list(execute(Job(runs=(run,)), stopped))
        resumed = outcome(execute(Job(runs=(run,)), world(scratch=tmp_path, checkpoint_every=1)))
        assert resumed.values == small.plain.values

    def test_a_stack_trains_each_run_as_it_trains_alone(self, small: Small) -> None:
        """A stacked run has the losses of the run alone, apart from the rounding of sums."""
        if small.family.shape is None:
            pytest.skip("runs of this family train one by one")
        alone = [replace(run, tasks={}) for run in (small.run("plain"), small.run("fast", 4))]
        assert len({small.family.shape(built(small.family.settings, run.settings)) for run in alone}) == 1
        stack = tuple(replace(run, stacked=True) for run in alone)
        for one, run in zip(execute(Job(runs=stack), world()), alone, strict=True):
            own = outcome(execute(Job(runs=(run,)), world()))
            assert isinstance(one, Trained)
            assert [p.loss for p in one.curve] == pytest.approx([p.loss for p in own.curve], rel=1e-4)

    def test_a_saved_model_scores_as_it_did_and_is_not_trained_again(self, small: Small, tmp_path: Path) -> None:
        run, first = small.run("plain"), small.plain
        saved(first.trained, tmp_path)
        again = outcome(execute(Job(runs=(run,), models={run.id: tmp_path}), world()))
        assert again.trained is None
        assert again.values == pytest.approx(first.values, abs=1e-7, nan_ok=True)

    def test_what_is_saved_opens_as_its_card_says(self, small: Small, tmp_path: Path) -> None:
        saved(small.plain.trained, tmp_path)
        names: dict[str, Any] = {}
        exec(small.family.opened_by(tmp_path).replace("FOLDER", str(tmp_path)), names)
        assert np.isfinite(names["scores"] if "scores" in names else names["vectors"]).all()

    def test_an_arm_without_training_is_scored_like_all_others(self, small: Small) -> None:
        run = small.run("still", None)
        results = list(execute(Job(runs=(run,)), world()))
        assert isinstance(results[0], Trained)
        assert (results[0].save_model, tuple(results[0].curve)) == (None, ())
        assert [one.task for one in results[1:] if isinstance(one, Scored)] == list(run.tasks)

    def test_a_task_is_scored_alone_as_it_is_in_company(self, small: Small) -> None:
        run = small.run("still", None)
        together = outcome(execute(Job(runs=(run,)), world())).values
        for name in run.tasks:
            alone = replace(run, tasks={name: run.tasks[name]})
            assert alone.id == run.id
            found = outcome(execute(Job(runs=(alone,)), world())).values
            assert {metric: together[metric] for metric in found} == pytest.approx(found, nan_ok=True)

    def test_a_broken_setting_is_refused_by_field_and_value(self, small: Small) -> None:
        written, instead, refused = self.broken_in(small)
        assert small.text.count(written) == 1, f"{written} is to stand once in the study"
        (small.place / "broken.yaml").write_text(small.text.replace(written, instead))
        with pytest.raises(StudyError, match=refused) as error:
            read_study(small.place / "broken.yaml")
        assert "broken.yaml" in str(error.value)
