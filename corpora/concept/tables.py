"""A built concept corpus as files: Arrow tables that are mapped, not read, and one JSON per held-out split."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from corpora.concept.records import ConceptCorpus, EvalSplit, PairRows, RuleNegatives, StressRow
from corpora.store.arrow_files import mapped_columns, write_columns
from corpora.store.columns import Ragged, Texts

SPLITS = ("dev", "id", "hh")


@dataclass(frozen=True)
class BuiltCorpus:
    """What the builder hands over: texts in first-use order and rows that index them; no d2d with one source, no
    c2l without an ontology."""

    texts: list[str]
    syn: PairRows
    t2d: PairRows
    negatives: RuleNegatives
    splits: dict[str, EvalSplit]
    d2d: PairRows | None = None
    c2l: PairRows | None = None


def write_corpus(folder: Path, built: BuiltCorpus) -> None:
    """texts.arrow, <view>.arrow of each view with rows, negatives.arrow and <split>.json under `folder`."""
    write_columns(folder / "texts.arrow", {"text": pa.array(built.texts, pa.large_string())})
    for rows in filter(None, (built.syn, built.t2d, built.d2d, built.c2l)):
        columns = {"left": pa.array(rows.left), "right": pa.array(rows.right), "ids": _lists(rows.concept_ids)}
        write_columns(folder / f"{rows.view}.arrow", columns)
    lists = {"text": built.negatives.texts}
    lists |= {name: Ragged(getattr(built.negatives, name), lists["text"].offsets) for name in ("rule", "kind")}
    write_columns(folder / "negatives.arrow", {name: _lists(ragged) for name, ragged in lists.items()})
    for name, split in built.splits.items():
        (folder / f"{name}.json").write_text(json.dumps(asdict(split), ensure_ascii=False, indent=0))


def read_corpus(folder: Path, fingerprint: str, digests: Mapping[str, str]) -> ConceptCorpus:
    """The corpus written there; its arrays are views of the mapped files."""
    negatives = mapped_columns(folder / "negatives.arrow")
    return ConceptCorpus(
        texts=Texts(mapped_columns(folder / "texts.arrow")["text"]),
        syn=_pairs(folder, "syn"),
        t2d=_pairs(folder, "t2d"),
        d2d=_pairs(folder, "d2d") if (folder / "d2d.arrow").is_file() else None,
        c2l=_pairs(folder, "c2l") if (folder / "c2l.arrow").is_file() else None,
        negatives=RuleNegatives(
            _ragged(negatives["text"]), *(_ragged(negatives[name]).values for name in ("rule", "kind"))
        ),
        splits={name: _split(folder / f"{name}.json") for name in SPLITS},
        fingerprint=fingerprint,
        digests=dict(digests),
    )


def _pairs(folder: Path, view: str) -> PairRows:
    if not (folder / f"{view}.arrow").is_file():  # as of the synonyms of GCIDE alone
        return PairRows(view, np.zeros(0, np.int32), np.zeros(0, np.int32), Ragged.of(()))
    columns = mapped_columns(folder / f"{view}.arrow")
    return PairRows(view, columns["left"].to_numpy(), columns["right"].to_numpy(), _ragged(columns["ids"]))


def _split(path: Path) -> EvalSplit:
    held = json.loads(path.read_text())
    return EvalSplit(
        name=held["name"],
        terms=tuple(held["terms"]),
        definitions=tuple(held["definitions"]),
        gold=tuple(map(tuple, held["gold"])),
        concept_of_definition=tuple(map(tuple, held["concept_of_definition"])),
        stress=tuple(StressRow(**row) for row in held["stress"]),
    )


def _lists(ragged: Ragged) -> pa.LargeListArray:
    return pa.LargeListArray.from_arrays(pa.array(ragged.offsets), pa.array(ragged.values))


def _ragged(lists: pa.LargeListArray) -> Ragged:
    values: np.ndarray = lists.values.to_numpy()
    return Ragged(values, lists.offsets.to_numpy())
