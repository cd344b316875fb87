"""Entries as evidence: no file and no figure of a sealed one changes without its name, run and remedy being told."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluators.metrics.scores import Score
from orchestration.commands.cli import main
from orchestration.ledger.ledger import Ledger
from orchestration.ledger.notes import LedgerError
from orchestration.plan.plan import Facts, plan
from orchestration.reading.read_study import read_study
from orchestration.study.run import Run
from orchestration.verdicts.find import find
from tests.results import finish
from trainers.engine.world import Progress

FORMER = (
    Path(__file__).parent / "former"
)  # as semray of 21 November 2026 wrote it, before training and scores parted
FACTS = Facts(
    backbones={"tiny": "b" * 16},
    corpus="other rows",
    tasks={"t2d": "t", "stress": "s"},
    precision="fp32",
    former="4f1c0000a1b2c3d4",
)
TRAINING = ("spec.json", "result.json", "env.json", "curve.parquet", "seal.json", "model/part/model.safetensors")
SCORES = ("spec.json", "result.json", "env.json", "scores.parquet", "seal.json")


def make_run(seed: int) -> Run:
    return Run(
        family="concept",
        arm="B1",
        backbone="tiny",
        seed=seed,
        settings={"steps": 2, "learning_rate": 0.1},
        data={"lexicons": ["wordnet"]},
        tasks={"t2d": "rows"},
        defining={"steps": 2},
        backbone_fingerprint="b",
        corpus_fingerprint="c",
    )


def save_model(folder: Path) -> None:
    from safetensors.numpy import save_file

    (folder / "part").mkdir()
    save_file({"weight": np.arange(4, dtype=np.float32)}, str(folder / "part" / "model.safetensors"))


def filled(place: Path) -> tuple[Ledger, list[Run]]:
    """Two runs, each with a curve, a model and items."""
    ledger, runs = Ledger(place), [make_run(0), make_run(1)]
    for run in runs:
        values = np.array([0.5, 1.0]) / (1 + (run.seed or 0))
        hits = Score(
            metric="t2d/recall@10", value=values.mean(), aggregate="mean", item_ids=["a", "b"], values=values
        )
        curve = [Progress(step=1, steps=2, loss=2.0), Progress(step=2, steps=2, loss=1.0)]
        finish(ledger, run, [hits], curve=curve, seconds={"train": 1.0}, save_model=save_model)
    return ledger, runs


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("intact") / "ledger"
    filled(place)
    return place


@pytest.fixture
def ledger(intact: Path, tmp_path: Path) -> Ledger:
    shutil.copytree(intact, tmp_path / "ledger")
    return Ledger(tmp_path / "ledger")


def use(ledger: Ledger, run: Run) -> None:
    """Everything that is ever asked of a run."""
    ledger.record(run)
    ledger.curve(run)
    ledger.model(run)
    for entry in run.entries:
        ledger.files(entry)
    ledger.items(run.entry("t2d"))


def named(ledger: Ledger, entry: str, file: str) -> None:
    """The damage is told by every way of asking, in one message: file, run, remedy."""
    run = make_run(0)
    with pytest.raises(LedgerError) as told:
        use(ledger, run)
    for message in (str(told.value), ledger.audit(entry)):
        assert message is not None
        first, second = message.splitlines()
        assert f"{ledger.url}/{entry}/{file}: " in first
        assert f"run {run.id}" in second
        assert f"semray set-aside {entry}" in second


def entry_of(run: Run, kind: str) -> str:
    return run.id if kind == "training" else run.entry("t2d")


def files() -> Iterator[tuple[str, str]]:
    yield from (("training", file) for file in TRAINING)
    yield from (("scores", file) for file in SCORES)


def test_the_list_of_files_is_complete(intact: Path) -> None:
    for kind, names in (("training", TRAINING), ("scores", SCORES)):
        folder = intact / entry_of(make_run(0), kind)
        assert {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()} == set(names)


def test_nothing_is_said_of_an_intact_ledger(ledger: Ledger) -> None:
    for run in (make_run(0), make_run(1)):
        use(ledger, run)
        assert ledger.record(run).sealed
        assert [ledger.audit(entry) for entry in run.entries] == [None, None]


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0x01
    file.write_bytes(content)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def of_the_other_run(file: Path) -> None:
    """The two entries' files change places."""
    mine, other = make_run(0), make_run(1)
    ours = next(part for part in file.parts if part in mine.entries)
    twin = Path(str(file).replace(ours, other.entries[mine.entries.index(ours)]))
    content = file.read_bytes()
    file.write_bytes(twin.read_bytes() if twin.read_bytes() != content else content + b"\n")
    twin.write_bytes(content)


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def a_link(file: Path) -> None:
    file.rename(file.with_name(".elsewhere"))
    file.symlink_to(".elsewhere")


@pytest.mark.timeout(20)  # a pipe without a writer must not be waited for
@pytest.mark.parametrize("damage", [flip, cut, empty, Path.unlink, of_the_other_run, a_folder, a_pipe, a_link])
@pytest.mark.parametrize(("kind", "file"), [*files()])
def test_every_file_is_sealed(ledger: Ledger, kind: str, file: str, damage: Callable[[Path], None]) -> None:
    entry = entry_of(make_run(0), kind)
    place = Path(ledger.url) / entry / file
    damage(place)
    if file == "seal.json" and damage in (
        flip,
        of_the_other_run,
    ):  # the seal is intact, in form: what it holds is not
        with pytest.raises(LedgerError, match=rf"{entry}/.*: .*\n  accepted: .*semray set-aside {entry}"):
            use(ledger, make_run(0))
        assert f"{entry}/" in (ledger.audit(entry) or "")
        return
    named(ledger, entry, file)


def fields(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value of a JSON text."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in below:
        yield (*path, name)
        yield from fields(part, (*path, name))


def other(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return value + "x"
        case None:
            return 1
    return type(value)() if value else "x"


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The value with another part, or without it."""
    if not path:
        return new
    copied = dict(value) if isinstance(value, dict) else dict(enumerate(value))
    copied[path[0]] = put(copied[path[0]], path[1:], new)
    return copied if isinstance(value, dict) else [copied[place] for place in sorted(copied)]


@pytest.mark.parametrize("file", ["spec.json", "result.json", "env.json"])
@pytest.mark.parametrize("kind", ["training", "scores"])
def test_every_field_is_sealed(ledger: Ledger, kind: str, file: str) -> None:
    """Each changed, of another type, infinite: settings, seed and arm as well as each figure."""
    entry = entry_of(make_run(0), kind)
    place = Path(ledger.url) / entry / file
    intact = place.read_text()
    body = json.loads(intact)
    ways = [*fields(body)]
    assert len(ways) > 4
    for way in ways:
        value = body
        for name in way:
            value = value[name]
        for new in (other(value), [[]], float("inf")):
            place.write_text(json.dumps(put(body, way, new)))
            with pytest.raises(LedgerError, match=rf"{entry}/{file}: "):
                use(ledger, make_run(0))
            assert f"{entry}/{file}: " in (ledger.audit(entry) or "")
    place.write_text(intact)
    use(ledger, make_run(0))


def reseal(entry: Path) -> None:
    """What somebody does who can write the ledger and knows of seals."""
    from orchestration.ledger.seal import write_seal

    (entry / "seal.json").unlink()
    write_seal(entry)


REST = {"seconds": {}, "notes": {}, "attempt": 1}  # of a result.json, in which nothing else is wrong
WRONG: dict[str, tuple[str, str, str]] = {  # kind of entry, file, content that no run writes
    "no object": ("training", "result.json", "[]"),
    "deep": ("scores", "result.json", "[" * 100_000),
    "infinite": ("scores", "result.json", '{"metrics": {"t2d": {"value": Infinity}}}'),
    "too large": ("training", "result.json", '{"seconds": {}, "notes": {}, "attempt": 1e999}'),
    "too large a number": ("training", "result.json", '{"seconds": {"train": 1%s}}' % ("0" * 400)),
    "metrics a list": ("scores", "result.json", json.dumps({"metrics": [], **REST})),
    "seconds without end": ("training", "result.json", json.dumps({**REST, "seconds": {"train": "inf"}})),
    "a cost that is no number": ("training", "result.json", json.dumps({"cost": {"rows": "nan"}, **REST})),
    "an end that never was": ("training", "result.json", json.dumps({"ended": "inf", **REST})),
    **{
        what: ("scores", "result.json", json.dumps({"metrics": {"t2d": metric}, **REST}))
        for what, metric in (
            ("larger_is_better a word", {"value": 1, "aggregate": None, "larger_is_better": "yes"}),
            ("a figure that is a truth", {"value": True, "aggregate": None, "larger_is_better": True}),
            ("a figure that is a text", {"value": "0.5", "aggregate": None, "larger_is_better": True}),
            ("an unknown sum", {"value": 0.5, "aggregate": "mode", "larger_is_better": True}),
            ("a list of sums", {"value": 0.5, "aggregate": ["mean"], "larger_is_better": True}),
        )
    },
    **{
        what: ("scores", "result.json", f'{{"metrics": {{"t2d": {metric}}}, {json.dumps(REST)[1:]}')
        for what, metric in (
            ("a figure that is no JSON", '{"value": NaN, "aggregate": null, "larger_is_better": true}'),
            ("a figure too large", '{"value": 1e999, "aggregate": null, "larger_is_better": true}'),
            ("a figure given twice", '{"value": 1, "value": 2, "aggregate": null, "larger_is_better": true}'),
        )
    },
    "of no format": ("training", "result.json", '{"seconds": {}, "notes": {}, "attempt": 1, "format": 0}'),
    "no libraries": ("training", "env.json", "{}"),
    "a seed of words": ("training", "spec.json", '{"seed": {}}'),
    "no task": ("scores", "spec.json", "{}"),
    "tasks of before, of a wrong type": ("training", "spec.json", '{"evaluate": 5}'),
    "no text": ("training", "spec.json", '"\\ud800"'),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_no_run_writes_is_named_even_when_sealed(ledger: Ledger, case: str) -> None:
    kind, file, content = WRONG[case]
    entry = entry_of(make_run(0), kind)
    (Path(ledger.url) / entry / file).write_text(content)
    reseal(Path(ledger.url) / entry)
    named(ledger, entry, file)


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("training", "id", "0" * 16),
        ("scores", "id", "0" * 16),
        ("scores", "task", ["t2d"]),
        ("scores", "task", None),
        ("scores", "rows", {}),
        ("scores", "rows", None),
    ],
)
def test_a_definition_that_is_not_of_its_entry_is_named_even_when_sealed(
    ledger: Ledger, kind: str, field: str, value: object
) -> None:
    """One field alone is wrong."""
    entry = entry_of(make_run(0), kind)
    place = Path(ledger.url) / entry / "spec.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | {field: value}))
    reseal(place.parent)
    named(ledger, entry, "spec.json")


@pytest.mark.parametrize("kind", ["training", "scores"])
@pytest.mark.parametrize(
    "begins", ['"notes.txt": 5', '"result.json": "0"', '"../x": "0"', '"model//x": "0"', None]
)
def test_what_maps_no_files_to_digests_is_no_seal(ledger: Ledger, begins: str | None, kind: str) -> None:
    """Nor does what names a file twice, or one outside."""
    entry = entry_of(make_run(0), kind)
    seal = Path(ledger.url) / entry / "seal.json"
    seal.write_text("[]" if begins is None else f"{{{begins},{seal.read_text().removeprefix('{')}")
    named(ledger, entry, "seal.json")
    assert "it is no seal" in (ledger.audit(entry) or "")


@pytest.mark.parametrize("kind", ["training", "scores"])
def test_an_entry_of_a_later_semray_is_not_called_damaged(ledger: Ledger, kind: str) -> None:
    """Whatever its fields are by then: it is refused before they are looked at, and nothing is to be redone."""
    entry = Path(ledger.url) / entry_of(make_run(0), kind)
    for file, more in (("result.json", {"format": 3}), ("spec.json", {"settings": "elsewhere"})):
        (entry / file).write_text(json.dumps(json.loads((entry / file).read_text()) | more))
    reseal(entry)
    said = (
        f"{entry}: a later semray wrote it, in format 3\n"
        "  accepted: formats up to 2; nothing is wrong with the entry, a newer semray reads it"
    )
    with pytest.raises(LedgerError) as refused:
        ledger.training(entry.name) if kind == "training" else ledger.scores(entry.name)
    assert str(refused.value) == said


@pytest.mark.parametrize("kind", ["training", "scores"])
def test_who_looks_after_a_ledger_tells_what_a_later_semray_wrote_apart(
    ledger: Ledger, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody who reads that something is damaged should do it again, where a newer semray reads it."""
    entry = Path(ledger.url) / entry_of(make_run(0), kind)
    (entry / "result.json").write_text(json.dumps(json.loads((entry / "result.json").read_text()) | {"format": 3}))
    reseal(entry)

    def told(*words: str) -> tuple[int, str]:
        code = main([*words, "--ledger", ledger.url])
        return code, capsys.readouterr().out

    of_all = len(ledger.entries())
    code, said = told("audit")
    assert code == 1  # what was not looked at is not intact
    assert said == (
        f"{ledger.url}: {of_all - 1} sealed entries as their runs wrote them, 0 damaged\n"
        "not looked at: 1 that a later semray wrote; a newer semray reads them\n"
    )
    counts = json.loads(told("audit", "--json")[1])
    assert counts == {"sealed": of_all - 1, "unsealed": 0, "later": 1, "damaged": 0, "entries": {}}

    trained, runs = kind == "training", len(ledger.ids())
    code, said = told("ls")
    assert code == 0
    assert f"{ledger.url}: {runs - trained} runs, " in said
    assert ("not read: 1 that a later semray wrote; a newer semray reads them" in said) == trained
    assert "damaged" not in said
    found = json.loads(told("ls", "--json")[1])
    assert (found["damaged"], found["later"]) == ([], [entry.name] if trained else [])


def test_no_model_goes_of_an_entry_of_a_later_semray(ledger: Ledger) -> None:
    entry = Path(ledger.url) / make_run(0).id
    (entry / "result.json").write_text(json.dumps(json.loads((entry / "result.json").read_text()) | {"format": 3}))
    reseal(entry)
    before = {path: path.read_bytes() for path in entry.rglob("*") if path.is_file()}
    with pytest.raises(LedgerError, match="a newer semray reads it"):
        ledger.drop_model(make_run(0))
    assert {path: path.read_bytes() for path in entry.rglob("*") if path.is_file()} == before


def test_items_that_are_not_there_are_missed_even_when_sealed(ledger: Ledger) -> None:
    entry = make_run(0).entry("t2d")
    place = Path(ledger.url) / entry / "scores.parquet"
    pq.write_table(pq.read_table(place).slice(0, 0), place, write_page_checksum=True)
    reseal(place.parent)
    with pytest.raises(LedgerError, match=r"scores\.parquet: it lacks the items of t2d/recall@10\n  accepted: "):
        ledger.items(entry)
    assert "it lacks the items of t2d/recall@10" in (ledger.audit(entry) or "")


@pytest.mark.parametrize("figure", ["t2d/recall@10", "t2d/mrr"])
def test_items_of_which_no_figure_is_made_are_named_even_when_sealed(ledger: Ledger, figure: str) -> None:
    """Those of a figure that rests on none by its own word, and those of no figure at all."""
    entry = make_run(0).entry("t2d")
    place = Path(ledger.url) / entry
    body = json.loads((place / "result.json").read_text())
    body["metrics"] = {figure: body["metrics"]["t2d/recall@10"] | {"aggregate": None}}
    (place / "result.json").write_text(json.dumps(body))
    reseal(place)
    with pytest.raises(
        LedgerError, match=r"scores\.parquet: it holds items of t2d/recall@10, which .*\n  accepted: "
    ):
        ledger.items(entry)
    assert "it holds items of t2d/recall@10" in (ledger.audit(entry) or "")


def test_a_name_that_no_row_has_stands_for_no_items(ledger: Ledger) -> None:
    entry = make_run(0).entry("t2d")
    place = Path(ledger.url) / entry / "scores.parquet"
    table = pq.read_table(place)
    names = pa.DictionaryArray.from_arrays(pa.array([0] * len(table), pa.int32()), ["t2d/recall@10", "t2d/mrr"])
    pq.write_table(table.set_column(0, "metric", names), place, write_page_checksum=True)
    reseal(place.parent)
    assert len(pq.read_table(place)["metric"].chunk(0).dictionary) == 2
    assert ledger.items(entry)["metric"].unique().to_pylist() == ["t2d/recall@10"]


def test_items_are_held_against_the_seal_that_was_read_with_their_figures(ledger: Ledger) -> None:
    mine, other = (run.entry("t2d") for run in (make_run(0), make_run(1)))
    held = ledger.scores(mine)
    (Path(ledger.url) / mine / "seal.json").unlink()  # it is not read again
    assert ledger.items(mine, held)["value"].to_pylist() == [0.5, 1.0]
    shutil.copy(Path(ledger.url) / other / "scores.parquet", Path(ledger.url) / mine)
    with pytest.raises(LedgerError, match=r"scores\.parquet: it is not as the run wrote it"):
        ledger.items(mine, held)


def test_an_environment_that_names_no_libraries_is_told(ledger: Ledger) -> None:
    place = Path(ledger.url) / make_run(0).id / "env.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | {"libraries": ["torch"]}))
    reseal(place.parent)
    named(ledger, make_run(0).id, "env.json")


def test_another_run_s_whole_entry_is_no_entry(ledger: Ledger) -> None:
    mine, other_run = make_run(0), make_run(1)
    for ours, theirs in zip(mine.entries, other_run.entries, strict=True):
        shutil.rmtree(Path(ledger.url) / ours)
        shutil.copytree(Path(ledger.url) / theirs, Path(ledger.url) / ours)
        with pytest.raises(LedgerError, match=r"spec\.json: it describes another run"):
            ledger.training(ours) if ours == mine.id else ledger.scores(ours)


def test_a_file_more_in_a_model_is_named(ledger: Ledger) -> None:
    run = make_run(0)
    (Path(ledger.url) / run.id / "model" / "part" / "extra.safetensors").write_bytes(b"")
    named(ledger, run.id, "model/part/extra.safetensors")


def test_a_link_to_a_folder_in_an_entry_is_named(ledger: Ledger, tmp_path: Path) -> None:
    """Whatever lies behind it, it is not of the run."""
    run = make_run(0)
    (Path(ledger.url) / run.id / "model" / "more").symlink_to(tmp_path)
    with pytest.raises(LedgerError, match="model/more: it is not of the run"):
        ledger.model(run)
    assert "model/more: it is not of the run" in (ledger.audit(run.id) or "")


def test_a_model_that_a_person_deleted_is_named(ledger: Ledger) -> None:
    run = make_run(0)
    shutil.rmtree(Path(ledger.url) / run.id / "model")
    with pytest.raises(LedgerError, match=rf"{run.id}/model: it is missing\n  accepted: "):
        ledger.model(run)
    ledger.record(run)  # its figures are as they were
    assert "model/part/model.safetensors: it is missing" in (ledger.audit(run.id) or "")


IN_ITS_PLACE: dict[str, Callable[[Path], None]] = {
    "a file": lambda place: place.write_text("") and None,
    "a pipe": os.mkfifo,
    "a link to itself": lambda place: place.symlink_to(place),
    "a link to nothing": lambda place: place.symlink_to("/nowhere"),
}


@pytest.mark.parametrize("kind", ["training", "scores"])
@pytest.mark.parametrize("what", IN_ITS_PLACE)
def test_what_lies_in_an_entry_s_place_is_named(ledger: Ledger, kind: str, what: str) -> None:
    """It is not passed over as a run that is missing, which would be done again and could not be kept."""
    run = make_run(0)
    entry = entry_of(run, kind)
    shutil.rmtree(Path(ledger.url) / entry)
    IN_ITS_PLACE[what](Path(ledger.url) / entry)
    assert (ledger.has(entry), ledger.lacking(run)) == (True, ())
    unsealed = (kind, what) == ("training", "a link to nothing")  # as an entry of before may be, which has a spec
    named(ledger, entry, "spec.json" if unsealed else "seal.json")
    ledger.set_aside(entry)
    assert ledger.lacking(run) == (entry,)


@pytest.mark.parametrize("name", [".DS_Store", ".nfs000000000000", "._model", "Thumbs.db", "0123456789abcdef.tmp"])
def test_files_that_systems_and_killed_writers_leave_are_nobody_s(ledger: Ledger, name: str) -> None:
    run = make_run(0)
    for entry in run.entries:
        (Path(ledger.url) / entry / name).write_text("left")
    (Path(ledger.url) / run.id / "model" / name).write_text("left")
    (Path(ledger.url) / name).write_text("left")
    use(ledger, run)
    assert [ledger.audit(entry) for entry in run.entries] == [None, None]
    assert name not in ledger.files(run.id)


def test_a_damaged_entry_set_aside_is_done_again(ledger: Ledger) -> None:
    run = make_run(0)
    entry = run.entry("t2d")
    cut(Path(ledger.url) / entry / "scores.parquet")
    place = ledger.set_aside(entry)
    assert (Path(place) / "result.json").exists()
    assert ledger.lacking(run) == (entry,)


# Ledgers of before


@pytest.fixture
def former(tmp_path: Path) -> Ledger:
    shutil.copytree(FORMER, tmp_path / "former")
    return Ledger(tmp_path / "former")


def test_a_former_ledger_is_read(former: Ledger) -> None:
    """Its study needs nothing done again, and its report comes of what lies there."""
    study = read_study(FORMER / "study.yaml")
    runs = plan(study, FACTS, former.entries()).runs
    assert {run.former for run in runs} == former.ids()
    assert plan(study, FACTS, former.entries()).left == ()
    for run in runs:
        record = former.record(run)
        assert (record.id, record.run, record.sealed) == (run.id, run, False)
        assert former.audit(run.former) == "unsealed"
        items = former.items(run.former)
        assert items["value"].to_numpy().mean() == pytest.approx(record.metrics["t2d/recall@10"].value)
        assert {metric.entry for metric in record.metrics.values()} == {run.former}
        assert former.curve(run).num_rows == (0 if run.seed is None else 20 * 4)
        assert (former.model(run) is None) == (run.seed is None)
    (finding,) = find(study, runs, former).findings
    means = {
        arm: np.mean([former.record(run).metrics["t2d/recall@10"].value for run in runs if run.arm == arm])
        for arm in ("B0", "B1")
    }
    assert finding.verdict.delta_mean == pytest.approx(means["B1"] - means["B0"])
    assert finding.verdict.n_seeds == 2


def test_the_model_of_a_former_run_goes(former: Ledger) -> None:
    run = plan(read_study(FORMER / "study.yaml"), FACTS).runs[1]
    assert former.model_size(run) > 0
    former.drop_model(run)
    assert (former.model(run), former.model_size(run)) == (None, 0)
    assert former.audit(run.former) == "unsealed"


def test_a_former_run_beside_its_own_training(former: Ledger) -> None:
    """Another study trained the same recipe since, for another task: the old scores are still there."""
    run = plan(read_study(FORMER / "study.yaml"), FACTS).runs[1]
    attempt = former.lease(run.id)
    from orchestration.study.run import Trained

    former.stage(Trained(run=run), attempt)
    former.commit(run.id, attempt)
    assert former.holds(run)
    assert former.record(run).metrics.keys() == {"t2d/recall@10", "stress/negate/auc"}


@pytest.mark.parametrize("file", ["spec.json", "result.json", "env.json", "curve.parquet", "scores.parquet"])
@pytest.mark.parametrize("damage", [cut, empty, Path.unlink, a_folder, a_link])
def test_damage_to_a_former_entry_is_named(former: Ledger, file: str, damage: Callable[[Path], None]) -> None:
    run = plan(read_study(FORMER / "study.yaml"), FACTS).runs[1]
    damage(Path(former.url) / run.former / file)
    with pytest.raises(LedgerError, match=rf"{run.former}/{file}: .*\n  accepted: .*set-aside {run.former}"):
        former.record(run), former.items(run.former), former.curve(run)
    assert f"{run.former}/{file}: " in (former.audit(run.former) or "")


def test_a_former_entry_without_items_is_named(former: Ledger) -> None:
    run = plan(read_study(FORMER / "study.yaml"), FACTS).runs[1]
    place = Path(former.url) / run.former / "scores.parquet"
    pq.write_table(pq.read_table(place).slice(0, 0), place)
    with pytest.raises(LedgerError, match="it lacks the items of t2d/recall@10"):
        former.items(run.former)


def test_a_sealed_entry_cannot_pass_for_a_former_one(ledger: Ledger) -> None:
    run = make_run(0)
    place = Path(ledger.url) / run.id
    (place / "seal.json").unlink()
    spec = json.loads((place / "spec.json").read_text())
    (place / "spec.json").write_text(json.dumps({**spec, "evaluate": ["t2d"]}))
    with pytest.raises(LedgerError, match=r"spec\.json: it describes another run"):
        ledger.record(run)
