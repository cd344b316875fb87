"""For all tests: a property has no deadline, since a busy machine is no mistake; pytest ends what hangs."""

import os

from hypothesis import settings

# Ray gives its workers way to everything else on the machine: beside tests of another process, lanes would starve.
os.environ.setdefault("RAY_worker_niceness", "0")

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
