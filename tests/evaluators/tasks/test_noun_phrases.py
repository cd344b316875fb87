"""Finding paraphrases of noun phrases, on pairs whose places are chosen by hand."""

from __future__ import annotations

import numpy as np
import pytest

from corpora.concept.noun_phrases import PhrasePair
from evaluators.metrics.retrieval import metric_names
from evaluators.tasks.noun_phrases import GAP, JOINT, PARTS, distortions, paraphrases
from tests.measuring import given

ANGLES = {  # phrases and paraphrases on a circle: the nearest is the best
    "red cup": 0,
    "scarlet cup": 2,
    "fake cup": 100,
    "cup the colour of blood": 10,
    "crockery in a warm colour": 20,
    "imitation passed off as a cup": 5,
}


def pair(regime: str, family: str, modifier: str, paraphrase: str) -> PhrasePair:
    return PhrasePair(regime, family, f"{family} {regime}", modifier, "cup", f"{modifier} cup", paraphrase)


PAIRS = (
    pair("strict", "intersective", "red", "cup the colour of blood"),
    pair("strict", "intersective", "scarlet", "cup the colour of blood"),
    pair("strict", "privative", "fake", "imitation passed off as a cup"),
    pair("near", "intersective", "red", "crockery in a warm colour"),
)


def circle(texts):
    radians = np.radians([ANGLES[text] for text in texts])
    return np.stack([np.cos(radians), np.sin(radians)], axis=1)


@pytest.fixture(scope="module")
def figures():
    task = paraphrases(given(PAIRS))
    return {score.metric: score for score in task.score(PAIRS, circle)}


def test_each_regime_has_its_own_pool(figures):
    """Strict: red at 0° has the imitation at 5° before its own at 10°, scarlet at 2° too; fake at 100° has blood at
    10° before the imitation at 5°. Near: one candidate."""
    assert figures["np/strict/mrr"].values.tolist() == [1 / 2, 1 / 2, 1 / 2]
    assert figures["np/near/recall@1"].value == 1
    assert figures["np/strict/intersective/recall@1"].value == 0
    assert figures["np/strict/privative/recall@5"].value == 1


def test_the_joint_pool_counts_the_listed_paraphrase_alone(figures):
    """red: imitation, blood, crockery; fake: crockery at 20°, blood, imitation."""
    assert figures["np/joint/mrr"].values.tolist() == [1 / 2, 1 / 2, 1 / 3, 1 / 3]
    assert len(set(figures["np/joint/mrr"].item_ids)) == 4


def test_a_phrase_is_told_with_its_paraphrase_and_what_it_was_taken_for(figures):
    texts = paraphrases(given(PAIRS)).item_texts(PAIRS, "np/strict/privative/recall@1")
    assert texts["red cup"] == "red cup: cup the colour of blood"
    blood, imitation = "cup the colour of blood", "imitation passed off as a cup"
    assert list(figures["np/strict/mrr"].taken_for) == [imitation, imitation, blood]
    texts = paraphrases(given(PAIRS)).item_texts(PAIRS, "np/joint/mrr")
    assert [texts[item] for item in figures["np/joint/mrr"].item_ids][-1] == "red cup: crockery in a warm colour"


def test_heads_are_what_is_resampled_and_every_metric_is_declared(figures):
    assert all(set(score.group_ids) == {"cup"} for score in figures.values())
    declared = {name for part in (*PARTS, JOINT) for name in metric_names(part)} | {GAP}
    assert set(figures) < declared == set(paraphrases(given(PAIRS)).metrics)


def test_the_extensional_gap_counts_families_alike():
    """Right at once: 1 of 3 intersective, 1 of 1 subsective; none relational, 1 of 2 modal, 1 of 1 privative.
    (1/3 + 1) / 2 - (0 + 1/2 + 1) / 3 = 1/6."""
    right = {"intersective": [1, 0, 0], "subsective": [1], "relational": [0], "modal": [1, 0], "privative": [1]}
    pairs, places = [pair("near", "intersective", "red", "crockery in a warm colour")], dict(ANGLES)
    for family, hits in right.items():
        for number, hit in enumerate(hits):
            name = f"{family} {number}"
            made = PhrasePair("strict", family, name, name, "cup", f"{name} cup", f"what {name} is")
            places[made.query] = places[made.paraphrase] = 10.0 * len(pairs)
            places[made.paraphrase] += 1 if hit else 91
            pairs.append(made)

    def encode(texts):
        radians = np.radians([places[text] for text in texts])
        return np.stack([np.cos(radians), np.sin(radians)], axis=1)

    (gap,) = (
        score for score in paraphrases(given(tuple(pairs))).score(tuple(pairs), encode) if score.metric == GAP
    )
    assert gap.value == pytest.approx(1 / 6)
    assert np.mean(gap.values) == pytest.approx(1 / 6)


def test_distortion_of_every_family_that_has_pairs():
    draws = np.random.default_rng(0)
    made = tuple(
        PhrasePair("strict", "modal", "modal 0", f"m{m}", f"h{h}", f"m{m} h{h}", f"maybe h{h} {m}")
        for m in range(6)
        for h in range(8)
    )
    task = distortions(given(made))
    of = {text: draws.normal(size=4) for text in dict.fromkeys(task.texts(made))}
    found = {
        score.metric: score for score in task.score(made, lambda texts: np.stack([of[text] for text in texts]))
    }
    assert {metric.split("/")[1] for metric in found} == {"modal"}
    assert found["distortion/modal/mean"].value == pytest.approx(found["distortion/modal/mean"].values.mean())
    assert not found["distortion/modal/mean"].larger_is_better
    assert found["distortion/modal/r2"].value < 0.5
