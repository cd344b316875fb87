"""What definitions do to an encoder that is already tuned for sentences: words named, and Spearman on STS-B dev.

    SEMRAY_DATA=FOLDER python benchmarks/defsent_offline.py [--seeds 3] [--steps 300] [--heads mlm_fit tied_only
    random]

all-MiniLM-L6-v2, WordNet, mean readout, learning rate 2^6 · 1e-6, 4,800 definitions in 300 steps, measured before
and after on all development words and on STS-B dev (FOLDER/STS/STSBenchmark). The fitted head takes minutes the
first time.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import mean, stdev
from typing import Any

from tables import save

from corpora.defsent.corpus import load
from corpora.defsent.data import DefsentData
from evaluators.tasks import sts
from evaluators.tasks.defsent import tasks
from evaluators.tasks.task import Task, evaluate
from trainers.defsent.encoder import WordEncoder
from trainers.defsent.settings import Settings
from trainers.defsent.training import fit
from trainers.encoders.backbones import resolve_backbone
from trainers.engine.world import World

HEADS = ("mlm_fit", "tied_only", "random")
SHOWN = {"mrr_at_10": "dev/d2w/mrr_at_10", "top10": "dev/d2w/top10", "STS-B dev": "dev/sts/STS-B/spearman"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--heads", nargs="+", default=list(HEADS), choices=HEADS)
    parser.add_argument("--readout", default="mean")
    options = parser.parse_args()
    data = DefsentData()
    corpus, folder = load(data), resolve_backbone("all-MiniLM-L6-v2")
    measured = [tasks(data)["dev/d2w"], sts.tasks(None)["dev/sts/STS-B"]]
    world = World(threads=os.cpu_count() or 1)
    rows = []
    for head in options.heads:
        trained = Settings(
            head_source=head, readout=options.readout, lr_exponent=6.0, steps=options.steps, max_length=128
        )
        frozen, _ = fit(replace(trained, train=False), folder, corpus, 0, world)
        after = [figures(fit(trained, folder, corpus, seed, world)[0], measured) for seed in range(options.seeds)]
        rows.append(row(head, frozen.about, figures(frozen, measured), after))
    save(
        "defsent_offline",
        f"DefSent on all-MiniLM-L6-v2, {options.readout} readout, {options.steps} steps",
        rows,
        [
            f"After: mean and standard deviation over {options.seeds} seeds; before: one model.",
            "Masked words named: held-out accuracy of the fitted head (share of the most frequent word).",
        ],
        packages=("torch", "transformers"),
    )


def figures(encoder: WordEncoder, measured: Sequence[Task[Any, Any]]) -> dict[str, float]:
    """The figures shown, by metric."""
    scores = [score for _, found in evaluate(measured, encoder.readers) for score in found]
    return {score.metric: score.value for score in scores if score.metric in SHOWN.values()}


def row(
    head: str, about: Mapping[str, Any], before: Mapping[str, float], after: Sequence[Mapping[str, float]]
) -> dict[str, str]:
    """One line of the table."""
    line = {"head_source": head}
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
