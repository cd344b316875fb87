"""Where a ledger lies: a local folder or an object store, with the few operations that are atomic on both.

A name is a path below the root, with "/" between its parts. Whole folders appear at once: on a local disk by
rename, on an object store by uploading `MARKER` last.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from corpora.store.durable import flush, flush_tree
from orchestration.study.errors import StudyError

MARKER = "result.json"  # on an object store a folder exists when it holds this
PART = ".part"  # suffix of a local folder that is still being written
TEMPORARY = ".tmp"  # suffix of a file that is still being written
AWAY = {  # what stores raise besides OSError when they do not answer or do not let us in
    "botocore.exceptions": ("BotoCoreError", "ClientError"),
    "aiohttp": ("ClientError",),
    "azure.core.exceptions": ("AzureError",),
    "gcsfs.retry": ("HttpError",),
}


class Storage(Protocol):
    """All that a ledger asks of the place it lies in."""

    url: str

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

    def children(self, name: str) -> list[str]:
        """What lies directly in a folder; [] when there is none. StudyError where it cannot be listed."""

    def entries(self) -> set[str]:
        """The complete folders directly below the root, and on a disk whatever else lies there."""

    def taken(self, name: str) -> bool:
        """Whether anything complete has this name, a folder or, on a disk, what lies in its place."""

    def is_whole(self, name: str) -> bool:
        """Whether a complete folder has this name."""

    def writing(self, name: str) -> Any:
        """Context manager: an empty local folder to fill; it appears under `name`, complete, on a clean exit."""

    def publish(self, staged: str, final: str) -> bool:
        """Move a complete folder to a name that nobody took yet. False when the name is taken."""

    def move(self, name: str, to: str) -> None:
        """Rename a folder."""

    def remove(self, name: str) -> None:
        """Delete a file or folder; nothing happens when there is none."""

    def size(self, name: str) -> int:
        """Bytes of all files in a folder; 0 when there is none."""

    def local(self, name: str, cache: Path) -> Path | None:
        """The folder on this machine, downloaded below `cache` where needed; None when there is none."""


def open_storage(url: str | Path) -> Storage:
    """A local path, file:// URL, or any fsspec URL (s3://bucket/ledger, memory://ledger).

    Raises StudyError for a kind of URL that is unknown, or whose package is not installed.
    """
    import fsspec

    try:
        filesystem, root = fsspec.url_to_fs(str(url), use_listings_cache=False)
    except (ValueError, ImportError) as error:
        raise StudyError(_unreachable(url, error)) from error
    if "file" in _protocols(filesystem):
        return LocalStorage(Path(root))
    return ObjectStorage(filesystem, root.rstrip("/"))


def away() -> tuple[type[Exception], ...]:
    """What a store raises that cannot be reached; of libraries that are not loaded, nothing."""
    loaded = ((sys.modules.get(module), names) for module, names in AWAY.items())
    return (OSError, *(getattr(module, name) for module, names in loaded if module for name in names))


@contextmanager
def reached(url: str | Path) -> Iterator[None]:
    """Raise StudyError, with the store's own words, when it cannot be reached within the block."""
    try:
        yield
    except away() as error:
        raise StudyError(_unreachable(url, error)) from error


@contextmanager
def kept(url: str | Path) -> Iterator[None]:
    """Raise StudyError when the store fails within the block: full, read-only, away.

    That a name is there already, or is not, is passed on: the callers mean to hear it.
    """
    try:
        yield
    except (FileNotFoundError, FileExistsError):
        raise
    except away() as error:
        raise StudyError(_unreachable(url, error)) from error


def _unreachable(url: str | Path, error: Exception) -> str:
    said = (str(error).strip() or type(error).__name__).splitlines()[0]
    return (
        f"ledger {url}: {said}\n"
        f"  accepted: a folder that may be written and has room, or a URL such as s3://bucket/ledger, with the "
        f"package for it installed and its credentials set"
    )


class LocalStorage:
    """A folder of a POSIX file system: folders appear by rename, files by rename or hard link, all synced."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.url = str(self.root)

    def read(self, name: str) -> bytes:
        """A link, a pipe or a device is never followed, nor waited for."""
        try:
            handle = os.open(self.root / name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError as error:
            raise (_no_file(name) if error.errno in (errno.ELOOP, errno.ENXIO) else error) from None
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise _no_file(name)
            return file.read()

    def write(self, name: str, content: bytes, *, durable: bool = True) -> None:
        with self._written(name, content, durable) as temporary:
            os.replace(temporary, self.root / name)

    def create(self, name: str, content: bytes, *, durable: bool = True) -> None:
        with self._written(name, content, durable) as temporary:
            os.link(temporary, self.root / name)  # unlike open("x"), never shows an empty file

    def children(self, name: str) -> list[str]:
        try:
            return sorted(child for child in os.listdir(self.root / name) if not child.endswith(TEMPORARY))
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
        return os.path.lexists(self.root / name)

    def is_whole(self, name: str) -> bool:
        return (self.root / name).is_dir()

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        target = self.root / name
        part = target.with_name(target.name + PART)
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        yield part
        _as_readable_as(part)
        flush_tree(part)
        os.rename(part, target)
        flush(target.parent)

    def publish(self, staged: str, final: str) -> bool:
        try:
            os.rename(self.root / staged, self.root / final)  # refused when `final` is a folder with content
        except OSError:
            if not self.taken(final):
                raise
            return False
        flush(self.root)
        return True

    def move(self, name: str, to: str) -> None:
        (self.root / to).parent.mkdir(parents=True, exist_ok=True)
        os.rename(self.root / name, self.root / to)

    def remove(self, name: str) -> None:
        path = self.root / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

    def size(self, name: str) -> int:
        return sum(path.lstat().st_size for path in (self.root / name).rglob("*") if path.is_file())

    def local(self, name: str, cache: Path) -> Path | None:
        path = self.root / name
        return path if path.is_dir() else None

    @contextmanager
    def _written(self, name: str, content: bytes, durable: bool = True) -> Iterator[str]:
        """A temporary file beside `name` that holds the content; gone afterwards."""
        folder = (self.root / name).parent
        folder.mkdir(parents=True, exist_ok=True)
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


class ObjectStorage:
    """An object store through fsspec. It must refuse a second exclusive upload of one name, as S3 does."""

    def __init__(self, filesystem: Any, root: str) -> None:
        self.filesystem, self.root = filesystem, root
        self.url = filesystem.unstrip_protocol(root)

    def read(self, name: str) -> bytes:
        return self.filesystem.cat_file(f"{self.root}/{name}")

    def write(self, name: str, content: bytes, *, durable: bool = True) -> None:
        self.filesystem.pipe_file(f"{self.root}/{name}", content)

    def create(self, name: str, content: bytes, *, durable: bool = True) -> None:
        self.filesystem.pipe_file(f"{self.root}/{name}", content, mode="create")

    def children(self, name: str) -> list[str]:
        with suppress(FileNotFoundError):
            return sorted(
                path.rsplit("/", 1)[1] for path in self.filesystem.ls(f"{self.root}/{name}", detail=False)
            )
        return []

    def entries(self) -> set[str]:
        below = (path[len(self.root) + 1 :].split("/") for path in self.filesystem.find(self.root))
        return {parts[0] for parts in below if len(parts) == 2 and parts[1] == MARKER}

    def is_whole(self, name: str) -> bool:
        return self.filesystem.exists(f"{self.root}/{name}/{MARKER}")

    def taken(self, name: str) -> bool:
        return self.is_whole(name)

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="semray-") as folder:
            yield Path(folder)
            files = [path.relative_to(folder).as_posix() for path in Path(folder).rglob("*") if path.is_file()]
            for file in _marker_last(files):
                self.filesystem.put_file(f"{folder}/{file}", f"{self.root}/{name}/{file}")

    def publish(self, staged: str, final: str) -> bool:
        """The first to create the claim decides which staged folder becomes `final`; whoever comes next helps.

        A claim whose staged folder is gone although nothing became of it, since a person deleted the entry, is
        dropped.
        """
        while True:
            if not self.is_whole(staged) and not self.is_whole(final):
                raise FileNotFoundError(f"{self.url}/{staged}")
            with suppress(FileExistsError):
                self.create(_claim(final), staged.encode())
            with suppress(FileNotFoundError):  # another driver dropped the claim, or cleared away what it copied
                winner = self.read(_claim(final)).decode()
                if not self.is_whole(final) and self.is_whole(winner):
                    self._copy(winner, final)
                if self.is_whole(final):  # asked again: it may have come, and what was staged gone, in between
                    return winner == staged
                if winner != staged and self.read(_claim(final)).decode() == winner:
                    self.remove(_claim(final))

    def move(self, name: str, to: str) -> None:
        self._copy(name, to)
        for left in (_claim(name), f"{name}/{MARKER}", name):  # in this order, a crash in between can be repeated
            self.remove(left)

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self.filesystem.rm(f"{self.root}/{name}", recursive=True)

    def size(self, name: str) -> int:
        return sum(self.filesystem.size(f"{self.root}/{name}/{file}") for file in self._files(name))

    def local(self, name: str, cache: Path) -> Path | None:
        files = self._files(name)
        for file in files:
            (cache / name / file).parent.mkdir(parents=True, exist_ok=True)
            self.filesystem.get_file(f"{self.root}/{name}/{file}", str(cache / name / file))
        return cache / name if files else None

    def _files(self, name: str) -> list[str]:
        folder = f"{self.root}/{name}/" if name else f"{self.root}/"
        return [path[len(folder) :] for path in self.filesystem.find(folder)]

    def _copy(self, name: str, to: str) -> None:
        files = self._files(name)
        if not files:
            raise FileNotFoundError(f"{self.url}/{name}")
        for file in _marker_last(files):
            self.filesystem.cp_file(f"{self.root}/{name}/{file}", f"{self.root}/{to}/{file}")


def _as_readable_as(folder: Path) -> None:
    """Let the umask, by which the folder was made, hold for its files too: libraries write theirs for us alone."""
    mode = stat.S_IMODE(folder.stat().st_mode) & 0o666
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(mode)


def _claim(final: str) -> str:
    return f".commits/{final}"


def _no_file(name: str) -> OSError:
    return OSError(errno.EINVAL, "it is no plain file", name)


def _marker_last(files: list[str]) -> list[str]:
    return sorted(files, key=lambda file: (file == MARKER, file))


def _protocols(filesystem: Any) -> tuple[str, ...]:
    protocol = filesystem.protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)
