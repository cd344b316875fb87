"""The README.md inside an exported model: where it comes from, what it scored, how to check and cite it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchestration.ledger.entry import Record
    from orchestration.verdicts.findings import Findings

LIBRARIES = ("semray", "torch", "transformers", "sentence-transformers")


def model_card(record: Record, findings: Findings | None = None) -> str:
    """Markdown with the front matter that model hubs read. findings: of the study whose verdicts it is to hold."""
    run = record.run
    seed = "not trained" if run.seed is None else f"seed {run.seed}"
    head = ["---", "library_name: sentence-transformers", "pipeline_tag: sentence-similarity"]
    head += [f"base_model: {json.dumps(run.backbone)}", "tags: [sentence-transformers, semray]", "---"]
    lines = [*head, "", f"# {run.arm}, {seed}", ""]
    lines += [f"A sentence encoder of the family `{run.family}`, from `{run.backbone}`.", ""]
    lines += ["```python", "from sentence_transformers import SentenceTransformer", ""]
    lines += ['SentenceTransformer("FOLDER").encode(["a vessel for hot drinks"])', "```", ""]
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
    said = [f"- {v.claim}: {v.sentence}" for v in about]
    return [
        f"## What the study {findings.study} found",
        "",
        f"{findings.question}",
        "",
        *(said or ["No claim is about this recipe."]),
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
