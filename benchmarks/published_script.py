"""A published training example of sentence-transformers as the arms of a study, through kill -9 to a verdict.

    SEMRAY_DATA=FOLDER python benchmarks/published_script.py training_stsbenchmark.py

The script is examples/sentence_transformer/training/sts/training_stsbenchmark.py of the repository
huggingface/sentence-transformers, as it is. It takes one argument, the model; its seed, its steps and its
output folder are written in it, it never resumes, and its data are on the hub. So it is started through
`run_script` below, which changes none of its lines: the data come from $SEMRAY_DATA/senteval/STS/STSBenchmark,
and the library is given the other arguments. The driver is killed once a first checkpoint is written; the
second call goes on from it.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
STEPS, KEPT_EVERY, EVALUATED = 6, 2, 100
PARTS = {"train": "train", "validation": "dev", "test": "test"}
STUDY = """\
question: Does the published rate learn more in {steps} steps than a tenth of it?
family: command
backbones: [all-MiniLM-L6-v2]
seeds: {seeds}
data: {{watch: [{script}, {starter}]}}
train:
  run: [{python}, {starter}, {script}, --model, "{{backbone}}", --seed, "{{seed}}", --rate, "{{rate}}",
        --out, "{{out}}"]
arms:
  published: {{rate: 5.0e-5}}
  tenth: {{rate: 5.0e-6}}
evaluate: [sts/STS-B]
compare:
  - {{claim: H1, treatment: published, control: tenth, metric: sts/STS-B/spearman, expect: better}}
resources: {{lanes: 2}}
"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("script", nargs="?", type=Path, help="the published file")
    options.add_argument("--out", type=Path, default=None, help="run the script once, and leave its encoder here")
    options.add_argument("--model")
    options.add_argument("--seed", type=int)
    options.add_argument("--rate", type=float)
    options.add_argument("--seeds", type=int, default=6, help="of each arm of the study")
    given = options.parse_args()
    if given.script is None:
        print("published_script: no script is named, and nothing was run")
    elif given.out is not None:
        run_script(given.script.resolve(), given.model, given.seed, given.rate, given.out)
    else:
        with tempfile.TemporaryDirectory() as folder:
            measure(given.script.resolve(), given.seeds, Path(folder))


def run_script(script: Path, model: str, seed: int, rate: float, out: Path) -> None:
    """The script with data and arguments that it has no argument for; its encoder in out/model."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import datasets
    from sentence_transformers.sentence_transformer import trainer, training_args
    from transformers.trainer_utils import get_last_checkpoint

    checkpoints = out / "checkpoints"
    ours = {
        "output_dir": str(checkpoints),
        "seed": seed,
        "learning_rate": rate,
        "max_steps": STEPS,
        "save_steps": KEPT_EVERY,
        "fp16": False,  # no GPU
        "use_cpu": True,
        "eval_strategy": "no",
        "report_to": [],
    }
    arguments: Any = training_args.SentenceTransformerTrainingArguments
    made, train = arguments.__init__, trainer.SentenceTransformerTrainer.train

    def resumed(self: Any) -> Any:
        last = get_last_checkpoint(str(checkpoints)) if checkpoints.is_dir() else None
        print(f"resuming from {Path(last).name}" if last else "beginning", flush=True)
        return train(self, resume_from_checkpoint=last)

    datasets.load_dataset = _local
    arguments.__init__ = lambda self, **given: made(self, **{**given, **ours})
    trainer.SentenceTransformerTrainer.train = resumed
    sys.argv = [script.name, model]
    os.chdir(out)
    runpy.run_path(str(script), run_name="__main__")
    (left,) = (out / "output").glob("*/final")
    shutil.rmtree(out / "model", ignore_errors=True)
    left.rename(out / "model")
    shutil.rmtree(checkpoints)


def _local(name: str, split: str) -> Any:
    """The hub's set from SentEval's copy, gold from 0 to 1; of what is not trained on the first rows."""
    from datasets import Dataset

    assert name == "sentence-transformers/stsb", name
    file = Path(os.environ["SEMRAY_DATA"]) / "senteval" / "STS" / "STSBenchmark" / f"sts-{PARTS[split]}.csv"
    with file.open(encoding="utf-8", newline="") as opened:
        rows = [row[4:7] for row in csv.reader(opened, delimiter="\t", quoting=csv.QUOTE_NONE)]
    kept = rows if split == "train" else rows[:EVALUATED]
    scores, ones, others = zip(*kept, strict=True)
    gold = [float(score) / 5 for score in scores]
    return Dataset.from_dict({"sentence1": list(ones), "sentence2": list(others), "score": gold})


def measure(script: Path, seeds: int, folder: Path) -> None:
    """Kill the study in its middle, go on with it, and keep what came of both."""
    from tables import save

    study, ledger = folder / "published.yaml", folder / "ledger"
    starter = Path(__file__).resolve()
    study.write_text(STUDY.format(seeds=seeds, steps=STEPS, script=script, starter=starter, python=sys.executable))
    command = [sys.executable, "-m", "orchestration", "run", str(study), "--ledger", str(ledger), "--json"]
    own = {**os.environ, "PYTHONPATH": str(ROOT), "SEMRAY_CACHE": str(folder / "cache")}
    with (folder / "first.log").open("w") as log:
        first = subprocess.Popen(command, cwd=folder, env=own, stdout=log, stderr=log, start_new_session=True)
        while not list(ledger.glob(f".scratch/*/out/checkpoints/checkpoint-{KEPT_EVERY}/trainer_state.json")):
            assert first.poll() is None, (folder / "first.log").read_text()
            time.sleep(0.2)
        first.send_signal(signal.SIGKILL)
        first.wait()
    done = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    logs = [log.read_text(errors="replace") for log in ledger.glob("*/model/command.log")]
    assert len(logs) == 2 * seeds, "each run keeps its log"
    assert any("resuming from checkpoint-" in log for log in logs), "what was killed goes on"
    (verdict,) = json.loads(done.stdout[done.stdout.index("[") :])
    save(
        "published_script",
        f"{script.name} of sentence-transformers, unmodified, through kill -9 to a verdict",
        [
            {
                "claim": verdict["claim"],
                "difference": verdict["delta_mean"],
                "low": verdict["ci_low"],
                "high": verdict["ci_high"],
                "seeds": verdict["n_seeds"],
                "verdict": verdict["verdict"],
            }
        ],
        [
            f"published: the library's rate, 5e-5; tenth: 5e-6; {STEPS} steps of 16 pairs, CosineSimilarityLoss",
            "killed: the driver, by SIGKILL, after the first checkpoint; the second call went on from there",
        ],
        packages=("torch", "transformers", "sentence-transformers"),
    )


if __name__ == "__main__":
    main()
