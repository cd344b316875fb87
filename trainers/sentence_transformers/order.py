"""Chooses the rows of each step: the library's batch samplers, with a named random stream for each.

By default the library shuffles all data sets with one generator, whose state is lost when a training resumes in a
later epoch. Here every data set and the mixture draw from (seed, "data", name, epoch).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from sentence_transformers.base.sampler import (
    DefaultBatchSampler,
    GroupByLabelBatchSampler,
    MultiDatasetDefaultBatchSampler,
    NoDuplicatesBatchSampler,
    ProportionalBatchSampler,
    RoundRobinBatchSampler,
)
from torch.utils.data import BatchSampler

from trainers.engine.streams import number, numpy_stream, torch_stream
from trainers.errors import TrainerError
from trainers.sentence_transformers.settings import Settings

MIXED = {"proportional": ProportionalBatchSampler, "round_robin": RoundRobinBatchSampler}
SEEDS = 2**31  # leaves room for the epoch that the library adds


class Shuffled(DefaultBatchSampler):
    """All rows once per epoch, in an order drawn from that epoch's stream."""

    def __init__(self, rows: int, batch_size: int, drop_last: bool, seed: int, name: str) -> None:
        super().__init__(range(rows), batch_size=batch_size, drop_last=drop_last)
        self.rows, self.stream = rows, (seed, "data", name)

    def __iter__(self) -> Iterator[list[int]]:
        order = numpy_stream(*self.stream, self.epoch).permutation(self.rows).tolist()
        for start in range(0, self.rows, self.batch_size):
            batch = order[start : start + self.batch_size]
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch


class Distinct(NoDuplicatesBatchSampler):
    """No text twice in a batch. TrainerError where the rows fill none: the library only warns, and a weighted
    mixture would wait for one for ever."""

    def __iter__(self) -> Iterator[list[int]]:
        filled = False
        for batch in super().__iter__():
            filled = True
            yield batch
        if not filled:
            raise TrainerError(
                f"batch_sampler = no_duplicates: no batch of {self.batch_size} rows is without a text twice\n"
                "  accepted: a smaller per_device_train_batch_size, or dataloader_drop_last: false"
            )


LIBRARY = {"no_duplicates": Distinct, "group_by_label": GroupByLabelBatchSampler}


class Weighted(MultiDatasetDefaultBatchSampler):
    """Draws the data set of each step by weight. An epoch has as many steps as all data sets have batches.

    A data set that is used up begins again, in the order of its next round.
    """

    def __init__(self, dataset: Any, batch_samplers: Sequence[Any], weights: Sequence[float], seed: int) -> None:
        super().__init__(dataset, list(batch_samplers), seed=seed)
        self.shares = [weight / sum(weights) for weight in weights]

    def __iter__(self) -> Iterator[list[int]]:
        drawn = numpy_stream(self.seed, "data", "mixture", self.epoch).choice(
            len(self.shares), len(self), p=self.shares
        )
        sets: Sequence[Any] = self.dataset.datasets
        offsets = [0, *accumulate(len(rows) for rows in sets)]
        batches = [_without_end(sampler, self.epoch) for sampler in self.batch_samplers]
        for place in drawn.tolist():
            yield [row + offsets[place] for row in next(batches[place])]

    def __len__(self) -> int:
        return sum(len(sampler) for sampler in self.batch_samplers)


def _without_end(sampler: Any, epoch: int) -> Iterator[list[int]]:
    """A data set's batches, round after round; no two epochs share the order of a round."""
    turn = 0
    while True:
        sampler.set_epoch(epoch + turn * 10_000)
        yield from sampler
        turn += 1


def of_rows(settings: Settings, rows: Any, name: str, seed: int) -> BatchSampler:
    """The batches of one data set. rows: a `datasets.Dataset`. TrainerError if they give none."""
    size, drop = settings.per_device_train_batch_size, settings.dataloader_drop_last
    if settings.batch_sampler == "batch_sampler":
        return Shuffled(len(rows), size, drop, seed, name)
    sampler: BatchSampler = LIBRARY[settings.batch_sampler](
        rows,
        batch_size=size,
        drop_last=drop,
        valid_label_columns=["label"],
        generator=torch_stream(seed, "data", name),
        seed=number(seed, "data", name) % SEEDS,
    )
    if not len(sampler):
        raise TrainerError(
            f"batch_sampler = {settings.batch_sampler}: {name} has no batch of {size} rows\n"
            "  accepted: a smaller per_device_train_batch_size, or dataloader_drop_last: false"
        )
    return sampler


def of_several(
    settings: Settings, dataset: Any, samplers: list[Any], names: Sequence[str], seed: int
) -> BatchSampler:
    """The batches of several data sets. dataset: a `ConcatDataset` of them, in the order of samplers and names."""
    if settings.multi_dataset_batch_sampler == "weighted":
        return Weighted(dataset, samplers, [settings.weights[name] for name in names], seed)
    return MIXED[settings.multi_dataset_batch_sampler](
        dataset=dataset,
        batch_samplers=samplers,
        generator=torch_stream(seed, "data", "mixture"),
        seed=number(seed, "data", "mixture") % SEEDS,
    )
