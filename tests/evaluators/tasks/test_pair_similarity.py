"""Pair metrics, the retrieval proxies and the look at headroom: golden numbers and a second way to each rank."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from corpora.benchmarks.pairs import Pairs
from corpora.difficulty.pairs import PairData, for_selection, load_task
from corpora.difficulty.rows import PairTask
from corpora.difficulty.surface import surface_complexity
from evaluators.metrics.headroom import headroom, measured
from evaluators.metrics.item_metrics import aggregate
from evaluators.metrics.retrieval import cosine_ranks
from evaluators.tasks import pair_similarity
from evaluators.tasks.pair_similarity import PREDICTIONS, bounded_ranks, tasks
from evaluators.tasks.task import evaluate
from tests.pair_scores import pair_metrics


def pairs(a: list[str], b: list[str], gold: list[float]) -> Pairs:
    return Pairs(tuple(f"row{i}" for i in range(len(a))), tuple(a), tuple(b), np.array(gold))


def predicted(scores: np.ndarray, **more: object) -> SimpleNamespace:
    nothing = {
        "frozen": scores,
        "train_scores": None,
        "vectors": None,
        "pair_score": None,
        "anchor": None,
        "reach": 0.0,
        "diagnostics": {},
    }
    return SimpleNamespace(scores=scores, **{**nothing, **more})


GOLDEN_QUERIES = np.array([[1.0, 0], [0, 1], [1, 1], [3, 4]])
GOLDEN_PARTNERS = ["p", "q", "p", "r"]
GOLDEN_VECTORS = np.array([[2.0, 0], [0, 1], [2, 0], [1, 0]])


def test_retrieval_proxy_golden() -> None:
    """p and r point the same way, so they tie exactly, and a tie counts against the query."""
    split = pairs(["w", "x", "y", "z"], GOLDEN_PARTNERS, [1, 1, 1, 1])
    rows, gold = split.candidates()
    assert rows.tolist() == [0, 1, 3]
    assert gold.tolist() == [0, 1, 0, 2]
    assert cosine_ranks(GOLDEN_QUERIES, GOLDEN_VECTORS[rows], gold[:, None].tolist()).tolist() == [2, 1, 3, 3]
    task = PairTask("toy", False, split, split, "validation", "made up")
    found = {
        s.metric: s
        for s in pair_metrics(task, predicted(np.arange(4.0), vectors=(GOLDEN_QUERIES, GOLDEN_VECTORS[rows])))
    }
    assert found["toy/recall@1"].value == pytest.approx(0.25)
    assert found["toy/mrr"].value == pytest.approx(0.5416666667)
    unlike = PairTask("toy", True, split, replace(split, gold=np.full(4, 0.79)), "validation", "made up")
    asked = pair_metrics(unlike, predicted(np.arange(4.0), vectors=(GOLDEN_QUERIES, GOLDEN_VECTORS[rows])))
    assert not [score for score in asked if "restricted" in score.metric]  # none of 0.8


def test_pair_scores_rank_as_the_vectors_that_they_are_made_of() -> None:
    """Half of a cosine and half of a number of each pair, which stays within 0.5 of half of the cosine."""
    split = pairs(["w", "x", "y", "z"], GOLDEN_PARTNERS, [1, 0, 1, 1])
    task = PairTask("toy", False, split, split, "validation", "made up")
    rows, _ = split.candidates()
    vectors = GOLDEN_QUERIES, GOLDEN_VECTORS[rows]
    cosines = vectors[0] @ vectors[1].T / np.outer(*(np.linalg.norm(side, axis=1) for side in vectors))
    own = np.array([[0.9, 0.1, 0.2], [0.8, 0.7, 0.0], [0.1, 0.6, 0.4], [0.0, 0.9, 0.3]])

    def figures(**said: object) -> dict[str, list[float]]:
        found = pair_similarity.retrieval_scores(task, predicted(np.arange(4.0), **said))
        return {score.metric.removeprefix("toy/"): score.values.tolist() for score in found}

    by_cosine = figures(pair_score=lambda queries, columns: cosines[queries, columns], anchor=cosines)
    assert by_cosine == figures(vectors=vectors)
    both = 0.5 * (cosines + own)
    assert [int((row >= row[at]).sum()) for row, at in zip(both, (0, 1, 0, 2), strict=True)] == [1, 1, 3, 2]
    by_both = figures(pair_score=lambda queries, columns: both[queries, columns], anchor=0.5 * cosines, reach=0.5)
    assert by_both["mrr"] == pytest.approx([1, 1, 1 / 3, 1 / 2])
    assert by_both["recall@1_restricted"] == [1, 0, 0]
    assert figures() == {}


def test_every_metric_is_the_aggregate_of_its_items() -> None:
    split = pairs(["a", "b", "c", "d"], ["p", "q", "r", "s"], [0, 0.4, 0.8, 1])
    task = PairTask("toy", True, split, split, "validation", "made up")
    x = np.eye(4)
    scores = pair_metrics(
        task, predicted(np.array([0.1, 0.5, 0.4, 0.9]), vectors=(x, x), train_scores=np.arange(4.0))
    )
    by_name = {score.metric: score for score in scores}
    for score in scores:
        if score.aggregate is not None:
            assert score.value == pytest.approx(aggregate(score.aggregate, score.values, score.gold))
    assert by_name["toy/spearman"].value == pytest.approx(0.8)
    assert len(by_name["toy/recall@1_restricted"].item_ids) == 2  # gold of at least 0.8
    assert by_name["toy/diag/train_spearman"].value == pytest.approx(1.0)


def test_a_constant_scorer_finds_nobody() -> None:
    split = pairs(["a", "b", "c"], ["p", "q", "r"], [1, 1, 1])
    _, gold = split.candidates()
    flat = lambda rows, columns: np.zeros(len(rows))  # noqa: E731
    assert bounded_ranks(flat, np.zeros((3, 3)), 0.0, gold).tolist() == [3, 3, 3]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 25),
    st.integers(1, 20),
    st.floats(0.0, 2.0),
    st.integers(0, 10_000),
    st.sampled_from([1, 50, 1 << 20]),
)
def test_bounded_ranks_are_those_of_the_full_matrix(
    queries: int, candidates: int, reach: float, seed: int, block: int
) -> None:
    """Scoring only what can change the order gives the ranks of scoring everything, ties included, in any blocks."""
    draw = np.random.default_rng(seed)
    anchor = draw.integers(-10, 11, (queries, candidates)) / 10
    correction = reach * draw.integers(-2, 3, (queries, candidates)) / 2
    gold = draw.integers(0, candidates, queries)
    scores = anchor + correction
    own = scores[np.arange(queries), gold]
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(pair_similarity, "BLOCK", block)
        ranks = bounded_ranks(lambda rows, columns: scores[rows, columns], anchor, reach, gold)
    as_high = scores >= own[:, None] - 1e-6  # what float32 cannot tell apart is equal
    assert ranks.tolist() == as_high.sum(1).tolist()  # the partner itself is the 1


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_that_are_no_numbers_rank_nobody(bad: float) -> None:
    anchor, gold = np.zeros((2, 3)), np.array([0, 1])
    with pytest.raises(ValueError, match=r"anchor: .* at 1, 2"):
        bounded_ranks(
            lambda rows, columns: np.zeros(len(rows)), np.where([[0, 0, 0], [0, 0, 1]], bad, anchor), 1.0, gold
        )
    with pytest.raises(ValueError, match=r"scores of the partners: .* at 0"):
        bounded_ranks(lambda rows, columns: np.full(len(rows), bad), anchor, 1.0, gold)
    with pytest.raises(ValueError, match="scores: "):
        bounded_ranks(lambda rows, columns: np.where(columns == 2, bad, 0.0), anchor, 1.0, gold)


def test_bounded_ranks_leave_most_pairs_unscored() -> None:
    draw = np.random.default_rng(0)
    anchor = np.where(np.eye(200, dtype=bool), 0.9, 0.1)
    asked: list[int] = []

    def score(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        asked.append(len(rows))
        return anchor[rows, columns] + 0.25 * draw.uniform(-1, 1, len(rows))

    assert bounded_ranks(score, anchor, 0.25, np.arange(200)).tolist() == [1] * 200
    assert sum(asked) == 200  # the partners themselves


def test_headroom_golden() -> None:
    found = measured(
        np.array([0.9, 0.3, 0.6, 0.1]), np.array([1, 0.2, 0.2, 0]), {"lex": np.array([0.2, 0.1, 0.5, 0.3])}
    )
    assert found["spearman"] == pytest.approx(0.9486832981, abs=1e-6)
    assert found["pearson"] == pytest.approx(0.8912374332, abs=1e-6)
    assert found["err_mean"] == pytest.approx(0.175, abs=1e-6)
    assert found["err_std"] == pytest.approx(0.1299038106, abs=1e-6)
    assert found["alignment"]["lex"] == pytest.approx(0.8783100657, abs=1e-6)


def test_headroom_tells_a_signal_from_noise_and_from_the_label() -> None:
    draw = np.random.default_rng(3)
    n = 400
    gold = draw.integers(0, 2, n).astype(float)
    split = pairs([f"one {i}" for i in range(n)], [f"two {i}" for i in range(n)], gold.tolist())
    task = PairTask("toy", False, split, split, "validation", "made up")
    cosine = np.where(draw.random(n) < 0.8, gold, 1 - gold) * 0.8 + 0.1
    error = np.abs(cosine - gold)
    knows = error + 0.1 * draw.random(n)
    found = headroom(
        task, cosine, {"knows": knows, "noise": draw.random(n)}, {"knows": draw.random(n), "label": 1 - gold}
    )
    assert any(flag.startswith("no aligned headroom: noise") for flag in found.flags)
    assert not any("knows" in flag for flag in found.flags)
    assert any(flag.startswith("target is the label: label") for flag in found.flags)
    assert "knows" in found.advice
    useless = headroom(task, cosine, {"noise": draw.random(n)}, {})
    assert (found.share_zero + found.share_one) == 1
    assert "no signal follows its errors" in useless.advice


def test_headroom_of_sentences_is_of_the_mean_error_of_their_pairs() -> None:
    """The sentence "a b c" is in two pairs, of errors .1 and .5; overlaps by hand: ½, 0 and 1."""
    split = pairs(["a b c", "a b c", "d d"], ["a b c d e f", "x", "d"], [0.4, 0.7, 0.0])
    cosine = np.array([0.5, 0.2, 0.9])
    found = headroom(PairTask("toy", False, split, split, "validation", "made up"), cosine, {}, {})
    errors, lexical = [0.3, 0.1, 0.5, 0.9, 0.9], [0.4, 0.1, 0.7, 1.0, 1.0]  # of abc, abcdef, x, "d d" and d
    assert found.sentence_alignment["length"] == pytest.approx(np.corrcoef(errors, [3, 6, 1, 2, 1])[0, 1])
    assert found.sentence_alignment["hard_lex"] == pytest.approx(np.corrcoef(errors, lexical)[0, 1])
    surface = surface_complexity(["a b c", "a b c d e f", "x", "d d", "d"])
    assert found.sentence_alignment["surface"] == pytest.approx(np.corrcoef(errors, surface)[0, 1])
    assert found.alignment["hard_lex"] == pytest.approx(np.corrcoef([0.1, 0.5, 0.9], [0.1, 0.7, 1.0])[0, 1])
    assert (found.pairs, found.share_zero, found.share_one) == (3, pytest.approx(1 / 3), 0)


def toy(gold: np.ndarray) -> PairTask:
    count = len(gold)
    split = pairs([f"one {i}" for i in range(count)], [f"two {i}" for i in range(count)], gold.tolist())
    return PairTask("toy", False, split, split, "validation", "made up")


GRADES = np.linspace(0, 1, 100)


@pytest.mark.parametrize(
    ("gold", "cosine", "says"),
    [
        (GRADES, GRADES**1.5, "is near its ceiling (Spearman 1.000, small errors)"),
        (GRADES, GRADES**12, "leaves room (Spearman 1.000)"),  # their sd is .23, and up to .15 is small
        (
            np.tile([0.4, 0.6], 50),
            np.full(100, 0.5) + np.tile([0, 1, 1, 0], 25) / 20,
            "leaves room (Spearman 0.000)",
        ),
    ],
)
def test_a_baseline_is_near_its_ceiling_if_it_orders_pairs_and_errs_little(
    gold: np.ndarray, cosine: np.ndarray, says: str
) -> None:
    assert says in headroom(toy(gold), cosine, {}, {}).advice


@pytest.mark.parametrize(
    ("follow", "label", "says", "flagged"),
    [
        ({"strong": 0.9, "weak": 0.12}, {}, "; strong knows where it errs (+0.90)", set()),
        ({"strong": 0.9, "weak": 0.12}, {"strong": 0.79}, "; strong knows where it errs (+0.90)", set()),
        (
            {"strong": 0.9, "weak": 0.12},
            {"strong": 0.81},
            "; strong follows its errors (+0.90), but as",
            {"strong"},
        ),
        ({"strong": 0.9, "weak": 0.12}, {"strong": -0.81}, "; weak knows where it errs (+0.12)", {"strong"}),
        ({"strong": 0.9}, {"strong": 0.81}, "tell that difficulty from the label.", {"strong"}),
        ({"none": 0.08, "inverse": -0.5}, {}, ", but no signal follows its errors", {"none"}),
    ],
)
def test_headroom_advises_the_signal_that_follows_errors_and_is_no_label(
    follow: dict[str, float], label: dict[str, float], says: str, flagged: set[str]
) -> None:
    """Signals and targets made to correlate so much with the error, and with 1 - gold."""
    error, gold = np.repeat(np.linspace(0.05, 0.45, 100), 2), np.tile([0.0, 1.0], 100)
    noise = np.tile([1.0, 1.0, -1.0, -1.0], 50)
    noise -= np.polyval(np.polyfit(error, noise, 1), error)

    def correlated(with_: np.ndarray, by: float) -> np.ndarray:
        return by * stats.zscore(with_) + (1 - by**2) ** 0.5 * stats.zscore(noise)

    found = headroom(
        toy(gold),
        np.abs(gold - error),
        {name: correlated(error, by) for name, by in follow.items()},
        {name: correlated(1 - gold, by) for name, by in label.items()},
    )
    assert {name: found.alignment[name] for name in follow} == pytest.approx(follow)
    assert found.target_is_label == pytest.approx(label)
    assert says in found.advice
    assert {flag.split(": ")[1].split()[0] for flag in found.flags} == {"hard_lex", *flagged}


def test_isolated_gain_is_over_the_better_of_control_and_frozen() -> None:
    split = pairs(["a", "b", "c", "d"], ["p", "q", "r", "s"], [0, 0.3, 0.6, 1])
    task = PairTask("dev/toy", True, split, split, "selection", "made up")
    best, middle, worst = np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 4, 3]), np.array([4.0, 3, 2, 1])

    def gain(treated: np.ndarray, control: np.ndarray, frozen: np.ndarray) -> float:
        found = pair_metrics(task, predicted(treated, frozen=frozen), predicted(control))
        return {score.metric: score.value for score in found}["dev/toy/isolated_gain"]

    assert gain(best, middle, worst) == pytest.approx(0.2)
    assert gain(best, worst, middle) == pytest.approx(0.2)
    assert gain(middle, worst, best) == pytest.approx(-0.2)


def test_a_search_is_measured_on_training_rows_and_all_else_on_the_others(tmp_path: Path) -> None:
    """MRPC's file: of 540 rows the last 500 are for evaluation."""
    (tmp_path / "MRPC").mkdir()
    lines = "".join(f"{row % 2}\t{row}\t{row}\tleft {row}\tright {row}\n" for row in range(540))
    (tmp_path / "MRPC" / "msr_paraphrase_train.txt").write_text("Quality\t#1 ID\t#2 ID\t#1\t#2\n" + lines)
    data = PairData(path=str(tmp_path), tasks=("mrpc",))
    table = tasks(data)
    sizes = {"mrpc": 500, "dev/mrpc": len(for_selection(load_task("mrpc", data)).evaluation)}
    draws = np.random.default_rng(4)

    def read(names: Sequence[str]) -> list[Any]:
        drawn = [(draws.random(sizes[name]), draws.random((2, sizes[name], 4))) for name in names]
        return [(predicted(scores, vectors=vectors), predicted(scores[::-1])) for scores, vectors in drawn]

    measured_on = {}
    for task, scores in evaluate(list(table.values()), {PREDICTIONS: read}):
        measured_on[task.name] = {int(text.split()[1]) for text in task.benchmark.load().evaluation.a}
        assert {score.metric for score in scores} == set(task.metrics)
    chosen = measured_on.pop("dev/similarity/mrpc")
    assert 2 <= len(chosen) < 40
    assert max(chosen) < 40
    assert measured_on == {
        f"{kind}/mrpc": set(range(40, 540)) for kind in ("similarity", "retrieval", "isolation")
    }
    assert table["dev/similarity/mrpc"].fingerprint != table["similarity/mrpc"].fingerprint


def test_every_promised_metric_is_named() -> None:
    table = tasks(PairData(tasks=("stsb", "mrpc")))
    assert set(table["similarity/stsb"].metrics) == {"stsb/spearman", "stsb/pearson"}
    assert "dev/stsb/isolated_gain" in table["dev/similarity/stsb"].metrics
    assert "mrpc/recall@1_restricted" in table["retrieval/mrpc"].metrics
