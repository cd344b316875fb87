"""Fine-tune a sentence encoder on pairs, as users of sentence-transformers write it. Nothing here knows of semray.

    python train.py --model all-MiniLM-L6-v2 --pairs pairs.tsv --loss cosent --out out --seed 0

It keeps checkpoints in `out/checkpoints`, goes on from the last one it finds there, and writes the encoder to
`out/model` and the score of every held-out pair to `out/scores.csv`.
"""

import argparse
import csv
import logging
import random
from pathlib import Path

from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
    losses,
)
from transformers import TrainerCallback, set_seed

LOSSES = {"cosent": losses.CoSENTLoss, "cosine": losses.CosineSimilarityLoss, "angle": losses.AnglELoss}


class PrintSteps(TrainerCallback):
    """One line for each logged step."""

    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs and "loss" in logs:
            rate = logs.get("learning_rate", 0.0)
            print(f"step {state.global_step}/{state.max_steps} loss {logs['loss']} lr {rate}", flush=True)


def read_pairs(path: Path) -> list[tuple[str, str, float]]:
    """Rows of two sentences and a similarity from 0 to 1."""
    with path.open(newline="") as file:
        return [(a, b, float(gold)) for a, b, gold in csv.reader(file, delimiter="\t")]


def main() -> None:
    parser = argparse.ArgumentParser(description="Fine-tune a sentence encoder on scored pairs.")
    parser.add_argument("--model", required=True, help="an encoder's folder, or its name on the hub")
    parser.add_argument("--pairs", type=Path, required=True, help="sentence, sentence, similarity; tab-separated")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--loss", choices=sorted(LOSSES), default="cosent")
    parser.add_argument("--learning-rate", type=float, default=2e-5)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--save-steps", type=int, default=20)
    parser.add_argument("--held-out", type=float, default=0.3, help="share of the pairs that is tested on")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    logging.getLogger("sentence_transformers").setLevel(logging.WARNING)
    set_seed(args.seed)
    pairs = read_pairs(args.pairs)
    random.Random(1).shuffle(pairs)  # the split is the same for every seed
    cut = int(len(pairs) * args.held_out)
    test, train = pairs[:cut], pairs[cut:]

    model = SentenceTransformer(args.model, trust_remote_code=False)
    columns = zip(*train, strict=True)
    rows = Dataset.from_dict(dict(zip(("sentence1", "sentence2", "score"), map(list, columns), strict=True)))
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(args.out / "checkpoints"),
        max_steps=args.steps,
        per_device_train_batch_size=args.batch_size,
        learning_rate=args.learning_rate,
        warmup_steps=args.steps // 10,
        save_strategy="steps",
        save_steps=args.save_steps,
        save_total_limit=2,
        logging_steps=1,
        seed=args.seed,
        data_seed=args.seed,
        report_to=[],
        disable_tqdm=True,
    )
    trainer = SentenceTransformerTrainer(
        model=model,
        args=arguments,
        train_dataset=rows,
        loss=LOSSES[args.loss](model),
        callbacks=[PrintSteps()],
    )
    checkpoints = args.out / "checkpoints"
    whole = [file.parent for file in checkpoints.glob("checkpoint-*/trainer_state.json")]  # it is written last
    last = max(whole, key=lambda folder: int(folder.name.rpartition("-")[2]), default=None)
    if last:
        print(f"going on from {last}", flush=True)
    trainer.train(resume_from_checkpoint=None if last is None else str(last))
    model.save(str(args.out / "model"))

    left = model.encode([a for a, _, _ in test], convert_to_tensor=True)
    right = model.encode([b for _, b, _ in test], convert_to_tensor=True)
    cosines = model.similarity_pairwise(left, right).tolist()
    with (args.out / "scores.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["metric", "item", "score", "gold"])
        for number, ((_, _, gold), cosine) in enumerate(zip(test, cosines, strict=True)):
            table.writerow(["similarity", number, cosine, gold])


if __name__ == "__main__":
    main()
