"""A training script as somebody else has one: it knows nothing of semray, resumes by itself, and prints its steps.

It "trains" by adding to the weights of an encoder's folder what a seeded walk comes to, writes that as an encoder and
a score for each of ten items.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import time
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--learning_rate", type=float, default=0.1)
    parser.add_argument("--backbone", default="")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--pause", type=float, default=0.15)
    parser.add_argument("--fail", default="")
    parser.add_argument("--scores", default="scores.csv")
    options = parser.parse_args()
    if options.fail:
        print("loading the data\nTraceback: it broke", file=sys.stderr)
        sys.exit(int(options.fail))

    checkpoint = options.out / "checkpoint.json"
    draws = random.Random(options.seed)
    weight, begun = draws.uniform(1, 2), 0
    if checkpoint.exists():
        begun, weight = json.loads(checkpoint.read_text())
        print(f"resuming after step {begun}")
    for step in range(begun, options.steps):
        loss = weight * weight
        print(f"step {step + 1}/{options.steps} loss {loss!r} lr {options.learning_rate}")
        weight -= options.learning_rate * weight * random.Random(f"{options.seed} {step}").uniform(0.5, 1.5)
        draft = checkpoint.with_suffix(".draft")
        draft.write_text(json.dumps([step + 1, weight]))
        draft.replace(checkpoint)
        time.sleep(options.pause)

    rows = ["metric,item,score,group"]
    for item in range(10):
        right = float(random.Random(f"{options.seed} {item}").random() > weight)
        rows.append(f"accuracy,q{item},{right},{item // 2}")
    rows.append(f"loss,,{weight * weight!r},")
    (options.out / options.scores).write_text("\n".join(rows) + "\n")
    if options.backbone:
        model = options.out / "model"
        shutil.copytree(options.backbone, model, dirs_exist_ok=True)
        (model / "training_args.bin").write_bytes(b"a pickle, that nobody is to open")
        tensors = load_file(model / "model.safetensors")
        noise = np.random.default_rng(options.seed)
        moved = {
            name: t + weight * 0.01 * noise.standard_normal(t.shape).astype(t.dtype) for name, t in tensors.items()
        }
        save_file(moved, model / "model.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    main()
