"""What a study claimed before its first run started: written once, so that later claims show as exploratory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from orchestration.ledger.notes import LedgerError, damaged, now, read_note, sealed, whole
from orchestration.ledger.object_storage import in_parallel
from orchestration.ledger.storage import Storage
from orchestration.study.run import canonical

REMEDY = "the file as it was written before the first run; put it back from a copy"


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """The first claims of a study.

    digest is their SHA-256 and declared_at the time, ISO 8601 in UTC.
    """

    study: str
    claims: tuple[Mapping[str, Any], ...]
    digest: str
    declared_at: str


def declare(storage: Storage, study: str, claims: Sequence[Mapping[str, Any]]) -> Declaration:
    """Write the claims down unless the study has some already; either way give those that came first."""
    with suppress(FileExistsError):
        storage.create(_place(study), _content(study, claims))
    return _standing(storage, study)


def redeclare(storage: Storage, study: str, claims: Sequence[Mapping[str, Any]]) -> Declaration:
    """Write the claims down over the first ones: for whoever knows that nothing of what changes was seen."""
    storage.write(_place(study), _content(study, claims))
    return _standing(storage, study)


def _content(study: str, claims: Sequence[Mapping[str, Any]]) -> bytes:
    text = canonical(list(claims))
    body = {"claims": json.loads(text), "digest": hashlib.sha256(text).hexdigest(), "declared_at": now()}
    return sealed(body, _place(study))


def _standing(storage: Storage, study: str) -> Declaration:
    first = declared(storage, study)
    assert first is not None
    return first


def declared(storage: Storage, study: str) -> Declaration | None:
    """The first claims of a study; None before its first run. Raises LedgerError when they were altered since."""
    place = _place(study)
    try:
        body = read_note(storage, place, REMEDY)
    except FileNotFoundError:
        return None
    with whole(storage, place, REMEDY):
        claims, digest, declared_at = body["claims"], body["digest"], body["declared_at"]
        intact = hashlib.sha256(canonical(claims)).hexdigest() == digest and isinstance(declared_at, str)
        found = tuple(_claim(claim) for claim in claims)
    if not intact:
        raise damaged(storage, place, "the declared claims were altered", REMEDY)
    return Declaration(study=study, claims=found, digest=digest, declared_at=declared_at)


def _claim(written: Mapping[str, Any]) -> dict[str, Any]:
    """One claim; what is none fails here, and not where it is used."""
    claim = dict(written)
    if not isinstance(claim.get("says", {}), dict):
        raise ValueError("a claim's says is no object")
    if not _are_seeds(claim.get("seeds", [])):
        raise ValueError("a claim's seeds are neither a list of numbers nor {start, max}")
    return claim


def _are_seeds(written: Any) -> bool:
    numbers = [written.get("start"), written.get("max")] if isinstance(written, dict) else written
    return isinstance(numbers, list) and all(type(number) is int for number in numbers)


def every(storage: Storage) -> Iterator[Declaration]:
    """The first claims of all studies; those that were altered since are left out."""

    def intact(name: str) -> Declaration | None:
        with suppress(LedgerError):
            return declared(storage, unquote(name.removesuffix(".json")))
        return None

    found = in_parallel(intact, sorted(storage.children(".declared")), storage.at_once)
    return (one for one in found if one is not None)


def _place(study: str) -> str:
    return f".declared/{quote(study, safe='')}.json"
