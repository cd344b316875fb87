"""Reads the files of one entry and checks each against the seal and for its form."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pyarrow as pa

from corpora.store.rows import object_of
from orchestration.ledger.columns import DecodedColumns, OtherColumns
from orchestration.ledger.notes import LedgerError
from orchestration.ledger.seal import CHANGED, SEAL, read_seal
from orchestration.study.names import printable
from orchestration.study.run import run_of

Read = Callable[[str], bytes]  # file name within the entry -> content; FileNotFoundError


def as_json(content: bytes) -> Any:
    return STRICT.decode(content.decode(json.detect_encoding(content), "surrogatepass"))


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


STRICT = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=object_of)

as_env = lru_cache(maxsize=64)(as_json)  # runs of one machine have equal env.json files, parsed once


@dataclass(frozen=True, kw_only=True)
class Files:
    """The files of one entry, each checked against the entry's seal when it is read.

    columns: the cache of decoded columns, shared with other entries.
    """

    entry: str
    url: str
    raw: Read
    seal: Mapping[str, str] | None = None
    columns: DecodedColumns = field(default_factory=DecodedColumns)

    @staticmethod
    def of(entry: str, url: str, raw: Read, columns: DecodedColumns) -> Files:
        """Read the entry's seal, if it has one; readers decide if it may be missing. LedgerError for a bad one."""
        seal = None
        try:
            seal = read_seal(raw(SEAL))
        except FileNotFoundError:
            pass
        except (ValueError, RecursionError, OSError) as error:
            plain = Files(entry=entry, url=url, raw=raw)
            raise plain.damaged(SEAL, f"it is no seal ({error})") from None
        return Files(entry=entry, url=url, raw=raw, seal=seal, columns=columns)

    @property
    def run_id(self) -> str:
        return run_of(self.entry)

    def read(self, file: str) -> bytes:
        """A file's content. Raises LedgerError if it is missing, no file, or not as it was sealed."""
        try:
            content = self.raw(file)
        except FileNotFoundError:
            raise self.damaged(file, "it is missing") from None
        except OSError as error:
            raise self.damaged(file, f"it cannot be read ({error.strerror or error})") from None
        if self.seal is not None and hashlib.sha256(content).hexdigest() != self.seal.get(file):
            raise self.damaged(file, CHANGED)
        return content

    def json(self, file: str, read: Callable[[bytes], Any] = as_json) -> dict[str, Any]:
        """The JSON object in a file of the entry."""
        try:
            content = read(self.read(file))
        except (ValueError, RecursionError) as error:
            raise self.damaged(file, f"it is not readable as JSON ({error or type(error).__name__})") from None
        if not isinstance(content, dict):
            raise self.damaged(file, "it holds no JSON object")
        return content

    def table(self, file: str, schema: pa.Schema) -> pa.Table:
        """The table in a parquet file of the entry. Raises LedgerError if it is damaged or has other columns."""
        content = self.read(file)
        try:
            return self.columns.table(content, schema)
        except OtherColumns as error:
            raise self.damaged(file, str(error)) from None
        except (pa.ArrowException, OSError, ValueError, OverflowError, LookupError) as error:
            raise self.damaged(file, f"it is not readable as parquet ({error})") from None

    def damaged(self, file: str, why: str) -> LedgerError:
        """The error for a damaged file: names the file, its run, what is wrong, and a remedy."""
        return LedgerError(
            f"{self.url}/{printable(file)}: {printable(why)}\n"
            f"  accepted: the file as run {self.run_id} wrote it. Put it back from a copy, or move the entry "
            f"aside with `semray set-aside {self.entry}`: the next `semray run` computes it again"
        )
