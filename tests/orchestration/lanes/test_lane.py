"""Which errors of a run are certain to come back, and what of them is recorded."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corpora.store.errors import CorpusError
from orchestration.lanes.lane import Problem, problem
from orchestration.study.errors import StudyError
from trainers.concept.settings import Settings
from trainers.encoders.backbones import BackboneError, resolve_backbone


def raised(error: Exception) -> None:
    raise error


def met(act: Callable[[], Any]) -> Problem:
    with pytest.raises(Exception) as caught:  # noqa: PT011  the cases below name the errors
        act()
    return problem(caught.value)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Settings(temperature=0.0), "ValueError: train.temperature = 0.0\n  accepted: a number above 0"),
        (lambda: raised(CorpusError("x\n  accepted: y")), "CorpusError: x\n  accepted: y"),
        (lambda: raised(StudyError("x\n  accepted: y")), "StudyError: x\n  accepted: y"),
    ],
)
def test_what_a_person_must_change_is_final_and_told_whole(act: Callable[[], Any], message: str) -> None:
    found = met(act)
    assert (found.message, found.final) == (message, True)
    assert "Traceback" in found.traceback


def test_a_backbone_that_is_not_there_is_final(tmp_path: Path) -> None:
    found = met(lambda: resolve_backbone(str(tmp_path / "nothing")))
    assert found.final
    assert found.message.startswith("BackboneError: ")
    assert "no such folder" in found.message


def test_an_error_for_people_keeps_its_lines() -> None:
    assert met(lambda: raised(BackboneError("not found\n  accepted: a folder"))).message.count("\n") == 1


@pytest.mark.parametrize(
    "act",
    [
        lambda: json.loads("{"),
        lambda: raised(ValueError("of a library\nmore")),
        lambda: raised(RuntimeError("out of memory\nmore")),
    ],
)
def test_other_errors_may_pass(act: Callable[[], Any]) -> None:
    found = met(act)
    assert not found.final
    assert "\n" not in found.message
