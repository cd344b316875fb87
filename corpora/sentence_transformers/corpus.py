"""Rows of texts in columns: from the field's benchmarks, from files, and from data sets in the hub's form."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from corpora.benchmarks import sts
from corpora.benchmarks.pairs import text_key
from corpora.san import sentences
from corpora.sentence_transformers.data import FILES, GRADED, KNOWN, TRIPLETS, RecipeData, TrainingSet
from corpora.sentence_transformers.files import Row, rows_of_file
from corpora.sources.texts import cell_as_text, is_text, keyed
from corpora.store.errors import CorpusError, first_line
from corpora.store.hub import HubSet, hub_rows, was_saved
from corpora.store.places import first_of, named_path
from corpora.store.rows import number_of

Labelled = tuple[tuple[str, ...], Any]  # the texts of a row, and its label or None
Part = Literal["test", "dev", "train"]
PARTS: tuple[Part, ...] = ("test", "dev", "train")  # no part has a text of an earlier one
HELD = PARTS[:2]
FILES_SHOWN = 8  # in the error for a folder that is no data set


@dataclass(frozen=True)
class Columns:
    """texts: name -> N texts, in the order in which the loss takes them. labels: N similarities or classes, or
    None."""

    texts: Mapping[str, Sequence[str]]
    labels: Sequence[float] | None = None

    def __len__(self) -> int:
        return len(next(iter(self.texts.values())))


@dataclass(frozen=True)
class RecipeCorpus:
    """sets: name -> training rows, without sets that are wholly held out. guides: name -> encoder for a loss.
    fingerprint: a hash of all training rows and the guides' weights. Row counts by set: left_out, not trained on
    as one of their texts is held out; held, by held-out part; beyond, not in its `sample`."""

    sets: Mapping[str, Columns]
    guides: Mapping[str, str]
    fingerprint: str
    left_out: Mapping[str, int] = field(default_factory=dict)
    held: Mapping[str, Mapping[Part, int]] = field(default_factory=dict)
    beyond: Mapping[str, int] = field(default_factory=dict)


def load(data: RecipeData, weights: Sequence[str]) -> RecipeCorpus:
    """Read all sets. weights: fingerprints of the guides' weights. CorpusError for missing or broken data."""
    parts, left_out = _all_parts(data)
    sets = {name: _sampled(name, one, parts[name]["train"]) for name, one in data.datasets.items() if one.trains}
    digest = hashlib.sha256(repr((*zip(data.guides, weights, strict=True),)).encode())
    for name, columns in sets.items():
        for part in (name, dict(columns.texts), columns.labels):
            digest.update(repr(part).encode())
    held = {name: {part: len(found[part]) for part in HELD} for name, found in parts.items()}
    beyond = {name: len(parts[name]["train"]) - len(columns) for name, columns in sets.items()}
    return RecipeCorpus(sets, data.guides, digest.hexdigest(), left_out, held, beyond)


def held_out(data: RecipeData, name: str, part: Part) -> Columns:
    """The rows of a set that are held out from training. CorpusError for fewer than two, and for labels that are
    all the same, with which nothing correlates."""
    one, rows = data.datasets[name], _all_parts(data)[0][name][part]
    if len(rows) < 2:
        raise CorpusError(
            f"data.datasets.{name}.hold.{part}: {one.source} leaves {len(rows)} rows for it\n"
            f"  accepted: a larger share, or `by` a column with more values than {one.key} has"
        )
    columns = _columns(one, rows)
    if columns.labels is not None and len(set(columns.labels)) == 1:
        raise CorpusError(
            f"data.datasets.{name}.hold.{part}: all {len(rows)} rows that {one.source} leaves for it have the same"
            f" {one.labelled}\n  accepted: rows of two labels or more, which a cosine can follow or not"
        )
    return columns


Sets = Mapping[str, Mapping[Part, list[Labelled]]]


def _all_parts(data: RecipeData) -> tuple[Sets, Mapping[str, int]]:
    """The parts of every set, and how many of its rows are not trained on as one of their texts is held out.

    Test, dev and training rows share no text, over all sets.
    """
    sets = tuple((name, one, _stamp_of(name, one, data.path)) for name, one in data.datasets.items())
    return _cached_parts(sets, data.path)


@lru_cache(maxsize=2)
def _cached_parts(
    sets: Sequence[tuple[str, TrainingSet, object]], path: str | None
) -> tuple[Sets, Mapping[str, int]]:
    """As `_all_parts`, cached. sets: each with its stamp, so that only what has changed is read again."""
    parts = {name: _parts_of(name, one, path) for name, one, _ in sets}
    if not any(one.hold for _, one, _ in sets):
        return parts, {}
    before = {name: len(found["train"]) for name, found in parts.items()}
    held: set[str] = set()
    for part in PARTS:
        for found in parts.values() if held else ():
            found[part] = [row for row in found[part] if held.isdisjoint(map(text_key, row[0]))]
        if part in HELD:
            held |= {text_key(text) for found in parts.values() for row in found[part] for text in row[0]}
    return parts, {name: before[name] - len(found["train"]) for name, found in parts.items()}


def _stamp_of(name: str, one: TrainingSet, path: str | None) -> tuple[tuple[Path, int, int], ...]:
    """As `_stamp`. CorpusError for a folder that this user may not enter, though its files may be listed."""
    try:
        return _stamp(name, one, path)
    except PermissionError as error:
        raise CorpusError(
            f"data.datasets.{name}.source = {one.source}: {Path(error.filename).parent} may not be entered "
            f"({error.strerror})\n  accepted: a file or folder that you may read, in folders that you may enter"
        ) from None


def _stamp(name: str, one: TrainingSet, path: str | None) -> tuple[tuple[Path, int, int], ...]:
    """Time and size of a source's files, which change with it; none of a benchmark's, or of what the hub has."""
    if one.source in KNOWN:
        return ()
    place = named_path(one.source)
    found = place if place.is_file() or _is_set_here(name, place, path) else _folder_named(place, path)
    below = [] if found is None else [found, *sorted(found.rglob("*"))]
    files = [(file.absolute(), file.stat()) for file in below if file.is_file()]
    return tuple((file, state.st_mtime_ns, state.st_size) for file, state in files)


def _folder_named(folder: Path, path: str | None) -> Path | None:
    """The folder that a data set of this name has under data.path or $SEMRAY_DATA."""
    return first_of((str(folder), folder.name), path, Path.is_dir)[0]


def _parts_of(name: str, one: TrainingSet, path: str | None) -> dict[Part, list[Labelled]]:
    """All rows of a set by part. name: its name in the study, for messages."""
    parts: dict[Part, list[Labelled]] = {part: [] for part in PARTS}
    for number, row in enumerate(_rows(name, one, path), 1):
        checked = _checked(name, one, number, row)
        parts[_part_of(one, row)].append(checked)
    if not any(parts.values()):
        raise CorpusError(f"data.datasets.{name}: {one.source} holds no row")
    return parts


def _part_of(one: TrainingSet, row: Row) -> Part:
    """The part of a row, by its key alone: rows added to a file change no other row's part."""
    if one.hold is None:
        return "train"
    place = keyed("hold", text_key(str(row[one.key]))) / 2**64
    return "test" if place < one.hold.test else "dev" if place < one.hold.test + one.hold.dev else "train"


def _sampled(name: str, one: TrainingSet, rows: Sequence[Labelled]) -> Columns:
    if not rows:
        raise CorpusError(
            f"data.datasets.{name}: {one.source} leaves no row to train on: each holds a text that is held out\n"
            "  accepted: a smaller share, or `by` the column whose texts repeat"
        )
    if one.sample is not None and one.sample < len(rows):
        rows = sorted(rows, key=lambda row: keyed(0, *row[0]))[: one.sample]
    return _columns(one, rows)


def _columns(one: TrainingSet, rows: Sequence[Labelled]) -> Columns:
    texts = {column: [row[0][place] for row in rows] for place, column in enumerate(one.texts)}
    return Columns(texts, None if one.labelled is None else [row[1] for row in rows])


def _checked(name: str, one: TrainingSet, number: int, row: Row) -> Labelled:
    where = f"data.datasets.{name}: {one.source}, row {number}:"
    texts = tuple(row[column] for column in one.texts)
    for column, text in zip(one.texts, texts, strict=True):
        if not is_text(text) or not text.strip():
            raise CorpusError(f"{where} {column} = {text!r}\n  accepted: a text")
    if one.hold is not None and not cell_as_text(row[one.key]):
        raise CorpusError(
            f"{where} {one.key} = {row[one.key]!r}\n"
            "  accepted: a value in every row, as rows of one value stay together"
        )
    if one.labelled is None:
        return texts, None
    given = row[one.labelled]
    try:
        label = number_of(given) if isinstance(given, str) else float(given)
    except (TypeError, ValueError, OverflowError):
        label = float("nan")
    if label != label or abs(label) == float("inf"):
        raise CorpusError(f"{where} {one.labelled} = {given!r}\n  accepted: a number")
    return texts, label / one.largest


def _rows(name: str, one: TrainingSet, path: str | None) -> Iterator[Row]:
    if one.source in GRADED:
        for pairs in sts.read(one.source, path=path).values():
            for a, b, gold in zip(pairs.a, pairs.b, pairs.gold.tolist(), strict=True):
                yield {"sentence1": a, "sentence2": b, "score": gold / sts.LARGEST}
    elif one.source in TRIPLETS:
        read = sentences.read(one.source, path=path)
        for anchor, positive, negative in zip(
            read.texts, read.entailed or (), read.contradicted or (), strict=True
        ):
            yield {"anchor": anchor, "positive": positive, "negative": negative}
    elif one.source.endswith(FILES):
        yield from _file(name, one)
    elif named_path(one.source).is_file():
        raise CorpusError(f"data.datasets.{name}.source = {one.source}\n  accepted: a file as {', '.join(FILES)}")
    else:
        folder = named_path(one.source)
        asked = HubSet(str(folder), one.split, one.read, one.config)
        rows, remarks = hub_rows(asked, "." if _is_set_here(name, folder, path) else path)
        if rows is None:
            looked = "".join(f"\n    {remark}" for remark in remarks)
            raise CorpusError(
                f"data.datasets.{name}: {one.source} not found; looked at{looked}\n  to get it: {asked.command}"
            )
        yield from rows


def _is_set_here(name: str, folder: Path, path: str | None) -> bool:
    """Whether a source is a data set's folder, relative to where semray starts, and not a name on the hub.

    CorpusError for another folder here, as the hub would be asked for its name; absolute paths are no names.
    """
    if not folder.is_dir() or folder.is_absolute():
        return folder.is_dir()
    if folder.name not in ("", "..") and _folder_named(folder, path):
        return False
    if not was_saved(folder):
        files = sorted(str(file) for file in folder.iterdir() if file.name.endswith(FILES))
        accepted = f"a file in it: {', '.join(files[:FILES_SHOWN])}" if files else f"a file as {', '.join(FILES)}"
        raise CorpusError(
            f"data.datasets.{name}.source = {folder}: is a folder\n"
            f"  accepted: {accepted}; or a folder that a DatasetDict of `datasets` was saved to"
        )
    return True


def _file(name: str, one: TrainingSet) -> Iterator[Row]:
    file = named_path(one.source)
    try:
        rows = list(rows_of_file(file))
    except CorpusError as error:
        raise CorpusError(f"data.datasets.{name}: {error}") from None
    except FileNotFoundError:
        raise CorpusError(
            f"data.datasets.{name}.source = {one.source}: no such file, seen from {Path.cwd()}\n"
            "  accepted: a file that is there; paths start where semray does"
        ) from None
    except (OSError, ValueError, csv.Error) as error:
        accepted = f"a whole {file.suffix} file, text in UTF-8"
        raise CorpusError(f"data.datasets.{name}: {file}: {first_line(error)}\n  accepted: {accepted}") from None
    for row in rows:
        if lacking := [column for column in one.read if column not in row]:
            raise CorpusError(
                f"data.datasets.{name}: {file} lacks the column {lacking[0]!r}\n"
                f"  accepted: {', '.join(map(str, row))}"
            )
        yield row
