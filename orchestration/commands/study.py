"""What each word of the command line does. Every function takes the parsed options and returns the exit code."""

from __future__ import annotations

import json
import shutil
import sys
from argparse import Namespace
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from orchestration.commands.cli import DONE, SOME_FAILED
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import Plan, extend, gather_facts, prepare
from orchestration.plan.plan import plan as make_plan
from orchestration.reading.read_study import read_study
from orchestration.study.errors import StudyError
from orchestration.study.study import Study

if TYPE_CHECKING:
    from orchestration.tracking.sync import SyncReport
    from orchestration.verdicts.findings import Findings
    from trainers.engine.world import Precision


def run(options: Namespace) -> int:
    """Train what the ledger lacks, judge, report, track."""
    study = study_of(options)
    if study.search is not None:
        say(f"the study's arms as they are; its search:  semray search {study.path}")
    ledger = Ledger(options.ledger)
    findings, code = carry_out(study, ledger)
    _show(options, findings)
    publish(findings, ledger, report_folder(options, study, ledger), options.mlflow)
    return code


def carry_out(study: Study, ledger: Ledger) -> tuple[Findings, int]:
    """Train what the ledger lacks of a study, and judge; returns the findings and the exit code."""
    from orchestration.verdicts.find import declare, find

    with ledger.drive(study.name) as adopted:
        if adopted:
            say(f"taken over from an earlier driver: {len(adopted)} finished runs")
        plan = _plan(study, ledger)
        say(_described(plan, ledger))
        if plan.left:
            prepare(study)
        declare(study, plan.runs, ledger)
        given_up: set[str] = set()
        stopped = _train(plan, ledger, given_up)
        findings = find(study, plan.runs, ledger)
        while not stopped and (wider := _with_another_seed(plan, findings)) is not None:
            plan = wider
            say(f"still open: {_open_claims(findings)}; seed {plan.runs[-1].seed} for their arms")
            stopped = _train(plan, ledger, given_up)
            findings = find(study, plan.runs, ledger)
    unfinished = stopped or findings.with_status("failed") or findings.with_status("missing")
    return findings, SOME_FAILED if unfinished else DONE


def plan(options: Namespace) -> int:
    """Show what a run would do and what its seeds can show."""
    from orchestration.plan.reach import reachability

    study, ledger = study_of(options), Ledger(options.ledger)
    plan = _plan(study, ledger)
    if options.json:
        reaches = reachability(plan, _metrics(plan, ledger))
        runs = [
            {"id": r.id, "arm": r.arm, "backbone": r.backbone, "seed": r.seed, "done": r in plan.done}
            for r in plan.runs
        ]
        print(
            json.dumps(
                {"study": study.name, "runs": runs, "claims": [asdict(reach) for reach in reaches]}, indent=1
            )
        )
    else:
        print(_described(plan, ledger))
    return DONE


def report(options: Namespace) -> int:
    """Print the verdicts from what the ledger holds, and write the report's files."""
    from orchestration.report.forms import write
    from orchestration.verdicts.distributions import with_distributions
    from orchestration.verdicts.find import find
    from orchestration.verdicts.passport import write_passport

    study, ledger = study_of(options), Ledger(options.ledger)
    plan = _grown(_plan(study, ledger), ledger)
    findings = find(study, plan.runs, ledger)
    if not findings.with_status("finished"):
        raise StudyError(f"{ledger.url}: holds no finished run of {study.name}\n  next: semray run {study.path}")
    _show(options, findings)
    findings = with_distributions(findings, ledger)
    page = write(findings, report_folder(options, study, ledger))
    say(f"report  {page}")
    if options.passport:
        write_passport(Path(options.passport), study, plan.runs, ledger, findings)
        say(f"passport  {options.passport}")
    return DONE


def sync(options: Namespace) -> int:
    """Bring MLflow up to what the ledger holds."""
    from orchestration.verdicts.distributions import with_distributions
    from orchestration.verdicts.find import find

    study, ledger = study_of(options), Ledger(options.ledger)
    findings = find(study, _grown(_plan(study, ledger), ledger).runs, ledger)
    done = _sync(with_distributions(findings, ledger), ledger, options.mlflow)
    if options.json:
        print(json.dumps(asdict(done), default=str))
    return SOME_FAILED if done.problem else DONE


def status(options: Namespace) -> int:
    """Which runs are done, failed or left."""
    study, ledger = study_of(options), Ledger(options.ledger)
    plan = _grown(_plan(study, ledger), ledger)
    failed = ledger.failed()
    rows = [
        {
            "id": run.id,
            "run": run.label,
            "status": "done" if run in plan.done else "failed" if run.id in failed else "left",
            "problem": failed[run.id].error if run.id in failed else "",
        }
        for run in plan.runs
    ]
    if options.json:
        print(json.dumps(rows, indent=1))
        return DONE
    for row in rows:
        print(f"{row['status']:7} {row['id']}  {row['run']}  {row['problem']}".rstrip())
    return DONE


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


def why(options: Namespace) -> int:
    """The chain from a verdict to deltas, runs, items and files."""
    from orchestration.report.forms import as_json
    from orchestration.verdicts.find import find
    from orchestration.verdicts.why import chain

    study, ledger = study_of(options), Ledger(options.ledger)
    findings = find(study, _grown(_plan(study, ledger), ledger).runs, ledger)
    chosen = replace(findings, findings=tuple(f for f in findings.findings if f.verdict.claim == options.claim))
    if not chosen.findings:
        known = dict.fromkeys(comparison.claim for comparison in study.compare)
        raise StudyError(
            f"{study.path}: no claim {options.claim}\n  accepted: {', '.join(known) or 'none is declared'}"
        )
    print(json.dumps(as_json(chosen), indent=1) if options.json else chain(chosen))
    return DONE


def verify(options: Namespace) -> int:
    """Recompute a passport's figures."""
    from orchestration.verdicts.passport import verify as check

    done = check(Path(options.passport))
    if options.json:
        print(json.dumps(asdict(done), default=str))
    else:
        for place, printed, again in done.differences:
            print(f"differs  {place}: printed {printed}, recomputed {again}")
        wrong = f"{len(done.differences)} differ" if done.differences else "all agree"
        print(f"{done.study}: {done.figures} figures recomputed, {wrong}")
    return SOME_FAILED if done.differences else DONE


def doctor(options: Namespace) -> int:
    """Check this machine, or every node of a cluster."""
    from orchestration.machines.cluster_checks import cluster_checks
    from orchestration.machines.doctor import checks

    answers = cluster_checks(options.address, options.ledger) if options.address else checks(options.ledger)
    if options.json:
        print(json.dumps([asdict(answer) for answer in answers], indent=1))
    else:
        for answer in answers:
            print(f"{'ok' if answer.ok else 'MISSING':8}{answer.name:18}{answer.found}")
            if not answer.ok and answer.mend:
                print(f"{'':8}{answer.mend}")
    return DONE if all(answer.ok for answer in answers) else SOME_FAILED


def headroom(options: Namespace) -> int:
    """Baseline, spread of its errors and the signals that follow them, for every task and backbone."""
    from orchestration.families.headroom import headrooms, table
    from orchestration.families.registry import as_plain

    study = study_of(options)
    if study.family != "difficulty":
        raise StudyError(f"{study.path}: family = {study.family}\n  accepted: difficulty, for a look at headroom")
    gather_facts(study)
    prepare(study)
    found = {name: headrooms(as_plain(study.data), name) for name in study.backbones}
    if options.json:
        print(json.dumps({name: [asdict(one) for one in looks] for name, looks in found.items()}, indent=1))
    else:
        print("\n\n".join(f"{name}\n\n{table(looks)}" for name, looks in found.items()))
    return DONE


def set_aside(options: Namespace) -> int:
    """Move a damaged entry of the ledger away, so that its run is done again."""
    ledger = Ledger(options.ledger)
    print(f"moved to {ledger.set_aside(_only_run(ledger, options.run))}")
    return DONE


def study_of(options: Namespace) -> Study:
    """The study of a command line, with the lanes asked for there."""
    study = read_study(options.study)
    lanes = getattr(options, "lanes", None)
    return study if lanes is None else replace(study, resources=replace(study.resources, lanes=lanes))


def _plan(study: Study, ledger: Ledger) -> Plan:
    """The plan with what the ledger holds and how long those runs took.

    `precision: auto` is what this machine is best at, unless the ledger holds the study's runs in the other one:
    a report read on a laptop is about the runs of the cluster.
    """
    facts, held = gather_facts(study), ledger.ids()
    other: Precision = "fp32" if facts.precision == "bf16" else "bf16"
    plans = [make_plan(study, known, held) for known in (facts, replace(facts, precision=other))]
    plan = max(plans, key=lambda one: len(one.done))  # of equals the first: this machine's
    seconds = {run.id: sum(ledger.record(run.id).seconds.values()) for run in plan.done}
    return replace(plan, facts=replace(plan.facts, seconds=seconds))


def _grown(plan: Plan, ledger: Ledger) -> Plan:
    """The plan with the reserve seeds that a study until decided has come to: the same steps as in `run`."""
    from orchestration.verdicts.find import find

    touched = plan.finished | ledger.failed().keys()
    while plan.study.seeds.reserve:
        wider = _with_another_seed(plan, find(plan.study, plan.runs, ledger))
        if wider is None or not any(run.id in touched for run in wider.runs[len(plan.runs) :]):
            break
        plan = wider
    return plan


def _train(plan: Plan, ledger: Ledger, given_up: set[str]) -> bool:
    """Launch what the ledger lacks, except for runs given up before; True when asked to stop before the end."""
    left = replace(plan, finished=frozenset(ledger.ids() | given_up))
    if not left.jobs:
        return False
    from orchestration.families.registry import family
    from orchestration.lanes.cluster import cores
    from orchestration.lanes.launch import launch
    from orchestration.lanes.progress import Watch

    watch = Watch(len(left.left))
    threads = max(1, cores() // len(left.jobs)) if family(plan.study.family).stacked else 1
    try:
        outcome = launch(
            left.jobs,
            ledger=ledger,
            resources=plan.study.resources,
            on_event=watch,
            threads_per_lane=threads,
        )
    finally:
        watch.close()
    given_up |= outcome.failed.keys()
    return outcome.stopped


def _with_another_seed(plan: Plan, findings: Findings) -> Plan | None:
    """The plan with the next reserve seed for the arms of open comparisons; None when all is said."""
    from orchestration.verdicts.find import undecided_arms

    arms = undecided_arms(findings)
    spare = [seed for seed in plan.study.seeds.reserve if seed not in findings.seeds]
    if not arms or not spare:
        return None
    wider = extend(plan, spare[:1], arms)
    return wider if len(wider.runs) > len(plan.runs) else None


def _open_claims(findings: Findings) -> str:
    return ", ".join(f.verdict.claim for f in findings.findings if f.verdict.verdict == "undecided")


def _described(plan: Plan, ledger: Ledger) -> str:
    from orchestration.lanes.cluster import cores, named_address
    from orchestration.plan.reach import reachability
    from orchestration.plan.words import describe

    resources = plan.study.resources
    here = None if resources.gpus_per_run or named_address() else cores() // resources.workers_per_run
    lanes = min(resources.lanes or here or 1, len(plan.jobs) or 1)
    return describe(plan, reachability(plan, _metrics(plan, ledger)), ledger.failed(), lanes)


def _metrics(plan: Plan, ledger: Ledger) -> dict[str, dict[str, float]]:
    """Run id -> metrics, for the runs that are done."""
    return {
        run.id: {name: metric.value for name, metric in ledger.record(run.id).metrics.items()} for run in plan.done
    }


def _show(options: Namespace, findings: Findings) -> None:
    """The verdicts on stdout, in the form asked for."""
    from orchestration.report import forms

    if options.json:
        print(json.dumps(forms.as_json(findings), indent=1))
    else:
        form = getattr(options, "format", "table")
        print({"table": forms.table, "markdown": forms.markdown, "latex": forms.latex}[form](findings))


def report_folder(options: Namespace, study: Study, ledger: Ledger) -> Path:
    """`--out`, else reports/<study> beside a local ledger or here."""
    if getattr(options, "out", None):
        return Path(options.out)
    beside = Path(ledger.url).parent if "://" not in ledger.url else Path()
    return beside / "reports" / study.name


def publish(findings: Findings, ledger: Ledger, folder: Path, uri: str | None) -> None:
    """Write the report's files, bring MLflow up to date, and link the one to the other."""
    from orchestration.report.forms import write
    from orchestration.verdicts.distributions import with_distributions

    findings = with_distributions(findings, ledger)
    page = write(findings, folder)
    if links := _sync(findings, ledger, uri).links:
        page = write(findings, folder, links)
    say(f"report  {page}")


def _sync(findings: Findings, ledger: Ledger, uri: str | None) -> SyncReport:
    """Mirror the findings in MLflow, and say what was done and how to look at it."""
    from orchestration.tracking.sync import default_uri, sync, ui_command

    uri = uri or default_uri(ledger.url)
    done = sync(findings, ledger, uri)
    say(done.line)
    say(f"look at it:  {ui_command(uri)}")
    return done


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


def say(*lines: str) -> None:
    """Lines for a person, on stderr."""
    print(*lines, sep="\n", file=sys.stderr, flush=True)
