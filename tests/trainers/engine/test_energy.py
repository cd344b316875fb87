"""Energy by counters that a machine may show: shared by work, across the place where they begin anew."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import psutil
import pytest

from trainers.engine import energy
from trainers.engine.energy import Counter, Energy
from trainers.engine.meter import Meter


class Machine:
    """Counters in a folder, and the seconds of work of all processors and of us."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.place, self.work = place, (100.0, 10.0)
        monkeypatch.setattr(energy, "POWER_CAP", place)
        monkeypatch.setattr(energy, "_cpu_seconds", lambda: self.work)

    def show(self, package: str, joules: float, around: int | None = None, *, name: str = "package-0") -> None:
        (self.place / package).mkdir(exist_ok=True)
        (self.place / package / "name").write_text(f"{name}\n")
        (self.place / package / "energy_uj").write_text(f"{joules * 1e6:.0f}\n")
        if around is not None:
            (self.place / package / "max_energy_range_uj").write_text(f"{around * 10**6}\n")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_it_is_shared_by_work(machine: Machine) -> None:
    """Two packages take 30 J, their parts are no packages, and half of the work is ours."""
    for package, joules in (("intel-rapl:0", 100), ("intel-rapl:1", 50), ("intel-rapl:0:0", 70)):
        machine.show(package, joules)
    found = Energy("cpu")
    machine.show("intel-rapl:0", 120)
    machine.show("intel-rapl:1", 60)
    machine.show("intel-rapl:0:0", 900)
    assert found.joules() == {"processors": 0}  # no clock has gone on: no share can be told yet
    machine.work = (110.0, 15.0)
    assert found.joules() == {"processors": pytest.approx(15)}
    machine.work = (110.0, 40.0)  # clocks of processes and of processors are read one after the other
    assert found.joules() == {"processors": pytest.approx(30)}


def test_the_platform_is_not_counted_beside_its_packages(machine: Machine) -> None:
    """Laptops show a counter of everything, the package in it: 50 of 80 J."""
    machine.show("intel-rapl:0", 0)
    machine.show("intel-rapl:1", 0, name="psys")
    found = Energy("cpu")
    machine.show("intel-rapl:0", 50)
    machine.show("intel-rapl:1", 80, name="psys")
    machine.work = (110.0, 20.0)
    assert found.joules() == {"processors": pytest.approx(50)}


def test_a_counter_that_begins_anew_between_two_looks_goes_on(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three times around 100 J, from 90: 40 + 80 + 80 + 80 J."""
    monkeypatch.setattr(energy, "EVERY", 0.0)
    machine.show("intel-rapl:0", 90, around=100)
    found = Energy("cpu")
    for joules in (30, 10, 90, 70):
        machine.show("intel-rapl:0", joules)
        found.watch()
    machine.work = (110.0, 20.0)
    assert found.joules() == {"processors": pytest.approx(40 + 80 + 80 + 80)}


def test_the_steps_of_a_training_are_looks(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """From 90 J around 100 J, twice: 40 + 80 + 80 J, where its ends alone would show 0."""
    monkeypatch.setattr(energy, "EVERY", 0.0)
    machine.show("intel-rapl:0", 90, around=100)
    meter = Meter("cpu", "fp32")
    for joules in (30, 10, 90):
        machine.show("intel-rapl:0", joules)
        meter.add(1.0, 1.0)
    machine.work = (110.0, 20.0)
    assert meter.so_far()["joules"] == pytest.approx(40 + 80 + 80)


def test_of_one_card_no_more_is_counted_than_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may hold two; the counter is that of the one it trains on."""
    monkeypatch.setattr(energy, "_card", lambda device: shown)
    shown = 0.0
    meter = Meter("cuda:0", "fp32", gpus=2.0)
    shown = 80.0
    assert meter.take()["gpu_joules"] == pytest.approx(80)


def test_looks_are_not_dear(machine: Machine) -> None:
    """A look a moment after another one is none."""
    machine.show("intel-rapl:0", 90, around=100)
    found = Energy("cpu")
    machine.show("intel-rapl:0", 30)
    found.watch()
    machine.show("intel-rapl:0", 95)
    machine.work = (110.0, 20.0)
    assert found.joules() == {"processors": pytest.approx(5)}


@pytest.mark.parametrize("after", ["fell", "gone"])
def test_where_a_counter_says_too_little_nothing_is_told(machine: Machine, after: str) -> None:
    """It fell, and nobody says where it is round; or it is no longer shown. It is so for good."""
    machine.show("intel-rapl:0", 90)
    machine.show("intel-rapl:1", 90)
    found = Energy("cpu")
    if after == "fell":
        machine.show("intel-rapl:0", 30)
    else:
        (machine.place / "intel-rapl:0" / "energy_uj").write_text("no number")
    assert found.joules() == {}
    machine.show("intel-rapl:0", 95)
    assert found.joules() == {}


@pytest.mark.parametrize(
    ("processors", "card", "cost"),
    [
        (True, 80.0, {"joules": 4 * (10 + 20), "gpu_joules": 4 * 20}),
        (False, 80.0, {"gpu_joules": 4 * 20}),  # most systems show RAPL to root alone
        (True, None, {}),
    ],
)
def test_a_total_has_all_its_parts(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    processors: bool,
    card: float | None,
    cost: dict[str, float],
) -> None:
    """Four workers with a quarter of a card each; a card takes 80 J and the processors 20, of which half are ours."""
    counted = {} if not processors else {"intel-rapl:0": Counter(0.0)}
    monkeypatch.setattr(energy, "_packages", lambda: dict(counted))
    monkeypatch.setattr(energy, "_card", lambda device: shown)
    shown = None if card is None else 0.0
    meter = Meter("cuda:0", "fp32", gpus=0.25, workers=4)
    shown, machine.work = card, (110.0, 15.0)
    counted = {name: Counter(20.0) for name in counted}
    found = meter.take()
    assert {name: value for name, value in found.items() if "joules" in name} == pytest.approx(cost)


def test_a_process_that_was_waited_for_has_worked_for_us() -> None:
    """As training scripts do, behind their supervisor."""
    _, before = energy._cpu_seconds()
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"], check=True)
    own, children = sum(os.times()[:2]), sum(os.times()[2:4])
    after = energy._cpu_seconds()[1]
    assert after - before > 0.25
    assert after == pytest.approx(own + children, abs=0.1)  # in user and in system mode


def test_the_work_of_virtual_machines_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """150 s of which 100 are those of guests and 20 those of low rank, of which 5 are a guest's; 40 s are idle."""
    times = namedtuple("times", "user nice system idle iowait guest guest_nice")
    told = iter([times(1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), times(131.0, 20.0, 0.0, 30.0, 10.0, 100.0, 5.0)])
    monkeypatch.setattr(psutil, "cpu_times", lambda: next(told))
    (before, _), (after, _) = energy._cpu_seconds(), energy._cpu_seconds()
    assert after - before == 150
