"""What a recipe refuses, in words."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest

from trainers.sentence_transformers.losses import guide_of, inner, spec_of
from trainers.sentence_transformers.settings import LoraSettings, Settings, defining
from trainers.sentence_transformers.training import ARGUMENTS


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
        ({"name": "GISTEmbedLoss", "guide": ["g"]}, r"one of data.guides; not \['g'\]"),
        *(
            (
                {"name": "MatryoshkaLoss", "loss": "CoSENTLoss", "matryoshka_dims": dims},
                f"for MatryoshkaLoss.matryoshka_dims a list of whole numbers.*; not {re.escape(repr(dims))}",
            )
            for dims in ([], 8, [8, 0], [16, 8.5], [8, True], ["8"])
        ),
        (
            {"name": "MatryoshkaLoss", "loss": "CoSENTLoss", "matryoshka_dims": [8], "matryoshka_weights": [True]},
            r"a list of numbers above 0; not \[True\]",
        ),
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


OTHER: dict[str, dict[str, Any]] = {  # another value of each setting, with the setting that it needs
    "loss": {"loss": {"name": "CoSENTLoss", "scale": 10.0}},
    "datasets": {"datasets": ("a",)},
    "weights": {"weights": {"a": 1.0}, "multi_dataset_batch_sampler": "weighted"},
    "batch_sampler": {"batch_sampler": "no_duplicates"},
    "multi_dataset_batch_sampler": {"multi_dataset_batch_sampler": "round_robin"},
    "prompts": {"prompts": {"text": "query: "}},
    "prompt": {"prompt": ""},
    "max_seq_length": {"max_seq_length": 8},
    "max_steps": {"max_steps": 101},
    "num_train_epochs": {"num_train_epochs": 1.0, "max_steps": None},
    "per_device_train_batch_size": {"per_device_train_batch_size": 4},
    "gradient_accumulation_steps": {"gradient_accumulation_steps": 2},
    "dataloader_drop_last": {"dataloader_drop_last": True},
    "learning_rate": {"learning_rate": 1e-3},
    "weight_decay": {"weight_decay": 0.1},
    "warmup_steps": {"warmup_steps": 1},
    "lr_scheduler_type": {"lr_scheduler_type": "cosine"},
    "max_grad_norm": {"max_grad_norm": 0.5},
    "lora": {"lora": {"r": 4}},
}


def test_every_setting_makes_another_recipe_and_how_texts_are_read_another_untrained_arm() -> None:
    assert set(OTHER) == {field.name for field in fields(Settings)} - {"train"}
    made = [defining(Settings(**given)) for given in ({}, *OTHER.values())]
    assert all(made.count(one) == 1 for one in made)
    still = defining(Settings(train=False))
    moved = {name for name, given in OTHER.items() if defining(Settings(train=False, **given)) != still}
    assert moved == {"prompt", "max_seq_length"}


def test_defaults_are_the_library_s() -> None:
    """Steps and the prompts' empty mapping are ours; of its samplers the default has the names here."""
    from sentence_transformers import SentenceTransformerTrainingArguments

    theirs, ours = SentenceTransformerTrainingArguments(output_dir="", report_to=[]), Settings()
    for name in (*ARGUMENTS, "batch_sampler", "multi_dataset_batch_sampler"):
        assert getattr(theirs, name) == getattr(ours, name), name
    peft = pytest.importorskip("peft")
    for field in fields(LoraSettings):
        assert getattr(peft.LoraConfig(), field.name) == getattr(LoraSettings(), field.name), field.name
