"""Two dropout rates in one step: `separate` and `fused` are one function without dropout, and each rate is its own."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModel, MambaConfig

from trainers.encoders.encoder import Encoder
from trainers.engine.micro_batches import MicroBatch
from trainers.san.dropout import ByText, at, check_sites, dropout_by_row, rate_of, set_rate
from trainers.san.readers import check_dropout
from trainers.san.settings import Settings
from trainers.san.student import Student

VIEWS = ["a dog runs in the town", "the cat", "a dog runs in the town", "the cat"]
NEGATIVES = ["a bird grows by the river of stone", "the pot"]
BASE = Settings(readout="mean", batch_size=2)


def student(backbone: Path, settings: Settings) -> Student:
    encoder = Encoder.load(backbone, readout="mean", max_length=32)
    if settings.p1 is not None:
        set_rate(encoder.backbone, settings.p1)
    return Student(encoder, settings, 0).train()


def states(model: Student, negatives: list[str] | None = NEGATIVES, seed: int = 1) -> torch.Tensor:
    torch.manual_seed(seed)
    tokenise = model.encoder.tokenise
    return model(tokenise(VIEWS), None if negatives is None else tokenise(negatives), 77)


def test_without_dropout_fused_and_separate_agree_in_values_and_gradients(backbone: Path):
    found = {}
    for san_pass in ("separate", "fused"):
        model = student(backbone, replace(BASE, p1=0.0, p2=0.0, san_pass=san_pass))  # type: ignore[arg-type]
        rows = states(model)
        rows.square().sum().backward()
        gradients = {name: value.grad for name, value in model.named_parameters() if value.grad is not None}
        found[san_pass] = rows.detach(), gradients
    assert torch.allclose(found["separate"][0], found["fused"][0], atol=1e-6)
    assert found["separate"][1].keys() == found["fused"][1].keys()
    for name, gradient in found["separate"][1].items():
        assert torch.allclose(gradient, found["fused"][1][name], atol=1e-5), name


def test_one_lookup_for_both_passes_changes_no_digit(backbone: Path, monkeypatch: pytest.MonkeyPatch):
    """Values and gradients, dropout included; in bf16 too."""
    settings = replace(BASE, p1=0.1, p2=0.3)
    for half in (False, True):
        found = []
        for how in (Encoder.one_lookup, lambda encoder, *several: nullcontext()):
            monkeypatch.setattr(Encoder, "one_lookup", how)
            model = student(backbone, settings)
            model.second = None
            with torch.autocast("cpu", torch.bfloat16, enabled=half):
                rows = states(model, NEGATIVES * 3)
            rows.square().sum().backward()
            found.append([rows.detach(), *(one.grad for one in model.parameters() if one.grad is not None)])
        assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


@pytest.mark.parametrize("san_pass", ["separate", "fused"])
def test_the_second_rate_is_that_of_the_negatives_alone(backbone: Path, san_pass: Any):
    """At p1 = 0 the views are as without dropout, whatever the negatives' rate, and in evaluation all are."""
    quiet = states(student(backbone, replace(BASE, p1=0.0, p2=0.0))).detach()
    model = student(backbone, replace(BASE, p1=0.0, p2=0.5, san_pass=san_pass))
    rows = states(model).detach()
    assert torch.allclose(rows[:4], quiet[:4], atol=1e-6)
    assert (rows[4:] - quiet[4:]).abs().amax(1).min() > 1e-3
    other = student(backbone, replace(BASE, p1=0.5, p2=0.0, san_pass=san_pass))
    rows = states(other).detach()
    assert torch.allclose(rows[4:], quiet[4:], atol=1e-6)
    assert (rows[:4] - quiet[:4]).abs().amax(1).min() > 1e-3
    assert torch.allclose(states(other.eval()), quiet, atol=1e-6)


def test_views_drop_what_they_drop_in_the_plain_arm(backbone: Path):
    """Negatives draw from a stream of their own; fused they go on with that of the views."""
    model = student(backbone, replace(BASE, p1=0.1, p2=0.3))
    plain, with_negatives = states(model, None), states(model)
    assert torch.equal(plain, with_negatives[:4])
    assert torch.equal(states(model, seed=2)[4:], with_negatives[4:])
    assert not torch.equal(states(model, seed=2)[:4], with_negatives[:4])
    fused = student(backbone, replace(BASE, p1=0.1, p2=0.3, san_pass="fused"))
    assert not torch.equal(states(fused, seed=2)[4:], states(fused)[4:])


def test_one_pass_over_all_draws_what_two_draw(backbone: Path):
    """Each at its rate; gradients of weights are the same sums in another order."""
    found = []
    for together in (True, False):
        model = student(backbone, replace(BASE, p1=0.1, p2=0.3))
        model.second = model.second if together else None
        rows = states(model, NEGATIVES * 3)
        rows.square().sum().backward()
        found.append((rows.detach(), [one.grad for one in model.parameters() if one.grad is not None]))
    (one, gradients), (other, others) = found
    assert torch.equal(one, other)
    assert all(torch.allclose(*pair, rtol=1e-4, atol=1e-5) for pair in zip(gradients, others, strict=True))


@pytest.mark.parametrize("san_pass", ["separate", "fused"])
def test_no_more_than_a_micro_batch_runs_at_a_time(backbone: Path, san_pass: Any):
    """Views and negatives alike, with the rows of the whole."""
    settings = replace(BASE, p1=0.0, p2=0.0, san_pass=san_pass)
    whole, model = states(student(backbone, settings)), student(backbone, settings)
    model.micro, texts = MicroBatch(2, auto=False), []

    def count(body: nn.Module, given: Any, named: dict[str, Any]) -> None:
        texts.append(sum(len(area.mask) for area in named["layout"]))

    model.encoder.backbone.register_forward_pre_hook(count, with_kwargs=True)
    assert torch.allclose(states(model), whole, atol=1e-6)
    assert texts == [2, 2, 2]


def test_every_token_is_dropped_at_the_rate_of_its_text():
    torch.manual_seed(0)
    rates = torch.tensor([0.1, 0.25, 0.6])[:, None]
    dropped = dropout_by_row(torch.ones(3, 40_000), rates)
    assert ((dropped == 0).float().mean(1) - rates[:, 0]).abs().max() < 0.01
    assert (dropped.mean(1) - 1).abs().max() < 0.03  # what is kept makes up for what is not


def test_rates_reach_every_site(backbone: Path):
    """Attention, which takes its rate from a module, and all hidden sites: with one site at a time, texts differ."""
    encoder = Encoder.load(backbone, readout="mean", max_length=32)
    table = ByText(encoder)
    tokens = encoder.tokenise(["a dog runs in the town"] * 2)
    quiet = torch.from_numpy(encoder.embed(tokens))
    encoder.train()
    set_rate(encoder.backbone, 0.0)
    with table.rates(tokens, np.array([0.0, 0.4])):
        rows = encoder.pooled(tokens).detach()
    assert torch.allclose(rows[0], quiet[0], atol=1e-6)
    assert not torch.allclose(rows[1], quiet[1], atol=1e-2)
    assert table.of_tokens is None


def test_a_rate_is_set_for_a_while_or_for_good(backbone: Path):
    body = Encoder.load(backbone).backbone
    assert rate_of(body) == pytest.approx(0.1)
    with at(body, 0.3):
        assert rate_of(body) == 0.3
    assert rate_of(body) == pytest.approx(0.1)
    with pytest.raises(ValueError, match=r"train\.p1 = 0\.15\n  accepted: a backbone with dropout"):
        check_sites(nn.Linear(2, 2), {"p1": 0.15, "p2": 0.2})


@pytest.mark.parametrize("kind", ["modernbert", "qwen2"])
def test_a_rate_reaches_attention_that_takes_it_from_no_module(kind: str):
    """ModernBERT's and Qwen's are numbers beside their weights: at 0 two passes agree, and at p2 they do not."""
    sizes = {"vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    rest = {"num_key_value_heads": 2, "intermediate_size": 32, "attention_dropout": 0.1, "initializer_range": 0.2}
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
    config = AutoConfig.for_model(kind, **sizes, **special, **rest)
    body, ids = AutoModel.from_config(config).train(), torch.arange(3, 19)[None]

    def twice() -> tuple[torch.Tensor, torch.Tensor]:
        return body(input_ids=ids)[0], body(input_ids=ids)[0]

    set_rate(body, 0.0)
    assert torch.equal(*twice())
    with at(body, 0.5):
        assert not torch.allclose(*twice(), atol=1e-4)
    assert torch.equal(*twice())


@pytest.mark.parametrize(("given", "field"), [({"p1": 0.15}, "p1"), ({"san": "hince", "negatives": "san"}, "p2")])
def test_a_rate_for_a_backbone_that_drops_nothing_is_refused_before_its_weights_are_read(
    tmp_path: Path, given: dict[str, Any], field: str
):
    MambaConfig(vocab_size=20, hidden_size=16, num_hidden_layers=2).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=rf"train\.{field} = .*\n  accepted: a backbone with dropout"):
        check_dropout(tmp_path, Settings(**given))
    for idle in (Settings(host="simcse_sup"), Settings(train=False, p1=0.15)):
        check_dropout(tmp_path, idle)


@pytest.mark.parametrize("own", [0.1, 0.0])
@pytest.mark.parametrize("kind", ["bert", "modernbert", "mamba"])
def test_views_of_one_text_ask_for_dropout(tmp_path: Path, kind: str, own: float):
    """Its own, or of the arm. Where templates or texts differ, views do."""
    rates = {"hidden_dropout_prob": own, "attention_probs_dropout_prob": own, "attention_dropout": own}
    sizes = {"vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    special = {"pad_token_id": 0, "cls_token_id": 1, "sep_token_id": 2, "bos_token_id": 1, "eos_token_id": 2}
    AutoConfig.for_model(kind, **sizes, **special, **rates).save_pretrained(tmp_path)
    taught: dict[str, Any] = {"host": "rankcse", "teachers": ("a",)}
    for alike in (Settings(), Settings(**taught)):
        if own and kind != "mamba":
            check_dropout(tmp_path, alike)
            continue
        with pytest.raises(ValueError, match=r"train\.p1 = None\n  accepted: a rate such as 0\.1, or a backbone"):
            check_dropout(tmp_path, alike)
    second = Settings(p2_of="second_view", p2=0.2)
    for apart in (second, replace(BASE, p1=0.1)) if kind != "mamba" else ():
        check_dropout(tmp_path, apart)
    for apart in (Settings(host="sncse"), Settings(host="simcse_sup"), Settings(train=False)):
        check_dropout(tmp_path, apart)


def test_fused_needs_a_backbone_that_runs_packed_and_drops_all_at_one_rate(backbone: Path):
    encoder = Encoder.load(backbone)
    next(module for module in encoder.backbone.modules() if isinstance(module, nn.Dropout)).p = 0.3
    with pytest.raises(ValueError, match=r"train\.p1 = None\n  accepted: a rate, since .* differ: \[0\.1, 0\.3\]"):
        Student(encoder, replace(BASE, san_pass="fused"), 0)
    encoder.backbone.config._attn_implementation = "sdpa"
    with pytest.raises(ValueError, match=r"train\.san_pass = 'fused'\n  accepted: separate"):
        ByText(encoder)
