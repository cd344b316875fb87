"""`semray search` and `semray confirm`: find better settings on development data, then test them."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from orchestration.commands.publish import publish, report_folder
from orchestration.commands.run_study import run_study
from orchestration.commands.terminal import DONE, SOME_FAILED, ledger_of, say, study_of
from orchestration.commands.waiting import PREPARING, doing
from orchestration.ledger.place import at
from orchestration.plan.plan import prepare
from orchestration.study.names import listed, typed

if TYPE_CHECKING:
    from orchestration.search.trials import Selection
    from orchestration.study.study import Study


def search(options: Namespace) -> int:
    """Try points of the search space around each arm, and print the results."""
    from orchestration.search.drive import run_search
    from orchestration.search.outcome import has_ended
    from orchestration.search.shown import SearchWatch, as_json, begun_anew, next_step, table
    from orchestration.search.trials import Searched, searched, selections_in
    from orchestration.tracking.reaching import at_mlflow
    from orchestration.tracking.searches import track

    study, ledger = study_of(options), ledger_of(options)
    begun, stopped, found = False, False, list[Searched]()
    with ledger.drive(study.name):
        for selection in selections_in(study, ledger):
            result = searched(selection, ledger)
            if has_ended(result, ledger):
                say(f"search of {selection.arm}: nothing is left to run; this is what the ledger holds of it")
            elif not stopped:
                if lines := begun_anew(selection, ledger, found):
                    say(*lines)
                with doing(PREPARING):
                    wanted = selection.at_choices if begun else _at_all_choices(study, selection)
                    prepare(wanted, selection.facts.precision)
                watch, begun = SearchWatch(), True
                result, stopped = run_search(selection, ledger, on_event=watch.event, on_change=watch.changed)
            found.append(result)
    print(
        json.dumps([as_json(one) for one in found], indent=1) if options.json else "\n\n".join(map(table, found))
    )
    say(*track(found, ledger, options.mlflow))
    then = next_step(study, found, ledger.url, at_mlflow(options.mlflow))
    say("stopped; the same command goes on from here" if stopped else then)
    failed = any(trial.failed for one in found for trial in one.trials)
    return SOME_FAILED if stopped or failed else DONE


def confirm(options: Namespace) -> int:
    """Run the best points and the arms they started from on fresh seeds and test data; report the differences."""
    from orchestration.report import forms
    from orchestration.search.confirm import confirmation, not_repeated, optimism, undeclared
    from orchestration.search.confirmed import keep_confirmed
    from orchestration.search.shown import begun_anew
    from orchestration.search.trials import searches_of

    study, ledger = study_of(options), ledger_of(options)
    found = searches_of(study, ledger)
    say(*(line for one in found for line in begun_anew(one.selection, ledger, found)))
    chosen = confirmation(study, found)
    say(*(f"{claim}: {why}" for claim, why in not_repeated(study, found).items()))
    if names := undeclared(study, chosen, ledger):
        say(
            f"{listed(names)}: exploratory from here on, as the runs of a confirmation are seen; "
            f"{typed('run', study.path, *at(ledger.url))} first declares {'it' if len(names) == 1 else 'them'}"
        )
    findings, whole = run_study(chosen, ledger)
    if whole:
        keep_confirmed(found, findings, ledger)
    gaps = optimism(found, findings)
    if options.json:
        print(
            json.dumps({"verdicts": forms.as_json(findings), "optimism": [asdict(one) for one in gaps]}, indent=1)
        )
    else:
        print(forms.table(findings), *(one.line for one in gaps), sep="\n\n")
    publish(findings, chosen, ledger, report_folder(options, chosen, ledger), options.mlflow)
    if whole:
        claim = chosen.compare[0].claim
        say(f"next    {typed('why', options.study, claim, *at(ledger.url))}   what a verdict rests on")
    return DONE if whole else SOME_FAILED


def _at_all_choices(study: Study, selection: Selection) -> Study:
    """What all searches of a study may train, so that a mistake in the last is found before the first starts."""
    from orchestration.search.trials import selections

    searches = selections(study, selection.facts)
    arms = {name: settings for one in searches for name, settings in one.at_choices.arms.items()}
    return replace(selection.study, arms={**arms, **selection.at_choices.arms})
