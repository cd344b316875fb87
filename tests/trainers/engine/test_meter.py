"""What a run costs: products counted by hand, parts read again counted once, and counters that a machine may show."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from trainers.engine import meter as meters
from trainers.engine.meter import Meter, added, counting, peak


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


def bert(frozen: bool, attention: str) -> Any:
    """Two layers of width 8 with two heads; frozen: all but the second layer's keys and what lies behind them."""
    from transformers import BertConfig, BertModel

    from trainers.encoders import packing

    packing.register()
    sizes = {"hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = BertConfig(vocab_size=11, max_position_embeddings=9, attn_implementation=attention, **sizes)
    model = BertModel(config, add_pooling_layer=False)
    if frozen:
        model.requires_grad_(False)
        model.encoder.layer[1].attention.self.key.requires_grad_(True)
    return model


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("attention", ["eager", "semray_packed"])
def test_a_transformer_is_counted_as_torch_counts_it(attention: str, frozen: bool) -> None:
    """torch's own counter hears every product of matrices. Two texts of 5 and 3 tokens, in one rectangle."""
    from trainers.encoders.packing import Rectangle

    model, mask = bert(frozen, attention), torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
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


def test_energy_is_shared_by_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two packages; their parts below are no packages. Half of the work is ours."""
    for name, joules in (("intel-rapl:0", 100), ("intel-rapl:1", 50), ("intel-rapl:0:0", 70)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "energy_uj").write_text(f"{joules}000000\n")
    monkeypatch.setattr(meters, "POWER_CAP", tmp_path)
    before = meters._energy("cpu")
    assert before["processors"] == 150
    after = {"processors": 170.0, "busy": before["busy"] + 10, "own": before["own"] + 5}
    assert meters._joules(before, after, 0.0) == pytest.approx(10)
    assert meters._joules({"card": 5.0}, {"card": 25.0}, 0.25) == 5
    assert meters._joules(before, {**after, "processors": 3.0}, 0.0) == 0  # the counter began anew
    (tmp_path / "intel-rapl:1" / "energy_uj").write_text("no number")
    assert "processors" not in meters._energy("cpu")


def test_entries_of_a_run_add_up() -> None:
    trained = {"seconds": 3.0, "flops": 6.0, "step_seconds": 2.0, "flops_per_second": 3.0, "peak_share": 0.5}
    scored = {"seconds": 1.0, "joules": 4.0}
    assert added(trained, scored) == {**trained, "seconds": 4.0, "joules": 4.0}
    assert added({}, {}) == {}
