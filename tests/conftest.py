"""For all tests: a property has no deadline, since a busy machine is no mistake; pytest ends what hangs."""

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
