"""Reads the sentences to rewrite and to train on: a corpus by name, or a user's file.

    read("wiki1m").texts                        # the million lines of SimCSE
    read("snli_dev").contradicted               # triplets of an inference corpus

`wiki1m_sample`, the first lines of `wiki1m`, never replaces `wiki1m`: a study has to name it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from corpora.sources import semcor, semcor_files, wordnet, wordnet_files
from corpora.store.cache import digest_of
from corpora.store.errors import CorpusError, first_line
from corpora.store.places import found, lines, named_path, quoted_rows, text_of

HUB = "princeton-nlp/datasets-for-simcse"
WIKI, NLI = "wiki1m_for_simcse.txt", "nli_for_simcse.csv"
SNLI = ("snli_train", "snli_dev", "snli_test")
NAMES = ("wordnet", "semcor", "wiki1m", "wiki1m_sample", "nli", *SNLI)
TRIPLETS = ("nli", *SNLI)
_LEAST_WORDS = 4  # shorter texts are hardly sentences
_QUOTED = re.compile(r'"([^"]+)"')
_NO_GAP_BEFORE, _NO_GAP_AFTER = re.compile(r" ([.,;:!?)\]]|n't|'s|'|'')(?= |$)"), re.compile(r"([(\[]|``) ")


@dataclass(frozen=True)
class Sentences:
    """N texts in order. entailed, contradicted: N hypotheses each in a corpus of triplets, else None."""

    texts: list[str]
    entailed: list[str] | None = None
    contradicted: list[str] | None = None


def read(
    name: str, *, path: str | None = None, wordnet_at: str | None = None, semcor_at: str | None = None
) -> Sentences:
    """A corpus of NAMES, or a file: a sentence a line, or .csv with sent0, sent1 and hard_neg.

    path: a folder to search first for wiki1m, nli and snli. wordnet_at, semcor_at: places of these. CorpusError
    names what is missing or broken, and how to mend it.
    """
    if name == "wordnet":
        return Sentences(list(wordnet_texts(wordnet.read(wordnet_files.locate(wordnet_at)))))
    if name == "semcor":
        return Sentences(list(_semcor(semcor_at)))
    if name in SNLI:
        return _snli(name.removeprefix("snli_"), path)
    file = _file(name, path)
    return _triplets(file) if file.suffix == ".csv" else Sentences(_plain(file))


def digest(
    name: str, *, path: str | None = None, wordnet_at: str | None = None, semcor_at: str | None = None
) -> str:
    """sha256 of the contents of the files that `read` would read."""
    if name == "wordnet":
        contents = sorted(wordnet_files.locate(wordnet_at).digests().items())
    elif name == "semcor":
        contents = sorted(semcor_files.locate(semcor_at).digests().items())
    else:
        files = _snli_files(name.removeprefix("snli_"), path) if name in SNLI else [_file(name, path)]
        contents = [(file.suffix, _sha256(file)) for file in files]
    return hashlib.sha256(repr(contents).encode()).hexdigest()


def wordnet_texts(lexicon: wordnet.Wordnet) -> Iterator[str]:
    """WordNet's definitions and examples of four words or more, in synset order."""
    for synset in lexicon.synsets.values():
        texts = [synset.definition, *_QUOTED.findall(synset.gloss)]
        yield from (text.strip() for text in texts if len(text.split()) >= _LEAST_WORDS)


def _semcor(path: str | None) -> Iterator[str]:
    for sentence in semcor.read(semcor_files.locate(path).texts):
        text = " ".join(sentence.tokens).replace("_", " ")
        yield _NO_GAP_AFTER.sub(r"\1", _NO_GAP_BEFORE.sub(r"\1", text)).replace("``", '"').replace("''", '"')


def _file(name: str, path: str | None) -> Path:
    if name not in NAMES:
        file = named_path(name)
        if file.is_file():
            return file
        raise CorpusError(
            f"corpora: sentences = {name!r}: no such file\n  accepted: {', '.join(NAMES)}, or a file"
        )
    names = {
        "wiki1m": (f"wiki1m/{WIKI}", WIKI),
        "wiki1m_sample": (f"wiki1m_sample/{WIKI}",),
        "nli": (f"nli/{NLI}", NLI),
    }[name]
    try:
        return found(
            name,
            names,
            path=path,
            holds=names[0],
            source=f"{HUB} on the hub, or: hf download --repo-type dataset {HUB}",
        )
    except CorpusError as missing:
        if name == "wiki1m_sample":
            raise
        return _fetched(names[-1], missing)


def _fetched(file: str, missing: CorpusError) -> Path:
    """The file from the hub or its cache. An error adds the hub's reason to the places searched before."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError

    try:
        return Path(hf_hub_download(HUB, file, repo_type="dataset"))
    except (OSError, ValueError, HfHubHTTPError) as error:
        raise CorpusError(f"{missing}\n  the hub: {first_line(error)}") from error


def _plain(file: Path) -> list[str]:
    sentences = [line.strip() for line in text_of(file).split("\n") if line.strip()]
    if not sentences:
        raise CorpusError(f"corpora: {file} holds no sentence")
    return sentences


def _triplets(file: Path) -> Sentences:
    columns = ("sent0", "sent1", "hard_neg")
    kept = [tuple(row[column].strip() for column in columns) for _, row in quoted_rows(file, columns)]
    return _of(file, [row for row in kept if all(row)])


def _snli_files(split: str, path: str | None) -> list[Path]:
    first = found(
        f"SNLI ({split})",
        (f"snli/s1.{split}",),
        path=path,
        holds="snli/s1.*, s2.* and labels.*",
        source="SNLI 1.0",
    )
    return [first, first.with_name(f"s2.{split}"), first.with_name(f"labels.{split}")]


def _snli(split: str, path: str | None) -> Sentences:
    """Triplets of each premise with its k-th entailed and its k-th contradicted hypothesis."""
    files = _snli_files(split, path)
    columns = [["\t".join(fields) for _, fields in lines(file)] for file in files]
    if len({len(column) for column in columns}) > 1:
        raise CorpusError(
            f"corpora: {', '.join(f'{f} has {len(c)} lines' for f, c in zip(files, columns, strict=True))}"
        )
    by_premise: dict[str, dict[str, list[str]]] = {}
    for premise, hypothesis, label in zip(*columns, strict=True):
        by_premise.setdefault(premise.strip(), {}).setdefault(label.strip(), []).append(hypothesis.strip())
    rows = [
        (premise, *pair)
        for premise, by_label in by_premise.items()
        for pair in zip(by_label.get("entailment", ()), by_label.get("contradiction", ()), strict=False)
    ]
    return _of(files[0], rows)


def _of(file: Path, rows: Sequence[tuple[str, ...]]) -> Sentences:
    if not rows:
        raise CorpusError(f"corpora: {file} holds no triplet")
    texts, entailed, contradicted = (list(column) for column in zip(*rows, strict=True))
    return Sentences(texts, entailed, contradicted)


def _sha256(file: Path) -> str:
    try:
        return digest_of(file)
    except OSError as error:
        raise CorpusError(f"corpora: {file} cannot be read: {error}") from error
