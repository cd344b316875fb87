"""Sentence pairs with their inference, for the Sentence-BERT arm: SNLI and MultiNLI, or a small set kept locally.

Sentence-BERT was not trained on the small sets: a study names them, and its report shows the name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from corpora.defsent.records import LABELS, Inferences
from corpora.store.cache import digest_of
from corpora.store.columns import Texts
from corpora.store.errors import CorpusError, first_line
from corpora.store.places import every_line, found, tab_separated

HUB = ("stanfordnlp/snli", "nyu-mll/multi_nli")
UNAGREED = ("-", "")  # instead of a label
SNLI_PARTS = ("dev", "test")
SICK_COLUMNS = ("sentence_A", "sentence_B", "entailment_judgment")


def identity(source: str, path: str | None) -> dict[str, str]:
    """The identity of a source's pairs: digests of local files, or revisions on the hub."""
    if source == "none":
        return {}
    if source == "snli_mnli":
        return dict(_revisions())
    return {file.name: digest_of(file) for file in _files(source, path)}


def read(source: str, path: str | None) -> Inferences | None:
    """The pairs of a source, those without an agreed label left out. CorpusError if they are not available."""
    if source == "none":
        return None
    rows: Iterable[tuple[str, str, str]]
    if source == "snli_mnli":
        rows = _from_hub()
    elif source == "snli_devtest":
        rows = _snli(_files(source, path))
    else:
        rows = _sick(_files(source, path)[0])
    kept = [(premise, hypothesis, LABELS.index(label)) for premise, hypothesis, label in rows if label in LABELS]
    if not kept:
        raise CorpusError(f"corpora: data.nli = {source!r}: no pair has one of the labels {', '.join(LABELS)}")
    premises, hypotheses, labels = zip(*kept, strict=True)
    return Inferences(source, Texts.of(premises), Texts.of(hypotheses), np.array(labels, np.uint8))


def _files(source: str, path: str | None) -> list[Path]:
    if source == "sick_e":
        names = ("SICK/SICK_train.txt", "senteval/SICK/SICK_train.txt", "SICK_train.txt")
        source = "the SICK data set of Marelli et al. (2014)"
        return [found("SICK", names, path=path, holds=names[0], source=source)]
    folder = found(
        "SNLI's dev and test",
        ("snli", "SNLI"),
        path=path,
        holds="snli/s1.dev, s2.dev, labels.dev and the same of test",
        source="https://nlp.stanford.edu/projects/snli",
    )
    files = [folder / f"{column}.{part}" for part in SNLI_PARTS for column in ("s1", "s2", "labels")]
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise CorpusError(f"corpora: SNLI at {folder} lacks {', '.join(missing)}")
    return files


def _snli(files: list[Path]) -> Iterator[tuple[str, str, str]]:
    """Read the three files of each part, whose lines belong together."""
    for part in range(0, len(files), 3):
        columns = [every_line(file) for file in files[part : part + 3]]
        if len({len(column) for column in columns}) != 1:
            counts = ", ".join(
                f"{file.name} {len(column)}" for file, column in zip(files[part:], columns, strict=False)
            )
            raise CorpusError(f"corpora: SNLI at {files[part].parent}: files of different length: {counts}")
        for number, (premise, hypothesis, label) in enumerate(zip(*columns, strict=True), 1):
            yield premise.strip(), hypothesis.strip(), _label(label.strip(), files[part + 2], number)


def _sick(file: Path) -> Iterator[tuple[str, str, str]]:
    for number, row in tab_separated(file, SICK_COLUMNS):
        first, second, label = (row[column] for column in SICK_COLUMNS)
        yield first, second, _label(label.lower(), file, number)


def _label(written: str, file: Path, number: int) -> str:
    """The label of a line, or the mark of no agreed label. CorpusError for other text."""
    if written not in (*LABELS, *UNAGREED):
        raise CorpusError(
            f"corpora: {file}, line {number}: label {written!r}\n"
            f"  accepted: {', '.join(LABELS)}, or - where none was agreed on"
        )
    return written


def _revisions() -> Iterator[tuple[str, str]]:
    import httpx
    from huggingface_hub import HfApi
    from huggingface_hub.errors import OfflineModeIsEnabled

    for repository in HUB:
        try:
            yield repository, str(HfApi().dataset_info(repository).sha)
        except (OSError, httpx.HTTPError, OfflineModeIsEnabled) as error:
            raise CorpusError(
                f"corpora: data.nli = 'snli_mnli': the hub's {repository} cannot be reached: {first_line(error)}\n"
                "  accepted without the hub: snli_devtest or sick_e, which are other and smaller data"
            ) from error


def _from_hub() -> Iterator[tuple[str, str, str]]:
    """The training parts of SNLI and MultiNLI, about a million pairs; a label of -1 was not agreed on."""
    import datasets

    for repository, revision in _revisions():
        rows: Any = datasets.load_dataset(repository, split="train", revision=revision, trust_remote_code=False)
        for row in rows.select_columns(["premise", "hypothesis", "label"]):
            yield row["premise"], row["hypothesis"], LABELS[row["label"]] if row["label"] >= 0 else ""
