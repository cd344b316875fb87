"""The `semray` command: words on the terminal. Results on stdout, progress on stderr.

Exit codes: 0 done, 1 some runs failed, 2 the request was wrong.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence

HOMES = {  # the file of each word
    "run": "run_study",
    "search": "search",
    "confirm": "search",
    "plan": "show",
    "status": "show",
    "report": "show",
    "why": "show",
    "verify": "show",
    "sync": "publish",
    "export": "entries",
    "set-aside": "entries",
    "audit": "entries",
    "gate": "gate",
    "check-claim": "check_claim",
    "prune": "prune",
    "headroom": "headroom",
    "reproducible": "reproducible",
    "doctor": "machine",
    "init": "init",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. Errors that are for people are printed without a traceback."""
    options = _parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):  # a letter the terminal's encoding lacks is shown as its escape
        sys.stdout.reconfigure(errors="backslashreplace")
    from orchestration.commands.terminal import DONE, SOME_FAILED, WRONG_REQUEST
    from orchestration.study.errors import StudyError
    from orchestration.study.names import printable

    word = options.command if options.command in HOMES else "own"
    home = importlib.import_module(f"orchestration.commands.{HOMES.get(word, word)}")
    try:
        return getattr(home, word.replace("-", "_"))(options)
    except StudyError as error:
        print(printable(str(error), keep="\n"), file=sys.stderr)
        return WRONG_REQUEST
    except KeyboardInterrupt:
        print("stopped; finished runs are kept, the same command goes on from here", file=sys.stderr)
        return SOME_FAILED
    except BrokenPipeError:  # `semray report | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: accepted: a whole number of at least 1")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    from orchestration.commands import own
    from orchestration.families.registry import COMMANDS

    parser = argparse.ArgumentParser(
        prog="semray",
        description="Is this sentence-encoder recipe really better? Studies over paired seeds, with verdicts.",
        epilog="Start with: semray plan studies/quickstart.yaml",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, summary: str, *, study: bool = True, json: bool = True) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=summary, description=summary)
        if study:
            command.add_argument("study", metavar="STUDY", help="the study's YAML file")
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
    add("plan", "show the runs, what is reused, the time it takes and what the seeds can show; trains nothing")
    report = add("report", "print the verdicts and write the report from what the ledger holds")
    report.add_argument("--format", choices=("table", "markdown", "latex"), default="table", help="form on stdout")
    report.add_argument("--out", metavar="FOLDER", default=None, help="where report.html and the plots go")
    report.add_argument("--passport", metavar="FILE", default=None, help="also write a file that `verify` checks")
    report.add_argument(
        "--sign", metavar="KEY", default=None, help="sign the passport with an SSH key, as FILE.sig beside it"
    )
    sync = add("sync", "bring MLflow up to what the ledger holds")
    track(sync)
    add("status", "show which runs are done, failed or left")
    export = add("export", "write a run's model to a folder that SentenceTransformer loads", study=False)
    export.add_argument("run", metavar="RUN", help="a run id, or enough of its first digits")
    export.add_argument("path", metavar="PATH", help="the folder to write; must not exist or be empty")
    aside = add(
        "set-aside", "move a damaged ledger entry away, so that its run is done again", study=False, json=False
    )
    aside.add_argument("run", metavar="RUN", help="the run's id, or enough of its first digits")
    add("audit", "look whether every entry of the ledger is as its run wrote it", study=False)
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
    verify = commands.add_parser("verify", help="recompute every figure of a passport, without models or network")
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
    for word in COMMANDS:
        summary = own.command(word).SUMMARY
        own.add_arguments(commands.add_parser(word, help=summary, description=summary), word)
    made = "write a folder with a family of one's own that works as it is"
    init = commands.add_parser("init", help=made, description=made)
    init.add_argument("what", choices=("family",))
    init.add_argument("name", metavar="NAME", help="what studies call it: small letters, digits and _")
    init.add_argument("--path", metavar="FOLDER", default=None, help="the folder to write (default: semray-NAME)")
    doctor = add(
        "doctor",
        "check this machine: packages, WordNet, encoder, GPUs, storage, memory, token, open doors, MLflow",
        study=False,
    )
    doctor.add_argument(
        "--address", metavar="ADDRESS", default=None, help="check every node of this cluster (on its head: auto)"
    )
    doctor.set_defaults(study=None)
    return parser


if __name__ == "__main__":
    sys.exit(main())
