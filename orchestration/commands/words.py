"""All commands with their options, in the groups of --help. Every command builds all of this."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from typing import Any

from orchestration.commands import judge_options, own
from orchestration.commands.accepted import a_figure, a_path, a_place, a_port, a_price, at_least_one
from orchestration.families.registry import COMMANDS, WITH_HEADROOM
from orchestration.ledger.place import usual_place

STUDY = "the study's YAML file, or its name where that lies in this folder or in studies/"
OF_FAMILIES = "of one family"


class CommandGroup:
    """Adds the commands of one group to the parser. summaries: command -> what it does."""

    def __init__(self, commands: Any) -> None:
        self._commands = commands
        self.summaries: dict[str, str] = {}

    def bare(self, name: str, summary: str) -> ArgumentParser:
        """Add a command without options."""
        self.summaries[name] = summary
        made: ArgumentParser = self._commands.add_parser(name, description=summary)
        return made

    def add(self, name: str, summary: str, *, study: bool = True, json: bool = True) -> ArgumentParser:
        """Add a command that reads a ledger, usually for one study."""
        command = self.bare(name, summary)
        if study:
            command.add_argument("study", metavar="STUDY", help=STUDY)
        command.add_argument(
            "--ledger",
            type=a_place,
            default=usual_place(),
            help="where finished runs are kept: a folder or an fsspec URL such as s3://bucket/ledger "
            "(default: $SEMRAY_LEDGER or ./ledger)",
        )
        if json:
            command.add_argument("--json", action="store_true", help="print JSON for programs")
        return command


def _add_begin(words: CommandGroup) -> None:
    kinds = words.bare(
        "init",
        "write a first study from a few answers, or a family of your own: init study FILE, init family NAME",
    ).add_subparsers(dest="what", required=True, metavar="KIND")
    made = "write a folder with a family of your own that works as it is"
    own_family = kinds.add_parser("family", help=made, description=made)
    own_family.add_argument("name", metavar="NAME", help="what studies call it: small letters, digits and _")
    own_family.add_argument("--path", type=a_path, metavar="FOLDER", help="to write (default: semray-NAME)")
    asked = "write a first study file; asks for what is not given by an option"
    study = kinds.add_parser("study", help=asked, description=asked)
    study.add_argument("path", type=a_path, metavar="FILE", help="the file to write, which also names the study")
    for option, meaning in (
        ("family", "the recipes' family"),
        ("backbone", "the encoder that training starts from"),
        ("setting", "what to compare; train: training against none"),
        ("control", "its value in the control"),
        ("treatment", "its value in the treatment"),
        ("metric", "the score that decides"),
    ):
        study.add_argument(f"--{option}", metavar="WORD", help=meaning)
    doctor = words.add(
        "doctor",
        "check this machine: packages, WordNet, encoder, GPUs, storage, memory, token, open doors, MLflow",
        study=False,
    )
    doctor.add_argument(
        "--address", metavar="ADDRESS", help="check every node of this cluster (on its head: auto)"
    )
    doctor.set_defaults(study=None)


def _add_before(words: CommandGroup) -> None:
    _price(
        words.add(
            "plan", "show the runs, what is reused, the time it takes and what the seeds can show; trains nothing"
        )
    )
    able = ", ".join(WITH_HEADROOM)
    headroom = words.add(
        "headroom", f"show what a study of the family {able} could gain, before training anything"
    )
    headroom.add_argument("--plot", type=a_path, metavar="FOLDER", help="also an SVG of it for every backbone")
    convert = words.add(
        "convert", "make safetensors of a backbone's pickled weights, which no run opens", study=False
    )
    convert.add_argument("model", metavar="MODEL", help="a folder, or a name of the hub")
    convert.add_argument(
        "--out",
        type=a_path,
        metavar="FOLDER",
        help="to write (default: MODEL-safetensors beside a folder, else in $SEMRAY_BACKBONES or ./backbones)",
    )


def _add_run(words: CommandGroup) -> None:
    _across(_add_lanes(words, "run", "train what the ledger lacks, then report the verdicts"))
    words.add("status", "show which runs are done, failed or left")
    repeat = words.add("reproducible", "run an arm twice at one seed and say whether it gives the same")
    repeat.add_argument("arm", metavar="ARM", help="the arm's name in the study")
    repeat.add_argument("--seed", type=int, help="one of the study's seeds (default: its first)")
    noise = words.add("noise", "say which random stream an arm's noise comes from, and how many seeds it asks for")
    noise.add_argument("arm", metavar="ARM", help="the arm's name in the study")
    noise.add_argument("--metric", metavar="METRIC", help="default: of the first claim on the arm")
    noise.add_argument("--backbone", metavar="NAME", help="default: the study's first")
    noise.add_argument(
        "--levels",
        type=int,
        choices=(3, 5, 7, 11),
        default=5,
        help="seeds of each stream; their square is trained",
    )
    _add_lanes(words, "search", "look for better settings on development data and selection seeds")
    _add_lanes(words, "confirm", "put the best settings of a search to the test, on fresh seeds and test data")


def _add_lanes(words: CommandGroup, name: str, summary: str) -> ArgumentParser:
    """Add a command that trains."""
    command = words.add(name, summary)
    command.add_argument("--lanes", type=at_least_one, help="runs at a time (default: one per core or GPU share)")
    _track(command)
    return command


def _price(command: ArgumentParser) -> None:
    command.add_argument(
        "--price",
        type=a_price,
        help="of a GPU's hour, or of a lane's: what study and verdicts cost",
    )


def _add_read(words: CommandGroup) -> None:
    report = words.add("report", "print the verdicts and write the report from what the ledger holds")
    report.add_argument("others", metavar="STUDY", nargs="*", help="more studies, to print side by side")
    report.add_argument("--format", choices=("table", "markdown", "latex"), default="table", help="form on stdout")
    report.add_argument("--methods", action="store_true", help="print the Methods paragraph of a paper instead")
    _across(report)
    _price(report)
    report.add_argument("--out", type=a_path, metavar="FOLDER", help="where report.html and the plots go")
    report.add_argument("--png", action="store_true", help="also a PNG of every comparison, seed by seed")
    report.add_argument("--passport", type=a_path, metavar="FILE", help="also write a file that `verify` checks")
    report.add_argument(
        "--sign",
        type=a_path,
        metavar="KEY",
        help="sign the passport with an SSH key, as FILE.sig beside it",
    )
    why = words.add("why", "print the chain from a verdict to deltas, runs, items and files")
    why.add_argument("claim", metavar="CLAIM", help="the claim's name in the study")
    gate = words.add("gate", "say by the exit code whether a claim is shown: 0 shown, 1 not shown, 3 open")
    gate.add_argument("claim", metavar="CLAIM", help="the claim's name in the study")
    gate.add_argument(
        "--budget",
        metavar="NAME",
        help="hold the claim against what is left of a false discovery rate of .05 over all claims asked by this "
        "name in the ledger, each after the answers to those before",
    )
    check = words.add(
        "check-claim", "say whether a published difference is believable, and what would settle it", study=False
    )
    check.add_argument(
        "control", metavar="CONTROL", type=a_figure, help="the published figure to beat: 76.25 or .7625"
    )
    check.add_argument("treatment", metavar="TREATMENT", type=a_figure, help="the figure that is to be better")
    check.add_argument("--seeds", type=at_least_one, default=1, help="seeds behind each figure (default: 1)")
    noise = check.add_mutually_exclusive_group()
    noise.add_argument(
        "--like", metavar="NAME", default="simcse-bert-base", help="whose spread over seeds to take"
    )
    noise.add_argument("--study", metavar="STUDY", help="take the spread from this study's own runs")
    check.add_argument("--metric", metavar="METRIC", help="with --study: of which metric")
    check.add_argument("--write", type=a_path, metavar="FILE", help="write a study file that would settle it")
    judge_options.add_to(words.bare("judge", judge_options.SUMMARY))
    ui = words.add(
        "ui", "open MLflow's pages of the study: a server on this machine alone, until Ctrl-C", json=False
    )
    _track(ui)
    ui.add_argument("--port", type=a_port, help="default: the first free one from 5000 on")


def _add_hand_on(words: CommandGroup) -> None:
    export = words.add(
        "export", "write a run's model to a folder, with a card that says what opens it", study=False
    )
    export.add_argument("run", metavar="RUN", help="an arm, with --seed; or the first digits of a run id")
    export.add_argument(
        "path", type=a_path, metavar="PATH", help="the folder to write; must not exist or be empty"
    )
    export.add_argument("--seed", type=int, help="the seed of the arm's run")
    export.add_argument(
        "--study",
        metavar="STUDY",
        help="the arm's study; its verdicts go into the model's card",
    )
    verify = words.bare("verify", "recompute every figure of a passport, without models or network")
    verify.add_argument("passport", metavar="FILE")
    verify.add_argument(
        "--declared",
        metavar="DIGEST",
        help="the digest of the claims, published before the first run",
    )
    verify.add_argument("--signers", metavar="FILE", help="allowed signers, as ssh-keygen(1) has them")
    verify.add_argument("--signed-by", metavar="NAME", help="who of them must have signed FILE.sig")
    verify.add_argument("--json", action="store_true", help="print JSON for programs")


def _add_look_after(words: CommandGroup) -> None:
    words.add("ls", "list the studies here, the runs in the ledger, and the room that they take", study=False)
    prune = words.add("prune", "give back the room that models take; says first what it would delete")
    prune.add_argument(
        "--models",
        choices=("best", "none"),
        help="keep each arm's best seed, or none (default: what the study says under resources)",
    )
    prune.add_argument("--yes", action="store_true", help="delete; without it nothing is")
    words.add("audit", "look whether every entry of the ledger is as its run wrote it", study=False)
    aside = words.add(
        "set-aside", "move a damaged ledger entry away, so that its run is done again", study=False, json=False
    )
    aside.add_argument("run", metavar="RUN", help="the run's id, or enough of its first digits")
    _track(words.add("sync", "bring MLflow up to what the ledger holds"))


def _add_of_families(words: CommandGroup) -> None:
    for word in COMMANDS:
        own.add_arguments(words.bare(word, own.command(word).SUMMARY), word)


def _track(command: ArgumentParser) -> None:
    command.add_argument(
        "--mlflow", metavar="URI", help="MLflow tracking URI (default: SQLite next to the ledger)"
    )


def _across(command: ArgumentParser) -> None:
    command.add_argument("--across", action="store_true", help="print the table across all tasks too")


GROUPS: Mapping[str, Callable[[CommandGroup], None]] = {  # heading in --help -> adds its commands
    "begin": _add_begin,
    "before a run": _add_before,
    "run": _add_run,
    "read what came of it": _add_read,
    "hand it on": _add_hand_on,
    "look after the ledger": _add_look_after,
    OF_FAMILIES: _add_of_families,
}


def add_all(commands: Any) -> dict[str, dict[str, str]]:
    """Add all commands with their options to a parser. Returns group -> command -> what it does."""
    groups = {}
    for group, add in GROUPS.items():
        words = CommandGroup(commands)
        add(words)
        groups[group] = words.summaries
    return groups
