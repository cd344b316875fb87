"""Which names belong together, where some are tied to one another in pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def tied(ties: Iterable[tuple[str, str]]) -> Callable[[str], str]:
    """A function of a name that gives two names the same answer where a chain of ties joins them."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for one, other in ties:
        parent[root(one)] = root(other)
    return root
