"""What a trial of Ray Tune does. It runs in a process of its own, which so imports neither Optuna nor the rest."""

from __future__ import annotations

from typing import Any


def ask_for_seeds(config: dict[str, Any], *, exchange: Any, seeds: int) -> None:
    """Ask for one seed after the other, until the point has all, is given up, or the search ends."""
    import ray
    from ray import tune

    for place in range(seeds):
        report = ray.get(exchange.ask.remote(config["number"], place))
        if report is None or objective_name(0) not in report:
            return
        tune.report(report)
        if report["given_up"]:
            return


def objective_name(index: int) -> str:
    """The name of an objective in a report."""
    return f"objective{index}"
