"""`semray init study`: a first study file from a few answers, with a comment at every line."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml

from corpora.store.fields import choices, field_types, others_in, plain_types, words
from evaluators.tasks import suite
from evaluators.tasks.task import is_dev
from orchestration.commands.terminal import DONE, say
from orchestration.families.contract import Family
from orchestration.families.registry import family, names, package
from orchestration.reading.read_study import read_study
from orchestration.study.errors import StudyError, written_to
from orchestration.study.names import NAME_WORDS, is_path_component, listed, names_accepted
from orchestration.study.writable import file_fits

SHOWN = 30  # names in a question: all settings of a family, and the first of its scores


def init_study(options: Namespace) -> int:
    """Ask what is not given on the command line, write the file, and read it as `plan` would."""
    target = Path(options.path)
    if not is_path_component(target.stem):
        raise StudyError(f"init study {options.path}\n  accepted: {NAME_WORDS}")
    target = target if target.suffix else target.with_suffix(".yaml")
    if target.exists():
        raise StudyError(f"{target}: exists already\n  accepted: a new name")
    file_fits(target)
    name = _choose("family", "Which family?", list(names()), options.family)
    of = family(name)
    backbone = options.backbone or _ask("Which encoder does it start from?", "all-MiniLM-L6-v2")
    setting = _choose("setting", "Which setting do you want to compare?", _settings(of.settings), options.setting)
    control, treatment = _values(of.settings, setting, options)
    task_of = _metrics(of)
    metric = _choose("metric", "Which score decides?", list(task_of), options.metric)
    task = task_of[metric]
    text = study_text(name, backbone, setting, (control, treatment), task, metric)
    with written_to(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    try:
        read_study(target)
    except StudyError as error:
        say(str(error))
        print(f"{target} is written, but for what is said above; then:  semray plan {target}")
    else:
        print(f"{target} is written; next:  semray plan {target}")
    return DONE


def study_text(
    family_name: str, backbone: str, setting: str, values: tuple[Any, Any], task: str, metric: str
) -> str:
    """The file. values: of the control and the treatment; setting "" compares training with none."""
    control, treatment = values
    arms = {"control": {setting: control}, "treatment": {setting: treatment}}
    said = {name: _flow(settings) for name, settings in arms.items()}
    what = (
        "training beat the backbone as it is"
        if setting == "train"
        else f"{setting} = {_flow(treatment)} beat {setting} = {_flow(control)}"
    )
    page = package(family_name) or f"docs/{family_name}.md"
    return f"""\
# The question in your own words; the verdicts below answer it. The study is called what this file is called.
question: {_flow(f"Does {what}?")}
family: {family_name}             # {page}: its objective, its data and its settings
backbones: [{_flow(backbone)}]    # a name of the hub or a folder; several are compared one by one
seeds: 8                          # paired: seeds 0 to 7 of both arms; {{start: 8, max: 24}} adds until decided
train: {{}}                         # what all arms share; what is not written has the family's default
arms:                             # an arm is a recipe: a name, and what it sets beside `train:`
  control: {said["control"]}
  treatment: {said["treatment"]}
evaluate: [{_flow(task)}]         # the tasks; every trained model is scored on each
compare:                          # claims, written down before the first run so that they cannot be chosen later
  - claim: H1
    treatment: treatment
    control: control
    metric: {_flow(metric)}
    expect: better                # or worse; or equivalent or not_worse, with `margin: 0.01`
"""


def _settings(kind: type) -> list[str]:
    """Settings that may be compared: those with a name of their own that accept more than one value."""
    types, others = field_types(kind), others_in(kind)
    named = [field.name for field in fields(kind) if others is None or field.name != others[0]]
    return [name for name in named if not len(choices(types[name])) == 1 == len(plain_types(types[name]))]


def _metrics(of: Family) -> dict[str, str]:
    """metric -> its task, of those that claims may name: the family's own first, headlines before the rest."""
    data = of.data()
    tasks = {name: one for name, one in of.tasks(data).items() if not is_dev(name)}
    field = suite.tasks(getattr(data, "path", None))
    ordered = sorted(tasks, key=lambda name: name in field)
    headlines = {tasks[name].headline: name for name in ordered}
    return headlines | {metric: name for name in ordered for metric in tasks[name].metrics}


def _values(kind: type, setting: str, options: Namespace) -> tuple[Any, Any]:
    if setting == "train":
        return False, True
    accepted = words(field_types(kind)[setting])
    default = _default(kind, setting)
    control = options.control or _ask(f"{setting} of the control ({accepted})?", _flow(default))
    treatment = options.treatment
    while not treatment:
        treatment = _ask(f"{setting} of the treatment ({accepted})?", "")
    return yaml.safe_load(control), yaml.safe_load(treatment)


def _default(kind: type, setting: str) -> Any:
    made = kind()
    return getattr(made, setting)


def _choose(option: str, question: str, known: Sequence[str], given: str | None) -> str:
    """One of some names: given on the command line, or asked for until it is one of them."""
    if given is not None:
        if given not in known:
            raise StudyError(f"--{option} {given}\n  accepted: {names_accepted(given, known)}")
        return given
    while True:
        answer = _ask(f"{question} ({listed(known, SHOWN)})", known[0])
        if answer in known:
            return answer
        say(f"{answer}: accepted: {names_accepted(answer, known)}")


def _ask(question: str, default: str) -> str:
    """A line from the terminal, or the default on an empty one."""
    shown = f"{question} [{default}] " if default else f"{question} "
    print(shown, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise StudyError("the answers ended\n  accepted: an answer to each question, or options instead")
    return line.strip() or default


def _flow(value: Any) -> str:
    """A value as YAML on one line."""
    kept = dict(value) if isinstance(value, Mapping) else value
    text: str = yaml.safe_dump(kept, default_flow_style=True, sort_keys=False, width=10**6, allow_unicode=True)
    return text.removesuffix("...\n").strip()
