"""RLRD's policies, one per teacher, which bid for their teacher's weight, with critics and updates by rewards.

Source: SAN's code, as RLRD has published none. Sizes, the Beta distribution and the + 50 are from that code.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import Beta

HIDDEN, CONCENTRATION = 128, 50.0
EDGE = 1e-5  # the critic's sigmoid stays this far from 0 and 1
GAMMA, LAMBDA, CLIP = 0.99, 0.95, 0.2


class State(NamedTuple):
    """What a policy sees of a step; more leading dimensions are allowed.

    views (2, B, H): first and second views. lists (2, B, B): similarity lists of its own teacher, then of the
    other. losses (1, 2): the student's ListMLE against teachers 1 and 2.
    """

    views: Tensor
    lists: Tensor
    losses: Tensor


class FirstLayer(nn.Module):
    """The first layer of policy and critic: x1 W1 + x2 W2 + x3 W3 + b. State -> (..., 2, B, 128)."""

    def __init__(self, width: int, batch: int, generator: torch.Generator) -> None:
        super().__init__()
        self.views = _uniform(width, HIDDEN, generator)
        self.lists = _uniform(batch, HIDDEN, generator)
        self.losses = _uniform(2, HIDDEN, generator)
        self.bias = _uniform(1, HIDDEN, generator)

    def forward(self, state: State) -> Tensor:
        per_view = state.views @ self.views + state.lists @ self.lists
        return per_view + (state.losses @ self.losses + self.bias)[..., None, :, :]


class Policy(nn.Module):
    """State -> the Beta distribution (...,) from which a teacher's bid is drawn."""

    def __init__(self, width: int, batch: int, generator: torch.Generator) -> None:
        super().__init__()
        self.first = FirstLayer(width, batch, generator)
        self.ends = _uniform(HIDDEN, 2, generator)

    def forward(self, state: State) -> Beta:
        hidden = F.relu(self.first(state))
        parameters = F.softplus(hidden @ self.ends).flatten(-3, -2).mean(-2) + CONCENTRATION  # (..., 2)
        return Beta(parameters[..., 0], parameters[..., 1], validate_args=False)


class Critic(nn.Module):
    """State -> the value, which is the expected discounted reward from there on, (...,)."""

    def __init__(self, width: int, batch: int, generator: torch.Generator) -> None:
        super().__init__()
        self.first = FirstLayer(width, batch, generator)
        self.rest = nn.Sequential(
            nn.Linear(HIDDEN, 256),
            nn.LayerNorm(256),
            nn.ReLU(),
            nn.Linear(256, 128),
            nn.LayerNorm(128),
            nn.ReLU(),
            nn.Linear(128, 1),
        )
        for layer in self.rest:
            if isinstance(layer, nn.Linear):
                bound = layer.in_features**-0.5
                with torch.no_grad():
                    layer.weight.copy_((2 * torch.rand(layer.weight.shape, generator=generator) - 1) * bound)
                    layer.bias.zero_()

    def forward(self, state: State) -> Tensor:
        return self.rest(self.first(state).sigmoid().clamp(EDGE, 1 - EDGE))[..., 0].mean((-2, -1))


def first_weight(bids: Tensor) -> Tensor:
    """The first teacher's weight: A_1 / (A_1 + A_2). (2,) -> scalar."""
    return bids[0] / bids.sum()


def advantages(rewards: Tensor, values: Tensor) -> Tensor:
    """Generalised advantage estimates; the value after the last step is 0. (T,), (T,) -> (T,).

    δ_t = r_t + γ v_(t+1) - v_t;  A_t = δ_t + γ λ A_(t+1);  γ = .99, λ = .95
    """
    estimates, advantage, next_value = [], rewards.new_zeros(()), rewards.new_zeros(())
    for reward, value in zip(rewards.flip(0), values.flip(0), strict=True):
        advantage = reward + GAMMA * next_value - value + GAMMA * LAMBDA * advantage
        estimates.append(advantage)
        next_value = value
    return torch.stack(estimates[::-1])


def advantages_as_coded(rewards: Tensor, values: Tensor) -> Tensor:
    """The code's advantages: Σ_{t ≤ k < T-1} γ (r_k - γ v_(k+1) v_k), with a product instead of a difference."""
    steps = GAMMA * (rewards[:-1] - GAMMA * values[1:] * values[:-1])
    return torch.cat([steps.flip(0).cumsum(0).flip(0), rewards.new_zeros(1)])


def clipped_surrogate(new: Tensor, old: Tensor, advantage: Tensor) -> Tensor:
    """PPO's loss: -mean of min(r A, clip(r, .8, 1.2) A), r = exp(new - old). (T,) log-probabilities -> scalar."""
    ratio = (new - old).exp()
    return -torch.minimum(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage).mean()


class Transitions(NamedTuple):
    """T transitions of one policy; all but the states (T,). log_chances: of the bids when they were drawn."""

    states: State
    bids: Tensor
    log_chances: Tensor
    advantage: Tensor
    returns: Tensor


def improve(policy: Policy, critic: Critic, transitions: Transitions, *, epochs: int) -> None:
    """PPO on all transitions at once, by a new Adam with rates of 1e-4 for the policy and 3e-4 for the critic.

    The loss is the clipped surrogate plus ½ mean (return - value)². Departure: the code keeps the critic's moments
    between updates.
    """
    optimizer = torch.optim.Adam(
        [{"params": policy.parameters(), "lr": 1e-4}, {"params": critic.parameters(), "lr": 3e-4}]
    )
    for _ in range(epochs):
        log_chances = policy(transitions.states).log_prob(transitions.bids)
        value_loss = (transitions.returns - critic(transitions.states)).square().mean() / 2
        surrogate = clipped_surrogate(log_chances, transitions.log_chances, transitions.advantage)
        _step(optimizer, surrogate + value_loss)


def reinforce(policy: Policy, states: State, bids: Tensor, surplus: Tensor) -> None:
    """One REINFORCE step, with loss -mean of (r_t - b) log π(A_t | s_t). surplus (T,): r_t - b."""
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-4)
    _step(optimizer, -(surplus * policy(states).log_prob(bids)).mean())


def _step(optimizer: torch.optim.Adam, loss: Tensor) -> None:
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()  # or these gradients would count when the student's are clipped


def _uniform(rows: int, columns: int, generator: torch.Generator) -> nn.Parameter:
    return nn.Parameter(torch.rand(rows, columns, generator=generator) - 0.5)
