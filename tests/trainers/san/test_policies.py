"""RLRD's policies: golden numbers of a Beta density, GAE and PPO's loss, and what learning does to bids."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.distributions import Beta

from trainers.engine.world import World
from trainers.san.mixture import Mixture
from trainers.san.policies import (
    Critic,
    Policy,
    State,
    Transitions,
    advantages,
    advantages_as_coded,
    clipped_surrogate,
    first_weight,
    improve,
    reinforce,
)
from trainers.san.settings import Settings

SETTINGS = Settings(host="rlrd", teachers=("a@mean", "b@cls"), batch_size=4, rl_every=6)


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_density_of_a_bid_and_the_share_it_buys():
    assert Beta(tensor(51.2), tensor(50.4)).log_prob(tensor(0.53)).item() == pytest.approx(1.947543226, abs=1e-6)
    assert first_weight(tensor(0.53, 0.47)).item() == pytest.approx(0.53)


def test_advantages():
    rewards, values = tensor(-1, -0.8, -0.9), tensor(-0.5, -0.6, -0.4)
    assert advantages(rewards, values).tolist() == pytest.approx([-2.096808125, -1.06625, -0.5], abs=1e-6)
    assert advantages_as_coded(rewards, values).tolist() == pytest.approx([-2.311254, -1.027224, 0], abs=1e-6)


def test_clipped_surrogate():
    loss = clipped_surrogate(tensor(-0.1, 0.2, 0), tensor(0, 0, 0.3), tensor(1, -1, 0.5))
    assert loss.item() == pytest.approx(-0.017947923, abs=1e-6)


def test_what_went_far_enough_is_pushed_no_further():
    """1.5 times as likely counts as 1.2 for a gain of 2, half as likely as .8 for a loss of 1, neither with a gradient;
    half as likely for a gain of 1 counts in full: -(2.4 - .8 + .5) / 3."""
    new = tensor(1.5, 0.5, 0.5).log().requires_grad_()
    loss = clipped_surrogate(new, tensor(0, 0, 0), tensor(2, -1, 1))
    loss.backward()
    assert loss.item() == pytest.approx(-0.7)
    assert new.grad is not None
    assert new.grad.tolist() == pytest.approx([0, 0, -0.5 / 3])


def state(batch: int = 4, width: int = 8, steps: int = 6) -> State:
    generator = torch.Generator().manual_seed(0)
    views, lists, losses = (
        torch.randn(steps, *shape, generator=generator) for shape in ((2, batch, width), (2, batch, batch), (1, 2))
    )
    return State(views, lists, losses)


def test_bids_start_near_a_half():
    """Both ends of the Beta are above 50: its sd is at most √(.25 / 101) = .0498."""
    bids = Policy(8, 4, torch.Generator().manual_seed(0))(state())
    assert (bids.concentration1 > 50).all()
    assert (bids.concentration0 > 50).all()
    assert bids.stddev.max() < 0.0498


def test_policy_and_critic_in_plain_numpy():
    """Their weights begin uniform within ±1/2, and those behind a critic's first layer within ±1/√inputs. The + 50
    of a bid and the sigmoid that stays 1e-5 from its ends are of SAN's code; 1e-5 is LayerNorm's too."""
    policy, critic = (kind(8, 4, torch.Generator().manual_seed(5)) for kind in (Policy, Critic))
    seen = state()
    views, lists, losses = (part.double().numpy() for part in seen)

    def first_layer(weights: dict[str, np.ndarray]) -> np.ndarray:
        return (
            views @ weights["first.views"]
            + lists @ weights["first.lists"]
            + (losses @ weights["first.losses"])[:, None]
            + weights["first.bias"]
        )  # (T, 2, B, 128)

    weights = {name: value.double().numpy() for name, value in policy.state_dict().items()}
    for name in ("first.views", "first.lists", "first.losses", "first.bias", "ends"):
        assert -0.5 <= weights[name].min() < -0.45 < 0.45 < weights[name].max() <= 0.5, name
    ends = np.log1p(np.exp(np.maximum(first_layer(weights), 0) @ weights["ends"])).mean((1, 2)) + 50
    bids = policy(seen)
    assert bids.concentration1.tolist() == pytest.approx(ends[:, 0], rel=1e-5)
    assert bids.concentration0.tolist() == pytest.approx(ends[:, 1], rel=1e-5)
    weights = {name: value.double().numpy() for name, value in critic.state_dict().items()}
    x = np.clip(1 / (1 + np.exp(-first_layer(weights))), 1e-5, 1 - 1e-5)
    for linear, norm in ((0, 1), (3, 4), (6, None)):
        weight, bias = weights[f"rest.{linear}.weight"], weights[f"rest.{linear}.bias"]
        assert np.abs(weight).max() == pytest.approx(weight.shape[1] ** -0.5, rel=0.02)
        assert weight.mean() == pytest.approx(0, abs=0.01)
        assert not bias.any()
        x = x @ weight.T + bias
        if norm is not None:
            x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
            x = np.maximum(x, 0)
    assert critic(seen).tolist() == pytest.approx(x[..., 0].mean((1, 2)), rel=1e-4, abs=1e-6)


def test_rates_of_learning():
    """Adam's first step moves a weight by its rate: 1e-4 in policies, 3e-4 in critics, which near the returns."""
    generator, states, bids = torch.Generator().manual_seed(1), state(), torch.linspace(0.4, 0.6, 6)
    policy, critic, alone = Policy(8, 4, generator), Critic(8, 4, generator), Policy(8, 4, generator)
    models = (policy, critic, alone)
    before = [[weights.detach().clone() for weights in model.parameters()] for model in models]
    chances, returns = policy(states).log_prob(bids).detach(), torch.full((6,), -3.0)
    far = (critic(states) - returns).square().mean()
    improve(policy, critic, Transitions(states, bids, chances, torch.tensor([1.0, -1] * 3), returns), epochs=1)
    reinforce(alone, states, bids, torch.tensor([1.0, -1] * 3))
    assert (critic(states) - returns).square().mean() < far
    for model, old, rate in zip(models, before, (1e-4, 3e-4, 1e-4), strict=True):
        moved = [(now - was).abs().max() for now, was in zip(model.parameters(), old, strict=True)]
        assert max(moved).item() == pytest.approx(rate, rel=0.01)
        assert all(
            weights.grad is None for weights in model.parameters()
        )  # none that the student's clip would count


@pytest.mark.parametrize("update", ["ppo", "reinforce"])
@pytest.mark.parametrize("conform", ["paper", "authors"])
def test_from_how_many_steps_policies_learn(update, conform):
    """As coded, from fewer never."""
    settings = replace(SETTINGS, rl_update=update, conform=conform)
    assert _moves(replace(settings, rl_every=settings.fewest_to_learn))
    assert not any(_moves(replace(settings, rl_every=fewer)) for fewer in range(1, settings.fewest_to_learn))


def _moves(settings: Settings) -> bool:
    mixture = Mixture(settings, width=8, seed=0)
    before = [weights.clone() for weights in mixture.policies.parameters()]
    seen = state(steps=6)
    for step in range(6):
        mixture.weight(seen.views[step], seen.lists[step], seen.losses[step], step, World())
        mixture.learn(torch.tensor(-1.0 - step))
    return any((now != was).any() for now, was in zip(mixture.policies.parameters(), before, strict=True))


def test_what_was_rewarded_becomes_more_likely():
    generator = torch.Generator().manual_seed(1)
    states, bids = state(), torch.tensor([0.4, 0.45, 0.5, 0.52, 0.55, 0.6])
    better = torch.tensor([1.0, -1, 1, -1, 1, -1])
    for kind in ("ppo", "reinforce"):
        policy, critic = Policy(8, 4, generator), Critic(8, 4, generator)
        before = policy(states).log_prob(bids).detach()
        if kind == "ppo":
            improve(policy, critic, Transitions(states, bids, before, better, better), epochs=3)
        else:
            reinforce(policy, states, bids, better)
        gained = (better * (policy(states).log_prob(bids) - before)).sum()
        assert gained > 0, kind


def bid(mixture: Mixture, step: int) -> float:
    rows = torch.ones(2, 4, 8) * step
    share = mixture.weight(rows, torch.ones(2, 4, 4), torch.ones(1, 2), step, World())
    mixture.learn(torch.tensor(-1.0 - step))
    return share.item()


@pytest.mark.parametrize("changes", [{}, {"rl_update": "reinforce"}, {"conform": "authors"}])
def test_policies_move_after_every_sixth_step_and_forget(changes):
    torch.manual_seed(3)
    mixture = Mixture(replace(SETTINGS, **changes), 8, 0)
    assert not any(parameter.requires_grad for parameter in mixture.parameters())
    first = {name: value.clone() for name, value in mixture.policies.state_dict().items()}
    shares = [bid(mixture, step) for step in range(5)]
    assert all(torch.equal(value, first[name]) for name, value in mixture.policies.state_dict().items())
    assert all(0.3 < share < 0.7 for share in shares)
    bid(mixture, 5)
    moved = [not torch.equal(value, first[name]) for name, value in mixture.policies.state_dict().items()]
    assert any(moved)
    assert int(mixture.held) == 0
    assert not any(parameter.requires_grad for parameter in mixture.parameters())


@pytest.mark.parametrize("update", ["ppo", "reinforce"])
@pytest.mark.parametrize("conform", ["paper", "authors"])
def test_what_policies_learn_from(update, conform):
    """From each step's state, its own teacher's list first, with the bid and the reward of that step: of the step
    after, as coded, where critic 1 values both teachers' bids, by the states in which they were made."""
    mixture, seen, rewards = Mixture(replace(SETTINGS, rl_update=update, conform=conform), 8, 0), state(), []
    learnt = deepcopy(mixture)
    for step in range(6):
        mixture.weight(seen.views[step], seen.lists[step], seen.losses[step], step, World())
        rewards.append(-1.0 - (step % 3))
        mixture.learn(torch.tensor(rewards[-1]))
    running, surplus = rewards[0], []
    for reward in rewards:
        surplus.append(reward - running)
        running = 0.9 * running + 0.1 * reward
    learnt.requires_grad_(True)
    late = 1 if conform == "authors" else 0
    for which, (policy, critic) in enumerate(zip(learnt.policies, learnt.critics, strict=True)):
        own = State(seen.views, seen.lists if which == 0 else seen.lists.flip(1), seen.losses)
        bids, before = mixture.bids[late:, which], State(*(part[: 6 - late] for part in own))
        if update == "reinforce":
            reinforce(policy, before, bids, torch.tensor(surplus[late:]))
            continue
        chances = policy(own).log_prob(mixture.bids[:, which])[late:].detach()
        valued = deepcopy(Mixture(SETTINGS, 8, 0).critics[0]) if late else critic
        values = valued(State(*(part[late:] for part in own))).detach()
        estimate = advantages_as_coded if late else advantages
        advantage = estimate(torch.tensor(rewards[late:]), values)
        improve(policy, critic, Transitions(before, bids, chances, advantage, advantage + values), epochs=3)
    for (name, now), expected in zip(mixture.named_parameters(), learnt.parameters(), strict=True):
        assert torch.allclose(now, expected, atol=1e-6), name


def test_bids_are_drawn_for_each_teacher_and_step_from_its_policy():
    """Independent, each of sd √(.25 / 101); a policy that has learnt to bid high buys its teacher the weight."""
    mixture, seen = Mixture(replace(SETTINGS, rl_every=64), 8, 0), state(steps=1)
    inputs = seen.views[0], seen.lists[0], seen.losses[0]
    for step in range(64):
        mixture.weight(*inputs, step, World())
        if step < 63:  # with the last they would learn, and forget their bids
            mixture.learn(torch.tensor(-1.0))
    bids = mixture.bids.numpy()
    assert bids.std(axis=0) == pytest.approx(0.05, abs=0.012)
    assert abs(np.corrcoef(bids.T)[0, 1]) < 0.3
    for which, sure in ((0, True), (1, False)):
        eager = Mixture(SETTINGS, 8, 0)
        with torch.no_grad():
            eager.policies[which].ends[:, 0] = 10.0
        assert (eager.weight(*inputs, 0, World()) > 0.6) == sure
        assert eager.bids[0, which] > 0.8


def test_teachers_and_seeds_begin_with_weights_of_their_own():
    one, other = Mixture(SETTINGS, 8, 0), Mixture(SETTINGS, 8, 1)
    for kinds in (one.policies, one.critics):
        assert not torch.equal(kinds[0].first.views, kinds[1].first.views)
    assert not torch.equal(one.policies[0].first.views, one.critics[0].first.views)
    assert not torch.equal(one.policies[0].first.views, other.policies[0].first.views)


def test_a_mixture_that_is_put_back_bids_as_if_it_had_never_stopped():
    one, other, of_another_seed = (Mixture(SETTINGS, 8, seed) for seed in (0, 9, 9))
    for step in range(4):
        bid(one, step)
    for put_back in (other, of_another_seed):
        put_back.load_state_dict(one.state_dict())
    other.seed = 0
    ours, theirs, others = (
        [bid(mixture, step) for step in range(4, 9)] for mixture in (one, other, of_another_seed)
    )
    assert ours == theirs
    assert not set(ours) & set(others)
