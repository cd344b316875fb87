"""The settings of an arm that is a command: its words, its time limit, and values of its placeholders."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Annotated, Any

from corpora.store.fields import Others, Positive, check_fields

Value = str | int | float | bool
GIVEN = ("seed", "out", "backbone")  # the placeholders that are filled in for every run
SEED = "SEMRAY_SEED"  # the seed in the environment of a command
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
COMMAND = 'a command as a list of words, such as [python, train.py, --seed, "{seed}", --out, "{out}"]'


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One arm. ValueError names a field that is refused.

    run: the words of a command; no shell reads them. {seed}, {out} and {backbone} are filled in for each run, and
    other placeholders from the arm's further fields, its `values`. Without `run` the arm is the backbone as it
    is. timeout: seconds after which the command is ended. train: false for an arm that does not depend on a seed.
    """

    train: bool = True
    run: Annotated[tuple[Value, ...], COMMAND] = ()  # none: the backbone as it is
    timeout: Positive | None = None  # ours: no limit, as commands take any time
    values: Annotated[Mapping[str, Value], Others(Value)] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields(self, "train")
        if not self.run and self.train:
            raise ValueError(f"run: {COMMAND}; or train: false for the backbone as it is")
        if self.run and not (isinstance(self.run[0], str) and self.run[0]):
            raise ValueError("run: a program as its first word")
        used = {name for word in self.run for name in placeholders(text_of(word))}
        for name in self.values:
            if name in GIVEN:
                raise ValueError(f"{name}: absent; {{{name}}} is filled in for every run")
            if self.run and name not in used:
                raise ValueError(
                    f"{name}: train, run, timeout, or a placeholder of `run`, which holds no {{{name}}}"
                )
        if lacking := sorted(used - {*GIVEN, *self.values}):
            raise ValueError(f"{lacking[0]}: text, a number, true or false for {{{lacking[0]}}} in `run`")
        if not self.train and "seed" in used:
            raise ValueError("run: no {seed} with train: false, which says that no seed moves the arm")


def defining(settings: Settings) -> dict[str, Any]:
    """The command, with the placeholders that differ from run to run left open."""
    if not settings.run:
        return {"train": settings.train, "run": []}
    known = {name: _escaped(text_of(value)) for name, value in settings.values.items()}
    return {
        "train": settings.train,
        "run": [
            _filled(text_of(word), known | {name: f"{{{name}}}" for name in GIVEN}, _escaped)
            for word in settings.run
        ],
    }


def command_of(settings: Settings, given: Mapping[str, str]) -> list[str]:
    """The words of the command, every placeholder filled in. given: a text for each of `GIVEN`."""
    values = {**{name: text_of(value) for name, value in settings.values.items()}, **given}
    return [_filled(text_of(word), values, str) for word in settings.run]


def literal_words(settings: Settings) -> list[str]:
    """The words that are the same in every run."""
    values = {name: text_of(value) for name, value in settings.values.items()}
    words = map(text_of, settings.run)
    return [_filled(word, values, str) for word in words if not set(GIVEN).intersection(placeholders(word))]


def names_seed(settings: Settings) -> bool:
    """Whether the command's words name the seed, as {seed} or as the environment's variable."""
    return any("seed" in placeholders(word) or SEED in word for word in map(text_of, settings.run))


def placeholders(word: str) -> Iterator[str]:
    """The names in single braces; doubled braces are plain text. ValueError for braces without a name."""
    try:
        parts = list(Formatter().parse(word))
    except ValueError:
        raise ValueError(_bad_braces(word)) from None
    for _, name, form, conversion in parts:
        if name is not None and (form or conversion or not NAME.fullmatch(name)):
            raise ValueError(_bad_braces(word))
        if name is not None:
            yield name


def text_of(value: Value) -> str:
    """A value as a word of a command: numbers as Python writes them, true and false as YAML does."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _filled(word: str, values: Mapping[str, str], literally: Any) -> str:
    return "".join(
        literally(literal) + (values[name] if name else "") for literal, name, _, _ in Formatter().parse(word)
    )


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _bad_braces(word: str) -> str:
    return f"run: a name in braces, such as {{seed}}; {{{{ and }}}} stand for plain braces; not {word!r}"
