"""The claims that a study declared before its first run: written once, so that later ones are exploratory."""

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
from orchestration.ledger.seal import is_foreign
from orchestration.ledger.storage import Storage
from orchestration.study.run import canonical

FOLDER = ".declared"
REMEDY = "the file as it was written before the first run; put it back from a copy"


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """The claims that a study declared first. digest: their SHA-256. declared_at: ISO 8601 in UTC."""

    study: str
    claims: tuple[Mapping[str, Any], ...]
    digest: str
    declared_at: str


def declare(storage: Storage, study: str, claims: Sequence[Mapping[str, Any]]) -> Declaration:
    """Record the claims, unless the study has recorded claims already; return the recorded ones."""
    with suppress(FileExistsError):
        storage.create(_place(study), _content(study, claims))
    return _recorded(storage, study)


def redeclare(storage: Storage, study: str, claims: Sequence[Mapping[str, Any]]) -> Declaration:
    """Replace the recorded claims. The caller ensures that no result on a changed claim was seen."""
    storage.write(_place(study), _content(study, claims))
    return _recorded(storage, study)


def _content(study: str, claims: Sequence[Mapping[str, Any]]) -> bytes:
    text = canonical(list(claims))
    body = {"claims": json.loads(text), "digest": hashlib.sha256(text).hexdigest(), "declared_at": now()}
    return sealed(body, _place(study))


def _recorded(storage: Storage, study: str) -> Declaration:
    first = declared(storage, study)
    assert first is not None
    return first


def declared(storage: Storage, study: str) -> Declaration | None:
    """The claims that a study declared first; None before its first run. LedgerError if they were altered."""
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
    """A claim from its JSON form. Checks it, so that a damaged file is reported when it is read."""
    claim = dict(written)
    if not isinstance(claim.get("says", {}), dict):
        raise ValueError("a claim's says is no object")
    if not _are_seeds(claim.get("seeds", [])):
        raise ValueError("a claim's seeds are neither a list of numbers nor {start, max}")
    return claim


def _are_seeds(written: Any) -> bool:
    numbers = [written.get("start"), written.get("max")] if isinstance(written, dict) else written
    return isinstance(numbers, list) and all(type(number) is int for number in numbers)


def studies(storage: Storage) -> list[str]:
    """The studies with claims in the ledger, which may be damaged."""
    names = sorted(name for name in storage.children(FOLDER) if name.endswith(".json") and not is_foreign(name))
    return [unquote(name.removesuffix(".json")) for name in names]


def every(storage: Storage) -> Iterator[Declaration]:
    """The first claims of all studies; files that were altered are left out."""

    def intact(study: str) -> Declaration | None:
        with suppress(LedgerError):
            return declared(storage, study)
        return None

    found = in_parallel(intact, studies(storage), storage.at_once)
    return (declaration for declaration in found if declaration is not None)


def _place(study: str) -> str:
    return f"{FOLDER}/{quote(study, safe='')}.json"
