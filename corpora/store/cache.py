"""A cache of folders named after their sources and settings: built once, published whole, checked on every use."""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TextIO

from corpora.store.durable import as_readable_as, flush, flush_tree
from corpora.store.errors import CorpusError
from corpora.store.telling import Tell, aloud

log = logging.getLogger(__name__)
MANIFEST = "manifest.json"
POLL_SECONDS = 0.2  # how often a lock is tried that another process holds


def cache_folder() -> Path:
    """Where built corpora are kept: $SEMRAY_CACHE, else ~/.cache/semray."""
    named = os.environ.get("SEMRAY_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "semray"


def key_of(content: Mapping[str, Any]) -> str:
    """sha256 of the canonical JSON of what defines an entry."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def digest_of(path: Path) -> str:
    """sha256 of a file of any size."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_BUILDS = ContextVar("builds", default=True)


@contextmanager
def without_building() -> Iterator[None]:
    """Within the block nothing is built: a missing folder is a CorpusError. For commands that only look."""
    before = _BUILDS.set(False)
    try:
        yield
    finally:
        _BUILDS.reset(before)


def builds() -> bool:
    """Whether missing folders and files may be built or fetched here."""
    return _BUILDS.get()


def entry(name: str, key: str, build: Callable[[Path], None], tell: Tell = aloud) -> tuple[Path, dict[str, str]]:
    """The folder of this key and the sha256 of each of its files; `build(folder)` builds it if it is absent.

    Of several processes one builds and the others wait; `tell` hears how long. A folder appears under its name
    only when complete. A folder whose files differ from its manifest is renamed and built again.
    """
    shelf = cache_folder() / name
    shelf.mkdir(parents=True, exist_ok=True)
    place = shelf / key
    digests = _verified(place)
    if digests is None and not builds():
        raise CorpusError(f"{name}: not built on this machine\n  accepted: after a run that reads it")
    if digests is None:
        with _locked(shelf / f"{key}.lock", f"waiting for another process to make {name}", tell):
            digests = _verified(place)  # another process may have built it while we waited
            if digests is None:
                _set_aside(place)
                digests = _built(place, build)
    return place, digests


def _verified(place: Path) -> dict[str, str] | None:
    """The manifest, or None when the folder is absent or a file is missing, cut or changed."""
    try:
        digests = json.loads((place / MANIFEST).read_text())
        whole = all(digest_of(place / file) == digest for file, digest in digests.items())
    except (OSError, ValueError, AttributeError):
        return None
    return digests if whole else None


def _set_aside(place: Path) -> None:
    if place.exists():
        aside = place.with_name(f"{place.name}.broken-{time.time_ns()}")
        place.rename(aside)
        log.warning("corpora: %s does not match its manifest; kept as %s and built again", place, aside.name)


def _built(place: Path, build: Callable[[Path], None]) -> dict[str, str]:
    draft = place.with_name(f"{place.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)  # left by a process that died; we hold the lock
    draft.mkdir()
    try:
        build(draft)
        digests = {path.name: digest_of(path) for path in sorted(draft.iterdir())}
        (draft / MANIFEST).write_text(json.dumps(digests, indent=1))
        as_readable_as(draft)
        flush_tree(draft)
        draft.rename(place)
        flush(place.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return digests


@contextmanager
def _locked(path: Path, waiting: str, tell: Tell) -> Iterator[None]:
    """Hold a lock within the block; while another process holds it, `tell` hears these words and the seconds."""
    began = time.monotonic()
    with path.open("w") as file:  # the lock is released when the file closes, also if we die
        while not _lock(file):
            tell(f"{waiting}, {time.monotonic() - began:.0f} s")
            time.sleep(POLL_SECONDS)
        yield


def _lock(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
