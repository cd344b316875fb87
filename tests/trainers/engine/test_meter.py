"""What a run costs: products counted by hand, parts read again counted once, and counters that a machine may show."""

from __future__ import annotations

import time
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from trainers.engine import meter as meters
from trainers.engine.meter import Meter, added, counting, part_of, peak


def net(frozen: bool) -> nn.Sequential:
    made = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
    made[0].weight.requires_grad_(not frozen)
    made[0].bias.requires_grad_(not frozen)
    return made


@pytest.mark.parametrize(
    ("frozen", "products"),
    [
        (False, 2 * 15 + 3 * 10),  # the first layer's input needs no gradient
        (True, 1 * 15 + 2 * 10),  # nor does its weight, so that the second's input needs none either
    ],
)
def test_products_forward_and_back(frozen: bool, products: int) -> None:
    """4 rows through 3 x 5 and 5 x 2: two operations for each cell of each product."""
    model = net(frozen)
    with counting(model) as flops:
        model(torch.ones(4, 3)).sum().backward()
        assert flops() == 2 * 4 * products
        assert flops() == 0
        with torch.no_grad():
            model(torch.ones(4, 3))
        assert flops() == 2 * 4 * (15 + 10)
    model(torch.ones(4, 3))
    assert flops() == 0


def test_what_is_read_again_is_counted_once() -> None:
    model, rows = net(False), torch.ones(4, 3)
    with counting(model) as flops:
        checkpoint(model, rows, use_reentrant=False).sum().backward()
        assert flops() == 2 * 4 * (2 * 15 + 3 * 10)
        with torch.inference_mode():
            model(rows)  # a look, which no backward pass reads again: it is counted
        checkpoint(model, rows, use_reentrant=False).sum().backward()
        assert flops() == 2 * 4 * (2 * 15 + 3 * 10) + 2 * 4 * (15 + 10)
        with torch.no_grad():
            model(rows)  # of a step of its own, behind which no backward pass came
        assert flops() == 2 * 4 * (15 + 10)
        checkpoint(model, rows, use_reentrant=False).sum().backward()
        assert flops() == 2 * 4 * (2 * 15 + 3 * 10)


@pytest.mark.parametrize("reentrant", [False, True])
def test_parts_of_parts_that_are_read_again_are_counted_once(reentrant: bool) -> None:
    """Of each product one forward and two back, as the rows need a gradient too."""
    model, rows = net(False), torch.ones(4, 3, requires_grad=True)

    def part(given: torch.Tensor) -> Any:
        return checkpoint(model, given, use_reentrant=reentrant)

    with counting(model) as flops:
        checkpoint(part, rows, use_reentrant=reentrant).sum().backward()
        assert flops() == 2 * 4 * 3 * (15 + 10)


@pytest.mark.parametrize("again_in_parts", [False, True])
@pytest.mark.parametrize("parts", [1, 2])
def test_what_is_first_read_without_a_gradient_has_its_gradients_counted_when_it_is_read_again(
    parts: int, again_in_parts: bool
) -> None:
    """As losses that cache gradients do: read, differentiate the rows, read once more within that pass back.

    again_in_parts: what is read once more keeps no activations, so that its own pass back reads it a third time.
    """
    model, rows = net(False), torch.ones(4, 3)
    read = partial(checkpoint, model, use_reentrant=False) if again_in_parts else model
    with counting(model) as flops:
        for _ in range(2):
            with torch.no_grad():
                leaf = torch.cat([model(part) for part in rows.chunk(parts)]).requires_grad_()
            with torch.inference_mode():
                model(rows)  # looked at, and read no more
            seen = leaf * 1

            def again(gradient: torch.Tensor) -> None:
                with torch.enable_grad():
                    for part, own in zip(rows.chunk(parts), gradient.chunk(parts), strict=True):
                        read(part).backward(own)

            seen.register_hook(again)
            seen.sum().backward()
            assert flops() == 2 * 4 * (2 * 15 + 3 * 10) + 2 * 4 * (15 + 10)


def bert(trained: str, attention: str) -> Any:
    """Two layers of width 8 with two heads; trained: this part of a layer alone, "" for all."""
    from transformers import BertConfig, BertModel

    from trainers.encoders import packing

    packing.register()
    sizes = {"hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = BertConfig(vocab_size=11, max_position_embeddings=9, attn_implementation=attention, **sizes)
    model = BertModel(config, add_pooling_layer=False)
    if trained:
        model.requires_grad_(False)
        model.get_submodule(f"encoder.layer.{trained}").requires_grad_(True)
    return model


@pytest.mark.parametrize(
    "trained", ["", *(f"1.attention.self.{name}" for name in ("query", "key", "value")), "0.output"]
)
@pytest.mark.parametrize("attention", ["eager", "semray_packed"])
def test_a_transformer_is_counted_as_torch_counts_it(attention: str, trained: str) -> None:
    """torch's own counter hears every product of matrices. Two texts of 5 and 3 tokens, in one rectangle."""
    from trainers.encoders.packing import Rectangle

    model, mask = bert(trained, attention), torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    named: dict[str, Any] = {"input_ids": torch.arange(10).view(2, 5), "attention_mask": mask}
    if attention == "semray_packed":
        places = torch.tensor([0, 1, 2, 3, 4, 5, 6, 7, 0, 0])
        area = Rectangle(places, mask.flatten().nonzero().flatten(), mask.bool())
        named = {"input_ids": torch.arange(8)[None], "layout": [area]}
    with counting(model) as flops, FlopCounterMode(display=False) as theirs:
        model(**named).last_hidden_state.sum().backward()
        assert flops() == theirs.get_total_flops()
    with counting(model) as flops, FlopCounterMode(display=False) as theirs, torch.no_grad():
        model(**named)
        assert flops() == theirs.get_total_flops()


@pytest.mark.parametrize("kind", ["modernbert", "deberta", "deberta-v2"])
def test_projections_by_other_names_are_counted(kind: str) -> None:
    from transformers import AutoConfig, AutoModel

    sizes = {"hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2}
    ids = {f"{name}_token_id": 0 for name in ("pad", "bos", "eos", "cls", "sep")}
    model = AutoModel.from_config(AutoConfig.for_model(kind, vocab_size=11, **sizes | ids))
    named = {"input_ids": torch.arange(1, 11).view(2, 5), "attention_mask": torch.ones(2, 5)}
    with counting(model) as flops, FlopCounterMode(display=False) as theirs, sdpa_kernel(SDPBackend.MATH):
        model(**named).last_hidden_state.sum().backward()
        assert flops() == theirs.get_total_flops()


class Own(nn.Module):
    """Projections by the names of attention, over rows by a name of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, *, tokens: torch.Tensor) -> torch.Tensor:
        return (self.q(tokens) @ self.k(tokens).transpose(-1, -2)) @ self.v(tokens)


def test_attention_of_other_packages_is_counted_where_its_rows_are_told() -> None:
    model = Own()
    with counting(model) as flops, torch.no_grad():
        model(tokens=torch.ones(2, 3, 4))
        assert flops() == 2 * (3 * 2 * 3 * 4 * 4 + 2 * 2 * 3 * 3 * 4)
        model(tokens=torch.ones(3, 4))
        assert flops() == 2 * 3 * 3 * 4 * 4  # what these rows are, nobody tells: linear layers alone


def test_a_take_is_what_was_spent_since_the_last() -> None:
    meter = Meter("cpu", "fp32", gpus=0.5, workers=4)
    meter.add(3e9, 0.5)
    meter.add(1e9, 1.5)
    time.sleep(0.02)
    cost = meter.take()
    assert cost["flops"] == 4 * 4e9
    assert cost["flops_per_second"] == 2e9
    assert cost["peak_share"] == pytest.approx(2e9 / peak("cpu", "fp32"))
    assert cost["seconds"] >= 0.02
    assert cost["gpu_hours"] == pytest.approx(4 * 0.5 * cost["seconds"] / 3600)
    assert meter.take().keys() <= {"seconds", "gpu_hours", "joules"}


def test_the_limit_is_measured_once() -> None:
    """Some operations a second, and the same number when asked again."""
    assert 1e8 < peak("cpu", "fp32") == peak("cpu", "fp32")


@pytest.mark.parametrize(("precision", "kind"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_the_limit_is_that_of_the_fastest_product_in_this_precision(
    precision: Any, kind: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two operations for each of 8³ products of numbers, by a clock that shows 4, 1, 2 and 8 seconds."""

    class Products(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.matmul):
                found.append((args[0].dtype, tuple(args[0].shape)))
            return func(*args, **(kwargs or {}))

    found: list[Any] = []
    clock = iter([0, 4, 10, 11, 20, 22, 30, 38])
    monkeypatch.setitem(meters.SIDES, "cpu", 8)
    monkeypatch.setattr(meters, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    with Products():
        assert peak.__wrapped__("cpu", precision) == 2 * 8**3
    assert set(found) == {(kind, (8, 8))}


def test_a_training_whose_products_are_not_known_has_no_rates() -> None:
    """GPT-2's layers are none of torch's linear ones."""
    meter = Meter("cpu", "fp32")
    meter.add(0.0, 0.5)
    assert meter.take().keys() <= {"seconds", "gpu_hours", "joules"}


def test_what_earlier_attempts_spent_is_part_of_the_next_take() -> None:
    """Two members of a stack each bring their half; rates are of this attempt alone."""
    meter = Meter("cpu", "fp32")
    for _ in range(2):
        meter.go_on({"seconds": 100.0, "flops": 1e9, "step_seconds": 40.0, "gpu_hours": 0.5, "train": 90.0})
    meter.add(1e9, 0.5)
    assert meter.so_far()["flops"] == 3e9
    cost = meter.take()
    assert 200 < cost["seconds"] < 201
    assert (cost["flops"], cost["step_seconds"], cost["gpu_hours"]) == (3e9, 80.5, 1.0)
    assert cost["flops_per_second"] == 2e9
    assert "train" not in cost
    assert meter.take()["seconds"] < 1


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("full"), RuntimeError("CUBLAS_STATUS_ALLOC_FAILED")])
def test_a_limit_that_cannot_be_measured_loses_no_training(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(device: str, precision: str) -> float:
        raise error

    monkeypatch.setattr(meters, "peak", full)
    meter = Meter("cpu", "fp32")
    meter.add(1e9, 0.5)
    cost = meter.take()
    assert cost["flops_per_second"] == 2e9
    assert "peak_share" not in cost


def test_the_limit_draws_nothing_from_the_process() -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    peak.__wrapped__("cpu", "fp32")
    assert torch.equal(torch.rand(2), expected)


def test_entries_of_a_run_add_up() -> None:
    trained = {"seconds": 3.0, "flops": 6.0, "step_seconds": 2.0, "flops_per_second": 3.0, "peak_share": 0.5}
    scored = {"seconds": 1.0}
    assert added(trained, scored) == {**trained, "seconds": 4.0}
    assert added({**trained, "joules": 4.0}, {**scored, "joules": 1.0}) == {
        **trained,
        "seconds": 4.0,
        "joules": 5.0,
    }
    assert added({}, {}) == {}


def test_a_part_of_a_shared_cost_has_its_share_of_sums_and_the_whole_rates() -> None:
    rates = {"flops_per_second": 3.0, "peak_share": 0.5}
    shared = {
        "seconds": 8.0,
        "step_seconds": 4.0,
        "gpu_hours": 2.0,
        "joules": 40.0,
        "gpu_joules": 20.0,
        "flops": 12.0,
    }
    quarter = {
        "seconds": 2.0,
        "step_seconds": 1.0,
        "gpu_hours": 0.5,
        "joules": 10.0,
        "gpu_joules": 5.0,
        "flops": 3.0,
    }
    assert part_of({**shared, **rates}, 0.25) == {**quarter, **rates}


@pytest.mark.parametrize("name", ["joules", "gpu_joules"])
def test_a_sum_that_lacks_the_energy_of_a_part_is_none(name: str) -> None:
    told, untold = {"seconds": 1.0, name: 4.0}, {"seconds": 1.0}
    assert added(told, untold) == added(untold, told) == {"seconds": 2.0}
    assert added(told, {}) == added({}, told) == told
