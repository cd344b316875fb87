"""`semray init study`: write a first study file from a few answers, with comments."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import yaml

from corpora.store.fields import choices, field_types, others_in, plain_types, words
from evaluators.tasks import suite
from evaluators.tasks.task import is_dev
from orchestration.commands.terminal import DONE, say
from orchestration.families.contract import Family, FirstStudy
from orchestration.families.registry import family, names, package
from orchestration.reading.checking import Checker
from orchestration.reading.document import Document, Mistake, document_of
from orchestration.reading.read_study import read_study
from orchestration.study.errors import StudyError, written_to
from orchestration.study.names import NAME_WORDS, is_path_component, listed, names_accepted, typed
from orchestration.study.run import built
from orchestration.study.writable import file_fits

SHOWN = 30  # names in a question: all settings of a family, and the first of its scores


def init_study(options: Namespace) -> int:
    """Ask for what the command line does not give, write the file, and check it as `plan` would."""
    target = Path(options.path)
    if not is_path_component(target.stem):
        raise StudyError(f"init study {options.path}\n  accepted: {NAME_WORDS}")
    target = target if target.suffix else target.with_suffix(".yaml")
    if target.exists():
        raise StudyError(f"{target}: exists already\n  accepted: a new name")
    file_fits(target)
    name = _choose("family", "Which family?", list(names()), options.family)
    recipes = family(name)
    backbone = options.backbone or _ask("Which encoder does it start from?", "all-MiniLM-L6-v2")
    setting = _choose(
        "setting",
        "Which setting do you want to compare?",
        _settings(recipes.settings),
        options.setting,
        or_own=others_in(recipes.settings) is not None,
    )
    first = recipes.first_study(setting)
    values = _values(recipes.settings, setting, first, options)
    task_of = _metrics(recipes, first)
    metric = _choose("metric", "Which score decides?", list(task_of), options.metric)
    task = task_of[metric]
    text = study_text(name, backbone, setting, values, task, metric)
    with written_to(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    try:
        read_study(target)
    except StudyError as error:
        say(str(error))
        print(f"{target} is written, but for what is said above; then:  {typed('plan', target)}")
    else:
        print(f"{target} is written; next:  {typed('plan', target)}")
    return DONE


def study_text(
    family_name: str, backbone: str, setting: str, values: tuple[str, str], task: str, metric: str
) -> str:
    """The text of the file. values: of control and treatment, as YAML; setting "train": training against none."""
    control, treatment = values
    first = family(family_name).first_study(setting)
    beside = {name: _in_flow(value) for name, value in first.untrained.items()} if setting == "train" else {}
    shared = {name: value for name, value in first.train.items() if name != setting}
    data = _block("data", first, first.data, "an example: put your own in its place") if first.data else ""
    train = _block("train", first, shared, "what all arms share; what is not written has the family's default")
    what = (
        "training beat the backbone as it is"
        if setting == "train"
        else f"{setting} = {treatment} beat {setting} = {control}"
    )
    page = package(family_name) or f"docs/{family_name}.md"
    return f"""\
# The question in your own words; the verdicts below answer it. The study is called what this file is called.
question: {_flow(f"Does {what}?")}
family: {family_name}             # {page}: its objective, its data and its settings
backbones: [{_in_flow(backbone)}]    # a name of the hub or a folder; several are compared one by one
seeds: 8                          # paired: seeds 0 to 7 of both arms; {{start: 8, max: 24}} adds until decided
{data}{train}\
arms:                             # an arm is a recipe: a name, and what it sets beside `train:`
  control: {_arm({setting: control, **beside})}
  treatment: {_arm({setting: treatment})}
evaluate: [{_flow(task)}]         # the tasks; every trained model is scored on each
compare:                          # claims, written down before the first run so that they cannot be chosen later
  - claim: H1
    treatment: treatment
    control: control
    metric: {_flow(metric)}
    expect: better                # or worse; or equivalent or not_worse, with `margin: 0.01`
"""


def _arm(settings: Mapping[str, str]) -> str:
    """An arm on one line. settings: name -> its value as YAML."""
    return f"{{{', '.join(f'{_in_flow(name)}: {value}' for name, value in settings.items())}}}"


def _block(name: str, first: FirstStudy, values: Mapping[str, Any], comment: str) -> str:
    """A block of the file, with a commented line for each field. comment: on the block itself."""
    lines = [(f"{name}:" if values else f"{name}: {{}}", comment)]
    lines += [(f"  {field}: {_flow(value)}", first.told.get(field, "")) for field, value in values.items()]
    return "".join(f"{line:33} # {note}\n" if note else f"{line}\n" for line, note in lines)


def _settings(kind: type) -> list[str]:
    """The named settings that can be compared, which accept more than one value."""
    types, others = field_types(kind), others_in(kind)
    named = [field.name for field in fields(kind) if others is None or field.name != others[0]]
    return [name for name in named if not len(choices(types[name])) == 1 == len(plain_types(types[name]))]


def _metrics(recipes: Family, first: FirstStudy) -> dict[str, str]:
    """Metric that claims may name -> its task. Headlines come first, and the family's own tasks before others."""
    data = built(recipes.data, first.data)
    tasks = {name: one for name, one in recipes.tasks(data).items() if one.metrics and not is_dev(name)}
    field = suite.tasks(getattr(data, "path", None))
    ordered = sorted(tasks, key=lambda name: name in field)
    headlines = {tasks[name].headline: name for name in ordered}
    return headlines | {metric: name for name in ordered for metric in tasks[name].metrics}


def _values(kind: type, setting: str, first: FirstStudy, options: Namespace) -> tuple[str, str]:
    if setting == "train":
        return "false", "true"
    own, others = field_types(kind), others_in(kind)
    accepted = words(own[setting] if setting in own or others is None else others[1])
    default = _default(kind, setting, first)
    values = (
        _value("control", options.control, f"{setting} of the control ({accepted})?", default),
        _value("treatment", options.treatment, f"{setting} of the treatment ({accepted})?", ""),
    )
    for option, value in zip(("control", "treatment"), values, strict=True):
        if setting in own and getattr(options, option) is not None:
            _check_value(kind, option, setting, value)
    return values


class _Option(Document):
    """A setting with the value of an option; its path is the option, which messages name."""

    def message(self, mistake: Mistake) -> str:
        return mistake.words(f"{self.path}: ")


def _check_value(kind: type, option: str, setting: str, value: str) -> None:
    """Raise StudyError, before the file is written, if the setting does not accept this value of an option."""
    written = document_of(Path(f"--{option}"), f"{{{_in_flow(setting)}: {value}}}")
    check = Checker(_Option(**vars(written) | {"problems": ()}))  # how YAML misread it is told of the file
    check.block(kind, ())
    check.finish()


def _default(kind: type, setting: str, first: FirstStudy) -> str:
    """The default of a setting as YAML; "" for a setting that is no field."""
    if setting in first.train:
        return _flow(first.train[setting])
    for one in fields(kind):
        if one.name == setting:
            return _flow(one.default if one.default_factory is MISSING else one.default_factory())
    return ""


def _value(option: str, given: str | None, question: str, default: str) -> str:
    """A value as YAML, from the command line or, if not given there, from an answer.

    Where it can stand in a mapping as it was typed it does, so that reading the file tells what is misread: 010.
    """
    while not given:
        given = _ask(question, default)
    try:
        value = yaml.safe_load(given)
    except (yaml.YAMLError, ValueError):  # a date with a month 13, digits without a number
        raise StudyError(f"--{option} {given}\n  accepted: a value as YAML writes it") from None
    typed = given.strip()
    with suppress(yaml.YAMLError):
        if typed.isprintable() and yaml.safe_load(f"{{value: {typed}}}") == {"value": value}:
            return typed
    return _in_flow(value)


def _choose(option: str, question: str, known: Sequence[str], given: str | None, *, or_own: bool = False) -> str:
    """One of the known names, from the command line or asked for. or_own: other names are accepted too."""
    if given is not None:
        if given not in known and not (or_own and given):
            raise StudyError(f"--{option} {given}\n  accepted: {names_accepted(given, known)}")
        return given
    while True:
        offered = f"{listed(known, SHOWN)}, or a name of your own" if or_own else listed(known, SHOWN)
        answer = _ask(f"{question} ({offered})", known[0])
        if answer in known or or_own:
            return answer
        say(f"{answer}: accepted: {names_accepted(answer, known)}")


def _ask(question: str, default: str) -> str:
    """An answer from the terminal; the default for an empty line."""
    shown = f"{question} [{default}] " if default else f"{question} "
    print(shown, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise StudyError("the answers ended\n  accepted: an answer to each question, or options instead")
    return line.strip() or default


def _in_flow(value: Any) -> str:
    """A value as YAML that may stand in a list or mapping on one line, where a comma and a brace mean more."""
    return _flow([value])[1:-1]


def _flow(value: Any) -> str:
    """A value as YAML on one line."""
    kept = dict(value) if isinstance(value, Mapping) else value
    text: str = yaml.safe_dump(kept, default_flow_style=True, sort_keys=False, width=10**6, allow_unicode=True)
    return text.removesuffix("...\n").strip()
