"""Work in shards on Ray Data: a pool of actors, each writing one shard after another to where it is wanted.

Nothing flows back but numbers: a shard is whole on disk before it counts. An actor that dies is replaced and its
shard done again, so that a kill loses what that actor was at, and nothing that was written.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corpora.store.errors import CorpusError
from orchestration.lanes.cluster import RunShare, connected, cores, go_to, runs_that_fit, started_in
from orchestration.study.errors import StudyError

Write = Callable[[int], None]


class _Worker:
    """An actor of the pool: what is costly to open is opened once. Reasons for people travel as data, whole."""

    def __init__(self, open_writer: Callable[[], Write], folder: str | None) -> None:
        self.open_writer, self.folder = open_writer, folder
        self.write: Write | None = None

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        reason = ""
        try:
            go_to(self.folder)
            self.write = self.write or self.open_writer()
            for shard in batch["shard"].tolist():
                self.write(shard)
        except (CorpusError, StudyError) as error:
            reason = str(error)
        return {**batch, "reason": np.array([reason] * len(batch["shard"]))}


def write_shards(
    shards: Sequence[int],
    open_writer: Callable[[], Write],
    *,
    share: RunShare,
    workers: int | None = None,
    on_written: Callable[[int], None] = lambda shard: None,
) -> None:
    """Have every shard written, by at most `workers` actors of this share at a time; None for as many as fit.

    open_writer runs in each actor. StudyError when Ray has no room for one, or a shard cannot be written for a
    reason that is meant for people.
    """
    if not shards:
        return
    # Ray warns that the arguments of a restarted actor might be lost; the data set holds them until it ends.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    with connected(cores()):
        import ray
        from ray.data import ActorPoolStrategy, DataContext

        room = runs_that_fit(share)
        if room < 1:
            wanted = f"{share.cpus} CPUs" + (f" and {share.gpus:g} GPUs" if share.gpus else "")
            raise StudyError(f"a worker needs {wanted}, and Ray has no such room\n  accepted: a smaller share")
        context = DataContext.get_current()
        context.enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        pool = ActorPoolStrategy(min_size=1, max_size=min(room, workers or room, len(shards)))
        resources: dict[str, Any] = {"num_cpus": share.cpus} | ({"num_gpus": share.gpus} if share.gpus else {})
        rows = ray.data.from_items([{"shard": shard} for shard in shards], override_num_blocks=len(shards))
        done = rows.map_batches(
            _Worker, fn_constructor_args=(open_writer, started_in()), batch_size=1, compute=pool, **resources
        )
        for row in done.iter_rows():
            if row["reason"]:
                raise StudyError(str(row["reason"]))
            on_written(int(row["shard"]))
