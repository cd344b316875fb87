"""The place of a ledger: a local folder or an object store, with the few operations that are atomic on both.

A name is a path below the root, with "/" between its parts. Folders appear atomically: on a local disk by rename,
on an object store by a pointer (`object_storage`).
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Protocol

from corpora.store.durable import as_readable_as, flush, flush_tree
from corpora.store.places import named_path
from orchestration.ledger.away import StoreAway, answered, away, unreachable
from orchestration.ledger.object_storage import PART, ObjectStorage
from orchestration.ledger.silence import ANSWER_SECONDS, give_up_on_silence
from orchestration.study.errors import StudyError
from orchestration.study.patience import print_after

TEMPORARY = ".tmp"  # suffix of a file that is still being written
FEW = 100  # up to so many entries are looked up one by one; listing a folder of 100,000 takes some 0.1 s
SILENT_SECONDS = 10.0  # waiting for a store is reported after so long
CONNECTIONS = 64  # to S3, of one process; its library's default is 10


class Storage(Protocol):
    """The operations that a ledger needs. at_once: how many requests are worth making in parallel."""

    url: str
    at_once: int

    def read(self, name: str) -> bytes:
        """The content of a file. Raises FileNotFoundError if there is none, OSError if it is no plain file."""

    def write(self, name: str, content: bytes, *, durable: bool = True) -> None:
        """Write a file atomically, replacing an older one: readers see the old or the new content.

        durable: as in `create`.
        """

    def create(self, name: str, content: bytes, *, durable: bool = True) -> None:
        """Write a new file atomically; raises FileExistsError if it exists. Of many callers only one succeeds.

        durable: make it survive a power cut, which costs some milliseconds on a disk.
        """

    def unlink(self, name: str) -> None:
        """Delete a file, if it exists."""

    def children(self, name: str) -> list[str]:
        """The names directly in a folder; [] if it does not exist. Raises StudyError if it cannot be listed."""

    def entries(self) -> set[str]:
        """The complete folders directly below the root; on a disk, all other files there too.

        On an object store the number of requests grows with the number of entries.
        """

    def taken(self, name: str) -> bool:
        """True if a complete folder has this name or, on a disk, anything else."""

    def held(self, entries: Collection[str]) -> set[str]:
        """Those of these names directly below the root that are taken."""

    def is_whole(self, name: str) -> bool:
        """True if a complete folder has this name."""

    def place(self, name: str) -> str:
        """The path or URL of a complete folder's files, for messages; call `is_whole` first."""

    def writing(self, name: str) -> Any:
        """Context manager: an empty local folder to fill; on a clean exit it appears under `name`, complete."""

    def staging(self, name: str) -> Any:
        """As `writing`, for `publish`. Until it is complete, it is listed as `name` followed by `PART`."""

    def publish(self, staged: str, final: str) -> bool:
        """Move a complete folder to a free name. Return False if the name is taken, or files are gone.

        Raises FileNotFoundError if no complete folder is staged.
        """

    def discard(self, staged: str, final: str) -> None:
        """Delete a staged folder, unless it was published as `final`."""

    def move(self, name: str, to: str) -> None:
        """Rename a folder."""

    def remove(self, name: str) -> None:
        """Delete a folder, if it exists."""

    def size(self, name: str) -> int:
        """Bytes of all files in a folder; 0 if it does not exist."""

    def local(self, name: str, cache: Path) -> Path | None:
        """The folder on this machine, downloaded below `cache` if remote; None if it does not exist."""


def open_storage(url: str | Path) -> Storage:
    """Open a local path, file:// URL, or any fsspec URL (s3://bucket/ledger, memory://ledger).

    Raises StudyError for a kind of URL that is unknown or read-only, or whose package is not installed.
    """
    if "://" not in str(url):  # fsspec would take a path with :: for a chain of URLs
        return LocalStorage(named_path(url))
    if str(url).startswith(("http://", "https://")):
        raise StudyError(
            f"ledger {url}: pages are read there, and nothing is kept\n  accepted: a folder, or a URL such as "
            f"s3://bucket/ledger; the address of a store of one's own goes into AWS_ENDPOINT_URL"
        )
    import fsspec

    options: dict[str, Any] = {"use_listings_cache": False}
    if str(url).startswith("s3://"):
        given = fsspec.config.conf.get("s3", {}).get("config_kwargs", {})
        ours = {"max_pool_connections": CONNECTIONS, "read_timeout": ANSWER_SECONDS}
        options["config_kwargs"] = {**ours, **given}
    try:
        filesystem, root = fsspec.url_to_fs(str(url), **options)
        if "s3" in _protocols(filesystem):
            give_up_on_silence(filesystem.connect())  # reads settings, makes no request
    except (ValueError, ImportError) as error:
        raise StudyError(unreachable(url, error)) from error
    except away() as error:
        raise StoreAway(unreachable(url, error)) from error
    if "file" in _protocols(filesystem):
        return LocalStorage(Path(root))
    return ObjectStorage(filesystem, root.rstrip("/"))


@contextmanager
def reached(url: str | Path) -> Iterator[None]:
    """Turn errors of an unreachable store within the block into StudyError, with the store's message.

    A line on stderr tells of a long wait. A silent store is tried again for some two minutes.
    """
    waiting = print_after(SILENT_SECONDS, f"ledger {url}: waiting for its answer …")
    with answered(url), waiting if "://" in str(url) else nullcontext():
        yield


def kept(url: str | Path) -> AbstractContextManager[None]:
    """Turn errors of a store that is full, read-only or away within the block into StudyError.

    FileNotFoundError and FileExistsError pass through, as callers handle them.
    """
    return answered(url, FileNotFoundError, FileExistsError)


class LocalStorage:
    """A folder of a POSIX file system: folders appear by rename, files by rename or hard link, all synced."""

    at_once = 1

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.url = str(self.root)

    def read(self, name: str) -> bytes:
        """The file's content; links, pipes and devices are refused without following or waiting."""
        try:
            handle = os.open(self.place(name), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError as error:
            raise (_no_file(name) if error.errno in (errno.ELOOP, errno.ENXIO) else error) from None
        try:  # without a file object, whose creation would double the time
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise _no_file(name)
            content = os.read(handle, status.st_size + 1)
            if len(content) != status.st_size:  # the file changes, or its file system gives short reads
                content += b"".join(iter(lambda: os.read(handle, status.st_size + 1), b""))
            return content
        finally:
            os.close(handle)

    def write(self, name: str, content: bytes, *, durable: bool = True) -> None:
        with self._written(name, content, durable) as temporary:
            os.replace(temporary, self.place(name))

    def create(self, name: str, content: bytes, *, durable: bool = True) -> None:
        with self._written(name, content, durable) as temporary:
            os.link(temporary, self.place(name))  # unlike open("x"), never shows an empty file

    def children(self, name: str) -> list[str]:
        try:
            return sorted(child for child in os.listdir(self.place(name)) if not child.endswith(TEMPORARY))
        except FileNotFoundError:
            return []
        except OSError as error:
            if not self.root.is_dir():
                raise  # there is no ledger at all, which `reached` reports
            accepted = "a folder that may be read"
            if isinstance(error, NotADirectoryError):
                accepted = "the folder that semray makes there; move this out of the ledger, and it is made anew"
            problem = f"{self.root / name}: no folder that can be read ({error.strerror})"
            raise StudyError(f"{problem}\n  accepted: {accepted}") from None

    def entries(self) -> set[str]:
        """All names below the root; a file or link with an entry's name is damage, which reading it reports."""
        try:
            return set(os.listdir(self.root))
        except FileNotFoundError:
            if self.root.is_symlink():  # to a disk that is not mounted, say: nothing can be written there
                raise
            return set()

    def taken(self, name: str) -> bool:
        try:
            with answered(self.url, FileNotFoundError, NotADirectoryError):  # any other error is no answer
                os.lstat(self.place(name))
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def held(self, entries: Collection[str]) -> set[str]:
        if len(entries) > FEW or not self.root.is_dir():  # listing raises the right error if the root is a file
            return self.entries() & set(entries)
        return {entry for entry in entries if self.taken(entry)}

    def is_whole(self, name: str) -> bool:
        return os.path.isdir(self.place(name))

    def place(self, name: str) -> str:
        """The path as a string: Path objects, some twenty a run, took a fifth of a driver's time."""
        return f"{self.url}/{name}"

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        target = self.root / name
        part = target.with_name(target.name + PART)
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        yield part
        as_readable_as(part)
        flush_tree(part)
        os.rename(part, target)
        flush(target.parent)

    def staging(self, name: str) -> AbstractContextManager[Path]:
        return self.writing(name)

    def publish(self, staged: str, final: str) -> bool:
        try:
            os.rename(self.place(staged), self.place(final))  # refused when `final` is a folder with content
        except OSError:
            if not self.taken(final):
                raise
            return False
        flush(self.root)
        return True

    def discard(self, staged: str, final: str) -> None:
        self.remove(staged)

    def move(self, name: str, to: str) -> None:
        (self.root / to).parent.mkdir(parents=True, exist_ok=True)
        os.rename(self.root / name, self.root / to)

    def remove(self, name: str) -> None:
        if self.is_whole(name):
            shutil.rmtree(self.place(name), ignore_errors=True)
        else:
            self.unlink(name)

    def unlink(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self.place(name))

    def size(self, name: str) -> int:
        folders = os.walk(self.place(name))  # it skips folders that a running study deletes meanwhile
        return sum(_bytes(f"{folder}/{file}") for folder, _, files in folders for file in files)

    def local(self, name: str, cache: Path) -> Path | None:
        path = self.root / name
        return path if path.is_dir() else None

    @contextmanager
    def _written(self, name: str, content: bytes, durable: bool) -> Iterator[str]:
        """Yield a temporary file beside `name` that holds the content; delete it afterwards."""
        folder = os.path.dirname(self.place(name))
        os.makedirs(folder, exist_ok=True)
        temporary = f"{folder}/{secrets.token_hex(8)}{TEMPORARY}"  # not mkstemp, whose files are private
        handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o666)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            yield temporary
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)


def _bytes(path: str) -> int:
    with suppress(FileNotFoundError):
        return os.lstat(path).st_size
    return 0


def _no_file(name: str) -> OSError:
    return OSError(errno.EINVAL, "it is no plain file", name)


def _protocols(filesystem: Any) -> tuple[str, ...]:
    protocol = filesystem.protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)
