"""Groups names that pairs tie together."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def tied(ties: Iterable[tuple[str, str]]) -> Callable[[str], str]:
    """A function name -> group, which is the same for two names that a chain of ties joins."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for one, other in ties:
        parent[root(one)] = root(other)
    return root
