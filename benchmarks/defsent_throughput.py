"""Definitions per second of one training step: semray's defsent and a plain loop over transformers, side by side.

    python benchmarks/defsent_throughput.py [--steps 20] [--repeats 3]

Both train the layers of all-MiniLM-L6-v2 on the same WordNet definitions in the same order: 16 a step, mean
readout, a transform and the 30,522 tied word embeddings as a frozen head, cross-entropy over all of them, Adam,
fp32, one thread. The plain loop is what one writes first: pad the batch, call the model, pool, call the head,
backward, step. Each has a process of its own. The head's share is the time of its forward and backward pass on 16
vectors alone.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from steps import Clock, Interleaved, load_of_machine, options_of, repeated
from tables import save

from corpora.defsent.corpus import load
from corpora.defsent.data import DefsentData
from trainers.defsent.settings import Settings
from trainers.encoders.backbones import resolve_backbone
from trainers.engine.world import World

BATCH = 16
SETTINGS = Settings(readout="mean", head_source="random", lr_exponent=6.0, batch_size=BATCH, max_length=128)


def main() -> None:
    options = options_of(__doc__, steps=20)
    load(DefsentData())  # built before anything is timed
    with Interleaved(TRAINERS) as trainers:
        middle = {name: np.median(found, axis=0) for name, found in trainers.durations(options).items()}
        head = trainers.processes["plain transformers loop"].submit(head_alone, options.steps).result()
    plain = middle["plain transformers loop"]
    rows = [
        {
            "loop": name,
            "step, CPU s": round(float(cpu), 3),
            "step, wall s": round(float(wall), 3),
            "definitions per CPU s": round(float(BATCH / cpu), 1),
            "of plain, CPU": f"{plain[1] / cpu:.2f}x",
            "head's share": f"{head / cpu:.0%}",
        }
        for name, (wall, cpu) in middle.items()
    ]
    save(
        "defsent_throughput",
        "Training on definitions: one step of all-MiniLM-L6-v2, one CPU thread, fp32",
        rows,
        [
            f"A step is {BATCH} definitions and one update; {repeated(options)}.",
            f"The 30,522-way head alone, forward and backward: {head:.3f} CPU s a step.",
            load_of_machine(),
        ],
        packages=("torch", "deepspeed", "transformers"),
    )


def ours(steps: int, seed: int) -> np.ndarray:
    from trainers.defsent.training import fit

    clock = Clock()
    fit(
        replace(SETTINGS, steps=steps),
        resolve_backbone("all-MiniLM-L6-v2"),
        load(DefsentData()),
        seed,
        World(report=clock.tick),
    )
    return clock.durations()


def plain(steps: int, seed: int) -> np.ndarray:
    """The same texts, words, readout, head and rates, in padded batches."""
    import torch
    import torch.nn.functional as F
    from transformers import AutoModel, AutoTokenizer

    from corpora.defsent.overlap import kept_rows
    from trainers.defsent.heads import untrained_head
    from trainers.defsent.training import warm_then_constant
    from trainers.defsent.vocabulary import word_pieces
    from trainers.encoders.encoder import Encoder
    from trainers.engine.streams import numpy_stream, torch_stream

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    folder, corpus = resolve_backbone("all-MiniLM-L6-v2"), load(DefsentData())
    model, tokenizer = (
        AutoModel.from_pretrained(folder, trust_remote_code=False, dtype=torch.float32),
        AutoTokenizer.from_pretrained(folder, trust_remote_code=False),
    )
    pieces = {name: word_pieces(tokenizer, list(rows.words)) for name, rows in corpus.rows.items()}
    kept = kept_rows(corpus, pieces).rows
    order = kept[numpy_stream(seed, "data", "order", 0).permutation(len(kept))]
    head = untrained_head(Encoder(model, tokenizer), torch_stream(seed, "init", "head"))
    head.requires_grad_(False)
    model.embeddings.requires_grad_(False)
    model.train()
    optimizer = torch.optim.Adam([one for one in model.parameters() if one.requires_grad], lr=SETTINGS.rate)
    rates = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: warm_then_constant(step, warmup=SETTINGS.warmup_ratio * steps)
    )
    clock = Clock()
    for step in range(steps):
        rows = order[step * BATCH : (step + 1) * BATCH]
        texts = corpus.rows["train"].definitions.take(rows)
        batch = tokenizer(
            texts, padding=True, truncation=True, max_length=SETTINGS.max_length, return_tensors="pt"
        )
        hidden = model(**batch).last_hidden_state
        mask = batch["attention_mask"][..., None].float()
        u = (hidden * mask).sum(1) / mask.sum(1)
        loss = F.cross_entropy(head(u), torch.from_numpy(pieces["train"][rows]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rates.step()
        loss.item()
        clock.tick()
    return clock.durations()


def head_alone(steps: int) -> float:
    """CPU seconds of the head's forward and backward pass on one step's vectors, the median."""
    import torch
    import torch.nn.functional as F

    from trainers.defsent.heads import untrained_head
    from trainers.encoders.encoder import Encoder

    encoder = Encoder.load(resolve_backbone("all-MiniLM-L6-v2"))
    head = untrained_head(encoder, torch.Generator().manual_seed(0)).requires_grad_(False)
    seconds = []
    for _ in range(steps):
        u = torch.randn(BATCH, encoder.width, requires_grad=True)
        began = time.process_time()
        F.cross_entropy(head(u), torch.arange(BATCH)).backward()
        seconds.append(time.process_time() - began)
    return float(np.median(seconds))


TRAINERS = {"semray": ours, "plain transformers loop": plain}

if __name__ == "__main__":
    main()
