"""For all tests: a property has no deadline, since a busy machine is no mistake; pytest ends what hangs.

What tests import stays to the end, and every collection of garbage would look through it: a run collects twice, a third
of a second each once torch, transformers and Ray are there. So it is set aside: when all files are there, when fixtures
and tests have imported much since, and after a file.
"""

import gc
import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Ray gives its workers way to everything else on the machine: beside tests of another process, lanes would starve.
os.environ.setdefault("RAY_worker_niceness", "0")
# Four processes share two cores: threads of one that wait for each other, turning, take the cores from the others. Said
# before anything that computes is imported, for commands that tests start too; half the time of what trains and scores.
os.environ["OMP_NUM_THREADS"] = "1"

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
gc.disable()  # until all is imported
MUCH = 100  # modules
set_aside = 0  # of modules, those that were there then


def _set_aside() -> None:
    global set_aside
    gc.freeze()
    set_aside = len(sys.modules)


def pytest_collection_finish() -> None:
    _set_aside()
    gc.enable()


def pytest_runtest_call() -> None:
    if len(sys.modules) > set_aside + MUCH:
        gc.collect()
        _set_aside()


@pytest.fixture(scope="module", autouse=True)
def _what_a_file_imported() -> Iterator[None]:
    yield
    gc.collect()
    _set_aside()
