"""RLRD: SNCSE that ranks as two teachers do, whose shares two policies settle in every step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from trainers.engine.gathering import gathered
from trainers.san.hosts import sncse
from trainers.san.hosts.lists import against_negatives, against_views, mixed
from trainers.san.hosts.rows import Rows

if TYPE_CHECKING:
    from torch import Tensor

    from trainers.engine.world import World
    from trainers.san.batches import SanBatch
    from trainers.san.mixture import Mixture
    from trainers.san.settings import Settings
    from trainers.san.teachers import Teachers


def terms(
    rows: Rows, batch: SanBatch, settings: Settings, teachers: Teachers, mixture: Mixture | None, world: World
) -> dict[str, Tensor]:
    """SNCSE's terms, t ListMLE against the mixed teachers, and t v of the same over aligned negatives.

    The policies are rewarded with -½ of the whole; without a mixture (`rl_update: fixed`) both teachers count
    alike. "teacher_share" is a figure: the first teacher's. Source: SAN, equation 7, and its code. Departures:
    the policies see the batch of all workers, where the code has one worker.
    """
    (first, aside1), (second, aside2) = (teachers.cosines(which, batch) for which in (0, 1))
    share = torch.full((), 0.5, device=first.device)
    if mixture is not None:
        share = _share(rows, first, second, batch, settings, mixture, world)
    found = sncse.terms(rows, batch, settings)
    views = against_views(rows, mixed([share, 1 - share], [first, second]), batch, settings, tau=settings.tau1)
    found["lists"] = settings.rl_weight * views
    if aside1 is not None and aside2 is not None:
        negatives = against_negatives(rows, mixed([share, 1 - share], [aside1, aside2]), batch, settings)
        found["lists_san"] = settings.rl_weight * settings.san_mle * negatives
    if mixture is not None:
        mixture.learn(-_mean(torch.stack(list(found.values())).sum().detach(), world) / 2)
        found["teacher_share"] = share
    return found


def _share(
    rows: Rows,
    first: Tensor,
    second: Tensor,
    batch: SanBatch,
    settings: Settings,
    mixture: Mixture,
    world: World,
) -> Tensor:
    anchors = gathered(rows.anchor.detach(), world)
    with torch.no_grad():
        losses = [
            _mean(against_views(rows, teacher, batch, settings, tau=settings.tau1), world)
            for teacher in (first, second)
        ]
    return mixture.weight(
        torch.stack([anchors, rows.all_second.detach()]),
        torch.stack([first, second]) / settings.teacher_tau,
        torch.stack(losses)[None],
        batch.step,
        world,
    )


def _mean(value: Tensor, world: World) -> Tensor:
    """Over the workers."""
    if world.size == 1:
        return value
    total = value.clone()
    dist.all_reduce(total)
    return total / world.size
