"""DeepSpeed as a run needs it, imported without remarks and without MLflow.

Its autotuner, of which nothing here has use, imports MLflow where that is installed: 1.5 s of CPU and 136 MB for
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
    """No remarks on compilers that nothing here needs, nor on what DeepSpeed uses of torch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _absent(name: str) -> Iterator[None]:
    """Let a package seem not to be installed, unless it was imported before."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]  # what the import system takes for absent
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
    """DeepSpeed, silent but for errors, and told to compile nothing.

    It runs on the device that the environment tells (DS_ACCELERATOR), whatever it ran on before, or took for its
    own when another package imported it: a GPU, wherever there is one.
    None of its compiled ops is for us, yet initialising would compile one on a CPU: 50 s, or a failure without a
    compiler. To find out which it could compile, it asks compilers and GPUs and prints what they lack on stdout.
    """
    logger.setLevel(logging.ERROR)
    deepspeed.ops.__compatible_ops__ = {}
    real_accelerator.ds_accelerator = None
    return deepspeed
