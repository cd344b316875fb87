"""Files damaged at random: a study, a passport, an entry of a ledger. Nothing comes of it but clean messages."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import Plan
from orchestration.reading.read_study import read_study
from orchestration.study.errors import StudyError
from orchestration.study.names import printable
from orchestration.verdicts.distributions import with_distributions
from orchestration.verdicts.find import find
from orchestration.verdicts.findings import Findings
from orchestration.verdicts.passport import plain, verify, write_passport
from tests.named_study import finished, write_study

LONG_SECONDS = 3600  # of a search for minutes, on a machine that others use too
ROOT = Path(__file__).resolve().parents[2]
STUDIES = sorted((ROOT / "studies").glob("*.yaml"))
SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture)


def both(examples: int, many: int) -> tuple[Any, Any]:
    """The same search for seconds, always alike, and for minutes, always anew."""
    quick = settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=SLOW)
    return quick, settings(max_examples=many, deadline=None, suppress_health_check=SLOW)


def clean(error: StudyError) -> None:
    """What a person reads: on lines of their own, and with a way out."""
    assert printable(str(error), keep="\n") == str(error)
    assert str(error).strip()


# Studies

WORDS = ["{", "}", "[", "]", ": ", "- ", "&a ", "*a", "<<: *a", "!!int ", "? ", "|\n", ">\n", "\t", "#", "'", '"', "%", "---\n", "...\n",
         "1e400", "0x" + "f" * 40, "1:59:59", ".inf", ".nan", "~", "yes", "2001-01-01", "=", "\\u202e", "\x85", "\u2028", "\ufeff", "9" * 30]  # fmt: skip
edits = st.lists(
    st.tuples(
        st.floats(0, 1),
        st.integers(0, 12),
        st.one_of(
            st.sampled_from(WORDS), st.text(max_size=6), st.sampled_from(WORDS).map(lambda word: word * 300)
        ),
    ),
    min_size=1,
    max_size=6,
)


@cache
def _read_whole(study: Path) -> str:
    """Its text. What reading it imports is then there, which is no time that the damage takes."""
    read_study(study)
    return study.read_text()


def _read_damaged_study(study: Path, changes: list[tuple[float, int, str]]) -> None:
    text = _read_whole(study)
    for where, cut, put in changes:
        at = int(where * len(text))
        text = text[:at] + put + text[at + cut :]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "damaged.yaml")
        path.write_bytes(text.encode(errors="surrogatepass"))
        began = time.process_time()
        try:
            read_study(path)
        except StudyError as error:
            clean(error)
        assert time.process_time() - began < 2


quick, thorough = both(80, 20_000)


@quick
@given(st.sampled_from(STUDIES), edits)
def test_a_damaged_study(study: Path, changes: list[tuple[float, int, str]]) -> None:
    _read_damaged_study(study, changes)


@pytest.mark.long
@pytest.mark.timeout(LONG_SECONDS)
@thorough
@given(st.sampled_from(STUDIES), edits)
def test_many_damaged_studies(study: Path, changes: list[tuple[float, int, str]]) -> None:
    _read_damaged_study(study, changes)


# What a passport or an entry holds

VALUES = [
    None,
    True,
    0,
    -1,
    10**30,
    1e308,
    "",
    "x",
    "\x1b[2J",
    "../..",
    [],
    {},
    [[]],
    {"a": {}},
    "fp32",
    "missing",
]


def _damaged_json(content: bytes, draw: random.Random) -> bytes:
    """One value of a JSON text replaced, dropped or named otherwise."""
    value = json.loads(content)
    holders = [one for one in _holders(value) if one]
    if not holders:
        return json.dumps(draw.choice(VALUES)).encode()
    holder = draw.choice(holders)
    key = draw.choice(list(holder)) if isinstance(holder, dict) else draw.randrange(len(holder))
    match draw.randrange(3):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[f"{key}\u202e"] = holder.pop(key)
        case _:
            holder[key] = draw.choice(VALUES)
    return json.dumps(value).encode()


def _holders(value: Any) -> list[Any]:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    own = [value] if isinstance(value, dict | list) else []
    return own + [one for child in inner for one in _holders(child)]


def _damaged_bytes(content: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(content) + 1)
    match draw.randrange(4):
        case 0:
            return content[:at]
        case 1:
            return content[:at] + bytes([draw.randrange(256)]) + content[at + 1 :]
        case 2:
            return content[:at] + draw.randbytes(8) + content[at:]
        case _:
            return draw.randbytes(draw.randrange(64))


def damaged(name: str, content: bytes, draw: random.Random) -> bytes:
    if name.endswith(".json") and draw.random() < 0.7:
        return _damaged_json(content, draw)
    return _damaged_bytes(content, draw)


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, Ledger, Findings]:
    path = tmp_path_factory.mktemp("fuzz") / "hard.yaml"
    return finished(write_study(path, "Is hard better?", ["B1", "B2", "B0"], ["H1", "H2", "H3"]))


@pytest.fixture(scope="module")
def members(held: tuple[Plan, Ledger, Findings]) -> dict[str, bytes]:
    plan, ledger, findings = held
    path = plan.study.path.with_name("hard.passport")
    write_passport(path, plan, ledger, with_distributions(findings, ledger))
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _verify_damaged(members: dict[str, bytes], seed: int) -> None:
    """One to three members damaged; sealed again half of the time, as a forger would. Sometimes the zip itself."""
    draw, content = random.Random(seed), dict(members)
    for name in draw.sample(sorted(content), draw.randint(1, 3)):
        content[name] = damaged(name, content[name], draw)
    if draw.random() < 0.5:
        _reseal(content)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "damaged")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, one in content.items():
                archive.writestr(name, one)
        if draw.random() < 0.2:
            path.write_bytes(_damaged_bytes(path.read_bytes(), draw))
        try:
            verify(path)
        except StudyError as error:
            clean(error)


def _reseal(content: dict[str, bytes]) -> None:
    import hashlib

    for seal in [name for name in content if name.endswith("seal.json")]:
        place = seal.removesuffix("seal.json")
        own = {name: one for name, one in content.items() if name.startswith(place) and name != seal}
        digests = {name.removeprefix(place): hashlib.sha256(one).hexdigest() for name, one in own.items()}
        content[seal] = json.dumps(digests).encode()


quick, thorough = both(20, 3000)


@quick
@given(seed=st.integers(0, 2**32))
def test_a_damaged_passport(members: dict[str, bytes], seed: int) -> None:
    _verify_damaged(members, seed)


@pytest.mark.long
@pytest.mark.timeout(LONG_SECONDS)
@thorough
@given(seed=st.integers(0, 2**32))
def test_many_damaged_passports(members: dict[str, bytes], seed: int) -> None:
    _verify_damaged(members, seed)


# Entries of a ledger


def _change_a_file(place: Path, draw: random.Random) -> None:
    place.write_bytes(damaged(place.name, place.read_bytes(), draw))


def _swap(place: Path, draw: random.Random) -> None:
    other = draw.choice([path for path in place.parents[1].glob(f"*/{place.name}") if path != place] or [place])
    shutil.copy(other, place)


def _folder_instead(place: Path, draw: random.Random) -> None:
    place.unlink()
    place.mkdir()


def _file_instead_of_the_entry(place: Path, draw: random.Random) -> None:
    shutil.rmtree(place.parent)
    place.parent.write_bytes(b"")


def _link_instead(place: Path, draw: random.Random) -> None:
    place.unlink()
    place.symlink_to("/nowhere")


DAMAGE: list[Callable[[Path, random.Random], None]] = [
    _change_a_file,
    _change_a_file,
    _change_a_file,
    _swap,
    _folder_instead,
    _link_instead,
    _file_instead_of_the_entry,
    lambda place, draw: place.unlink(),
    lambda place, draw: place.write_bytes(b""),
    lambda place, draw: (place.parent / ".DS_Store").write_bytes(b"\x00"),
    lambda place, draw: (place.parents[1] / ".nfs0001").write_bytes(b"\x00"),
]


def _judge_damaged(held: tuple[Plan, Ledger, Findings], seed: int) -> None:
    """A ledger with one damage is judged as before, or refused in words: no figure changes unseen."""
    draw, (plan, ledger, findings) = random.Random(seed), held
    with tempfile.TemporaryDirectory() as folder:
        copy = Ledger(shutil.copytree(ledger.url, Path(folder, "ledger")))
        files = sorted(
            path for entry in copy.entries() for path in Path(copy.url, entry).iterdir() if path.is_file()
        )
        draw.choice(DAMAGE)(draw.choice(files), draw)
        try:
            again = find(plan.study, plan.runs, copy)
        except StudyError as error:
            clean(error)
        else:
            assert _judged(again) == _judged(findings)


def _judged(findings: Findings) -> Any:
    """All but when and where, and what is left out where an entry is gone."""
    told = plain(findings)
    return [finding["verdict"] for finding in told["findings"]], told["arms"], told["metrics"]


quick, thorough = both(30, 5000)


@quick
@given(seed=st.integers(0, 2**32))
def test_a_damaged_entry(held: tuple[Plan, Ledger, Findings], seed: int) -> None:
    _judge_damaged(held, seed)


@pytest.mark.long
@pytest.mark.timeout(LONG_SECONDS)
@thorough
@given(seed=st.integers(0, 2**32))
def test_many_damaged_entries(held: tuple[Plan, Ledger, Findings], seed: int) -> None:
    _judge_damaged(held, seed)
