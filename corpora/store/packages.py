"""The package that brings a family or a task. A module without numpy, so that the command line starts fast."""

from importlib.metadata import EntryPoint


def package_of(point: EntryPoint) -> str:
    """Name and version of an entry point's package."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value
