"""The command family: an arm is any script, scored by the file of scores or the encoder that it writes."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from os.path import exists, isfile  # Path's methods raise an error for a name that is too long
from pathlib import Path
from typing import TYPE_CHECKING

from corpora.command.corpus import fingerprint, load
from corpora.command.data import CommandData
from corpora.command.scores import FILES
from corpora.command.watched import covers
from corpora.store.errors import CorpusError
from corpora.store.fields import field_types
from evaluators.tasks.scores_file import NAME, tasks_of_script
from orchestration.families.contract import Family, FirstStudy, Trainer
from orchestration.families.encoder_checks import brought_tasks, tried
from orchestration.families.encoders import EncoderFamily
from orchestration.study.names import listed, meant
from orchestration.study.run import NO_BACKBONE
from trainers.command.process import PYTHON
from trainers.command.settings import GIVEN, SEED, Settings, command_of, defining, literal_words, names_seed
from trainers.encoders.backbones import check_precision
from trainers.errors import TrainerError

if TYPE_CHECKING:
    from orchestration.study.run import Job, Result, Run
    from orchestration.study.study import Study
    from trainers.engine.world import World

# what a task reads -> what a command leaves for it, and the files of which one shows that it did
LEFT = {"texts": ("an encoder", ("config.json",)), "scores": ("a file of scores", FILES)}
ENVIRONMENT = ("pyvenv.cfg", "conda-meta")  # mark the folder of a Python environment


@dataclass(frozen=True, kw_only=True)
class CommandFamily(EncoderFamily):
    """An encoder family whose own task reads a file, so that `prepare` cannot try it on made-up vectors."""

    def check_backbones(self, study: Study, backbones: Sequence[Path]) -> None:
        """Refuse what no arm without a script could be read in; a script may open what semray cannot."""
        for folder in () if all(arm.run for arm in study.arms.values()) else backbones:
            check_precision(folder, study.resources.precision)

    def check_kept(self, study: Study, kept: Callable[[], Sequence[tuple[Run, Collection[str]]]]) -> None:
        """Refuse a task that needs an encoder, or scores, where no finished command of an arm left it."""
        table, left_by = self.tasks(study.data), dict[tuple[str, str], set[str]]()
        for run, files in kept():
            for name in run.tasks if files else ():  # without files the command runs again
                left_by.setdefault((name, run.arm), set()).update(files)
        for (name, arm), files in left_by.items():
            needed, signs = LEFT[table[name].reads]
            if files.isdisjoint(signs):
                raise ValueError(
                    f"evaluate: {name} needs {needed}, and no finished run of {arm} left one\n  accepted: tasks "
                    "that read what they left; a script that leaves one; or, where nothing that data.watch holds "
                    "has changed, `semray set-aside RUN` for each, which has `semray run` start its command again"
                )

    def prepare(self, study: Study, backbones: Sequence[Path]) -> None:
        table, brought = self.tasks(study.data), brought_tasks(study.data)
        for name in study.evaluate:
            if name in brought:
                tried(brought[name])
            else:
                table[name].benchmark.load()

    def execute(self, job: Job, world: World) -> Iterator[Result]:
        try:
            yield from super().execute(job, world)
        except (CorpusError, TrainerError) as error:
            run = job.runs[0]  # the only one: commands do not train as a stack
            if run.id not in job.models or str(job.models[run.id]) not in str(error):
                raise
            raise type(error)(
                f"{error}\n  kept in the ledger as the command left it: once its cause is mended, "
                f"`semray set-aside {run.id}` has the next `semray run` start the command again"
            ) from error


def reads(settings: Settings) -> tuple[str, ...]:
    """A command may write an encoder and a file of scores; an arm without one is a backbone, without scores."""
    return ("texts", NAME) if settings.run else ("texts",)


def check_script(study: Study) -> None:
    """Raise ValueError for a Python script that does not exist here: it could not be watched for changes."""
    for name, arm in study.arms.items():
        script = script_of(words_of(arm))
        if script and script not in study.data.watch and not isfile(script):  # watched files are checked
            there = [str(file) for file in Path(script).parent.glob("*.py")]
            near = meant(script, [*there, *study.data.watch])
            raise ValueError(
                f"arms.{name}.run: {script}: no such file in {Path.cwd()}\n"
                f"  accepted: a script that is there{near}; paths start where semray does"
            )


def words_of(arm: Settings) -> list[str]:
    """The words of its command, with placeholders in braces for what differs between runs."""
    return command_of(arm, {name: f"{{{name}}}" for name in GIVEN})


def script_of(words: Sequence[str]) -> str:
    """The script in a Python command, if its name is the same in every run; otherwise ""."""
    python = bool(words) and Path(words[0]).name.startswith("python")
    first = next(dropwhile(re.compile(r"-[^cm]").match, words[1:]), "")  # with -c or -m there is no script
    return first if python and re.fullmatch(r"[^-{][^{]*\.py", first) else ""


def check_watched(study: Study) -> None:
    """Raise ValueError for a file in a command that is not watched: a changed script would count as unchanged."""
    for name, arm in study.arms.items():
        programs = {str(word) for word in arm.run[:1] if installed(str(word))}
        words = literal_words(arm)
        for file in (*words, *(word.partition("=")[2] for word in words)):  # --config=rates.yaml names one too
            if file not in programs and isfile(file) and not covers(study.data.watch, Path(file)):
                raise ValueError(
                    f"arms.{name}.run: {file} is a file, and data.watch does not hold it\n"
                    f"  accepted: watch: [{', '.join((*study.data.watch, file))}], so that a change to it counts"
                )


def installed(program: str) -> bool:
    """True for a program found by PATH, or in a folder of PATH or a Python environment: others are the user's."""
    if not program.startswith("/"):
        return "/" not in program
    folder = Path(program).parent.resolve()  # the program itself may be a link out of its environment
    if any(exists(folder.parent / sign) for sign in ENVIRONMENT):
        return True
    search = [Path(sys.executable).parent, *map(Path, filter(None, os.environ.get("PATH", "").split(os.pathsep)))]
    return folder in {place.resolve() for place in search}


def check_starts(study: Study) -> None:
    """Raise ValueError for an arm with neither a command nor a backbone."""
    bare = [name for name, arm in study.arms.items() if not arm.run]
    if bare and study.backbones == (NO_BACKBONE,):
        raise ValueError(f"arms.{bare[0]}: has no run, and the study no backbones\n  accepted: one of both")


def check_metrics(study: Study) -> None:
    """Raise ValueError if the scores file is evaluated without data.metrics."""
    if NAME in study.evaluate and not study.data.metrics:
        raise ValueError(
            f"evaluate: {NAME} without data.metrics\n"
            "  accepted: what the file holds, such as metrics: {accuracy: higher}"
        )


def check_resources(study: Study) -> None:
    """Raise ValueError for settings of DeepSpeed and checkpoints, which scripts do not get."""
    resources = study.resources
    if resources.deepspeed.zero_stage:
        raise ValueError(
            f"resources.deepspeed.zero_stage = {resources.deepspeed.zero_stage}\n"
            "  accepted: 0: a script trains in its own way"
        )
    if resources.checkpoint_every:
        raise ValueError(
            f"resources.checkpoint_every = {resources.checkpoint_every}\n"
            "  accepted: 0: a script says itself when it saves"
        )


def alike(study: Study) -> tuple[str, ...]:
    """Warn of arms whose command is the same at all seeds; the script may read the seed from its environment."""
    arms = [name for name, arm in study.arms.items() if arm.train and not names_seed(arm)]
    if not arms or len(study.seeds.all) == 1:
        return ()
    return (f"{listed(arms)}: run names no {{seed}}: all seeds are alike unless the script reads {SEED}",)


def not_started(study: Study) -> list[str]:
    """Warn of programs that are not on this machine; lanes may run on machines that have them."""
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
    """An example script that takes the setting as an option or, for "train", is compared with the backbone."""
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
