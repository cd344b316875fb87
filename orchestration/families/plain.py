"""Default answers of a family: no plots, no search, no warnings. Families with their own run body inherit them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestration.families.contract import ArmPlot, ArmSeen, FirstStudy, RowsOf

if TYPE_CHECKING:
    from orchestration.study.run import Run
    from orchestration.study.study import Study
    from search_spaces.space import Space


class PlainFamily:
    """See `contract.Family`; its other members have no default."""

    space: Space = ()
    stacked: bool = False
    dev_apart: bool = False
    shape: Callable[[Any], Hashable] | None = None
    streams: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    distributions: Mapping[str, Mapping[str, str]] = {}
    arm_plots: Sequence[ArmPlot] = ()
    headroom: Any = None
    spread: tuple[float, str] | None = None

    def groups(self, data: Any) -> Mapping[str, tuple[str, ...]]:
        return {}

    def first_study(self, setting: str) -> FirstStudy:
        return FirstStudy()

    def in_bf16(self, settings: Any) -> Mapping[str, Any]:
        return {}

    def caveats(self, sides: Sequence[ArmSeen], data: Any, figures: Sequence[str]) -> tuple[str, ...]:
        return ()

    def rows(self, data: Any) -> Sequence[RowsOf]:
        return ()

    def former_fingerprint(self, data: Any) -> str:
        return ""

    def opened_by(self, folder: Path) -> str:
        return ""

    def check_backbones(self, study: Study, backbones: Sequence[Path]) -> None:
        """Refuse none."""

    def check_kept(self, study: Study, kept: Callable[[], Sequence[tuple[Run, Collection[str]]]]) -> None:
        """Refuse none."""

    def slips(self, study: Study) -> Sequence[str]:
        return ()
