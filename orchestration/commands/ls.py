"""`semray ls`: list the studies of this folder, the runs in the ledger, and its size."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestration.commands.terminal import DONE, STUDIES, ledger_of, width_of
from orchestration.commands.waiting import doing
from orchestration.ledger.ledger import Ledger
from orchestration.ledger.notes import LaterFormat, LedgerError
from orchestration.report.layout import laid_out
from orchestration.study.errors import StudyError
from orchestration.study.names import CONFIRMED, amount, cut, listed, printable

ELSEWHERE = "its file is elsewhere"
QUESTION = 60  # characters of a question that are shown


def ls(options: Namespace) -> int:
    """Print studies with their questions, runs by family and backbone, and the size of the ledger."""
    ledger = ledger_of(options)
    with doing("looking through the ledger"):
        studies = _studies(ledger)
        runs, damaged, later = _runs(ledger)
        room = ledger.size()
    if options.json:
        held = [{"family": family, "backbone": backbone, "runs": count} for (family, backbone), count in runs]
        content = {"studies": studies, "runs": held, "damaged": damaged, "later": later, "bytes": room}
        print(json.dumps(content, indent=1))
        return DONE
    width = width_of(sys.stdout)
    rows = [(one["study"], _declared(one), cut(one["question"], QUESTION)) for one in studies]
    damaged += [one["study"] for one in studies if one["damaged"]]
    blocks = [laid_out(("study", "declared", "question"), rows, width)] if rows else []
    held_rows = [(family, backbone, str(count)) for (family, backbone), count in runs]
    blocks += [laid_out(("family", "backbone", "runs"), held_rows, width)] if held_rows else []
    blocks.append([f"{ledger.url}: {sum(count for _, count in runs)} runs, {in_bytes(room)}"])
    blocks[-1] += [f"damaged: {listed(damaged)}; what mends it:  semray audit"] if damaged else []
    blocks[-1] += [f"not read: {len(later)} that a later semray wrote; a newer semray reads them"] if later else []
    print("\n\n".join("\n".join(map(printable, block)) for block in blocks))
    return DONE


def _studies(ledger: Ledger) -> list[dict[str, Any]]:
    """The studies of this folder and of `studies`, and those with claims in the ledger, which may be damaged."""
    from orchestration.reading.document import read

    intact = {one.study: one.declared_at for one in ledger.declarations()}
    declared = dict.fromkeys(ledger.declared_studies(), "") | intact
    found = {}
    for file in sorted(file for folder in (Path(), STUDIES) for file in folder.glob("*.y*ml")):
        try:
            content = read(file).content
        except StudyError:
            continue  # `semray plan` says what is wrong with it
        if isinstance(content.get("question"), str):
            found[file.stem] = {"study": str(file), "question": " ".join(content["question"].split())}
    return [
        {
            **found.get(name, {"study": name, "question": _without_file(name)}),
            "declared": declared.get(name, ""),
            "damaged": declared.get(name) == "",
        }
        for name in dict.fromkeys((*found, *declared))
    ]


def _declared(study: Mapping[str, Any]) -> str:
    return "damaged" if study["damaged"] else study["declared"][:10] or "not run"


def _without_file(name: str) -> str:
    """What is told in place of the question of a study that has no file here. A confirmation has none anywhere."""
    searched = name.removesuffix(CONFIRMED)
    return ELSEWHERE if name == searched else f"the confirmation of a search of {searched}"


def _runs(ledger: Ledger) -> tuple[list[tuple[tuple[str, str], int]], list[str], list[str]]:
    """How many runs each (family, backbone) has, most first; the ids of damaged runs; those that a later semray
    wrote."""
    counts: Counter[tuple[str, str]] = Counter()
    damaged, later = [], []
    for run_id in sorted(ledger.ids()):
        try:
            run = ledger.training(run_id).run
        except LaterFormat:
            later.append(run_id)
        except LedgerError:
            damaged.append(run_id)
        else:
            counts[run.family, run.backbone] += 1
    return counts.most_common(), damaged, later


def in_bytes(count: float) -> str:
    """12.3 MB."""
    unit, *larger = ("bytes", "kB", "MB", "GB", "TB")
    while larger and round(count) >= 1000:
        count, unit, *larger = count / 1000, *larger
    return f"{amount(count)} {unit}"
