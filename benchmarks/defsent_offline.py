"""What definitions do to an encoder that is already tuned for sentences: words named, and Spearman on STS-B dev.

    SEMRAY_DATA=FOLDER python benchmarks/defsent_offline.py [ROW …] [--seeds 3] [--steps 300]

all-MiniLM-L6-v2, WordNet, learning rate 2^6 · 1e-6, 4,800 definitions in 300 steps, measured before and after on
1,000 development words and on STS-B dev (FOLDER/STS/STSBenchmark). ROW: numbers of rows, from 1, to measure
again; the others stay as they were measured before. A fitted head takes minutes the first time.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import mean, stdev
from typing import Any

from tables import RESULTS, save

from corpora.defsent.corpus import load
from corpora.defsent.data import DefsentData
from evaluators.tasks import sts
from evaluators.tasks.defsent import tasks
from evaluators.tasks.task import Task, evaluate
from trainers.defsent import mlm_fit
from trainers.defsent.encoder import WordEncoder
from trainers.defsent.settings import Settings
from trainers.defsent.training import fit
from trainers.encoders.backbones import resolve_backbone
from trainers.engine.world import World

NAME = "defsent_offline"
TRAINED = Settings(readout="mean", lr_exponent=6.0, max_length=128)
ROWS = {
    "fitted on all": replace(TRAINED, head_source="mlm_fit"),
    "fitted on 10,000": replace(TRAINED, head_source="mlm_fit", mlm_texts=10_000, mlm_epochs=4),
    "fitted on 10,000, cls": replace(
        TRAINED, head_source="mlm_fit", mlm_texts=10_000, mlm_epochs=4, readout="cls"
    ),
    "tied_only": replace(TRAINED, head_source="tied_only"),
    "random": replace(TRAINED, head_source="random"),
}
SHOWN = {"mrr_at_10": "dev/d2w/mrr_at_10", "top10": "dev/d2w/top10", "STS-B dev": "dev/sts/STS-B/spearman"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", type=int, metavar="ROW", default=list(range(1, len(ROWS) + 1)))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=300)
    options = parser.parse_args()
    mlm_fit.LEAST_RATIO = 0.0  # a study refuses a head as weak as that of 10,000 texts: here it is to be seen why
    measured_now = {list(ROWS)[number - 1] for number in options.rows}
    file = RESULTS / f"{NAME}.json"
    rows = {row["head"]: row for row in json.loads(file.read_text())["rows"]} if file.exists() else {}
    data = DefsentData(dev_definitions=1_000)
    measured = [tasks(data)["dev/d2w"], sts.tasks(None)["dev/sts/STS-B"]]
    for name in (name for name in ROWS if name in measured_now):
        rows[name] = measured_row(name, replace(ROWS[name], steps=options.steps), options.seeds, data, measured)
        save(
            NAME,
            "DefSent on all-MiniLM-L6-v2, by where the head is from",
            [rows[one] for one in ROWS if one in rows],
            [
                "After: mean and standard deviation over the seeds; before: one model.",
                "Masked words named: held-out accuracy of the fitted head (share of the most frequent word); "
                "a study takes a head that names twice as many.",
            ],
            packages=("torch", "transformers"),
        )


def measured_row(
    name: str, settings: Settings, seeds: int, data: DefsentData, measured: Sequence[Task[Any, Any]]
) -> dict[str, str]:
    """One head, before and after."""
    corpus, folder, world = load(data), resolve_backbone("all-MiniLM-L6-v2"), World(threads=os.cpu_count() or 1)
    frozen, _ = fit(replace(settings, train=False), folder, corpus, 0, world)
    after = [figures(fit(settings, folder, corpus, seed, world)[0], measured) for seed in range(seeds)]
    line = {"head": name, "readout": settings.readout, "steps": str(settings.steps), "seeds": str(seeds)}
    return line | row(frozen.about, figures(frozen, measured), after)


def figures(encoder: WordEncoder, measured: Sequence[Task[Any, Any]]) -> dict[str, float]:
    """The figures shown, by metric."""
    scores = [score for _, found in evaluate(measured, encoder.readers) for score in found]
    return {score.metric: score.value for score in scores if score.metric in SHOWN.values()}


def row(
    about: Mapping[str, Any], before: Mapping[str, float], after: Sequence[Mapping[str, float]]
) -> dict[str, str]:
    """The figures of one line of the table."""
    line = {}
    for name, metric in SHOWN.items():
        line[f"{name} before"] = f"{before[metric]:.4f}"
        line[f"{name} after"] = _spread([one[metric] for one in after])
    fitted = "mlm accuracy" in about
    named = f"{about['mlm accuracy']:.3f} ({about['mlm most_frequent']:.3f})" if fitted else "-"
    return line | {"masked words named": named}


def _spread(values: list[float]) -> str:
    return f"{mean(values):.4f}" + (f" ± {stdev(values):.4f}" if len(values) > 1 else "")


if __name__ == "__main__":
    main()
