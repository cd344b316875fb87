"""A passport holds what the study's ledger held, and no forged, damaged or overgrown file is taken for one."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import shutil
import subprocess
import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluators.metrics.scores import Score
from orchestration.commands.cli import main
from orchestration.ledger.entries.layout import ITEMS
from orchestration.ledger.ledger import Ledger
from orchestration.ledger.notes import LedgerError
from orchestration.plan.plan import Facts, Plan, plan
from orchestration.reading.read_study import read_study
from orchestration.study.errors import StudyError
from orchestration.study.names import printable
from orchestration.verdicts import unpacking
from orchestration.verdicts.distributions import with_distributions
from orchestration.verdicts.find import find
from orchestration.verdicts.findings import Findings
from orchestration.verdicts.growing import with_another_seed
from orchestration.verdicts.passport import differing, verify, write_passport
from tests.named_study import RECALL, STRESS, finish, finished, write_study
from tests.results import finish as finish_run

Members = dict[str, bytes]
Change = Callable[[Members], None]


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, Ledger, Findings]:
    path = tmp_path_factory.mktemp("passport") / "hard.yaml"
    return finished(write_study(path, "Is hard better?", ["B1", "B2", "B0"], ["H1", "H2", "H3"]))


@pytest.fixture(scope="module")
def passport(held: tuple[Plan, Ledger, Findings]) -> Path:
    plan, ledger, findings = held
    path = plan.study.path.with_name("hard.passport")
    write_passport(path, plan, ledger, with_distributions(findings, ledger))
    return path


def members_of(passport: Path) -> Members:
    with zipfile.ZipFile(passport) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(path: Path, members: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def edited(content: bytes, edit: Callable[[Any], Any]) -> bytes:
    value = json.loads(content)
    changed = edit(value)
    return json.dumps(value if changed is None else changed).encode()


def test_an_honest_passport(passport: Path, held: tuple[Plan, Ledger, Findings]) -> None:
    plan, ledger, _ = held
    done = verify(passport)
    assert done.differences == ()
    printed: list[str] = []
    json.loads(members_of(passport)["findings.json"], parse_float=printed.append)
    assert done.figures == len(printed) > 100
    assert done.sha256 == hashlib.sha256(passport.read_bytes()).hexdigest()
    declaration = ledger.declared("hard")
    assert declaration is not None
    assert done.declared == declaration.digest
    assert done.runs == {"finished": len(plan.runs), "failed": 0, "missing": 0}
    assert done.unsealed == 0


def test_every_entry_travels_with_its_seal_and_without_its_model(passport: Path) -> None:
    names = [name.split("/") for name in members_of(passport) if name.startswith("ledger/")]
    entries = {entry for _, entry, _ in names}
    assert len(entries) == 5 * 3  # five runs, each a training and scores on two tasks
    assert {entry for _, entry, file in names if file == "seal.json"} == entries


def _reseal(members: Members, entry: str) -> None:
    """What a forger does who knows of seals."""
    place = f"ledger/{entry}/"
    digests = {
        name.removeprefix(place): hashlib.sha256(content).hexdigest()
        for name, content in members.items()
        if name.startswith(place) and not name.endswith("seal.json")
    }
    members[f"{place}seal.json"] = json.dumps(digests).encode()


def _entries(members: Members, arm: str, task: str | None = None) -> list[str]:
    specs = {
        name.split("/")[1]: json.loads(content) for name, content in members.items() if name.endswith("spec.json")
    }
    return [entry for entry, spec in specs.items() if spec["arm"] == arm and spec.get("task") == task]


def _swap_arms(members: Members) -> None:
    """The treatment's runs as the control's and the other way round, in everything that was printed."""
    text = (
        members["findings.json"]
        .decode()
        .replace('"arm": "B1"', '"arm": "?"')
        .replace('"arm": "B2"', '"arm": "B1"')
    )
    members["findings.json"] = text.replace('"arm": "?"', '"arm": "B2"').encode()


def _drop_a_seed(members: Members) -> None:
    """The worst seed, and every word of it."""
    findings = json.loads(members["findings.json"])
    dropped = [row["id"] for row in findings["runs"] if row["seed"] == 1]
    findings["runs"] = [row for row in findings["runs"] if row["seed"] != 1]
    findings["seeds"] = [0]
    members["findings.json"] = json.dumps(findings).encode()
    for name in [name for name in members if name.startswith("ledger/") and name.split("/")[1][:16] in dropped]:
        del members[name]


def _other_value(members: Members) -> None:
    entry = _entries(members, "B1", "stress")[0]
    place = f"ledger/{entry}/result.json"
    members[place] = edited(members[place], lambda body: body["metrics"]["stress/negate/auc"].update(value=0.99))
    _reseal(members, entry)


def _other_direction(members: Members) -> None:
    entry = _entries(members, "B1", "stress")[0]
    place = f"ledger/{entry}/result.json"
    turned = {"larger_is_better": False}
    members[place] = edited(members[place], lambda body: body["metrics"]["stress/negate/auc"].update(turned))
    _reseal(members, entry)


def _turn_a_metric(members: Members) -> None:
    entry = _entries(members, "B1", "t2d")[0]
    place = f"ledger/{entry}/scores.parquet"
    table = pq.read_table(io.BytesIO(members[place]))
    values = pa.array([1 - value for value in table["value"].to_pylist()])
    out = io.BytesIO()
    pq.write_table(table.set_column(3, "value", values), out)
    members[place] = out.getvalue()
    _reseal(members, entry)


def _other_aggregate(members: Members) -> None:
    entry = _entries(members, "B1", "t2d")[0]
    place = f"ledger/{entry}/result.json"
    members[place] = edited(members[place], lambda body: body["metrics"][RECALL].update(aggregate="auc"))
    _reseal(members, entry)


def _entry_twice(members: Members) -> None:
    """An entry of another run than any of the study's, under a name of its own."""
    (entry,) = _entries(members, "B0")
    for name in [name for name in members if name.startswith(f"ledger/{entry}/")]:
        members[name.replace(entry, "0" * 16)] = members[name]


def _other_p(members: Members) -> None:
    members["findings.json"] = edited(
        members["findings.json"], lambda found: found["findings"][1]["verdict"].update(p=0.001)
    )


def _fewer_claims(members: Members) -> None:
    members["findings.json"] = edited(members["findings.json"], lambda found: found["findings"].__delitem__(-1))


FORGERIES: dict[str, tuple[Change, str]] = {
    "swapped arms": (_swap_arms, "arm"),
    "a dropped seed": (_drop_a_seed, "runs"),
    "another value, resealed": (_other_value, "stress/negate/auc"),
    "another direction, resealed": (_other_direction, "stress/negate/auc: larger_is_better"),
    "another p": (_other_p, "findings[H2].verdict.p"),
    "a dropped claim": (_fewer_claims, "findings"),
    "an entry of another run": (_entry_twice, "ledger/0000000000000000"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forgery_differs(forgery: str, passport: Path, tmp_path: Path) -> None:
    change, says = FORGERIES[forgery]
    members = members_of(passport)
    change(members)
    done = verify(packed(tmp_path / "forged", members))
    assert any(says in place for place, _, _ in done.differences), done.differences


def test_a_figure_that_is_no_number_is_written_as_text(tmp_path: Path) -> None:
    """JSON has no nan; another reader than Python's would refuse the file."""
    study = read_study(
        write_study(tmp_path / "hard.yaml", "Is hard better?", ["B1", "B2", "B0"], ["H1", "H2", "H3"])
    )
    ledger, tasks = Ledger(tmp_path / "ledger"), dict.fromkeys(study.evaluate, "7" * 16)
    asked = plan(study, Facts(backbones={"tiny": "s" * 64}, corpus="c" * 64, tasks=tasks, precision="fp32"))
    for run in asked.runs:
        finish_run(ledger, run, [Score(metric=RECALL, value=0.5), Score(metric=STRESS, value=math.nan)])
    findings = find(study, asked.runs, ledger)
    write_passport(tmp_path / "passport", asked, ledger, findings)
    read = partial(json.loads, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    printed = read(members_of(tmp_path / "passport")["findings.json"])
    assert [row["metrics"] for row in printed["runs"]] == [{RECALL: 0.5, STRESS: "nan"}] * len(asked.runs)
    assert verify(tmp_path / "passport").differences == ()


def test_numbers_agree_to_twelve_digits() -> None:
    """Processors may sum in another order; whoever changes a figure changes more."""
    assert [*differing("", {"p": [0.1 + 0.2]}, {"p": [0.3]})] == []
    changed = 0.3 * (1 + 1e-11)
    assert [*differing("", {"p": [0.3]}, {"p": [changed]})] == [("p[0]", 0.3, changed)]


def test_an_arm_may_be_called_as_a_place_and_is_compared_all_the_same(tmp_path: Path) -> None:
    """Where a ledger lies may differ; what an arm of that name sets may not."""
    path = write_study(
        tmp_path / "hard.yaml", "Is hard better?", ["ledger", "location", "created"], ["H1", "H2", "H3"]
    )
    plan, ledger, findings = finished(path)
    write_passport(tmp_path / "honest", plan, ledger, with_distributions(findings, ledger))
    members = members_of(tmp_path / "honest")
    members["findings.json"] = edited(
        members["findings.json"], lambda told: told["arms"]["ledger"].update(learning_rate=1.0)
    )
    done = verify(packed(tmp_path / "forged", members))
    assert [place for place, _, _ in done.differences] == ["arms.ledger.learning_rate"]
    assert verify(tmp_path / "honest").differences == ()


def _two_figures_of_one_name(members: Members) -> None:
    """Whoever reads the text sees the first, Python the last."""
    text = members["findings.json"].decode()
    members["findings.json"] = text.replace('"delta_mean":', '"delta_mean": 0.9, "delta_mean":', 1).encode()


def _two_figures_in_an_entry(members: Members) -> None:
    entry = _entries(members, "B1", "stress")[0]
    place = f"ledger/{entry}/result.json"
    members[place] = members[place].replace(b'"value":', b'"value": 0.99, "value":', 1)
    _reseal(members, entry)


def _deep(members: Members) -> None:
    members["findings.json"] = b"[" * 100_000


def _deep_within_json(members: Members) -> None:
    members["findings.json"] = b"[" * 100 + b"]" * 100


def _many_rows(members: Members) -> None:
    entry = _entries(members, "B1", "t2d")[0]
    out, count = io.BytesIO(), unpacking.ROWS + 1
    dictionary = pa.DictionaryArray.from_arrays(pa.nulls(count, pa.int32()).fill_null(0), ["x"])
    zeros = pa.nulls(count, pa.float64()).fill_null(0.0)
    pq.write_table(pa.table([dictionary, dictionary, dictionary, zeros, zeros], names=ITEMS.names), out)
    members[f"ledger/{entry}/scores.parquet"] = out.getvalue()


def _long_names(members: Members) -> None:
    """Less than a megabyte that would be 10 GB of names."""
    entry = _entries(members, "B1", "t2d")[0]
    out, count = io.BytesIO(), 10_000
    metric = pa.DictionaryArray.from_arrays(pa.nulls(count, pa.int32()).fill_null(0), ["x"])
    long = pa.DictionaryArray.from_arrays(pa.nulls(count, pa.int32()).fill_null(0), ["x" * 10**6])
    zeros = pa.nulls(count, pa.float64()).fill_null(0.0)
    pq.write_table(pa.table([metric, long, metric, zeros, zeros], names=ITEMS.names), out)
    members[f"ledger/{entry}/scores.parquet"] = out.getvalue()


def _lacks_a_column(members: Members) -> None:
    place = f"ledger/{_entries(members, 'B1', 't2d')[0]}/scores.parquet"
    table = pq.read_table(io.BytesIO(members[place]))
    out = io.BytesIO()
    pq.write_table(table.drop_columns(["group_id"]), out)
    members[place] = out.getvalue()


def _deep_in_objects(members: Members) -> None:
    members["findings.json"] = b'{"a":' * 100 + b"1" + b"}" * 100


def _bombs(members: Members) -> None:
    members["findings.json"] = b" " * (unpacking.JSON_BYTES + 1)


def _member(name: str, content: bytes = b"x") -> Change:
    return lambda members: members.update({name: content})


def _header(**fields: Any) -> Change:
    return lambda members: members.update(
        {"passport.json": edited(members["passport.json"], lambda h: h.update(fields))}
    )


def _without(name: str) -> Change:
    return lambda members: members.__delitem__(name)


def _precision(members: Members) -> None:
    members["passport.json"] = edited(members["passport.json"], lambda h: h["facts"].update(precision="fp8"))


def _repeat(**other: str) -> Change:
    """A run of the study as repeated, but for these fields."""

    def change(members: Members) -> None:
        (entry,) = _entries(members, "B0")
        told = {"run": entry, "label": "B0", "outcome": "same bits", "metric": "", "difference": 0.0}
        members["repeats.json"] = json.dumps([told | other]).encode()

    return change


def _renames_a_column(members: Members) -> None:
    place = f"ledger/{_entries(members, 'B1', 't2d')[0]}/scores.parquet"
    table, out = pq.read_table(io.BytesIO(members[place])), io.BytesIO()
    pq.write_table(table.rename_columns([*ITEMS.names[:-1], "silver"]), out)
    members[place] = out.getvalue()


def _column(name: str, make: Callable[[int], pa.Array]) -> Change:
    """A table of items with another column of this name."""

    def change(members: Members) -> None:
        place = f"ledger/{_entries(members, 'B1', 't2d')[0]}/scores.parquet"
        table, out = pq.read_table(io.BytesIO(members[place])), io.BytesIO()
        pq.write_table(table.set_column(table.column_names.index(name), name, make(len(table))), out)
        members[place] = out.getvalue()

    return change


def _two_headers(members: Members) -> None:
    members["passport.json"] = members["passport.json"].replace(b'"study":', b'"study": "other", "study":', 1)


def _unsealed(members: Members) -> None:
    del members[f"ledger/{_entries(members, 'B1', 't2d')[0]}/seal.json"]


def _torn(members: Members) -> None:
    place = f"ledger/{_entries(members, 'B1', 't2d')[0]}/scores.parquet"
    members[place] = members[place][:-1] + b"?"


REFUSED: dict[str, tuple[Change, str]] = {
    "an unknown member": (_member("notes.txt"), "it holds notes.txt\n  accepted: the members that a passport has"),
    "a model": (_member(f"ledger/{'a' * 16}/model/model.safetensors"), "it holds ledger/"),
    "a place outside": (_member("../outside"), "it holds ../outside"),
    "an absolute place": (_member("/tmp/outside"), "it holds /tmp/outside"),
    "another study's file": (_member("other.yaml"), "it holds other.yaml"),
    "a folder": (_member("ledger/"), "ledger/ is no plain file"),
    "an escape in a name": (_member("\x1b[31m"), "it holds \\x1b[31m"),
    "a study outside": (_header(study="../hard"), "study ../hard is not a name"),
    "a study that is no text": (_header(study=7), "passport.json names no study"),
    "another format": (_header(format=1), "it has the format 1"),
    "an escape in the format": (_header(format="\x1b[2J"), "it has the format \\x1b[2J"),
    "facts of another shape": (_header(facts=[]), "it is damaged"),
    "facts without a task": (_header(facts={"backbones": {}, "corpus": "", "tasks": {}, "precision": "fp32", "former": ""}), "facts.backbones lacks tiny"),
    "facts of another precision": (_precision, "are wanted, precision fp32 or bf16"),
    "a failure of another run": (_member("failures.json", b'[{"id": "0", "attempt": 1, "error": ""}]'), "it is damaged (KeyError"),
    "a repeat of another run": (_repeat(run="../../x"), "of a run that the study does not ask for"),
    "a repeat under another label": (_repeat(label="B1 seed 0"), "of a run that the study does not ask for"),
    "no header": (_without("passport.json"), "it lacks passport.json"),
    "a header that is no object": (_member("passport.json", b"[]"), "passport.json names no study"),
    "no findings": (_without("findings.json"), "it lacks findings.json"),
    "no study": (_without("hard.yaml"), "hard.yaml: no such file"),
    "JSON without end": (_deep, "findings.json is not JSON"),
    "JSON beyond any depth": (_deep_within_json, "findings.json is nested more than 30 deep"),
    "objects beyond any depth": (_deep_in_objects, "findings.json is nested more than 30 deep"),
    "JSON beyond any size": (_bombs, "findings.json unpacks to more than"),
    "rows beyond count": (_many_rows, "rows\n  accepted: at most 2,000,000"),
    "names beyond any memory": (_long_names, "has 10,000,000,000 bytes"),
    "a table that lacks a column": (_lacks_a_column, "scores.parquet is not readable as parquet"),
    "a table with a column renamed": (_renames_a_column, "has other columns than metric, item_id"),
    "a table with numbers for names": (_column("item_id", lambda rows: pa.array(range(rows))), "is not readable as parquet (item_id is no column of texts)"),
    "a table with lists for names": (_column("group_id", lambda rows: pa.array([["a"]] * rows)), "is not readable as parquet"),
    "a table without a name": (_column("item_id", lambda rows: pa.nulls(rows, pa.string())), "scores.parquet"),
    "a broken seal": (_torn, "is not readable as parquet"),
    "a missing seal": (_unsealed, "seal.json: it is missing"),
    "two studies in the header": (_two_headers, "names 'study' twice"),
    "two figures of one name": (_two_figures_of_one_name, "findings.json is not JSON (names 'delta_mean' twice)"),
    "two figures of one name in an entry": (_two_figures_in_an_entry, "names 'value' twice"),
    "other items, resealed": (_turn_a_metric, "but its items give"),
    "items of another kind, resealed": (_other_aggregate, "t2d/recall@10 cannot be made of its items: auc compares"),
}  # fmt: skip


@pytest.mark.parametrize("damage", REFUSED)
def test_a_file_that_is_no_passport_is_refused_in_words(damage: str, passport: Path, tmp_path: Path) -> None:
    change, says = REFUSED[damage]
    members = members_of(passport)
    change(members)
    path = packed(tmp_path / "damaged", members)
    began = time.process_time()
    with pytest.raises(StudyError) as refused:
        verify(path)
    assert says in str(refused.value)
    assert "accepted:" in str(refused.value)
    assert time.process_time() - began < 5
    assert not (tmp_path / "outside").exists()


def _altered(name: str) -> Change:
    """Another byte in a file of an entry, which stays JSON."""

    def change(members: Members) -> None:
        place = f"ledger/{_entries(members, 'B0')[0]}/{name}"
        members[place] += b" "

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_altered("env.json"), "env.json is not as its seal says"),
        (_altered("spec.json"), "spec.json is not as its seal says"),
        (_altered("result.json"), "result.json is not as its seal says"),
        (_unsealed, "seal.json: it is missing"),
    ],
)
def test_an_altered_entry_is_told_by_its_member_of_the_passport(
    change: Change, said: str, passport: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the exit code of any other forgery. No folder is named that is gone, and nothing to do in a ledger."""
    members = members_of(passport)
    change(members)
    path = packed(tmp_path / "altered", members)
    assert main(["verify", str(path)]) == 1
    told = capsys.readouterr().err
    assert re.match(rf"{path}: no readable passport: ledger/\w+(\.\w+)?/{said}\n  accepted: a file as ", told), (
        told
    )
    assert "semray-passport-" not in told
    assert "set-aside" not in told
    assert main(["verify", str(path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {"altered": told.removesuffix("\n")}


def test_an_entry_of_a_later_semray_is_not_called_altered(
    passport: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    members = members_of(passport)
    (entry,) = _entries(members, "B0")
    place = f"ledger/{entry}/result.json"
    members[place] = edited(members[place], lambda body: body.update(format=3))
    _reseal(members, entry)
    path = packed(tmp_path / "later", members)
    assert main(["verify", str(path)]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"{path}: ledger/{entry}: a later semray wrote it, in format 3\n")
    assert "a newer semray reads it" in told


def test_an_enclosed_study_with_a_mistake_is_told_of_the_passport(
    passport: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    members = members_of(passport)
    members["hard.yaml"] = members["hard.yaml"].replace(b"family:", b"famly:")
    path = packed(tmp_path / "mistaken", members)
    assert main(["verify", str(path)]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"{path}: hard.yaml:")
    assert "semray-passport-" not in told


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_plain_file_is_not_waited_for(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "passport"
    make = {"pipe": os.mkfifo, "folder": os.mkdir, "device": lambda path: path.symlink_to("/dev/zero")}
    make[kind](place)
    with pytest.raises(StudyError, match="no readable passport: it is no plain file\n  accepted: "):
        verify(place)


def test_a_passport_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"hard\.passport: not found\n  accepted: a file that `semray report "):
        verify(tmp_path / "hard.passport")


def test_a_link_in_a_passport_is_refused(passport: Path, tmp_path: Path) -> None:
    path = shutil.copy(passport, tmp_path / "linked")
    with zipfile.ZipFile(path, "a") as archive:
        link = zipfile.ZipInfo("declared.json.link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(StudyError, match="is no plain file"):
        verify(Path(path))


def test_a_member_that_is_there_twice_is_refused(passport: Path, tmp_path: Path) -> None:
    path = shutil.copy(passport, tmp_path / "doubled")
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("findings.json", members_of(passport)["findings.json"])
    with pytest.raises(StudyError, match=r"it holds findings\.json twice"):
        verify(Path(path))


@pytest.mark.parametrize(
    ("limit", "most", "says"),
    [
        ("MEMBERS", 10, "members\n  accepted: at most 10$"),
        ("BYTES", 4000, "it unpacks to more than "),
        ("JSON_BYTES", 10, "passport.json unpacks to more than 10 bytes"),
        ("ROWS", 3, r"/\w+\.parquet has \d+ rows\n  accepted: at most 3$"),
        ("TABLE_BYTES", 10, r"/\w+\.parquet unpacks to more than 10 bytes"),
    ],
)
def test_every_limit_holds(
    limit: str, most: int, says: str, passport: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, limit, most)
    with pytest.raises(StudyError, match=says):
        verify(passport)


def test_a_size_that_lies_is_found_while_unpacking(
    passport: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "BYTES", 4000)
    content = bytearray(passport.read_bytes())
    at = content.rindex(b"PK\x01\x02")
    while at >= 0:  # each member says in the directory that it is empty
        content[at + 24 : at + 28] = bytes(4)
        at = content.rfind(b"PK\x01\x02", 0, at)
    lying = tmp_path / "lying"
    lying.write_bytes(bytes(content))
    with pytest.raises(StudyError, match="no readable passport"):
        verify(lying)


@pytest.mark.parametrize("name", ["result.json", "scores.parquet"])
def test_a_link_or_a_folder_of_an_entry_is_never_packed(
    name: str, held: tuple[Plan, Ledger, Findings], tmp_path: Path
) -> None:
    plan, ledger, findings = held
    copy = Ledger(shutil.copytree(ledger.url, tmp_path / "ledger"))
    token = tmp_path / "token"
    token.write_text("secret")
    entry = Path(copy.url) / plan.runs[-1].entry("t2d")
    (entry / "note").symlink_to(token)
    (entry / "folder").mkdir()
    (entry / "folder" / "token").write_text("secret")
    write_passport(tmp_path / "clean", plan, copy, findings)
    assert not any(b"secret" in content for content in members_of(tmp_path / "clean").values())
    shutil.copy(entry / name, token)
    (entry / name).unlink()
    (entry / name).symlink_to(token)
    with pytest.raises(LedgerError, match="it is no plain file"):
        write_passport(tmp_path / "linked", plan, copy, findings)
    assert not [file.name for file in tmp_path.iterdir() if "linked" in file.name]  # nor a part of it


def test_seeds_that_were_added_and_runs_that_failed_are_derived_again(tmp_path: Path) -> None:
    """Two seeds, then one that decides nothing either, then one whose runs failed."""
    path = write_study(tmp_path / "growing.yaml", "Is hard better?", ["B1", "B2", "B0"], ["H1", "H2", "H3"])
    path.write_text(path.read_text().replace("seeds: 2", "seeds: {start: 2, max: 4}"))
    plan, ledger, findings = finished(path)
    third = with_another_seed(plan, findings)
    assert third is not None
    finish(ledger, third.runs[len(plan.runs) :])
    fourth = with_another_seed(third, find(plan.study, third.runs, ledger))
    assert fourth is not None
    failed = fourth.runs[len(third.runs) :]
    for run in failed:
        ledger.fail(run, 1, "loss is nan", "")
    grown = replace(fourth, finished=ledger.entries())
    findings = with_distributions(find(plan.study, grown.runs, ledger), ledger)
    write_passport(tmp_path / "growing.passport", grown, ledger, findings)
    done = verify(tmp_path / "growing.passport")
    assert done.differences == ()
    assert done.runs == {"finished": len(third.runs), "failed": len(failed), "missing": 0}


# The command


def test_the_command_says_what_was_found(passport: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = verify(passport)
    assert main(["verify", str(passport), "--declared", done.declared]) == 0
    said = capsys.readouterr().out
    for line in (
        "all agree",
        "runs      5 that the study asks for: 5 finished",
        f"declared  {done.declared}",
        f"sha256    {done.sha256}",
    ):
        assert line in said
    assert main(["verify", str(passport), "--declared", "0" * 64]) == 1
    assert "which was published" in capsys.readouterr().err


def test_a_difference_cannot_act_on_the_terminal(
    passport: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    members = members_of(passport)
    members["findings.json"] = edited(
        members["findings.json"], lambda found: found.update(question="\x1b[2J" + "x" * 9999)
    )
    assert main(["verify", str(packed(tmp_path / "loud", members))]) == 1
    said = capsys.readouterr().out
    assert printable(said, keep="\n") == said
    assert max(map(len, said.splitlines())) < 500


def test_a_forged_figure_that_is_no_number_is_told_to_programs_as_none(
    passport: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python reads the NaN that a forger wrote; the output for programs holds none."""
    members = members_of(passport)
    members["findings.json"] = edited(
        members["findings.json"], lambda found: found["findings"][0]["verdict"].update(p=math.nan)
    )
    assert main(["verify", str(packed(tmp_path / "forged", members)), "--json"]) == 1
    said = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert [printed for place, printed, _ in said["differences"] if place.endswith("verdict.p")] == [None]


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="needs OpenSSH's ssh-keygen")
def test_a_signature(
    passport: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from orchestration.verdicts.signature import sign

    signed = Path(shutil.copy(passport, tmp_path / "signed"))
    for who in ("ada", "eve"):
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", who, "-f", str(tmp_path / who)]
        subprocess.run(make, check=True, stdin=subprocess.DEVNULL)
    (tmp_path / "signers").write_text(f"ada {(tmp_path / 'ada.pub').read_text()}")
    asked = ["verify", str(signed), "--signers", str(tmp_path / "signers"), "--signed-by"]
    assert main([*asked, "ada"]) == 2
    assert "signed.sig: not found\n  accepted: the signature beside" in capsys.readouterr().err
    assert sign(signed, tmp_path / "ada") == tmp_path / "signed.sig"
    assert main([*asked, "ada"]) == 0
    assert "signed by ada" in capsys.readouterr().out
    assert main([*asked, "eve"]) == 2
    sign(signed, tmp_path / "eve")
    assert main([*asked, "ada"]) == 2
    assert "is not a signature of ada" in capsys.readouterr().err
    sign(signed, tmp_path / "ada")
    with zipfile.ZipFile(signed, "a") as archive:
        archive.comment = b"changed"
    assert main([*asked, "ada"]) == 2
    with pytest.raises(StudyError, match=r"nobody: cannot sign: .*No such file or directory"):
        sign(signed, tmp_path / "nobody")
    assert main(["verify", str(signed), "--signed-by", "ada"]) == 2
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main([*asked, "ada"]) == 2
    assert "ssh-keygen: not found\n  accepted: OpenSSH" in capsys.readouterr().err
    (tmp_path / "signers").unlink()
    assert main([*asked, "ada"]) == 2
    assert "signers: not found\n  accepted: a file of allowed signers" in capsys.readouterr().err
