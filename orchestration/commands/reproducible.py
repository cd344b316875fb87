"""`semray reproducible STUDY ARM`: run an arm twice at one seed, compare the scores, record the outcome."""

from __future__ import annotations

import json
import secrets
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from orchestration.commands.terminal import DONE, SOME_FAILED, ledger_of, say, study_of
from orchestration.commands.waiting import PREPARING, doing
from orchestration.commands.whole import require_whole
from orchestration.ledger.ledger import Ledger
from orchestration.ledger.repeats import Reproduction
from orchestration.plan.held import planned
from orchestration.plan.plan import prepare
from orchestration.study.errors import StudyError
from orchestration.study.run import Job, Run
from orchestration.study.study import Study
from orchestration.verdicts.growing import grown
from orchestration.verdicts.repeating import compared


def reproducible(options: Namespace) -> int:
    """Run an arm twice at one seed; exit code 0 if all scores are the same to 1e-6."""
    study, ledger = study_of(options), ledger_of(options)
    run = _chosen(study, ledger, options.arm, options.seed)
    with doing(PREPARING):
        prepare(study, run.precision)
    say(f"running {run.label} twice")
    with _trial_ledger(ledger) as first, _trial_ledger(ledger) as second:
        _run_in_each(study, run, (first, second))
        repeat = compared(run, first, second)
    ledger.keep_repeat(repeat)
    print(json.dumps(asdict(repeat)) if options.json else _in_words(repeat))
    return SOME_FAILED if repeat.outcome == "different" else DONE


def _chosen(study: Study, ledger: Ledger, arm: str, seed: int | None) -> Run:
    """The arm's run at this seed, or at its first if none is given."""
    if arm not in study.arms:
        raise StudyError(f"{study.path}: no arm {arm}\n  accepted: {', '.join(study.arms)}")
    runs = [run for run in grown(planned(study, ledger), ledger).runs if run.arm == arm]
    found = [run for run in runs if seed is None or run.seed == seed]
    if not found:
        seeds = ", ".join(str(run.seed) for run in runs if run.seed is not None) or "none, since it is not trained"
        raise StudyError(f"{study.path}: {arm} has no run with seed {seed}\n  accepted: {seeds}")
    return found[0]


def _run_in_each(study: Study, run: Run, ledgers: tuple[Ledger, Ledger]) -> None:
    from orchestration.lanes.cluster import connected, cores
    from orchestration.lanes.launch import launch
    from orchestration.lanes.progress import Watch

    watch = Watch(len(ledgers))
    with connected(max(cores(), study.resources.workers_per_run)):
        for trial in ledgers:
            with trial.drive(study.name):
                job = Job(runs=(run,))
                outcome = launch([job], ledger=trial, resources=study.resources, on_event=watch, warm=())
            watch.close()
            require_whole(outcome, [run])


@contextmanager
def _trial_ledger(ledger: Ledger) -> Iterator[Ledger]:
    """A temporary ledger inside this one's place, for runs that must not count as finished."""
    name = f".trial-{secrets.token_hex(4)}"
    try:
        yield Ledger(f"{ledger.url}/{name}")
    finally:
        ledger.remove_trial(name)


def _in_words(repeat: Reproduction) -> str:
    if repeat.outcome == "different":
        return (
            f"{repeat.words}\n"
            "  what helps: seed every generator, the order of the data and of its workers; and on a GPU\n"
            "  torch.use_deterministic_algorithms(True)"
        )
    return repeat.words
