"""The SAN corpus on disk as memory-mapped columns: one file of sentences, and one for each set."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from corpora.san.records import AlignedSet
from corpora.san.sentences import Sentences
from corpora.san.shards import set_id
from corpora.store.arrow_files import mapped_columns, write_columns
from corpora.store.columns import Texts
from corpora.store.errors import CorpusError

SENTENCES, SET, ABOUT = "sentences.arrow", "set.arrow", "about.json"
# A prompted encoder reads its vector at the mask token, so no negative may hold one.
RESERVED = ("[MASK]", "<mask>")


class SentenceFile(NamedTuple):
    texts: Texts
    entailed: Texts | None
    contradicted: Texts | None


class SetFile(NamedTuple):
    aligned: AlignedSet
    soft: Texts
    negator: str


def write_sentences(folder: Path, sentences: Sentences) -> None:
    given = {"text": sentences.texts, "entailed": sentences.entailed, "contradicted": sentences.contradicted}
    columns = {name: _strings(texts) for name, texts in given.items() if texts is not None}
    write_columns(folder / SENTENCES, columns)


def read_sentences(folder: Path) -> SentenceFile:
    columns = {name: Texts(column) for name, column in mapped_columns(folder / SENTENCES).items()}
    return SentenceFile(columns["text"], columns.get("entailed"), columns.get("contradicted"))


def write_set(folder: Path, manifest: Mapping[str, Any], tables: Iterable[pa.Table]) -> None:
    """The rows of a set (generate.SCHEMA) as one file. CorpusError when a text holds a reserved token."""
    whole = pa.concat_tables(tables).combine_chunks()
    for name in ("san", "earlier", "soft"):
        for token in RESERVED:
            bad = pc.match_substring(whole[name], token)
            if pc.any(bad).as_py():
                row = pc.index(bad, True).as_py()
                raise CorpusError(
                    f"corpora: row {row} of the set holds {token}: {whole[name][row].as_py()!r}\n"
                    "  accepted: sentences without the mask tokens of encoders"
                )
    iterations = int(manifest["recipe"]["iterations"])
    masked = pc.list_flatten(whole["n_masked"]).combine_chunks()
    columns = {name: whole[name].combine_chunks() for name in ("san", "earlier", "soft", "kept", "flags")}
    columns |= {f"masked_{i}": masked.take(pa.array(range(i, len(masked), iterations))) for i in range(iterations)}
    write_columns(folder / SET, columns)
    about = {"generator": manifest["generator"], "negator": manifest["negator"], "id": set_id(manifest)}
    (folder / ABOUT).write_text(json.dumps(about | {"iterations": iterations}))


def read_set(folder: Path) -> SetFile:
    about = json.loads((folder / ABOUT).read_text())
    columns = mapped_columns(folder / SET)
    aligned = AlignedSet(
        last=Texts(columns["san"]),
        earlier=Texts(columns["earlier"]),
        flags=columns["flags"].to_numpy(),
        kept=columns["kept"].to_numpy(),
        masked=tuple(columns[f"masked_{i}"].to_numpy() for i in range(about["iterations"])),
        generator=about["generator"],
        id=about["id"],
    )
    return SetFile(aligned, Texts(columns["soft"]), about["negator"])


def _strings(texts: list[str]) -> pa.Array:
    return pa.array(texts, pa.large_string())
