"""A lane in this process, without Ray."""

from __future__ import annotations

from typing import Any

from orchestration.lanes.lane import Lane, LaneKind
from orchestration.study.run import Body


def lane_here(body: Body, url: str, **other: Any) -> Lane:
    """On a CPU, by one thread; models are kept and no checkpoint is saved, unless told otherwise."""
    return Lane(url, kind_here(body, **other))


def kind_here(body: Body, **other: Any) -> LaneKind:
    """What such lanes have in common."""
    usual = {"warm": (), "gpus": 0, "threads": 1, "memory": 0, "checkpoint_every": 0, "models": True}
    return LaneKind(body=body, **{**usual, **other})
