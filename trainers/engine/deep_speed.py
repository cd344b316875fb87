"""DeepSpeed: its import without warnings and without MLflow, and its engine around a model.

DeepSpeed's autotuner, which is not used here, imports MLflow if that is installed: 1.5 s of CPU and 136 MB for
every process that trains (DeepSpeed 0.19, MLflow 3.17, one core of an EPYC).
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from trainers.engine.shortage import reporting_state_shortage
from trainers.engine.world import World

if TYPE_CHECKING:
    from deepspeed import DeepSpeedEngine


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide DeepSpeed's warnings about missing compilers and about torch functions that it uses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _absent(name: str) -> Iterator[None]:
    """Make a package look as if it were not installed, unless it was imported before."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]  # the import system reads None as absent
    try:
        yield
    finally:
        del sys.modules[name]


with _quiet(), _absent("mlflow"):
    import deepspeed
    import deepspeed.ops
    from deepspeed.accelerator import real_accelerator
    from deepspeed.utils import logger


def prepare() -> None:
    """Set DeepSpeed to log errors only and to compile nothing.

    It takes the device from the environment (DS_ACCELERATOR) again, even if an earlier run or another package's
    import chose one: DeepSpeed by itself picks a GPU wherever there is one.
    We use none of its compiled ops. Yet its initialisation would compile one on a CPU, which takes long, or fails
    without a compiler; and its check of which ops it could compile prints on stdout what is missing.
    """
    logger.setLevel(logging.ERROR)
    deepspeed.ops.__compatible_ops__ = {}
    real_accelerator.ds_accelerator = None


@contextmanager
def engine_of(
    model: nn.Module, optimizer: Optimizer, scheduler: LRScheduler, clip_norm: float, world: World
) -> Iterator[DeepSpeedEngine]:
    """Yield a DeepSpeed engine around the model, and destroy it afterwards: many runs share one process.

    Afterwards every rank has the whole model, without gradients.
    """
    prepare()
    with _restoring_linear():
        with _quiet(), reporting_state_shortage(world.seat):
            engine, *_ = deepspeed.initialize(
                model=model, optimizer=optimizer, lr_scheduler=scheduler, config=_configuration(clip_norm, world)
            )
        if world.size == 1 and world.zero_stage == 0:
            engine.enable_backward_allreduce = False  # one worker averages with nobody: saves copying gradients
        if not world.zero_stage:  # DeepSpeed's zero_grad searches all modules for trained parameters
            engine.zero_grad = optimizer.zero_grad
        try:
            yield engine
            if world.zero_stage == 3:
                _gather_parameters(model, engine)
        finally:
            engine.destroy()
            optimizer.state.clear()  # the engine is a reference cycle, freed late; its largest part is freed here
            model.zero_grad(set_to_none=True)


@contextmanager
def _restoring_linear() -> Iterator[None]:
    """Put torch's linear function back afterwards: ZeRO 3 replaces it for the whole process and leaves it so.

    DeepSpeed's function rounds otherwise, which would change later trainings and scores in this process.
    """
    torchs_linear = torch.nn.functional.linear
    try:
        yield
    finally:
        torch.nn.functional.linear = torchs_linear


def _gather_parameters(model: nn.Module, engine: DeepSpeedEngine) -> None:
    """Give every rank all parameters of a model that ZeRO 3 had partitioned, and remove DeepSpeed's hooks.

    Every rank must call it. The model is then an ordinary module that any rank can evaluate and save alone.
    """
    from deepspeed.runtime.zero import GatheredParameters

    engine.optimizer.parameter_offload._remove_module_hooks()
    parameters = list(model.parameters())
    with GatheredParameters(parameters):
        whole = [parameter.detach().clone() for parameter in parameters]
    for parameter, values in zip(parameters, whole, strict=True):  # in place: other objects may refer to it
        parameter.data = values
        vars(parameter).clear()  # DeepSpeed's attributes, by which it would be partitioned again


def _configuration(clip_norm: float, world: World) -> dict[str, Any]:
    """DeepSpeed's configuration. bf16 means autocast over float32 weights, which are the master copy.

    Not DeepSpeed's bf16 engine, which copies weights and gradients between formats and is slower for it.
    """
    return {
        "train_micro_batch_size_per_gpu": 1,  # bookkeeping only: batches come from us
        # without ZeRO `clip` does it: DeepSpeed's clipping waits for the GPU
        "gradient_clipping": clip_norm if world.zero_stage else 0.0,
        "timers": {"throughput": {"enabled": False}},  # they would wait for the GPU twice a step
        "steps_per_print": 10**9,
        "zero_allow_untested_optimizer": True,
        "zero_optimization": {"stage": world.zero_stage},
        "torch_autocast": {"enabled": world.precision == "bf16", "dtype": "bfloat16"},
    }


def pickled_classes() -> list[type]:
    """DeepSpeed's classes that its checkpoints contain (ZeRO 1 and above)."""
    from deepspeed.runtime.fp16.loss_scaler import DynamicLossScaler, LossScaler
    from deepspeed.runtime.zero.config import ZeroStageEnum
    from deepspeed.utils.tensor_fragment import fragment_address

    # Python before 3.11.4 writes a member of an enumeration as a call of getattr, which no safe load accepts
    ZeroStageEnum.__reduce_ex__ = lambda member, protocol: (ZeroStageEnum, (member.value,))
    return [LossScaler, DynamicLossScaler, ZeroStageEnum, fragment_address]
