"""Sets small enough to read, as repositories of the hub, under the names that tasks of mteb have for theirs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Rows = Sequence[Mapping[str, Any]]

PAIRS = [
    ("a cat", "the cat", 4.5),
    ("a cat", "an old dog", 2.0),
    ("hot water", "cold water", 1.5),
    ("a large vessel", "a pot", 3.5),
    ("the river of stone", "fire", 0.0),
    ("a person runs", "the person is quick", 3.8),
    ("food for any animal", "drink for a person", 1.0),
    ("a house of wood", "a house made of wood", 5.0),
]
LANGUAGES = ("en-en", "en-de", "ko-ko", "ar-ar", "en-ar", "en-tr", "es-en", "es-es", "fr-en", "it-en", "nl-en")
CLASSES = [
    ("hot fire", 1),
    ("a hot drink", 1),
    ("hot food in a pot", 1),
    ("cold water", 0),
    ("a cold river", 0),
    ("cold stone", 0),
]
TESTED = [("a hot cup", 1), ("the cold house", 0), ("fire", 1), ("a hot cup", 1), ("river", 0)]
DOCUMENTS = {"d1": "a small cat", "d2": "the river", "d3": "a metal tool", "d4": "old dog", "q2": "a green plant"}
QUERIES = {"q1": "cat", "q2": "a green plant", "q3": "a tool for wood", "q4": "nobody asks"}
RELEVANT = [("q1", "d1", 2), ("q1", "d4", 1), ("q2", "d2", 1), ("q3", "d3", 1)]


def write(root: Path) -> Path:
    """Every set below under a folder that `data.path` or $SEMRAY_DATA may name."""
    graded = [{"sentence1": a, "sentence2": b, "score": gold} for a, b, gold in PAIRS]
    _repository(root / "mteb" / "sts12-sts", {"default": {"test": graded}})
    several = [{"lang": name, **row} for at, name in enumerate(LANGUAGES) for row in graded[: 8 - at % 4]]
    _repository(root / "mteb" / "sts17-crosslingual-sts", {"default": {"test": several}})
    columns = {"sent1": [a for a, _, _ in PAIRS], "sent2": [b for _, b, _ in PAIRS]}
    like = [{**columns, "labels": [int(gold > 3) for *_, gold in PAIRS]}]
    _repository(root / "sprintduplicatequestions-pairclassification", {"default": {"test": like}})
    train, test = ([{"text": text, "label": label} for text, label in rows] for rows in (CLASSES, TESTED))
    _repository(root / "mteb" / "banking77", {"default": {"train": train, "test": test}})
    several = [{"text": text, "label": [label, 2] if "a" in text else [label]} for text, label in CLASSES]
    _repository(root / "mteb" / "CEDRClassification", {"default": {"train": several, "test": several[:5]}})
    _repository(
        root / "mteb" / "NanoArguAnaRetrieval",
        {
            "corpus": {"train": [{"_id": name, "title": "", "text": text} for name, text in DOCUMENTS.items()]},
            "queries": {"train": [{"_id": name, "text": text} for name, text in QUERIES.items()]},
            "qrels": {"train": [{"query-id": q, "corpus-id": d, "score": s} for q, d, s in RELEVANT]},
        },
    )
    translated = [{"sentence1": a, "sentence2": b} for a, b, _ in PAIRS]
    _repository(root / "mteb" / "NorwegianCourtsBitextMining", {"default": {"test": translated}})
    clusters = [{"sentences": [text for text, _ in rows], "labels": [str(label) for _, label in rows]}
                for rows in (CLASSES, TESTED)]  # fmt: skip
    _repository(root / "mteb" / "twentynewsgroups-clustering", {"default": {"test": clusters}})
    _repository(
        root / "mteb" / "AskUbuntuDupQuestions",
        {
            "corpus": {"test": [{"_id": name, "title": "", "text": text} for name, text in DOCUMENTS.items()]},
            "queries": {"test": [{"_id": name, "text": text} for name, text in QUERIES.items()]},
            "qrels": {"test": [{"query-id": q, "corpus-id": d, "score": 1} for q, d, _ in RELEVANT]},
            "top_ranked": {"test": [{"query-id": q, "corpus-ids": ["d1", "d2", "d3", "d4"]} for q in QUERIES]},
        },
    )
    return root


def _repository(folder: Path, configs: Mapping[str, Mapping[str, Rows]]) -> None:
    folder.mkdir(parents=True)
    said = ["---", "configs:"]
    for config, splits in configs.items():
        said += [f"- config_name: {config}", "  data_files:"]
        for split, rows in splits.items():
            file = f"{config}-{split}.jsonl"
            said += [f"  - split: {split}", f"    path: {file}"]
            (folder / file).write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "README.md").write_text("\n".join([*said, "---", ""]))
