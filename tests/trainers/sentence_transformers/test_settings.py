"""What a recipe refuses, in words."""

from __future__ import annotations

from typing import Any

import pytest

from trainers.sentence_transformers.losses import guide_of, inner, spec_of
from trainers.sentence_transformers.settings import Settings, defining


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        ("MNRL", r"loss: accepted: MultipleNegativesRankingLoss, .*; not 'MNRL'"),
        ({"name": ["CoSENTLoss"]}, r"loss: accepted: MultipleNegativesRankingLoss, .*; not \['CoSENTLoss'\]"),
        ({"name": "MatryoshkaLoss", "loss": 3, "matryoshka_dims": [8]}, "MultipleNegativesRankingLoss, .*; not 3"),
        ({"name": "CoSENTLoss", "margin": 1}, "for CoSENTLoss scale; not margin"),
        ({"name": "CoSENTLoss", "scale": "20"}, "for CoSENTLoss.scale a number above 0; not '20'"),
        ({"name": "CoSENTLoss", "scale": True}, "not True"),
        ({"name": "CoSENTLoss", "scale": -1.0}, "not -1.0"),
        ({"name": "CosineSimilarityLoss", "scale": 1}, "no arguments"),
        ({"name": "SoftmaxLoss"}, "its num_labels too"),
        ({"name": "SoftmaxLoss", "num_labels": 2.5}, "whole number from 2; not 2.5"),
        ({"name": "GISTEmbedLoss", "guide": ""}, "one of data.guides"),
        ({"name": "MatryoshkaLoss", "loss": "CoSENTLoss", "matryoshka_dims": []}, "a list of whole numbers"),
        (
            {"name": "MatryoshkaLoss", "loss": "CoSENTLoss", "matryoshka_dims": [8], "matryoshka_weights": [1, 2]},
            "as many matryoshka_weights",
        ),
        (
            {
                "name": "MatryoshkaLoss",
                "loss": {"name": "AdaptiveLayerLoss", "loss": "CoSENTLoss"},
                "matryoshka_dims": [8],
            },
            "around a loss that wraps no other",
        ),
        (
            {
                "name": "MatryoshkaLoss",
                "loss": {"name": "SoftmaxLoss", "num_labels": 2},
                "matryoshka_dims": [8],
            },
            "around another loss",
        ),
        (
            {
                "name": "SoftmaxLoss",
                "num_labels": 2,
                "concatenation_sent_rep": False,
                "concatenation_sent_difference": False,
            },
            "one of concatenation_sent_rep",
        ),
        (
            {"name": "MultipleNegativesRankingLoss", "directions": ["doc_to_doc"]},
            "query_to_doc and others, each once",
        ),
        (
            {"name": "MultipleNegativesRankingLoss", "directions": ["query_to_doc", "query_to_doc"]},
            "query_to_doc and others, each once",
        ),
        (
            {
                "name": "MultipleNegativesRankingLoss",
                "directions": ["query_to_doc", "doc_to_doc"],
                "partition_mode": "per_direction",
            },
            "partition_mode joint with",
        ),
        (
            {"name": "AdaptiveLayerLoss", "loss": "CachedMultipleNegativesRankingLoss"},
            "around a loss that is not cached",
        ),
    ],
)
def test_a_loss_that_is_refused(loss: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Settings(loss=loss)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"learning_rate": -1.0}, "learning_rate = -1.0\n  accepted: a number above 0"),
        ({"num_train_epochs": 1.0}, "with max_steps: null"),
        ({"max_steps": None}, "with max_steps: null"),
        ({"weights": {"a": 1.0}}, "together with multi_dataset_batch_sampler: weighted"),
        ({"multi_dataset_batch_sampler": "weighted"}, "together with multi_dataset_batch_sampler: weighted"),
        ({"datasets": ("a", "a")}, "each data set once"),
        ({"lora": {"r": 0}}, "lora.r = 0"),
    ],
)
def test_settings_that_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Settings(**given)


def test_what_wraps_is_looked_through() -> None:
    spec = spec_of(
        {"name": "MatryoshkaLoss", "matryoshka_dims": [8], "loss": {"name": "GISTEmbedLoss", "guide": "g"}}
    )
    assert inner(spec)["name"] == "GISTEmbedLoss"
    assert guide_of(spec) == "g"


def test_a_loss_by_its_name_alone_is_the_same_recipe() -> None:
    assert defining(Settings(loss="CoSENTLoss")) == defining(Settings(loss={"name": "CoSENTLoss"}))
    assert defining(Settings(train=False)) == defining(Settings(train=False, learning_rate=1.0))
