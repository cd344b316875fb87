"""RLRD's policies: golden numbers of a Beta density, GAE and PPO's loss, and what learning does to bids."""

from __future__ import annotations

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
    first = {name: value.clone() for name, value in mixture.policies.state_dict().items()}
    shares = [bid(mixture, step) for step in range(5)]
    assert all(torch.equal(value, first[name]) for name, value in mixture.policies.state_dict().items())
    assert all(0.3 < share < 0.7 for share in shares)
    bid(mixture, 5)
    moved = [not torch.equal(value, first[name]) for name, value in mixture.policies.state_dict().items()]
    assert any(moved)
    assert int(mixture.held) == 0
    assert not any(parameter.requires_grad for parameter in mixture.parameters())


def test_as_coded_a_bid_is_judged_by_its_own_state_and_learnt_with_the_one_before(monkeypatch: pytest.MonkeyPatch):
    mixture, seen = Mixture(replace(SETTINGS, conform="authors"), 8, 0), []
    monkeypatch.setattr("trainers.san.mixture.improve", lambda policy, critic, one, epochs: seen.append(one))
    for step in range(6):
        bid(mixture, step)
    lists, losses = torch.ones(5, 2, 4, 4), torch.ones(5, 1, 2)
    views = torch.ones(5, 2, 4, 8) * torch.arange(1.0, 6)[:, None, None, None]  # of steps 1 to 5
    values = mixture.critics[0](State(views, lists, losses))
    assert len(values.unique()) == 5
    for one in seen:
        assert torch.allclose(one.returns - one.advantage, values, atol=1e-6)
        assert torch.equal(one.states.views, views - 1)


def test_a_mixture_that_is_put_back_bids_as_if_it_had_never_stopped():
    one, other = Mixture(SETTINGS, 8, 0), Mixture(SETTINGS, 8, 9)
    for step in range(4):
        bid(one, step)
    other.load_state_dict(one.state_dict())
    other.seed = 0
    ours, theirs = ([bid(mixture, step) for step in range(4, 9)] for mixture in (one, other))
    assert ours == theirs
    assert not np.allclose(ours, [bid(Mixture(SETTINGS, 8, 1), step) for step in range(4, 9)])
