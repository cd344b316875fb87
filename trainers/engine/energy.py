"""Energy used by processors (RAPL) and by a GPU (NVML), on machines that let us read these counters."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import NamedTuple

POWER_CAP = Path("/sys/class/powercap")  # where Linux shows RAPL, the energy counters of processors
EVERY = 10.0  # seconds between two readings during a run: no counter wraps around so soon, and reading costs time
CARD = "card"


class Counter(NamedTuple):
    """The reading of a counter, in joules. range: where the counter wraps around to 0; None if unknown."""

    joules: float
    range: float | None = None


class Energy:
    """Energy that processors and GPU have used since this object was made.

    RAPL's counters wrap around, often at 262 kJ: 44 minutes at 100 W. So `watch` must be called regularly (at
    every step, and when a lane is asked for its progress); differences between readings are added up. Of the
    processors' energy this process gets the share that its CPU time, with that of children it has waited for, has
    of all CPU time.
    """

    def __init__(self, device: str) -> None:
        self._device, self._lock = device, Lock()
        self._last, self._last_time = _counters(device), time.monotonic()
        self._used: dict[str, float | None] = dict.fromkeys(self._last, 0.0)
        self._busy, self._own = _cpu_seconds()

    def watch(self) -> None:
        """Read the counters, unless the last reading is less than EVERY seconds ago."""
        if time.monotonic() - self._last_time >= EVERY:
            self._read()

    def joules(self) -> dict[str, float]:
        """Joules until now, for "processors" and "card". A part whose counters cannot be read is absent."""
        self._read()
        busy, own = _cpu_seconds()
        share = min((own - self._own) / (busy - self._busy), 1.0) if busy > self._busy else 0.0
        found = {}
        packages = [used for name, used in self._used.items() if name != CARD]
        known = [used for used in packages if used is not None]
        if packages and len(known) == len(packages):
            found["processors"] = sum(known) * share
        if (card := self._used.get(CARD)) is not None:
            found[CARD] = card
        return found

    def _read(self) -> None:
        with self._lock:  # several threads of a run may call `watch`
            now = _counters(self._device)
            for name, used in self._used.items():
                more = _between(self._last.get(name), now.get(name))
                self._used[name] = None if used is None or more is None else used + more
            self._last, self._last_time = now, time.monotonic()


def _between(before: Counter | None, after: Counter | None) -> float | None:
    """Joules between two readings; None if the counter is gone, or wrapped around at an unknown value."""
    if before is None or after is None:
        return None
    if after.joules >= before.joules:
        return after.joules - before.joules
    return None if after.range is None else after.joules - before.joules + after.range


def _cpu_seconds() -> tuple[float, float]:
    """CPU seconds of the whole machine, and of this process with the children that it has waited for.

    Linux counts the time of virtual machines twice, as `guest` and within `user`; it is taken once here.
    """
    import psutil

    busy, own = psutil.cpu_times(), psutil.Process().cpu_times()
    mine = own.user + own.system + own.children_user + own.children_system
    idle_or_counted_twice = ("idle", "iowait", "guest", "guest_nice")
    return sum(busy) - sum(getattr(busy, name, 0.0) for name in idle_or_counted_twice), mine


def _counters(device: str) -> Mapping[str, Counter]:
    """Counters of every processor package, and of the GPU if the device is one; only those that we may read."""
    found = _packages()
    if device.startswith("cuda") and (card := _card(device)) is not None:
        found[CARD] = Counter(card)
    return found


def _packages() -> dict[str, Counter]:
    """Counters of all processor packages, or {} if one of them cannot be read.

    Laptops also have a counter for the whole platform ("psys"), which includes the packages; it is left out.
    """
    try:
        zones = [place for place in POWER_CAP.glob("intel-rapl:*") if place.name.count(":") == 1]
        places = [zone for zone in zones if (zone / "name").read_text().startswith("package")]
        return {
            place.name: Counter(_joules(place / "energy_uj"), _range(place / "max_energy_range_uj"))
            for place in places
        }
    except (OSError, ValueError):
        return {}


def _range(file: Path) -> float | None:
    with suppress(OSError, ValueError):
        return _joules(file)
    return None


def _joules(file: Path) -> float:
    """Joules from a file that holds microjoules."""
    return int(file.read_text()) / 1e6


def _card(device: str) -> float | None:
    """Joules of a GPU since its driver was loaded; None without NVML, or if the GPU does not count them."""
    import torch

    with suppress(ImportError, RuntimeError, OSError):
        import pynvml

        with suppress(pynvml.NVMLError):
            pynvml.nvmlInit()
            uuid = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
            return pynvml.nvmlDeviceGetTotalEnergyConsumption(pynvml.nvmlDeviceGetHandleByUUID(uuid)) / 1000
    return None
