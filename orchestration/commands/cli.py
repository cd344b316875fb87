"""The `semray` command: words on the terminal. Results on stdout, progress on stderr.

Exit codes: 0 done, 1 some runs failed or are left, 2 the request was wrong, 130 interrupted.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

STUDY = "the study's YAML file, or its name where that lies in this folder or in studies/"

HOMES = {  # the file of each word, in the order of a day's work
    "init": "init",
    "doctor": "machine",
    "plan": "show",
    "headroom": "headroom",
    "convert": "convert",
    "run": "run_study",
    "status": "show",
    "reproducible": "reproducible",
    "search": "search",
    "confirm": "search",
    "report": "show",
    "why": "show",
    "gate": "gate",
    "check-claim": "check_claim",
    "judge": "judge",
    "ui": "ui",
    "export": "entries",
    "verify": "show",
    "ls": "ls",
    "prune": "prune",
    "audit": "entries",
    "set-aside": "entries",
    "sync": "publish",
}
DAY = {  # what a word is for, as --help groups them
    "begin": ("init", "doctor"),
    "before a run": ("plan", "headroom", "convert"),
    "run": ("run", "status", "reproducible", "search", "confirm"),
    "read what came of it": ("report", "why", "gate", "check-claim", "judge", "ui"),
    "hand it on": ("export", "verify"),
    "look after the ledger": ("ls", "prune", "audit", "set-aside", "sync"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. Errors that are for people are printed without a traceback."""
    options = parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):  # a letter the terminal's encoding lacks is shown as its escape
        sys.stdout.reconfigure(errors="backslashreplace")
    from orchestration.commands.waiting import doing

    with doing("importing"):
        from orchestration.commands.terminal import DONE, INTERRUPTED, WRONG_REQUEST, fitted, width_of
        from orchestration.study.errors import StudyError
        from orchestration.study.names import printable

        word = options.command if options.command in HOMES else "own"
        home = importlib.import_module(f"orchestration.commands.{HOMES.get(word, word)}")
    try:
        return getattr(home, word.replace("-", "_"))(options)
    except StudyError as error:
        print(fitted(printable(str(error), keep="\n"), width_of(sys.stderr)), file=sys.stderr)
        return WRONG_REQUEST
    except KeyboardInterrupt:
        print("stopped; finished runs are kept, the same command goes on from here", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # `semray report | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: accepted: a whole number of at least 1")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """Every word of the command line with its options."""
    from orchestration.commands import judge_options, own
    from orchestration.families.registry import COMMANDS

    words = argparse.ArgumentParser(
        prog="semray",
        usage="semray COMMAND ...   (semray COMMAND --help says more)",
        description="Is this sentence-encoder recipe really better? Studies over paired seeds, with verdicts.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    words.add_argument("--version", action=_Version)
    commands = words.add_subparsers(dest="command", required=True, metavar="COMMAND", help=argparse.SUPPRESS)
    told: dict[str, str] = {}

    def add(name: str, summary: str, *, study: bool = True, json: bool = True) -> argparse.ArgumentParser:
        told[name] = summary
        command = commands.add_parser(name, description=summary)
        if study:
            command.add_argument("study", metavar="STUDY", help=STUDY)
        command.add_argument(
            "--ledger",
            default=os.environ.get("SEMRAY_LEDGER", "ledger"),
            help="where finished runs are kept: a folder or an fsspec URL such as s3://bucket/ledger "
            "(default: $SEMRAY_LEDGER or ./ledger)",
        )
        if json:
            command.add_argument("--json", action="store_true", help="print JSON for programs")
        return command

    def track(command: argparse.ArgumentParser) -> None:
        command.add_argument(
            "--mlflow", metavar="URI", help="MLflow tracking URI (default: SQLite next to the ledger)"
        )

    def across(command: argparse.ArgumentParser) -> None:
        command.add_argument("--across", action="store_true", help="print the table across all tasks too")

    _add_init(commands, told)
    for name, summary in (
        ("run", "train what the ledger lacks, then report the verdicts"),
        ("search", "look for better settings on development data and selection seeds"),
        ("confirm", "put the best settings of a search to the test, on fresh seeds and test data"),
    ):
        command = add(name, summary)
        command.add_argument(
            "--lanes", type=_at_least_one, default=None, help="runs at a time (default: one per core or GPU share)"
        )
        track(command)
        if name == "run":
            across(command)
    add("plan", "show the runs, what is reused, the time it takes and what the seeds can show; trains nothing")
    report = add("report", "print the verdicts and write the report from what the ledger holds")
    report.add_argument("others", metavar="STUDY", nargs="*", help="more studies, to print side by side")
    report.add_argument("--format", choices=("table", "markdown", "latex"), default="table", help="form on stdout")
    report.add_argument("--methods", action="store_true", help="print the Methods paragraph of a paper instead")
    across(report)
    report.add_argument("--out", metavar="FOLDER", default=None, help="where report.html and the plots go")
    report.add_argument("--png", action="store_true", help="also a PNG of every comparison, seed by seed")
    report.add_argument("--passport", metavar="FILE", default=None, help="also write a file that `verify` checks")
    report.add_argument(
        "--sign", metavar="KEY", default=None, help="sign the passport with an SSH key, as FILE.sig beside it"
    )
    ui = add("ui", "open MLflow's pages of the study: a server on this machine alone, until Ctrl-C", json=False)
    track(ui)
    ui.add_argument("--port", type=_at_least_one, default=None, help="default: the first free one from 5000 on")
    sync = add("sync", "bring MLflow up to what the ledger holds")
    track(sync)
    add("status", "show which runs are done, failed or left")
    export = add("export", "write a run's model to a folder, with a card that says what opens it", study=False)
    export.add_argument("run", metavar="RUN", help="an arm, with --seed; or the first digits of a run id")
    export.add_argument("path", metavar="PATH", help="the folder to write; must not exist or be empty")
    export.add_argument("--seed", type=int, default=None, help="the seed of the arm's run")
    export.add_argument(
        "--study",
        metavar="STUDY",
        default=None,
        help="the arm's study; its verdicts go into the model's card",
    )
    aside = add(
        "set-aside", "move a damaged ledger entry away, so that its run is done again", study=False, json=False
    )
    aside.add_argument("run", metavar="RUN", help="the run's id, or enough of its first digits")
    add("audit", "look whether every entry of the ledger is as its run wrote it", study=False)
    add("ls", "list the studies here, the runs in the ledger, and the room that they take", study=False)
    prune = add("prune", "give back the room that models take; says first what it would delete")
    prune.add_argument(
        "--models",
        choices=("best", "none"),
        default=None,
        help="keep each arm's best seed, or none (default: what the study says under resources)",
    )
    prune.add_argument("--yes", action="store_true", help="delete; without it nothing is")
    why = add("why", "print the chain from a verdict to deltas, runs, items and files")
    why.add_argument("claim", metavar="CLAIM", help="the claim's name in the study")
    check = add(
        "check-claim", "say whether a published difference is believable, and what would settle it", study=False
    )
    check.add_argument(
        "control", metavar="CONTROL", type=float, help="the published figure to beat: 76.25 or .7625"
    )
    check.add_argument("treatment", metavar="TREATMENT", type=float, help="the figure that is to be better")
    check.add_argument("--seeds", type=_at_least_one, default=1, help="seeds behind each figure (default: 1)")
    noise = check.add_mutually_exclusive_group()
    noise.add_argument(
        "--like", metavar="NAME", default="simcse-bert-base", help="whose spread over seeds to take"
    )
    noise.add_argument("--study", metavar="STUDY", default=None, help="take the spread from this study's own runs")
    check.add_argument("--metric", metavar="METRIC", default="", help="with --study: of which metric")
    check.add_argument("--write", metavar="FILE", default=None, help="write a study file that would settle it")
    gate = add("gate", "say by the exit code whether a claim is shown: 0 shown, 1 not shown, 3 open")
    gate.add_argument("claim", metavar="CLAIM", help="the claim's name in the study")
    gate.add_argument(
        "--budget",
        metavar="NAME",
        default="",
        help="hold the claim against what is left of a false discovery rate of .05 over all claims asked by this "
        "name in the ledger, each after the answers to those before",
    )
    repeat = add("reproducible", "run an arm twice at one seed and say whether it gives the same")
    repeat.add_argument("arm", metavar="ARM", help="the arm's name in the study")
    repeat.add_argument("--seed", type=int, default=None, help="one of the study's seeds (default: its first)")
    add("headroom", "show what a study could gain, before training anything")
    convert = add("convert", "make safetensors of a backbone's pickled weights, which no run opens", study=False)
    convert.add_argument("model", metavar="MODEL", help="a folder, or a name of the hub")
    convert.add_argument(
        "--out",
        metavar="FOLDER",
        default=None,
        help="to write (default: MODEL-safetensors beside a folder, else in $SEMRAY_BACKBONES or ./backbones)",
    )
    _add_verify(commands, told)
    told["judge"] = judge_options.SUMMARY
    judge_options.add_to(commands.add_parser("judge", description=judge_options.SUMMARY))
    for word in COMMANDS:
        told[word] = own.command(word).SUMMARY
        own.add_arguments(commands.add_parser(word, description=told[word]), word)
    doctor = add(
        "doctor",
        "check this machine: packages, WordNet, encoder, GPUs, storage, memory, token, open doors, MLflow",
        study=False,
    )
    doctor.add_argument(
        "--address", metavar="ADDRESS", default=None, help="check every node of this cluster (on its head: auto)"
    )
    doctor.set_defaults(study=None)
    words.epilog = _grouped(told)
    return words


def _add_init(commands: Any, told: dict[str, str]) -> None:
    told["init"] = (
        "write a first study from a few answers, or a family of one's own: init study FILE, init family NAME"
    )
    kinds = commands.add_parser("init", description=told["init"]).add_subparsers(
        dest="what", required=True, metavar="KIND"
    )
    made = "write a folder with a family of one's own that works as it is"
    own_family = kinds.add_parser("family", help=made, description=made)
    own_family.add_argument("name", metavar="NAME", help="what studies call it: small letters, digits and _")
    own_family.add_argument("--path", metavar="FOLDER", default=None, help="to write (default: semray-NAME)")
    asked = "write a first study file; asks for what is not given by an option"
    study = kinds.add_parser("study", help=asked, description=asked)
    study.add_argument("path", metavar="FILE", help="the file to write, which also names the study")
    for option, meaning in (
        ("family", "the recipes' family"),
        ("backbone", "the encoder that training starts from"),
        ("setting", "what to compare; train: training against none"),
        ("control", "its value in the control"),
        ("treatment", "its value in the treatment"),
        ("metric", "the score that decides"),
    ):
        study.add_argument(f"--{option}", metavar="WORD", default=None, help=meaning)


def _add_verify(commands: Any, told: dict[str, str]) -> None:
    told["verify"] = "recompute every figure of a passport, without models or network"
    verify = commands.add_parser("verify", description=told["verify"])
    verify.add_argument("passport", metavar="FILE")
    verify.add_argument(
        "--declared",
        metavar="DIGEST",
        default=None,
        help="the digest of the claims, published before the first run",
    )
    verify.add_argument(
        "--signers", metavar="FILE", default=None, help="allowed signers, as ssh-keygen(1) has them"
    )
    verify.add_argument("--signed-by", metavar="NAME", default=None, help="who of them must have signed FILE.sig")
    verify.add_argument("--json", action="store_true", help="print JSON for programs")


def _grouped(told: Mapping[str, str]) -> str:
    """Every word with what it does, in the order of a day's work, as wide as the terminal."""
    width = shutil.get_terminal_size().columns
    wide = max(map(len, told)) + 4
    lines = []
    everyday = {name for names in DAY.values() for name in names}
    groups = {**DAY, "of one family": tuple(name for name in told if name not in everyday)}
    for group, names in groups.items():
        lines.append(f"{group}:")
        for name in names:
            text = textwrap.wrap(told[name], max(width - wide - 2, 30))
            lines += [f"  {name:{wide - 2}}{text[0]}", *(f"{'':{wide}}{more}" for more in text[1:])]
    return "\n".join([*lines, "", "Start with: semray plan quickstart"])


class _Version(argparse.Action):
    """Looks the version up when it is asked for: to do so takes a while, and --help need not wait."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version")

    def __call__(self, parser: argparse.ArgumentParser, *rest: Any) -> None:
        from importlib.metadata import version

        print(f"semray {version('semray')}")
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())
