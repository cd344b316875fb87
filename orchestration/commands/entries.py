"""The commands about the entries of a ledger: export a model, set one aside, look whether all are intact."""

from __future__ import annotations

import json
import shutil
from argparse import Namespace
from collections.abc import Collection, Mapping
from pathlib import Path

from orchestration.commands.terminal import DONE, SOME_FAILED
from orchestration.ledger.ledger import UNSEALED, Ledger
from orchestration.study.errors import StudyError


def export(options: Namespace) -> int:
    """Copy a run's model to a folder of the user's."""
    ledger, target = Ledger(options.ledger), Path(options.path)
    run_id = _only(ledger.ids(), options.run, ledger)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise StudyError(f"{target}: exists already\n  accepted: a folder that does not exist, or an empty one")
    model = ledger.model_of(run_id)
    if model is None:
        raise StudyError(f"run {run_id} left no model in {ledger.url}")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(model, target, dirs_exist_ok=True)
    label = ledger.training(run_id).run.label
    print(
        json.dumps({"run": run_id, "path": str(target)}) if options.json else f"{label} ({run_id}) is in {target}"
    )
    return DONE


def set_aside(options: Namespace) -> int:
    """Move a damaged entry of the ledger away, so that its run is done again."""
    ledger = Ledger(options.ledger)
    print(f"moved to {ledger.set_aside(_only(ledger.entries(), options.run, ledger))}")
    return DONE


def audit(options: Namespace) -> int:
    """Look at every file of a ledger, and at what was declared, held and searched; name each that is damaged, with
    what mends it."""
    ledger = Ledger(options.ledger)
    found = {entry: ledger.audit(entry) for entry in sorted(ledger.entries())}
    damaged = {entry: why for entry, why in found.items() if why not in (None, UNSEALED)}
    damaged |= ledger.damaged_notes()
    counts = {
        "sealed": sum(why is None for why in found.values()),
        "unsealed": sum(why == UNSEALED for why in found.values()),
        "damaged": len(damaged),
    }
    if options.json:
        print(json.dumps({**counts, "entries": damaged}, indent=1))
    else:
        print("\n".join([*map(str, damaged.values()), _in_words(counts, ledger)]))
    return SOME_FAILED if damaged else DONE


def _in_words(counts: Mapping[str, int], ledger: Ledger) -> str:
    sealed, unsealed, damaged = counts.values()
    before = f", {unsealed} readable but of before entries were sealed" if unsealed else ""
    return f"{ledger.url}: {sealed} sealed entries as their runs wrote them{before}, {damaged} damaged"


def _only(entries: Collection[str], start: str, ledger: Ledger) -> str:
    """The one of these whose name begins so; a whole name is that entry, whatever else begins with it."""
    matching = [start] if start in entries else sorted(name for name in entries if name.startswith(start))
    if len(matching) != 1:
        found = f"{len(matching)} begin so: {', '.join(matching[:5])}" if matching else "none begins so"
        raise StudyError(f"{start}: {found} in {ledger.url}\n  accepted: an id that `semray status STUDY` shows")
    return matching[0]
