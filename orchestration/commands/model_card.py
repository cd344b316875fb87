"""Writes the README.md of an exported model: its origin, its scores, how to check and cite it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from orchestration.families.opening import SENTENCE_TRANSFORMER

if TYPE_CHECKING:
    from orchestration.ledger.entries.record import Record
    from orchestration.verdicts.findings import Findings

FOR_SEMRAY = "These weights are of use to semray alone, which scores them on further tasks."
LIBRARIES = ("semray", "torch", "transformers", "sentence-transformers")


def model_card(record: Record, opened_by: str, findings: Findings | None = None) -> str:
    """Markdown with the front matter that model hubs read.

    opened_by: code that opens the folder, from the run's family; "" if none does. findings: of the study whose
    verdicts the card shows.
    """
    run = record.run
    seed = "not trained" if run.seed is None else f"seed {run.seed}"
    encoder = opened_by == SENTENCE_TRANSFORMER
    hubs = ["library_name: sentence-transformers", "pipeline_tag: sentence-similarity"] if encoder else []
    tags = "sentence-transformers, semray" if encoder else "semray"
    head = ["---", *hubs, f"base_model: {json.dumps(run.backbone)}", f"tags: [{tags}]", "---"]
    lines = [*head, "", f"# {run.arm}, {seed}", ""]
    lines += [f"A model of the family `{run.family}`, from `{run.backbone}`.", ""]
    lines += ["```python", opened_by.rstrip(), "```", ""] if opened_by else [FOR_SEMRAY, ""]
    lines += ["## How it was made", "", *_table(("setting", "value"), sorted(run.settings.items())), ""]
    lines += ["Data:", "", *_table(("data", "value"), sorted(run.data.items())), ""]
    lines += [f"Rows trained on: `{run.corpus_fingerprint or 'none'}`. Run `{run.id}` of the ledger.", ""]
    lines += ["## What it scored", ""]
    scores = [(name, f"{metric.value:.4f}") for name, metric in record.metrics.items()]
    lines += _table(("metric", "value"), scores) if scores else ["Nothing yet."]
    lines += ["", "One run of one seed: a comparison of recipes rests on many.", ""]
    if findings is not None:
        lines += [*_verdicts(run.arm, run.backbone, findings), ""]
    lines += ["## Versions", "", _versions(record), ""]
    return "\n".join(lines)


def _verdicts(arm: str, backbone: str, findings: Findings) -> list[str]:
    about = [f.verdict for f in findings.findings if (arm, backbone) in f.places]
    sentences = [f"- {v.claim}: {v.sentence}" for v in about]
    return [
        f"## What the study {findings.study} found",
        "",
        f"{findings.question}",
        "",
        *(sentences or ["No claim is about this recipe."]),
        "",
        f"Study `{findings.revision}`, claims declared as `{findings.declared or 'nothing'}`. To cite it, give "
        "the SHA-256 that `semray report --passport FILE` prints beside the passport: `semray verify FILE` "
        "recomputes every figure from it.",
    ]


def _versions(record: Record) -> str:
    libraries = record.env.get("libraries", {})
    named = [f"{name} {libraries[name]}" for name in LIBRARIES if name in libraries]
    return ", ".join([*named, f"Python {record.env.get('python', '?')}", str(record.env.get("cpu", ""))]) + "."


def _table(head: tuple[str, str], rows: Iterable[tuple[str, Any]]) -> list[str]:
    def line(cells: tuple[str, Any]) -> str:
        shown = (str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells)
        return f"| {' | '.join(shown)} |"

    return [line(head), "| --- | --- |", *map(line, rows)]
