"""A study under given names, read from YAML, finished in a ledger and judged: three arms, two seeds, three claims."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import yaml
from hypothesis import strategies as st

from evaluators.metrics.scores import Score
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import Facts, Plan, plan
from orchestration.reading.read_study import read_study
from orchestration.study.run import Run, Scored, Trained
from orchestration.verdicts.declared import declare
from orchestration.verdicts.find import find
from orchestration.verdicts.findings import Findings
from tests.results import put
from trainers.engine.world import Progress

RECALL, STRESS = "t2d/recall@10", "stress/negate/auc"
SEEDS = 2
# Signs that mean something to str.format, mathtext, Markdown, LaTeX, HTML, SQL, a shell, a path or a terminal.
SIGNS = (
    "{}$|[]()*_`\\<>&\"'%#~^!?,;:=+-–−@/. \n\t\x1b\x07\x00\u202e\u2028\u200d\ufeff\uffff\ud800aA1éßאب日\U0001f9ea"
)
ODD = (
    "{0}",
    "$x$",
    "[H1]",
    "*",
    "--",
    "H 1",
    "H-1",
    "B1 {lr 1e-3}",
    "a|b",
    "\\|",
    "</td>",
    "&amp;",
    "日本",
    "x" * 300,
)
names = st.one_of(st.sampled_from(ODD), st.text(SIGNS, max_size=12), st.text(max_size=12))


def write_study(path: Path, question: str, arms: Sequence[str], claims: Sequence[str]) -> Path:
    """A study of three arms, the last untrained, and three claims among them. It may be none that is accepted."""
    first, second, untrained = arms
    content = {
        "question": question,
        "family": "concept",
        "backbones": ["tiny"],
        "seeds": SEEDS,
        "arms": {first: {"hard_negatives": True}, second: {}, untrained: {"train": False}},
        "evaluate": ["t2d", "stress"],
        "compare": [
            {"claim": claims[0], "treatment": first, "control": untrained, "metric": RECALL, "expect": "better"},
            {"claim": claims[1], "treatment": first, "control": second, "metric": STRESS, "expect": "better"},
            {"claim": claims[2], "treatment": second, "control": first, "metric": RECALL, "expect": "equivalent", "margin": 0.05},
        ],
    }  # fmt: skip
    path.write_text(yaml.safe_dump(content, allow_unicode=True, sort_keys=False), encoding="utf-8")
    return path


def finished(path: Path, item: str = "item") -> tuple[Plan, Ledger, Findings]:
    """The plan of the study in a file, with every run in a ledger beside it. StudyError where it is none."""
    study, ledger = read_study(path), Ledger(path.parent / "ledger")
    tasks = dict.fromkeys(study.evaluate, "7" * 16)
    asked = plan(study, Facts(backbones={"tiny": "s" * 64}, corpus="c" * 64, tasks=tasks, precision="fp32"))
    declare(study, asked.runs, ledger)
    finish(ledger, asked.runs, item)
    return asked, ledger, find(study, asked.runs, ledger)


def finish(ledger: Ledger, runs: Iterable[Run], item: str = "item") -> None:
    """Put these runs into the ledger as a lane and the driver would."""
    for run in runs:
        put(ledger, run, _results(run, item))


def _results(run: Run, item: str) -> list[Trained | Scored]:
    seed = -1 if run.seed is None else run.seed
    values = np.clip(np.linspace(0.2, 0.8, 12) + 0.02 * seed + 0.1 * run.settings["hard_negatives"], 0, 1)
    recall = Score(
        metric=RECALL,
        value=float(values.mean()),
        aggregate="mean",
        item_ids=[f"{item} {number}" for number in range(len(values))],
        values=values,
    )
    curve = [Progress(step=step, steps=3, loss=1.0 / (step + 1), terms={}) for step in range(3)]
    scores = {"t2d": recall, "stress": Score(metric=STRESS, value=0.6 + 0.01 * seed)}
    return [
        Trained(run=run, curve=curve if run.seed is not None else ()),
        *(Scored(run=run, task=task, scores=[score]) for task, score in scores.items() if task in run.tasks),
    ]
