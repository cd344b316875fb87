"""The weight of each of two teachers in a step of RLRD, from bids of policies that learn alongside the student.

The module's state holds all that a resumed run needs: policies, critics, and the steps since the last update.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn

from trainers.engine.streams import numpy_stream, torch_stream
from trainers.san.policies import (
    Critic,
    Policy,
    State,
    Transitions,
    advantages,
    advantages_as_coded,
    first_weight,
    improve,
    reinforce,
)

if TYPE_CHECKING:
    from trainers.engine.world import World
    from trainers.san.settings import Settings

MOMENTUM = 0.9  # of the running mean of rewards, the baseline of REINFORCE


class Mixture(nn.Module):
    """Policies and critics of two teachers, and a memory of the last steps, at most `rl_every`.

        w = mixture.weight(views, lists, losses, step, world)       # of the first teacher
        mixture.learn(-loss / 2)

    Its parameters are in neither the graph nor the optimiser groups of the student.
    """

    bids: Tensor
    chances: Tensor
    rewards: Tensor
    views: Tensor
    lists: Tensor
    losses: Tensor
    held: Tensor
    baseline: Tensor

    def __init__(self, settings: Settings, width: int, seed: int) -> None:
        super().__init__()
        self.settings, self.seed = settings, seed
        size, steps = settings.batch_size, settings.rl_every
        self.policies, self.critics = (
            nn.ModuleList(kind(width, size, torch_stream(seed, "init", kind.__name__, which)) for which in (1, 2))
            for kind in (Policy, Critic)
        )
        self.requires_grad_(False)
        shapes = {
            "bids": (2,), "chances": (2,), "rewards": (), "views": (2, size, width), "lists": (2, size, size),
            "losses": (1, 2),
        }  # fmt: skip
        for name, shape in shapes.items():
            self.register_buffer(name, torch.zeros(steps, *shape))
        self.register_buffer("held", torch.zeros((), dtype=torch.long))
        self.register_buffer("baseline", torch.full((), torch.nan))
        self._place = 0  # of this step in the memory

    @torch.no_grad()
    def weight(self, views: Tensor, lists: Tensor, losses: Tensor, step: int, world: World) -> Tensor:
        """Draw both bids and remember them with their state. Returns the first teacher's weight, a scalar.

        views (2, B, H), lists (2, B, B) of teachers 1 and 2, losses (1, 2): of the whole batch, the same on every
        worker; the first worker's bids are used by all. The CPU draws the bids, and waits for the device once, for
        their distributions.
        """
        now = self.held[None]
        self.views[now], self.lists[now], self.losses[now] = views[None], lists[None], losses[None]
        betas = [policy(self._states(which, now)) for which, policy in enumerate(self.policies)]
        on_device = [side for beta in betas for side in (beta.concentration1, beta.concentration0)]
        *concentrations, held = torch.cat([*on_device, now]).tolist()
        place = self._place = int(held)
        for which, beta in enumerate(betas):
            stream = numpy_stream(self.seed, "bid", which, step)
            bid = stream.beta(*concentrations[2 * which : 2 * which + 2])
            self.bids[place, which] = min(max(bid, 1e-6), 1 - 1e-6)
            self.chances[place, which] = beta.log_prob(self.bids[place, which])
        if world.size > 1:
            dist.broadcast(self.bids, src=0)
        return first_weight(self.bids[place])

    def learn(self, reward: Tensor) -> None:
        """Remember the step's reward; after every `rl_every` steps, update the policies and empty the memory.

        Call it once a step, after `weight`.
        """
        self.rewards[self._place] = reward
        self.held += 1
        if self._place + 1 == self.settings.rl_every:
            self._update()
            self.held.zero_()

    def _states(self, which: int, steps: slice | Tensor) -> State:
        lists = self.lists[steps]
        return State(self.views[steps], lists if which == 0 else lists.flip(1), self.losses[steps])

    def _update(self) -> None:
        """Update policies and critics from the memory.

        With conform `authors`, as in their code, bid and reward are paired with the state of the step before,
        which leaves out the first, and all values are critic 1's, of the state in which the bid was made.
        """
        as_coded = self.settings.conform == "authors"
        states, steps = (slice(0, -1), slice(1, None)) if as_coded else (slice(None), slice(None))
        rewards, surplus = self.rewards[steps], self._above_baseline()[steps]
        with torch.no_grad():
            both = [self.critics[0 if as_coded else which](self._states(which, steps)) for which in (0, 1)]
        self.requires_grad_(True)
        with torch.enable_grad():
            for which, values in enumerate(both):
                policy, critic = cast("Policy", self.policies[which]), cast("Critic", self.critics[which])
                state, bids = self._states(which, states), self.bids[steps, which]
                if self.settings.rl_update == "reinforce":
                    reinforce(policy, state, bids, surplus)
                    continue
                advantage = (advantages_as_coded if as_coded else advantages)(rewards, values)
                improve(
                    policy,
                    critic,
                    Transitions(state, bids, self.chances[steps, which], advantage, advantage + values),
                    epochs=self.settings.rl_epochs,
                )
        self.requires_grad_(False)

    def _above_baseline(self) -> Tensor:
        """Each reward minus the running mean of earlier rewards, which is then updated. -> (T,)."""
        surplus = torch.zeros_like(self.rewards)
        for step, reward in enumerate(self.rewards):
            mean = torch.where(self.baseline.isnan(), reward, self.baseline)
            surplus[step] = reward - mean
            self.baseline.copy_(MOMENTUM * mean + (1 - MOMENTUM) * reward)
        return surplus
