"""A card that is none, for machines without one: its tensors lie on a device of their own, and are computed on the CPU.

    SEMRAY_TEST_DEVICE=card:0 python -m pytest -n 0 -p tests.pretend_card tests/orchestration/families/test_contract.py

It is as strict as a card: tensors of two devices do not meet in one operation. A step of training that waits for the
card (`.item()`, `.tolist()`, a copy to the CPU that does not go on beside it) fails, and so does one with a term of its
loss in bf16. That is chosen where a card's autocast would choose it (`tests.card_autocast`). It is no card in that it has
no kernels, no memory and no pace of its own, and DeepSpeed's engine is left out. A process has it to its end.
(RLRD alone waits once a step: the CPU draws its bids.)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing

from tests.card_autocast import mapped, put_autocast
from trainers.engine import loop
from trainers.engine.process import reset_process
from trainers.engine.world import World

ATEN = torch.ops.aten
COPIES = {ATEN._to_copy.default, ATEN.copy_.default}
BY_INDEX = {ATEN.index.Tensor, ATEN.index_put_.default, ATEN._index_put_impl_.default}  # a card takes the CPU's
WAITING = {ATEN._local_scalar_dense.default, ATEN.nonzero.default, ATEN.equal.default, ATEN.masked_select.default}
waits: list[str] = []  # what has waited for the card since the list was emptied


class _Module(backend_registration._DummyBackendModule):
    def get_rng_state(self, device: Any = None) -> Tensor:
        return torch.zeros(1, dtype=torch.uint8)

    def set_rng_state(self, state: Tensor, device: Any = None) -> None:
        pass

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]


backend_registration._setup_privateuseone_for_python_backend(rename="card", backend_module=_Module())
CARD = torch.device("card:0")
put_autocast(CARD.type)


class OnCard(Tensor):
    """A tensor on the card; `held` has its numbers."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> OnCard:
        layout: dict[str, Any] = {"strides": held.stride(), "storage_offset": held.storage_offset()}
        out = Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype, device=CARD, **layout)
        out.held = held
        return out

    def __repr__(self) -> str:  # type: ignore[override]
        return f"OnCard({self.held!r})"

    def tolist(self) -> Any:
        waits.append("tolist")
        return _on_cpu(self.detach()).tolist()

    def pin_memory(self, *_: Any) -> Any:
        raise RuntimeError("only memory of the CPU can be pinned")

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        return _computed(func, args, kwargs or {})


class Card(TorchDispatchMode):
    """Within, tensors can be made on the card, in this thread."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(func, args, kwargs or {})


def _computed(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    tensors: list[Tensor] = []
    mapped(tensors.append, (args, kwargs))
    on_card = any(isinstance(tensor, OnCard) for tensor in tensors)
    if on_card and func not in COPIES:
        strangers = [one for one in tensors if not isinstance(one, OnCard) and one.dim() > 0]
        if [one for one in strangers if func not in BY_INDEX or one.is_floating_point() or one is args[0]]:
            raise RuntimeError(f"{func}: some of its tensors are on the card and some on the CPU")
    if on_card and func in WAITING:
        waits.append(str(func))
    told = dict(kwargs)
    target = told.get("device")
    stays = on_card if target is None else torch.device(target).type == CARD.type
    if func is ATEN.copy_.default:
        stays = isinstance(args[0], OnCard)
    if on_card and not stays and func in COPIES and not (told.get("non_blocking") or args[2:] == (True,)):
        waits.append(f"{func} to the CPU")
    if target is not None and stays:
        told["device"] = torch.device("cpu")
    if told.get("pin_memory"):
        told["pin_memory"] = False  # which needs a card
    found = func(*_on_cpu(args), **_on_cpu(told))
    if not stays:
        return found
    found = mapped(lambda one: one if isinstance(one, OnCard) else OnCard(one), found)
    return return_and_correct_aliasing(func, args, kwargs, found) if on_card else found


def _on_cpu(of: Any) -> Any:
    return mapped(lambda one: one.held if isinstance(one, OnCard) else one, of)


def _filled_from(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
    _on_cpu(target).copy_(_on_cpu(source))
    return target


def _made(make: Callable[..., Tensor], *sizes: Any, dtype: Any = None, **_: Any) -> Tensor:
    return OnCard(make(*sizes, dtype=dtype, device="cpu"))


# For what makes tensors where no `Card` is: torch itself, in C++
KERNELS = torch.library.Library("aten", "IMPL")
KERNELS.impl("empty.memory_format", partial(_made, torch.empty), "PrivateUse1")
KERNELS.impl("empty_strided", partial(_made, torch.empty_strided), "PrivateUse1")
KERNELS.impl("_copy_from", _filled_from, "PrivateUse1")


class _Stream:
    """All is done at once: nothing is waited for."""

    def record_event(self) -> _Stream:
        return self

    def synchronize(self) -> None:
        pass


class _Engine:
    """What training asks of DeepSpeed's engine."""

    def __init__(self, module: nn.Module, optimizer: Any, scheduler: Any, world: World) -> None:
        self.module, self.optimizer, self.scheduler = module, optimizer, scheduler
        self.half = world.precision == "bf16"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with torch.autocast(CARD.type, torch.bfloat16, enabled=self.half):
            return self.module(*args, **kwargs)

    def train(self) -> None:
        self.module.train()

    def backward(self, loss: Tensor) -> None:
        loss.backward()

    def step(self) -> None:
        self.optimizer.step()
        self.scheduler.step()
        self.optimizer.zero_grad(set_to_none=True)


@contextmanager
def _engine(
    model: nn.Module, groups: Any, recipe: loop.Recipe, seed: int, world: World, graphs: None
) -> Iterator[_Engine]:
    reset_process(seed, world)
    model.to(world.device)
    optimizer = torch.optim.AdamW([dict(group) for group in groups], fused=True)
    usual = partial(loop.schedule, steps=recipe.steps, warmup=recipe.warmup)
    yield _Engine(model, optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, recipe.shape or usual), world)
    model.zero_grad(set_to_none=True)


def _waiting_for_nothing(step: Callable[..., Any]) -> Callable[..., Any]:
    def watched(*args: Any, **kwargs: Any) -> Any:
        waits.clear()
        done = step(*args, **kwargs)
        assert not waits, f"a step waited for the card: {waits}"
        return done

    return watched


def _in_float32(figures: Callable[..., Any]) -> Callable[..., Any]:
    def watched(terms: Mapping[str, Tensor], *others: Any) -> Any:
        half = [name for name, term in terms.items() if term.dtype is not torch.float32]
        assert not half, f"terms of a loss are not in float32: {half}"
        return figures(terms, *others)

    return watched


def _run(thread: threading.Thread, run: Callable[[threading.Thread], None] = threading.Thread.run) -> None:
    with Card():
        run(thread)


def _saved(model: Any, *args: Any, save: Any = transformers.PreTrainedModel.save_pretrained, **kwargs: Any) -> Any:
    """As safetensors takes them: it looks at the memory of tensors."""
    state = kwargs.pop("state_dict", None) or model.state_dict()
    return save(model, *args, state_dict=_on_cpu({name: one.detach() for name, one in state.items()}), **kwargs)


def _generator(device: Any = "cpu", make: Any = torch.Generator) -> Any:
    return make("cpu" if torch.device(device).type == CARD.type else device)


def _ungraded(mode: Any = True) -> Any:
    return torch.no_grad() if mode is True else torch.enable_grad()


torch.__future__.set_swap_module_params_on_conversion(True)  # a parameter that moves stays the same object
PATCH = pytest.MonkeyPatch()
PATCH.setattr(torch, "inference_mode", _ungraded)  # whose tensors cannot be wrapped
PATCH.setattr(torch, "Generator", _generator)
PATCH.setattr(torch.cuda, "current_stream", lambda device: _Stream())
PATCH.setattr(Tensor, "pin_memory", lambda tensor: tensor)
PATCH.setattr(threading.Thread, "run", _run)  # a mode is of one thread
PATCH.setattr(transformers.PreTrainedModel, "save_pretrained", _saved)
PATCH.setattr(loop, "_deepspeed_engine", _engine)
PATCH.setattr(loop._Steps, "take", _waiting_for_nothing(loop._Steps.take))
PATCH.setattr(loop._Figures, "of", staticmethod(_in_float32(loop._Figures.of)))


@pytest.fixture(autouse=True, scope="session")
def _on_card() -> Iterator[None]:
    with Card():
        yield
