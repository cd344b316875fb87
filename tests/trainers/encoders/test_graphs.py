"""An encoder's passes as CUDA graphs, but for the graphs: what one captures is done anew each time that it runs.

On a card the real ones are asked the same (`test_on_card.py`).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from semray.testing import tiny_backbone
from tests.as_graphs import as_graphs, clear, gradients_by_name
from tests.no_card import put_graphs
from tests.scored_texts import rated, score, texts_of
from trainers.encoders import captured_pass, graphs
from trainers.encoders.dropout import ask
from trainers.encoders.encoder import Encoder
from trainers.encoders.graphs import Graphs, _shape, graphs_of
from trainers.encoders.tokens import Tokens
from trainers.engine.bf16_copies import with_bf16_copies
from trainers.engine.meter import counting
from trainers.engine.micro_batches import MicroBatch, in_parts
from trainers.engine.world import World

CARD = World(device="cuda:0", precision="bf16")


@pytest.fixture(autouse=True)
def _no_card(monkeypatch: pytest.MonkeyPatch) -> None:
    put_graphs(monkeypatch)


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_backbone(tmp_path_factory.mktemp("graphs") / "tiny", layers=2, width=32, heads=4)


def made(backbone: Path, readout: Any = "mean") -> Encoder:
    return rated(Encoder.load(backbone, readout=readout, layers=2).train(), 0.0)


Encode = Callable[[Tokens], Tensor]
Found = tuple[Tensor, dict[str, Tensor]]


def gradients(encoder: Encoder, loss: Callable[[Encode], Tensor], own: Graphs | None) -> Found:
    clear(encoder, own)
    with torch.autocast("cpu", torch.bfloat16):
        found = loss(encoder)
    found.backward()
    return found.detach(), gradients_by_name(encoder, own)


def usual(encoder: Encoder, loss: Callable[[Encode], Tensor], own: Graphs | None = None) -> Found:
    """own: the graphs that the encoder runs as otherwise."""
    running, encoder.running = encoder.running, None
    try:
        copies = encoder.bf16_copies("cuda:0")
        return gradients(encoder, lambda encode: loss(with_bf16_copies(encode, copies)), own)
    finally:
        encoder.running = running


def by_graphs(encoder: Encoder, *losses: Callable[[Encode], Tensor]) -> list[Found]:
    """Of each step."""
    with as_graphs(encoder, "cuda:0") as own:
        return [gradients(encoder, loss, own) for loss in losses]


def alike(found: Found, expected: Found) -> None:
    assert float(found[0]) == pytest.approx(float(expected[0]), rel=1e-2)
    assert found[1].keys() == expected[1].keys()
    for name, gradient in found[1].items():
        apart = (gradient - expected[1][name]).norm() / expected[1][name].norm().clamp(min=1e-3)
        assert apart < 0.03, f"{name}: {apart}"


@pytest.mark.parametrize("readout", ["mean", "cls", "weighted", "gated"])
def test_a_pass_gives_what_the_layers_give(backbone: Path, readout: Any) -> None:
    encoder = made(backbone, readout)
    tokens = texts_of(encoder, 9)

    def loss(encode: Encode) -> Tensor:
        return score(encode(tokens))

    alike(by_graphs(encoder, loss)[0], usual(encoder, loss))


def test_parts_of_a_batch_take_one_place_after_another(backbone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part is read without gradients, and again with them, by the same graphs."""
    encoder, made_anew = made(backbone), list[Any]()
    monkeypatch.setattr(captured_pass, "captured", lambda act, pool: made_anew.append(act) or act)
    tokens, micro = texts_of(encoder, 40), MicroBatch(10, auto=False, reentrant=True)

    def loss(encode: Encode) -> Tensor:
        return score(in_parts(lambda part, _: encode(part), tokens, micro))

    whole = usual(encoder, lambda encode: score(encode(tokens)))
    with as_graphs(encoder, "cuda:0") as own:
        each = [gradients(encoder, loss, own) for _ in range(3)]
        assert len(own._slots) == 1
    assert len(made_anew) <= 2 * 4
    for found in each:
        alike(found, whole)


def test_passes_of_one_step_do_not_take_each_others_place(backbone: Path) -> None:
    """Two of one shape are on their way at a time, and both leave gradients."""
    encoder = made(backbone)
    one, other = texts_of(encoder, 8, seed=1), texts_of(encoder, 8, seed=2)

    def loss(encode: Encode) -> Tensor:
        first = encode(one)
        return score(first) + score(2 * encode(other)) + (first * encode(one)).sum()

    alike(by_graphs(encoder, loss)[0], usual(encoder, loss))


def test_steps_of_many_sizes_share_a_few_graphs_and_nothing_else(
    backbone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, made_anew = made(backbone), list[Any]()
    monkeypatch.setattr(captured_pass, "captured", lambda act, pool: made_anew.append(act) or act)
    steps = [texts_of(encoder, count, seed=count) for count in (40, 9, 41, 10, 39, 9, 40)]
    losses = [lambda encode, tokens=tokens: score(encode(tokens)) for tokens in steps]
    for found, loss in zip(by_graphs(encoder, *losses), losses, strict=True):
        alike(found, usual(encoder, loss))
    assert len(made_anew) < 2 * len(steps)  # forward and back


def test_of_many_shapes_those_used_last_are_kept(backbone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, made_anew = made(backbone), list[Any]()
    monkeypatch.setattr(graphs, "MOST", 2)
    monkeypatch.setattr(captured_pass, "captured", lambda act, pool: made_anew.append(act) or act)
    few, some, many = (texts_of(encoder, count, seed=count) for count in (3, 40, 160))
    steps, captures = (few, some, few, many, few, some), (2, 4, 4, 6, 6, 8)  # `some` makes room for `many`
    losses = [lambda encode, tokens=tokens: score(encode(tokens)) for tokens in steps]
    with as_graphs(encoder, "cuda:0") as own:
        for loss, count in zip(losses, captures, strict=True):
            alike(gradients(encoder, loss, own), usual(encoder, loss, own))
            assert len(made_anew) == count
            assert len(own._slots[0].graphs) <= 2


@pytest.mark.parametrize("count", [6, 60])
def test_what_a_step_leaves_is_added_to_by_the_next_where_nobody_took_it(backbone: Path, count: int) -> None:
    """Also by one of another shape, whose capture tries a pass in the same memory."""
    encoder = made(backbone)
    one, other = texts_of(encoder, 6), texts_of(encoder, count)
    each = [
        by_graphs(encoder, lambda encode, tokens=tokens: score(encode(tokens)))[0][1] for tokens in (one, other)
    ]
    with as_graphs(encoder, "cuda:0") as own:
        gradients(encoder, lambda encode: score(encode(one)), own)
        with torch.autocast("cpu", torch.bfloat16):
            loss = score(encoder(other))
        loss.backward()
        found = gradients_by_name(encoder, own)
    for name in each[0]:
        apart = (found[name] - each[0][name] - each[1][name]).norm() / found[name].norm()
        assert apart < 1e-4, name


def test_a_pass_without_dropout_is_another(backbone: Path) -> None:
    encoder = Encoder.load(backbone).train()
    sites = [site for site in encoder.modules() if isinstance(site, torch.nn.Dropout)]
    for site in sites:
        site.p = 0.0
    sites[0].p = 0.5
    tokens = texts_of(encoder, 7)
    with as_graphs(encoder, "cuda:0"), torch.autocast("cpu", torch.bfloat16):
        dropped = encoder(tokens).detach()
        first, second = (encoder.eval()(tokens).detach() for _ in range(2))
    assert torch.equal(first, second)
    assert not torch.equal(first, dropped)


def test_where_there_is_no_room_idle_graphs_make_some(backbone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = made(backbone)
    tries = iter([False, False, True, False, False])

    def captured(act: Any, pool: Any) -> Any:
        if next(tries):
            raise torch.OutOfMemoryError("CUDA out of memory")
        return act

    monkeypatch.setattr(captured_pass, "captured", captured)
    losses = [lambda encode, count=count: score(encode(texts_of(encoder, count))) for count in (3, 60)]
    with as_graphs(encoder, "cuda:0") as own, counting(encoder) as counted:
        for loss in losses:
            alike(gradients(encoder, loss, own), usual(encoder, loss, own))
        assert len(own._slots[0].graphs) == 1  # the first one made room
        counted()


def test_a_capture_that_fails_leaves_the_encoder_as_it_was(
    backbone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = made(backbone)
    tokens = texts_of(encoder, 5)

    def fails(act: Any, pool: Any) -> Any:
        raise RuntimeError("not while it is captured")

    before = usual(encoder, lambda encode: score(encode(tokens)))
    with monkeypatch.context() as broken:
        broken.setattr(captured_pass, "captured", fails)
        with pytest.raises(RuntimeError, match="not while"):
            by_graphs(encoder, lambda encode: score(encode(tokens)))
    assert encoder.running is None
    alike(usual(encoder, lambda encode: score(encode(tokens))), before)


def test_nothing_of_the_graphs_is_left_when_a_training_is_over(
    backbone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without waiting for Python to look for cycles."""
    monkeypatch.setattr(captured_pass, "captured", lambda act, pool: act() or (lambda: None))
    encoder = made(backbone)
    with as_graphs(encoder, "cuda:0") as own:
        gradients(encoder, lambda encode: score(encode(texts_of(encoder, 5))), own)
        kept = [weakref.ref(graph) for graph in own._slots[0].graphs.values()]
    encoder.zero_grad()
    assert kept
    assert [one() for one in kept] == [None] * len(kept)


def test_a_pass_without_a_way_back_leaves_its_place(backbone: Path) -> None:
    encoder = made(backbone)
    with as_graphs(encoder, "cuda:0") as own, torch.autocast("cpu", torch.bfloat16):
        for seed in range(4):
            encoder(texts_of(encoder, 5, seed=seed)).detach()
        assert len(own._slots) == 1


def test_what_is_not_trained_gets_no_gradient(backbone: Path) -> None:
    encoder = made(backbone)
    encoder.backbone.embeddings.requires_grad_(False)
    encoder.backbone.encoder.layer[0].requires_grad_(False)
    tokens = texts_of(encoder, 7)

    def loss(encode: Encode) -> Tensor:
        return score(encode(tokens))

    found = by_graphs(encoder, loss)[0]
    alike(found, usual(encoder, loss))
    assert {name.split(".")[3] for name in found[1]} == {"1"}


def test_rates_of_dropout_are_those_of_the_pass(backbone: Path) -> None:
    encoder = made(backbone)
    tokens = texts_of(encoder, 7)
    sites = [site for site in encoder.modules() if isinstance(site, torch.nn.Dropout)]
    with as_graphs(encoder, "cuda:0"), torch.autocast("cpu", torch.bfloat16):
        before = encoder(tokens).detach()
        sites[0].p = 0.5
        dropped = encoder(tokens).detach()
        sites[0].p = 0.0
        assert torch.equal(encoder(tokens).detach(), before)
    assert not torch.equal(dropped, before)


@pytest.mark.parametrize("size", [None, 5])
def test_operations_are_those_of_the_layers(
    backbone: Path, size: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a step in which a graph is captured, which hooks hear of; they do not hear a graph.

    In parts, too: what is read again is no progress.
    """
    monkeypatch.setattr(captured_pass, "captured", lambda act, pool: act() or (lambda: None))
    encoder = made(backbone)
    tokens, micro = texts_of(encoder, 12), MicroBatch(size, auto=False, reentrant=True)

    def loss(encode: Encode) -> Tensor:
        return score(in_parts(lambda part, _: encode(part), tokens, micro))

    with counting(encoder) as counted:
        usual(encoder, loss)
        expected = counted()
        with as_graphs(encoder, "cuda:0") as own:
            for _ in range(2):
                gradients(encoder, loss, own)
                assert counted() + own.flops() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    "other",
    [
        {"precision": "fp32"},
        {"zero_stage": 1},
        {"size": 2},
        {"device": "cpu"},
    ],
)
def test_other_worlds_have_none(backbone: Path, other: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "attends", lambda device, dtype, width: device.type == "cuda")
    encoder = made(backbone)
    assert graphs_of(encoder, World(**{"device": "cuda:0", "precision": "bf16"} | other)) is None
    assert graphs_of(encoder, CARD) is not None


def test_dropout_of_ones_own_has_none(backbone: Path) -> None:
    encoder = made(backbone)
    ask(encoder.backbone, SimpleNamespace(dropped=None))
    assert graphs_of(encoder, CARD) is None


@pytest.mark.parametrize(
    ("rows", "texts", "longest"), [(1, 1, 1), (64, 3, 60), (2200, 128, 27), (17_400, 1024, 512)]
)
def test_a_shape_has_room_for_all_rows_in_texts_that_are_not_too_long(rows: int, texts: int, longest: int) -> None:
    shape = _shape(rows, texts, longest, False, ())
    assert rows <= shape.rows <= max(64, rows * 9 / 8)
    assert longest <= shape.longest <= max(16, 2 * longest)
    assert (shape.texts - texts) * shape.longest >= shape.rows - rows
