"""The concept family: what defines an arm, what a step sees, what its loss is, and that arms of one seed are paired."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from corpora.concept.records import ConceptCorpus, PairRows, RuleNegatives
from corpora.store.columns import Ragged
from tests.tiny import tiny_backbone, tiny_corpus
from tests.trainers.first_step import DECAY, SMALL, check_first_step
from tests.workers import together
from trainers import losses
from trainers.concept.batches import batches, draw, draw_negatives, draw_of_epoch
from trainers.concept.layer_heads import LayerSupervised
from trainers.concept.settings import Settings, defining
from trainers.concept.training import fit, loss, read
from trainers.encoders.encoder import Encoder
from trainers.engine.streams import STREAMS, seeded, torch_stream
from trainers.engine.world import Progress, World

CORPUS = tiny_corpus()
SHORT = Settings(hard_negatives=True, steps=6, batch_size=4, warmup=2, learning_rate=1e-3, max_length=32, layers=2)
TEXTS = CORPUS.texts[:20]


@pytest.fixture(scope="module")
def encoder(backbone: Path) -> Encoder:
    return Encoder.load(backbone, max_length=32)


def test_only_what_can_change_the_result_defines_an_arm():
    frozen = Settings(train=False, readout="weighted", learning_rate=1.0, steps=5, hn_margin=0.3)
    assert defining(frozen) == {"train": False, "readout": "weighted", "layers": 4, "max_length": 128}
    assert defining(replace(frozen, readout="mean", layers=2)) == {
        "train": False,
        "readout": "mean",
        "max_length": 128,
    }
    without = Settings(hard_negatives=False)
    assert defining(without) == defining(replace(without, hn_mode="both", negatives_per_definition=2, layers=3))
    assert defining(without) != defining(replace(without, learning_rate=3e-5))
    assert defining(replace(without, hard_negatives=True)) != defining(
        replace(without, hard_negatives=True, hn_mode="relative")
    )
    hard = replace(without, hard_negatives=True)
    assert defining(hard)["hn_temperature"] is None
    assert defining(hard) == defining(replace(hard, hn_temperature=0.05))
    assert defining(replace(hard, temperature=0.1)) != defining(
        replace(hard, temperature=0.1, hn_temperature=0.05)
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [("steps", 0), ("learning_rate", -1.0), ("temperature", 0.0), ("negatives_per_definition", 0), ("warmup", -1)],
)
def test_a_setting_out_of_range_is_named(field: str, value: float):
    with pytest.raises(ValueError, match=rf"train\.{field} = .*\n  accepted: "):
        Settings(**{field: value})


def test_a_step_is_a_function_of_seed_step_and_view(encoder: Encoder):
    take = batches(SHORT, CORPUS, encoder.tokenise, 0, World())
    forth = [take(step) for step in (0, 1, 2)]
    back = [take(step) for step in (2, 1, 0)][::-1]
    for one, other in zip(forth, back, strict=True):
        assert np.array_equal(one.pairs.ids, other.pairs.ids)
        assert one.negatives is not None
        assert other.negatives is not None
        assert np.array_equal(one.negatives.ids, other.negatives.ids)
    assert not np.array_equal(forth[0].pairs.ids, forth[1].pairs.ids)
    assert not np.array_equal(
        forth[0].pairs.ids, batches(SHORT, CORPUS, encoder.tokenise, 1, World())(0).pairs.ids
    )
    assert len(forth[0]) == 16 + forth[0].negatives_of_all
    of_negatives = {
        batches(SHORT, CORPUS, encoder.tokenise, seed, World(rank=rank, size=2))(step).stream
        for seed in (0, 1)
        for rank in (0, 1)
        for step in (0, 1)
    }
    assert len(of_negatives) == 8


def test_arms_of_one_seed_see_the_same_pairs(encoder: Encoder):
    hard = batches(SHORT, CORPUS, encoder.tokenise, 3, World())
    plain = batches(replace(SHORT, hard_negatives=False), CORPUS, encoder.tokenise, 3, World())
    for step in range(4):
        assert np.array_equal(hard(step).pairs.ids, plain(step).pairs.ids)
        assert plain(step).negatives is None


def test_pairs_and_negatives_are_those_of_the_corpus(encoder: Encoder):
    seen: list[list[str]] = []

    def spy(texts: list[str]):
        seen.append(list(texts))
        return encoder.tokenise(texts)

    batch = batches(SHORT, CORPUS, spy, 0, World())(5)
    pairs, negatives = seen
    syn_left, syn_right, t2d_left, t2d_right = np.array_split(pairs, 4)
    known = {(CORPUS.texts[a], CORPUS.texts[b]) for a, b in zip(CORPUS.syn.left, CORPUS.syn.right, strict=True)}
    assert set(zip(syn_left, syn_right, strict=True)) <= known
    rows = {
        (CORPUS.texts[a], CORPUS.texts[b]): row
        for row, (a, b) in enumerate(zip(CORPUS.t2d.left, CORPUS.t2d.right, strict=True))
    }
    drawn = [rows[pair] for pair in zip(t2d_left, t2d_right, strict=True)]
    expected = [
        (owner, CORPUS.texts[text]) for owner, row in enumerate(drawn) for text in CORPUS.negatives.texts[row]
    ]
    assert list(zip(batch.owner.tolist(), negatives, strict=True)) == expected


def test_an_epoch_takes_every_row_once_before_any_again(encoder: Encoder):
    """24 rows in batches of 5: four steps an epoch, four rows left over, others in the next; arms see the same."""
    first, second = (
        [draw_of_epoch(CORPUS.t2d, 5, 0, step) for step in steps] for steps in (range(4), range(4, 8))
    )
    for epoch in (first, second):
        assert len(set(np.concatenate(epoch).tolist())) == 20
    assert set(np.concatenate(first).tolist()) != set(np.concatenate(second).tolist())
    assert not np.array_equal(first[0], draw_of_epoch(CORPUS.t2d, 5, 1, 0))
    with seeded({"data": 7}):  # in a process that has drawn by the run's own seed before
        assert np.array_equal(draw_of_epoch(CORPUS.t2d, 5, 0, 0), draw_of_epoch(CORPUS.t2d, 5, 7, 0))
    assert not np.array_equal(
        first[0], draw_of_epoch(CORPUS.syn, 5, 0, 0)
    )  # as many rows, in an order of their own
    take = batches(SHORT, CORPUS, encoder.tokenise, 0, World())
    plain = batches(replace(SHORT, hard_negatives=False), CORPUS, encoder.tokenise, 0, World())
    back = [take(step) for step in (7, 0)]
    assert all(
        np.array_equal(one.pairs.ids, plain(step).pairs.ids) for one, step in zip(back, (7, 0), strict=True)
    )
    assert defining(SHORT)["draw"] == "each_epoch"
    assert "draw" not in defining(replace(SHORT, draw="each_step"))  # as runs were named before there was a choice


def test_by_replacement_rows_of_an_earlier_step_come_again(encoder: Encoder):
    """Where a study asks for it: 24 rows in batches of 4, of which six steps of an epoch are all and no row twice.

    Within a step no row comes twice either way: it would be a wrong negative of itself.
    """

    def met(settings: Settings) -> int:
        seen: list[list[str]] = []

        def spy(texts: list[str]):
            seen.append(list(texts))
            assert len({(texts[row], texts[4 + row]) for row in range(4)}) == 4
            return encoder.tokenise(texts)

        take = batches(replace(settings, hard_negatives=False, syn_weight=0), CORPUS, spy, 0, World())
        for step in range(6):
            take(step)
        return len({(batch[row], batch[4 + row]) for batch in seen for row in range(4)})

    assert met(SHORT) == len(CORPUS.t2d) == 24
    assert 8 < met(replace(SHORT, draw="each_step")) < 24
    assert not np.array_equal(draw(CORPUS.syn, 4, 0, 0), draw(CORPUS.t2d, 4, 0, 0))


def test_an_arm_of_the_ontology_draws_its_rows_alone(encoder: Encoder):
    labelled = replace(CORPUS, c2l=replace(CORPUS.t2d, view="c2l"))
    own = replace(SHORT, rows="ontology", hard_negatives=False, t2d_weight=0.5)
    take = batches(own, labelled, encoder.tokenise, 0, World())
    assert [(view.name, view.weight) for view in take(0).views] == [("c2l", 1.0)]
    of_all = batches(replace(own, rows="lexicons"), labelled, encoder.tokenise, 0, World())
    assert [(view.name, view.weight) for view in of_all(0).views] == [("syn", 1.0), ("t2d", 0.5)]
    assert defining(own) == defining(replace(own, t2d_weight=1.0, syn_weight=0.0))
    assert "rows" not in defining(SHORT)
    with pytest.raises(
        ValueError, match=r"train\.rows = 'ontology'\n  accepted: lexicons, or with data\.ontology"
    ):
        batches(own, CORPUS, encoder.tokenise, 0, World())
    with pytest.raises(ValueError, match=r"train\.hard_negatives = true\n  accepted: false with rows: ontology"):
        replace(SHORT, rows="ontology")


def test_a_limit_draws_so_many_of_each_row_evenly():
    rows = np.arange(24)
    drawn = [draw_negatives(CORPUS.negatives, rows, 2, 0, step) for step in range(200)]
    available = np.diff(CORPUS.negatives.texts.offsets)
    for values, owner in drawn:
        assert np.array_equal(np.bincount(owner, minlength=24), np.minimum(available, 2))
        assert all(value in CORPUS.negatives.texts[rows[row]] for value, row in zip(values, owner, strict=True))
    three = CORPUS.negatives.texts[2]  # has three, so each is drawn 2 of 3 times
    counts = [sum(text in values[owner == 2] for values, owner in drawn) for text in three]
    assert len(three) == 3
    assert all(100 < count < 165 for count in counts)


def test_a_new_setting_that_is_not_used_defines_nothing():
    """Or every run that is finished would be trained again."""
    for readout in ("weighted", "gated"):
        assert set(defining(Settings(readout=readout))) == set(defining(Settings())) | {
            "layers",
            "pool_lr_multiplier",
        }
    supervised = Settings(readout="weighted", deep_supervision="beside")
    assert defining(supervised) != defining(replace(supervised, layer_coefficient=0.5))
    assert defining(replace(supervised, readout="mean")) == defining(Settings())


def test_what_a_mode_of_hard_negatives_does_not_read_defines_nothing(backbone: Path):
    """An arm is trained once whatever that is, and has the id of before, which held what it was by default."""
    others = {"hn_margin": 0.5, "hn_coefficient": 2.0, "hn_temperature": 0.3, "hn_reduction": "sum"}
    read_by = {
        "absolute": set(others),
        "unscaled": set(others) - {"hn_temperature"},
        "unified": set(),
        "unified_all": set(),
    }
    for mode, names in read_by.items():
        arm = Settings(hard_negatives=True, hn_mode=mode)
        assert {name: defining(arm)[name] for name in others} == {name: getattr(arm, name) for name in others}
        for name, other in others.items():
            assert (defining(replace(arm, **{name: other})) != defining(arm)) == (name in names), (mode, name)
    encoders = [
        fit(replace(SHORT, hn_mode="unified", steps=3, **changes), backbone, CORPUS, 0, World())[0]
        for changes in ({}, others)
    ]
    assert np.array_equal(*(encoder.encode(TEXTS) for encoder in encoders))


def test_the_layers_of_deep_supervision_by_their_formula(backbone: Path):
    """λ / K times the sum over layers and views; the other terms are those of the same arm without heads."""
    settings = replace(
        SHORT, readout="weighted", deep_supervision="beside", layer_coefficient=0.5, temperature=0.5
    )
    encoder = read(settings, backbone, World())
    model = LayerSupervised(encoder, torch_stream(0, "init", "layer_heads")).eval()
    batch = batches(settings, CORPUS, encoder.tokenise, 0, World())(1)
    terms = loss(model, batch, settings, World())
    plain = loss(encoder, batch, replace(settings, deep_supervision="none"), World())
    assert list(terms) == ["syn", "t2d", "layers", "hard_negatives"]
    for name, term in plain.items():
        assert terms[name].item() == pytest.approx(term.item(), abs=1e-5)
    means = torch.from_numpy(encoder.hidden_layers(batch.pairs)[-2:])  # (K, N, D)
    by_hand = 0.0
    for head, layer in zip(model.layer_heads, means, strict=True):
        rows = torch.nn.functional.normalize(layer @ head.weight.T + head.bias, dim=-1).chunk(4)
        for view, left, right in zip(batch.views, rows[::2], rows[1::2], strict=True):
            by_hand += losses.info_nce(left, right, temperature=0.5, keep=torch.from_numpy(view.keep)).item()
    assert terms["layers"].item() == pytest.approx(0.5 / 2 * by_hand, abs=1e-5)
    alone = loss(model, batch, replace(settings, deep_supervision="instead"), World())
    assert list(alone) == ["layers", "hard_negatives"]
    assert alone["layers"].item() == pytest.approx(terms["layers"].item(), abs=1e-6)


def test_under_autocast_the_layers_that_have_heads_are_mixed_in_float32(backbone: Path):
    """With all weight on the last layer what is read is its mean, as the other readout takes it."""
    encoder = read(replace(SHORT, readout="weighted"), backbone, World())
    model = LayerSupervised(encoder, torch_stream(0, "init", "layer_heads")).eval()
    last = read(SHORT, backbone, World())
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        encoder.layer_logits.copy_(torch.tensor([0.0, 50.0]))
        own = model(encoder.tokenise(TEXTS), heads=True)[0]
        assert torch.allclose(own, last(last.tokenise(TEXTS)), rtol=0, atol=1e-6)


@pytest.mark.parametrize("supervision", ["beside", "instead"])
def test_heads_are_trained_and_not_kept(backbone: Path, tmp_path: Path, supervision: str):
    settings = replace(
        SHORT, readout="weighted", steps=12, batch_size=8, pool_lr_multiplier=10, deep_supervision=supervision
    )
    encoder, curve = fit(settings, backbone, CORPUS, 0, World())
    again, _ = fit(settings, backbone, CORPUS, 0, World())
    assert np.array_equal(encoder.encode(TEXTS), again.encode(TEXTS))
    assert curve[-1].terms["layers"] < curve[0].terms["layers"]
    assert encoder.layer_weights() != pytest.approx([0.5, 0.5], abs=1e-4)
    encoder.save(tmp_path)
    assert not any("head" in name for name in encoder.state_dict())
    assert np.allclose(Encoder.load(tmp_path).encode(TEXTS), encoder.encode(TEXTS), atol=1e-6)


@pytest.mark.parametrize(
    ("changed", "other"),
    [
        ({"readout": "cls"}, {"readout": "mean"}),
        ({"readout": "weighted", "layers": 1}, {"readout": "weighted", "layers": 2}),
        ({"readout": "mean", "max_length": 5}, {"readout": "mean", "max_length": 6}),
    ],
)
def test_settings_say_how_texts_are_read(backbone: Path, changed: dict[str, object], other: dict[str, object]):
    text = ["the small house by the river of stone"]
    own, another = (read(Settings(**given), backbone, World()).encode(text) for given in (changed, other))
    assert np.array_equal(own, Encoder.load(backbone, **changed).encode(text))
    assert not np.allclose(own, another, atol=1e-3)
    assert read(Settings(**changed), backbone, World(precision="bf16")).precision == "bf16"


def test_a_gate_begins_uniform_and_learns(backbone: Path):
    settings = replace(SHORT, readout="gated", steps=20, batch_size=8, pool_lr_multiplier=3)
    frozen = read(replace(settings, train=False), backbone, World())
    uniform = read(replace(settings, readout="weighted", train=False), backbone, World())
    assert np.allclose(frozen.encode(TEXTS), uniform.encode(TEXTS), atol=1e-6)
    trained, curve = fit(settings, backbone, CORPUS, 0, World())
    _, weighted = fit(replace(settings, readout="weighted", steps=1), backbone, CORPUS, 0, World())
    assert curve[0].terms == pytest.approx(weighted[0].terms, abs=1e-5)
    taken = np.stack([weights for _, weights in trained.read_layers(TEXTS) if weights is not None])
    assert np.ptp(taken[:, -1]) > 1e-6
    assert np.abs(taken[:, -1] - 0.5).max() > 1e-3
    with seeded({name: 0 for name in STREAMS if name != "init"}):
        _, other = fit(settings, backbone, CORPUS, 1, World())
    assert other[0].terms == curve[0].terms
    assert other[1].terms != curve[1].terms


def test_negatives_of_all_rows_stand_in_every_denominator(encoder: Encoder):
    """By numpy. A negative that is the row's own definition in other clothes is left out of that row alone."""
    settings = replace(SHORT, hn_mode="unified_all", temperature=0.5, batch_size=24, symmetric=False)
    batch = batches(settings, CORPUS, encoder.tokenise, 0, World())(0)
    encoder.eval()
    terms = loss(encoder, batch, settings, World())
    assert set(terms) == {"syn", "t2d"}
    assert batch.negatives is not None
    sides, wrong = encoder(batch.pairs).detach().numpy(), encoder(batch.negatives).detach().numpy()
    left, right = np.split(sides, 4)[2:]
    keep = batch.views[1].keep
    assert (~batch.keep_negatives).any()
    near = np.where(keep, np.exp(left @ right.T / 0.5), 0).sum(1)
    far = np.where(batch.keep_negatives, np.exp(left @ wrong.T / 0.5), 0).sum(1)
    expected = (np.log(near + far) - (left * right).sum(1) / 0.5).mean()
    assert terms["t2d"].item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("mode", ["absolute", "relative", "both", "unscaled", "unified"])
def test_the_terms_of_a_step_by_their_formulas(encoder: Encoder, mode: str):
    weights = {"hn_margin": 0.1, "hn_coefficient": 0.7, "syn_weight": 2.0, "t2d_weight": 3.0}
    settings = replace(SHORT, hn_mode=mode, temperature=0.5, **weights)
    batch = batches(settings, CORPUS, encoder.tokenise, 0, World())(1)
    encoder.eval()
    terms = loss(encoder, batch, settings, World())
    syn_left, syn_right, left, right = encoder(batch.pairs).chunk(4)
    assert batch.negatives is not None
    wrong, owner = encoder(batch.negatives), torch.from_numpy(batch.owner)
    keep = {view.name: torch.from_numpy(view.keep) for view in batch.views}
    assert terms["syn"].item() == pytest.approx(
        2 * losses.info_nce(syn_left, syn_right, temperature=0.5, keep=keep["syn"]).item(), abs=1e-5
    )
    s, p = (left[owner] * wrong).sum(1), (left * right).sum(1)
    soft = torch.nn.functional.softplus

    def by_hand(tau: float) -> torch.Tensor:
        pushed = soft((s - 0.1) / tau).mean()
        return {
            "absolute": pushed,
            "relative": soft((s - p[owner] + 0.1) / tau).mean(),
            "both": pushed + soft(-(p - 0.1) / tau).mean(),
            "unscaled": soft(s - 0.1).mean(),
        }[mode]

    plain = losses.info_nce(left, right, temperature=0.5, keep=keep["t2d"])
    if mode == "unified":
        assert set(terms) == {"syn", "t2d"}
        own = torch.zeros(len(left)).index_add(0, owner, torch.exp(s / 0.5))
        near = (torch.exp(left @ right.T / 0.5) * keep["t2d"]).sum(1)
        forward = (torch.log(near + own) - p / 0.5).mean()
        backward = losses.info_nce_directed(right, left, temperature=0.5, keep=keep["t2d"].T)
        assert terms["t2d"].item() == pytest.approx(3 * (forward + backward).item() / 2, abs=1e-5)
        return
    assert terms["t2d"].item() == pytest.approx(3 * plain.item(), abs=1e-5)
    assert terms["hard_negatives"].item() == pytest.approx(0.7 * by_hand(0.5).item(), abs=1e-5)
    sharper = loss(encoder, batch, replace(settings, hn_temperature=0.3), World())
    assert sharper["hard_negatives"].item() == pytest.approx(0.7 * by_hand(0.3).item(), abs=1e-5)
    summed = loss(encoder, batch, replace(settings, hn_reduction="sum"), World())["hard_negatives"].item()
    if mode != "both":  # whose two sums have numbers of their own
        assert summed == pytest.approx(len(owner) * terms["hard_negatives"].item(), rel=1e-5)
    one_way = loss(encoder, batch, replace(settings, symmetric=False), World())["t2d"].item()
    forward = losses.info_nce_directed(left, right, temperature=0.5, keep=keep["t2d"])
    assert one_way == pytest.approx(3 * forward.item(), abs=1e-5)


@pytest.mark.parametrize(
    ("mode", "supervision"),
    [
        *((mode, "none") for mode in ("absolute", "relative", "both", "unscaled", "unified", "unified_all")),
        ("absolute", "beside"),
        ("absolute", "instead"),
    ],
)
def test_every_vector_has_the_gradient_of_its_part_in_the_loss(encoder: Encoder, mode: Any, supervision: Any):
    """By finite differences: both sides of a pair, the negatives, and what the layers' heads say of the pairs."""
    settings = replace(SHORT, readout="weighted", temperature=0.5, hn_mode=mode, deep_supervision=supervision)
    batch = batches(settings, CORPUS, encoder.tokenise, 0, World())(1)
    assert batch.negatives is not None
    drawn, heads = torch.Generator().manual_seed(0), 1 if supervision == "none" else 3
    pairs, negatives = (
        torch.randn(*shape, 3, generator=drawn, dtype=torch.float64, requires_grad=True)
        for shape in ((heads, len(batch.pairs)), (len(batch.negatives),))
    )

    def total(pairs: torch.Tensor, negatives: torch.Tensor) -> torch.Tensor:
        def encode(tokens: Any, heads: bool = False) -> torch.Tensor:
            return negatives if tokens is batch.negatives else pairs if heads else pairs[0]

        return torch.stack([*loss(encode, batch, settings, World()).values()]).sum()

    assert torch.autograd.gradcheck(total, (pairs, negatives), fast_mode=True)


def test_rows_of_one_concept_are_masked_in_the_batch(encoder: Encoder):
    """All 24 rows in one batch: every fourth shares an id with the next."""
    batch = batches(replace(SHORT, batch_size=24), CORPUS, encoder.tokenise, 0, World())(0)
    for view in batch.views:
        assert (~view.keep).sum() == 12  # 6 pairs, both directions


@pytest.mark.parametrize("readout", ["mean", "cls", "max", "weighted"])
def test_training_moves_terms_towards_their_definitions(backbone: Path, readout: str):
    settings = replace(SHORT, readout=readout, steps=40, batch_size=8, hard_negatives=False, learning_rate=5e-3)
    trained, curve = fit(settings, backbone, CORPUS, 0, World())
    frozen = read(replace(settings, train=False), backbone, World())
    assert len(curve) == 40
    assert set(curve[0].terms) == {"syn", "t2d"}

    def closeness(encoder: Encoder) -> float:
        left = encoder.encode(CORPUS.texts.take(CORPUS.t2d.left))
        right = encoder.encode(CORPUS.texts.take(CORPUS.t2d.right))
        scores = left @ right.T
        return float(np.diag(scores).mean() - scores.mean())

    assert closeness(trained) > closeness(frozen) + 0.05
    if readout == "weighted":
        assert frozen.layer_weights() == pytest.approx([0.5, 0.5])
        assert trained.layer_weights() != pytest.approx([0.5, 0.5], abs=1e-3)


def test_a_first_step_moves_each_part_by_its_rate(backbone: Path):
    """Layers below the last, embeddings and the mixture at theirs; warm up, decay and clip as the settings say."""
    settings = replace(
        SHORT, readout="weighted", steps=1, warmup=4, layer_decay=0.5, pool_lr_multiplier=3.0, weight_decay=0.0
    )

    def rate(name: str) -> float:
        layer = re.search(r"layer\.(\d)", name)
        share = 3.0 if "logits" in name else 0.5 ** (3 if layer is None else 2 - int(layer[1]))
        return 1e-3 / 4 * share

    start = dict(read(settings, backbone, World()).named_parameters())
    after, decayed, held = (
        dict(fit(replace(settings, **changes), backbone, CORPUS, 0, World())[0].named_parameters())
        for changes in ({}, {"weight_decay": DECAY}, SMALL)
    )
    check_first_step(start, after, decayed=decayed, held=held, rate=rate)


def test_hard_negatives_fall_below_the_margin_and_need_the_setting(backbone: Path):
    settings = replace(SHORT, steps=40, batch_size=8, hn_coefficient=2.0)
    rows = np.repeat(np.arange(24), np.diff(CORPUS.negatives.texts.offsets))
    scores = {}
    for hard in (True, False):
        encoder, _ = fit(replace(settings, hard_negatives=hard), backbone, CORPUS, 0, World())
        terms = encoder.encode(CORPUS.texts.take(CORPUS.t2d.left))[rows]
        scores[hard] = float(
            (terms * encoder.encode(CORPUS.texts.take(CORPUS.negatives.texts.values))).sum(1).mean()
        )
    assert scores[True] < scores[False] - 0.1


def test_one_seed_is_one_encoder_and_arms_share_the_first_step(backbone: Path):
    one, first = fit(SHORT, backbone, CORPUS, 0, World())
    other, second = fit(SHORT, backbone, CORPUS, 0, World())
    assert [p.terms for p in first] == [p.terms for p in second]
    assert np.array_equal(one.encode(TEXTS), other.encode(TEXTS))
    _, plain = fit(replace(SHORT, hard_negatives=False), backbone, CORPUS, 0, World())
    shared = ("syn", "t2d")  # same data, same dropout, same weights
    assert [first[0].terms[name] for name in shared] == [plain[0].terms[name] for name in shared]
    _, another = fit(SHORT, backbone, CORPUS, 1, World())
    assert [p.terms for p in first] != [p.terms for p in another]


EVERY = {"syn", "t2d", "layers", "hard_negatives"}


@pytest.mark.parametrize(
    ("stream", "changed", "draw"),
    [
        ("data", EVERY, "each_epoch"),
        ("data", EVERY, "each_step"),
        ("init", {"layers"}, "each_epoch"),
        ("dropout", EVERY, "each_epoch"),
        ("negatives", {"hard_negatives"}, "each_epoch"),
    ],
)
def test_a_stream_of_another_seed_changes_its_own_part_alone(
    backbone: Path, stream: str, changed: set[str], draw: Any
):
    """Heads begin elsewhere, or others of a definition's negatives are drawn; the rest is as it was."""
    settings = replace(SHORT, readout="weighted", deep_supervision="beside", negatives_per_definition=1, draw=draw)
    _, (own, *_) = fit(replace(settings, steps=1), backbone, CORPUS, 0, World())
    with seeded({name: 0 for name in STREAMS if name != stream}):
        _, (other, *_) = fit(replace(settings, steps=1), backbone, CORPUS, 5, World())
    assert {name for name in EVERY if own.terms[name] != other.terms[name]} == changed


def test_frozen_weighted_and_trained_weighted_begin_at_the_same_encoder(backbone: Path):
    """The untrained mixture is what M1 and B3 are before their first step."""
    frozen = read(replace(SHORT, readout="weighted", train=False), backbone, World())
    barely, _ = fit(replace(SHORT, readout="weighted", steps=1, learning_rate=1e-12), backbone, CORPUS, 0, World())
    assert np.allclose(frozen.encode(TEXTS), barely.encode(TEXTS), atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "size", "message"),
    [
        (replace(SHORT, batch_size=25), 1, "at most 24, the syn pairs there are"),
        (replace(SHORT, batch_size=3), 2, "a multiple of the 2 workers"),
        (replace(SHORT, syn_weight=0, t2d_weight=0, hard_negatives=False), 1, "at least one view"),
    ],
)
def test_a_batch_that_cannot_be_formed_is_refused(encoder: Encoder, settings: Settings, size: int, message: str):
    with pytest.raises(ValueError, match=message):
        batches(settings, CORPUS, encoder.tokenise, 0, World(size=size))


def test_a_batch_is_no_larger_than_the_smallest_view(encoder: Encoder):
    few = PairRows("t2d", CORPUS.t2d.left[:3], CORPUS.t2d.right[:3], Ragged.of([[row] for row in range(3)]))
    with pytest.raises(ValueError, match=r"batch_size = 4\n  accepted: at most 3, the t2d pairs there are"):
        batches(SHORT, replace(CORPUS, t2d=few), encoder.tokenise, 0, World())


def _rare() -> ConceptCorpus:
    """The corpus with hard negatives for every sixth definition alone."""
    kept = [CORPUS.negatives.texts[row] if row % 6 == 0 else [] for row in range(24)]
    texts = Ragged.of(kept)
    none = np.zeros(len(texts.values), np.uint8)
    return replace(CORPUS, negatives=RuleNegatives(texts, none, none))


def test_a_worker_without_negatives_has_the_terms_of_the_others(encoder: Encoder):
    """It encodes as often, and a step in which nobody has any still has the term, at zero."""
    two = [batches(SHORT, _rare(), encoder.tokenise, 0, World(rank=rank, size=2)) for rank in (0, 1)]
    held = [[len(take(step).owner) for take in two] for step in range(12)]
    assert any(min(pair) == 0 < max(pair) for pair in held)
    for step, pair in enumerate(held):
        assert [take(step).negatives is None for take in two] == [sum(pair) == 0] * 2
    nobodys = batches(SHORT, _rare(), encoder.tokenise, 0, World())(held.index([0, 0]))
    terms = loss(encoder, nobodys, SHORT, World())
    assert terms["hard_negatives"].item() == 0
    assert terms["hard_negatives"].requires_grad


def test_without_definitions_nothing_is_pushed_away(encoder: Encoder):
    none = PairRows("t2d", CORPUS.t2d.left[:0], CORPUS.t2d.right[:0], Ragged.of([]))
    batch = batches(SHORT, replace(CORPUS, t2d=none), encoder.tokenise, 0, World())(0)
    assert (batch.negatives, len(batch)) == (None, 2 * SHORT.batch_size)
    assert list(loss(encoder, batch, SHORT, World())) == ["syn"]


def _share(rank: int, size: int, folder: Path) -> None:
    settings = replace(SHORT, steps=3, hn_mode="both")
    _, rare = fit(settings, folder / "still", _rare(), 0, World(rank=rank, size=size))
    everyone = replace(
        settings, hn_mode="unified_all", readout="gated", deep_supervision="beside", pool_lr_multiplier=10
    )
    _, shared = fit(everyone, folder / "still", _rare(), 0, World(rank=rank, size=size))
    encoder, curve = fit(settings, folder / "still", CORPUS, 0, World(rank=rank, size=size))
    torch.save(
        {
            "weights": encoder.state_dict(),
            "terms": [p.terms for p in (*curve, *rare)],
            "shared": [p.terms for p in shared],
            "vectors": encoder.encode(TEXTS).tolist(),
        },
        folder / f"{size}-{rank}.pt",
    )


class Killed(Exception):
    pass


def _stages(rank: int, size: int, folder: Path) -> None:
    """Every ZeRO stage: killed after two of four steps, continued, then read, saved and opened by rank 0 alone."""
    settings, found = replace(SHORT, steps=4), {}
    for stage in range(4):
        world = World(
            rank=rank, size=size, zero_stage=stage, scratch=folder / f"checkpoints-{stage}", checkpoint_every=2
        )

        def killing(progress: Progress) -> None:
            if progress.step == 3:
                raise Killed

        with pytest.raises(Killed):
            fit(settings, folder / "still", CORPUS, 0, replace(world, report=killing))
        encoder, curve = fit(settings, folder / "still", CORPUS, 0, world)
        vectors = encoder.encode(TEXTS) if rank == 0 else None  # nobody else takes part
        if rank == 0:
            encoder.save(folder / f"saved-{stage}")
            again = read(settings, folder / f"saved-{stage}", World())
            assert np.allclose(again.encode(TEXTS), vectors, atol=1e-6)
        found[stage] = ([p.loss for p in curve], vectors)
    if rank == 0:
        torch.save(
            {stage: (losses, vectors.tolist()) for stage, (losses, vectors) in found.items()}, folder / "z.pt"
        )


def test_two_workers_train_resume_read_and_save_alike_at_every_zero_stage(tmp_path: Path):
    tiny_backbone(tmp_path / "still", dropout=0.0)
    together(2, _stages, tmp_path)
    found = torch.load(tmp_path / "z.pt", weights_only=True)
    plain_losses, plain_vectors = found[0]
    for stage in (1, 2, 3):
        losses, vectors = found[stage]
        assert len(losses) == 4
        assert np.allclose(losses, plain_losses, rtol=1e-4), stage
        assert np.allclose(vectors, plain_vectors, atol=1e-4), stage


def test_two_workers_equal_one(tmp_path: Path):
    """Without dropout: candidates are gathered with gradients, negatives averaged over all workers.

    The terms of steps 2 and 3 are those of updated weights. Weights themselves are compared through the vectors:
    Adam turns the rounding of a gradient that is zero in exact arithmetic (key biases) into a full step.
    """
    tiny_backbone(tmp_path / "still", dropout=0.0)
    _share(0, 1, tmp_path)
    together(2, _share, tmp_path)
    one, *two = (torch.load(tmp_path / f"{name}.pt") for name in ("1-0", "2-0", "2-1"))
    for worker in two:
        assert [set(terms) for terms in worker["terms"]] == [{"syn", "t2d", "hard_negatives"}] * 6
        for ours, theirs in zip(worker["terms"], one["terms"], strict=True):
            assert ours == pytest.approx(theirs, abs=1e-5)
        for ours, theirs in zip(worker["shared"], one["shared"], strict=True):
            assert ours == pytest.approx(theirs, abs=1e-5)
        assert np.allclose(worker["vectors"], one["vectors"], atol=1e-4)
    assert all(torch.equal(two[0]["weights"][name], two[1]["weights"][name]) for name in one["weights"])
