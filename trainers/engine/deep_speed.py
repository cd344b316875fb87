"""Imports DeepSpeed without its warnings and without MLflow.

DeepSpeed's autotuner, which is not used here, imports MLflow if that is installed: 1.5 s of CPU and 136 MB for
every process that trains (DeepSpeed 0.19, MLflow 3.17, one core of an EPYC).
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


@contextmanager
def quiet() -> Iterator[None]:
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


with quiet(), _absent("mlflow"):
    import deepspeed
    import deepspeed.ops
    from deepspeed.accelerator import real_accelerator
    from deepspeed.utils import logger


def prepared() -> ModuleType:
    """Return DeepSpeed, set to log errors only and to compile nothing.

    It takes the device from the environment (DS_ACCELERATOR) again, even if an earlier run or another package's
    import chose one: DeepSpeed by itself picks a GPU wherever there is one.
    We use none of its compiled ops. Yet its initialisation would compile one on a CPU, which takes long, or fails
    without a compiler; and its check of which ops it could compile prints on stdout what is missing.
    """
    logger.setLevel(logging.ERROR)
    deepspeed.ops.__compatible_ops__ = {}
    real_accelerator.ds_accelerator = None
    return deepspeed
