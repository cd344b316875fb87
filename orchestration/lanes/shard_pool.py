"""Work in shards on Ray Data: a pool of actors, each writing one shard after another to where it is wanted.

Nothing flows back but how far each shard is: it is whole on disk before it counts. An actor that dies is replaced
and its shard done again, so that a kill loses what that actor was at, and nothing that was written.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from corpora.store.errors import CorpusError
from orchestration.lanes.cluster import RunShare, connected, cores, go_to, runs_that_fit, started_in
from orchestration.study.errors import StudyError

if TYPE_CHECKING:
    from orchestration.families.contract import Write

LOOK_SECONDS = 10.0  # between two looks at how far all shards are


class _Heard:
    """An actor that hears from all workers how many units of their shards are done."""

    def __init__(self) -> None:
        self.of_shard: dict[int, int] = {}

    def hear(self, shard: int, done: int) -> None:
        self.of_shard[shard] = done

    def done(self) -> int:
        return sum(self.of_shard.values())


class _Worker:
    """An actor of the pool: what is costly to open is opened once. Reasons for people travel as data, whole."""

    def __init__(self, open_writer: Callable[[], Write], heard: Any, folder: str | None) -> None:
        self.open_writer, self.heard, self.folder = open_writer, heard, folder
        self.write: Write | None = None

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        reason = ""
        try:
            go_to(self.folder)
            self.write = self.write or self.open_writer()
            for shard in batch["shard"].tolist():
                self.write(shard, partial(self.heard.hear.remote, shard))
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
    on_moved: Callable[[int], None] = lambda done: None,
) -> None:
    """Have every shard written, by at most `workers` actors of this share at a time; None for as many as fit.

    open_writer runs in each actor. on_moved: called now and then, in a thread of its own, with the units that are
    done of all shards. StudyError when Ray has no room for one, or a shard cannot be written for a reason that is
    meant for people. KeyboardInterrupt on SIGTERM too.
    """
    if not shards:
        return
    # Ray warns that the arguments of a restarted actor might be lost; the data set holds them until it ends.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    with connected(cores()), _sigterm_as_ctrl_c():
        import ray
        from ray.data import ActorPoolStrategy, DataContext

        room = runs_that_fit(share)
        if room < 1:
            raise StudyError(
                f"a worker needs {share.words}, and Ray has no such room\n"
                "  accepted: fewer `--gpus`, or a cluster with as much"
            )
        context = DataContext.get_current()
        context.enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        # One shard at a time each: a second would wait at an actor that is at work while another is starting.
        pool = ActorPoolStrategy(size=min(room, workers or room, len(shards)), max_tasks_in_flight_per_actor=1)
        resources: dict[str, Any] = {"num_cpus": share.cpus} | ({"num_gpus": share.gpus} if share.gpus else {})
        rows = ray.data.from_items([{"shard": shard} for shard in shards], override_num_blocks=len(shards))
        heard = ray.remote(num_cpus=0)(_Heard).remote()
        done = rows.map_batches(
            _Worker,
            fn_constructor_args=(open_writer, heard, started_in()),
            batch_size=1,
            compute=pool,
            **resources,
        )
        with _looking(heard, on_moved):
            for row in done.iter_rows():
                if row["reason"]:
                    raise StudyError(str(row["reason"]))
                on_written(int(row["shard"]))


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    """Within the block SIGTERM raises KeyboardInterrupt; the handler that Ray sets ends the process wordlessly."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _looking(heard: Any, on_moved: Callable[[int], None]) -> Iterator[None]:
    """Look now and then at how far all shards are, until the block ends."""
    import ray

    over = threading.Event()

    def look() -> None:
        before = 0
        while not over.wait(LOOK_SECONDS):
            with suppress(ray.exceptions.RayError):  # an actor that was lost is no reason to end the work
                done = ray.get(heard.done.remote(), timeout=LOOK_SECONDS)
                if done != before:
                    on_moved(done)
                before = done

    looks = threading.Thread(target=look, daemon=True)
    looks.start()
    try:
        yield
    finally:
        over.set()
        looks.join()
