"""Commands on entries of a ledger: export a model, set an entry aside, audit all of them."""

from __future__ import annotations

import json
import shutil
from argparse import Namespace
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from orchestration.commands.model_card import model_card
from orchestration.commands.terminal import DONE, SOME_FAILED, ledger_of, study_of
from orchestration.families.registry import family
from orchestration.ledger.ledger import LATER, UNSEALED, Ledger
from orchestration.study.errors import StudyError, written_to
from orchestration.study.names import names_accepted
from orchestration.study.run import run_of
from orchestration.study.writable import check_empty, folder_fits
from orchestration.verdicts.find import find
from orchestration.verdicts.growing import as_grown

if TYPE_CHECKING:
    from orchestration.ledger.entries.record import Record

MANY = 12  # runs named in a message


def export(options: Namespace) -> int:
    """Copy a run's model to a folder of the user's, with a card that says what it is."""
    ledger, target = ledger_of(options), Path(options.path)
    folder_fits(target)
    run_id = _requested_run(options, ledger)
    check_empty(target)
    model = ledger.model_of(run_id)
    if model is None:
        raise StudyError(
            f"run {run_id} has no model in {ledger.url}: it left none, or `semray prune` gave it back"
        )
    record = ledger.training(run_id)
    recipes = family(record.run.family)
    with written_to(target), _draft_for(target) as draft:
        _copy(model, draft)
        card = _card(options, ledger, record, recipes.opened_by(draft))
        (draft / "README.md").write_text(card, encoding="utf-8")
    print(
        json.dumps({"run": run_id, "path": str(target)})
        if options.json
        else f"{record.run.label} ({run_id}) is in {target}, with a README.md on what it is"
    )
    return DONE


@contextmanager
def _draft_for(folder: Path) -> Iterator[Path]:
    """A temporary folder whose files move into `folder` at the end: a model with a part missing might open."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".draft-", dir=folder) as draft:  # beside it may be read-only
        yield Path(draft)
        for written in Path(draft).iterdir():
            written.rename(folder / written.name)


def _copy(model: Path, draft: Path) -> None:
    """Copy the files, and not who may write them: nobody may where a ledger is put away."""
    for file in sorted(model.rglob("*")):
        place = draft / file.relative_to(model)
        if file.is_dir():
            place.mkdir()
        else:
            shutil.copyfile(file, place)


def _requested_run(options: Namespace, ledger: Ledger) -> str:
    """The id of the requested run, given by its id, or by arm and seed, with a study if several have these."""
    ids = ledger.ids()
    if options.seed is None and options.study is None:
        return _starting_with(ids, options.run, ledger)
    if options.study is not None:
        study = study_of(options)
        runs = as_grown(study, ledger)[0].runs
    else:
        runs = tuple(ledger.training(run_id).run for run_id in sorted(ids))
    named = [run for run in runs if run.arm == options.run and options.seed in (run.seed, None) and run.id in ids]
    if len(named) == 1:
        return named[0].id
    wanted = options.run + ("" if options.seed is None else f", seed {options.seed}")
    if named:
        found = "\n".join(f"  {run.id}  {run.label}" for run in named[:MANY])
        raise StudyError(
            f"{wanted}: {len(named)} runs there\n{found}\n  accepted: an id of these, or --study FILE"
        )
    finished = [run for run in runs if run.id in ids]
    seeds = sorted({run.seed for run in finished if run.arm == options.run and run.seed is not None})
    arms = sorted({run.arm for run in finished})
    known = names_accepted(options.run, arms) if arms else "an arm of a finished run; there is none yet"
    if seeds:
        known = f"--seed {', '.join(map(str, seeds))}"
    elif options.run in arms:
        known = "a trained arm: of this one no seed leaves a model"
    raise StudyError(f"{wanted}: no such run in {ledger.url}\n  accepted: {known}")


def _card(options: Namespace, ledger: Ledger, record: Record, opened_by: str) -> str:
    if options.study is None:
        entries = sorted(entry for entry in ledger.entries() if run_of(entry) == record.id)
        found = ledger.record_of([record.id, *(entry for entry in entries if entry != record.id)])
        return model_card(found, opened_by)
    study = study_of(options)
    plan, _ = as_grown(study, ledger)
    findings = find(study, plan.runs, ledger)
    run = next((run for run in plan.runs if run.id == record.id), record.run)
    return model_card(ledger.record(run) if ledger.holds(run) else record, opened_by, findings)


def set_aside(options: Namespace) -> int:
    """Move a damaged entry of the ledger away, so that its run is done again."""
    ledger = ledger_of(options)
    print(f"moved to {ledger.set_aside(_starting_with(ledger.entries(), options.run, ledger))}")
    return DONE


def audit(options: Namespace) -> int:
    """Check every file of a ledger, including declarations, locks and searches; print each damaged one and how to
    mend it."""
    ledger = ledger_of(options)
    found = {entry: ledger.audit(entry) for entry in sorted(ledger.entries())}
    damaged = {entry: why for entry, why in found.items() if why not in (None, UNSEALED, LATER)}
    damaged |= ledger.damaged_notes()
    if not (found or ledger.notes()):  # such as a mistyped place
        raise StudyError(f"{ledger.url}: holds nothing of a study\n  accepted: the ledger of a study that ran")
    counts = {
        "sealed": sum(why is None for why in found.values()),
        "unsealed": sum(why == UNSEALED for why in found.values()),
        "later": sum(why == LATER for why in found.values()),
        "damaged": len(damaged),
    }
    if options.json:
        print(json.dumps({**counts, "entries": damaged}, indent=1))
    else:
        print("\n".join([*map(str, damaged.values()), _in_words(counts, ledger)]))
    return SOME_FAILED if damaged or counts["later"] else DONE


def _in_words(counts: Mapping[str, int], ledger: Ledger) -> str:
    sealed, unsealed, later, damaged = counts.values()
    before = f", {unsealed} readable but of before entries were sealed" if unsealed else ""
    newer = f"\nnot looked at: {later} that a later semray wrote; a newer semray reads them" if later else ""
    return f"{ledger.url}: {sealed} sealed entries as their runs wrote them{before}, {damaged} damaged{newer}"


def _starting_with(entries: Collection[str], start: str, ledger: Ledger) -> str:
    """The one entry whose name starts so; an entry of exactly this name comes first."""
    matching = [start] if start in entries else sorted(name for name in entries if name.startswith(start))
    if len(matching) != 1:
        found = f"{len(matching)} begin so: {', '.join(matching[:5])}" if matching else "none begins so"
        raise StudyError(f"{start}: {found} in {ledger.url}\n  accepted: an id that `semray status STUDY` shows")
    return matching[0]
