"""Every file and every field of a sealed ledger and of a passport: none changes a figure without report or verify
saying so."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import Plan
from orchestration.study.errors import StudyError
from orchestration.verdicts.distributions import with_distributions
from orchestration.verdicts.find import find
from orchestration.verdicts.findings import Findings
from orchestration.verdicts.passport import (
    OF_A_RUN,
    WHEN_AND_WHERE,
    comparable,
    differing,
    plain,
    verify,
    write_passport,
)
from tests.named_study import finished, write_study
from tests.orchestration.ledger.test_seals import fields, other, put

Held = tuple[Plan, Ledger, Findings]


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Held:
    """A finished study: five runs, fifteen entries."""
    path = write_study(tmp_path_factory.mktemp("held") / "hard.yaml", "Is hard better?", ["B1", "B2", "B0"], ["H1", "H2", "H3"])  # fmt: skip
    return finished(path)


@pytest.fixture(scope="module")
def ledger(held: Held, tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    """A copy to be damaged, mended after each damage."""
    return Ledger(shutil.copytree(held[1].url, tmp_path_factory.mktemp("copy") / "ledger"))


def reported(plan: Plan, ledger: Ledger) -> Any:
    """All that a report is made of."""
    return plain(with_distributions(find(plan.study, plan.runs, ledger), ledger))


def check(held: Held, ledger: Ledger, file: Path) -> bool:
    """Whether the report refuses the file, in words; else it must be what it was."""
    try:
        told = reported(held[0], ledger)
    except StudyError as error:
        words = str(error)
    else:
        assert comparable(told) == comparable(plain(with_distributions(held[2], held[1])))
        return False
    assert str(file.relative_to(ledger.url).parent) in words
    assert "accepted: " in words
    return True


def every_file(ledger: Ledger) -> list[Path]:
    return sorted(path for path in Path(ledger.url).rglob("*") if path.is_file())


def test_every_file(held: Held, ledger: Ledger) -> None:
    """A bit flipped in each file, wherever it lies: refused, or no part of any figure."""
    silent = set()
    for file in every_file(ledger):
        intact = file.read_bytes()
        changed = bytearray(intact)
        changed[len(changed) // 2] ^= 0x02
        file.write_bytes(changed)
        if not check(held, ledger, file):
            silent.add(file.relative_to(ledger.url).as_posix())
        file.write_bytes(intact)
    unused = {name for name in silent if name.split("/")[0] != ".attempts"}  # a lease says who is at work
    empty = {
        f"{run.entry('stress')}/scores.parquet" for run in held[0].runs
    }  # of a score that is not made of items
    assert unused <= empty
    for name in unused:  # no figure rests on it, and still it goes into no passport
        file = Path(ledger.url, name)
        intact = file.read_bytes()
        file.write_bytes(intact[:-1] + b"?")
        assert "it is not as the run wrote it" in (ledger.audit(file.parent.name) or "")
        with pytest.raises(StudyError, match="it is not as the run wrote it"):
            write_passport(Path(ledger.url).parent / "p", held[0], ledger, held[2])
        file.write_bytes(intact)


def entries_of(held: Held, arm: str) -> tuple[str, ...]:
    run = next(run for run in held[0].runs if run.arm == arm)
    return run.entries


def json_files(ledger: Ledger, entries: tuple[str, ...]) -> list[Path]:
    return [file for entry in entries for file in sorted(Path(ledger.url, entry).glob("*.json"))]


def changes(file: Path) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Each field of a JSON file with another value; the way to it, and the file's text then."""
    body = json.loads(file.read_text())
    for way in fields(body):
        value = body
        for name in way:
            value = value[name]
        yield way, json.dumps(put(body, way, other(value)))


def test_every_field_of_a_run(held: Held, ledger: Ledger) -> None:
    """Of what says what a run is, where it ran, what it scored, and of its seals."""
    _check_fields(held, ledger, entries_of(held, "B1"))


@pytest.mark.long
@pytest.mark.timeout(900)
def test_every_field_of_every_run(held: Held, ledger: Ledger) -> None:
    _check_fields(held, ledger, tuple(ledger.entries()))


def _check_fields(held: Held, ledger: Ledger, entries: tuple[str, ...]) -> None:
    for file in json_files(ledger, entries):
        intact, ways = file.read_text(), 0
        for way, text in changes(file):
            file.write_text(text)
            no_items = "stress/negate/auc" in file.with_name("result.json").read_text()  # none to be read
            assert check(held, ledger, file) or (no_items and way == ("scores.parquet",)), text
            ways += 1
        file.write_text(intact)
        assert ways >= 4


@pytest.mark.parametrize("table", ["scores.parquet", "curve.parquet"])
def test_every_cell(held: Held, ledger: Ledger, table: str) -> None:
    """One cell of each column, in each row."""
    run = next(run for run in held[0].runs if run.arm == "B1")
    file = Path(ledger.url, run.entry("t2d") if table == "scores.parquet" else run.id, table)
    intact, rows = file.read_bytes(), pq.read_table(file)
    for column in rows.column_names:
        for row in range(rows.num_rows):
            values = rows[column].to_pylist()
            values[row] = other(values[row])
            place = rows.column_names.index(column)
            changed = rows.set_column(place, column, pa.array(values).cast(rows.schema.field(column).type))
            pq.write_table(changed, file)
            assert check(held, ledger, file)
    file.write_bytes(intact)


# Passports


@pytest.fixture(scope="module")
def passport(held: Held) -> Path:
    plan, ledger, findings = held
    path = plan.study.path.with_name("hard.passport")
    write_passport(path, plan, ledger, with_distributions(findings, ledger))
    assert verify(path).differences == ()
    return path


def test_every_printed_field(held: Held, passport: Path) -> None:
    """Whatever is changed in what was printed differs from what comes of the scores, but for when and where."""
    with zipfile.ZipFile(passport) as archive:
        printed = json.loads(archive.read("findings.json"))
    assert [*differing("", printed, json.loads(json.dumps(printed)))] == []
    ways = [*fields(printed)]
    assert len(ways) > 500
    for way in ways:
        if way[0] in WHEN_AND_WHERE or (way[0] == "runs" and way[2:3] and way[2] in OF_A_RUN):
            continue
        value = printed
        for name in way:
            value = value[name]
        new = 2 * value + 1 if isinstance(value, float) else other(value)
        assert [*differing("", comparable(put(printed, way, new)), comparable(printed))], way


# Of a run's spec.json: verify plans the runs from the study's file, and asks the entry for no more than its id.
PLANNED = {"arm", "backbone", "settings", "data", "tasks", "former", "look_at"}
NO_FIGURE = {"format", "attempt", "ended"}  # of a run's result.json: no verdict rests on when it was


def _check_resealed(passport: Path, folder: Path, files: tuple[str, ...]) -> None:
    """Each field of one run's entries changed by somebody who can seal them again."""
    with zipfile.ZipFile(passport) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    findings = json.loads(members["findings.json"])
    entries = next(row["entries"] for row in findings["runs"] if row["arm"] == "B1")
    for entry in entries:
        for file in files:
            name = f"ledger/{entry}/{file}"
            place = folder / "part.json"
            place.write_bytes(members[name])
            for way, text in changes(place):
                changed = {**members, name: text.encode()}
                changed[f"ledger/{entry}/seal.json"] = _sealed(changed, entry)
                _write(folder / "forged", changed)
                try:
                    said = bool(verify(folder / "forged").differences)
                except StudyError:
                    said = True
                silent = PLANNED if file == "spec.json" else NO_FIGURE
                assert said or way[0] in silent, (name, way)


def _sealed(members: dict[str, bytes], entry: str) -> bytes:
    begin, own = f"ledger/{entry}/", {}
    for name, content in members.items():
        if name.startswith(begin) and not name.endswith("seal.json"):
            own[name.removeprefix(begin)] = hashlib.sha256(content).hexdigest()
    return json.dumps(own).encode()


def _write(path: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def test_every_figure_of_an_entry_that_was_sealed_again(passport: Path, tmp_path: Path) -> None:
    _check_resealed(passport, tmp_path, ("result.json",))


@pytest.mark.long
@pytest.mark.timeout(900)
def test_every_field_of_an_entry_that_was_sealed_again(passport: Path, tmp_path: Path) -> None:
    _check_resealed(passport, tmp_path, ("result.json", "spec.json"))
