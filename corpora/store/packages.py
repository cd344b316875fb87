"""Which package brings a family or a task. Apart from those, for a command line that waits for no numpy."""

from importlib.metadata import EntryPoint


def package_of(point: EntryPoint) -> str:
    """Name and version of the package that an entry point is of."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value
