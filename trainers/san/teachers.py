"""How an arm's teachers rank the sentences of a batch, from the vectors that are kept of them.

teachers = Teachers.of(settings, corpus, device="cpu", tell=print)
views, negatives = teachers.cosines(0, batch)            # of the first teacher
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from trainers import losses
from trainers.engine.transfers import moved
from trainers.san import columns
from trainers.san.settings import PROMPTED, Settings
from trainers.san.teacher_vectors import Teacher, vectors
from trainers.san.templates import OTHER_VIEW, VIEW

if TYPE_CHECKING:
    from corpora.san.records import SanCorpus
    from corpora.store.telling import Tell
    from trainers.san.batches import SanBatch


@dataclass(frozen=True, eq=False)
class Taught:
    """One teacher's vectors of every row, (N, D) float16: of both views, and of the negatives, if any."""

    first: np.ndarray
    second: np.ndarray
    negatives: np.ndarray | None


@dataclass(frozen=True)
class Teachers:
    """In the order in which the settings name them."""

    taught: tuple[Taught, ...]
    device: str

    @staticmethod
    def of(settings: Settings, corpus: SanCorpus, *, device: str, tell: Tell) -> Teachers:
        """Their vectors from the cache, or encoded now, of which `tell` hears.

        The teachers of a prompted host see its templates; those of others see one text, whose two views are one.
        """
        first, second = (VIEW, OTHER_VIEW) if settings.host in PROMPTED else (None, None)
        sentences = columns.whole(corpus.sentences)
        aside = columns.negatives(settings, corpus) if settings.san != "off" else None
        taught = []
        for name in settings.teachers:
            teacher = Teacher.of(corpus.teachers[name])
            read = partial(
                vectors, teacher, sentences=sentences, max_length=settings.max_length, device=device, tell=tell
            )
            taught.append(
                Taught(
                    read(column=sentences, template=first),
                    read(column=sentences, template=second),
                    None if aside is None else read(column=aside, template=second),
                )
            )
        return Teachers(tuple(taught), device)

    def cosines(self, which: int, batch: SanBatch) -> tuple[Tensor, Tensor | None]:
        """A teacher's cosines of the first views with the second, and with the negatives. -> (B, B) float32 each.

        float32, since float16 has ties that the vectors have not.
        """
        taught = self.taught[which]
        first = self._rows(taught.first, batch.rows)
        views = losses.cosines(first, self._rows(taught.second, batch.rows))
        if taught.negatives is None:
            return views, None
        return views, losses.cosines(first, self._rows(taught.negatives, batch.negative_rows))

    def _rows(self, table: np.ndarray, rows: np.ndarray) -> Tensor:
        return moved(table[rows].astype(np.float32), torch.device(self.device))
