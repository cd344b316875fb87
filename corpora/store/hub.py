"""Reads data sets in the hub's form: from a local folder, the cache of `datasets`, or the hub.

    rows, remarks = hub_rows(HubSet("mteb/sts12-sts", "test", ("sentence1", "sentence2", "score")), path="data")

A local folder was saved by `datasets`, or is a copy of the hub's repository (parquet, JSON lines, CSV). Code
that comes with a data set is never run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpora.store.cache import cache_folder, digest_of
from corpora.store.errors import CorpusError, kind_and_first_line
from corpora.store.places import first_of

SECONDS = 5.0  # the hub has so long to answer


@dataclass(frozen=True)
class HubSet:
    """One split of a data set on the hub, and the columns to read."""

    name: str
    split: str
    columns: tuple[str, ...]
    config: str | None = None

    @property
    def command(self) -> str:
        """The command that fetches the data set into FOLDER."""
        return fetching(self.name, self.config, self.name.rpartition("/")[2])


def fetching(name: str, config: str | None, folder: str) -> str:
    """The command that saves a data set of the hub as this folder of FOLDER."""
    args = ", ".join(f'"{arg}"' for arg in (name, config) if arg)
    return f"python -c 'from datasets import load_dataset; load_dataset({args}).save_to_disk(\"FOLDER/{folder}\")'"


def hub_rows(hub: HubSet, path: str | None) -> tuple[list[dict[str, Any]] | None, list[str]]:
    """The rows of a split, or None if no place has it; and a remark on every place that was searched.

    CorpusError for a local folder that lacks the split or a column, or that `datasets` cannot read.
    """
    folder, remarks = first_of((hub.name, hub.name.rpartition("/")[2]), path, Path.is_dir)
    if folder is not None:
        return _rows(hub, local_splits(folder, str(folder), hub.config), str(folder)), remarks
    try:
        return _rows(hub, _fetched(hub), f"the hub's {hub.name}"), remarks
    except CorpusError:
        raise
    except Exception as error:  # noqa: BLE001 - `datasets` raises many kinds; all mean "not available here"
        return None, [*remarks, f"the hub: {hub.name}: {kind_and_first_line(error)}"]


def was_saved(folder: Path) -> bool:
    """Whether `datasets` saved the splits of a data set there."""
    return (folder / "dataset_dict.json").exists()


def local_splits(folder: Path, *asked: Any, **files: Any) -> Mapping[str, Any]:
    """The splits of a local folder that `datasets` saved, or else those of `load_dataset(*asked, **files)`.

    CorpusError if `datasets` cannot read them.
    """
    from datasets import load_dataset, load_from_disk

    try:
        if was_saved(folder):
            return load_from_disk(str(folder))
        with own_cache(folder):
            return load_dataset(*asked, **files, trust_remote_code=False)
    except Exception as error:
        why = kind_and_first_line(error.__cause__ or error)  # for broken rows only the cause names the problem
        raise CorpusError(
            f"corpora: {folder} cannot be read as a data set: {why}\n"
            "  accepted: what `save_to_disk` wrote, or parquet, JSON-lines or CSV files, named after their split,"
            " all of one kind, with the same columns, none empty"
        ) from error


@contextmanager
def own_cache(folder: Path) -> Iterator[None]:
    """A context in which `datasets` caches this local folder under a name that depends on its content.

    By default the cache depends on the folder's last name alone, and may give old rows or those of another folder.
    """
    from datasets import config

    before = config.HF_DATASETS_CACHE
    config.HF_DATASETS_CACHE = cache_folder() / "datasets" / content_of(folder)
    try:
        yield
    finally:
        config.HF_DATASETS_CACHE = before


def content_of(folder: Path) -> str:
    """sha256 over the names and contents of all files of a folder that are not hidden."""
    files = sorted(file.relative_to(folder) for file in folder.rglob("*") if file.is_file())
    shown = [file for file in files if not any(part.startswith(".") for part in file.parts)]
    named = [f"{file.as_posix()} {digest_of(folder / file)}" for file in shown]
    return hashlib.sha256("\n".join(named).encode()).hexdigest()


def _fetched(hub: HubSet) -> Mapping[str, Any]:
    """The splits from the cache of `datasets` or the hub.

    A data set that is not cached is requested once before: without network `datasets` would try for half a minute.
    """
    from datasets import config, load_dataset
    from huggingface_hub import HfApi

    if not (Path(config.HF_DATASETS_CACHE) / hub.name.replace("/", "___")).exists():
        HfApi().dataset_info(hub.name, timeout=SECONDS)
    return load_dataset(hub.name, hub.config, trust_remote_code=False)


def _rows(hub: HubSet, splits: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    if hub.split not in splits:
        raise CorpusError(f"corpora: {where} has no split {hub.split!r}; it has {_listed(splits)}")
    rows = splits[hub.split]
    for column in hub.columns:
        if column not in rows.column_names:
            raise CorpusError(f"corpora: {where} lacks the column {column!r}; it has {_listed(rows.column_names)}")
    return rows.select_columns(list(hub.columns)).to_list()


def _listed(names: Sequence[str] | Mapping[str, Any]) -> str:
    return ", ".join(sorted(names))
