"""Finding SemCor's 352 files: SemCor 3.0's tag files or NLTK's XML, in a folder or as downloaded (tar.gz, zip)."""

from __future__ import annotations

import hashlib
import os
import re
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from corpora.sources.texts import words
from corpora.sources.wordnet_files import nltk_folders
from corpora.store.cache import cache_folder
from corpora.store.errors import CorpusError
from corpora.store.places import named_path, roots

# The files of each concordance, as ranges: `a01-02` is br-a01 and br-a02.
CONCORDANCES = {
    "brown1": """
        a01-02 a11-15 b13 b20 c01-02 c04 d01-04 e01-02 e04 e21 e24 e29 f03 f10 f19 f43 g01 g11 g15 h01 j01-20
        j22-23 j37 j52-60 j70 k01-29 l11-12 m01-02 n05 p01 r05-09
        """,
    "brown2": """
        e22-23 e25-28 e30-31 f08 f13-18 f20-25 f33 f44 g12 g14 g16-23 g28 g31 g39 g43-44 h09 h11-18 h21 h24 j29-35
        j38 j41-42 l08-10 l13-18 n09-12 n14-17 n20 p07 p09-10 p12 p24 r04
        """,
    "brownv": """
        a03-10 a16-44 b01-12 b14-19 b21-27 c03 c05-17 d05-17 e03 e05-20 f01-02 f04-07 f09 f11-12 g02-10 g13 h02-08
        h10 j21 j24-28 l01-07 m03-06 n01-04 n06-08 p02-06 p08 r01-03
        """,
}
ARCHIVES = ("semcor3.0.tar.gz", "semcor.zip")
MENDING = (
    "python -m nltk.downloader semcor (about 4 MB, no need to unpack), or the SemCor 3.0 archive "
    "semcor3.0.tar.gz as it is, in one of these places"
)
_TAGFILE = re.compile(r"(?:^|/)(brown[12v]/tagfiles/br-[a-r]\d\d)(\.xml)?$")


def expected() -> tuple[str, ...]:
    """The 352 names, sorted: `brown1/tagfiles/br-a01` and so on."""
    names = []
    for concordance, ranges in CONCORDANCES.items():
        for part in words(ranges):
            letter, (first, _, last) = part[0], part[1:].partition("-")
            numbers = range(int(first), int(last or first) + 1)
            names += [f"{concordance}/tagfiles/br-{letter}{number:02d}" for number in numbers]
    return tuple(sorted(names))


@dataclass(frozen=True)
class SemcorFiles:
    """The files at a place: a folder that holds brown1, brown2, brownv, a `.tar.gz` or a `.zip` of one."""

    place: Path

    @cached_property
    def texts(self) -> Mapping[str, bytes]:
        """The 352 files by name, without `.xml`. CorpusError names those that are missing or unreadable."""
        try:
            found = {match[1]: content for match, content in self._tagfiles()}
        except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile) as error:
            raise CorpusError(f"corpora: semcor at {self.place} cannot be read: {error}") from error
        names = expected()
        missing = [name for name in names if name not in found]
        if missing:
            shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
            raise CorpusError(
                f"corpora: semcor at {self.place} has {len(names) - len(missing)} files, expected {len(names)}; "
                f"missing {shown}\n  to get it: {MENDING}"
            )
        return {name: found[name] for name in names}

    def digests(self) -> dict[str, str]:
        """sha256 of every file, by name: the same for a folder and for the archive it came in."""
        return {name: hashlib.sha256(content).hexdigest() for name, content in self.texts.items()}

    def _tagfiles(self) -> Iterator[tuple[re.Match[str], bytes]]:
        if self.place.is_dir():
            for path in self.place.glob("brown?/tagfiles/br-*"):
                if match := _TAGFILE.search(path.as_posix()):
                    yield match, path.read_bytes()
        elif self.place.suffix == ".zip":
            with zipfile.ZipFile(self.place) as packed:
                for name in packed.namelist():
                    if match := _TAGFILE.search(name):
                        yield match, packed.read(name)
        else:
            with tarfile.open(self.place) as archive:
                for member in archive:
                    if (match := _TAGFILE.search(member.name)) and (file := archive.extractfile(member)):
                        yield match, file.read()


def locate(path: str | None = None) -> SemcorFiles:
    """SemCor at `path`, else $SEMRAY_SEMCOR, else in $SEMRAY_DATA/semcor, the cache, or NLTK's data folders.

    If a named place (argument or SEMRAY_SEMCOR) lacks the files, no other is used. CorpusError names every place
    searched and how to get the files.
    """
    for named, origin in ((path, "data.semcor"), (os.environ.get("SEMRAY_SEMCOR"), "SEMRAY_SEMCOR")):
        if named:
            files = _at(named_path(named))
            if files is None:
                raise CorpusError(
                    f"corpora: {origin} = {named!r} holds no SemCor\n"
                    f"  accepted: a folder with brown1, brown2 and brownv, or {' or '.join(ARCHIVES)}"
                )
            return files
    of_semray = [*(root for _, root in roots(None)), cache_folder()]
    looked = [*(root / "semcor" for root in of_semray), *(root / "corpora/semcor" for root in nltk_folders())]
    for place in looked:
        if files := _at(place) or _at(place.with_suffix(".zip")):
            return files
    places = "".join(f"\n    {place}" for place in looked)
    raise CorpusError(
        f"corpora: SemCor 3.0 not found; looked at{places}\n  to get it: {MENDING}\n  or set SEMRAY_SEMCOR"
    )


def _at(place: Path) -> SemcorFiles | None:
    """The files at a place: an archive, a folder of concordances, or a folder with one of these inside."""
    if place.is_file():
        return SemcorFiles(place)
    for inside in (place, place / "semcor3.0", place / "semcor"):
        if any((inside / concordance).is_dir() for concordance in CONCORDANCES):
            return SemcorFiles(inside)
    return next((SemcorFiles(place / name) for name in ARCHIVES if (place / name).is_file()), None)
