"""The command family: any script as an arm, scored by the file it writes or by the encoder it leaves."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import dropwhile
from os.path import exists, isfile  # those of Path end in an error for what is too long for a name
from pathlib import Path
from typing import TYPE_CHECKING

from corpora.command.corpus import fingerprint, load
from corpora.command.data import CommandData
from corpora.command.watched import covers
from corpora.store.fields import field_types
from evaluators.tasks.scores_file import NAME, tasks_of_script
from orchestration.families.contract import Family, FirstStudy, Trainer
from orchestration.families.encoder_checks import brought_tasks, tried
from orchestration.families.encoders import EncoderFamily
from orchestration.study.names import listed, meant
from orchestration.study.run import NO_BACKBONE
from trainers.command.process import PYTHON
from trainers.command.settings import GIVEN, SEED, Settings, command_of, defining, literal_words, names_seed

if TYPE_CHECKING:
    from orchestration.study.study import Study

ENVIRONMENT = ("pyvenv.cfg", "conda-meta")  # what lies beside the programs of one


@dataclass(frozen=True, kw_only=True)
class CommandFamily(EncoderFamily):
    """An encoder family whose own task reads a file: no vectors can be made up to try it with."""

    def prepare(self, study: Study, backbones: Sequence[Path]) -> None:
        table, brought = self.tasks(study.data), brought_tasks(study.data)
        for name in study.evaluate:
            if name in brought:
                tried(brought[name])
            else:
                table[name].benchmark.load()


def reads(settings: Settings) -> tuple[str, ...]:
    """A command may leave an encoder and a file of scores; a backbone has no such file."""
    return ("texts", NAME) if settings.run else ("texts",)


def check_script(study: Study) -> None:
    """The script that Python is told is there: where it lies on another machine alone, nothing could watch it."""
    for name, arm in study.arms.items():
        script = script_of(words_of(arm))
        if script and script not in study.data.watch and not isfile(script):  # what is watched is read
            there = [str(file) for file in Path(script).parent.glob("*.py")]
            near = meant(script, [*there, *study.data.watch])
            raise ValueError(
                f"arms.{name}.run: {script}: no such file in {Path.cwd()}\n"
                f"  accepted: a script that is there{near}; paths start where semray does"
            )


def words_of(arm: Settings) -> list[str]:
    """The words of its command, with what differs from run to run in braces."""
    return command_of(arm, {name: f"{{{name}}}" for name in GIVEN})


def script_of(words: Sequence[str]) -> str:
    """The script that Python is told, by a name that is the same in every run; "" where none is told so."""
    python = bool(words) and Path(words[0]).name.startswith("python")
    first = next(dropwhile(re.compile(r"-[^cm]").match, words[1:]), "")  # after -c and -m nothing is a script
    return first if python and re.fullmatch(r"[^-{][^{]*\.py", first) else ""


def check_watched(study: Study) -> None:
    """Every file that a command names is watched: else a changed script would count as the one that ran."""
    for name, arm in study.arms.items():
        programs = {str(word) for word in arm.run[:1] if installed(str(word))}
        for word in literal_words(arm):
            if word not in programs and isfile(word) and not covers(study.data.watch, Path(word)):
                raise ValueError(
                    f"arms.{name}.run: {word} is a file, and data.watch does not hold it\n"
                    f"  accepted: watch: [{', '.join((*study.data.watch, word))}], so that a change to it counts"
                )


def installed(program: str) -> bool:
    """Whether it is looked for in PATH, or lies there or in a Python environment: others are somebody's own."""
    if not program.startswith("/"):
        return "/" not in program
    folder = Path(program).parent.resolve()  # not of the program, which may be a link out of its environment
    if any(exists(folder.parent / sign) for sign in ENVIRONMENT):
        return True
    search = [Path(sys.executable).parent, *map(Path, filter(None, os.environ.get("PATH", "").split(os.pathsep)))]
    return folder in {place.resolve() for place in search}


def check_starts(study: Study) -> None:
    """An arm without a command is a backbone as it is."""
    bare = [name for name, arm in study.arms.items() if not arm.run]
    if bare and study.backbones == (NO_BACKBONE,):
        raise ValueError(f"arms.{bare[0]}: has no run, and the study no backbones\n  accepted: one of both")


def check_metrics(study: Study) -> None:
    """A scores file is read by what is declared of it."""
    if NAME in study.evaluate and not study.data.metrics:
        raise ValueError(
            f"evaluate: {NAME} without data.metrics\n"
            "  accepted: what the file holds, such as metrics: {accuracy: higher}"
        )


def check_resources(study: Study) -> None:
    """What DeepSpeed and its checkpoints are to do no script is told."""
    resources = study.resources
    if resources.deepspeed.zero_stage:
        raise ValueError("resources.deepspeed.zero_stage: accepted: 0: a script trains in its own way")
    if resources.checkpoint_every:
        raise ValueError("resources.checkpoint_every: accepted: 0: a script says itself when it saves")


def alike(study: Study) -> tuple[str, ...]:
    """Arms whose command is the same at all seeds. They are not refused: a script may read its environment."""
    arms = [name for name, arm in study.arms.items() if arm.train and not names_seed(arm)]
    if not arms or len(study.seeds.all) == 1:
        return ()
    return (f"{listed(arms)}: run names no {{seed}}: all seeds are alike unless the script reads {SEED}",)


def not_started(study: Study) -> list[str]:
    """Programs that do not start here. They are not refused: lanes may run on machines that have them."""
    arms: dict[str, list[str]] = {}
    for name, arm in study.arms.items():
        for program in words_of(arm)[:1]:
            if program not in PYTHON and "{" not in program and shutil.which(program) is None:
                arms.setdefault(program, []).append(name)
    return [
        f"{listed(names)}: run begins with {program}, which is no program here{meant(program, PYTHON)}"
        + ("; no shell reads its words" if "=" in program else "")
        for program, names in arms.items()
    ]


def slips(study: Study) -> list[str]:
    return [*alike(study), *not_started(study)]


def first_study(setting: str) -> FirstStudy:
    """Of a script that takes the setting as an option; or whose encoder is held against the backbone."""
    option = [] if setting in field_types(Settings) else [f"--{setting}", f"{{{setting}}}"]
    run = ["python", "train.py", "--model", "{backbone}", *option, "--seed", "{seed}", "--out", "{out}"]
    leaves = "the encoder {out}/model" if setting == "train" else "{out}/scores.csv"
    return FirstStudy(
        data={"watch": ["train.py"], **({} if setting == "train" else {"metrics": {"accuracy": "higher"}})},
        train={"run": run},
        untrained={"run": []},
        told={
            "watch": "your script, and the modules and data of yours that it reads",
            "metrics": "what its scores.csv holds, and whether higher or lower is better",
            "run": f"your command; it leaves {leaves}",
        },
    )


def trainer() -> Trainer:
    from trainers.command import training

    return training


FAMILY: Family = CommandFamily(
    settings=Settings,
    data=CommandData,
    defining=defining,
    fingerprint=fingerprint,
    load=load,
    trainer=trainer,
    own_tasks=lambda data: tasks_of_script(data.metrics),
    reads=reads,
    fits=lambda settings: bool(settings.run),
    keeps=lambda settings: bool(settings.run),
    told=lambda product: product.notes,
    first_checks=(check_script, check_watched, check_starts, check_metrics, check_resources),
    slips=slips,
    first_study=first_study,
    needs_backbone=False,
    streams=(),  # a script is given one seed
    imports=("torch",),  # the script is a process of its own
)
