"""Finding WordNet's files: a folder, or the zip that NLTK's downloader leaves unopened."""

from __future__ import annotations

import hashlib
import os
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from corpora.store.errors import CorpusError
from corpora.store.places import named_path

POS_FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
FILES = tuple(f"{part}.{pos}" for part in ("data", "index") for pos in POS_FILES.values())
FILES += (*(f"{pos}.exc" for pos in POS_FILES.values()), "cntlist.rev")
DEBIAN = Path("/usr/share/wordnet")
MENDING = "apt-get install wordnet-base, or: python -m nltk.downloader wordnet"


@dataclass(frozen=True)
class WordnetFiles:
    """The thirteen files that are read (data, index, exceptions, counts), in a folder or in a zip.

    In a zip they lie under `wordnet/`, as NLTK packs them. NLTK's and Debian's copies have the same files.
    """

    place: Path

    def read(self, name: str) -> bytes:
        """A file's bytes. CorpusError when it is missing or cannot be read."""
        try:
            if self.place.suffix == ".zip":
                with zipfile.ZipFile(self.place) as archive:
                    return archive.read(f"wordnet/{name}")
            return (self.place / name).read_bytes()
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise CorpusError(f"corpora: WordNet at {self.place}: cannot read {name}: {error}") from error

    def digests(self) -> dict[str, str]:
        """sha256 of every file, by name; read once in a process unless a file changes."""
        held = [self.place] if self.place.suffix == ".zip" else [self.place / name for name in FILES]
        try:
            state = tuple((file.stat().st_mtime_ns, file.stat().st_size) for file in held)
        except OSError:  # `read` raises the error in words
            state = ()
        return dict(_digests(self, state))


@lru_cache
def _digests(files: WordnetFiles, state: tuple[tuple[int, int], ...]) -> Mapping[str, str]:
    """The digests, cached. state: time and size of each file."""
    return {name: hashlib.sha256(files.read(name)).hexdigest() for name in FILES}


def locate(path: str | None = None) -> WordnetFiles:
    """WordNet at `path`, else at $SEMRAY_WORDNET, else in NLTK's data folders, else where Debian puts it.

    If a named place (argument or variable) lacks the files, no other is used. CorpusError names every place
    searched and how to get the files.
    """
    for named, origin in ((path, "the `wordnet` setting"), (os.environ.get("SEMRAY_WORDNET"), "SEMRAY_WORDNET")):
        if named:
            found = next((place for place in _inside(named_path(named)) if _holds_wordnet(place)), None)
            if found is None:
                raise CorpusError(
                    f"corpora: {origin} = {named!r} holds no WordNet (no data.noun)\n  to get it: {MENDING}"
                )
            return WordnetFiles(found)
    looked = [
        *(folder / "corpora" / name for folder in nltk_folders() for name in ("wordnet", "wordnet.zip")),
        DEBIAN,
    ]
    for place in looked:
        if _holds_wordnet(place):
            return WordnetFiles(place)
    places = "".join(f"\n    {place}" for place in looked)
    raise CorpusError(
        f"corpora: WordNet 3.0 not found; looked at{places}\n  to get it: {MENDING}\n  or set SEMRAY_WORDNET"
    )


def _inside(named: Path) -> Iterator[Path]:
    """The places to try for a named one: itself, a folder or a zip, and `dict` as in WordNet's own tree."""
    yield named
    yield named / "dict"


def _holds_wordnet(place: Path) -> bool:
    return place.is_file() if place.suffix == ".zip" else (place / "data.noun").is_file()


def nltk_folders() -> list[Path]:
    """The folders of nltk.data.path in order, without the slow import of NLTK."""
    listed = [Path(part) for part in os.environ.get("NLTK_DATA", "").split(os.pathsep) if part]
    prefixed = [Path(sys.prefix) / part / "nltk_data" for part in ("", "share", "lib")]
    shared = [
        Path(root) / "nltk_data" for root in ("/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib")
    ]
    return [*listed, Path.home() / "nltk_data", *prefixed, *shared]
