"""Finds tasks of the `mteb` package, their data, and loads both.

    task = find("STS17")                  # a task without its data
    loaded(task, path="data")             # from data.path, $SEMRAY_DATA, the cache of `datasets` or the hub

A local folder is a copy of the data set's repository on the hub. Code that comes with a data set is never run.
Source: Muennighoff et al. 2023; Enevoldsen et al. 2025.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpora.store.cache import builds
from corpora.store.errors import CorpusError, kind_and_first_line
from corpora.store.hub import SECONDS, content_of, own_cache
from corpora.store.places import first_of, not_found

if TYPE_CHECKING:
    from mteb.abstasks import AbsTask


def find(name: str) -> AbsTask:
    """A fresh task, by mteb's name for it. LookupError, with what is accepted, if none can run.

    To import mteb takes some five seconds, so only studies that name its tasks do.
    """
    if importlib.util.find_spec("mteb") is None:
        raise LookupError("tasks of the package mteb, which is not installed: pip install 'semray[mteb]'")
    with quiet():
        import mteb

        try:
            task = mteb.get_task(name)
        except KeyError as error:
            near = re.search(r"Did you mean: '([^']+)'", str(error))
            meant = f" (did you mean mteb/{near[1]}?)" if near else ""
            raise LookupError(f"a task of mteb {version('mteb')}{meant}") from None
    if task.metadata.modalities != ["text"]:
        raise LookupError(f"tasks of texts alone; {name} holds {' and '.join(task.metadata.modalities)}")
    return task


def fingerprint(task: AbsTask, path: str | None) -> str:
    """A hash of rows and scoring: mteb's version, its description of the task, each data set's revision or files.

    CorpusError with every place searched, if data are missing. Nothing is fetched.
    """
    descriptions = [part.metadata.model_dump(mode="json", exclude={"tasks"}) for part in (task, *parts(task))]
    data = [_named(part, path) for part in parts(task)]
    return hashlib.sha256(json.dumps([version("mteb"), descriptions, data], sort_keys=True).encode()).hexdigest()


def loaded(task: AbsTask, path: str | None) -> AbsTask:
    """The task with its data in memory. CorpusError for missing data, or data that mteb cannot read."""
    for part in parts(task):
        folder, remarks = _local(part, path)
        dataset: dict[str, Any] = {**part.metadata.dataset}
        dataset.pop("trust_remote_code", None)
        if folder is not None:
            dataset["path"] = str(folder)
        else:
            _check_hub(part, remarks)
        part.metadata = part.metadata.model_copy(update={"dataset": dataset})
        part.data_loaded = False  # the process has one object of each part of an aggregate
        with quiet(), own_cache(folder) if folder else nullcontext():
            try:
                part.load_data()
            except Exception as error:
                where = folder or f"the hub's {part.metadata.dataset['path']}"
                raise CorpusError(
                    f"corpora: mteb cannot read {part.metadata.name} from {where}: {type(error).__name__}: {error}"
                    "\n  accepted: a copy of the data set's repository, its README.md included"
                ) from error
            finally:
                del part.metadata  # so that the class's own holds again
    return task


def parts(task: AbsTask) -> list[AbsTask]:
    """The tasks with data: the parts of an aggregate, or the task itself."""
    return list(task.metadata.tasks) if task.is_aggregate else [task]


def _named(task: AbsTask, path: str | None) -> str:
    folder, remarks = _local(task, path)
    if folder is None:
        _check_hub(task, remarks)
        return f"{task.metadata.dataset['path']}@{task.metadata.dataset['revision']}"
    return content_of(folder)


def _local(task: AbsTask, path: str | None) -> tuple[Path | None, list[str]]:
    """The folder with a copy of the data set, or None; and the places searched before."""
    name = str(task.metadata.dataset["path"])
    return first_of((name, name.rpartition("/")[2]), path, Path.is_dir)


def _check_hub(task: AbsTask, remarks: list[str]) -> None:
    """Raise CorpusError unless `datasets` has this revision cached, or the hub says that it has it."""
    from datasets import config
    from huggingface_hub import HfApi

    dataset: Mapping[str, Any] = task.metadata.dataset
    name, revision = str(dataset["path"]), str(dataset["revision"])
    cached = Path(config.HF_DATASETS_CACHE) / name.replace("/", "___")
    if any(cached.glob(f"*/*/{revision}*")):
        return
    if not builds():
        raise CorpusError(
            f"{task.metadata.name} of mteb: not on this machine\n  accepted: after a run that reads it"
        )
    try:
        HfApi().dataset_info(name, revision=revision, timeout=SECONDS)
    except Exception as error:
        remarks = [*remarks, f"cache: {cached}", f"the hub: {name}: {kind_and_first_line(error)}"]
        raise not_found(
            f"{task.metadata.name} of mteb",
            remarks,
            holds=name,
            source=f"hf download {name} --repo-type dataset --revision {revision} --local-dir FOLDER/{name}",
        ) from error


@contextmanager
def quiet() -> Iterator[None]:
    """A context without mteb's progress bars and remarks."""
    from datasets import disable_progress_bars, enable_progress_bars
    from datasets.utils import are_progress_bars_disabled

    log, shown = logging.getLogger("mteb"), not are_progress_bars_disabled()
    level = log.level
    log.setLevel(logging.ERROR)
    disable_progress_bars()
    try:
        yield
    finally:
        log.setLevel(level)
        if shown:
            enable_progress_bars()
