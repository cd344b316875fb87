"""The seal of an entry: a digest of every file that its run wrote, so that any change shows.

    seal.json      {"result.json": "<sha256>", "scores.parquet": "<sha256>", "model/model.safetensors":
    "<sha256>", …}

It is checked whenever a file is used. Whoever can write the ledger can write the seal as well: what no one can
forge is the digest of a passport that was published (docs/report.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from corpora.store.cache import digest_of
from corpora.store.rows import object_of
from orchestration.ledger.storage import TEMPORARY
from orchestration.study.names import NAME_BYTES, is_path_component

SEAL = "seal.json"
LEFT = ("Thumbs.db", "desktop.ini", TEMPORARY)
CHANGED = "it is not as the run wrote it: its digest is not the sealed one"


def write_seal(folder: Path) -> None:
    """Seal all files of a folder as they are now, but foreign ones. ValueError for a name that no seal holds."""
    files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    digests = {name: digest_of(path) for name, path in files.items() if not is_foreign(name)}
    if wrong := [name for name in digests if not _is_file_name(name)]:
        raise ValueError(
            f"{wrong[0]!r}: a run has left a file of this name\n"
            f"  accepted: printable names of up to {NAME_BYTES} bytes, with no blank at an end"
        )
    (folder / SEAL).write_bytes(as_seal(digests))


def as_seal(digests: Mapping[str, str]) -> bytes:
    return (json.dumps(digests, indent=1) + "\n").encode()


def read_seal(content: bytes) -> dict[str, str]:
    """File -> digest. ValueError for what is no seal."""
    found = json.loads(content, object_pairs_hook=object_of)
    if not isinstance(found, dict) or not all(isinstance(digest, str) for digest in found.values()):
        raise ValueError("it maps no files to digests")
    if wrong := [name for name in found if not _is_file_name(name)]:
        raise ValueError(f"{wrong[0]!r} is no file of an entry")
    return found


@lru_cache(maxsize=1024)  # entries have files of the same names
def _is_file_name(name: str) -> bool:
    return all(map(is_path_component, name.split("/")))


def is_foreign(name: str) -> bool:
    """Whether a file is one that systems or killed writers leave behind (.DS_Store, .nfs…) and no run."""
    return any(part.startswith(".") for part in name.split("/")) or name.endswith(LEFT)


def broken_in(
    folder: Path, seal: Mapping[str, str], below: str = "", apart: tuple[str, ...] = ()
) -> tuple[str, str] | None:
    """The first file that is not as it was sealed, and why: missing, added or changed; None when all are.

    below: look at the sealed files with this beginning alone, which lie in `folder` without it. apart: beginnings
    of what no seal holds. Files that systems leave behind are nobody's.
    """
    sealed = {name.removeprefix(below): digest for name, digest in seal.items() if name.startswith(below)}
    found = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    held = {path.relative_to(folder).as_posix(): path for path in found}
    strange = {name for name in held.keys() - sealed.keys() if not (name.startswith(apart) or is_foreign(name))}
    for name in sorted(sealed.keys() | strange):
        if name in strange:
            return f"{below}{name}", "it is not of the run"
        if name not in held:
            return f"{below}{name}", "it is missing, or no plain file"
        if held[name].is_symlink() or not held[name].is_file():
            return f"{below}{name}", "it is no plain file"
        if digest_of(held[name]) != sealed[name]:
            return f"{below}{name}", CHANGED
    return None
