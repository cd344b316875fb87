"""A set of aligned negatives on disk: a manifest, the sentences, and shards that are published whole.

    folder/manifest.json        the set's definition; a folder with another one is refused
    folder/sentences.arrow      the sentences in order
    folder/part-00017.parquet   rows 17 * SHARD to 18 * SHARD

A shard is written under another name, flushed and renamed, so a killed process leaves only a draft. Shards without
a file are pending.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from corpora.store.arrow_files import mapped_columns, write_columns
from corpora.store.cache import MANIFEST, key_of
from corpora.store.columns import Texts
from corpora.store.durable import publish
from corpora.store.errors import CorpusError

SCHEMA_VERSION = 1
SHARD = 20_000  # sentences
SENTENCES = "sentences.arrow"


def begin(folder: Path, manifest: Mapping[str, Any], texts: list[str]) -> None:
    """Create the folder of a set, or go on with an existing one. CorpusError if it holds another set.

    manifest: all that can change a row; this adds the number of rows and the schema's version.
    """
    content = json.loads(json.dumps({**manifest, "rows": len(texts), "schema": SCHEMA_VERSION}))
    if (folder / MANIFEST).exists():
        found = read_manifest(folder)
        different = [
            name for name in sorted(content.keys() | found.keys()) if content.get(name) != found.get(name)
        ]
        if different:
            name = different[0]
            raise CorpusError(
                f"corpora: {folder} holds another set of negatives: {name} = {found.get(name)!r}, "
                f"asked for {content.get(name)!r}\n  accepted: the settings it was begun with, or another folder"
            )
        return
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{SENTENCES}.{os.getpid()}"
    write_columns(draft, {"text": pa.array(texts, pa.large_string())})
    publish(draft, folder / SENTENCES)
    draft = folder / f".{MANIFEST}.{os.getpid()}"
    draft.write_text(json.dumps(content, indent=1))
    publish(draft, folder / MANIFEST)


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a set. CorpusError if the folder holds no set, or one of an unknown version."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
        version = manifest["schema"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CorpusError(
            f"corpora: {folder} holds no set of negatives ({type(error).__name__}: {error})\n"
            "  accepted: a folder that `semray san-generate --out` wrote"
        ) from error
    if version != SCHEMA_VERSION:
        raise CorpusError(f"corpora: {folder}: schema = {version!r}\n  accepted: {SCHEMA_VERSION}")
    return manifest


def set_id(manifest: Mapping[str, Any]) -> str:
    """A hash of everything that can change a row: sha256 of the manifest without the fields that `begin` adds."""
    return key_of({name: value for name, value in manifest.items() if name not in ("rows", "schema")})


def shards_of(manifest: Mapping[str, Any]) -> int:
    return -(-manifest["rows"] // SHARD)


def rows_in(manifest: Mapping[str, Any], shard: int) -> int:
    return min(SHARD, manifest["rows"] - shard * SHARD)


def path_of(folder: Path, shard: int) -> Path:
    return folder / f"part-{shard:05d}.parquet"


def pending(folder: Path) -> list[int]:
    """The shards without a file yet, in order."""
    every = range(shards_of(read_manifest(folder)))
    return [shard for shard in every if not path_of(folder, shard).exists()]


def every_sentence(folder: Path) -> Texts:
    """The sentences of all shards, as a view of the mapped file."""
    return Texts(mapped_columns(folder / SENTENCES)["text"])


def sentences_of(folder: Path, shard: int) -> list[str]:
    """The sentences of a shard; its rows count from shard * SHARD."""
    return every_sentence(folder)[shard * SHARD : (shard + 1) * SHARD]


def write_shard(folder: Path, shard: int, table: pa.Table) -> None:
    """Publish a shard's rows. Two processes with the same shard write the same bytes."""
    draft = folder / f".part-{shard:05d}.{os.uname().nodename}.{os.getpid()}"
    pq.write_table(table, draft, compression="zstd")
    publish(draft, path_of(folder, shard))


def read(folder: Path) -> Iterator[pa.Table]:
    """The rows of every shard, in order. CorpusError when one is missing or has too few or many rows."""
    manifest = read_manifest(folder)
    missing = pending(folder)
    if missing:
        raise CorpusError(
            f"corpora: {folder} lacks {len(missing)} of {shards_of(manifest)} shards, "
            f"the first {path_of(folder, missing[0]).name}\n"
            "  to finish it: the same `semray san-generate` again"
        )
    for shard in range(shards_of(manifest)):
        table = pq.read_table(path_of(folder, shard))
        expected = rows_in(manifest, shard)
        if len(table) != expected:
            raise CorpusError(f"corpora: {path_of(folder, shard)} has {len(table)} rows, expected {expected}")
        yield table
