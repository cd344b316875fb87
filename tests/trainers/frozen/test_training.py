"""Encoders as they are: each is read as its own modules read it, or refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.tiny import tiny_backbone
from trainers.encoders.encoder import Encoder
from trainers.engine.world import World
from trainers.frozen.settings import Settings
from trainers.frozen.training import read

TEXTS = [
    "the old cat",
    "a small cup of hot water on the stone",
    "a river that runs from the town to the house " * 9,
]


def as_kept(folder: Path, pooling: str | tuple[str, ...], length: int, *more: str) -> Path:
    """A tiny transformer as sentence-transformers itself keeps it, with further modules by name."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    body = modules.Transformer(str(tiny_backbone(folder / "body", seed=2)))
    body.max_seq_length = length
    parts = [body, modules.Pooling(32, pooling)]
    parts += [modules.Dense(32, 16) if kind == "Dense" else modules.Normalize() for kind in more]
    SentenceTransformer(modules=parts, device="cpu").save(str(folder / "kept"))
    return folder / "kept"


def by_its_own_program(folder: Path) -> np.ndarray:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu").encode(TEXTS, show_progress_bar=False)


@pytest.mark.parametrize(
    ("pooling", "more"), [("cls", ()), ("cls", ("Normalize",)), ("mean", ("Normalize",)), ("lasttoken", ())]
)
def test_a_model_is_read_as_its_own_modules_read_it(tmp_path: Path, pooling: str, more: tuple[str, ...]) -> None:
    folder = as_kept(tmp_path, pooling, 20, *more)
    encoder = read(Settings(), folder, World())
    assert encoder.max_length == 20
    assert encoder.normalises == bool(more)
    expected = by_its_own_program(folder)
    reader = encoder.readers["texts" if more else "unscaled"]
    assert reader(TEXTS) == pytest.approx(expected, abs=1e-5)
    assert encoder.truncated == 1
    other = read(Settings(readout="max", max_length=8), folder, World())
    assert (other.readout, other.max_length) == ("max", 8)


@pytest.mark.parametrize(
    "fields", [{}, {"architectures": None}, {"architectures": ["BertForCausalLM"], "is_causal": False}]
)
def test_a_bare_transformer_is_read_by_its_mean_at_full_length(tmp_path: Path, fields: dict[str, object]) -> None:
    folder = tiny_backbone(tmp_path / "bare", seed=2)
    written_into(folder / "config.json", **fields)
    (folder / "sentence_bert_config.json").unlink()
    encoder = read(Settings(), folder, World())
    assert (encoder.readout, encoder.max_length) == ("mean", 128)
    assert encoder.encode_unscaled(TEXTS) == pytest.approx(by_its_own_program(folder), abs=1e-5)


def test_the_longer_standing_spelling_of_a_pooling(tmp_path: Path) -> None:
    folder = as_kept(tmp_path, "cls", 20)
    flags = {"word_embedding_dimension": 32, "pooling_mode_cls_token": False, "pooling_mode_max_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(flags))
    encoder = read(Settings(), folder, World())
    assert encoder.readout == "max"
    assert encoder.encode_unscaled(TEXTS) == pytest.approx(by_its_own_program(folder), abs=1e-5)


@pytest.mark.parametrize("readout", ["cls", "sum", "weighted", "gated"])
def test_an_encoder_that_was_saved_here_is_read_as_it_was(tmp_path: Path, readout: str) -> None:
    first = Encoder.load(tiny_backbone(tmp_path / "tiny"), readout=readout, layers=2, max_length=20)
    first.save(tmp_path / "saved")
    again = read(Settings(), tmp_path / "saved", World())
    assert (again.readout, again.max_length) == (readout, 20)
    assert np.array_equal(again.encode(TEXTS), first.encode(TEXTS))


@pytest.mark.parametrize(
    ("pooling", "more", "said"),
    [
        ("mean", ("Dense", "Normalize"), "Dense in modules.json"),
        (("cls", "mean"), (), "pooling by cls and mean"),
        ("weightedmean", (), "pooling by weightedmean"),
    ],
)
def test_modules_that_are_not_here_are_refused_with_what_reads_them(
    tmp_path: Path, pooling: str, more: tuple[str, ...], said: str
) -> None:
    folder = as_kept(tmp_path, pooling, 20, *more)
    with pytest.raises(ValueError, match=rf"{said}, which is not done here\n  accepted: family: command"):
        read(Settings(), folder, World())
    assert read(Settings(readout="mean"), folder, World()).readout == "mean"


@pytest.mark.parametrize(
    ("kept", "said"), [((0,), "0 Pooling modules"), ((0, 1, 1), "2 Pooling modules"), ((0, 2, 1), "Other")]
)
def test_other_modules_than_one_pooling_are_refused(tmp_path: Path, kept: tuple[int, ...], said: str) -> None:
    folder = as_kept(tmp_path, "mean", 20, "Normalize")
    listed = json.loads((folder / "modules.json").read_text())
    listed[2]["type"] = "a.library.Other"
    (folder / "modules.json").write_text(json.dumps([listed[place] for place in kept]))
    with pytest.raises(ValueError, match=rf"has {said} in modules.json, which is not done here\n  accepted: "):
        read(Settings(), folder, World())


def written_into(file: Path, **fields: object) -> None:
    held = json.loads(file.read_text()) if file.is_file() else {}
    file.write_text(json.dumps({**held, **fields}))


@pytest.mark.parametrize("included", [True, False])
@pytest.mark.parametrize("prompt", ["", "a tool of the town: "])
def test_a_prompt_is_averaged_with_its_text_or_refused(tmp_path: Path, prompt: str, included: bool) -> None:
    folder = as_kept(tmp_path, "mean", 20)
    written_into(folder / "1_Pooling" / "config.json", include_prompt=included)
    named = {"prompts": {"text": prompt}, "default_prompt_name": "text"} if prompt else {}
    written_into(folder / "config_sentence_transformers.json", **named)
    if prompt and not included:
        with pytest.raises(ValueError, match=r"has pooling without the prompt, which is not done here"):
            read(Settings(), folder, World())
    else:
        found = read(Settings(), folder, World()).encode_unscaled(TEXTS)
        assert found == pytest.approx(by_its_own_program(folder), abs=1e-5)


@pytest.mark.parametrize(
    ("file", "field", "value"),
    [
        ("config_sentence_transformers.json", "truncate_dim", 8),
        ("sentence_bert_config.json", "processing_kwargs", {"text": {"add_special_tokens": False}}),
        ("sentence_bert_config.json", "processing_kwargs", {"text": {"max_length": 8, "truncation": True}}),
        ("sentence_bert_config.json", "do_lower_case", True),
        ("sentence_bert_config.json", "tokenizer_args", {"model_max_length": 8}),
        (
            "sentence_bert_config.json",
            "modality_config",
            {"text": {"method": "forward", "method_output_name": "pooler_output"}},
        ),
    ],
)
def test_what_else_changes_its_vectors_is_refused(tmp_path: Path, file: str, field: str, value: object) -> None:
    folder = as_kept(tmp_path, "mean", 20)
    written_into(folder / file, **{field: value})
    with pytest.raises(ValueError, match=rf"has {field} in {file}, which is not done here\n  accepted: family: "):
        read(Settings(), folder, World())
    assert read(Settings(readout="mean"), folder, World()).max_length == 20


def test_what_changes_no_vector_is_passed_over(tmp_path: Path) -> None:
    folder = as_kept(tmp_path, "mean", 20)
    harmless = {"do_lower_case": False, "unpad_inputs": False, "query_length": 4}
    written_into(folder / "sentence_bert_config.json", **harmless, model_args={"add_pooling_layer": False})
    written_into(folder / "config_sentence_transformers.json", truncate_dim=None)
    (folder / "chat_template.jinja").write_text("{{ messages[0].content }}")
    (folder / "1_Pooling" / "config.json").write_text('{"embedding_dimension": 32}')  # the mean, then
    encoder = read(Settings(), folder, World())
    assert encoder.encode_unscaled(TEXTS) == pytest.approx(by_its_own_program(folder), abs=1e-5)


@pytest.mark.parametrize("kind", ["roberta", "albert"])
def test_the_length_in_a_file_that_an_older_version_named_after_the_kind(tmp_path: Path, kind: str) -> None:
    folder = as_kept(tmp_path, "mean", 20)
    (folder / "sentence_bert_config.json").rename(folder / f"sentence_{kind}_config.json")
    written_into(folder / f"sentence_{kind}_config.json", max_seq_length=12)
    encoder = read(Settings(), folder, World())
    assert encoder.max_length == 12
    assert encoder.encode_unscaled(TEXTS) == pytest.approx(by_its_own_program(folder), abs=1e-5)
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 9}')  # which goes before
    assert read(Settings(), folder, World()).encode_unscaled(TEXTS) == pytest.approx(
        by_its_own_program(folder), abs=1e-5
    )


@pytest.mark.parametrize(
    ("file", "fields", "said"),
    [
        ("config.json", {"architectures": ["LlamaForCausalLM"]}, "LlamaForCausalLM and no modules.json"),
        ("tokenizer_config.json", {"chat_template": "{{ messages[0].content }}"}, "a chat template"),
        ("chat_template.jinja", {}, "a chat template"),
    ],
)
def test_a_bare_transformer_that_is_not_read_by_the_mean_of_its_texts_is_refused(
    tmp_path: Path, file: str, fields: dict[str, object], said: str
) -> None:
    folder = tiny_backbone(tmp_path / "bare", seed=2)
    written_into(folder / file, **fields)
    with pytest.raises(ValueError, match=rf"has {said}.*, which is not done here\n  accepted: "):
        read(Settings(), folder, World())
