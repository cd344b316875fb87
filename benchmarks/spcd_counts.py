"""What SPCD's rules leave of SemCor, reading by reading, and what its splits hold.

    python benchmarks/spcd_counts.py [FOLDER OR ARCHIVE OF SEMCOR]

Nothing is timed here: the counts are the same on every machine.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from tables import save

from corpora.cale.corpus import load
from corpora.cale.data import CaleData
from corpora.cale.records import CATEGORIES, SPLITS, OccurrencePairs, Tagged
from corpora.cale.spcd import tagged
from corpora.cale.spcd_pairs import pairs_of
from corpora.sources import semcor, semcor_files, wordnet, wordnet_files
from corpora.store.errors import CorpusError
from evaluators.metrics.concept_differentiation import one_lemma_one_concept

SHARES = (0.0, 0.1, 0.2, 0.3)
READINGS = {
    "annotated words, first of several senses (default)": CaleData(),
    "annotated words, several senses dropped": CaleData(multi_sense="drop"),
    "tokens, first of several senses": CaleData(length_unit="tokens"),
}


def main() -> None:
    try:
        files = semcor_files.locate(sys.argv[1] if len(sys.argv) > 1 else None)
        lexicon = wordnet.read(wordnet_files.locate())
    except CorpusError as missing:
        print(f"not measured: {missing}")
        return
    sentences = list(semcor.read(files.texts))
    readings = {told: tagged(sentences, lexicon, data) for told, data in READINGS.items()}
    save(
        "spcd_readings",
        "SPCD's occurrences by the reading of its rules",
        [{"reading": told} | _sizes(rows) for told, rows in readings.items()],
        ["Paper: 70,379 occurrences (the sum of its splits), 1,902 lemmas, 5,899 concepts."],
    )
    rows = readings[next(iter(READINGS))]
    one_sided = pairs_of(rows, seed=42, partner_pool="one_sided")
    strict = pairs_of(rows, seed=42, partner_pool="strict")
    seen = _seen(rows, one_sided["test"])
    save(
        "spcd_splits",
        "SPCD's splits, seed 42",
        [{"split": split, "partners": "one_sided"} | _split(one_sided[split]) for split in SPLITS]
        + [{"split": split, "partners": "strict"} | _split(strict[split]) for split in ("val", "test")],
        [
            "1L1C: the rule that one lemma is one concept, which says `same` for every pair of one lemma.",
            f"Of the test anchors {seen['lemma']:.1%} have a lemma that train has, {seen['concept']:.1%} a "
            f"concept that train has, {seen['both']:.1%} both.",
            f"{seen['partner']:,} of {len(one_sided['test']):,} test pairs have a partner from train, "
            f"{seen['stranger']:,} of them {CATEGORIES[3]}.",
        ],
    )

    save(
        "spcd_held_sentences",
        "What is left of SPCD where a share of the sentences never trains, seed 42",
        [_held(CaleData(semcor=str(files.place), held_sentences=share)) for share in SHARES],
        ["unseen: test pairs of which neither sentence is in a train pair, with any target (`spcd/unseen`)."],
    )


def _held(data: CaleData) -> dict[str, Any]:
    corpus = load(data)
    test, train = corpus.pairs["test"], corpus.pairs["train"]
    sentence = corpus.occurrences.sentence
    seen = np.isin(sentence, sentence[np.concatenate([train.anchor, train.partner])])
    counts = np.bincount(test.category[corpus.unseen], minlength=len(CATEGORIES)).tolist()
    return {
        "held_sentences": data.held_sentences,
        "train pairs": len(train),
        "test anchors in a sentence that trains": f"{seen[np.unique(test.anchor)].mean():.1%}",
        "unseen": len(corpus.unseen),
    } | dict(zip(CATEGORIES, counts, strict=True))


def _sizes(rows: Sequence[Tagged]) -> dict[str, Any]:
    of_pos = Counter(row.pos for row in rows)
    return {
        "occurrences": len(rows),
        "lemmas": len({row.occurrence.lemma for row in rows}),
        "concepts": len({row.concept for row in rows}),
        "nouns": of_pos["n"],
        "verbs": of_pos["v"],
        "adjectives": of_pos["a"],
        "sentences": len({row.id.rpartition(":")[0] for row in rows}),
    }


def _split(pairs: OccurrencePairs) -> dict[str, Any]:
    counts = np.bincount(pairs.category, minlength=len(CATEGORIES)).tolist()
    baseline = one_lemma_one_concept(*counts)
    return (
        {"anchors": len(np.unique(pairs.anchor)), "pairs": len(pairs)}
        | dict(zip(CATEGORIES, counts, strict=True))
        | {"label 1": f"{pairs.label.mean():.1%}"}
        | {f"1L1C {name}": round(baseline[key], 3) for name, key in (("BA", "ba_all"), ("F1", "f1_all"))}
    )


def _seen(rows: Sequence[Tagged], test: OccurrencePairs) -> dict[str, float]:
    train = [row for row in rows if row.split == "train"]
    lemmas, concepts = {row.occurrence.lemma for row in train}, {row.concept for row in train}
    anchors = [rows[place] for place in np.unique(test.anchor)]
    lemma = np.array([row.occurrence.lemma in lemmas for row in anchors])
    concept = np.array([row.concept in concepts for row in anchors])
    partner = np.array([rows[place].split == "train" for place in test.partner])
    return {
        "lemma": lemma.mean(),
        "concept": concept.mean(),
        "both": (lemma & concept).mean(),
        "partner": int(partner.sum()),
        "stranger": int(partner[test.category == CATEGORIES.index("DC/DL")].sum()),
    }


if __name__ == "__main__":
    main()
