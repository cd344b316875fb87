"""MLflow's pages of a study: the columns of its table, and links to comparisons.

A view is a tag of the experiment, in the form of MLflow's shared views, and is opened by its name.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from urllib.parse import quote

VIEW = "semray"
VIEW_TAG = f"mlflow.sharedViewState.{VIEW}"
PLACE = "semray.place"  # sort key of the table: the study, its comparisons, its runs
COLUMNS = {"verdict": 200, "difference": 190, "arm": 110, "seed": 70}  # tag -> width in pixels
METRIC_WIDTH = 130
MOST_METRICS = 8  # columns that fit on a screen
MOST_COMPARED = 60  # runs that fit into one address


def view(metrics: Sequence[str]) -> str:
    """MLflow's view of a study as JSON: the table sorted by PLACE, with verdicts and these metrics as columns."""
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
    """The address of an experiment's table, relative to the server's first page."""
    page = f"#/experiments/{number}"
    return f"{page}/runs?viewStateShareKey={VIEW}&compareRunsMode=TABLE" if viewed else page


def compared(number: str, metric: str, runs: Sequence[str]) -> str:
    """The address of the page that compares a metric of several runs, one bar each."""
    query = {
        "runs": list(runs),
        "metric": metric,
        "experiments": [number],
        "plot_metric_keys": [metric],
        "plot_layout": {},
        "deselected_curves": [],
        "last_linear_y_axis_range": [],
    }
    words = "&".join(f"{name}={quote(json.dumps(value, separators=(',', ':')))}" for name, value in query.items())
    return f"#/metric?{words}&x_axis=step&y_axis_scale=linear&line_smoothness=1&show_point=true"


def picture(run: str, name: str) -> str:
    """The address of a picture among a run's artifacts."""
    return f"get-artifact?path={quote(name)}&run_uuid={run}"
