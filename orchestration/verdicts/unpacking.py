"""Unpacks a stranger's passport safely: only known members, within limits, before anything is read.

Only names in the list below are written, no link is followed, and the size that a member declares is not trusted.
"""

from __future__ import annotations

import json
import re
import stat
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpora.store.rows import object_of
from orchestration.ledger.entries.layout import CURVE, ENTRY_FILES, ITEMS
from orchestration.ledger.ledger import ENTRY
from orchestration.ledger.seal import SEAL
from orchestration.study.errors import StudyError
from orchestration.study.names import cut, is_path_component, printable

MEMBERS = 100_000  # six files for each of 16,000 entries
BYTES = 2 * 2**30  # of all members, unpacked
JSON_BYTES, JSON_DEPTH = 64 * 2**20, 30
ROWS = 2_000_000  # of one table: 20 metrics over 100,000 items
TABLE_BYTES = 2**30  # of one table, and of one column of it with names repeated in every row
BLOCK = 1 << 20

HEADER = "passport.json"
FILES = (HEADER, "findings.json", "failures.json", "declared.json", "repeats.json")
_MEMBER = re.compile(rf"ledger/{ENTRY.pattern}/({'|'.join(map(re.escape, (*ENTRY_FILES, SEAL)))})")


def unpack(path: Path, folder: Path) -> Any:
    """Unpack a passport into an empty folder; returns its header. StudyError for any other file."""
    if path.exists() and not path.is_file():  # reading a pipe may wait for ever, a device has no end
        raise refused(path, "it is no plain file")
    try:
        with zipfile.ZipFile(path) as archive:
            members = _members(path, archive)
            header = _header(path, archive, members)
            left = BYTES
            for name, member in members.items():
                if name != f"{header['study']}.yaml" and name not in FILES and not _MEMBER.fullmatch(name):
                    raise refused(
                        path, f"it holds {_shortened(name)}", "the members that a passport has, and no others"
                    )
                left -= _write(path, archive, member, folder / name, left)
    except FileNotFoundError:
        raise StudyError(
            f"{path}: not found\n  accepted: a file that `semray report --passport FILE` wrote"
        ) from None
    except (zipfile.BadZipFile, NotImplementedError, OSError, RuntimeError, ValueError, EOFError) as error:
        raise refused(path, f"it cannot be unpacked ({_shortened(str(error))})") from None
    except _zlib_errors() as error:
        raise refused(path, f"it cannot be unpacked ({_shortened(str(error))})") from None
    for table in sorted(folder.glob("ledger/*/*.parquet")):
        _check_table(path, table)
    return header


def refused(path: Path, why: str, accepted: str = "") -> StudyError:
    """The message for a file that is no passport, or a damaged one."""
    wanted = accepted or "a file as `semray report --passport FILE` wrote it"
    return StudyError(f"{path}: no readable passport: {printable(why)}\n  accepted: {wanted}")


def read_json(passport: Path, file: Path) -> Any:
    """The content of a JSON member. StudyError if it is missing, not JSON or nested too deep."""
    try:
        content = json.loads(file.read_bytes(), object_pairs_hook=object_of)
    except FileNotFoundError:
        raise refused(passport, f"it lacks {file.name}") from None
    except (ValueError, RecursionError) as error:
        raise refused(passport, f"{file.name} is not JSON ({_shortened(str(error))})") from None
    if _depth(content) > JSON_DEPTH:
        raise refused(passport, f"{file.name} is nested more than {JSON_DEPTH} deep")
    return content


def _members(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    infos = archive.infolist()
    if len(infos) > MEMBERS:
        raise refused(path, f"it has {len(infos):,} members", f"at most {MEMBERS:,}")
    members: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        kind = stat.S_IFMT(info.external_attr >> 16)
        if info.is_dir() or kind not in (0, stat.S_IFREG):
            raise refused(path, f"{_shortened(info.filename)} is no plain file")
        if info.filename in members:
            raise refused(path, f"it holds {_shortened(info.filename)} twice")
        members[info.filename] = info
    if sum(info.file_size for info in infos) > BYTES:
        raise refused(
            path, f"it unpacks to more than {BYTES // 2**30} GiB", "scores and curves; models are never in it"
        )
    return members


def _header(path: Path, archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]) -> Any:
    if HEADER not in members:
        raise refused(path, f"it lacks {HEADER}")
    if members[HEADER].file_size > JSON_BYTES:
        raise refused(path, f"{HEADER} unpacks to more than {JSON_BYTES:,} bytes")
    with archive.open(members[HEADER]) as file:
        header = json.loads(file.read(JSON_BYTES), object_pairs_hook=object_of)
    if not isinstance(header, dict) or not isinstance(header.get("study"), str):
        raise refused(path, f"{HEADER} names no study")
    if not is_path_component(header["study"]):
        raise refused(path, f"study {_shortened(header['study'])} is not a name")
    return header


def _write(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, place: Path, left: int) -> int:
    """Unpack one member, block by block; returns how many bytes it has."""
    limit = min(left, JSON_BYTES) if place.suffix in (".json", ".yaml") else left
    place.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with archive.open(member) as packed, place.open("xb") as file:
        while block := packed.read(BLOCK):
            written += len(block)
            if written > limit:
                raise refused(path, f"{_shortened(member.filename)} unpacks to more than {limit:,} bytes")
            file.write(block)
    return written


def _check_table(passport: Path, table: Path) -> None:
    """Check rows and names against the limits without expanding names: a table of 1 KB can hold 10 GB of them."""
    schema, place = (ITEMS if table.name == "scores.parquet" else CURVE), f"{table.parent.name}/{table.name}"
    try:
        texts = [field.name for field in schema if not pa.types.is_primitive(field.type)]
        file = pq.ParquetFile(table, read_dictionary=texts)
        if file.schema_arrow.names != schema.names:
            raise refused(passport, f"{place} has other columns than {', '.join(schema.names)}")
        if file.metadata.num_rows > ROWS:
            raise refused(passport, f"{place} has {file.metadata.num_rows:,} rows", f"at most {ROWS:,}")
        groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
        if sum(group.total_byte_size for group in groups) > TABLE_BYTES:
            raise refused(passport, f"{place} unpacks to more than {TABLE_BYTES:,} bytes")
        for column in texts:
            if (size := _expanded_bytes(file, column)) > TABLE_BYTES:
                raise refused(passport, f"the column {column} of {place} has {size:,} bytes")
    except (pa.ArrowException, OSError, ValueError, LookupError) as error:  # LookupError: it lacks a column
        raise refused(passport, f"{place} is not readable as parquet ({_shortened(str(error))})") from None


def _expanded_bytes(file: pq.ParquetFile, column: str) -> int:
    """The bytes of a column of texts with its dictionary expanded."""
    total = 0
    for chunk in file.read(columns=[column])[column].chunks:
        if not pa.types.is_dictionary(chunk.type) or not pa.types.is_string(chunk.type.value_type):
            raise ValueError(f"{column} is no column of texts")
        lengths = pc.binary_length(chunk.dictionary)
        total += pc.sum(pc.take(lengths, chunk.indices)).as_py() or 0
    return total


def _depth(value: Any) -> int:
    """How deep lists and objects are nested; counting stops behind JSON_DEPTH."""
    depth, level = 0, [value]
    while level and depth <= JSON_DEPTH:
        inner = [one for one in level if isinstance(one, dict | list)]
        level = [child for one in inner for child in (one.values() if isinstance(one, dict) else one)]
        depth += bool(inner)
    return depth


def _zlib_errors() -> tuple[type[Exception], ...]:
    import lzma
    import zlib

    return (zlib.error, lzma.LZMAError)


def _shortened(text: str) -> str:
    return cut(printable(text), 200)
