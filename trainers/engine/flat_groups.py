"""An optimiser's groups in which one parameter may stand for many (`trainers.engine.flat_parameters`).

Its state is recorded and read parameter by parameter all the same, so that a checkpoint goes on wherever it is
taken to: a run may begin on a card, where parameters are joined, and end on a processor, where they are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from trainers.engine.flat_parameters import FlatParameters
from trainers.engine.optimisation import parameters_of

STEP = "step"  # what AdamW keeps of a parameter as one number; all else has the parameter's shape


class FlatGroups:
    """Groups as they were, and `held`, as an optimiser gets them. flats: what `join` has made."""

    def __init__(self, groups: Sequence[dict[str, Any]]) -> None:
        self._groups = groups
        self.flats = list[FlatParameters]()
        self.held = [dict(group) for group in groups]

    def join(self, parameters: Iterable[nn.Parameter]) -> None:
        """Let one parameter of each group of `held` stand for those of these that are in it."""
        chosen = {id(parameter) for parameter in parameters}
        for group in self.held:
            joined = [parameter for parameter in group["params"] if id(parameter) in chosen]
            if joined:
                self.flats.append(FlatParameters(joined))
                others = [parameter for parameter in group["params"] if id(parameter) not in chosen]
                group["params"] = [*others, self.flats[-1].whole]

    def separate(self) -> None:
        for flat in self.flats:
            flat.separate()

    def record_apart(self, optimizer: Optimizer) -> None:
        """Have the optimiser of `held` record and read its state as that of the groups as they were."""
        if self.flats:
            optimizer.register_state_dict_post_hook(lambda _, recorded: self._apart(recorded))
            optimizer.register_load_state_dict_pre_hook(lambda _, recorded: self._joined(recorded))

    def _apart(self, recorded: Mapping[str, Any]) -> dict[str, Any]:
        state = _by_parameter(recorded, self.held)
        for flat in self.flats:
            whole = state.pop(id(flat.whole), {})
            for place, part in enumerate(flat.parts if whole else ()):
                state[id(part)] = {
                    name: value.clone() if name == STEP else flat.view(value, place)
                    for name, value in whole.items()
                }
        return _numbered(recorded, state, self._groups)

    def _joined(self, recorded: Mapping[str, Any]) -> dict[str, Any]:
        state = _by_parameter(recorded, self._groups)
        for flat in self.flats:
            each = [state.pop(id(part)) for part in flat.parts if id(part) in state]
            if each:
                state[id(flat.whole)] = {
                    name: first if name == STEP else flat.joined([own[name] for own in each])
                    for name, first in each[0].items()
                }
        return _numbered(recorded, state, self.held)


def _by_parameter(
    recorded: Mapping[str, Any], groups: Sequence[Mapping[str, Any]]
) -> dict[int, dict[str, Tensor]]:
    """A recorded optimiser's state by the id of each parameter of its groups."""
    state = recorded["state"]
    return {id(one): state[at] for at, one in enumerate(parameters_of(groups)) if at in state}


def _numbered(
    recorded: Mapping[str, Any], state: Mapping[int, Any], groups: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """What an optimiser with these groups would have recorded of this state, by the id of each parameter."""
    number = count()
    return {
        **recorded,
        "state": {at: state[id(one)] for at, one in enumerate(parameters_of(groups)) if id(one) in state},
        "param_groups": [
            {**settings, "params": [next(number) for _ in group["params"]]}
            for settings, group in zip(recorded["param_groups"], groups, strict=True)
        ],
    }
