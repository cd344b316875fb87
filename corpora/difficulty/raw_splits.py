"""Finds the pair tasks in a folder named in the study, $SEMRAY_DATA, or the hub, in this order.

A folder may hold the published text files (`STSBenchmark/sts-train.csv`, `MRPC/msr_paraphrase_train.txt`,
`paws/final/dev.tsv`, `QQP/train.tsv`, also under `senteval/`) or a data set in the hub's form, one folder per
task: what `datasets` saved to disk, or parquet, JSON-lines or CSV files named after their split.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from corpora.benchmarks.pairs import Pairs, numbered
from corpora.difficulty.similarity_sets import SETS, read_set
from corpora.difficulty.text_files import TEXT_FORMS
from corpora.sources.texts import is_text
from corpora.store.errors import CorpusError, kind_and_first_line
from corpora.store.hub import fetching, local_splits
from corpora.store.places import VARIABLE, roots


@dataclass(frozen=True)
class HubTask:
    """A data set on the hub, split into train, validation and test, and its columns; gold from 0 to 1."""

    name: str
    config: str | None
    a: str
    b: str
    gold: str


HUB = {
    "stsb": HubTask("sentence-transformers/stsb", None, "sentence1", "sentence2", "score"),
    "mrpc": HubTask("nyu-mll/glue", "mrpc", "sentence1", "sentence2", "label"),
    "qqp": HubTask("nyu-mll/glue", "qqp", "question1", "question2", "label"),
    "paws": HubTask("google-research-datasets/paws", "labeled_final", "sentence1", "sentence2", "label"),
}
BUILDERS = {".parquet": "parquet", ".jsonl": "json", ".json": "json", ".csv": "csv"}


def raw_splits(task: str, *, test: bool, path: str | None) -> tuple[Pairs, Pairs, str]:
    """Training rows, evaluation rows and their source, uncapped.

    Raises CorpusError naming every place that was looked at and what mends it.
    """
    if task in SETS:
        return _filled(*read_set(task, test=test, path=path))
    tried: list[str] = []
    for why, root in roots(path):
        read_text = TEXT_FORMS[task][1]
        if found := read_text(root, test) or _from_folder(task, root, test):
            return _filled(*found)
        tried.append(f"  {why} {root}: no {TEXT_FORMS[task][0]}, no data set folder {task}/")
    if task == "paws_offline":
        tried.append("  the hub: has no paws_offline, which is made of the published text files alone")
    else:
        try:
            return _filled(*_from_hub(HUB[task], test))
        except Exception as error:  # noqa: BLE001 - `datasets` raises many kinds; all mean "not available here"
            tried.append(f"  the hub: {HUB[task].name}: {kind_and_first_line(error)}")
    raise CorpusError(f"the pair task {task!r} was not found. Looked at:\n" + "\n".join(tried) + _mend(task))


def _filled(train: Pairs, evaluation: Pairs, source: str) -> tuple[Pairs, Pairs, str]:
    """The same, with distinct ids. CorpusError for an empty split."""
    for told, pairs in (("to train on", train), ("to evaluate", evaluation)):
        if not len(pairs):
            raise CorpusError(f"{source}: no row {told}\n  accepted: at least one in each split")
    return _with_distinct_ids(train), _with_distinct_ids(evaluation), source


def _with_distinct_ids(pairs: Pairs) -> Pairs:
    """The rows with repeated ids numbered: from repeated rows, or from joined files that each count from 0."""
    return replace(pairs, ids=tuple(numbered(pairs.ids)))


def _mend(task: str) -> str:
    wanted = f"\nMend it: export {VARIABLE}=FOLDER with FOLDER holding {TEXT_FORMS[task][0]}"
    if task not in HUB:
        return wanted
    command = fetching(HUB[task].name, HUB[task].config, task)
    return f"{wanted}, or, where the hub can be reached,\n  {command}"


def _from_folder(task: str, root: Path, test: bool) -> tuple[Pairs, Pairs, str] | None:
    """A data set in the hub's form under root/task."""
    folder = root / task
    if task not in HUB or not folder.is_dir():
        return None
    own = folder / (HUB[task].config or "")
    folder = own if own.is_dir() else folder  # a whole repository has a folder for each configuration
    if (folder / "dataset_dict.json").exists():
        return _of_hub_splits(HUB[task], local_splits(folder), test, str(folder))
    files = {
        split: [str(file) for file in sorted(folder.rglob(f"{split}*")) if file.suffix in BUILDERS]
        for split in ("train", "validation", "test")
    }
    files = {split: found for split, found in files.items() if found}
    if "train" not in files:
        return None
    kind = BUILDERS[Path(files["train"][0]).suffix]
    return _of_hub_splits(HUB[task], local_splits(folder, kind, data_files=files), test, str(folder))


def _from_hub(hub: HubTask, test: bool) -> tuple[Pairs, Pairs, str]:
    from datasets import load_dataset

    source = f"hub: {hub.name} {hub.config or ''}".strip()
    return _of_hub_splits(hub, load_dataset(hub.name, hub.config, trust_remote_code=False), test, source)


def _of_hub_splits(hub: HubTask, splits: Mapping[str, Any], test: bool, source: str) -> tuple[Pairs, Pairs, str]:
    used = ("train", "test" if test else "validation")
    for split in used:
        if split not in splits:
            raise CorpusError(f"{source} has no split {split!r}; it has {', '.join(sorted(splits))}")
    train, evaluation = (_of_hub(hub, splits[split], f"{source}, {split}") for split in used)
    return train, evaluation, source


def _of_hub(hub: HubTask, rows: Any, where: str) -> Pairs:
    """Columns of a hub split as Pairs. CorpusError for a cell that is no text, or rows without a gold value."""
    columns = (hub.a, hub.b, hub.gold)
    if lacking := [column for column in columns if column not in rows.column_names]:
        raise CorpusError(
            f"{where} lacks the column {lacking[0]!r}; it has {', '.join(rows.column_names)}\n"
            f"  accepted: {', '.join(columns)}"
        )
    a, b, given = (rows[column] for column in columns)
    for column, texts in ((hub.a, a), (hub.b, b)):
        for number, text in enumerate(texts, 1):
            if not is_text(text):
                raise CorpusError(f"{where}, row {number}: {column} = {text!r}\n  accepted: a text")
    gold = np.array([
        _gold(value, hub, f"{where}, row {number}") for number, value in enumerate(given, 1)
    ])  # fmt: skip
    ids = rows["idx"] if "idx" in rows.column_names else range(len(gold))
    return Pairs(tuple(str(i) for i in ids), tuple(a), tuple(b), gold)


def _gold(value: Any, hub: HubTask, where: str) -> float:
    """A similarity or label between 0 and 1; rows without a label are published with -1."""
    try:
        gold = float(value)
    except (TypeError, ValueError):
        gold = -1.0
    if not 0 <= gold <= 1:
        raise CorpusError(f"{where}: {hub.gold} = {value!r}\n  accepted: 0 to 1")
    return gold
