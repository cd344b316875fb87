"""Training in bf16 on a card, as autocast computes it there: what of a step depends on it, on the pretended card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from orchestration.lanes.lane import execute
from orchestration.study.run import Job, Run, Trained
from semray.testing.contract import world
from semray.testing.outcomes import outcome
from tests.card_autocast import POLICIES, copied
from tests.orchestration.families.test_contract import made

on_card = pytest.mark.skipif(
    not world().device.startswith("card"), reason="of the pretended card: tests.pretend_card"
)
ROUNDING = 2.0**-8  # of a number near 1, by bf16's eight binary digits
# refused, or its own; the last is in a build of torch with CUDA alone
OF_CUDA = {"binary_cross_entropy", "cudnn_convolution", "cudnn_convolution_transpose", "_cudnn_rnn"}


@dataclass(frozen=True)
class Arm:
    """An arm of a case of the contract. moves: how far its loss moves at most where all cosines, or outputs of a
    head, move by 1. halved: training copies the weights of all linear layers, and leaves autocast none to copy."""

    case: str
    moves: float
    settings: Mapping[str, Any] = field(default_factory=dict)
    halved: bool = True


# A cross-entropy moves by twice as much as its logits, which are cosines over a temperature
SAN = 2 / 0.05
CONCEPT = (1 + 1 + 0.7) * 2 / 0.05 + 0.5 / 0.05  # of three views, and of the negatives' binary one
MIXED = {"hard_negatives": True, "layers": 2}
ARMS = {
    "concept, gated": Arm("concept", CONCEPT, {**MIXED, "readout": "gated"}, halved=False),  # its gate is not
    "concept, weighted": Arm("concept", CONCEPT, {**MIXED, "readout": "weighted"}),
    "san": Arm("san/simcse+san", SAN),
    "san, in parts": Arm("san/simcse+san", SAN, {"micro_batch": 3}, halved=False),  # read again without copies
    "defsent": Arm("defsent/bert", 2 * 32 * 0.2),  # logits of 32 numbers by weights of about .2
    "cale": Arm("cale", 2),  # ½ d², d ≤ 2
}


def losses(run: Run, precision: Any) -> list[float]:
    return [point.loss for point in outcome(execute(Job(runs=(run,)), world(precision=precision))).curve]


def losses_of_stack(runs: Sequence[Run], precision: Any) -> list[list[float]]:
    stack = tuple(replace(run, stacked=True) for run in runs)
    done = [one for one in execute(Job(runs=stack), world(precision=precision)) if isinstance(one, Trained)]
    return [[point.loss for point in one.curve] for one in done]


@on_card
@pytest.mark.parametrize("name", ARMS)
def test_a_training_is_the_one_in_float32_but_for_rounding(name: str, tmp_path: Path) -> None:
    arm = ARMS[name]
    with made(arm.case, tmp_path) as small:
        run = small.run("plain")
        run = replace(run, settings={**run.settings, **arm.settings})
        whole = losses(replace(run, tasks={}), "fp32")
        copied.clear()
        half = losses(run, "bf16")
    assert half != whole
    assert half == pytest.approx(whole, rel=0, abs=arm.moves * ROUNDING)
    assert bool(copied) != arm.halved, f"autocast copied {len(copied)} weights by itself"


@on_card
def test_a_stack_trains_each_run_as_it_trains_alone(tmp_path: Path) -> None:
    """It adds up in another order, and leaves the softmax of attention in float32, which one alone has in bf16."""
    with made("san/simcse+san", tmp_path) as small:
        alone = [replace(run, tasks={}) for run in (small.run("plain"), small.run("fast", 4))]
        whole, half = losses_of_stack(alone, "fp32"), losses_of_stack(alone, "bf16")
        for run, one, other in zip(alone, half, whole, strict=True):
            assert one != other
            assert one == pytest.approx(losses(run, "bf16"), rel=0, abs=SAN * ROUNDING)


def test_autocast_has_a_policy_for_each_operation_that_cuda_has_one_for() -> None:
    held = " ".join(POLICIES.values()).split()
    cuda = torch._C._dispatch_get_registrations_for_dispatch_key("AutocastCUDA")
    assert sorted(held) == sorted({name.removeprefix("aten::") for name in cuda} - OF_CUDA)
