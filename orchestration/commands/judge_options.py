"""The options of `semray judge`. They are in a module of their own as every command builds them."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import get_args

from corpora.elsewhere.table import READINGS
from evaluators.significance.expect import Expect
from orchestration.commands.accepted import a_path

SUMMARY = "verdicts on scores that were made elsewhere: a table of arm, seed, metric, item and score"


def add_to(judge: ArgumentParser) -> None:
    judge.add_argument(
        "table", metavar="TABLE", help="a .csv, .parquet, .json or .jsonl file, or a folder of MTEB's results"
    )
    judge.add_argument("--arm", metavar="COLUMN", help="of a CSV with a row for each run: what names the arm")
    judge.add_argument("--seed", metavar="COLUMN", help="of such a CSV: what names the seed")
    judge.add_argument("--treatment", metavar="ARM", help="the arm that is claimed to be so")
    judge.add_argument("--control", metavar="ARM", help="the arm that it is held against")
    judge.add_argument("--metric", metavar="METRIC", help="as the table calls it")
    judge.add_argument("--expect", choices=get_args(Expect), help="what is claimed (default: better)")
    judge.add_argument("--margin", type=float, help="with equivalent and not_worse")
    judge.add_argument("--min-effect", type=float, help="the smallest difference worth reporting")
    judge.add_argument("--claims", metavar="FILE", help="a YAML file with `compare:` as in a study")
    judge.add_argument(
        "--declared",
        metavar="DIGEST",
        help="the SHA-256 of the --claims file, as it was published before the scores were seen",
    )
    judge.add_argument(
        "--read",
        metavar="METRIC=READING",
        action="append",
        default=[],
        help=f"how a metric's rows become a figure: {', '.join(READINGS)}",
    )
    judge.add_argument("--out", type=a_path, metavar="FOLDER", help="default: judged/<name of the table>")
    judge.add_argument("--png", action="store_true", help="also a PNG of every comparison, seed by seed")
    judge.add_argument("--format", choices=("table", "markdown", "latex"), default="table", help="form on stdout")
    judge.add_argument("--passport", type=a_path, metavar="FILE", help="also write a file that `verify` checks")
    judge.add_argument("--sign", type=a_path, metavar="KEY", help="sign the passport with an SSH key")
    judge.add_argument("--json", action="store_true", help="print JSON for programs")
