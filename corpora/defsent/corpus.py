"""The defsent family's corpus: what a study may ask for, its fingerprint, and loading it from the cache.

    corpus = load(DefsentData())
    corpus.rows["test"].words[0], corpus.rows["test"].definitions[0]

Built once (about 5 s for WordNet), then mapped from the cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from corpora.defsent import inferences, oxford
from corpora.defsent.build import build_rows
from corpora.defsent.records import DefsentCorpus
from corpora.defsent.tables import read_rows, words_of, write_rows
from corpora.sources import gcide, wordnet_files
from corpora.store.cache import digest_of, entry, key_of
from corpora.store.errors import CorpusError

# Part of every fingerprint: raise it whenever the same sources and settings would give other rows.
BUILDER = 1
SOURCES = ("wordnet", "gcide", "oxford")
PLACES = ("wordnet", "gcide", "oxford", "path", "plain_text")  # where things lie says nothing of what they hold
TAKEN = ("text_overlap", "dev_definitions", "test_definitions", "nli")  # what loading alone looks at


@dataclass(frozen=True, kw_only=True)
class DefsentData:
    """The `data:` block of a defsent study. CorpusError names a field whose value is not accepted.

    sources: dictionaries. wordnet, gcide, oxford: where they lie; None looks where the first two are usually kept.
    oxford_cleaning: as the authors' code, or "fixed". dedupe_definitions: a definition once a word; None for all
    but oxford, whose lines repeat with their examples and were trained on so. split_key: words that differ in
    case or accents are one word, or each as it is written ("surface", the authors'). text_overlap: what to do
    where a training row has the definition of a dev or test row (synonyms share theirs); None keeps it with
    oxford and else drops the training row. drop_self_mention: leave out training rows that name their word.
    dev_definitions, test_definitions: evaluate on the first so many rows; None for all. nli: pairs for the
    Sentence-BERT arm. path: folder with evaluation data and the local NLI sets. plain_text: a file whose lines
    the fit of a head reads beside the definitions.
    """

    sources: tuple[str, ...] = ("wordnet",)
    wordnet: str | None = None
    gcide: str | None = None
    oxford: str | None = None
    path: str | None = None
    plain_text: str | None = None
    oxford_cleaning: Literal["authors", "fixed"] = "authors"
    dedupe_definitions: bool | None = None
    split_key: Literal["normalised", "surface"] = "normalised"
    split_seed: int = 0
    text_overlap: Literal["drop_from_train", "drop_from_eval", "keep"] | None = None
    drop_self_mention: bool = False
    dev_definitions: int | None = None
    test_definitions: int | None = None
    nli: Literal["none", "snli_mnli", "snli_devtest", "sick_e"] = "none"

    def __post_init__(self) -> None:
        for name, accepted in CHOICES.items():
            value = getattr(self, name)
            if value not in accepted and not (value is None and name == "text_overlap"):
                raise CorpusError(f"data.{name} = {value!r}\n  accepted: {', '.join(accepted)}")
        if not self.sources or set(self.sources) - set(SOURCES) or len(set(self.sources)) < len(self.sources):
            raise CorpusError(
                f"data.sources = {list(self.sources)!r}\n  accepted: {', '.join(SOURCES)}, each once"
            )
        for name in ("dev_definitions", "test_definitions"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise CorpusError(f"data.{name} = {value!r}\n  accepted: a whole number above 0, or null")

    @property
    def overlap(self) -> str:
        """What is done about shared definitions, decided."""
        return self.text_overlap or ("keep" if "oxford" in self.sources else "drop_from_train")


CHOICES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "oxford_cleaning": ("authors", "fixed"),
        "split_key": ("normalised", "surface"),
        "text_overlap": ("drop_from_train", "drop_from_eval", "keep"),
        "nli": inferences.NLI_SOURCES,
    }
)


def fingerprint(data: DefsentData) -> str:
    """Names the corpus: sha256 of what the sources hold, the settings and the builder's version.

    Reads the sources and builds nothing. Where they lie does not matter, what they hold does.
    """
    return _fingerprint(data, _rows_key(data))


def load(data: DefsentData) -> DefsentCorpus:
    """The corpus, its rows from the cache; built first when not there. CorpusError when a source is at fault."""
    key = _rows_key(data)
    folder, digests = entry("defsent", key, lambda folder: write_rows(folder, build_rows(data)))
    rows = read_rows(folder, eval_only=data.overlap == "drop_from_eval")
    for split, size in (("dev", data.dev_definitions), ("test", data.test_definitions)):
        if size is not None and size < len(rows[split]):
            rows[split] = rows[split].take(range(size))
    return DefsentCorpus(
        rows=rows,
        words_of=words_of(folder, rows),
        inferences=inferences.read(data.nli, data.path),
        plain_texts=_plain_texts(data.plain_text),
        text_overlap=data.overlap,
        fingerprint=_fingerprint(data, key),
        digests=digests,
    )


def source_digests(data: DefsentData) -> dict[str, Any]:
    """sha256 of the files of each dictionary that the study names."""
    found: dict[str, Any] = {}
    if "wordnet" in data.sources:
        found["wordnet"] = wordnet_files.locate(data.wordnet).digests()
    if "gcide" in data.sources:
        found["gcide"] = digest_of(gcide.locate(data.gcide))
    if "oxford" in data.sources:
        folder = oxford.locate(data.oxford)
        found["oxford"] = {name: digest_of(folder / name) for name in oxford.FILES}
    return found


def _rows_key(data: DefsentData) -> str:
    settings = {
        field.name: getattr(data, field.name) for field in fields(data) if field.name not in (*PLACES, *TAKEN)
    }
    return key_of({"builder": BUILDER, "sources": source_digests(data), "settings": settings})


def _fingerprint(data: DefsentData, rows: str) -> str:
    taken = {name: getattr(data, name) for name in TAKEN if name != "nli"} | {"text_overlap": data.overlap}
    plain = None if data.plain_text is None else digest_of(_plain_file(data.plain_text))
    return key_of({"rows": rows, "taken": taken, "nli": inferences.identity(data.nli, data.path), "plain": plain})


def _plain_file(path: str) -> Path:
    file = Path(path).expanduser()
    if not file.is_file():
        raise CorpusError(f"data.plain_text = {path!r}\n  accepted: a text file, one text a line")
    return file


def _plain_texts(path: str | None) -> tuple[str, ...]:
    if path is None:
        return ()
    try:
        text = _plain_file(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise CorpusError(f"data.plain_text = {path!r} is not UTF-8: {error}") from error
    return tuple(line.strip() for line in text.splitlines() if line.strip())
