"""RankCSE: SimCSE that also ranks the sentences of a batch as frozen teachers do, alike in both directions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainers.engine.gathering import gathered
from trainers.losses import cosines
from trainers.san.hosts.lists import against_negatives, against_views, mixed
from trainers.san.hosts.rows import Rows, contrast
from trainers.san.ranking import jensen_shannon, negative_entropy

if TYPE_CHECKING:
    from torch import Tensor

    from trainers.engine.world import World
    from trainers.san.batches import SanBatch
    from trainers.san.settings import Settings
    from trainers.san.teachers import Teachers


def terms(rows: Rows, batch: SanBatch, settings: Settings, teachers: Teachers, world: World) -> dict[str, Tensor]:
    """InfoNCE or HiNCE, β consistency, γ ListMLE (or ListNet), and γ λ of the same over aligned negatives.

    Of two teachers the lists are mixed, `rank_mix` of the first. Source: RankCSE; SAN, equations 5 and 6.
    """
    shares = [settings.rank_mix, 1 - settings.rank_mix] if len(teachers.taught) == 2 else [1.0]
    lists = [teachers.cosines(which, batch) for which in range(len(shares))]
    views = mixed(shares, [views for views, _ in lists])
    found = contrast(rows, batch, settings)
    if settings.consistent != "off":
        forward = cosines(rows.anchor, rows.all_second) / settings.tau1
        backward = cosines(rows.second, gathered(rows.anchor, world)) / settings.tau1
        formula = jensen_shannon if settings.consistent == "js" else negative_entropy
        found["consistency"] = settings.consistency_weight * formula(forward, backward)
    found["lists"] = settings.rank_weight * against_views(rows, views, batch, settings, tau=settings.rank_tau)
    if rows.all_negative is not None:
        aside = mixed(shares, [negatives for _, negatives in lists if negatives is not None])
        weight = settings.rank_weight * settings.san_mle
        found["lists_san"] = weight * against_negatives(rows, aside, batch, settings)
    return found
