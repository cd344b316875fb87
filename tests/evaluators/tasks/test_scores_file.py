"""Scores from a script's file: each figure is what its items come to, and a file that says other things is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpora.store.errors import CorpusError
from evaluators.metrics.scores import Score
from evaluators.tasks.scores_file import tasks
from evaluators.tasks.task import evaluate

ROWS = """metric,item,score,gold,larger_is_better
accuracy,a,1,,
accuracy,b,0,,
rho,a,1,10,
rho,b,2,30,
rho,c,3,20,
loss,,4.5,,false
seconds,a,2,,
seconds,b,4,,
"""


def scored(place: Path, metrics: dict[str, str], rows: str = ROWS) -> dict[str, Score]:
    (place / "scores.csv").write_text(rows)
    table = tasks(metrics)
    ((_, scores),) = evaluate(
        list(table.values()), {"scores": lambda names: [place / "scores.csv" for _ in names]}
    )
    return {score.metric: score for score in scores}


def test_figures_by_hand(tmp_path: Path) -> None:
    """Ranks 1 2 3 against 1 3 2: the squared differences come to 2, so rho = 1 - 6·2/(3·8) = 0.5."""
    declared = {"accuracy": "higher", "rho": "spearman", "loss": "lower", "seconds": "lower"}
    found = scored(tmp_path, declared)
    assert found["scores/accuracy"].value == 0.5
    assert found["scores/rho"].value == pytest.approx(0.5)
    assert found["scores/loss"].value == 4.5
    assert found["scores/seconds"].value == 3
    assert {name: score.larger_is_better for name, score in found.items()} == {
        "scores/accuracy": True,
        "scores/rho": True,
        "scores/loss": False,
        "scores/seconds": False,
    }
    assert [score.aggregate for score in found.values()] == ["mean", "spearman", None, "mean"]


def test_what_follows_gold_may_be_of_any_size(tmp_path: Path) -> None:
    """Its name bounds the figure alone: the scores of its items are in a unit of their own."""
    found = scored(tmp_path, {"spearman": "spearman"}, ROWS.replace("rho", "spearman"))
    assert found["scores/spearman"].value == pytest.approx(0.5)


def test_what_is_declared_names_the_task() -> None:
    """Metrics in another order are the same; read otherwise they are another task."""
    one, same, other = (
        tasks(metrics)["scores"].fingerprint
        for metrics in ({"a": "higher", "b": "lower"}, {"b": "lower", "a": "higher"}, {"a": "lower", "b": "lower"})
    )
    assert one == same != other


@pytest.mark.parametrize(
    ("metrics", "rows", "said"),
    [
        (
            {"f1": "higher"},
            ROWS,
            "has no rows of f1, which data.metrics or --read declares\n  accepted: .*accuracy, rho, loss, seconds",
        ),
        ({"loss": "higher"}, ROWS, "loss: larger_is_better = False\n  accepted: True"),
        ({"accuracy": "auc"}, ROWS, "accuracy: no gold"),
        ({"rho": "auc"}, ROWS, "rho: labels are 0 or 1"),
        ({"loss": "pearson"}, ROWS.replace("false", ""), "loss: one row without an item"),
        ({"accuracy": "higher"}, "metric,score\naccuracy,84.2\n", "score = 84.2\n  accepted: from 0 to 1"),
    ],
)
def test_what_is_refused(metrics: dict[str, str], rows: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=said):
        scored(tmp_path, metrics, rows)
