"""How long `semray verify` takes on a study of 100 runs with item-level scores, and that it finds a changed digit.

python benchmarks/verify_passport.py
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tables import save

from evaluators.metrics.item_metrics import score_of_items
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import Facts, plan
from orchestration.reading.read_study import read_study
from orchestration.study.run import Result, Run, Scored, Trained
from orchestration.verdicts.declared import declare
from orchestration.verdicts.find import find
from orchestration.verdicts.passport import verify, write_passport

ITEMS, LIMIT_SECONDS = 1667, 5.0
STUDY = """
question: How long does a passport of 100 runs take to verify?
family: concept
backbones: [all-MiniLM-L6-v2]
seeds: 25
arms:
  A: {learning_rate: 1.0e-5}
  B: {learning_rate: 2.0e-5}
  C: {learning_rate: 3.0e-5}
  D: {learning_rate: 4.0e-5}
evaluate: [t2d, pair_auc]
compare:
  - {claim: H1, treatment: B, control: A, metric: t2d/recall@10, expect: better}
  - {claim: H2, treatment: C, control: A, metric: t2d/mrr, expect: better}
  - {claim: H3, treatment: D, control: A, metric: pair_auc, expect: better}
  - {claim: H4, treatment: D, control: C, metric: t2d/recall@10, expect: equivalent, margin: 0.02}
"""


def results(run: Run, place: int) -> Iterator[Result]:
    """Scores of made-up items: an effect of the arm, noise of the seed, noise of the items."""
    draw = np.random.default_rng([place, run.seed or 0])
    items = np.random.default_rng(0).normal(size=ITEMS)
    skill = items + 0.1 * place + draw.normal(0, 0.3, ITEMS)
    names = [f"item {number}" for number in range(ITEMS)]
    gold = (np.arange(ITEMS) % 2).astype(float)
    hits = {f"t2d/recall@{k}": (skill > 1 - k / 50).astype(float) for k in (1, 5, 10, 50)}
    scores = [score_of_items(name, "mean", names, names, values) for name, values in hits.items()]
    scores.append(score_of_items("t2d/mrr", "mean", names, names, 1 / (1 + np.exp(-skill))))
    scores.append(score_of_items("pair_auc", "auc", names, names, skill + gold, gold))
    yield Trained(run=run)
    for task in run.tasks:
        yield Scored(run=run, task=task, scores=[score for score in scores if score.metric.split("/")[0] == task])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hundred.yaml"
        path.write_text(STUDY)
        study, ledger = read_study(path), Ledger(Path(folder) / "ledger")
        backbones, tasks = dict.fromkeys(study.backbones, "b"), dict.fromkeys(study.evaluate, "t")
        asked = plan(study, Facts(backbones=backbones, corpus="c", tasks=tasks, precision="fp32"))
        runs = asked.runs
        declare(study, runs, ledger)
        for run in runs:
            attempt = ledger.lease(run.id)
            for result in results(run, list(study.arms).index(run.arm)):
                ledger.stage(result, attempt)
                ledger.commit(result.entry, attempt)
        passport = Path(folder) / "passport.zip"
        write_passport(passport, asked, ledger, find(study, runs, ledger))
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "orchestration", "verify", str(passport)], check=True)
        seconds, used = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        figures = verify(passport).figures
        size = passport.stat().st_size / 1e6
    rows = [
        {
            "runs": len(runs),
            "items per metric": ITEMS,
            "figures recomputed": figures,
            "passport, MB": round(size, 1),
            "seconds": round(seconds, 2),
            "of a core": round(used.ru_utime + used.ru_stime, 2),
        }
    ]
    notes = [
        "The whole command, interpreter and imports included; of a core: the processor time in it, which is what "
        "counts where the machine is shared.",
        f"Asked for: under {LIMIT_SECONDS:g} s on a machine of its own. Load of this one at the time: "
        f"{os.getloadavg()[0]:.0f}.",
    ]
    save("verify_passport", "Verifying a study's passport", rows, notes=notes)


if __name__ == "__main__":
    main()
