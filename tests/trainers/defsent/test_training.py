"""Training on definitions: what a step sees, what stands still, what is learnt; two workers, the fitted head, NLI."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from corpora.defsent.records import Definition, DefsentCorpus
from tests.tiny import tiny_backbone
from tests.trainers.masked_lm import SHAPES, definitions, masked_lm, texts_of
from tests.workers import together
from trainers.defsent.batches import definition_batches, inference_batches, steps_of_epoch
from trainers.defsent.encoder import WordEncoder
from trainers.defsent.freezing import FrozenWeightsChanged
from trainers.defsent.heads import untrained_head
from trainers.defsent.mlm_fit import HeadFit, fit_head, mask_tokens, masked_states
from trainers.defsent.settings import Settings, defining
from trainers.defsent.training import fit, loss, read
from trainers.defsent.vocabulary import word_pieces
from trainers.encoders.encoder import Encoder
from trainers.encoders.stack import fit_together
from trainers.engine.streams import draw_linear, numpy_stream, torch_stream
from trainers.engine.world import World

CORPUS = definitions()
SHORT = Settings(readout="mean", learning_rate=1e-2, batch_size=10, max_length=32)
TEXTS = ["a small vessel", "the river runs"]


@pytest.fixture(scope="module", params=SHAPES)
def backbone(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return masked_lm(tmp_path_factory.mktemp("backbone") / request.param, request.param)


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return masked_lm(tmp_path_factory.mktemp("bert"), "bert")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_backbone(tmp_path_factory.mktemp("bare"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / "cache"))


def asked(rows) -> list[Definition]:
    return [Definition(text, word) for text, word in zip(rows.definitions, rows.words, strict=True)]


def test_only_what_can_change_the_result_defines_an_arm():
    frozen = Settings(train=False, learning_rate=1.0, order="file", freeze="none")
    assert defining(frozen) == {"train": False, "readout": "cls", "head_source": "pretrained", "max_length": 512}
    assert defining(replace(frozen, head_source="mlm_fit"))["mlm_epochs"] == 8
    assert defining(Settings(lr_exponent=2.0, learning_rate=4e-6)) == defining(Settings(learning_rate=4e-6))
    usual = 2**2.5 * 1e-6
    for said in (Settings(learning_rate=usual), Settings(learning_rate=usual, lr_exponent=3.5)):
        assert defining(said) == defining(Settings())
    assert defining(Settings())["lr_exponent"] == 2.5
    assert defining(Settings(steps=5, epochs=2)) == defining(Settings(steps=5))
    assert defining(Settings(mlm_texts=3)) == defining(Settings())
    assert defining(Settings(freeze="head")) != defining(Settings())
    sbert = Settings(objective="inference")
    assert defining(sbert) == defining(replace(sbert, freeze="none")) == defining(replace(sbert, order="file"))
    assert defining(sbert)["order"] == "shuffled"
    assert defining(Settings(order="file")) != defining(Settings())
    assert defining(sbert) != defining(replace(sbert, matched_budget=True))


@pytest.mark.parametrize(
    ("field", "value"),
    [("steps", 0), ("learning_rate", -1.0), ("batch_size", 0), ("warmup_ratio", 2), ("matched_budget", True)],
)
def test_a_setting_out_of_range_is_named(field: str, value: float):
    with pytest.raises(ValueError, match=rf"train\.{field} = .*\n  accepted: "):
        Settings(**{field: value})


def drawn(order: str, seed: int, size: int = 1, rank: int = 0) -> list[list[str]]:
    """The texts of each step of two epochs."""
    seen: list[list[str]] = []
    train = CORPUS.rows["train"]

    def spy(texts: Sequence[str]):
        seen.append(list(texts))

    take = definition_batches(
        replace(SHORT, order=order),
        train.definitions,
        np.arange(len(train)),
        spy,
        seed,
        World(size=size, rank=rank),
    )
    for step in range(2 * steps_of_epoch(len(train), SHORT.batch_size)):
        take(step)
    return seen


def test_every_definition_once_an_epoch_and_the_last_batch_is_kept():
    steps = drawn("shuffled", 0)
    assert [len(texts) for texts in steps] == 2 * [10, 10, 10, 10, 8]
    train = list(CORPUS.rows["train"].definitions)
    for epoch in (steps[:5], steps[5:]):
        assert sorted(text for texts in epoch for text in texts) == sorted(train)
    assert steps[:5] != steps[5:]
    assert drawn("shuffled", 0) == steps != drawn("shuffled", 1)
    assert [text for texts in drawn("file", 3)[:5] for text in texts] == train


def test_workers_share_a_step():
    """48 definitions in tens: the last step has eight, and ranks take turns."""
    whole, parts = drawn("shuffled", 0), [drawn("shuffled", 0, 2, rank) for rank in (0, 1)]
    for step, texts in enumerate(whole):
        assert sorted(texts) == sorted(parts[0][step] + parts[1][step])


def test_a_worker_without_a_row_encodes_all_the_same(bert: Path):
    encoder = Encoder.load(bert)
    settings = replace(SHORT, batch_size=47)
    train = CORPUS.rows["train"]
    world = World(size=47, rank=40)
    batch = definition_batches(settings, train.definitions, np.arange(48), encoder.tokenise, 0, world)(1)
    assert (len(batch.tokens), len(batch.target), batch.rows_of_all) == (1, 0, 1)
    model = WordEncoder(encoder, read(SHORT, bert, World()).head)
    terms = loss(model, batch, world)
    assert terms["word_prediction"].item() == 0
    assert terms["word_prediction"].requires_grad


def test_the_loss_is_the_cross_entropy_over_the_whole_vocabulary(bert: Path):
    model = read(SHORT, bert, World())
    train = CORPUS.rows["train"]
    pieces = word_pieces(model.encoder.tokenizer, list(train.words))
    batch = definition_batches(SHORT, train.definitions, pieces, model.encoder.tokenise, 0, World())(0)
    order = numpy_stream(0, "data", "order", 0).permutation(48)[:10]
    peer = [model(model.encoder.tokenise([train.definitions[row]]))[0] for row in order]
    expected = np.mean(
        [F.cross_entropy(row, torch.tensor(pieces[at])).item() for row, at in zip(peer, order, strict=True)]
    )
    assert len(peer[0]) == model.encoder.backbone.config.vocab_size
    assert loss(model, batch, World())["word_prediction"].item() == pytest.approx(expected, rel=1e-5)
    of_two = loss(model, replace(batch, rows_of_all=40), World(size=2))  # whose gradients are averaged
    assert of_two["word_prediction"].item() == pytest.approx(2 * expected * 10 / 40, rel=1e-5)


def plain_adam(
    parameters: Sequence[torch.nn.Parameter], rates: Sequence[float], term: Callable[[int], torch.Tensor]
) -> list[float]:
    """torch's own Adam, nothing clipped and nothing decayed; the loss of every step."""
    optimizer, losses = torch.optim.Adam(parameters), []
    for step, rate in enumerate(rates):
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        value = term(step)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses


def test_training_on_definitions_is_a_plain_loop_of_adam(tmp_path: Path):
    """Of the layers alone, over the rows whose word is an entry and whose definition no test repeats."""
    still = masked_lm(tmp_path / "still", "bert", dropout=0.0)
    train = CORPUS.rows["train"]
    words = [*9 * ["zzzq"], *list(train.words)[9:]]
    corpus = replace(CORPUS, rows={**CORPUS.rows, "train": replace(train, words=texts_of(words))})
    trained, curve = fit(replace(SHORT, epochs=2), still, corpus, 3, World())
    held = {text for split in ("dev", "test") for text in CORPUS.rows[split].definitions}
    kept = [row for row, text in enumerate(train.definitions) if row >= 9 and text not in held]
    batches = [
        np.array(kept)[numpy_stream(3, "data", "order", epoch).permutation(len(kept))[start : start + 10]]
        for epoch in (0, 1)
        for start in range(0, len(kept), 10)
    ]
    model = read(SHORT, still, World())
    table = model.encoder.tokenizer.get_vocab()

    def term(step: int) -> torch.Tensor:
        rows = batches[step]
        logits = model(model.encoder.tokenise([train.definitions[row] for row in rows]))
        return F.cross_entropy(logits, torch.tensor([table[words[row]] for row in rows]))

    layers = [parameter for name, parameter in model.encoder.named_parameters() if ".layer." in name]
    rates = [1e-2 * min(1, step / (0.1 * len(batches))) for step in range(len(batches))]
    assert [step.loss for step in curve] == pytest.approx(plain_adam(layers, rates, term), rel=1e-3)
    assert np.allclose(trained.encoder.encode(TEXTS), model.encoder.encode(TEXTS), atol=2e-3)


def test_training_on_pairs_is_a_plain_loop_of_adam(tmp_path: Path):
    """Of the whole encoder and a classifier over [u; v; |u - v|] that starts as its stream says."""
    still, pairs = masked_lm(tmp_path / "still", "bert", dropout=0.0), CORPUS.inferences
    assert pairs is not None
    settings = replace(SHORT, objective="inference", epochs=5, batch_size=6, learning_rate=2e-3)
    trained, curve = fit(settings, still, CORPUS, 3, World())
    model, classifier = read(SHORT, still, World()), torch.nn.Linear(96, 3)
    draw_linear(classifier, torch_stream(3, "init", "classifier"))
    right = []

    def term(step: int) -> torch.Tensor:
        epoch, place = divmod(step, 3)
        rows = numpy_stream(3, "data", "order", epoch).permutation(18)[6 * place : 6 * place + 6]
        u, v = (
            model.encoder.pooled(model.encoder.tokenise([side[row] for row in rows]))
            for side in (pairs.premises, pairs.hypotheses)
        )
        logits, label = classifier(torch.cat([u, v, (u - v).abs()], 1)), torch.from_numpy(pairs.label[rows]).long()
        right.append((logits.argmax(1) == label).double().mean().item())
        return F.cross_entropy(logits, label)

    rates = [2e-3 * min((step + 1) / 2, (15 - step) / 13) for step in range(15)]  # 2 steps of 15 rise
    losses = plain_adam([*model.encoder.parameters(), *classifier.parameters()], rates, term)
    assert [step.loss for step in curve] == pytest.approx(losses, rel=1e-3)
    assert [step.figures["accuracy"] for step in curve] == pytest.approx(right, abs=1e-6)
    assert np.allclose(trained.encoder.encode(TEXTS), model.encoder.encode(TEXTS), atol=2e-3)


@pytest.mark.parametrize("readout", ["cls", "mean", "max", "sep", "sum"])
def test_training_learns_to_name_the_word(bert: Path, readout: str):
    """The word stands in its own definition here; on training rows its place must get better."""
    settings = replace(SHORT, readout=readout, epochs=6, learning_rate=5e-3)
    trained, curve = fit(settings, bert, CORPUS, 0, World())
    frozen = read(replace(settings, train=False), bert, World())
    rows = asked(CORPUS.rows["train"])
    assert (1 / trained.places(rows)).mean() > (1 / frozen.places(rows)).mean() + 0.03
    assert len(curve) == 30
    assert curve[0].learning_rate == 0  # the first update moves nothing
    assert [step.learning_rate for step in curve[3:]] == [5e-3] * 27  # then constant
    assert trained.about["warm-up steps"] == pytest.approx(3)


def test_every_shape_trains_and_saves(backbone: Path, tmp_path: Path):
    """BERT and RoBERTa, each with a tokenizer of its kind: the family's promise to a masked LM."""
    trained, curve = fit(SHORT, backbone, CORPUS, 0, World())
    assert all(np.isfinite(step.loss) for step in curve)
    assert trained.about["training definitions"] == 48 - trained.about["left out for their definition"]
    trained.save(tmp_path / "model")
    again = read(SHORT, tmp_path / "model", World())
    rows = asked(CORPUS.rows["test"])
    assert again.places(rows).tolist() == trained.places(rows).tolist()
    assert np.array_equal(again.encoder.encode(TEXTS), trained.encoder.encode(TEXTS))
    assert again.about == trained.about
    assert read(SHORT, tmp_path / "model", World(precision="bf16")).encoder.precision == "bf16"
    assert trained.places(rows)[-1, 0] == -1  # "zzzq" is no entry


@pytest.mark.parametrize(
    ("changed", "other"),
    [
        *(({"readout": name}, {"readout": "mean"}) for name in ("cls", "max", "sep", "sum")),
        ({"readout": "mean", "max_length": 5}, {"readout": "mean", "max_length": 6}),
    ],
)
def test_settings_say_how_texts_are_read(bert: Path, changed: dict[str, Any], other: dict[str, Any]):
    text = ["the small house by the river of stone"]
    own, another = (
        read(Settings(**given), bert, World()).encoder.encode_unscaled(text) for given in (changed, other)
    )
    assert np.array_equal(own, Encoder.load(bert, **changed).encode_unscaled(text))
    assert not np.allclose(own, another, atol=1e-3)
    assert read(Settings(**changed), bert, World(precision="bf16")).encoder.precision == "bf16"


def test_stacked_arms_are_trained_as_alone_whatever_is_frozen(bert: Path):
    """Frozen embeddings have no backward pass of their own, and the others beside them still have theirs."""
    policies = ("head+embeddings", "head", "none")
    arms = [(replace(SHORT, steps=4, freeze=freeze), seed) for freeze in policies for seed in (0, 1)]

    def of(settings: Settings, seed: int) -> Callable[[World], Any]:
        return lambda world: fit(settings, bert, CORPUS, seed, world)

    for (own, seed), outcome in zip(arms, fit_together([of(*arm) for arm in arms], [World()] * 6), strict=True):
        assert not isinstance(outcome, Exception), outcome
        (model, curve), (alone, expected) = outcome, of(own, seed)(World())
        assert [p.loss for p in curve] == pytest.approx([p.loss for p in expected], rel=1e-4)
        assert np.allclose(model.encoder.encode(TEXTS), alone.encoder.encode(TEXTS), atol=1e-4)


@pytest.mark.parametrize("freeze", ["head", "head+embeddings", "head_untied", "none"])
def test_what_is_frozen_stands_still(backbone: Path, freeze: str):
    before = read(SHORT, backbone, World())
    after, _ = fit(replace(SHORT, freeze=freeze), backbone, CORPUS, 0, World())
    old, new = dict(before.named_parameters()), dict(after.named_parameters())
    embeddings = "encoder.backbone.embeddings.word_embeddings.weight"
    moved = {name: not torch.equal(old[name], new[name]) for name in old if name in new}
    assert any(changed for name, changed in moved.items() if ".layer." in name)
    assert moved["head.transform.dense.weight"] is (freeze == "none")
    word_embeddings = after.encoder.backbone.get_input_embeddings().weight
    changed = not torch.equal(word_embeddings, before.encoder.backbone.get_input_embeddings().weight)
    assert changed is (freeze in ("head_untied", "none")), embeddings
    positions = "encoder.backbone.embeddings.position_embeddings.weight"
    assert moved[positions] is (freeze != "head+embeddings")
    tied = after.head.decoder is word_embeddings
    assert tied is (freeze in ("head", "head+embeddings"))


def test_a_frozen_weight_that_moves_fails_the_run(bert: Path, monkeypatch: pytest.MonkeyPatch):
    from trainers.engine import loop

    whole = loop.fit

    def meddling(model, *arguments, **options):
        curve = whole(model, *arguments, **options)
        with torch.no_grad():
            model.head.bias[0] += 1
        return curve

    monkeypatch.setattr(loop, "fit", meddling)
    with pytest.raises(FrozenWeightsChanged):
        fit(SHORT, bert, CORPUS, 0, World())


def test_one_seed_is_one_encoder_and_arms_share_the_order(bert: Path):
    one, first = fit(SHORT, bert, CORPUS, 0, World())
    _, second = fit(SHORT, bert, CORPUS, 0, World())
    _, other = fit(SHORT, bert, CORPUS, 1, World())
    assert [step.loss for step in first] == [step.loss for step in second] != [step.loss for step in other]
    in_one_order = [fit(replace(SHORT, order="file"), bert, CORPUS, seed, World())[1] for seed in (0, 1)]
    assert in_one_order[0][0].loss != in_one_order[1][0].loss  # by their dropout alone
    assert one.about["frozen sha256"] == fit(SHORT, bert, CORPUS, 2, World())[0].about["frozen sha256"]


def test_bf16_keeps_the_logits_in_float32(bert: Path):
    """30,000 classes in eight bits of mantissa would be ties."""
    with torch.autocast("cpu", torch.bfloat16):
        logits = read(SHORT, bert, World())(Encoder.load(bert).tokenise(TEXTS))
    assert logits.dtype == torch.float32
    _, curve = fit(SHORT, bert, CORPUS, 0, World(precision="bf16"))
    assert np.isfinite(curve[-1].loss)


# A bare backbone: the fitted head.


def test_masking():
    tokenizer, tokens = bare_tokens()
    special = set(tokenizer.all_special_ids)
    masked, at = mask_tokens(tokens, tokenizer, 500, np.random.default_rng(0))
    assert not special & set(tokens.ids[at].tolist())
    starts = np.cumsum(tokens.lengths) - tokens.lengths
    per_text = [
        int(((at >= start) & (at < start + length)).sum())
        for start, length in zip(starts, tokens.lengths, strict=True)
    ]
    assert per_text == [min(2, length - 2) for length in tokens.lengths.tolist()]
    rest = np.setdiff1d(np.arange(len(tokens.ids)), at)
    assert np.array_equal(masked.ids[rest], tokens.ids[rest])
    share = {
        "mask": (masked.ids[at] == tokenizer.mask_token_id).mean(),
        "kept": (masked.ids[at] == tokens.ids[at]).mean(),
    }
    assert share["mask"] == pytest.approx(0.8, abs=0.03)
    assert share["kept"] == pytest.approx(0.1, abs=0.03)
    entries = masked.ids[at][(masked.ids[at] != tokenizer.mask_token_id) & (masked.ids[at] != tokens.ids[at])]
    assert entries.min() < 50  # of the whole vocabulary
    assert 450 <= entries.max() < 500


def bare_tokens():
    from tests.trainers.masked_lm import wordpiece
    from trainers.encoders.tokens import tokenise

    tokenizer = wordpiece()
    return tokenizer, tokenise(tokenizer, list(CORPUS.rows["train"].definitions) * 30 + ["cup"], 32)


def test_masked_states_are_those_of_their_tokens(bare: Path):
    encoder = Encoder.load(bare)
    texts = CORPUS.rows["train"].definitions[:9]
    states, targets = masked_states(encoder, texts)
    tokens = encoder.tokenise(texts)
    masked, at = mask_tokens(
        tokens, encoder.tokenizer, encoder.backbone.config.vocab_size, numpy_stream(0, "mlm", "mask", 0)
    )
    assert targets.tolist() == tokens.ids[at].tolist()
    start = int(tokens.lengths[:3].sum())
    alone = torch.from_numpy(masked.ids[start : start + tokens.lengths[3]])[None]
    embedded = encoder.backbone.get_input_embeddings()(alone)
    with torch.inference_mode():
        peer = Encoder.load(bare)
        peer.backbone.set_attn_implementation("eager")
        hidden = peer.backbone(inputs_embeds=embedded).last_hidden_state[0]
    mine = states[[row for row, place in enumerate(at) if start <= place < start + tokens.lengths[3]]]
    assert torch.allclose(mine, hidden[at[(at >= start) & (at < start + tokens.lengths[3])] - start], atol=1e-5)


def test_every_portion_of_texts_is_masked_by_a_stream_of_its_own(bare: Path, monkeypatch: pytest.MonkeyPatch):
    encoder, texts = Encoder.load(bare), CORPUS.rows["train"].definitions[:9]
    monkeypatch.setattr("trainers.defsent.mlm_fit.PORTION", 4)
    states, targets = masked_states(encoder, texts)
    expected = []
    for start in (0, 4, 8):
        tokens, draw = encoder.tokenise(texts[start : start + 4]), numpy_stream(0, "mlm", "mask", start)
        _, at = mask_tokens(tokens, encoder.tokenizer, encoder.backbone.config.vocab_size, draw)
        expected += tokens.ids[at].tolist()
    assert targets.tolist() == expected
    assert len(states) == len(expected)


def test_a_fitted_head_is_that_of_a_plain_loop(bare: Path):
    """Same start and streams; 5 % held out, log frequencies of the others, and AdamW with rise and fall of its rate
    are written a second time."""
    encoder = Encoder.load(bare)
    texts = list(CORPUS.rows["train"].definitions) * 12
    heard: list[str] = []
    head, fitted = fit_head(encoder, texts, epochs=3, tell=heard.append)
    assert heard[0] == f"reading texts with masked words, {len(texts)} of {len(texts)} done"
    assert heard[1:] == [f"fitting the head to masked words, {done} of 3 epochs done" for done in range(3)]
    states, targets = masked_states(encoder, texts)
    order = torch.from_numpy(numpy_stream(0, "mlm", "held out").permutation(len(targets)))
    held, kept = order.split([round(len(order) / 20), len(order) - round(len(order) / 20)])
    twin = untrained_head(encoder, torch_stream(0, "mlm", "init"))
    transform, table = twin.transform, twin.decoder.detach()
    assert transform is not None
    counts = torch.bincount(targets[kept], minlength=len(table)) + 0.1
    bias = torch.nn.Parameter((counts / counts.sum()).log())
    still = [transform.dense.bias, transform.norm.weight, transform.norm.bias, bias]
    optimizer = torch.optim.AdamW(
        [{"params": [transform.dense.weight], "weight_decay": 0.01}, {"params": still, "weight_decay": 0.0}],
        lr=1e-3,
    )
    steps = 3 * -(-len(kept) // 256)
    rise, step = round(0.1 * steps), 0
    assert rise >= 1
    for epoch in range(3):
        for rows in kept[numpy_stream(0, "mlm", "order", epoch).permutation(len(kept))].split(256):
            for group in optimizer.param_groups:
                group["lr"] = 1e-3 * ((step + 1) / rise if step < rise else (steps - step) / (steps - rise))
            optimizer.zero_grad()
            F.cross_entropy(transform(states[rows]) @ table.T + bias, targets[rows]).backward()
            optimizer.step()
            step += 1
    assert torch.allclose(head.bias, bias, atol=1e-4)
    assert torch.allclose(head.transform.dense.weight, transform.dense.weight, atol=1e-4)
    with torch.inference_mode():
        logits = transform(states[held]) @ table.T + bias
    assert (fitted.texts, fitted.targets) == (len(texts), len(targets))
    assert fitted.accuracy == pytest.approx((logits.argmax(1) == targets[held]).double().mean().item(), abs=0.02)
    assert fitted.loss == pytest.approx(F.cross_entropy(logits, targets[held]).item(), rel=1e-3)
    assert fitted.most_frequent == pytest.approx(targets[held].bincount().max().item() / len(held))


@pytest.mark.parametrize(("accuracy", "usable"), [(0.2, True), (0.199, False)])
def test_a_usable_head_is_twice_as_good_as_the_most_frequent_word(accuracy: float, usable: bool):
    assert HeadFit(texts=9, targets=9, accuracy=accuracy, loss=1.0, most_frequent=0.1).usable == usable


def test_the_fitted_head_is_made_once_and_named_by_what_it_read(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from trainers.defsent import mlm_fit

    made = []
    whole = mlm_fit.fit_head
    monkeypatch.setattr(mlm_fit, "fit_head", lambda *given, **options: made.append(1) or whole(*given, **options))
    monkeypatch.setattr(mlm_fit, "LEAST_RATIO", 0.0)
    settings = replace(SHORT, head_source="mlm_fit", mlm_epochs=2, train=False)
    one, none = fit(settings, bare, CORPUS, 0, World())
    other, _ = fit(replace(settings, readout="cls"), bare, CORPUS, 1, World())
    assert none == []
    assert len(made) == 1
    assert torch.equal(one.head.transform.dense.weight, other.head.transform.dense.weight)
    fit(replace(settings, mlm_texts=10), bare, CORPUS, 0, World())
    assert len(made) == 2
    fit(settings, bare, CORPUS, 0, World(precision="bf16"))  # whose states are rounded
    assert len(made) == 3
    for count, changes in ((4, {"mlm_epochs": 3}), (5, {"max_length": 5})):
        fit(replace(settings, **changes), bare, CORPUS, 0, World())
        assert len(made) == count, changes
    assert {"mlm accuracy", "mlm most_frequent", "mlm texts"} <= one.about.keys()
    fit(settings, tiny_backbone(tmp_path / "other", layers=1), CORPUS, 0, World())
    assert len(made) == 6


def test_the_fitted_head_reads_training_definitions_alone(bare: Path, monkeypatch: pytest.MonkeyPatch):
    from trainers.defsent import mlm_fit

    read_by_it: list[str] = []

    def spy(encoder, folder, texts, *, epochs, tell):
        read_by_it.extend(texts)
        raise ValueError("enough")

    monkeypatch.setattr(mlm_fit, "fitted_head", spy)
    corpus = replace(CORPUS, plain_texts=("a plain line",))
    with pytest.raises(ValueError, match="enough"):
        fit(replace(SHORT, head_source="mlm_fit"), bare, corpus, 0, World())
    held_out = {text for split in ("dev", "test") for text in CORPUS.rows[split].definitions}
    assert not held_out & set(read_by_it)
    assert read_by_it[-1] == "a plain line"
    assert set(read_by_it[:-1]) <= set(CORPUS.rows["train"].definitions)


def test_a_head_that_knows_little_is_refused_with_both_numbers(bare: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("trainers.defsent.mlm_fit.LEAST_RATIO", 1e9)
    with pytest.raises(
        ValueError, match=r"names 0\.\d+ of held-out masked words, and always .* 0\.\d+\n  accepted: "
    ):
        fit(replace(SHORT, head_source="mlm_fit", mlm_epochs=1), bare, CORPUS, 0, World())


@pytest.mark.parametrize("source", ["tied_only", "random"])
def test_a_bare_backbone_with_another_head(bare: Path, source: str):
    trained, curve = fit(
        replace(SHORT, head_source=source, learning_rate=2e-3, epochs=6), bare, CORPUS, 0, World()
    )
    assert trained.about["head_source"] == source
    assert curve[-1].loss < curve[0].loss


def test_a_random_head_is_that_of_its_seed(bare: Path):
    settings = replace(SHORT, head_source="random", train=False)
    first, second, unseeded = (
        model.head.transform.dense.weight
        for model in (
            *(fit(settings, bare, CORPUS, seed, World())[0] for seed in (0, 1)),
            read(settings, bare, World()),
        )
    )
    assert torch.equal(first, unseeded)
    assert not torch.equal(first, second)


def test_a_word_that_no_vocabulary_has(bert: Path):
    train = CORPUS.rows["train"]
    unknown = replace(train, words=texts_of(["zzzq"] * len(train)))
    corpus = replace(CORPUS, rows={**CORPUS.rows, "train": unknown})
    with pytest.raises(ValueError, match=r"no word of the training rows .* of bert.*\n  accepted: "):
        fit(SHORT, bert, corpus, 0, World())


# Sentence-BERT.


def test_the_siamese_arm_learns_and_trains_every_weight(bert: Path):
    settings = replace(SHORT, objective="inference", epochs=8, batch_size=6, learning_rate=2e-3)
    trained, curve = fit(settings, bert, CORPUS, 0, World())
    assert len(curve) == 24
    assert curve[-1].terms["inference"] < curve[0].terms["inference"]
    assert "accuracy" in curve[0].figures
    assert curve[0].learning_rate > 0  # the usual warm-up, and down to 0 at the end
    assert curve[-1].learning_rate < 0.1 * settings.rate
    before = read(settings, bert, World())
    moved = [
        not torch.equal(old, new)
        for (name, old), new in zip(before.encoder.named_parameters(), trained.encoder.parameters(), strict=True)
        if "token_type" not in name
    ]
    assert all(moved)
    assert trained.about["nli_source"] == "made up"
    assert fit(replace(settings, train=False), bert, CORPUS, 0, World())[1] == []


@pytest.mark.parametrize("epochs", [1, 2])
def test_the_matched_budget_has_the_steps_of_one_epoch_of_definitions(bert: Path, epochs: int):
    settings = replace(SHORT, objective="inference", matched_budget=True, epochs=epochs)
    _, curve = fit(settings, bert, CORPUS, 0, World())
    trained, of_definitions = fit(SHORT, bert, CORPUS, 0, World())
    assert len(curve) == len(of_definitions) == trained.about["steps"]


def test_without_pairs_there_is_no_siamese_arm(bert: Path):
    with pytest.raises(ValueError, match=r"data\.nli = 'none'"):
        fit(replace(SHORT, objective="inference"), bert, replace(CORPUS, inferences=None), 0, World())


def test_pairs_stay_together(bert: Path):
    pairs = CORPUS.inferences
    assert pairs is not None
    seen: list[list[str]] = []
    take = inference_batches(
        replace(SHORT, order="file"), pairs, lambda texts: seen.append(list(texts)), 0, World()
    )
    batch = take(0)
    assert seen[0] == [*pairs.premises[:10], *pairs.hypotheses[:10]]
    assert batch.target.tolist() == [row % 3 for row in range(10)]
    assert len(batch) == 20


def test_pairs_are_shuffled_whatever_the_order_of_definitions():
    """A file of pairs has the hypotheses of one premise side by side."""
    pairs = CORPUS.inferences
    assert pairs is not None
    seen: list[list[str]] = []
    for order in ("shuffled", "file"):
        settings = replace(SHORT, objective="inference", order=order)
        inference_batches(settings, pairs, lambda texts: seen.append(list(texts)), 0, World())(0)
    rows = numpy_stream(0, "data", "order", 0).permutation(len(pairs))[:10]
    assert seen == 2 * [[*pairs.premises.take(rows), *pairs.hypotheses.take(rows)]]


# The stages of ZeRO.


@pytest.mark.parametrize(
    "arm",
    [
        *({"freeze": freeze} for freeze in ("head", "head+embeddings", "head_untied", "none")),
        {"objective": "inference"},
        {"objective": "inference", "head_source": "tied_only"},
    ],
)
def test_an_arm_trains_looks_and_saves_alike_at_stages_0_and_3(bert: Path, tmp_path: Path, arm: dict[str, str]):
    """Whether the head shares its decoder with what is trained, or is no part of it."""
    settings, rows = replace(SHORT, **arm, learning_rate=1e-3), asked(CORPUS.rows["test"])

    def look(model: WordEncoder) -> dict[str, float]:
        return {"mrr": float((1 / model.places(rows)).mean())}

    def outcome(stage: int) -> tuple[list[float], list[float], np.ndarray, np.ndarray]:
        model, curve = fit(settings, bert, CORPUS, 0, World(zero_stage=stage, look_at=(2,), look=look))
        model.save(tmp_path / str(stage))
        again = read(settings, tmp_path / str(stage), World())
        assert again.places(rows).tolist() == model.places(rows).tolist()
        seen = [step.figures["mrr"] for step in curve if "mrr" in step.figures]
        return [step.loss for step in curve], seen, model.places(rows), again.encoder.encode(TEXTS)

    losses, seen, places, vectors = outcome(0)
    of_3 = outcome(3)
    assert of_3[0] == pytest.approx(losses, rel=1e-4)
    assert of_3[1] == pytest.approx(seen, rel=1e-6)
    assert np.array_equal(of_3[2], places)
    assert np.allclose(of_3[3], vectors, atol=1e-4)


# Two workers.


def _share(rank: int, size: int, folder: Path) -> None:
    corpus: DefsentCorpus = definitions()
    world = World(rank=rank, size=size)
    found = {}
    for name, settings in (
        ("definitions", SHORT),
        ("inference", replace(SHORT, objective="inference", epochs=2, learning_rate=1e-3)),
    ):
        encoder, curve = fit(settings, folder / "still", corpus, 0, world)
        found[name] = ([step.loss for step in curve], encoder.encoder.encode(TEXTS).tolist())
    torch.save(found, folder / f"{size}-{rank}.pt")


def test_two_workers_equal_one(tmp_path: Path):
    """Without dropout, in loss and vectors; the last step's eight definitions are four for each."""
    masked_lm(tmp_path / "still", "bert", dropout=0.0)
    _share(0, 1, tmp_path)
    together(2, _share, tmp_path)
    one, *two = (torch.load(tmp_path / f"{name}.pt") for name in ("1-0", "2-0", "2-1"))
    for worker in two:
        for name, (losses, vectors) in worker.items():
            assert losses == pytest.approx(one[name][0], abs=1e-4)
            assert np.allclose(vectors, one[name][1], atol=1e-3)
