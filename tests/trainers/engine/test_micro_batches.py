"""A batch in parts: the gradients of the whole, in double precision, dropout replayed; and where memory is short."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.tiny import tiny_corpus
from tests.trainers.cale_corpus import cale_corpus
from tests.trainers.san.corpus import san_corpus
from trainers.cale import settings as cale_settings
from trainers.cale import training as cale
from trainers.cale.batches import batches as cale_batches
from trainers.concept import settings as concept_settings
from trainers.concept import training as concept
from trainers.concept.batches import batches as concept_batches
from trainers.concept.layer_heads import LayerSupervised
from trainers.encoders.encoder import Encoder
from trainers.encoders.occurrence_encoder import OccurrenceEncoder
from trainers.encoders.tokens import Tokens
from trainers.engine import micro_batches
from trainers.engine.loop import Recipe, fit
from trainers.engine.micro_batches import InParts, MicroBatch, in_parts, within_memory
from trainers.engine.optimisation import parameter_groups
from trainers.engine.shortage import OutOfMemory
from trainers.engine.streams import torch_stream
from trainers.engine.world import Progress, Stopped, World
from trainers.san import settings as san_settings
from trainers.san.batches import batches as san_batches
from trainers.san.readers import encoder_of
from trainers.san.student import Student
from trainers.san.training import terms_of

Terms = Callable[[Any], dict[str, Tensor]]
World_ = World()


def of_concept(backbone: Path, micro: MicroBatch | None, **given: Any) -> tuple[nn.Module, Terms]:
    settings = concept_settings.Settings(hard_negatives=True, batch_size=6, max_length=32, layers=2, **given)
    encoder = concept.read(settings, backbone, World_).double()
    batch = concept_batches(settings, tiny_corpus(), encoder.tokenise, 0, World_)(1)
    supervised = concept.supervises(settings)
    model = LayerSupervised(encoder, torch_stream(0, "heads")).double() if supervised else encoder
    return model, partial(_terms, partial(concept.loss, batch=batch, settings=settings, world=World_))


def of_cale(backbone: Path, micro: MicroBatch | None, **given: Any) -> tuple[nn.Module, Terms]:
    settings = cale_settings.Settings(batch_size=6, max_length=32, **given)
    occurrences = cale.read(settings, backbone, World_)
    assert isinstance(occurrences, OccurrenceEncoder)
    batch = cale_batches(settings, cale_corpus(), occurrences.tokenise, 0, World_)(1)
    model = occurrences.encoder.double()
    return model, partial(_terms, partial(cale.loss, batch=batch, settings=settings, world=World_))


def of_san(backbone: Path, micro: MicroBatch | None, **given: Any) -> tuple[nn.Module, Terms]:
    teachers = {"whole": f"{backbone}@mean", "words": f"{backbone}@idf"}
    taught = given.get("host") in san_settings.TAUGHT
    settings = san_settings.Settings(
        batch_size=6, readout="mean", teachers=tuple(teachers) if taught else (), **given
    )
    encoder, corpus = encoder_of(settings, backbone, World_), san_corpus(teachers=teachers)
    student = Student(encoder, settings, 0, micro).double()
    batch = san_batches(settings, corpus, encoder, 0, World_)(1)
    terms = terms_of(settings, student, corpus, 1, World_)
    return student, lambda model: terms(model, batch)


def _terms(loss: Callable[..., dict[str, Tensor]], model: Any) -> dict[str, Tensor]:
    return loss(model)


NEGATIVES = {"san": "hince", "negatives": "san"}
ARMS: dict[str, tuple[Callable[..., tuple[nn.Module, Terms]], dict[str, Any]]] = {
    "concept": (of_concept, {}),
    "concept unified_all": (of_concept, {"hn_mode": "unified_all"}),
    "concept M3": (of_concept, {"readout": "weighted", "deep_supervision": "beside"}),
    "cale": (of_cale, {}),
    "simcse": (of_san, {}),
    "simcse+san": (of_san, {**NEGATIVES, "p2": 0.3}),
    "simcse+san fused": (of_san, {**NEGATIVES, "san_pass": "fused", "p1": 0.1, "p2": 0.3}),
    "sncse": (of_san, {"host": "sncse"}),
    "rankcse": (of_san, {"host": "rankcse"}),
    "rlrd": (of_san, {"host": "rlrd", "rl_update": "fixed"}),
}


def gradients(
    name: str, backbone: Path, size: int | None, *, dropout: float | None, reentrant: bool = False
) -> dict[str, Tensor]:
    """Of the sum of a step's terms at every weight. dropout: None for the arm's own rates, 0 for none at all."""
    make, given = ARMS[name]
    micro = MicroBatch(size, auto=False, reentrant=reentrant)
    model, terms = make(backbone, micro, **given)
    for site in model.modules():
        if isinstance(site, nn.Dropout) and dropout is not None:
            site.p = dropout
    model.train(dropout is None)
    torch.manual_seed(3)
    read = model if isinstance(model, Student) else InParts(model, micro)
    found = terms(read)
    torch.stack([term for term in found.values() if term.requires_grad]).sum().backward()  # type: ignore[no-untyped-call]
    return {key: one.grad for key, one in model.named_parameters() if one.grad is not None}


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readouts keep double precision: an encoder's own steps end in float32, which is too coarse to compare by."""
    monkeypatch.setattr(Tensor, "float", Tensor.double)


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("name", ARMS)
def test_gradients_are_those_of_the_whole_batch(name: str, backbone: Path) -> None:
    whole = gradients(name, backbone, None, dropout=0.0)
    for reentrant in (False, True):
        parts = gradients(name, backbone, 4, dropout=0.0, reentrant=reentrant)
        assert whole.keys() == parts.keys()
        for key, one in whole.items():
            torch.testing.assert_close(
                parts[key], one, rtol=1e-9, atol=1e-12, msg=lambda said, key=key: f"{key}: {said}"
            )


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("name", ["concept", "simcse+san", "simcse+san fused"])
def test_dropout_is_drawn_as_before_when_a_part_is_read_again(
    name: str, backbone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the same parts with all that lies between kept in memory, where nothing is read twice."""
    parts = [gradients(name, backbone, 4, dropout=None, reentrant=reentrant) for reentrant in (False, True)]
    monkeypatch.setattr(micro_batches, "checkpoint", lambda read, *given, **_: read(*given))
    kept = gradients(name, backbone, 4, dropout=None)
    none = gradients(name, backbone, 4, dropout=0.0)
    for found, (key, one) in product(parts, kept.items()):
        torch.testing.assert_close(found[key], one, rtol=1e-9, atol=1e-12)
    assert any(not torch.allclose(none[key], one) for key, one in kept.items())


class Card(nn.Module):
    """An encoder on a card that holds the cells of so many texts at a time, forward or back.

    What lacks memory is torch first, and cuBLAS the next time.
    """

    def __init__(self, encoder: Encoder, room: int) -> None:
        super().__init__()
        self.encoder, self.room = encoder, room
        self.seen: list[int] = []
        self.lacks: list[RuntimeError] = [
            RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
            torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nmore"),
        ]

    def forward(self, texts: Tokens) -> Tensor:
        self.seen.append(len(texts))
        if len(texts) > self.room:
            raise self.lacks[-1] if len(self.lacks) == 1 else self.lacks.pop()
        return self.encoder(texts)


def trained(
    backbone: Path, room: int, micro: MicroBatch | None, world: World = World_
) -> tuple[Card, list[Progress]]:
    settings = concept_settings.Settings(batch_size=6, max_length=32)
    encoder = concept.read(settings, backbone, world)
    card = Card(encoder, room)
    curve = fit(
        InParts(card, micro) if micro else card,
        partial(concept.loss, settings=settings, world=world),
        concept_batches(settings, tiny_corpus(), encoder.tokenise, 0, world),
        groups=parameter_groups(encoder, depth=encoder.depth, learning_rate=1e-3, weight_decay=0.0),
        recipe=Recipe(steps=3),
        seed=0,
        world=world,
        micro=micro,
    )
    return card, curve


def test_auto_finds_what_fits_and_the_step_is_as_if_it_had_known(backbone: Path) -> None:
    """24 texts a step and room for 7: 24, 12, 6. The steps are those of a run that was told 6."""
    card, curve = trained(backbone, 7, MicroBatch(None, auto=True))
    told, other = trained(backbone, 7, MicroBatch(6, auto=False))
    assert [one.figures.get("micro_batch") for one in curve] == [6.0] * 3
    assert [one.loss for one in curve] == [one.loss for one in other]
    for one, same in zip(card.parameters(), told.parameters(), strict=True):
        assert torch.equal(one, same)


@pytest.mark.parametrize("stop", [4, 5])
def test_auto_goes_on_from_a_checkpoint_with_what_had_fitted(
    backbone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int
) -> None:
    """A card that holds so many tokens: the long texts of a step show how little fits, and later ones are short."""
    pooled = Encoder.pooled

    def on_a_card(encoder: Encoder, *several: Tokens) -> Tensor:
        if torch.is_grad_enabled() and sum(len(one.ids) for one in several) > 123:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return pooled(encoder, *several)

    monkeypatch.setattr(Encoder, "pooled", on_a_card)
    settings = concept_settings.Settings(
        steps=8, batch_size=6, warmup=0, learning_rate=1e-3, max_length=32, micro_batch="auto"
    )
    run = partial(concept.fit, settings, backbone, tiny_corpus(40), 0)
    whole, curve = run(World())
    sizes = [one.figures.get("micro_batch") for one in curve]
    assert set(sizes) == {None, 12.0}
    steps = count(1)
    with pytest.raises(Stopped):
        run(World(scratch=tmp_path, stopping=lambda: next(steps) == stop))
    resumed, again = run(World(scratch=tmp_path))
    assert [one.figures.get("micro_batch") for one in again] == sizes
    for one, same in zip(resumed.parameters(), whole.parameters(), strict=True):
        assert torch.equal(one, same)


def test_an_error_that_somebody_keeps_keeps_nothing_of_what_failed() -> None:
    """Where the next size is tried, the memory of the last is free."""
    kept = torch.OutOfMemoryError("CUDA out of memory.")
    made: list[weakref.ref[Tensor]] = []
    micro = MicroBatch(None, auto=True)

    def work() -> bool:
        activations = torch.ones(3)
        if micro.size is None:
            made.append(weakref.ref(activations))
            raise kept
        return made[0]() is None

    assert within_memory(work, lambda: None, micro, 2, World())


@pytest.mark.parametrize(
    "message",
    [
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation' in the documentation of CUDA.",
    ],
)
def test_a_lack_that_its_message_alone_shows_is_one(message: str) -> None:
    micro = MicroBatch(None, auto=True)

    def work() -> str:
        if micro.size is None:
            raise RuntimeError(message)
        return "done"

    assert within_memory(work, lambda: None, micro, 2, World()) == "done"


def test_no_half_is_left_out() -> None:
    """Halves of odd numbers are rounded up: of 25 texts 13, 7, 4, 2 and 1 at a time are tried, in this order."""
    micro, tried, undone = MicroBatch(None, auto=True), list[int | None](), list[int | None]()

    def work() -> str:
        tried.append(micro.size)
        if micro.size != 1:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return "done"

    assert within_memory(work, lambda: bool(undone.append(micro.size)), micro, 25, World()) == "done"
    assert tried == [None, 13, 7, 4, 2, 1]
    assert undone == tried


@pytest.mark.parametrize("size", [None, 8])
def test_what_earlier_steps_left_is_given_back_before_auto_divides_a_batch(size: int | None) -> None:
    micro, tried = MicroBatch(size, auto=True), list[int | None]()

    def work() -> str:
        tried.append(micro.size)
        if len(tried) == 1:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return "done"

    assert within_memory(work, lambda: True, micro, 25, World()) == "done"
    assert tried == [size, size]


@pytest.mark.parametrize(
    ("micro", "tried"),
    [(MicroBatch(8, auto=False), [8, 4]), (MicroBatch(None, auto=True), [None, None, 13, 7, 4])],
)
def test_only_auto_tries_a_size_again(micro: MicroBatch, tried: list[int | None]) -> None:
    """With a number a step that could be kept would be one that was taken twice."""
    micro, asked = replace(micro), list[int | None]()

    def work() -> str:
        asked.append(micro.size)
        if micro.size is None or micro.size > 4:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return "done"

    with nullcontext() if micro.auto else pytest.raises(OutOfMemory, match=r"micro_batch = 4, which would have"):
        assert within_memory(work, lambda: True, micro, 25, World()) == "done"
    assert asked == tried


def test_parts_are_of_similar_length_and_rows_keep_their_order() -> None:
    """Of equal length the first go first, on every machine: each part draws dropout of its own."""
    lengths = np.array([2, 3, 1] * 20)
    texts = Tokens(np.repeat(np.arange(60), lengths), lengths)
    seen: list[int] = []

    def read(part: Tokens, places: np.ndarray) -> Tensor:
        assert len(part) <= 7
        seen.extend(places.tolist())
        return torch.from_numpy(part.ids[part.starts])[:, None].double()

    rows = in_parts(read, texts, MicroBatch(7, auto=False))
    assert seen == sorted(range(60), key=lambda text: (-lengths[text], text))
    assert rows[:, 0].tolist() == list(range(60))


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("size", [2, 5, 9])
def test_what_is_read_again_draws_what_it_drew(size: int, reentrant: bool) -> None:
    """Rows of noise times 1: the gradient of 1 is the sum of that noise. All five texts at once are read once."""
    texts, one = Tokens(np.arange(5), np.ones(5, np.int64)), torch.ones(3, requires_grad=True)
    seen, graded = list[list[int]](), list[bool]()

    def read(part: Tokens, places: np.ndarray) -> Tensor:
        seen.append(places.tolist())
        graded.append(torch.is_grad_enabled())
        return one * torch.rand(2, len(part), 3)

    torch.manual_seed(0)
    rows = in_parts(read, texts, MicroBatch(size, auto=False, reentrant=reentrant))
    rows.sum().backward()
    assert graded == ([not reentrant] * 3 + [True] * 3 if size < 5 else [True])
    assert rows.shape == (2, 5, 3)
    assert len(rows.detach().unique()) == rows.numel()
    torch.testing.assert_close(one.grad, rows.detach().sum((0, 1)))
    assert seen[:3] == [[0, 1], [2, 3], [4]] if size < 5 else seen == [[0, 1, 2, 3, 4]]


@pytest.mark.parametrize("zero_stage", [1, 2])
def test_zero_stages_that_take_a_number_agree(backbone: Path, zero_stage: int) -> None:
    plain, curve = trained(backbone, 24, MicroBatch(5, auto=False))
    sharded, other = trained(backbone, 24, MicroBatch(5, auto=False), World(zero_stage=zero_stage))
    assert [one.loss for one in other] == pytest.approx([one.loss for one in curve], abs=1e-5)
    for one, same in zip(sharded.parameters(), plain.parameters(), strict=True):
        assert torch.allclose(one, same, atol=1e-4)


@pytest.mark.parametrize(
    ("micro", "room", "accepted"),
    [
        (
            MicroBatch(12, auto=False),
            7,
            r"12 texts at a time: CUDA .*\n  accepted: train.micro_batch = 6, which would",
        ),
        (MicroBatch(None, auto=True), 0, r"24 texts at a time: CUDA .*\n  accepted: a smaller train.max_length"),
        (None, 7, r"24 texts at a time: CUDA .*\n  accepted: a smaller train.batch_size or train.max_length$"),
        (
            MicroBatch(None, auto=False),
            7,
            r"24 texts at a time: CUDA .*\n  accepted: train.micro_batch: auto; or a smaller train.batch_size or ",
        ),
    ],
)
def test_out_of_memory_names_the_knob(backbone: Path, micro: MicroBatch | None, room: int, accepted: str) -> None:
    with pytest.raises(OutOfMemory, match=accepted):
        trained(backbone, room, micro)


@pytest.mark.parametrize(
    ("asked", "world", "passed", "accepted"),
    [
        (64, World(zero_stage=1), 64, "a smaller train.micro_batch, such as 32"),
        (64, World(size=2), 64, "a smaller train.micro_batch, such as 32"),
        (400, World(size=2), 256, "a smaller train.micro_batch, such as 128"),  # of 512 texts each worker has half
        (1, World(size=2), 1, "a smaller train.max_length, a smaller backbone, or more memory"),
        (None, World(size=2), 256, "train.micro_batch: 128; or a smaller train.batch_size"),
        (None, World(zero_stage=1), 512, "train.micro_batch: 256; or a smaller train.batch_size"),
        (None, World(zero_stage=3), 512, "a smaller train.batch_size or train.max_length"),  # it refuses parts
    ],
)
def test_where_no_size_may_be_tried_half_of_what_passed_is_named(
    asked: int | None, world: World, passed: int, accepted: str
) -> None:
    def work() -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    with pytest.raises(OutOfMemory) as told:
        within_memory(work, lambda: None, MicroBatch.of(asked, world), 512, world)
    assert f"a step with {passed} texts at a time: CUDA" in str(told.value)
    assert f"\n  accepted: {accepted}" in str(told.value)


def test_a_card_without_room_for_the_optimisers_state_says_so(
    backbone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first step alone lays it out, after a pass that fitted: a smaller batch would not help."""

    def step(optimiser: torch.optim.Optimizer) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nmore")

    monkeypatch.setattr(torch.optim.AdamW, "step", step)
    accepted = (
        r"the weights and the optimiser's state: CUDA .*\n  accepted: a smaller backbone, ZeRO with more workers"
    )
    with pytest.raises(OutOfMemory, match=accepted):
        trained(backbone, 24, MicroBatch(None, auto=True))


def test_an_error_that_is_no_lack_of_memory_is_told_as_it_is() -> None:
    """And met once: no smaller part would help."""
    tried: list[int | None] = []
    micro = MicroBatch(None, auto=True)

    def work() -> None:
        tried.append(micro.size)
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match=r"^mat1 and mat2"):
        within_memory(work, lambda: None, micro, 8, World())
    assert tried == [None]


def test_what_a_world_cannot_do_is_refused() -> None:
    assert not MicroBatch.of(None, World(zero_stage=3)).divides
    assert MicroBatch.of(8, World(size=2, zero_stage=2)) == MicroBatch(8, auto=False)
    for asked, world in ((8, World(zero_stage=3)), ("auto", World(size=2)), ("auto", World(zero_stage=1))):
        with pytest.raises(ValueError, match=rf"train.micro_batch = {asked!r}\n  accepted: "):
            MicroBatch.of(asked, world)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"train.micro_batch = 'auto'\n  accepted: a number"):
        san_settings.Settings(host="rlrd", teachers=("a", "b"), micro_batch="auto")
    with pytest.raises(ValueError, match=r"train.micro_batch = 0\n  accepted: "):
        concept_settings.Settings(micro_batch=0)


def test_only_an_arm_that_says_so_is_another_one() -> None:
    """Each part draws its own dropout, so that the size has a say in the figures; without it ids stay."""
    for of in (concept_settings, cale_settings, san_settings):
        plain = of.Settings()
        assert "micro_batch" not in of.defining(plain)  # type: ignore[arg-type]
        assert of.defining(replace(plain, micro_batch=8))["micro_batch"] == 8  # type: ignore[arg-type]
