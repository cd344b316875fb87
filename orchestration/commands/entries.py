"""The commands about one entry of the ledger: export its model, set it aside."""

from __future__ import annotations

import json
import shutil
from argparse import Namespace
from pathlib import Path

from orchestration.commands.terminal import DONE
from orchestration.ledger.ledger import Ledger
from orchestration.study.errors import StudyError


def export(options: Namespace) -> int:
    """Copy a run's model to a folder of the user's."""
    ledger, target = Ledger(options.ledger), Path(options.path)
    run_id = _only_run(ledger, options.run)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise StudyError(f"{target}: exists already\n  accepted: a folder that does not exist, or an empty one")
    model = ledger.model(run_id)
    if model is None:
        raise StudyError(f"run {run_id} left no model in {ledger.url}")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(model, target, dirs_exist_ok=True)
    label = ledger.record(run_id).run.label
    print(
        json.dumps({"run": run_id, "path": str(target)}) if options.json else f"{label} ({run_id}) is in {target}"
    )
    return DONE


def set_aside(options: Namespace) -> int:
    """Move a damaged entry of the ledger away, so that its run is done again."""
    ledger = Ledger(options.ledger)
    print(f"moved to {ledger.set_aside(_only_run(ledger, options.run))}")
    return DONE


def _only_run(ledger: Ledger, start: str) -> str:
    """The one finished run whose id begins so."""
    matching = sorted(run_id for run_id in ledger.ids() if run_id.startswith(start))
    if len(matching) != 1:
        held = (
            f"{len(matching)} runs begin so: {', '.join(matching[:5])}"
            if matching
            else "no finished run begins so"
        )
        raise StudyError(
            f"run {start}: {held} in {ledger.url}\n  accepted: an id that `semray status STUDY` shows"
        )
    return matching[0]
