"""Energy: of processors by RAPL, of a card by NVML, where the machine shows their counters to us."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import NamedTuple

POWER_CAP = Path("/sys/class/powercap")  # where Linux shows RAPL, the energy counters of processors
EVERY = 10.0  # seconds between two looks while a run goes on: no counter is round so soon, and reading costs
CARD = "card"


class Counter(NamedTuple):
    """Joules since some time. around: at how many it begins at 0 again; None where nobody says."""

    joules: float
    around: float | None = None


class Energy:
    """What processors and card take, from its making on.

    RAPL's counters begin at 0 again, often at 262 kJ: 44 minutes at 100 W. So `watch` is called at every step, and
    while a lane is asked how far it is; what is between two looks is added up. Of the processors' energy counts
    the share that this process, with children that it has waited for, has of all processors' work.
    """

    def __init__(self, device: str) -> None:
        self._device, self._lock = device, Lock()
        self._last, self._looked = _counters(device), time.monotonic()
        self._spent: dict[str, float | None] = dict.fromkeys(self._last, 0.0)
        self._busy, self._own = _work()

    def watch(self) -> None:
        """Look at the counters, unless that was a moment ago."""
        if time.monotonic() - self._looked >= EVERY:
            self._look()

    def told(self) -> dict[str, float]:
        """Joules until now, by part: "processors" and "card". A part whose counters say too little is absent."""
        self._look()
        busy, own = _work()
        share = min((own - self._own) / (busy - self._busy), 1.0) if busy > self._busy else 0.0
        found = {}
        packages = [spent for name, spent in self._spent.items() if name != CARD]
        known = [spent for spent in packages if spent is not None]
        if packages and len(known) == len(packages):
            found["processors"] = sum(known) * share
        if (card := self._spent.get(CARD)) is not None:
            found[CARD] = card
        return found

    def _look(self) -> None:
        with self._lock:  # several threads of a run may tell how far they are
            now = _counters(self._device)
            for name, spent in self._spent.items():
                more = _between(self._last.get(name), now.get(name))
                self._spent[name] = None if spent is None or more is None else spent + more
            self._last, self._looked = now, time.monotonic()


def _between(before: Counter | None, after: Counter | None) -> float | None:
    """Joules from one look to the next; None where the counter is gone, or fell and none says from where."""
    if before is None or after is None:
        return None
    if after.joules >= before.joules:
        return after.joules - before.joules
    return None if after.around is None else after.joules - before.joules + after.around


def _work() -> tuple[float, float]:
    """Seconds that all processors have worked, and of these this process and children that it waited for.

    Linux counts what virtual machines take as `guest`, and in `user` too.
    """
    import psutil

    busy, own = psutil.cpu_times(), psutil.Process().cpu_times()
    mine = own.user + own.system + own.children_user + own.children_system
    idle_or_told_twice = ("idle", "iowait", "guest", "guest_nice")
    return sum(busy) - sum(getattr(busy, name, 0.0) for name in idle_or_told_twice), mine


def _counters(device: str) -> Mapping[str, Counter]:
    """Of every package, and of the card where the device is one; without those that are not shown to us."""
    found = _packages()
    if device.startswith("cuda") and (card := _card(device)) is not None:
        found[CARD] = Counter(card)
    return found


def _packages() -> dict[str, Counter]:
    """Of all of them, or none: of some the energy would pass for that of all.

    Beside them laptops show one for the whole platform ("psys"), which the packages are a part of.
    """
    try:
        zones = [place for place in POWER_CAP.glob("intel-rapl:*") if place.name.count(":") == 1]
        places = [zone for zone in zones if (zone / "name").read_text().startswith("package")]
        return {
            place.name: Counter(_joules(place / "energy_uj"), _around(place / "max_energy_range_uj"))
            for place in places
        }
    except (OSError, ValueError):
        return {}


def _around(file: Path) -> float | None:
    with suppress(OSError, ValueError):
        return _joules(file)
    return None


def _joules(file: Path) -> float:
    """A file that holds microjoules."""
    return int(file.read_text()) / 1e6


def _card(device: str) -> float | None:
    """Joules of a card since its driver was loaded; None without NVML, or where the card does not count them."""
    import torch

    with suppress(ImportError, RuntimeError, OSError):
        import pynvml

        with suppress(pynvml.NVMLError):
            pynvml.nvmlInit()
            uuid = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
            return pynvml.nvmlDeviceGetTotalEnergyConsumption(pynvml.nvmlDeviceGetHandleByUUID(uuid)) / 1000
    return None
