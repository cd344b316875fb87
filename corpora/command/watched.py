"""The files of a command: one digest of their content, and their git state."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from stat import S_ISREG

from corpora.store.cache import cache_folder, digest_of, key_of
from corpora.store.errors import CorpusError
from corpora.store.places import named_path

MADE = {".git", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".ipynb_checkpoints"}
# compiled Python; and while a file is open, Emacs' lock (a link to nothing) and unsaved text, and Vim's swap file
MADE_FILE = re.compile(r".*\.pyc|\.#.*|#.*#|\..*\.sw[a-p]")
LEDGER = ".drivers"  # a ledger has this folder from its first study on
BESIDE_LEDGER = re.compile(r"reports|mlartifacts|mlflow\.db(-\w+)?")
GIT_SECONDS = 10.0


def fingerprint(watch: Sequence[str]) -> str:
    """sha256 over the content of these files and folders. CorpusError names each that is missing.

    Files that Python, git, editors and semray keep beside sources are left out. A folder's name and all below it
    count, linked folders too; its place does not.
    """
    missing = [name for name in watch if not os.path.exists(named_path(name))]
    if missing:
        raise CorpusError(
            f"data.watch: {', '.join(missing)}: no such file or folder in {Path.cwd()}\n"
            "  accepted: files and folders that are there; paths start where semray does"
        )
    return key_of({"files": [[Path(name).resolve().name, _content(named_path(name))] for name in watch]})


def covers(watch: Sequence[str], file: Path) -> bool:
    """Whether a file is one of the watched, or lies below one."""
    return any(file.resolve().is_relative_to(named_path(name).resolve()) for name in watch)


def git_states(watch: Sequence[str]) -> tuple[str, ...]:
    """The state of every git work tree with watched files: its commit, and which of the files differ from it."""
    by_tree: dict[str, list[str]] = {}
    for name in watch:
        place = named_path(name).resolve()
        tree = _git(place if place.is_dir() else place.parent, "rev-parse", "--show-toplevel")
        if tree:
            by_tree.setdefault(tree, []).append(str(place))
    return tuple(_state(Path(tree), places) for tree, places in by_tree.items())


def _state(tree: Path, places: Sequence[str]) -> str:
    ends = {tree, *map(Path, places)}  # a watched path counts even inside a ledger or the cache

    @cache  # a ledger has thousands of files in few folders
    def own(path: Path) -> bool:
        return path not in ends and (own(path.parent) or _is_own(path))

    commit = _git(tree, "rev-parse", "--short=12", "HEAD") or "no commit yet"
    changed = _git(tree, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", *places)
    if changed is None:
        return f"{tree.name} at {commit}; git did not say what is uncommitted"
    names = sorted(line[3:] for line in changed.split("\0") if line and not own(tree / line[3:]))
    if not names:
        return f"{tree.name} at {commit}, nothing uncommitted"
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{tree.name} at {commit}, uncommitted: {', '.join(names[:3])}{more}"


def _git(folder: Path, *words: str) -> str | None:
    """The output of git in a folder; None without git, without a work tree, or without an answer in time."""
    quiet = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            encoding="utf-8",
            errors="backslashreplace",  # names of files may be in any encoding
            timeout=GIT_SECONDS,
            env=quiet,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.rstrip("\n") if done.returncode == 0 else None


def _content(place: Path) -> list[list[str]]:
    """Name and digest of every file of a place, sorted by name."""
    try:
        return list(_below(place, place, frozenset(), {})) if place.is_dir() else [[".", _digest(place)]]
    except OSError as error:
        raise _unread(error.filename, error.strerror) from None


def _below(place: Path, folder: Path, above: frozenset[Path], linked: dict[Path, str]) -> Iterator[list[str]]:
    """As `_content`, of a folder of the place. Links are followed, unless to a folder above.

    above: the resolved folders above. linked: resolved target of each link so far -> its name; another link to the
    same target is recorded as that name, and not read again.
    """
    above |= {folder.resolve()}
    with os.scandir(folder) as found:
        inside = sorted(found, key=lambda one: one.name)
    for one in inside:
        path = folder / one.name
        name = path.relative_to(place).as_posix()
        if _is_own(path):
            continue
        if not one.is_dir():
            yield from [] if MADE_FILE.fullmatch(one.name) else [[name, _digest(path)]]
        elif one.name in MADE:
            continue
        elif not one.is_symlink():
            yield from _below(place, path, above, linked)
        elif (real := path.resolve()) in above:
            continue
        elif real in linked:
            yield [name, f"as {linked[real]}"]
        else:
            linked[real] = name
            yield from _below(place, path, above, linked)


def _is_own(path: Path) -> bool:
    """Whether this is a ledger, a file beside one, or the cache: these change while runs go on."""
    if BESIDE_LEDGER.fullmatch(path.name):
        return any(path.parent.glob(f"*/{LEDGER}/"))
    return path.is_dir() and ((path / LEDGER).is_dir() or path.resolve() == cache_folder().resolve())


def _digest(file: Path) -> str:
    """The digest of a file, read once in a process unless the file changes."""
    try:
        state = file.stat()
        if not S_ISREG(state.st_mode):  # a pipe would never end
            raise _unread(file, "no regular file")
        return _digest_of(file, state.st_mtime_ns, state.st_size)
    except OSError as error:
        raise _unread(file, error.strerror) from None


def _unread(path: Path | str, why: str | None) -> CorpusError:
    return CorpusError(f"data.watch: {path}: {why}\n  accepted: files that can be read, and folders of such")


@lru_cache(maxsize=10_000)
def _digest_of(file: Path, changed: int, size: int) -> str:
    return digest_of(file)
