"""A member of a stack is, to the last bit, the model it would have been alone."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
import torch
import torch.nn.functional as F
from torch import Tensor

from corpora.benchmarks.pairs import Pairs
from corpora.difficulty.rows import PairTask
from corpora.difficulty.surface import surface_complexity
from corpora.store.errors import CorpusError
from evaluators.metrics.scores import Score
from tests.pair_scores import evaluated
from trainers.difficulty.adapters import initial, pair_layout, sentence_layout
from trainers.difficulty.data import TaskData, for_selection, task_data
from trainers.difficulty.fit import StackResult, fit_portions, fit_stack
from trainers.difficulty.pair_scorer import named
from trainers.difficulty.predict import Predictions
from trainers.difficulty.settings import FORMS, SENTENCE_FORMS, UNTRAINED, Settings, defining, isolating
from trainers.difficulty.stack import Model, frozen_at_width, layout_of, pair_target, sentence_target, train
from trainers.difficulty.stack_arithmetic import batch_rows
from trainers.engine.streams import torch_stream

WIDTH = 32


def toy(name: str = "toy", n: int = 120, judged: bool = True) -> TaskData:
    """A task with shared sentences, graded gold that follows the cosine, and a noisy judge."""
    draw = np.random.default_rng(7)

    def split(kind: str, rows: int) -> Pairs:
        a = [f"{kind} left {i % (rows - 3)}, which waits" for i in range(rows)]
        b = [f"{kind} right {max(0, i - 5)} waits" for i in range(rows)]
        return Pairs(tuple(f"{kind}{i}" for i in range(rows)), tuple(a), tuple(b), draw.integers(0, 6, rows) / 5)

    task = PairTask(name, True, split("train", n), split("evaluation", n // 2), "validation", "made up")
    x = draw.normal(size=(len(task.sentences), WIDTH)) + 0.5
    scores = {"train": draw.random(n), "evaluation": draw.random(n // 2)} if judged else None
    return task_data(task, x, scores)


def settings(form: str, **changes: object) -> Settings:
    given = {"steps": 30, "batch_size": 32, "m": 8, "d_h": 16 if form.startswith("pair") else None}
    matched = "pair_judge" if form == "pair_ungated_matched" else None
    return Settings(form=form, matched_to=matched, **{**given, **changes})


TARGETED = ("pair_judge", "pair_lex", "pair_label_target", "complexity", "shuffled", "interp_complexity")


def plain_loop(model: Model, data: TaskData) -> Tensor:
    """One model in ordinary two-dimensional tensors, written without the stacked code but for streams and start."""
    s, side = model.settings, data.train
    width, m = s.sizes(data.x.shape[1])
    layout = layout_of(s, data.x.shape[1])
    row = initial(layout, torch_stream(model.seed, "init"), identity=s.init == "identity").requires_grad_()
    optimiser = torch.optim.AdamW([row], lr=s.learning_rate, weight_decay=s.weight_decay, fused=True)
    order = batch_rows(len(side.pairs), s.steps, s.batch_size, torch_stream(model.seed, "data"))
    x, gold = torch.from_numpy(data.x), torch.from_numpy(side.gold).float()
    x_hat = torch.from_numpy(frozen_at_width(data.x, width)) if width <= WIDTH else x
    target = pair_target(model, data) if s.form.startswith("pair") else sentence_target(model, data)
    shuffling = torch_stream(model.seed, "shuffled-complexity")
    for rows in order:
        p = {n: v.reshape(shape) for (n, shape), v in zip(
            layout.shapes.items(), row.split([math.prod(z) for z in layout.shapes.values()]
                                             + [layout.size - sum(map(math.prod, layout.shapes.values()))]), strict=False)}  # fmt: skip
        both = torch.cat([torch.from_numpy(side.a)[rows], torch.from_numpy(side.b)[rows]])
        normal = F.layer_norm(torch.addmm(p["working.b"], x[both], p["working.w"]), (width,))
        h = torch.addcmul(p["norm.bias"], normal, p["norm.gain"])
        if s.form.startswith("pair"):
            a, b = h.chunk(2)
            hidden = F.gelu(torch.addmm(p["heads.b1"], torch.cat([(a - b).abs(), a * b], 1), p["heads.w1"]))
            delta = torch.tanh((hidden[:, :m] * p["residual.w2"]).sum(1) + p["residual.b2"])
            c = torch.sigmoid((hidden[:, m:] * p["hardness.w2"]).sum(1) + p["hardness.b2"])
            gate = torch.ones(()) if s.form == "pair_ungated" else c
            score = torch.from_numpy(side.anchor)[rows] + model.gamma * gate * delta
            loss = (s.form in TARGETED) * s.lambda_hard * (c - target[rows]).square().mean()
        else:
            first = torch.addmm(p["heads.b1"], h, p["heads.w1"])
            c = torch.sigmoid((F.gelu(first[:, m:]) * p["complexity.w2"]).sum(1) + p["complexity.b2"])
            moved = torch.randperm(len(rows), generator=shuffling)
            source = {
                "complexity": c,
                "shuffled": c[torch.cat([moved, moved + len(rows)])],
                "global": torch.sigmoid(p["theta"] + torch.zeros_like(c)),
                "fixed": torch.full_like(c, 0.5),
            }.get(s.form.removeprefix("interp_"), torch.zeros_like(c))
            hidden = F.gelu(first[:, :m] + source[:, None] * p["scale.c"])
            alpha = 1 + s.alpha0 * torch.tanh(torch.addmm(p["scale.b2"], hidden, p["scale.w2"]))
            u = F.normalize(h if s.form == "proj_only" else alpha * h, dim=1)
            if s.form.startswith("interp_"):
                frozen = 1 - model.gamma if s.interp_form == "interpolate" else 1.0
                u = frozen * x_hat[both] + model.gamma * u
            u = F.normalize(u, dim=1)
            score = (u[: len(rows)] * u[len(rows) :]).sum(1)
            loss = (s.form in TARGETED) * s.lambda_hard * (c - target[both]).square().mean()
            loss = loss + s.lambda_anchor * (1 - F.cosine_similarity(u, x_hat[both])).mean()
        above = gold[rows][:, None] > gold[rows][None, :]
        scaled = score / s.tau
        rank = (F.softplus(scaled[None, :] - scaled[:, None]) * above).sum() / above.sum().clamp(min=1)
        loss = loss + (score - gold[rows]).square().mean() + s.lambda_rank * rank
        (row.grad,) = torch.autograd.grad(loss, [row])
        row.grad.mul_((1 / (row.grad.square().sum().sqrt() + 1e-6)).clamp(max=1))
        optimiser.step()
    return row.detach()


@pytest.fixture(autouse=True)
def one_thread() -> object:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def fitted(
    forms: list[str], seeds: list[int], data: TaskData, gamma: float = 0.25, **changes: object
) -> dict[tuple[str, int], Tensor]:
    models = [Model(settings(form, **changes), seed, gamma) for seed in seeds for form in forms]
    trained = train(models, data, device="cpu", advance=lambda steps: None)
    return {(one.model.settings.form, one.model.seed): one.row for one in trained}


@pytest.mark.parametrize("form", ["pair_judge", "complexity"])
def test_600_steps_in_company_equal_600_steps_alone_bit_for_bit(form: str) -> None:
    """Five seeds and three arms against each of two smaller companies, one of them a stack of one."""
    data = toy()
    others = ["pair_ungated", "pair_lex_shuffled"] if form.startswith("pair") else ["shuffled", "interp_fixed"]
    full = fitted([form, *others], [0, 1, 2, 3, 4], data, steps=600)
    alone = fitted([form], [2], data, steps=600)
    three = fitted([others[0], form], [2, 4], data, steps=600)
    assert torch.equal(full[form, 2], alone[form, 2])
    assert torch.equal(full[form, 4], three[form, 4])
    assert torch.equal(full[others[0], 2], three[others[0], 2])


WRITTEN = {
    "pair_judge": {}, "pair_ungated": {}, "pair_gate_free": {}, "pair_lex": {}, "pair_label_target": {},
    "complexity": {}, "shuffled": {}, "global": {}, "fixed": {}, "h_only": {}, "proj_only": {},
    "interp_complexity": {}, "interp_fixed": {"interp_form": "residual"},
}  # fmt: skip


@pytest.mark.parametrize("form", WRITTEN)
def test_stack_equals_a_plain_loop(form: str) -> None:
    """Same start, batches and optimiser; forward, loss, gradients and clipping are written a second time. The
    model's gamma counts, as of a matched arm, and not that of its settings."""
    data = toy()
    changes = {"steps": 40, "d_h": 32, "m": 16, "batch_size": 32, **WRITTEN[form]}
    plain = plain_loop(Model(settings(form, **changes), 1, 0.1), data)
    stacked = fitted([form], [0, 1], data, gamma=0.1, **changes)[form, 1]
    assert torch.equal(stacked, plain)


OF_PAIRS = ({"lambda_hard": 0.1}, {"init": "identity"}, {"d_h": 16}, {"ce_map": "identity"})
OF_SENTENCES = ({"lambda_hard": 0.1}, {"lambda_anchor": 0.3}, {"alpha0": 0.5}, {"d_h": 16}, {"init": "identity"})
OF_ALL = (
    {}, {"gamma": 0.5}, {"lambda_rank": 0.4}, {"tau": 0.2}, {"learning_rate": 3e-3}, {"weight_decay": 0.5},
    {"batch_size": 64}, {"steps": 20}, {"m": 24},
)  # fmt: skip


@pytest.mark.parametrize(
    ("form", "own"), [("pair_judge", OF_PAIRS), ("interp_complexity", OF_SENTENCES)], ids=["pair", "sentence"]
)
def test_arms_of_one_group_keep_their_own_settings(form: str, own: tuple[dict[str, object], ...]) -> None:
    """Whatever setting they differ in, in one stack or another: each is what a plain loop makes of it."""
    usual = {"steps": 16, "d_h": WIDTH, "m": 16, "gamma": 0.25}
    arms = [settings(form, **{**usual, **changes}) for changes in (*OF_ALL, *own)]
    group = fit_stack([(arm, 1) for arm in arms], [toy()], evaluate=lambda *_: [], retrieval=False)
    for one in group:
        plain = plain_loop(Model(one.settings, 1, one.settings.gamma), toy())
        torch.testing.assert_close(one.trained["toy"].row, plain, atol=1e-6, rtol=0, msg=str(one.settings))


def test_where_the_layers_of_an_adapter_begin() -> None:
    """Uniform in ±1/√inputs, as torch's; ends that would move the anchor at zero, and an identity where asked."""
    shape = {"d": 64, "d_h": 64, "m": 32}
    bounds = {"working.w": 1 / 8, "working.b": 1 / 8, "norm.bias": 0, "residual.w2": 0, "residual.b2": 0}
    bounds |= {"scale.w2": 0, "scale.b2": 0, "theta": 0, "hardness.w2": 32**-0.5, "complexity.w2": 32**-0.5}
    for layout, inputs in ((pair_layout(**shape), 128), (sentence_layout(**shape), 64)):
        views = layout.views(initial(layout, torch_stream(0, "init"), identity=False)[None])
        own = bounds | {"heads.w1": inputs**-0.5, "heads.b1": inputs**-0.5, "scale.c": 65**-0.5}
        assert (views["norm.gain"] == 1).all()
        for name in views.keys() & own.keys():
            assert views[name].abs().max().item() == pytest.approx(own[name], rel=0.15), name
            assert own[name] == 0 or views[name].numel() < 9 or views[name].min() < 0 < views[name].max()
        same = layout.views(initial(layout, torch_stream(0, "init"), identity=True)[None])
        assert torch.equal(same["working.w"][0], torch.eye(64))
        assert not same["working.b"].any()
        assert torch.equal(same["heads.w1"], views["heads.w1"])


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def gelu(x: np.ndarray) -> np.ndarray:
    return x * scipy.stats.norm.cdf(x)


def normal(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def trained(data: TaskData, form: str, **changes: object) -> tuple[dict[str, np.ndarray], Predictions]:
    """The parameters of an arm that has learnt for a while, and what it predicts."""
    arm = settings(form, d_h=WIDTH, learning_rate=3e-2, **changes)
    (result,) = fit_stack([(arm, 1)], [data], evaluate=lambda request, task, said, control: [said])
    return {
        name: value.double().numpy() for name, value in named(result.trained["toy"], WIDTH).items()
    }, result.scores[0]


def read(p: dict[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    z = x @ p["working.w"] + p["working.b"]
    z = (z - z.mean(-1, keepdims=True)) / np.sqrt(z.var(-1, keepdims=True) + 1e-5)
    return z * p["norm.gain"] + p["norm.bias"]


@pytest.mark.parametrize(
    ("form", "interp_form"),
    [(name, "interpolate") for name in SENTENCE_FORMS] + [("interp_complexity", "residual")],
)
def test_what_a_sentence_arm_predicts_in_plain_numpy(form: str, interp_form: str) -> None:
    """Of the hidden units 8 (m) are the scale head's; alpha0 = 0.2 and gamma = 0.25 are the defaults. The shuffled
    control reads another pair's complexity, the same on both sides, in an order of its seed and split."""
    data = toy()
    p, said = trained(data, form, interp_form=interp_form)
    table = dict(zip(data.task.sentences, data.x.astype(float), strict=True))

    def vectors(split: Pairs, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        x = np.array([table[text] for text in (*split.a, *split.b)])
        h = read(p, x)
        first = h @ p["heads.w1"] + p["heads.b1"]
        c = sigmoid(gelu(first[:, 8:]) @ p["complexity.w2"] + p["complexity.b2"])
        moved = torch.randperm(len(split), generator=torch_stream(1, f"shuffled-complexity/{name}")).numpy()
        source = {"complexity": c, "complexity_lex": c, "global": sigmoid(p["theta"]), "fixed": 0.5}
        source["shuffled"] = np.concatenate([side[moved] for side in np.split(c, 2)])
        fed = source.get(form.removeprefix("interp_"), 0.0) * np.ones(len(x))
        alpha = 1 + 0.2 * np.tanh(gelu(first[:, :8] + fed[:, None] * p["scale.c"]) @ p["scale.w2"] + p["scale.b2"])
        u = normal(h if form == "proj_only" else alpha * h)
        if form.startswith("interp_"):
            u = normal((0.75 if interp_form == "interpolate" else 1.0) * x + 0.25 * u)
        return *np.split(u, 2), c

    split = data.task.evaluation
    left, right, c = vectors(split, "evaluation")
    of_a, of_b, _ = vectors(data.task.train, "train")
    np.testing.assert_allclose(said.scores, (left * right).sum(1), atol=1e-5)
    np.testing.assert_allclose(said.train_scores, (of_a * of_b).sum(1), atol=1e-5)
    candidates = [split.b.index(text) for text in dict.fromkeys(split.b)]
    np.testing.assert_allclose(said.vectors[0], left, atol=1e-5)
    np.testing.assert_allclose(said.vectors[1], right[candidates], atol=1e-5)
    expected = {"mean_complexity": c.mean()}
    if target := SENTENCE_FORMS[form].target:
        own = {text: [] for text in data.task.sentences}
        for a, b, hard in zip(split.a, split.b, data.evaluation.hard_lex, strict=True):
            own[a].append(hard)
            own[b].append(hard)
        surface = dict(zip(data.task.sentences, data.surface, strict=True))
        goal = np.array(
            [np.mean(own[text]) if target == "hard_lex" else surface[text] for text in (*split.a, *split.b)]
        )
        expected |= {"complexity_mse": ((c - goal) ** 2).mean(), "complexity_variance": goal.var()}
    assert said.diagnostics == pytest.approx(expected, rel=1e-4)


def read_pairs(
    p: dict[str, np.ndarray], data: TaskData, first: tuple[str, ...], second: tuple[str, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Frozen cosine, residual and hardness of pairs."""
    table = dict(zip(data.task.sentences, data.x.astype(float), strict=True))
    x_a, x_b = (np.array([table[text] for text in side]) for side in (first, second))
    a, b = read(p, x_a), read(p, x_b)
    hidden = gelu(np.concatenate([np.abs(a - b), a * b], 1) @ p["heads.w1"] + p["heads.b1"])
    delta = np.tanh(hidden[:, :8] @ p["residual.w2"] + p["residual.b2"])
    return (x_a * x_b).sum(1), delta, sigmoid(hidden[:, 8:] @ p["hardness.w2"] + p["hardness.b2"])


@pytest.mark.parametrize("form", ["pair_judge", "pair_lex", "pair_label_target", "pair_ungated"])
def test_what_a_pair_arm_predicts_in_plain_numpy(form: str) -> None:
    """Of the hidden units 8 (m) are the residual's; gamma = 0.25 is the default."""
    data, changes = toy(), {"ce_map": "identity"} if form == "pair_judge" else {}
    p, said = trained(data, form, **changes)

    def heads(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        cosine, delta, gate = read_pairs(p, data, first, second)
        return cosine, delta, np.ones_like(gate) if form == "pair_ungated" else gate

    split, train = data.task.evaluation, data.task.train
    anchor, delta, gate = heads(split.a, split.b)
    np.testing.assert_allclose(said.frozen, anchor, atol=1e-5)
    np.testing.assert_allclose(said.scores, anchor + 0.25 * gate * delta, atol=1e-5)
    cosine, moved, open_ = heads(train.a, train.b)
    np.testing.assert_allclose(said.train_scores, cosine + 0.25 * open_ * moved, atol=1e-5)
    candidates = tuple(dict.fromkeys(split.b))
    rows, columns = (grid.ravel() for grid in np.indices((5, len(candidates))))
    against, delta_of, gate_of = heads(
        tuple(split.a[row] for row in rows), tuple(candidates[at] for at in columns)
    )
    np.testing.assert_allclose(said.anchor[rows, columns], against, atol=1e-5)
    np.testing.assert_allclose(said.pair_score(rows, columns), against + 0.25 * gate_of * delta_of, atol=1e-5)
    assert said.reach == 0.25
    expected = {
        "gamma": 0.25,
        "mean_gate": gate.mean(),
        "saturated": (np.abs(delta) > 0.99).mean(),
        "mean_correction": 0.25 * np.abs(gate * delta).mean(),
    }
    goal = {
        "pair_judge": np.abs(data.evaluation.judged - anchor),
        "pair_lex": data.evaluation.hard_lex,
        "pair_label_target": 1 - split.gold,
    }.get(form)
    if goal is not None:
        expected |= {"hardness_mse": ((gate - goal) ** 2).mean(), "hardness_variance": goal.var()}
    assert said.diagnostics == pytest.approx(expected, rel=1e-4)


def by_metric(result: StackResult) -> dict[str, float]:
    return {score.metric: score.value for score in result.scores if isinstance(score, Score)}


def same_values(left: StackResult, right: StackResult) -> bool:
    return by_metric(left).keys() == by_metric(right).keys() and all(
        value == by_metric(right)[metric] or (math.isnan(value) and math.isnan(by_metric(right)[metric]))
        for metric, value in by_metric(left).items()
    )


def test_every_arm_alone_equals_itself_in_the_group() -> None:
    """The whole path: grouping, both rounds, two threads, evaluation; then each request by itself."""
    data = [toy(), toy("other", 90)]
    requests = [(settings(form), None if form in UNTRAINED else 1) for form in FORMS]
    together = fit_stack(requests, data, evaluate=evaluated, threads=2)
    for request, one in zip(requests, together, strict=True):
        (alone,) = fit_stack([request], data, evaluate=evaluated)
        assert same_values(one, alone), request[0].form
        assert one.trained.keys() == alone.trained.keys()
        for name in one.trained:
            assert torch.equal(one.trained[name].row, alone.trained[name].row), request[0].form


def test_results_follow_the_requests_and_progress_reaches_its_total() -> None:
    seen: list[tuple[int, int]] = []
    requests = [
        (settings("pair_lex"), 3),
        (settings("baseline"), None),
        (settings("fixed"), 0),
        (settings("pair_lex"), 1),
    ]
    data = [toy(), toy("other", 90)]
    found = fit_stack(requests, data, evaluate=evaluated, report=lambda *at: seen.append(at))
    assert [(one.settings, one.seed) for one in found] == requests
    assert seen[-1] == (180, 180)
    last = found[0].curve()[-1]
    assert (last.step, last.steps) == (30, 30)
    assert set(last.terms) == {f"{task}/{term}" for task in ("toy", "other") for term in ("mse", "rank", "hard")}
    assert last.loss == pytest.approx(sum(last.terms.values()) / 2)  # the mean of two tasks
    assert found[1].curve() == []


def test_portions_give_what_one_call_gives_and_give_it_early() -> None:
    seen: list[tuple[int, int]] = []
    arms = ["pair_ungated", "pair_lex", "pair_gate_free"]
    requests = [(settings("baseline"), None), *((settings(arm), seed) for seed in range(6) for arm in arms)]
    whole = fit_stack(requests, [toy()], evaluate=evaluated)
    portions = fit_portions(requests, [toy()], evaluate=evaluated, report=lambda *at: seen.append(at))
    found = [next(portions)]
    assert seen[-1] == (9 * 30, 18 * 30)  # three seeds of three arms are done, and three are to come
    found += portions
    assert seen[-1] == (18 * 30, 18 * 30)
    assert [(one.settings, one.seed) for one in found] == requests
    assert all(same_values(one, other) for one, other in zip(whole, found, strict=True))


def test_arms_of_a_seed_start_alike_and_at_their_anchor() -> None:
    """Zero-initialised ends: with a vanishing step, pair arms score the frozen cosine."""
    data = toy()
    arms = ["pair_ungated", "pair_lex", "pair_gate_free"]
    rows = fitted(arms, [4], data, steps=1, learning_rate=1e-12, weight_decay=0.0)
    first = rows[arms[0], 4]
    assert all((rows[arm, 4] - first).abs().max() < 1e-9 for arm in arms)
    (result,) = fit_stack(
        [(settings("pair_lex", steps=1, learning_rate=1e-12), 4)],
        [data],
        evaluate=lambda request, task, said, control: [said.scores],
    )
    np.testing.assert_allclose(result.scores[0], data.evaluation.anchor, atol=1e-6)


def test_matched_control_has_the_mean_correction_budget_of_its_treated_arm() -> None:
    """gamma' = gamma x mean gate over the training pairs, found also when the treated arm was not requested."""
    data, changes = toy(), {"gamma": 0.5, "learning_rate": 3e-2}
    (result,) = fit_stack([(settings("pair_ungated_matched", **changes), 2)], [data], evaluate=evaluated)
    (treated,) = fit_stack([(settings("pair_judge", **changes), 2)], [data], evaluate=evaluated)
    p = {name: value.double().numpy() for name, value in named(treated.trained["toy"], WIDTH).items()}
    gate = read_pairs(p, data, data.task.train.a, data.task.train.b)[2].mean()
    assert by_metric(result)["toy/diag/gamma"] == pytest.approx(0.5 * gate, rel=1e-5)
    assert 0 < gate < 1


def test_matched_control_of_an_arm_trained_before_is_what_it_is_beside_it() -> None:
    treated, matched = (settings("pair_judge"), 2), (settings("pair_ungated_matched"), 2)
    before, beside = fit_stack([treated, matched], [toy()], evaluate=evaluated)
    known = {treated: before.trained}
    for asked in ([matched], [treated, matched]):
        later = fit_stack(asked, [toy()], evaluate=evaluated, known=known)[-1]
        assert torch.equal(later.trained["toy"].row, beside.trained["toy"].row)
        assert same_values(later, beside)


def test_shuffled_targets_keep_their_values_and_lose_their_places() -> None:
    data = toy()
    own = pair_target(Model(settings("pair_lex"), 3, 0.25), data)
    moved = pair_target(Model(settings("pair_lex_shuffled"), 3, 0.25), data)
    of_another_seed = pair_target(Model(settings("pair_lex_shuffled"), 4, 0.25), data)
    assert torch.equal(own.sort().values, moved.sort().values)
    assert not torch.equal(own, moved)
    assert not torch.equal(of_another_seed, moved)


def test_targets_of_sentences_are_of_surfaces_or_training_pairs_alone() -> None:
    data = toy()
    hard: dict[str, list[float]] = {text: [] for text in data.task.sentences}
    for a, b, value in zip(data.task.train.a, data.task.train.b, data.train.hard_lex, strict=True):
        hard[a].append(value)
        hard[b].append(value)
    expected = {
        "complexity": surface_complexity(data.task.sentences),
        "complexity_lex": [np.mean(values) if values else 0.0 for values in hard.values()],
        "fixed": np.zeros(len(hard)),
    }
    for form, values in expected.items():
        np.testing.assert_allclose(sentence_target(Model(settings(form), 0, 0.25), data), values, atol=1e-6)
    assert not all(map(any, hard.values()))  # those of evaluation pairs


def test_frozen_vectors_of_another_width_are_projected_orthonormally() -> None:
    """P by its unit rows and by sums of two of them, which tell how long they were: PᵀP is a multiple of I."""
    each = np.eye(WIDTH)
    rows = frozen_at_width(np.concatenate([each, each[:1] + each]).astype(np.float32), 16)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    found = [rows[0]]
    for row, both in zip(rows[1:WIDTH], rows[WIDTH + 1 :], strict=True):
        (of_first, of_row), *_ = np.linalg.lstsq(np.stack([rows[0], row], 1), both, rcond=None)
        found.append(row * of_row / of_first)
    gram = np.stack(found, 1) @ np.stack(found)
    np.testing.assert_allclose(gram / gram.trace() * 16, np.eye(16), atol=1e-3)
    assert frozen_at_width(each, WIDTH) is each


def test_targets_of_pairs_are_the_label_or_the_judges_doubt() -> None:
    data = toy()
    side = data.train
    expected = {
        settings("pair_label_target"): 1 - side.gold,
        settings("pair_judge"): np.abs(side.judged - (side.anchor + 1) / 2),
        settings("pair_judge", ce_map="identity"): np.abs(side.judged - side.anchor),
    }
    for arm, values in expected.items():
        np.testing.assert_allclose(pair_target(Model(arm, 3, 0.25), data).numpy(), values, atol=1e-6)


def test_without_a_judge_judged_arms_are_refused_before_training() -> None:
    with pytest.raises(CorpusError, match=r"data\.judge = none"):
        fit_stack([(settings("pair_judge"), 0)], [toy(judged=False)], evaluate=evaluated)


def test_settings_name_every_mistake() -> None:
    with pytest.raises(ValueError, match=r"(?s)form = 'pair_lexx'.*gamma = -1"):
        Settings(form="pair_lexx", gamma=-1)
    with pytest.raises(ValueError, match="matched_to = None"):
        Settings(form="pair_ungated_matched")
    with pytest.raises(ValueError, match="only the form pair_ungated_matched"):
        Settings(form="pair_lex", matched_to="pair_judge")
    with pytest.raises(
        ValueError, match="gamma = 2; accepted with interp_fixed: at most 1, or interp_form: resid"
    ):
        Settings(form="interp_fixed", gamma=2.0)
    for taken in ({"gamma": 1.0}, {"gamma": 2.0, "interp_form": "residual"}, {"gamma": 2.0, "form": "fixed"}):
        assert Settings(**{"form": "interp_fixed", **taken}).train  # type: ignore[arg-type]


def test_identity_start_needs_the_embedding_width() -> None:
    with pytest.raises(ValueError, match="identity needs d_h = 32"):
        fit_stack([(settings("pair_lex", init="identity"), 0)], [toy()], evaluate=evaluated)


def test_a_member_that_diverges_says_where_and_leaves_the_others_alone() -> None:
    models = [
        Model(settings("pair_lex"), 0, 0.25),
        Model(settings("pair_ungated"), 0, math.nan),
        Model(settings("pair_lex"), 1, 0.25),
    ]
    first, wild, last = train(models, toy(), device="cpu", advance=lambda steps: None)
    alone = train(models[:1], toy(), device="cpu", advance=lambda steps: None)[0]
    assert wild.broken.startswith("loss is not finite at step ")
    assert "mse = " in wild.broken
    assert (first.broken, last.broken) == ("", "")
    assert torch.equal(first.row, alone.row)


def test_what_diverged_has_no_scores_and_the_rest_has_all() -> None:
    requests = [
        (settings("pair_lex"), 0),
        (settings("pair_ungated", learning_rate=1e38), 0),
        (settings("pair_lex"), 1),
    ]
    first, wild, last = fit_stack(requests, [toy()], evaluate=evaluated)
    assert not wild.scores
    assert "pair_ungated: loss is not finite at step" in wild.broken[0]
    assert first.scores
    assert last.scores
    assert same_values(first, fit_stack(requests[:1], [toy()], evaluate=evaluated)[0])


def test_selection_looks_at_training_pairs_alone() -> None:
    data = replace(toy(n=300), origin={"judge": "made up"})
    chosen = for_selection(data)
    assert chosen.origin == {"judge": "made up", **chosen.task.fingerprint()}
    names = set(data.task.train.ids)
    assert set(chosen.task.train.ids) | set(chosen.task.evaluation.ids) == names
    assert not set(chosen.task.train.ids) & set(chosen.task.evaluation.ids)
    assert len(chosen.task.evaluation) == pytest.approx(100, abs=30)
    place = [data.task.train.ids.index(name) for name in chosen.task.evaluation.ids]
    np.testing.assert_allclose(chosen.evaluation.anchor, data.train.anchor[place], atol=1e-6)
    assert np.array_equal(chosen.evaluation.judged, data.train.judged[place])
    kept = [data.task.train.ids.index(name) for name in chosen.task.train.ids]
    assert np.array_equal(chosen.train.judged, data.train.judged[kept])


def test_isolation_trains_the_control_beside_its_treated_arm() -> None:
    """The same two arms asked for by name give the same difference."""
    data = [for_selection(toy(n=300))]
    treated, control = settings("pair_lex"), settings("pair_lex_shuffled")
    (alone,) = fit_stack([(treated, 1)], data, evaluate=evaluated, isolate=True, retrieval=False)
    named = fit_stack([(treated, 1), (control, 1), (settings("baseline"), None)], data, evaluate=evaluated)
    spearmen = [by_metric(result)["dev/toy/spearman"] for result in named]
    assert by_metric(alone)["dev/toy/isolated_gain"] == pytest.approx(spearmen[0] - max(spearmen[1:]))
    assert "dev/toy/mrr" not in by_metric(alone)
    assert isolating(settings("pair_gate_free")) is None


def test_defining_keeps_what_can_change_a_form() -> None:
    assert (
        defining(settings("baseline", steps=7))
        == defining(settings("baseline", gamma=2.0))
        == {"form": "baseline"}
    )
    assert defining(settings("pair_lex", ce_map="identity")) == defining(settings("pair_lex"))
    assert defining(settings("pair_judge", ce_map="identity")) != defining(settings("pair_judge"))
    assert defining(settings("fixed", gamma=2.0)) == defining(settings("fixed"))
    assert defining(settings("interp_fixed", gamma=0.5)) != defining(settings("interp_fixed"))


def test_sizes_that_a_form_has_anyway_make_no_other_arm() -> None:
    """They are those that null stands for, of pairs or of sentences, and the other kind's are others."""
    pair, sentence = {"d_h": 128, "m": 64}, {"d_h": "full", "m": 128}
    for form, own, others in (("pair_lex", pair, sentence), ("h_only", sentence, pair)):
        plain = Settings(form=form)
        assert (defining(plain)["d_h"], defining(plain)["m"]) == (None, None)
        for name in own:
            assert defining(replace(plain, **{name: own[name]})) == defining(plain)
            assert defining(replace(plain, **{name: others[name]})) != defining(plain)
        assert plain.sizes(384) == replace(plain, **own).sizes(384)


def test_a_distilled_arm_is_an_ungated_one_whose_gold_is_the_judge() -> None:
    data = toy()
    judged = replace(data, train=replace(data.train, gold=data.train.judgement()))
    distilled = fitted(["pair_distilled"], [0, 1], data)
    ungated = fitted(["pair_ungated"], [0, 1], judged)
    assert torch.equal(distilled["pair_distilled", 1], ungated["pair_ungated", 1])
    assert not torch.equal(fitted(["pair_ungated"], [1], data)["pair_ungated", 1], ungated["pair_ungated", 1])
    with pytest.raises(CorpusError, match="needs a judge's scores"):
        fitted(["pair_distilled"], [0], toy(judged=False))
    assert "ce_map" not in defining(settings("pair_distilled"))
    assert "ce_map" in defining(settings("pair_ungated_matched"))
