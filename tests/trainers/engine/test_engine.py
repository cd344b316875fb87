"""The training loop from outside: same seed same weights, resume, divergence, and many runs in one process.

Several workers against one: test_concept.py, whose loss needs the rows of all workers.
"""

from __future__ import annotations

import gc
import hashlib
import json
import pickle
import random
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from tests.workers import together
from trainers.engine import deep_speed, loop, process
from trainers.engine.loop import Diverged, Recipe, fit
from trainers.engine.micro_batches import MicroBatch
from trainers.engine.optimisation import clip, merge_groups, parameter_groups, schedule
from trainers.engine.streams import torch_stream
from trainers.engine.world import Progress, Stopped, World
from trainers.errors import TrainerError


class Net(nn.Module):
    """Two layers with dropout, named like a transformer so that every kind of group occurs."""

    def __init__(self, width: int = 16, dropout: float = 0.2) -> None:
        super().__init__()
        self.embeddings = nn.ModuleDict({"word": nn.Linear(8, width)})
        self.layer = nn.ModuleList([nn.Linear(width, width), nn.Linear(width, width)])
        self.LayerNorm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 1)
        self.layer_logits = nn.Parameter(torch.zeros(2))
        self.dropout = nn.Dropout(dropout)

    def forward(self, rows: Tensor) -> Tensor:
        hidden = self.embeddings["word"](rows)
        first = self.dropout(torch.tanh(self.layer[0](hidden)))
        second = torch.tanh(self.layer[1](first))
        first_weight, second_weight = self.layer_logits.softmax(0)
        return self.head(self.LayerNorm(first_weight * first + second_weight * second))[:, 0].float()


@dataclass(frozen=True, eq=False)
class Rows:
    x: Tensor
    y: Tensor

    def __len__(self) -> int:
        return len(self.x)


def rows(step: int) -> Rows:
    x = torch.randn(16, 8, generator=torch_stream(0, "rows", step))
    return Rows(x, x[:, 0] * x[:, 1])


def square(encode: loop.Encode, batch: Rows) -> dict[str, Tensor]:
    return {"square": ((encode(batch.x) - batch.y) ** 2).mean()}


def net(seed: int = 0, **options: Any) -> Net:
    torch.manual_seed(seed)
    return Net(**options)


def trained(
    steps: int = 12,
    seed: int = 0,
    world: World | None = None,
    model: Net | None = None,
    loss: Any = square,
    clip_norm: float = 1.0,
) -> tuple[Net, list[Progress]]:
    model, world = model if model is not None else net(), world or World()
    curve = fit(
        model,
        loss,
        rows,
        groups=parameter_groups(model, depth=2, learning_rate=1e-2, layer_decay=0.9, weight_decay=0.01),
        recipe=Recipe(steps=steps, warmup=3, clip_norm=clip_norm),
        seed=seed,
        world=world,
        look=partial(world.look, model),
    )
    return model, curve


def weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def same(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_one_seed_is_one_result_bit_for_bit(precision: Any):
    world = World(precision=precision)
    one, first = trained(world=world)
    model = net()
    random.seed(9)
    torch.manual_seed(9)
    np.random.seed(9)  # noqa: NPY002 - the global state is what must not matter
    torch.set_default_dtype(torch.float64)  # what an earlier run may leave behind
    other, second = trained(model=model, world=world)
    assert torch.get_default_dtype() == torch.float32
    assert [p.loss for p in first] == [p.loss for p in second]
    assert same(weights(one), weights(other))
    _, third = trained(seed=1, world=world)
    assert [p.loss for p in first] != [p.loss for p in third]


def test_what_libraries_draw_in_a_run_is_of_its_seed():
    """From the global states of Python, numpy and torch, whatever came before it in the process."""

    def drawn(seed: int) -> list[float]:
        random.seed(9)
        np.random.seed(9)  # noqa: NPY002
        torch.manual_seed(9)
        torch.use_deterministic_algorithms(False)
        torch.set_num_threads(2)
        found: list[float] = []

        def batches(step: int) -> Rows:
            assert torch.are_deterministic_algorithms_enabled()
            assert torch.get_num_threads() == 1
            found.extend([random.random(), np.random.rand(), torch.rand(1).item()])  # noqa: NPY002
            return rows(step)

        model = net()
        groups = parameter_groups(model, depth=2, learning_rate=1e-2, weight_decay=0.0)
        fit(model, square, batches, groups=groups, recipe=Recipe(steps=1), seed=seed, world=World())
        return found

    first, again, other = drawn(0), drawn(0), drawn(1)
    assert first == again
    assert not set(first) & set(other)


def test_an_attempt_that_lacked_memory_half_way_back_leaves_no_gradient():
    """Of its layers some had theirs already; the step is as if it had been taken once."""
    plain, curve = trained()
    model, lacking = net(), [True]

    def full(gradient: Tensor) -> None:
        if lacking:
            lacking.clear()
            raise torch.OutOfMemoryError("CUDA out of memory.")

    model.embeddings["word"].weight.register_hook(full)
    again = fit(
        model,
        square,
        rows,
        groups=parameter_groups(model, depth=2, learning_rate=1e-2, layer_decay=0.9, weight_decay=0.01),
        recipe=Recipe(steps=12, warmup=3),
        seed=0,
        world=World(),
        micro=MicroBatch(None, auto=True),
    )
    assert not lacking
    assert [p.loss for p in again] == [p.loss for p in curve]
    assert same(weights(model), weights(plain))


@pytest.mark.parametrize("clip_norm", [1.0, 0.01, 0.0])
def test_it_is_adamw_with_clipping_and_the_declared_rates(clip_norm: float):
    """A plain torch loop over the same batches, rates and dropout streams is the oracle; 0 clips nothing.

    Ours is given in evaluation mode, as encoders are loaded, and drops out all the same.
    """
    ours, curve = trained(model=net().eval(), clip_norm=clip_norm)
    model = net()
    groups = parameter_groups(model, depth=2, learning_rate=1e-2, layer_decay=0.9, weight_decay=0.01)
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.999), eps=1e-8)
    rates = [group["lr"] for group in optimizer.param_groups]
    for step, progress in enumerate(curve):
        torch.manual_seed(loop.number(0, "dropout", step, 0))
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * schedule(step, steps=12, warmup=3)
        loss = square(model, rows(step))["square"]
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip_norm or torch.inf)
        optimizer.step()
        optimizer.zero_grad()
        assert progress.loss == pytest.approx(loss.item(), abs=1e-6)
        assert progress.learning_rate == pytest.approx(1e-2 * schedule(step, steps=12, warmup=3))
    for name, value in weights(model).items():
        assert torch.allclose(ours.state_dict()[name], value, atol=1e-5), name


def test_it_learns_and_reports_every_step():
    seen: list[Progress] = []
    model, curve = trained(steps=60, world=World(report=seen.append))
    assert not model.training
    assert seen == curve
    assert [p.step for p in curve] == list(range(1, 61))
    assert np.mean([p.loss for p in curve[-10:]]) < 0.8 * np.mean([p.loss for p in curve[:10]])
    assert all(p.terms == {"square": p.loss} and p.sentences_per_second > 0 for p in curve)


def test_a_term_without_gradient_is_told_and_not_minimised():
    def told(encode: loop.Encode, batch: Rows) -> dict[str, Tensor]:
        return {**square(encode, batch), "seen": batch.y.abs().mean()}

    plain, before = trained()
    model, curve = trained(loss=told)
    assert [(p.loss, p.terms) for p in curve] == [(p.loss, p.terms) for p in before]
    assert [p.figures for p in curve] == [{"seen": rows(step).y.abs().mean().item()} for step in range(12)]
    assert same(weights(model), weights(plain))


def test_rates_by_depth_and_who_is_decayed():
    model = Net()
    model.head.bias.requires_grad_(False)
    groups = parameter_groups(
        model, depth=2, learning_rate=1.0, layer_decay=0.5, weight_decay=0.1, readout_multiplier=30.0
    )
    found = {group["name"]: (group["lr"], group["weight_decay"]) for group in groups}
    assert found == {
        "layer_logits, not decayed": (30.0, 0.0),
        "embeddings": (0.25, 0.1),
        "embeddings, not decayed": (0.25, 0.0),
        "layer 1": (0.5, 0.1),
        "layer 1, not decayed": (0.5, 0.0),
        "layer 2": (1.0, 0.1),
        "layer 2, not decayed": (1.0, 0.0),
        "top": (1.0, 0.1),
        "top, not decayed": (1.0, 0.0),
    }
    held = [parameter for group in groups for parameter in group["params"]]
    assert sorted(map(id, held)) == sorted(id(one) for one in model.parameters() if one is not model.head.bias)


@pytest.mark.parametrize(
    ("kind", "given", "embeddings"),
    [
        ("bert", {}, {"embeddings"}),
        ("electra", {"embedding_size": 8}, {"embeddings", "embeddings_project"}),
        ("deberta-v2", {"relative_attention": True, "position_buckets": 4}, {"embeddings", "rel_embeddings"}),
        ("opt", {"word_embed_proj_dim": 16, "ffn_dim": 32}, {"embed_tokens", "embed_positions"}),
        ("gpt2", {}, {"wte", "wpe"}),
        ("t5", {"d_kv": 8, "d_ff": 32}, {"shared"}),
        ("xlm", {}, {"embeddings", "position_embeddings"}),
    ],
)
def test_rates_fall_by_depth_in_every_architecture(kind: str, given: dict[str, Any], embeddings: set[str]):
    from transformers import AutoConfig, AutoModel, AutoModelForTextEncoding

    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = AutoConfig.for_model(kind, vocab_size=20, **size, **given)
    model = AutoModelForTextEncoding.from_config(config) if kind == "t5" else AutoModel.from_config(config)
    groups = parameter_groups(model, depth=2, learning_rate=1.0, layer_decay=0.5, weight_decay=0.1)
    rates = {id(parameter): group["lr"] for group in groups for parameter in group["params"]}
    by_rate: dict[float, set[str]] = {}
    for name, parameter in model.named_parameters():
        by_rate.setdefault(rates[id(parameter)], set()).update(name.split("."))
    assert embeddings <= by_rate[0.25]
    assert not embeddings & (by_rate[0.5] | by_rate[1.0])
    assert "0" in by_rate[0.5]
    assert "1" in by_rate[1.0] - by_rate[0.25]


def test_rates_cannot_fall_where_all_layers_are_one():
    from transformers import AlbertConfig, AlbertModel

    sizes = {"hidden_size": 16, "embedding_size": 8, "num_attention_heads": 2, "intermediate_size": 32}
    model = AlbertModel(AlbertConfig(vocab_size=20, num_hidden_layers=2, **sizes))
    options: dict[str, Any] = {"depth": 2, "learning_rate": 1.0, "weight_decay": 0.1}
    with pytest.raises(TrainerError, match=r"layer_decay = 0\.9: .*\n  accepted: 1\.0"):
        parameter_groups(model, layer_decay=0.9, **options)
    assert {group["lr"] for group in parameter_groups(model, **options)} == {1.0}


def test_groups_that_learn_alike_are_one():
    model = Net()
    groups = parameter_groups(model, depth=2, learning_rate=1.0, layer_decay=0.5, weight_decay=0.1)
    merged = merge_groups(groups)
    kinds = {(group["lr"], group["weight_decay"]) for group in groups}
    assert [(group["lr"], group["weight_decay"]) for group in merged] == list(
        dict.fromkeys((group["lr"], group["weight_decay"]) for group in groups)
    )
    assert len(merged) == len(kinds) < len(groups)
    for group in groups:
        into = next(
            one for one in merged if (one["lr"], one["weight_decay"]) == (group["lr"], group["weight_decay"])
        )
        assert {id(one) for one in group["params"]} <= {id(one) for one in into["params"]}


def test_deepspeed_runs_where_the_world_is_whatever_it_took_for_its_own():
    """Another package imports it, and it takes the GPU that is there; a run on the CPU beside it is on the CPU."""
    from deepspeed.accelerator import real_accelerator
    from deepspeed.accelerator.cuda_accelerator import CUDA_Accelerator

    _, expected = trained(steps=2, world=World(precision="bf16"))
    real_accelerator.ds_accelerator = CUDA_Accelerator()
    _, curve = trained(steps=2, world=World(precision="bf16"))
    assert [p.loss for p in curve] == [p.loss for p in expected]
    assert real_accelerator.get_accelerator().device_name() == "cpu"


def test_a_group_of_one_on_a_card_is_not_bound_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the group that DeepSpeed makes of it would be split off by NCCL, which one worker alone may not survive."""
    told: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    monkeypatch.setattr(process.dist, "is_initialized", lambda: False)
    monkeypatch.setattr(process.dist, "init_process_group", lambda *args, **named: told.append((args, named)))
    process.join_process_group(World(device="cuda:0"))
    ((backend,), named), *_ = told
    assert backend == "nccl"
    assert named.get("device_id") is None


def test_a_parameter_outside_the_groups_is_noticed():
    model = net()
    groups = parameter_groups(model, depth=2, learning_rate=1e-2, layer_decay=0.9, weight_decay=0.01)
    with pytest.raises(AssertionError, match="in no optimizer group"):
        fit(model, square, rows, groups=groups[1:], recipe=Recipe(steps=1), seed=0, world=World())


def test_schedule_rises_to_one_and_falls_towards_zero():
    shares = [schedule(step, steps=10, warmup=4) for step in range(11)]
    assert shares == pytest.approx([0.25, 0.5, 0.75, 1, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6, 0])
    assert schedule(0, steps=5, warmup=0) == 1
    assert [schedule(step, steps=3, warmup=2) for step in range(4)] == [0.5, 1, 1, 0]
    assert [schedule(step, steps=2, warmup=2) for step in range(3)] == [0.5, 1, 0]  # the last is asked for too


WAITS = {"item", "tolist", "cpu", "numpy", "nonzero", "masked_select", "is_nonzero", "tensor"}
WAITS |= {"__bool__", "__float__", "__int__", "__index__"}


class Heard(TorchFunctionMode):
    """What makes this machine wait for a GPU: values that are read, a mask that is counted, a constant from here."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        masks = [one for one in args[1:2] if isinstance(one, Tensor) and one.dtype == torch.bool]
        if name in WAITS or (name == "__getitem__" and masks):
            self.waits.append(name)
        return func(*args, **(kwargs or {}))


def test_deepspeed_is_not_asked_what_it_could_compile(monkeypatch: pytest.MonkeyPatch):
    """It would ask compilers, and print on stdout what a machine with a GPU and no toolkit lacks."""
    import deepspeed.ops
    from deepspeed.comm.torch import build_shm_op

    monkeypatch.delitem(vars(deepspeed.ops), "__compatible_ops__", raising=False)
    monkeypatch.setattr(deepspeed.ops, "_probe_compatible_ops", lambda: pytest.fail("it was asked"))
    deep_speed.prepare()
    assert build_shm_op() is None


def test_a_step_waits_for_nothing_before_all_of_it_was_asked_for(monkeypatch: pytest.MonkeyPatch):
    """Its figures are read last, in one go; a GPU works on until the next step's."""
    plain, before = trained()
    heard, said = Heard(), []
    take = loop._Steps.take

    def listening(steps: Any, step: int) -> Progress:
        engine = steps.engine
        asked = engine.step

        def told() -> None:
            asked()
            said.append(len(heard.waits))

        engine.step = told
        try:
            with heard:
                return take(steps, step)
        finally:
            engine.step = asked

    monkeypatch.setattr(loop._Steps, "take", listening)
    model, curve = trained()
    assert heard.waits == ["tolist"] * 12
    assert said == list(range(12))  # all that was read before a step was asked for is of those before it
    assert [p.loss for p in curve] == [p.loss for p in before]
    assert same(weights(model), weights(plain))


@pytest.mark.parametrize("limit", [0.1, 0.7, 1e9])
def test_gradients_are_clipped_as_deepspeed_clips_them(limit: float):
    from deepspeed.runtime.utils import clip_grad_norm_

    trained(steps=1)  # its own version asks for a process group
    ours, theirs = net(dropout=0.0), net(dropout=0.0)
    for model in (ours, theirs):
        square(model, rows(0))["square"].backward()
    clip(ours.parameters(), limit)
    clip_grad_norm_(theirs.parameters(), limit)
    pairs = list(zip(ours.parameters(), theirs.parameters(), strict=True))
    assert all(torch.equal(one.grad, other.grad) for one, other in pairs if one.grad is not None)
    norm = torch.stack([one.grad.norm() for one, _ in pairs if one.grad is not None]).norm().item()
    assert norm <= limit * (1 + 1e-5)


@pytest.mark.parametrize(
    ("give", "says"),
    [
        (lambda loss: [loss], "a list"),
        (lambda loss: loss, "a Tensor"),
        (lambda loss: {"near": loss, "far": 0.5}, "far as a float"),
        (lambda loss: {"near": loss, "rows": loss.repeat(3)}, "rows with the shape (3,)"),
        (lambda loss: {"near": loss.detach(), "far": loss.detach()}, "no term with a gradient: near, far"),
        (lambda loss: {}, "no term with a gradient: none at all"),
    ],
)
def test_a_loss_that_gives_no_terms_to_learn_from_is_told(give, says):
    with pytest.raises(TrainerError) as told:
        trained(loss=lambda encode, batch: give(square(encode, batch)["square"]))
    assert str(told.value).startswith(f"the loss gave {says}\n  accepted: a mapping of names to tensors")


def test_divergence_names_step_and_terms():
    def explode(encode: loop.Encode, batch: Rows) -> dict[str, Tensor]:
        fine = square(encode, batch)["square"]
        return {"square": fine, "far": fine * (torch.inf if torch.equal(batch.x, rows(3).x) else 1)}

    with pytest.raises(Diverged, match=r"not finite at step 4: .*far = inf") as raised:
        trained(loss=explode)
    assert raised.value.step == 4
    assert set(raised.value.terms) == {"square", "far"}
    again = pickle.loads(pickle.dumps(raised.value))  # it crosses process boundaries
    assert (again.step, again.terms) == (4, raised.value.terms)
    trained(steps=2)  # the process is good for another run


class Killed(Exception):
    pass


def killing(at: int) -> Any:
    def report(progress: Progress) -> None:
        if progress.step == at:
            raise Killed

    return report


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_killed_run_goes_on_as_if_nothing_happened(tmp_path: Path, precision: Any):
    whole, curve = trained(world=World(precision=precision))
    saved: list[tuple[str, int]] = []
    with pytest.raises(Killed):
        trained(
            world=World(
                precision=precision,
                scratch=tmp_path,
                checkpoint_every=4,
                report=killing(11),
                save=lambda path, step: saved.append((path.name, step)),
            )
        )
    assert saved == [("step-4", 4), ("step-8", 8)]
    assert [path.name for path in tmp_path.glob("step-*")] == ["step-8"]
    seen: list[Progress] = []
    world = World(precision=precision, scratch=tmp_path, checkpoint_every=4, report=seen.append)
    resumed, again = trained(model=net(seed=5), world=world)
    assert [p.step for p in seen] == [9, 10, 11, 12]
    assert [p.loss for p in again] == [p.loss for p in curve]
    assert [p.learning_rate for p in again] == [p.learning_rate for p in curve]
    assert same(weights(resumed), weights(whole))


def test_a_run_that_is_asked_to_stop_saves_its_last_step(tmp_path: Path):
    whole, curve = trained()
    seen: list[Progress] = []
    world = World(scratch=tmp_path, report=seen.append, stopping=lambda: len(seen) == 5)
    with pytest.raises(Stopped):
        trained(world=world)
    assert [path.name for path in tmp_path.glob("step-*")] == ["step-5"]
    resumed, again = trained(model=net(seed=5), world=World(scratch=tmp_path))
    assert [p.loss for p in again] == [p.loss for p in curve]
    assert same(weights(resumed), weights(whole))


def test_a_checkpoint_keeps_what_was_spent_and_one_without_is_gone_on_with(tmp_path: Path):
    """A run hears of the cost of the steps that it need not take; it needs no such figure to go on."""
    seen: list[Progress] = []
    for kept, scratch in (({"flops": 5.0}, tmp_path / "now"), ({}, tmp_path / "before")):
        seen.clear()
        stopping = World(
            scratch=scratch, report=seen.append, stopping=lambda: len(seen) == 5, so_far=lambda kept=kept: kept
        )
        with pytest.raises(Stopped):
            trained(world=stopping)
        heard: list[Mapping[str, float]] = []
        _, curve = trained(world=World(scratch=scratch, go_on=heard.append))
        assert len(curve) == 12
        assert heard == [kept]
    trained(world=World(scratch=tmp_path / "none", go_on=heard.append))
    assert heard == [{}]


def test_a_look_in_the_middle_changes_nothing():
    """Not the weights, not the dropout of the steps after it; its figures stand in the curve, and nowhere else."""

    def look(model: Net) -> dict[str, float]:
        model.eval()
        with torch.no_grad():
            torch.rand(7)
            return {"dev/score": float(model(rows(0).x).mean())}

    spent: dict[str, list[float]] = {"plain": [], "seen": []}
    plain, curve = trained(world=World(spent=lambda flops, _: spent["plain"].append(flops)))
    watched = World(look_at=(3, 7), look=look, spent=lambda flops, _: spent["seen"].append(flops))
    seen, again = trained(world=watched)
    assert spent["seen"] == spent["plain"]
    assert same(weights(plain), weights(seen))
    assert [p.loss for p in again] == [p.loss for p in curve]
    assert [p.step for p in again if p.figures] == [3, 7]
    first, second = (p.figures["dev/score"] for p in again if p.figures)
    assert first != second


def test_a_half_written_checkpoint_is_not_read(tmp_path: Path):
    whole, _ = trained()
    with pytest.raises(Killed):
        trained(world=World(scratch=tmp_path, checkpoint_every=4, report=killing(7)))
    names = sorted(file.name for file in (tmp_path / "step-4").iterdir())
    torn = tmp_path / "draft" / "step-8"
    shutil.copytree(tmp_path / "step-4", torn)
    for file in torn.iterdir():
        file.write_bytes(file.read_bytes()[:100])
    (torn / "extra.pt").touch()
    with pytest.raises(Killed):
        trained(world=World(scratch=tmp_path, checkpoint_every=4, report=killing(9)))
    assert sorted(file.name for file in (tmp_path / "step-8").iterdir()) == names
    resumed, curve = trained(world=World(scratch=tmp_path, checkpoint_every=4))
    assert len(curve) == 12
    assert same(weights(resumed), weights(whole))


def test_a_checkpoint_with_code_in_it_is_not_run(tmp_path: Path):
    with pytest.raises(Killed):
        trained(world=World(scratch=tmp_path, checkpoint_every=4, report=killing(5)))
    (states,) = (tmp_path / "step-4").glob("*model_states.pt")
    content = torch.load(states, weights_only=False)
    torch.save({**content, "curve": _Trap(tmp_path / "sprung")}, states)
    digests = tmp_path / "step-4" / "digests_4.json"
    own = hashlib.sha256(states.read_bytes()).hexdigest()
    digests.write_text(json.dumps({**json.loads(digests.read_text()), states.name: own}))
    with pytest.raises(pickle.UnpicklingError):
        trained(world=World(scratch=tmp_path, checkpoint_every=4))
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("harm", ["changed", "missing", "added", "unsealed"])
def test_a_checkpoint_that_is_not_as_it_was_written_is_not_opened(tmp_path: Path, harm: str):
    whole, _ = trained()
    with pytest.raises(Killed):
        trained(world=World(scratch=tmp_path, checkpoint_every=4, report=killing(5)))
    (states,) = (tmp_path / "step-4").glob("*model_states.pt")
    content = bytearray(states.read_bytes())
    content[len(content) // 2] ^= 1
    match harm:
        case "changed":
            states.write_bytes(content)
        case "missing":
            states.unlink()
        case "added":
            (tmp_path / "step-4" / "extra.pt").write_bytes(content)
        case "unsealed":
            (tmp_path / "step-4" / "digests_4.json").unlink()
    seen: list[Progress] = []
    again, _ = trained(world=World(scratch=tmp_path, checkpoint_every=4, report=seen.append))
    assert seen[0].step == 1
    assert same(weights(again), weights(whole))


@pytest.mark.parametrize(("damaged", "first"), [(False, 9), (True, 5)])
def test_of_two_checkpoints_the_older_is_gone_on_from_where_the_newer_is_damaged(
    tmp_path: Path, damaged: bool, first: int
) -> None:
    """A kill between the rename of the new one and the removal of the old one leaves both."""
    whole, _ = trained()
    scratch, kept = tmp_path / "scratch", tmp_path / "kept"
    for at in (5, 9):
        with pytest.raises(Killed):
            trained(world=World(scratch=scratch, checkpoint_every=4, report=killing(at)))
        if at == 5:
            shutil.copytree(scratch / "step-4", kept)
    kept.rename(scratch / "step-4")
    if damaged:
        next((scratch / "step-8").glob("*model_states.pt")).write_bytes(b"")
    seen: list[Progress] = []
    again, curve = trained(world=World(scratch=scratch, checkpoint_every=4, report=seen.append))
    assert [progress.step for progress in seen] == list(range(first, 13))
    assert len(curve) == 12
    assert same(weights(again), weights(whole))


class _Trap:
    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> tuple[Any, tuple[Path]]:
        return Path.touch, (self.place,)


def test_many_runs_in_one_process_leave_nothing_behind():
    """A run holds some 70 MB: weights, gradients and the two moments. Five that leaked would show as 350."""

    def once() -> list[float]:
        _, curve = trained(steps=3, model=net(width=1500))
        return [p.loss for p in curve]

    def held() -> tuple[int, int]:
        gc.collect()
        tensors = [found for found in gc.get_objects() if type(found) is Tensor or type(found) is nn.Parameter]
        return sum(tensor.numel() for tensor in tensors), psutil.Process().memory_info().rss

    first = once()
    elements, memory = held()
    assert all(once() == first for _ in range(5))
    elements_after, memory_after = held()
    assert elements_after == elements
    assert memory_after - memory < 150e6


@pytest.mark.parametrize("zero_stage", [1, 2, 3])
def test_zero_stages_train_resume_and_agree_with_each_other(tmp_path: Path, zero_stage: int):
    plain, _ = trained()
    sharded, curve = trained(world=World(zero_stage=zero_stage))
    for name, value in weights(plain).items():
        assert torch.allclose(sharded.state_dict()[name], value, atol=1e-5), name
    with pytest.raises(Killed):
        trained(world=World(zero_stage=zero_stage, scratch=tmp_path, checkpoint_every=4, report=killing(6)))
    resumed, again = trained(
        model=net(seed=5), world=World(zero_stage=zero_stage, scratch=tmp_path, checkpoint_every=4)
    )
    assert [p.loss for p in again] == [p.loss for p in curve]
    assert same(weights(resumed), weights(sharded))


def of_two_machines(rank: int, size: int, folder: Path, zero_stage: int) -> None:
    """Each has a folder of its own; what both have saved is brought to both, as Ray Train does."""
    world = partial(World, rank=rank, size=size, zero_stage=zero_stage, local_rank=0, checkpoint_every=4)
    whole, curve = trained(world=world())
    with pytest.raises(Killed):
        trained(world=world(scratch=folder / f"machine-{rank}", report=killing(10)))
    torch.distributed.barrier()
    for what, first in (("all", 9), ("a part", 1)):
        scratch = folder / what / str(rank)
        for machine in range(size if what == "all" else 1):
            shutil.copytree(folder / f"machine-{machine}", scratch, dirs_exist_ok=True)
        seen: list[Progress] = []
        model = net(seed=0 if first == 1 else 5)
        resumed, again = trained(model=model, world=world(scratch=scratch, report=seen.append))
        assert seen[0].step == first
        assert [p.loss for p in again] == [p.loss for p in curve]
        assert same(weights(resumed), weights(whole))


@pytest.mark.parametrize("zero_stage", [1, 3])
def test_what_zero_leaves_on_several_machines_is_one_checkpoint(tmp_path: Path, zero_stage: int):
    """It is gone on from where all parts of it are, and nowhere else."""
    together(2, of_two_machines, tmp_path, zero_stage)


def while_rank_0_looks(rank: int, size: int, folder: Path) -> None:
    """Of the others each tells when it goes on."""
    told = folder / "went on"

    def look(_: nn.Module) -> Mapping[str, float]:
        until = time.monotonic() + 1.0
        while time.monotonic() < until and not told.exists():
            pass
        return {"alone": float(told.exists())}

    def report(done: Progress) -> None:
        if rank and done.step == 2:
            told.touch()

    world = World(rank=rank, size=size, look_at=(2,), look=look, report=report)
    _, curve = trained(steps=3, world=world)
    if not rank:
        assert curve[1].figures == {"alone": 0.0}


def test_workers_wait_for_the_one_that_looks(tmp_path: Path) -> None:
    """On cards they would else ask DeepSpeed's group for sums, which waits ten minutes and then ends the process."""
    together(2, while_rank_0_looks, tmp_path)


def tied() -> Net:
    """Its two layers have one matrix."""
    model = net()
    model.layer[1].weight = model.layer[0].weight
    return model


def test_weights_that_are_shared_are_so_after_zero_3() -> None:
    """Within the model and beyond it: whoever holds one holds the trained one."""
    plain, _ = trained(model=tied())
    model = tied()
    beyond = nn.ParameterList([model.head.weight])
    trained(model=model, world=World(zero_stage=3))
    assert model.layer[0].weight is model.layer[1].weight
    assert beyond[0] is model.head.weight
    for name, value in weights(plain).items():
        assert torch.allclose(model.state_dict()[name], value, atol=1e-5), name


def test_a_run_of_zero_3_leaves_torch_as_it_was() -> None:
    """DeepSpeed's own linear layer rounds in another way: whatever came next in the process would, too."""
    linear = torch.nn.functional.linear
    trained(steps=3, world=World(zero_stage=3))
    assert torch.nn.functional.linear is linear
    with pytest.raises(Killed):
        trained(world=World(zero_stage=3, report=killing(1)))
    assert torch.nn.functional.linear is linear


@pytest.fixture(autouse=True)
def _default_dtype() -> Iterator[None]:
    yield
    torch.set_default_dtype(torch.float32)
