"""The commands that only read: status, report, why and verify."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from corpora.store.json_text import json_text
from evaluators.significance.judge import is_asked
from orchestration.commands.plan_words import next_seed
from orchestration.commands.publish import report_folder
from orchestration.commands.standing import beside, current_findings, for_report, to_report
from orchestration.commands.terminal import (
    DONE,
    SOME_FAILED,
    fitted,
    ledger_of,
    say,
    shown_path,
    study_file,
    study_of,
    width_of,
)
from orchestration.commands.waiting import DRAWING, doing
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import Plan
from orchestration.reading.read_study import read_study
from orchestration.study.errors import StudyError, written_to
from orchestration.study.names import cut, in_one_line, printable
from orchestration.study.writable import file_fits, folder_fits
from orchestration.verdicts.signature import signature_of

if TYPE_CHECKING:
    from orchestration.study.study import Study
    from orchestration.verdicts.findings import Findings
    from orchestration.verdicts.passport import Verification

TABLE = "table"  # the default form on stdout
FILES = ("out", "png", "passport", "sign")
WITHOUT_EFFECT = {  # option -> (its name, the options that have no effect beside it)
    "several studies": ("others", (*FILES, "methods", "format", "across", "price")),
    "--methods": ("methods", (*FILES, "json", "format", "across", "price")),
    "--json": ("json", ("format", "across")),
}


def status(options: Namespace) -> int:
    """Print which runs are done, failed or left."""
    from orchestration.plan.described import open_words
    from orchestration.plan.held import as_scored
    from orchestration.search.confirmed import confirmed_searches
    from orchestration.verdicts.growing import grown_and_next

    study, ledger = study_of(options), ledger_of(options)
    plan, earlier_tasks = as_scored(study, ledger)
    plan, wider = grown_and_next(plan, ledger)
    confirmed = confirmed_searches(study, ledger)
    say(*beside(earlier_tasks, confirmed))
    done, failed = {run.id for run in plan.done}, ledger.failed(plan.runs)
    rows = [
        {
            "id": run.id,
            "run": run.label,
            "status": "done" if run.id in done else "failed" if run.id in failed else "left",
            "problem": failed[run.id].error if run.id in failed else "",
            "confirmed": [asdict(one) for one in confirmed if one.arm == run.arm],
        }
        for run in plan.runs
    ]
    if options.json:
        print(json.dumps({"study": study.name, "runs": rows, "next_seed": next_seed(plan, wider)}, indent=1))
        return DONE
    for row in rows:
        problem = in_one_line(str(row["problem"]))
        print(printable(f"{row['status']:7} {row['id']}  {row['run']}  {problem}".rstrip()))
    counts = Counter(row["status"] for row in rows)
    print(f"{study.name}   {'   '.join(f'{word} {counts[word]}' for word in ('done', 'failed', 'left'))}")
    if more := open_words(plan, wider):
        print(printable(more))
    return DONE


def report(options: Namespace) -> int:
    """Print the verdicts from what the ledger holds, and write the report's files."""
    from orchestration.report.methods import methods
    from orchestration.verdicts.published import with_published

    check_outputs(options)
    if options.others:
        return _side_by_side(options)
    study, ledger = study_of(options), ledger_of(options)
    plan, findings = to_report(study, ledger)
    findings = replace(findings, price=options.price)
    if options.methods:
        print(fitted(methods(findings), width_of(sys.stdout)))
        return DONE
    show(options, with_published(findings, study))
    write_report(options, plan, ledger, findings, report_folder(options, study, ledger))
    return DONE


def check_outputs(options: Namespace) -> None:
    """Raise StudyError for outputs that cannot be written, before long work begins."""
    _check_together(options)
    if options.sign and not options.passport:
        raise StudyError("--sign: signs a passport\n  accepted: together with --passport FILE")
    if options.out:
        folder_fits(Path(options.out))
    if options.passport:
        file_fits(Path(options.passport))
    if options.sign:
        if not Path(options.sign).is_file():
            raise StudyError(f"--sign {options.sign}: no such file\n  accepted: an SSH key that you may use")
        file_fits(signature_of(Path(options.passport)))


def _check_together(options: Namespace) -> None:
    """Raise StudyError for options that have no effect beside others."""
    for option, (name, without) in WITHOUT_EFFECT.items():
        useless = [other for other in without if getattr(options, other, None) not in (None, False, TABLE)]
        if getattr(options, name, None) and useless:
            flags = ", ".join(f"--{other}" for other in useless)
            raise StudyError(f"{flags}: nothing comes of it with {option}\n  accepted: one without the other")


def write_report(options: Namespace, plan: Plan, ledger: Ledger, findings: Findings, folder: Path) -> None:
    """Write the files of a report and, if asked for, its passport and the signature."""
    from orchestration.report.forms import write
    from orchestration.verdicts.distributions import with_distributions
    from orchestration.verdicts.passport import write_passport
    from orchestration.verdicts.signature import sign

    with doing(DRAWING):
        findings = with_distributions(findings, ledger)
        page = write(for_report(findings, plan.study, ledger), folder, each_png=options.png)
    say(f"report  {shown_path(page)}")
    if options.passport:
        passport = Path(options.passport)
        with written_to(passport):
            digest = write_passport(passport, plan, ledger, findings)
        say(f"passport  {passport}", f"publish   sha256 {digest}")
        if options.sign:
            say(f"signature {sign(passport, Path(options.sign))}")


def _side_by_side(options: Namespace) -> int:
    """Print the verdicts of several studies in one table."""
    from orchestration.report.forms import as_json, side_by_side
    from orchestration.verdicts.published import with_published

    ledger, several, files = ledger_of(options), [], dict[str, Path]()
    for name in (options.study, *options.others):
        study = read_study(study_file(name))
        if study.name in files:
            both = f"{files[study.name]} and {study.path}: both are {study.name}"
            raise StudyError(f"{both}\n  accepted: studies of different names")
        files[study.name] = study.path
        _, findings = to_report(study, ledger)
        several.append(with_published(findings, study))
    if options.json:
        print(json.dumps({findings.study: as_json(findings) for findings in several}, indent=1))
    else:
        width = width_of(sys.stdout)
        print(fitted(side_by_side(several, width=width), width))
    return DONE


def why(options: Namespace) -> int:
    """Print the chain from a verdict to deltas, runs, items and files."""
    from orchestration.report.forms import as_json
    from orchestration.verdicts.why import chain

    ledger = ledger_of(options)
    study = _with_claim(options.claim, study_of(options), ledger)
    _, findings = current_findings(study, ledger, asked=options.claim)
    say(*findings.beside)
    print(json.dumps(as_json(findings), indent=1) if options.json else printable(chain(findings), keep="\n"))
    return DONE


def _with_claim(claim: str, study: Study, ledger: Ledger) -> Study:
    """The study itself; the confirmation of its search for a claim that only that one makes."""
    from orchestration.search.confirm import confirmation
    from orchestration.search.trials import searches_of

    if study.search is None or _makes(study, claim):
        return study
    searches = searches_of(study, ledger)
    try:
        confirmed = confirmation(study, searches)
    except StudyError:  # nothing to confirm
        return study
    return confirmed if _makes(confirmed, claim) else study


def _makes(study: Study, claim: str) -> bool:
    return any(is_asked(declared, claim) for declared in study.compare)


def verify(options: Namespace) -> int:
    """Recompute a passport's figures; check a published declaration and a signature if given."""
    from orchestration.verdicts.passport import Altered
    from orchestration.verdicts.passport import verify as check
    from orchestration.verdicts.signature import check_signature

    passport = Path(options.passport)
    if (options.signers is None) != (options.signed_by is None):
        raise StudyError("--signers, --signed-by: one without the other\n  accepted: both, or none")
    try:
        done = check(passport)
    except Altered as error:
        say(str(error))
        if options.json:
            print(json.dumps({"altered": str(error)}))
        return SOME_FAILED  # as for a figure that differs
    if options.signers is not None:
        check_signature(passport, Path(options.signers), options.signed_by)
    other_claims = options.declared is not None and options.declared.lower() != done.declared
    if options.json:
        print(json_text(asdict(done), indent=None))
    else:
        _print_check(done, options)
    if other_claims:
        say(f"declared  {done.declared or 'nothing'}, not {printable(options.declared)}, which was published")
    return SOME_FAILED if done.differences or other_claims else DONE


def _print_check(done: Verification, options: Namespace) -> None:
    for difference in done.differences:
        place, printed, again = (cut(printable(str(value)), 120) for value in difference)
        print(f"differs  {place}: printed {printed}, recomputed {again}")
    printed_rule, rule = done.rules
    if printed_rule != rule:
        print(f"judged by version {printed_rule or 'unknown'} of the rule when printed, by version {rule} here")
    wrong = f"{len(done.differences)} differ" if done.differences else "all agree"
    print(f"{done.study}: {done.figures} figures recomputed, {wrong}")
    total = sum(done.runs.values())
    counts = ", ".join(f"{count} {status}" for status, count in done.runs.items() if count)
    print(f"runs      {total} that the study asks for: {counts}")
    if done.unsealed:
        print(f"unsealed  {done.unsealed} runs, recorded before entries had seals")
    print(f"declared  {done.declared or 'nothing: its claims are exploratory'}")
    print(f"sha256    {done.sha256}")
    if options.signers is not None:
        print(f"signed by {printable(options.signed_by)}")


def show(options: Namespace, findings: Findings) -> None:
    """Print the verdicts in the requested form."""
    from orchestration.report import forms
    from orchestration.report.across import TAKES, summaries

    across = getattr(options, "across", False)
    if options.json:
        print(json.dumps(forms.as_json(findings), indent=1))
        say(*findings.beside)
    else:
        form = getattr(options, "format", TABLE)
        if form == TABLE:
            width = width_of(sys.stdout)
            print(fitted(forms.printed(findings, width=width, with_across=across), width))
        else:
            print({"markdown": forms.markdown, "latex": forms.latex}[form](findings))
        if across and not summaries(findings):
            say(f"across  no table over all tasks: it takes {TAKES}")
