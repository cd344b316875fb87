"""Every host, plain and with negatives: what it minimises, that it trains, resumes, and does so with two workers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import logsumexp

from corpora.san.records import SanCorpus
from tests.tiny import tiny_backbone
from tests.trainers.first_step import DECAY, SMALL, check_first_step
from tests.trainers.san.corpus import san_corpus
from tests.workers import together
from trainers import losses
from trainers.encoders.encoder import Encoder
from trainers.engine.streams import STREAMS, seeded
from trainers.engine.world import Progress, World
from trainers.san.batches import SanBatch, batches
from trainers.san.hosts import simcse
from trainers.san.hosts.rows import Rows
from trainers.san.losses import bidirectional_margin, hince
from trainers.san.ranking import CODE_EPS, jensen_shannon, list_mle, list_net
from trainers.san.readers import Headed, Prompted, encoder_of
from trainers.san.settings import TAUGHT, Settings
from trainers.san.student import Student, head
from trainers.san.teachers import Teachers
from trainers.san.templates import OTHER_VIEW, VIEW, Template, in_template
from trainers.san.training import fit, read, terms_of

SENTENCES = san_corpus().sentences[:]
HOSTS = ("simcse", "simcse_sup", "sncse", "rankcse", "rlrd")
SHORT = Settings(steps=4, batch_size=8, learning_rate=1e-3, readout="mean", p1=0.0, p2=0.0, rl_every=3)


def arm(host: Any, san: Any, backbone: Path, **changes: Any) -> Settings:
    teachers = ("whole", "words") if host in TAUGHT else ()
    negatives = "san" if san != "off" else ""
    return replace(SHORT, host=host, san=san, negatives=negatives, teachers=teachers, **changes)


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


def corpus(backbone: Path) -> SanCorpus:
    return san_corpus(teachers={"whole": f"{backbone}@mean", "words": f"{backbone}@idf"})


def step(settings: Settings, backbone: Path) -> tuple[dict[str, torch.Tensor], Rows, Any, Teachers]:
    """The terms of the first step of an arm, and what they are made of."""
    encoder = encoder_of(settings, backbone, World())
    student = Student(encoder, settings, 0).train()
    batch = batches(settings, corpus(backbone), encoder, 0, World())(0)
    torch.manual_seed(0)
    terms = terms_of(settings, student, corpus(backbone), 1, World())(student, batch)
    torch.manual_seed(0)
    rows = Rows.of(student(batch.views, batch.apart, batch.stream), batch, World())
    return terms, rows, batch, Teachers.of(settings, corpus(backbone), device="cpu", tell=print)


def test_sncse_adds_its_margins(backbone: Path):
    changes = {"bml_weight": 0.5, "bml_alpha": 0.3, "bml_beta": 0.0, "tau1": 0.06, "tau2": 0.1, "own_weight": 0.4}
    terms, rows, batch, _ = step(arm("sncse", "hince", backbone, **changes), backbone)
    assert rows.soft is not None
    assert rows.all_negative is not None
    first = hince(
        rows.anchor, rows.second, rows.all_negative, tau=0.06, tau_negative=0.1, own_weight=0.4, **kept(batch)
    )
    margin = bidirectional_margin(rows.anchor, rows.second, rows.soft, alpha=0.3, beta=0.0)
    assert {name: term.item() for name, term in terms.items()} == pytest.approx(
        {"hince": first.item(), "bml": 0.5 * margin.item()}, rel=1e-5
    )


def kept(batch: SanBatch) -> dict[str, torch.Tensor]:
    return {"keep": torch.from_numpy(batch.keep), "keep_negatives": torch.from_numpy(batch.keep_negatives)}


TAUS = {"tau1": 0.06, "tau2": 0.07, "rank_tau": 0.08, "rank_teacher_tau": 0.09, "tau3": 0.11}


@pytest.mark.parametrize("form", ["listmle", "listnet", "authors"])
def test_rankcse_adds_its_lists(backbone: Path, form: str):
    """ListMLE, in the code's way too, where much lies more than 16 below the largest; ListNet without the own view."""
    changes = {"listnet": {"rank_loss": "listnet"}, "authors": {"conform": "authors", "rank_tau": 0.001}}.get(
        form, {}
    )
    weights = {"rank_weight": 0.7, "san_mle": 0.4, "consistency_weight": 2.0, "consistency": "js"}
    settings = replace(arm("rankcse", "hince", backbone, **{**TAUS, **weights, **changes}), p1=0.3)
    terms, rows, batch, teachers = step(settings, backbone)
    assert rows.all_negative is not None
    (a, a_aside), (b, b_aside) = teachers.cosines(0, batch), teachers.cosines(1, batch)
    near = losses.cosines(rows.anchor, rows.second)
    far = losses.cosines(rows.anchor, rows.all_negative) / 0.07
    assert a_aside is not None
    assert b_aside is not None
    keep = torch.from_numpy(batch.keep_negatives)
    views, aside = 0.33 * a + 0.67 * b, 0.33 * a_aside + 0.67 * b_aside
    if form == "listnet":
        lists = list_net(views / 0.09, near / 0.08, keep=~torch.eye(8, dtype=torch.bool))
        lists_san = list_net(aside / 0.11, far, keep=keep)
    else:
        eps = CODE_EPS if form == "authors" else 0.0
        lists = list_mle(views, near / settings.rank_tau, eps=eps)
        lists_san = list_mle(aside, far, keep=keep, eps=eps)
    consistency = jensen_shannon(near / 0.06, near.T / 0.06)
    assert consistency > 1e-4
    expected = {"consistency": 2 * consistency, "lists": 0.7 * lists, "lists_san": 0.7 * 0.4 * lists_san}
    for name, value in expected.items():
        assert terms[name].item() == pytest.approx(value.item(), rel=1e-4), name
    by_item = step(replace(settings, rank_normalise="items"), backbone)[0]
    assert by_item["lists"].item() == pytest.approx(expected["lists"].item() / 8, rel=1e-4)
    assert torch.allclose(
        a.diagonal(), torch.ones(8), atol=1e-5
    )  # one text, no dropout: both views are one vector


@pytest.mark.parametrize("changes", [{"consistency": "off"}, {"consistency": "entropy"}, {"rank_loss": "listnet"}])
def test_rankcse_in_its_other_forms(backbone: Path, changes: dict[str, Any]):
    terms, *_ = step(arm("rankcse", "hince", backbone, **changes), backbone)
    assert ("consistency" in terms) == (changes.get("consistency") != "off")
    if changes.get("consistency") == "entropy":
        assert terms["consistency"] < 0
    assert all(torch.isfinite(term) for term in terms.values())


def test_one_teacher_of_rankcse_counts_whole(backbone: Path):
    settings = arm("rankcse", "off", backbone, rank_loss="listnet", **TAUS)
    terms, rows, batch, teachers = step(replace(settings, teachers=("whole",)), backbone)
    near = losses.cosines(rows.anchor, rows.second)
    alone = list_net(teachers.cosines(0, batch)[0] / 0.09, near / 0.08, keep=~torch.eye(8, dtype=torch.bool))
    assert terms["lists"].item() == pytest.approx(alone.item(), rel=1e-4)


def test_rlrd_mixes_by_bids_and_fixed_counts_both_alike(backbone: Path):
    settings = arm("rlrd", "hince", backbone, rl_weight=0.8, san_mle=0.3, **TAUS)
    fixed, rows, batch, teachers = step(replace(settings, rl_update="fixed"), backbone)
    (a, a_aside), (b, b_aside) = teachers.cosines(0, batch), teachers.cosines(1, batch)
    assert rows.all_negative is not None
    assert a_aside is not None
    assert b_aside is not None
    near = losses.cosines(rows.anchor, rows.second) / 0.06
    far = losses.cosines(rows.anchor, rows.all_negative) / 0.07
    keep = torch.from_numpy(batch.keep_negatives)

    def lists(share: float) -> dict[str, float]:
        aside = list_mle(share * a_aside + (1 - share) * b_aside, far, keep=keep)
        views = list_mle(share * a + (1 - share) * b, near)
        return {"lists": 0.8 * views.item(), "lists_san": 0.8 * 0.3 * aside.item()}

    for name, value in lists(0.5).items():
        assert fixed[name].item() == pytest.approx(value, rel=1e-4), name
    assert "teacher_share" not in fixed
    student = Student(encoder_of(settings, backbone, World()), settings, 0)
    mixture, another = student.mixture, Student(student.encoder, settings, 1).mixture
    assert mixture is not None
    assert another is not None
    assert not torch.equal(mixture.policies[0].ends, another.policies[0].ends)  # type: ignore[arg-type]
    with torch.no_grad():  # as if the first policy had learnt to bid high, and the second low
        mixture.policies[0].ends[:, 0] = mixture.policies[1].ends[:, 1] = 10.0  # type: ignore[union-attr, index]
    learnt = terms_of(settings, student, corpus(backbone), 1, World())(student, batch)
    share = learnt.pop("teacher_share")
    assert share > 0.8
    assert not share.requires_grad
    for name, value in lists(share.item()).items():
        assert learnt[name].item() == pytest.approx(value, rel=1e-4), name
    reward = -sum(term.item() for term in learnt.values()) / 2
    assert mixture.rewards[0].item() == pytest.approx(reward, rel=1e-5)
    torch.testing.assert_close(
        mixture.views[0], torch.stack([rows.anchor, rows.second]).detach(), atol=1e-5, rtol=0
    )
    torch.testing.assert_close(mixture.lists[0], torch.stack([a, b]) / 0.09)
    torch.testing.assert_close(mixture.losses[0, 0], torch.stack([list_mle(one, near) for one in (a, b)]).detach())


@pytest.mark.parametrize("host", ["rankcse", "rlrd"])
def test_teachers_rank_the_texts_that_the_student_reads(backbone: Path, host: str):
    """Anchors in the first template, second views and negatives, here other sentences, in the other; or as they are."""
    *_, batch, teachers = step(arm(host, "hince", backbone, column="random"), backbone)
    encoder = Encoder.load(backbone, readout="mean", max_length=32)

    def vectors(rows: np.ndarray, template: Template) -> torch.Tensor:
        texts = [SENTENCES[row] for row in rows]
        if host == "rankcse":
            return torch.from_numpy(encoder.embed(encoder.tokenise(texts)))
        tokens = in_template(encoder.tokenizer, texts, template, max_length=32)
        return torch.from_numpy(encoder.embed(replace(tokens, read=None)))

    first = vectors(batch.rows, VIEW)
    views, aside = teachers.cosines(0, batch)
    assert torch.allclose(views, losses.cosines(first, vectors(batch.rows, OTHER_VIEW)), atol=1e-3)
    assert torch.allclose(aside, losses.cosines(first, vectors(batch.negative_rows, OTHER_VIEW)), atol=1e-3)


@pytest.mark.parametrize(
    ("stream", "changed"),
    [
        ("data", {"hince", "bml"}),
        ("init", {"hince", "bml"}),
        ("dropout", {"hince", "bml"}),
        ("negatives", {"hince"}),
    ],
)
def test_a_stream_of_another_seed_changes_its_own_part_alone(backbone: Path, stream: str, changed: set[str]):
    """Other sentences are drawn for negatives, and the negations are as they were."""
    settings = arm("sncse", "hince", backbone, column="random", steps=1, p1=0.1, p2=0.1)
    _, (own,) = fit(settings, backbone, corpus(backbone), 0, World())
    with seeded({name: 0 for name in STREAMS if name != stream}):
        _, (other,) = fit(settings, backbone, corpus(backbone), 5, World())
    assert {name for name in own.terms if own.terms[name] != other.terms[name]} == changed


@pytest.mark.parametrize("san", ["off", "hince", "hard"])
def test_supervised_contradictions_stand_at_the_temperature_of_the_views(backbone: Path, san: str):
    """Beside aligned negatives, at their own; `hard` takes negatives for the contradictions."""
    terms, rows, batch, _ = step(arm("simcse_sup", san, backbone, tau1=0.06), backbone)
    contradicted = {} if rows.all_contradiction is None else {"hard": rows.all_contradiction}
    if san == "off":
        scale = {"tau": 0.06, "tau_negative": 0.06, "keep": torch.from_numpy(batch.keep)}
        expected = hince(rows.anchor, rows.second, contradicted["hard"], **scale)
        assert terms["info_nce"].item() == pytest.approx(expected.item(), rel=1e-5)
        return
    assert rows.all_negative is not None
    assert (san == "hard") == (not contradicted)
    own = 0.06 if san == "hard" else 0.08
    expected = hince(
        rows.anchor, rows.second, rows.all_negative, tau=0.06, tau_negative=own, **contradicted, **kept(batch)
    )
    assert terms["hince"].item() == pytest.approx(expected.item(), rel=1e-5)


def test_second_views_that_are_left_out_count_for_nothing(backbone: Path):
    settings = arm("simcse", "off", backbone, tau1=0.06)
    _, rows, batch, _ = step(settings, backbone)
    keep = np.random.default_rng(0).random((8, 8)) < 0.6
    np.fill_diagonal(keep, True)
    (term,) = simcse.terms(rows, replace(batch, keep=keep), settings).values()
    logits = np.where(keep, losses.cosines(rows.anchor, rows.second).detach().numpy() / 0.06, -np.inf)
    assert term.item() == pytest.approx((logsumexp(logits, axis=1) - logits.diagonal()).mean(), rel=1e-5)


def test_the_head_of_training_begins_as_berts_layers_do():
    """N(0, .02²) without a bias, by the run's own seed."""
    first, again, other = head(64, 0), head(64, 0), head(64, 1)
    assert first.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert first.weight.mean().item() == pytest.approx(0, abs=0.002)
    assert not first.bias.any()
    assert torch.equal(first.weight, again.weight)
    assert not torch.equal(first.weight, other.weight)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("san", ["off", "hince"])
def test_every_host_learns(backbone: Path, host: str, san: str):
    settings = arm(host, san, backbone, steps=25, learning_rate=3e-3)
    reader, curve = fit(settings, backbone, corpus(backbone), 0, World())
    first, last = (np.mean([progress.loss for progress in part]) for part in (curve[:5], curve[-5:]))
    assert last < first
    rows = reader.encode(SENTENCES[:5])
    assert rows.shape == (5, 32)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert isinstance(reader, {"simcse_sup": Headed, "sncse": Prompted, "rlrd": Prompted}.get(host, object))


def test_a_first_step_moves_every_weight_by_the_rate(backbone: Path):
    settings = replace(arm("simcse", "hince", backbone), steps=1, warmup=4, p1=0.1)
    start = dict(read(settings, backbone, World()).named_parameters())  # type: ignore[attr-defined]
    after, decayed, held = (
        dict(fit(replace(settings, **changes), backbone, corpus(backbone), 0, World())[0].named_parameters())
        for changes in ({}, {"weight_decay": DECAY}, SMALL)
    )
    check_first_step(start, after, decayed=decayed, held=held, rate=lambda name: 1e-3 / 4)


@pytest.mark.parametrize("san_pass", ["separate", "fused"])
def test_half_precision_stays_out_of_the_loss(backbone: Path, san_pass: Any):
    settings = arm("rankcse", "hince", backbone, p1=0.1, p2=0.3, san_pass=san_pass)
    curves = {}
    for precision in ("fp32", "bf16"):
        _, curve = fit(settings, backbone, corpus(backbone), 0, World(precision=precision))  # type: ignore[arg-type]
        curves[precision] = [progress.loss for progress in curve]
    assert curves["bf16"] != curves["fp32"]
    assert curves["bf16"] == pytest.approx(curves["fp32"], rel=0.05)


class Killed(Exception):
    pass


@pytest.mark.parametrize(
    ("host", "changed"),
    [("simcse", {}), ("rlrd", {}), ("rlrd", {"rl_every": 2}), ("rlrd", {"rl_every": 2, "rl_update": "reinforce"})],
)
def test_a_resumed_run_goes_on_as_if_it_had_never_stopped(
    backbone: Path, tmp_path: Path, host: str, changed: dict[str, object]
):
    settings = arm(host, "hince", backbone, steps=8, p1=0.1, p2=0.3, **changed)
    whole, curve = fit(settings, backbone, corpus(backbone), 0, World())

    def die(progress: Progress) -> None:
        if progress.step == 6:
            raise Killed

    with pytest.raises(Killed):
        fit(settings, backbone, corpus(backbone), 0, World(scratch=tmp_path, checkpoint_every=4, report=die))
    resumed, again = fit(settings, backbone, corpus(backbone), 0, World(scratch=tmp_path, checkpoint_every=4))
    assert [(p.loss, p.figures) for p in again] == [(p.loss, p.figures) for p in curve]
    assert np.array_equal(resumed.encode(["a dog"]), whole.encode(["a dog"]))


def test_an_untrained_arm_is_read_as_its_host_is(backbone: Path):
    plain = read(Settings(train=False, readout="mean"), backbone, World())
    prompted = read(Settings(train=False, host="sncse"), backbone, World())
    assert isinstance(prompted, Prompted)
    assert not np.allclose(plain.encode(["a dog"]), prompted.encode(["a dog"]), atol=1e-2)


QUICK = ["simcse hince", "rlrd hince"]  # what all columns, lists and policies need
ALL = [*(f"{host} {san}" for host in HOSTS for san in ("off", "hince")), "rankcse listnet"]


def arms(backbone: Path) -> Iterator[tuple[str, Settings]]:
    for host in HOSTS:
        for san in ("off", "hince"):
            yield f"{host} {san}", arm(host, san, backbone)
    yield "rankcse listnet", arm("rankcse", "hince", backbone, rank_loss="listnet")


def _share(rank: int, size: int, folder: Path, names: list[str]) -> None:
    import os

    os.environ["SEMRAY_CACHE"] = str(folder / "cache")
    found = {}
    for name, settings in arms(folder / "still"):
        if name not in names:
            continue
        reader, curve = fit(settings, folder / "still", corpus(folder / "still"), 0, World(rank=rank, size=size))
        terms = [{"loss": p.loss, **p.terms, **p.figures} for p in curve]
        found[name] = {"terms": terms, "vectors": reader.encode(SENTENCES[:6]).tolist()}
    (folder / f"{size}-{rank}.json").write_text(json.dumps(found))


@pytest.mark.parametrize(
    "names", [QUICK, pytest.param([name for name in ALL if name not in QUICK], marks=pytest.mark.long)]
)
def test_two_workers_equal_one_with_the_doubled_micro_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
):
    """Without dropout, whose stream is each worker's own: columns, lists and policies must be everyone's."""
    tiny_backbone(tmp_path / "still", dropout=0.0)
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / "cache"))
    _share(0, 1, tmp_path, names)
    together(2, _share, tmp_path, names)
    one, *two = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("1-0", "2-0", "2-1"))
    for worker in two:
        assert worker.keys() == one.keys() == set(names)
        for name, ours in worker.items():
            for mine, alone in zip(ours["terms"], one[name]["terms"], strict=True):
                assert mine == pytest.approx(alone, rel=1e-3, abs=1e-4), name
            assert np.allclose(ours["vectors"], one[name]["vectors"], atol=2e-3), name
