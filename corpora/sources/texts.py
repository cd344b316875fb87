"""Normal forms of texts, words in texts, and hashes for choices that depend on names alone."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache

WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?")
_GAPS = re.compile(r"[\s_-]+")
_NOT_PLAIN = re.compile(r"[^a-z0-9]+")


@lru_cache(maxsize=1 << 18)  # a build asks for each of WordNet's 150,000 terms some twenty times
def norm(text: str) -> str:
    """The surface of a term: NFC, lower case, runs of space, underscore and hyphen as one space."""
    return _GAPS.sub(" ", unicodedata.normalize("NFC", text).lower()).strip()


def normdef(text: str) -> str:
    """The bare wording of a definition: lower case, every run outside [a-z0-9] as one space."""
    return _NOT_PLAIN.sub(" ", text.lower()).strip()


def word_count(text: str) -> int:
    """Number of word tokens: letters with at most one apostrophe tail (`[A-Za-z]+('[a-z]+)?`)."""
    return len(WORD.findall(text))


def cell_as_text(value: object) -> str:
    """The value of a table's cell without blanks at its ends; "" for None and NaN."""
    return "" if value is None or value != value else str(value).strip()


def is_text(value: object) -> bool:
    """Whether a value is text that can be stored. JSON may hold half of a surrogate pair, which cannot."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def words(block: str) -> tuple[str, ...]:
    """The words of a block of text, in order. Lists of words in this package are written so."""
    return tuple(block.split())


def word_set(block: str) -> frozenset[str]:
    """The words of a block of text, as a set."""
    return frozenset(block.split())


def shown(lemma: str) -> str:
    """A lemma as a reader sees it: WordNet writes spaces as underscores."""
    return lemma.replace("_", " ")


def keyed(*parts: object) -> int:
    """A 64-bit number that depends on the parts alone: blake2b of them joined by `|`, big-endian.

    Choices made with it do not depend on the order, shard or process that makes them.
    """
    name = "|".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big")


def keyed_sha256(*parts: object) -> int:
    """Like `keyed`, from the first 8 bytes of SHA-256: the hash that fixes the published digests of SPCD."""
    name = "|".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.sha256(name).digest()[:8], "big")
