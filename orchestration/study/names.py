"""Names that people chose: which are accepted, how they are shown, how they are written in files and links."""

from __future__ import annotations

import difflib
import hashlib
import re
import shlex
import unicodedata
from collections.abc import Iterable, Sequence
from decimal import Decimal

LIST_AT_MOST = 12  # names in a message; of a longer list, those nearest to the written one are shown

NAME_BYTES = 200  # file systems take 255; the rest is for what we add
NAME_WORDS = "a name without /, \\ or control characters, that does not begin with a dot, of at most 200 bytes"

CONFIRMED = "-confirmed"  # behind the name of a searched study: its confirmation, which has no file

SLUG_AT_MOST = 60  # readable characters of a file's name; a digest keeps longer ones apart
DIGEST = re.compile(r"-[0-9a-f]{8}$")

REORDERING = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # direction marks


def printable(text: str, keep: str = "") -> str:
    """The text on one line, with each character that cannot be printed replaced by its escape.

    Those are control characters, line ends, marks of the writing direction, halves of surrogate pairs and
    unassigned code points. Characters in `keep` stay.
    """
    if text.isprintable():
        return text
    return "".join(one if one in keep or not _is_unprintable(one) else _escape(one) for one in text)


def in_one_line(text: str) -> str:
    """The lines of a text, one behind the other: for a row of a table."""
    return "; ".join(line.strip() for line in text.splitlines())


def unprintable_character(text: str, keep: str = "") -> str | None:
    """The first character that `printable` would escape, in words; None if there is none."""
    found = next((one for one in text if one not in keep and _is_unprintable(one)), None)
    return None if found is None else f"the character U+{ord(found):04X}"


def _is_unprintable(character: str) -> bool:
    return character in REORDERING or unicodedata.category(character) in {"Cc", "Cn", "Cs", "Zl", "Zp"}


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def cut(text: str, width: int) -> str:
    """The text in at most `width` characters; a longer one keeps its beginning and its end."""
    end = width // 3
    return text if len(text) <= width else f"{text[: width - end - 1]}…{text[-end:]}"


def slug(text: str) -> str:
    """A name for a text in files and links, different for every text.

    It is the text itself if that is safe, else its plain letters and a digest.
    """
    plain = re.sub(r"[^A-Za-z0-9.+_]+", "-", text).strip("-.")[:SLUG_AT_MOST]
    if plain == text and text and not DIGEST.search(text):
        return text
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{plain or 'x'}-{digest}"


def is_path_component(name: str) -> bool:
    """Whether a name can be one part of a path, on a disk or in a URL, and leads nowhere else."""
    fits = 0 < len(name.encode(errors="replace")) <= NAME_BYTES and name == name.strip()
    return fits and not name.startswith(".") and name.isprintable() and not set("/\\") & set(name)


def nearest(name: str, names: Iterable[str], count: int = 1) -> list[str]:
    """The names most similar to this one, ignoring case, best first; empty if none is similar."""
    by_lower = {known.lower(): known for known in names}
    return [by_lower[near] for near in difflib.get_close_matches(name.lower(), by_lower, count, cutoff=0.6)]


def listed(names: Sequence[str], most: int = LIST_AT_MOST) -> str:
    """`A, B, C and 7 more`."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def counted(number: int, noun: str) -> str:
    """`1 seed`, `8 seeds`."""
    return f"{number} {noun}" + "s" * (number != 1)


def amount(value: float) -> str:
    """Three significant digits, from 100 on whole numbers, never a power of ten: 0.0000278, 0.176, 12.3, 2,400."""
    return f"{value:,.0f}" if value >= 100 else f"{Decimal(f'{value:.3g}'):f}"


def typed(*words: object) -> str:
    """`semray run 'my study.yaml'`: the command as a person types it, with names quoted."""
    return shlex.join(["semray", *map(str, words)])


def names_accepted(name: str, names: Sequence[str]) -> str:
    """The accepted names for a message, and the nearest one; of a long list, the most similar."""
    if not names:
        return "none: the study declares nothing that could stand here"
    if len(names) <= LIST_AT_MOST:
        shown = ", ".join(names)
    else:
        alike = nearest(name, names, 6) or list(names[:6])
        shown = f"{', '.join(alike)} and {len(names) - len(alike)} more"
    return shown + meant(name, names)


def meant(name: str, names: Iterable[str]) -> str:
    """` (did you mean NAME?)` with the most similar name; "" if none is similar."""
    return "".join(f" (did you mean {near}?)" for near in nearest(name, names))
