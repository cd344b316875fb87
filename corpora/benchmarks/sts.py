"""STS: pairs of sentences with a graded similarity, in the layout of SentEval or of the hub.

    subsets = read("STS12", path="data")     # {"MSRpar": Pairs, "MSRvid": Pairs, ...}

Texts are raw: neither tokenised nor lower-cased. Gold runs from 0 to 5, SICK's from 1 to 5.
Sources: Agirre et al., SemEval 2012 to 2016; Cer et al. 2017 for STS-B; Marelli et al. 2014 for SICK.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from corpora.benchmarks.pairs import Pairs, joined
from corpora.store.errors import CorpusError
from corpora.store.hub import HubSet, hub_rows
from corpora.store.places import every_line, first_of, lines, not_found, tab_separated
from corpora.store.rows import number_within, sha256_of

LARGEST = 5.0
SICK_LEAST = 1.0
SUBSETS = {
    "STS12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "STS13": ("FNWN", "headlines", "OnWN"),  # the fourth, SMT, may not be passed on
    "STS14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "STS15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "STS16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}
IN_STSB = {"STS14": ("deft-forum", "deft-news"), "STS15": ("answers-forums",)}  # whole, in its train or dev part
Subsets = Mapping[str, Pairs]  # subset -> its pairs; gold as published


@dataclass(frozen=True)
class Source:
    """Where a set lies: a folder in SentEval's layout with a reader, and the hub's copy if there is one."""

    folder: str
    file: str  # a file whose presence shows that the folder has the set
    read: Callable[[Path], Subsets]
    hub: HubSet | None


def read(name: str, *, path: str | None) -> Subsets:
    """The subsets of a set of `NAMES`, from data.path, $SEMRAY_DATA or the hub.

    The hub's copies do not say which subset a pair is from: they come as one, named after the set. Rows without a
    score are left out, as the shared tasks left them unscored. CorpusError when the set is nowhere, or a file odd.
    """
    source = _SOURCES[name]
    folders = [f"{above}{source.folder}" for above in ("senteval/", "", "downstream/")]
    folders = list(dict.fromkeys([*folders, source.folder.rpartition("/")[2]]))
    file, remarks = first_of([f"{folder}/{source.file}" for folder in folders], path, Path.is_file)
    if file is not None:
        return source.read(file.parent)
    if source.hub is None:
        remarks.append("the hub: not asked; its copy of SICK does not say which of the parts a pair is of")
    else:
        rows, looked = hub_rows(source.hub, path)
        if rows is not None:
            return {name: _of_hub(name, source.hub, rows)}
        remarks += looked
    how = "SentEval's download of the data" + (f", or {source.hub.command}" if source.hub else "")
    raise not_found(name, remarks, holds=f"{source.folder}/{source.file}", source=how)


def read_dedup(name: str, *, path: str | None) -> Subsets:
    """The set without the pairs of STS-B train and dev: a model trained or chosen on STS-B has seen them.

    CorpusError when no pair is left.
    """
    learned = [pairs for part in ("STS-B/train", "STS-B/dev") for pairs in read(part, path=path).values()]
    seen = {key for pairs in learned for key in pairs.text_keys()}

    def unseen(pairs: Pairs) -> Pairs:
        return pairs.take([row for row, key in enumerate(pairs.text_keys()) if key not in seen])

    kept = {subset: unseen(pairs) for subset, pairs in read(name, path=path).items()}
    if not any(map(len, kept.values())):
        raise CorpusError(f"corpora: {name} without the pairs of STS-B train and dev holds no pair")
    return {subset: pairs for subset, pairs in kept.items() if len(pairs)}


def fingerprint(subsets: Subsets) -> str:
    """sha256 of all rows in order, whatever the layout they were read from."""
    rows = ((name, *zip(pairs.a, pairs.b, pairs.gold.tolist(), strict=True)) for name, pairs in subsets.items())
    return sha256_of(chain.from_iterable(rows))


def stsb_pairs(file: Path) -> Pairs:
    """STS-B: genre, source, year, id, score, both sentences, on some lines licence columns. A quote is a letter.

    Published ids repeat, so rows are named by their source and line; 311 training rows have stray blanks.
    """
    return Pairs.of(
        (f"{fields[1]}:{number}", fields[5].strip(), fields[6].strip(), _gold(fields[4], file, number))
        for number, fields in _rows(file)
    )


def _sick(*files: str) -> Callable[[Path], Subsets]:
    """SICK, by its header: pair_ID, sentence_A, sentence_B, relatedness_score."""
    columns = ("pair_ID", "sentence_A", "sentence_B", "relatedness_score")

    def rows(file: Path) -> Iterator[tuple[str, str, str, float]]:
        for number, row in tab_separated(file, columns):
            id_, a, b, gold = (row[column] for column in columns)
            yield id_, a, b, _gold(gold, file, number, least=SICK_LEAST)

    return lambda folder: {"SICK-R": joined(Pairs.of(rows(folder / file)) for file in files)}


def _subset(folder: Path, subset: str) -> Pairs:
    """Two sentences a line beside one score a line; some years name the sources of both sentences after them."""
    texts, scores = folder / f"STS.input.{subset}.txt", folder / f"STS.gs.{subset}.txt"
    sentences, golds = every_line(texts), every_line(scores)
    if len(sentences) != len(golds):
        raise CorpusError(
            f"corpora: {texts} has {len(sentences)} lines and {scores.name} {len(golds)}\n  accepted: as many"
        )
    rows = []
    for number, (line, gold) in enumerate(zip(sentences, golds, strict=True), 1):
        if not gold.strip():
            continue
        fields = line.split("\t")
        if len(fields) < 2:
            raise CorpusError(f"corpora: {texts}, line {number}: {len(fields)} field, expected two sentences")
        rows.append((f"{subset}:{number}", fields[0], fields[1], _gold(gold, scores, number)))
    if not rows:
        raise CorpusError(f"corpora: {scores} scores no pair\n  accepted: a number from 0 to 5 on each line")
    return Pairs.of(rows)


def _rows(file: Path) -> Iterator[tuple[int, list[str]]]:
    for number, fields in lines(file):
        if len(fields) < 7:
            raise CorpusError(f"corpora: {file}, line {number}: {len(fields)} fields, expected at least 7")
        yield number, fields


def _gold(written: str, file: Path, number: int, *, least: float = 0.0) -> float:
    try:
        gold = number_within(written, LARGEST)
    except ValueError:
        gold = -1.0
    if gold < least:
        problem = f"corpora: {file}, line {number}: score {written!r}"
        raise CorpusError(f"{problem}\n  accepted: a number from {least:g} to {LARGEST:g}")
    return gold


def _of_hub(name: str, hub: HubSet, rows: list[dict]) -> Pairs:
    a, b, gold = hub.columns
    return Pairs.of(
        (f"{name}:{number}", str(row[a]), str(row[b]), _gold(str(row[gold]), Path(hub.name), number))
        for number, row in enumerate(rows, 1)
    )


def _hub(name: str, split: str = "test") -> HubSet:
    return HubSet(f"mteb/{name}", split, ("sentence1", "sentence2", "score"))


def _yearly(name: str, hub: str) -> Source:
    def read_year(folder: Path) -> Subsets:
        return {subset: _subset(folder, subset) for subset in SUBSETS[name]}

    return Source(f"STS/{name}-en-test", f"STS.input.{SUBSETS[name][0]}.txt", read_year, _hub(hub))


def _stsb(file: str, split: str) -> Source:
    def read_part(folder: Path) -> Subsets:
        return {"STS-B": stsb_pairs(folder / file)}

    return Source("STS/STSBenchmark", file, read_part, _hub("stsbenchmark-sts", split))


_SICK_TEST = "SICK_test_annotated.txt"
_SOURCES = {
    "STS12": _yearly("STS12", "sts12-sts"),
    "STS13": _yearly("STS13", "sts13-sts"),
    "STS14": _yearly("STS14", "sts14-sts"),
    "STS15": _yearly("STS15", "sts15-sts"),
    "STS16": _yearly("STS16", "sts16-sts"),
    "STS-B/train": _stsb("sts-train.csv", "train"),
    "STS-B/dev": _stsb("sts-dev.csv", "validation"),
    "STS-B": _stsb("sts-test.csv", "test"),
    # The hub's copy joins SICK's three files.
    "SICK-R/train": Source("SICK", "SICK_train.txt", _sick("SICK_train.txt"), None),
    "SICK-R/trial": Source("SICK", "SICK_trial.txt", _sick("SICK_trial.txt"), None),
    "SICK-R": Source("SICK", _SICK_TEST, _sick(_SICK_TEST), None),
    "SICK-R/all": Source(
        "SICK", _SICK_TEST, _sick("SICK_train.txt", "SICK_trial.txt", _SICK_TEST), _hub("sickr-sts")
    ),
}
NAMES = tuple(_SOURCES)
