"""DWUG: uses of words in two periods, with a graded score of how much their meaning changed.

    targets = read("en", path="data")       # data/dwug_en/data/<lemma>/uses.csv and its gold list

The files end in `.csv`, are tab-separated and quote nothing: a reader that honours quotes loses rows silently.
Every use counts, also those the annotators' clusterings leave aside as noise (cluster -1).
"""

from __future__ import annotations

import logging
import unicodedata
from pathlib import Path

from corpora.benchmarks.records import ChangeTarget
from corpora.sources.occurrences import Occurrence
from corpora.store.errors import CorpusError
from corpora.store.places import found, number_in, tab_separated

log = logging.getLogger(__name__)
LANGUAGES = ("en", "de", "es", "it", "la", "sv")
GOLD = tuple(f"stats/{part}stats_groupings.csv" for part in ("semeval/", "opt/", ""))
SPANS = ("indexes_target_token", "indexes_target")  # the column's name, today and in older releases


def read(language: str, *, path: str | None) -> tuple[ChangeTarget, ...]:
    """The targets of a language, by lemma, from a folder `dwug_<language>`.

    CorpusError when it is absent, a target has no gold score, two targets differ in part of speech alone, or a use
    has not its target at the given place.
    """
    name = f"dwug_{language}"
    root = found(
        f"DWUG ({language})",
        (name, f"dwug/{name}"),
        path=path,
        holds=f"{name}/data/<lemma>/uses.csv",
        source="https://www.ims.uni-stuttgart.de/data/wugs",
    )
    uses = {folder.parent.name: folder for folder in sorted(root.glob("data/*/uses.csv"))}
    if not uses:
        raise CorpusError(f"corpora: {root} has no target\n  accepted: data/<lemma>/uses.csv, one per target")
    _check_distinct(root, list(uses))
    change = _gold(root, list(uses))
    return tuple(_target(file, lemma, change[lemma]) for lemma, file in uses.items())


def _check_distinct(root: Path, names: list[str]) -> None:
    """Raise CorpusError for two targets of one lemma, as targets and gold scores are named by lemma."""
    of_lemma: dict[str, list[str]] = {}
    for name in names:
        of_lemma.setdefault(_bare(unicodedata.normalize("NFC", name)), []).append(name)
    for lemma, targets in of_lemma.items():
        if len(targets) > 1:
            raise CorpusError(
                f"corpora: {root}: {' and '.join(targets)} are both targets for the lemma {lemma}"
                "\n  accepted: one target for each lemma; move the folders of the others away"
            )


def _gold(root: Path, lemmas: list[str]) -> dict[str, float]:
    """Graded change of each target, from the first gold list that scores them all."""
    missing = {}
    for file in (root / name for name in GOLD):
        if not file.is_file():
            continue
        scores = {
            unicodedata.normalize("NFC", row["lemma"]): number_in(
                row, "change_graded", 1, f"corpora: {file}, line {number}"
            )
            for number, row in tab_separated(file, ("lemma", "change_graded"))
        }
        joined = {lemma: _joined(lemma, scores) for lemma in lemmas}
        missing[file] = [lemma for lemma, score in joined.items() if score is None]
        if not missing[file]:
            log.info("corpora: %s: graded change from %s", root.name, file.relative_to(root))
            return {lemma: score for lemma, score in joined.items() if score is not None}
    lacks = "".join(f"\n    {file.relative_to(root)} lacks {', '.join(names)}" for file, names in missing.items())
    raise CorpusError(f"corpora: {root} has no gold list for its targets\n  accepted: {', '.join(GOLD)}{lacks}")


def _joined(lemma: str, scores: dict[str, float]) -> float | None:
    """The score of this target, by its exact name, else without its part of speech (lane_nn, lane)."""
    name = unicodedata.normalize("NFC", lemma)
    return scores.get(name, scores.get(_bare(name)))


def _bare(lemma: str) -> str:
    stem, _, pos = lemma.rpartition("_")
    return stem if stem and len(pos) == 2 else lemma


def _target(file: Path, name: str, change: float) -> ChangeTarget:
    lemma = _bare(unicodedata.normalize("NFC", name))
    periods: dict[str, list[Occurrence]] = {"1": [], "2": []}
    for number, row in tab_separated(file, ("grouping", "context")):
        at = f"corpora: {file}, line {number}"
        if row["grouping"] not in periods:
            raise CorpusError(f"{at}: grouping = {row['grouping']!r}\n  accepted: 1, 2")
        periods[row["grouping"]].append(_use(row, lemma, at))
    for period, uses in periods.items():
        if not uses:
            raise CorpusError(f"corpora: {file} has no use of period {period}")
    return ChangeTarget(lemma, tuple(periods["1"]), tuple(periods["2"]), change)


def _use(row: dict[str, str], lemma: str, at: str) -> Occurrence:
    column = next((column for column in SPANS if column in row), None)
    if column is None:
        raise CorpusError(f"{at}: no column {' or '.join(SPANS)}; it has {', '.join(row)}")
    start, _, end = row[column].partition(":")
    if not (start.isdecimal() and end.isdecimal() and int(start) < int(end) <= len(row["context"])):
        raise CorpusError(
            f"{at}: {column} = {row[column]!r}\n"
            f"  accepted: start:end inside the context, which has {len(row['context'])} characters"
        )
    return Occurrence(row["context"], int(start), int(end), lemma)
