"""Where the pair tasks are found: a folder named in the study, $SEMRAY_DATA, or the hub, in this order.

A folder may hold the published text files (`STSBenchmark/sts-train.csv`, `MRPC/msr_paraphrase_train.txt`,
`paws/final/dev.tsv`, `QQP/train.tsv`, also under `senteval/`) or a data set in the hub's form, one folder per
task: what `datasets` saved to disk, or parquet, JSON-lines or CSV files named after their split.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from corpora.benchmarks.pairs import Pairs
from corpora.difficulty.similarity_sets import SETS, read_set
from corpora.difficulty.text_files import MISSING_FORMS, TEXT_FORMS
from corpora.store.errors import CorpusError, kind_and_first_line
from corpora.store.places import VARIABLE, roots


@dataclass(frozen=True)
class HubTask:
    """A data set on the hub: its columns, the largest gold value, and the names of its splits."""

    name: str
    config: str | None
    a: str
    b: str
    gold: str
    largest: float
    splits: Mapping[str, str]


_GLUE = {"train": "train", "validation": "validation", "test": "test"}
HUB = {
    "stsb": HubTask("sentence-transformers/stsb", None, "sentence1", "sentence2", "score", 1.0, _GLUE),
    "mrpc": HubTask("nyu-mll/glue", "mrpc", "sentence1", "sentence2", "label", 1.0, _GLUE),
    "qqp": HubTask("nyu-mll/glue", "qqp", "question1", "question2", "label", 1.0, _GLUE),
    "paws": HubTask(
        "google-research-datasets/paws", "labeled_final", "sentence1", "sentence2", "label", 1.0, _GLUE
    ),
}
BUILDERS = {".parquet": "parquet", ".jsonl": "json", ".json": "json", ".csv": "csv"}


def raw_splits(task: str, *, test: bool, path: str | None) -> tuple[Pairs, Pairs, str]:
    """Training rows, evaluation rows and their source, uncapped.

    Raises CorpusError naming every place that was looked at and what mends it.
    """
    if task in SETS:
        return read_set(task, test=test, path=path)
    tried: list[str] = []
    for why, root in roots(path):
        for reader in (_from_text, _from_folder):
            found = reader(task, root, test)
            if found is not None:
                return found
        tried.append(f"  {why} {root}: no {MISSING_FORMS[task]}, no data set folder {task}/")
    if task == "paws_offline":
        tried.append("  the hub: has no paws_offline, which is made of the published text files alone")
    else:
        try:
            return _from_hub(HUB[task], test)
        except Exception as error:  # noqa: BLE001 - `datasets` raises many kinds; all mean "not available here"
            tried.append(f"  the hub: {HUB[task].name}: {kind_and_first_line(error)}")
    raise CorpusError(f"the pair task {task!r} was not found. Looked at:\n" + "\n".join(tried) + _mend(task))


def _mend(task: str) -> str:
    wanted = f"\nMend it: export {VARIABLE}=FOLDER with FOLDER holding {MISSING_FORMS[task]}"
    if task not in HUB:
        return wanted
    hub = HUB[task]
    name = f'"{hub.name}", "{hub.config}"' if hub.config else f'"{hub.name}"'
    return (
        f"{wanted}, or, where the hub can be reached,\n"
        f"  python -c 'from datasets import load_dataset; load_dataset({name}).save_to_disk(\"FOLDER/{task}\")'"
    )


def _from_text(task: str, root: Path, test: bool) -> tuple[Pairs, Pairs, str] | None:
    read: Callable[[Path, bool], tuple[Pairs, Pairs, str] | None] = TEXT_FORMS[task]
    return read(root, test)


def _from_folder(task: str, root: Path, test: bool) -> tuple[Pairs, Pairs, str] | None:
    """A data set in the hub's form under root/task."""
    folder = root / task
    if task not in HUB or not folder.is_dir():
        return None
    if (folder / "dataset_dict.json").exists():
        from datasets import load_from_disk

        return _of_hub_splits(HUB[task], load_from_disk(str(folder)), test, str(folder))
    files = {
        split: [str(file) for file in sorted(folder.rglob(f"{split}*")) if file.suffix in BUILDERS]
        for split in HUB[task].splits
    }
    files = {split: found for split, found in files.items() if found}
    if "train" not in files:
        return None
    from datasets import load_dataset

    kind = BUILDERS[Path(files["train"][0]).suffix]
    return _of_hub_splits(
        HUB[task], load_dataset(kind, data_files=files, trust_remote_code=False), test, str(folder)
    )


def _from_hub(hub: HubTask, test: bool) -> tuple[Pairs, Pairs, str]:
    from datasets import load_dataset

    source = f"hub: {hub.name} {hub.config or ''}".strip()
    return _of_hub_splits(hub, load_dataset(hub.name, hub.config, trust_remote_code=False), test, source)


def _of_hub_splits(hub: HubTask, splits: Mapping[str, Any], test: bool, source: str) -> tuple[Pairs, Pairs, str]:
    evaluated = hub.splits["test" if test else "validation"]
    for split in (hub.splits["train"], evaluated):
        if split not in splits:
            raise CorpusError(f"{source} has no split {split!r}; it has {', '.join(sorted(splits))}")
    return _of_hub(hub, splits[hub.splits["train"]]), _of_hub(hub, splits[evaluated]), source


def _of_hub(hub: HubTask, rows: Any) -> Pairs:
    """Columns of a hub split as Pairs; unlabelled rows (gold below 0) cannot be used."""
    gold = np.asarray(rows[hub.gold], np.float64) / hub.largest
    if len(gold) and (gold.min() < 0 or gold.max() > 1):
        raise CorpusError(f"{hub.name}: {hub.gold} runs from {gold.min():g} to {gold.max():g}; accepted: 0 to 1")
    ids = rows["idx"] if "idx" in rows.column_names else range(len(gold))
    return Pairs(tuple(str(i) for i in ids), tuple(rows[hub.a]), tuple(rows[hub.b]), gold)
