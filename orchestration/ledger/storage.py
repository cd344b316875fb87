"""Where a ledger lies: a local folder or an object store, with the few operations that are atomic on both.

A name is a path below the root, with "/" between its parts. Whole folders appear at once: on a local disk by
rename, on an object store by a pointer (`object_storage`).
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
from orchestration.ledger.away import StoreAway, answered, away, unreachable
from orchestration.ledger.object_storage import PART, ObjectStorage
from orchestration.ledger.silence import ANSWER_SECONDS, give_up_on_silence
from orchestration.study.errors import StudyError
from orchestration.study.patience import print_after

TEMPORARY = ".tmp"  # suffix of a file that is still being written
FEW = 100  # entries that are asked for one by one; to list a folder of 100,000 takes some 0.1 s
SILENT_SECONDS = 10.0  # that a store is waited for without a word
CONNECTIONS = 64  # to S3, of one process; its library has 10


class Storage(Protocol):
    """All that a ledger asks of the place it lies in. at_once: how many requests are worth making at a time."""

    url: str
    at_once: int

    def read(self, name: str) -> bytes:
        """The file's content; FileNotFoundError when there is none, another OSError for what is no plain file."""

    def write(self, name: str, content: bytes, *, durable: bool = True) -> None:
        """Put a file in place, over an older one; readers see the old or the new content, never a part.

        durable: as in `create`.
        """

    def create(self, name: str, content: bytes, *, durable: bool = True) -> None:
        """Put a file in place; FileExistsError when there is one already. Of many callers one succeeds.

        durable: it must survive a power cut, which costs some milliseconds on a disk.
        """

    def unlink(self, name: str) -> None:
        """Delete a file; nothing happens when there is none."""

    def children(self, name: str) -> list[str]:
        """What lies directly in a folder; [] when there is none. StudyError where it cannot be listed."""

    def entries(self) -> set[str]:
        """The complete folders directly below the root, and on a disk whatever else lies there.

        On an object store the requests grow with their number.
        """

    def taken(self, name: str) -> bool:
        """Whether anything complete has this name, a folder or, on a disk, what lies in its place."""

    def held(self, entries: Collection[str]) -> set[str]:
        """Those of these names below the root that are taken."""

    def is_whole(self, name: str) -> bool:
        """Whether a complete folder has this name."""

    def place(self, name: str) -> str:
        """Where the files of a complete folder lie, for a person; asked after `is_whole`."""

    def writing(self, name: str) -> Any:
        """Context manager: an empty local folder to fill; it appears under `name`, complete, on a clean exit."""

    def staging(self, name: str) -> Any:
        """As `writing`, for `publish`. Until it is complete, `name` with `PART` behind it is there."""

    def publish(self, staged: str, final: str) -> bool:
        """Move a complete folder to a name that nobody took yet. False when the name is taken, or files are gone.

        FileNotFoundError when nothing complete is staged.
        """

    def discard(self, staged: str, final: str) -> None:
        """Delete what was staged for a name, if it did not become that."""

    def move(self, name: str, to: str) -> None:
        """Rename a folder."""

    def remove(self, name: str) -> None:
        """Delete a folder; nothing happens when there is none."""

    def size(self, name: str) -> int:
        """Bytes of all files in a folder; 0 when there is none."""

    def local(self, name: str, cache: Path) -> Path | None:
        """The folder on this machine, downloaded below `cache` where needed; None when there is none."""


def open_storage(url: str | Path) -> Storage:
    """A local path, file:// URL, or any fsspec URL (s3://bucket/ledger, memory://ledger).

    Raises StudyError for a kind of URL that is unknown or only read, or whose package is not installed.
    """
    if "://" not in str(url):  # to fsspec, a path with :: in it would be a chain of places
        return LocalStorage(Path(os.path.expanduser(url)))
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
            give_up_on_silence(filesystem.connect())  # its settings are read, nothing is asked yet
    except (ValueError, ImportError) as error:
        raise StudyError(unreachable(url, error)) from error
    except away() as error:
        raise StoreAway(unreachable(url, error)) from error
    if "file" in _protocols(filesystem):
        return LocalStorage(Path(root))
    return ObjectStorage(filesystem, root.rstrip("/"))


@contextmanager
def reached(url: str | Path) -> Iterator[None]:
    """Raise StudyError, with the store's own words, when it cannot be reached within the block.

    That a store is waited for is said; one that is silent is asked again, for some two minutes.
    """
    waiting = print_after(SILENT_SECONDS, f"ledger {url}: waiting for its answer …")
    with answered(url), waiting if "://" in str(url) else nullcontext():
        yield


def kept(url: str | Path) -> AbstractContextManager[None]:
    """Raise StudyError when the store fails within the block: full, read-only, away.

    That a name is there already, or is not, is passed on: the callers mean to hear it.
    """
    return answered(url, FileNotFoundError, FileExistsError)


class LocalStorage:
    """A folder of a POSIX file system: folders appear by rename, files by rename or hard link, all synced."""

    at_once = 1

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.url = str(self.root)

    def read(self, name: str) -> bytes:
        """A link, a pipe or a device is never followed, nor waited for."""
        try:
            handle = os.open(self.place(name), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError as error:
            raise (_no_file(name) if error.errno in (errno.ELOOP, errno.ENXIO) else error) from None
        try:  # not as a file object: to make one takes as long as all the rest
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise _no_file(name)
            content = os.read(handle, status.st_size + 1)
            if len(content) != status.st_size:  # it changes, or lies where a read may bring less
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
                raise  # there is no ledger at all, which `reached` says
            raise StudyError(
                f"{self.root / name}: no folder that can be read ({error.strerror})\n  accepted: the folder that "
                f"semray makes there; move this out of the ledger, and it is made anew"
            ) from None

    def entries(self) -> set[str]:
        """Files, pipes and links among them: under an entry's name they are damage, as reading it tells."""
        with suppress(FileNotFoundError):
            return set(os.listdir(self.root))
        return set()

    def taken(self, name: str) -> bool:
        try:
            with answered(self.url, FileNotFoundError, NotADirectoryError):  # else what is there is not known
                os.lstat(self.place(name))
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def held(self, entries: Collection[str]) -> set[str]:
        if len(entries) > FEW or not self.root.is_dir():  # which says why, where something else has its name
            return self.entries() & set(entries)
        return {entry for entry in entries if self.taken(entry)}

    def is_whole(self, name: str) -> bool:
        return os.path.isdir(self.place(name))

    def place(self, name: str) -> str:
        """A driver asks for some twenty a run: paths as objects took a fifth of its time."""
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
        folders = os.walk(self.place(name))  # which passes over what a study that works takes away meanwhile
        return sum(_bytes(f"{folder}/{file}") for folder, _, files in folders for file in files)

    def local(self, name: str, cache: Path) -> Path | None:
        path = self.root / name
        return path if path.is_dir() else None

    @contextmanager
    def _written(self, name: str, content: bytes, durable: bool) -> Iterator[str]:
        """A temporary file beside `name` that holds the content; gone afterwards."""
        folder = os.path.dirname(self.place(name))
        os.makedirs(folder, exist_ok=True)
        temporary = f"{folder}/{secrets.token_hex(8)}{TEMPORARY}"  # not mkstemp's: colleagues are to read it
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
