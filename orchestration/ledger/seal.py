"""The seal of an entry: a digest of every file that its run left, so that no figure of it changes unseen.

    seal.json      {"result.json": "<sha256>", "scores.parquet": "<sha256>", "model/model.safetensors":
    "<sha256>", …}

It is checked whenever a file is used. Whoever can write the ledger can write the seal as well: what no one can
forge is the digest of a passport that was published (docs/report.md).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

SEAL = "seal.json"
BLOCK = 1 << 20


def write_seal(folder: Path) -> None:
    """Seal all files of a folder as they are now."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    digests = {path.relative_to(folder).as_posix(): digest_of_file(path) for path in files}
    (folder / SEAL).write_bytes(as_seal(digests))


def as_seal(digests: Mapping[str, str]) -> bytes:
    return (json.dumps(digests, indent=1) + "\n").encode()


def read_seal(content: bytes) -> dict[str, str]:
    """File -> digest. ValueError for what is no seal."""
    found = json.loads(content)
    if not isinstance(found, dict) or not all(isinstance(digest, str) for digest in found.values()):
        raise ValueError("it maps no files to digests")
    return found


def digest_of_file(path: Path) -> str:
    """SHA-256 of a file of any size."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def broken_in(folder: Path, seal: Mapping[str, str], below: str = "", apart: str = "") -> str | None:
    """Why a folder is not as it was sealed, in words: a file missing, added or changed; None when it is.

    below: look at the sealed files with this beginning alone, which lie in `folder` without it. apart: a file that
    no seal can hold.
    """
    sealed = {name.removeprefix(below): digest for name, digest in seal.items() if name.startswith(below)}
    held = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if not path.is_dir()}
    held.pop(apart, None)
    for name in sorted(sealed.keys() | held.keys()):
        if name not in held:
            return f"{below}{name} is missing"
        if name not in sealed:
            return f"{below}{name} is not of the run"
        if held[name].is_symlink() or not held[name].is_file():
            return f"{below}{name} is no plain file"
        if digest_of_file(held[name]) != sealed[name]:
            return f"{below}{name} is not as the run wrote it"
    return None
