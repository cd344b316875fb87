"""Reads every note of a ledger beside its entries, to find those that are damaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from urllib.parse import unquote

from orchestration.ledger import budgets, claims, drivers, failures, repeats
from orchestration.ledger.away import StoreAway
from orchestration.ledger.notes import is_of_a_run
from orchestration.ledger.points import Points
from orchestration.ledger.seal import is_foreign
from orchestration.ledger.storage import Storage
from orchestration.study.errors import StudyError


def damaged_notes(storage: Storage) -> dict[str, str]:
    """The damaged notes: place -> what is wrong, and the remedy.

    Leases are left out: an unreadable one counts as nobody's, and its run is done again.
    """
    found = {}
    for place, read in _reads(storage):
        try:
            read()
        except StoreAway:
            raise
        except StudyError as error:
            found[place] = str(error)
        except OSError as error:
            found[place] = (
                f"{storage.url}/{place}: it cannot be read ({error.strerror or error})\n"
                f"  accepted: what semray wrote there; put it back from a copy, or move it out of the ledger"
            )
    return found


def notes(storage: Storage) -> list[str]:
    """The places of all notes, damaged or not, without leases."""
    return [place for place, _ in _reads(storage)]


def _reads(storage: Storage) -> Iterator[tuple[str, Callable[[], object]]]:
    """The place of each note, with a function that reads it."""
    for name in _own(storage, claims.FOLDER):
        yield f"{claims.FOLDER}/{name}", partial(claims.declared, storage, unquote(name.removesuffix(".json")))
    for folder, read_of in ((failures.FOLDER, failures.read), (repeats.FOLDER, repeats.read_one)):
        for name in _own(storage, folder):
            if not name or is_of_a_run(name):
                yield f"{folder}/{name}", partial(read_of, storage, name.removesuffix(".json"))
    for name in _own(storage, ".drivers"):
        yield f".drivers/{name}", partial(drivers.holder, storage, unquote(name))
    for name in _own(storage, ".budgets"):
        read = partial(budgets.asked, storage, unquote(name)) if name else partial(storage.children, ".budgets")
        yield f".budgets/{name}", read
    for name in _own(storage, ".searches"):
        for search in _own(storage, f".searches/{name}"):
            yield f".searches/{name}/{search}", partial(_read_all, Points(storage, unquote(name), search))


def _read_all(points: Points) -> None:
    points.suggested()
    points.stopped()
    points.outcome()
    points.confirmed()


def _own(storage: Storage, folder: str) -> list[str]:
    """The names in a folder, without files of operating systems; [""] if it is no folder: reading that fails."""
    try:
        return [name for name in storage.children(folder) if not is_foreign(name)]
    except StoreAway:
        raise
    except StudyError:
        return [""]
