"""MLflow's pages of a study, as a person opens them: the columns of its table, and links that open on a claim.

A view is kept as a tag of the experiment, in the form in which MLflow shares one, and is opened by its name.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from urllib.parse import quote

VIEW = "semray"
VIEW_TAG = f"mlflow.sharedViewState.{VIEW}"
PLACE = "semray.place"  # where a run stands in the table: the study, its comparisons, its runs
COLUMNS = {"verdict": 200, "difference": 190, "arm": 110, "seed": 70}  # tags, left of the metrics: width in pixels
METRIC_WIDTH = 130
MOST_METRICS = 8  # columns that a screen has room for
MOST_COMPARED = 60  # runs that one address can name


def view(metrics: Sequence[str]) -> str:
    """What MLflow is to show of a study: the table in its order, its columns the verdicts and these metrics."""
    widths = {f"tags.`{name}`": width for name, width in COLUMNS.items()}
    widths |= {f"metrics.`{name}`": METRIC_WIDTH for name in metrics[:MOST_METRICS]}
    shown = {
        "orderByKey": f"tags.`{PLACE}`",
        "orderByAsc": True,
        "selectedColumns": list(widths),
        "columnOrder": list(widths),
        "columnWidths": widths,
        "runListHidden": False,
    }
    return json.dumps(shown, separators=(",", ":"))


def experiment(number: str, *, viewed: bool = True) -> str:
    """The table of an experiment, as an address seen from the server's first page."""
    page = f"#/experiments/{number}"
    return f"{page}/runs?viewStateShareKey={VIEW}&compareRunsMode=TABLE" if viewed else page


def compared(number: str, metric: str, runs: Sequence[str]) -> str:
    """The page that draws a metric of several runs side by side, a bar each."""
    asked = {
        "runs": list(runs),
        "metric": metric,
        "experiments": [number],
        "plot_metric_keys": [metric],
        "plot_layout": {},
        "deselected_curves": [],
        "last_linear_y_axis_range": [],
    }
    words = "&".join(f"{name}={quote(json.dumps(value, separators=(',', ':')))}" for name, value in asked.items())
    return f"#/metric?{words}&x_axis=step&y_axis_scale=linear&line_smoothness=1&show_point=true"


def picture(run: str, name: str) -> str:
    """A picture among a run's artifacts."""
    return f"get-artifact?path={quote(name)}&run_uuid={run}"
