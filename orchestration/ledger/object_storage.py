"""A ledger in an object store, through fsspec, with few requests: each takes some 30 ms, and there is no rename.

    .entries/<run id>/<entry>     a pointer: JSON with the place of an entry's files, and their number
    .staging/<entry>.<attempt>    the pointer of a staged result; with the suffix `.part` while files are uploaded
    .results/<entry>.<attempt>.<hex>/   the files, uploaded once and never moved

Creating a pointer, one request, is the commit, and the pointers are the only index, so that commits and index
cannot disagree. Old ledgers hold an entry's files in `<entry>/`, which is complete once it holds `MARKER`. Such
ledgers, and entries that a person copied there, are still read and added to.
"""

from __future__ import annotations

import json
import secrets
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from glob import has_magic
from pathlib import Path
from typing import Any, TypeVar

from orchestration.ledger.away import Answering
from orchestration.study.errors import StudyError
from orchestration.study.run import run_of

MARKER = "result.json"  # a folder without a pointer is whole when it holds this
PART = ".part"  # suffix of a folder that is still being written
ENTRIES = ".entries"
RESULTS = ".results"
AT_ONCE = 32  # requests of one call
ONE_BY_ONE = 50  # up to so many runs are looked up one by one; for more, all are listed, 1,000 to a request
TAKEN = 412  # HTTP status of an exclusive upload to an existing name
CONFLICT = 409  # the same in some stores; in others, another upload to the name is in progress and may fail
CONFLICT_SECONDS = (0.1, 0.5, 2.0)  # waits before an upload in conflict is tried again
LISTED_SECONDS = (0.2, 1.0, 3.0)  # waits before a folder is listed again: some stores list new files late
NO_NAMES = {"", ".", ".."}  # path components that are ignored: markers of folders, and ways out of the folder
GONE = ".gone"  # in a folder of results whose files are being deleted

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class _Pointer:
    """The place of a folder's files, and their number."""

    place: str
    files: int

    def written(self) -> bytes:
        return json.dumps(asdict(self)).encode()


class ObjectStorage:
    """An object store through fsspec. It must refuse a second exclusive upload of one name, as S3 does."""

    at_once = AT_ONCE

    def __init__(self, filesystem: Any, root: str) -> None:
        self.url, self.root = filesystem.unstrip_protocol(root), root
        self.filesystem: Any = Answering(filesystem, self.url)
        self._places: dict[str, str] = {}  # entry -> the place of its files, when last looked up

    # Files

    def read(self, name: str) -> bytes:
        """The file's content, fetched in one part, as several would need a request for the size first."""
        return self.filesystem.cat_file(f"{self.root}/{self._located(name)}", max_concurrency=1)

    def write(self, name: str, content: bytes, *, durable: bool = True) -> None:
        self.filesystem.pipe_file(f"{self.root}/{self._located(name)}", content)

    def create(self, name: str, content: bytes, *, durable: bool = True) -> None:
        for wait in (*CONFLICT_SECONDS, None):
            try:
                self.filesystem.pipe_file(f"{self.root}/{name}", content, mode="create")
                return
            except FileExistsError:
                raise
            except Exception as error:
                status = _status(error)
                if status == TAKEN or (status == CONFLICT and self.filesystem.exists(f"{self.root}/{name}")):
                    raise FileExistsError(f"{self.url}/{name}") from error
                if status != CONFLICT or wait is None:
                    raise
            time.sleep(wait)

    def unlink(self, name: str) -> None:
        self._delete_one(f"{self.root}/{name}")

    def children(self, name: str) -> list[str]:
        return sorted({path.partition("/")[0] for path in self._below(name)})

    # Folders

    def entries(self) -> set[str]:
        pointed = (path.rpartition("/")[2] for path in self._below(ENTRIES))
        return {*pointed, *self._former()}

    def held(self, entries: Collection[str]) -> set[str]:
        """Those of these names that are taken. Takes two requests for one run; for more, one for each that the
        ledger holds, and one per 1,000 listed."""
        wanted = set(entries)
        runs = {run_of(entry) for entry in wanted}
        if len(runs) == 1:
            found = {path.removesuffix(f"/{MARKER}") for path in self._beginning(*runs)}
        else:
            found = self._marked(wanted & self._folders(""))
        if len(runs) > ONE_BY_ONE:
            runs &= self._folders(ENTRIES)
        for names in in_parallel(lambda run: self._below(f"{ENTRIES}/{run}"), runs):
            found.update(names)
        return found & wanted

    def is_whole(self, name: str) -> bool:
        pointer = self._pointer(name)
        if pointer is not None:
            self._places[name] = pointer.place
            return True
        self._places.pop(name, None)
        return self._is_marked(name)

    def taken(self, name: str) -> bool:
        return self.is_whole(name)

    def place(self, name: str) -> str:
        return f"{self.url}/{self._located(f'{name}/')}".rstrip("/")

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="semray-") as folder:
            yield Path(folder)
            self._upload(Path(folder), name)

    @contextmanager
    def staging(self, name: str) -> Iterator[Path]:
        """As `writing`; a `.part` pointer is written first, so that the files of a lane that dies can be found."""
        with tempfile.TemporaryDirectory(prefix="semray-") as folder:
            yield Path(folder)
            place = f"{RESULTS}/{name.rpartition('/')[2]}.{secrets.token_hex(4)}"
            self.write(f"{name}{PART}", _Pointer(place, 0).written())
            self.write(name, _Pointer(place, self._upload(Path(folder), place)).written())
            self.unlink(f"{name}{PART}")

    def publish(self, staged: str, final: str) -> bool:
        """The first to create the pointer decides which staged folder becomes `final`."""
        pointer = self._pointer(staged)
        if pointer is None and self._is_marked(staged):  # in an old ledger
            pointer = self._copied(staged)
        if pointer is None:
            if self.is_whole(final):  # another driver took this one for dead, and published it
                return False
            raise FileNotFoundError(f"{self.url}/{staged}")
        if not self._holds_all(pointer):
            return False  # its lane was taken for dead, and its first files were deleted
        while True:
            try:
                self.create(_key(final), pointer.written())
                winner: _Pointer | None = pointer
            except FileExistsError:
                winner = self._pointer(final)
            if winner is None:  # the entry was just moved away
                continue
            if winner != pointer:
                return False
            if not self._holds_all(pointer):  # another driver began to discard it meanwhile
                self.unlink(_key(final))
                return False
            self.unlink(staged)
            return True

    def discard(self, staged: str, final: str) -> None:
        """Delete a staged folder, unless it was published as `final`, as by a driver that died right afterwards.

        Another driver may be publishing it at the same time. Each side writes first and checks afterwards, so that
        one sees the other: `publish` an extra file, this method the pointer.
        """
        pointer = self._pointer(staged)
        if pointer is not None:
            self.write(f"{pointer.place}/{GONE}", b"")
            known = self._pointer(final)
            if known is not None and known.place == pointer.place:
                self.unlink(f"{pointer.place}/{GONE}")
            else:
                self._delete(pointer.place)
        self.unlink(staged)
        self._delete(staged)  # what an old ledger held there

    def move(self, name: str, to: str) -> None:
        if (pointer := self._pointer(name)) is not None:
            self.write(to, pointer.written())
            self.unlink(_key(name))
            return
        self._copy(name, to)
        for left in (f".commits/{name}", f"{name}/{MARKER}"):  # in this order, a crash can be repeated
            self.unlink(left)
        self._delete(name)

    def remove(self, name: str) -> None:
        if "/" not in name and (pointer := self._pointer(name)) is not None:
            self.unlink(_key(name))
            self._delete(pointer.place)
        self._delete(self._located(name))

    def size(self, name: str) -> int:
        return sum(self._sizes(self._located(name)).values())

    def local(self, name: str, cache: Path) -> Path | None:
        place = self._located(name if "/" in name else f"{name}/").rstrip("/")
        files = [file for file in self._below(place) if NO_NAMES.isdisjoint(file.split("/"))]

        def get(file: str) -> None:
            (cache / name / file).parent.mkdir(parents=True, exist_ok=True)
            self.filesystem.get_file(f"{self.root}/{place}/{file}", str(cache / name / file))

        in_parallel(get, files)
        return cache / name if files else None

    # Details

    def _pointer(self, name: str) -> _Pointer | None:
        try:
            fields = json.loads(self.filesystem.cat_file(f"{self.root}/{_key(name)}", max_concurrency=1))
            return _Pointer(_result(fields["place"]), int(fields["files"]))
        except (FileNotFoundError, IsADirectoryError):  # there may be an old entry's folder
            return None
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise StudyError(
                f"{self.url}/{_key(name)}: it points to no entry ({error})\n"
                f"  accepted: the file as semray wrote it; put it back from a copy, or delete it: what it pointed "
                f"to is computed again"
            ) from None

    def _holds_all(self, pointer: _Pointer) -> bool:
        """False if a folder of results lacks files, as one that a driver has begun to discard."""
        for wait in (*LISTED_SECONDS, None):
            files = self._below(pointer.place)
            if GONE in files or len(files) == pointer.files or wait is None:
                break
            time.sleep(wait)
        return GONE not in files and len(files) == pointer.files

    def _located(self, name: str) -> str:
        """The place of a file or folder within an entry; other names are returned unchanged."""
        entry, inner, rest = name.partition("/")
        if entry.startswith(".") or not inner:
            return name
        if entry not in self._places:
            self.is_whole(entry)
        return f"{self._places.get(entry, entry)}/{rest}"

    def _is_marked(self, name: str) -> bool:
        return MARKER in self._below(name)

    def _former(self) -> set[str]:
        """The entries stored in the old layout."""
        found = {name for name in self._folders("") if not name.startswith(".")}
        if len(found) <= ONE_BY_ONE:
            return self._marked(found)
        listed = in_parallel(self._beginning, {name[0] for name in found})
        return {path.removesuffix(f"/{MARKER}") for paths in listed for path in paths}

    def _marked(self, folders: Collection[str]) -> set[str]:
        """Those of these folders that are complete in the old layout."""
        names = list(folders)
        return {name for name, whole in zip(names, in_parallel(self._is_marked, names), strict=True) if whole}

    def _beginning(self, begin: str) -> list[str]:
        """The paths of the markers of folders below the root whose names begin with `begin`."""
        found = self.filesystem.find(self.root, prefix=begin)
        paths = (path[len(self.root) + 1 :] for path in found)
        return [p for p in paths if p.startswith(begin) and p.endswith(f"/{MARKER}") and p.count("/") == 1]

    def _folders(self, name: str) -> set[str]:
        """The names directly in a folder, which may hold thousands."""
        with suppress(FileNotFoundError):
            paths = self.filesystem.ls(f"{self.root}/{name}".rstrip("/"), detail=False)
            return {path.rstrip("/").rpartition("/")[2] for path in paths}
        return set()

    def _below(self, name: str) -> list[str]:
        return list(self._sizes(name))

    def _sizes(self, name: str) -> dict[str, int]:
        """All files below a folder: path in the folder -> bytes.

        Listing by prefix takes one request per thousand files, and one for an empty folder; listing by the
        folder's name would also look it up as a file if it is empty.
        """
        if not name:
            found = self.filesystem.find(self.root, detail=True)
        else:
            parent, _, last = f"{self.root}/{name}".rpartition("/")
            found = self.filesystem.find(parent, prefix=f"{last}/", detail=True)
        start = f"{self.root}/{name}/" if name else f"{self.root}/"
        return {path[len(start) :]: int(info["size"]) for path, info in found.items() if path.startswith(start)}

    def _upload(self, folder: Path, name: str) -> int:
        """Upload all files of a local folder, `MARKER` last, and return their number."""
        files = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]

        def put(file: str) -> None:
            self.filesystem.put_file(f"{folder}/{file}", f"{self.root}/{name}/{file}")

        in_parallel(put, [file for file in files if file != MARKER])
        if MARKER in files:
            put(MARKER)
        return len(files)

    def _copied(self, staged: str) -> _Pointer:
        """Copy a folder that was staged in the old layout to RESULTS; return its pointer."""
        place = f"{RESULTS}/{staged.rpartition('/')[2]}.{secrets.token_hex(4)}"
        return _Pointer(place, self._copy(staged, place))

    def _copy(self, name: str, to: str) -> int:
        files = self._below(name)
        if not files:
            raise FileNotFoundError(f"{self.url}/{name}")
        for file in sorted(files, key=lambda file: (file == MARKER, file)):
            self.filesystem.cp_file(f"{self.root}/{name}/{file}", f"{self.root}/{to}/{file}")
        return len(files)

    def _delete(self, name: str) -> None:
        """Delete all files of a folder, 1,000 a request; names that fsspec takes for patterns one by one."""
        paths = [f"{self.root}/{name}/{file}" for file in self._below(name)]
        if plain := [path for path in paths if not has_magic(path)]:
            with suppress(FileNotFoundError):
                self.filesystem.rm(plain)
        in_parallel(self._delete_one, [path for path in paths if has_magic(path)])

    def _delete_one(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self.filesystem.rm_file(path)


def in_parallel(act: Callable[[T], R], items: Iterable[T], at_once: int = AT_ONCE) -> list[R]:
    """Apply `act` to the items in up to `at_once` threads; return the results in order."""
    items = list(items)
    if min(len(items), at_once) < 2:
        return [act(item) for item in items]
    with ThreadPoolExecutor(min(len(items), at_once)) as threads:
        return list(threads.map(act, items))


def _result(place: object) -> str:
    """Check that a pointer's place is a folder of results. Raises ValueError if not, as it might be deleted."""
    folder, _, result = str(place).partition("/")
    if folder != RESULTS or not result or "/" in result or result.startswith("."):
        raise ValueError(f"{place!r} is no folder of results")
    return f"{folder}/{result}"


def _key(name: str) -> str:
    """The path of a folder's pointer; the pointers of one run's entries share a folder."""
    return name if name.startswith(".") else f"{ENTRIES}/{run_of(name)}/{name}"


def _status(error: BaseException | None) -> int | None:
    """The HTTP status in an error or its causes, under any of the attributes in use; None if there is none."""
    while error is not None:
        response = getattr(error, "response", None)
        found = response.get("ResponseMetadata", {}).get("HTTPStatusCode") if isinstance(response, dict) else None
        for status in (found, getattr(error, "status_code", None), getattr(error, "code", None)):
            with suppress(TypeError, ValueError):
                return int(str(status))
        error = error.__cause__
    return None
