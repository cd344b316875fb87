"""Pair tasks: every form they are published in, caps, hashes, and what is said when they are missing."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from corpora.benchmarks.pairs import Pairs, letters_of
from corpora.difficulty.pairs import (
    STANDIN,
    PairData,
    capped,
    fingerprint,
    for_selection,
    held_out,
    load_task,
    seen_by_judge,
    standin_pairs,
)
from corpora.difficulty.rows import PairTask, pair_sha256
from corpora.difficulty.similarity_sets import SETS, YEARS
from corpora.store.errors import CorpusError

SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "data"
needs_data = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the collection of published files is not beside the project"
)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No folder from the environment, no hub, and nothing left in the cache of `datasets`, whoever names it."""
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path_factory.mktemp("datasets"))
    monkeypatch.delenv("SEMRAY_DATA", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)


def rows(*numbers: float) -> Pairs:
    n = len(numbers)
    return Pairs(
        tuple(map(str, range(n))),
        tuple(f"a{i}" for i in range(n)),
        tuple(f"b{i}" for i in range(n)),
        np.array(numbers),
    )


def write_sts(folder: Path) -> None:
    folder.mkdir(parents=True)
    line = "main\tMSRvid\t2012\t0001\t{}\t{}\t{}\tlicence\n"
    (folder / "sts-train.csv").write_text(
        line.format("5.000", 'A "plane" lands. ', "It lands.") + line.format("2.5", "b", "c")
    )
    (folder / "sts-dev.csv").write_text(line.format("0.0", "d", "e") * 2)
    (folder / "sts-test.csv").write_text(line.format("1.0", "f", "g") * 3)


def write_sts13(root: Path) -> None:
    year = root / "STS" / "STS13-en-test"
    year.mkdir(parents=True)
    for subset in ("FNWN", "headlines", "OnWN"):
        (year / f"STS.input.{subset}.txt").write_text(f"b\tsomething of {subset}\nx {subset}\ty\n")
        (year / f"STS.gs.{subset}.txt").write_text("5\n2.5\n")


def test_sts_lines(tmp_path: Path) -> None:
    """Graded 0-5 to 0-1, quotes kept, stray blanks dropped, licence columns ignored; test only where declared."""
    write_sts(tmp_path / "STSBenchmark")
    task = load_task("stsb", PairData(path=str(tmp_path)))
    assert task.train.a == ('A "plane" lands.', "b")
    assert task.train.gold.tolist() == [1.0, 0.5]
    assert (len(task.evaluation), task.evaluated_on) == (2, "validation")
    final = load_task("stsb", PairData(path=str(tmp_path), final_eval=("stsb",)))
    assert (len(final.evaluation), final.evaluated_on) == (3, "test")
    assert task.fingerprint() != final.fingerprint()


def test_mrpc_lines(tmp_path: Path) -> None:
    """A byte-order mark, a header, and the last 500 rows of training as validation."""
    (tmp_path / "MRPC").mkdir()
    lines = "".join(f"{i % 2}\t{i}\t{i + 1}\tleft {i}\tright {i}\r\n" for i in range(510))
    (tmp_path / "MRPC" / "msr_paraphrase_train.txt").write_text("\ufeffQuality\t#1 ID\t#2 ID\t#1\t#2\n" + lines)
    task = load_task("mrpc", PairData(path=str(tmp_path)))
    assert task.train.a == tuple(f"left {i}" for i in range(10))
    assert task.evaluation.b[0] == "right 10"
    assert task.train.gold.tolist() == [i % 2 for i in range(10)]


def test_qqp_and_paws_lines(tmp_path: Path) -> None:
    (tmp_path / "QQP").mkdir()
    head = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
    for name in ("train.tsv", "dev.tsv"):
        (tmp_path / "QQP" / name).write_text(head + "7\t1\t2\tWhy?\tHow come?\t1\nbroken line\n8\t3\t4\tx\ty\t0\n")
    assert load_task("qqp", PairData(path=str(tmp_path))).train.gold.tolist() == [1, 0]
    (tmp_path / "paws" / "final").mkdir(parents=True)
    for name, header in (("train.tsv", "id\tsentence1\tsentence2\tlabel\n"), ("dev.tsv", ""), ("test.tsv", "")):
        (tmp_path / "paws" / "final" / name).write_text(header + f"1\tfrom {name}\tb\t1\n2\tc\td\t0\n")
    paws = load_task("paws", PairData(path=str(tmp_path)))
    offline = load_task("paws_offline", PairData(path=str(tmp_path)))
    assert (paws.train.a[0], paws.evaluation.a[0]) == ("from train.tsv", "from dev.tsv")
    assert (offline.train.a[0], offline.evaluation.a[0]) == ("from dev.tsv", "from test.tsv")


@pytest.mark.parametrize("form", ["saved", "parquet", "jsonl"])
def test_a_folder_in_the_hubs_form(tmp_path: Path, form: str) -> None:
    from datasets import Dataset, DatasetDict

    columns = {"sentence1": ["a", "b"], "sentence2": ["c", "d"], "label": [1, 0], "idx": [5, 6]}
    splits = DatasetDict({name: Dataset.from_dict(columns) for name in ("train", "validation")})
    folder = tmp_path / "mrpc"
    if form == "saved":
        splits.save_to_disk(str(folder))
    else:
        folder.mkdir()
        for name, split in splits.items():
            file = folder / f"{name}.{form}"
            split.to_parquet(str(file)) if form == "parquet" else split.to_json(str(file))
    task = load_task("mrpc", PairData(path=str(tmp_path)))
    assert task.train.ids == ("5", "6")
    assert task.evaluation.gold.tolist() == [1.0, 0.0]


def test_a_copy_of_the_hubs_repository_is_read_by_its_configuration(tmp_path: Path) -> None:
    for config in ("labeled_final", "labeled_swap", "unlabeled_final"):
        folder = tmp_path / "paws" / config
        folder.mkdir(parents=True)
        for name in ("train", "validation"):
            (folder / f"{name}.jsonl").write_text(json_lines(config))
    task = load_task("paws", PairData(tasks=("paws",), path=str(tmp_path)))
    assert task.train.a == task.evaluation.a == tuple(f"labeled_final a {row}" for row in range(3))


def json_lines(tag: str, count: int = 3, **other: object) -> str:
    """Rows of MRPC as JSON lines; other: what stands in the last one in place of what would."""
    rows: list[dict[str, object]] = [
        {"sentence1": f"{tag} a {row}", "sentence2": f"{tag} b {row}", "label": row % 2} for row in range(count)
    ]
    rows[-1] |= other
    return "".join(json.dumps(row) + "\n" for row in rows)


def write_mrpc(place: Path, train: str, validation: str, at: int | None = None) -> PairData:
    """at: when both files say that they were written."""
    (place / "mrpc").mkdir(exist_ok=True)
    for name, text in (("train", train), ("validation", validation)):
        file = place / "mrpc" / f"{name}.jsonl"
        file.write_text(text)
        if at is not None:
            os.utime(file, (at, at))
    return PairData(tasks=("mrpc",), path=str(place))


def test_files_of_another_content_are_read_again(tmp_path: Path) -> None:
    """Archives and copies keep times: the place and the time are the same, the rows are not."""
    once = write_mrpc(tmp_path, json_lines("once"), json_lines("once"), at=1_600_000_000)
    before = fingerprint(once)
    then = write_mrpc(tmp_path, json_lines("then", 5), json_lines("then"), at=1_600_000_000)
    assert load_task("mrpc", then).train.a == tuple(f"then a {row}" for row in range(5))
    assert load_task("mrpc", then).evaluation.a[0] == "then a 0"
    assert fingerprint(then) != before


def test_rows_whose_ids_repeat_are_told_apart(tmp_path: Path) -> None:
    """In the hub's form as in text files: of two rows by one name a judge's scores, or a verdict's, would mix."""
    (tmp_path / "mrpc").mkdir()
    for name in ("train-0", "train-1", "validation"):
        rows = [{"idx": row // 2, "sentence1": f"{name} {row}", "sentence2": "b", "label": 1} for row in range(3)]
        (tmp_path / "mrpc" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = load_task("mrpc", PairData(tasks=("mrpc",), path=str(tmp_path)))
    assert task.train.ids == ("0", "0-2", "1", "0-3", "0-4", "1-2")
    assert task.evaluation.ids == ("0", "0-2", "1")
    (tmp_path / "QQP").mkdir()
    line = "7\t1\t2\tWhy?\tHow come?\t1\n"
    for name in ("train.tsv", "dev.tsv"):
        (tmp_path / "QQP" / name).write_text("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n" + line * 2)
    assert load_task("qqp", PairData(path=str(tmp_path))).evaluation.ids == ("7", "7-2")


@pytest.mark.parametrize(
    ("train", "said"),
    [
        (json_lines("x", sentence1=None), r"mrpc, train, row 3: sentence1 = None\n  accepted: a text"),
        (json_lines("x", sentence2=None), r"mrpc, train, row 3: sentence2 = None\n  accepted: a text"),
        (json_lines("x", label=None), r"mrpc, train, row 3: label = (None|nan)\n  accepted: 0 to 1"),
        ('{"x": "a", "y": "b"}\n', r"mrpc cannot be read as a data set: CastError.*\n  .* with the same columns"),
        ('{"sentence1": "a", \n', r"mrpc cannot be read as a data set: .*JSON"),
        ("", r"mrpc cannot be read as a data set: .*\n  accepted: .* none empty"),
    ],
)
def test_a_broken_folder_in_the_hubs_form_is_said(tmp_path: Path, train: str, said: str) -> None:
    with pytest.raises(CorpusError, match=said):
        load_task("mrpc", write_mrpc(tmp_path, train, json_lines("x")))


def test_a_folder_with_other_columns_is_said(tmp_path: Path) -> None:
    row = '{"x": "a", "y": "b"}\n'
    with pytest.raises(
        CorpusError, match=r"mrpc, train lacks the column 'sentence1'; it has x, y\n  accepted: sent"
    ):
        load_task("mrpc", write_mrpc(tmp_path, row, row))


def test_files_of_two_kinds_are_refused(tmp_path: Path) -> None:
    data = write_mrpc(tmp_path, json_lines("x"), "")
    (tmp_path / "mrpc" / "validation.jsonl").unlink()
    (tmp_path / "mrpc" / "validation.csv").write_text("sentence1,sentence2,label\na,b,1\n")
    with pytest.raises(
        CorpusError, match=r"mrpc cannot be read as a data set: .*\n  accepted: .* all of one kind"
    ):
        load_task("mrpc", data)


def test_a_split_without_rows_is_refused(tmp_path: Path) -> None:
    write_sts(tmp_path / "STSBenchmark")
    (tmp_path / "STSBenchmark" / "sts-dev.csv").write_text("")
    with pytest.raises(CorpusError, match=r"sts-dev.csv holds no row"):
        load_task("stsb", PairData(path=str(tmp_path)))
    (tmp_path / "QQP").mkdir()
    header = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
    for name in ("train.tsv", "dev.tsv"):
        (tmp_path / "QQP" / name).write_text(header)
    with pytest.raises(CorpusError, match=r"QQP: train.tsv, dev.tsv: no row to train on"):
        load_task("qqp", PairData(path=str(tmp_path)))
    (tmp_path / "QQP" / "train.tsv").write_text(header + "0\t1\t2\tA?\tB?\t1\n")
    with pytest.raises(CorpusError, match=r"train.tsv, dev.tsv: no row to evaluate\n  accepted: at least one"):
        load_task("qqp", PairData(path=str(tmp_path)))


@pytest.mark.parametrize("count", [0, 100, 500])
def test_mrpc_needs_rows_beside_those_of_validation(tmp_path: Path, count: int) -> None:
    (tmp_path / "MRPC").mkdir()
    lines = "".join(f"1\t{row}\t{row}\tleft {row}\tright {row}\n" for row in range(count))
    (tmp_path / "MRPC" / "msr_paraphrase_train.txt").write_text("Quality\t#1 ID\t#2 ID\t#1\t#2\n" + lines)
    with pytest.raises(CorpusError, match=rf"train.txt: {count} rows\n  accepted: more than 500"):
        load_task("mrpc", PairData(path=str(tmp_path)))


def test_a_file_of_another_encoding_is_named(tmp_path: Path) -> None:
    (tmp_path / "MRPC").mkdir()
    (tmp_path / "MRPC" / "msr_paraphrase_train.txt").write_bytes("Quality\n1\t1\t2\tcafé\ttea\n".encode("latin-1"))
    with pytest.raises(CorpusError, match=r"train.txt cannot be read: .*\n  accepted: text in UTF-8"):
        load_task("mrpc", PairData(path=str(tmp_path)))


def test_unlabelled_rows_are_refused(tmp_path: Path) -> None:
    from datasets import Dataset, DatasetDict

    columns = {"question1": ["a"], "question2": ["c"], "label": [-1], "idx": [5]}
    DatasetDict({name: Dataset.from_dict(columns) for name in ("train", "validation")}).save_to_disk(
        str(tmp_path / "qqp")
    )
    with pytest.raises(CorpusError, match="accepted: 0 to 1"):
        load_task("qqp", PairData(path=str(tmp_path)))


def test_a_missing_task_names_every_place_and_the_mend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMRAY_DATA", str(tmp_path / "elsewhere"))
    with pytest.raises(CorpusError) as error:
        load_task("stsb", PairData(path=str(tmp_path)))
    message = str(error.value)
    for part in (
        f"data.path {tmp_path}",
        "$SEMRAY_DATA",
        "elsewhere",
        "the hub: sentence-transformers/stsb",
        "export SEMRAY_DATA",
    ):
        assert part in message
    with pytest.raises(CorpusError, match="made of the published text files alone"):
        load_task("paws_offline", PairData(path=str(tmp_path)))


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "STSBenchmark"
    write_sts(folder)
    (folder / "sts-train.csv").write_text("genre\tfile\tyear\tid\t7.5\ta\tb\n")
    with pytest.raises(CorpusError, match=r"sts-train.csv, line 1: score '7.5'\n  accepted: a number from 0 to 5"):
        load_task("stsb", PairData(path=str(tmp_path)))
    (folder / "sts-train.csv").write_text("genre\tfile\n")
    with pytest.raises(CorpusError, match="line 1: 2 fields, expected at least 7"):
        load_task("stsb", PairData(path=str(tmp_path)))


def test_every_mistake_of_a_data_block_at_once() -> None:
    with pytest.raises(CorpusError) as error:
        PairData(tasks=("stsb", "sts"), final_eval=("paws",), train_cap=1, cap_mode="last")  # type: ignore[arg-type]
    for part in (
        "data.tasks = ('stsb', 'sts')\n  accepted: a list of stsb, mrpc, qqp, paws, paws_offline",
        "data.final_eval = ('paws',)\n  accepted: a list of stsb, mrpc",
        "data.train_cap = 1\n  accepted: a whole number from 2",
        "data.cap_mode = 'last'\n  accepted: first, hash",
    ):
        assert part in str(error.value)
    for twice in ((), ("stsb", "mrpc", "stsb")):
        with pytest.raises(CorpusError, match=r"data\.tasks = \[.*\]\n  accepted: stsb, .*, each once"):
            PairData(tasks=twice)  # type: ignore[arg-type]
    for alone in ({"judge": "scores_file"}, {"scores_file": "judged.tsv"}):
        with pytest.raises(CorpusError, match=r"data\.scores_file"):
            PairData(**alone)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"tasks": ("stsb",), "final_eval": ("mrpc",)},
            r"final_eval = \['mrpc'\]\n  accepted: of the tasks, stsb",
        ),
        (
            {"judge_saw": ("stsb",)},
            r"judge_saw = \['stsb'\] with data\.judge = 'none'\n  accepted: \[\] with none",
        ),
        ({"judge_saw": ("mrpc",), "judge": STANDIN}, r"judge_saw = .*standin'\n  accepted: \[\]"),
        (
            {"judge_symmetric": True},
            r"judge_symmetric = true with data\.judge = 'none'\n  accepted: false without a",
        ),
        (
            {"judge_symmetric": True, "judge": "scores_file", "scores_file": "judged.tsv"},
            r"judge_symmetric = true .* 'scores_file'\n  accepted: false",
        ),
    ],
)
def test_what_would_do_nothing_is_refused(fields: dict[str, object], said: str) -> None:
    with pytest.raises(CorpusError, match=said):
        PairData(**fields)  # type: ignore[arg-type]


def test_caps() -> None:
    """First keeps the beginning; hash keeps the smallest hashes of the texts, still in file order."""
    split = rows(0.1, 0.2, 0.3, 0.4, 0.5)
    assert capped(split, 3, "first").ids == ("0", "1", "2")
    by_hash = sorted(range(5), key=lambda i: pair_sha256(f"a{i}", f"b{i}"))[:3]
    assert capped(split, 3, "hash").ids == tuple(map(str, sorted(by_hash)))
    assert capped(split, 9, "hash").ids == split.ids


def test_groups_follow_shared_sentences() -> None:
    split = Pairs(("0", "1", "2", "3"), ("x", "y", "p", "z"), ("y", "z", "q", "w"), np.zeros(4))
    assert split.groups() == ("0", "0", "2", "0")


@needs_data
def test_published_files_have_their_known_sizes() -> None:
    everything = {"path": str(SHARED), "train_cap": 10_000, "eval_cap": 10_000}
    sizes = {name: load_task(name, PairData(**everything)) for name in ("stsb", "mrpc", "paws_offline")}
    assert {name: (len(task.train), len(task.evaluation)) for name, task in sizes.items()} == {
        "stsb": (5749, 1500), "mrpc": (3576, 500), "paws_offline": (8000, 8000),
    }  # fmt: skip
    assert int(sizes["paws_offline"].train.gold.sum()) == 3539
    captions = load_task("stsb", PairData(path=str(SHARED), train_cap=1000))
    assert {name.split(":")[0] for name in captions.train.ids} == {"MSRvid"}  # why the first N mislead


@needs_data
def test_the_offline_judge_has_pairs_of_its_own() -> None:
    data = PairData(path=str(SHARED), judge="token_match_standin")
    everything = load_task("stsb", PairData(path=str(SHARED), train_cap=10_000))
    adapters = load_task("stsb", data)
    own = standin_pairs(data)
    assert len(held_out(everything.train)) == 1742
    assert len(adapters.train) == 4000
    sentences = set(own.a) | set(own.b)
    assert not sentences & set(adapters.sentences)
    assert not any(name.startswith("MSRpar") for name in own.ids)
    assert fingerprint(data) != fingerprint(PairData(path=str(SHARED)))


def test_the_offline_judge_shares_no_sentence_with_other_rows_and_has_none_of_msrpar(tmp_path: Path) -> None:
    """Nor do adapters of STS-B and of a year train on a row of its own. Each reason to leave out a row of its own leaves out some."""
    pairs = [(f"one cup {row}", f"one dog {row - 20 if 40 <= row < 60 else row}") for row in range(120)]
    own = {row for row, pair in enumerate(pairs) if int(pair_sha256(*pair)[:8], 16) / 2**32 < 0.3}
    parts = {
        "train": pairs,
        "dev": [("v", pair[0]) for pair in pairs[:10]],
        "test": [(pair[1], "w") for pair in pairs[10:20]],
    }
    folder = tmp_path / "STSBenchmark"
    folder.mkdir()
    for part, rows in parts.items():
        lines = [
            f"main\t{'MSRpar' if row >= 80 else 'MSRvid'}\t2012\t{row}\t2.5\t{a}\t{b}\n"
            for row, (a, b) in enumerate(rows)
        ]
        (folder / f"sts-{part}.csv").write_text("".join(lines))
    rest = [pair for row, pair in enumerate(pairs) if row not in own]
    seen = [{text for pair in part for text in pair} for part in (rest, parts["dev"], parts["test"])]
    unshared = {row: [row < 80, *(part.isdisjoint(pairs[row]) for part in seen)] for row in sorted(own)}
    data = PairData(tasks=("stsb",), path=str(tmp_path), judge=STANDIN)
    write_sts13(tmp_path)
    learned, task, year = standin_pairs(data), load_task("stsb", data), load_task("sts13", data)
    assert [*zip(learned.a, learned.b, strict=True)] == [pairs[row] for row, kept in unshared.items() if all(kept)]
    alone = {kept.index(False) for kept in unshared.values() if kept.count(False) == 1}
    assert alone == {0, 1, 2, 3}
    assert [*zip(task.train.a, task.train.b, strict=True)] == rest
    assert [*zip(year.train.a, year.train.b, strict=True)] == rest
    chosen = for_selection(task)
    assert {*chosen.train.a}.isdisjoint(chosen.evaluation.a)
    assert len(chosen.train) + len(chosen.evaluation) == len(rest)
    assert abs(len(chosen.evaluation) - len(rest) / 3) < 3 * (len(rest) * 2 / 9) ** 0.5  # as if without the judge


def write_stsb_as_the_hub_has_it(place: Path, pairs: list[tuple[str, str]]) -> None:
    """Rows without a source, all of them in training; of validation and test one each."""
    from datasets import Dataset, DatasetDict

    def split(rows: list[tuple[str, str]]) -> Dataset:
        a, b = zip(*rows, strict=True)
        return Dataset.from_dict({"sentence1": a, "sentence2": b, "score": [0.5] * len(rows)})

    parts = {"train": pairs, "validation": [("v", "w")], "test": [("x", "y")]}
    DatasetDict({name: split(rows) for name, rows in parts.items()}).save_to_disk(str(place / "stsb"))


def test_the_offline_judge_learns_nothing_of_mrpc_from_rows_without_a_source(tmp_path: Path) -> None:
    """Blanks and quotes of the two copies differ; a set that is no task of the study takes no row from the judge."""
    of_mrpc = [(f'He said , "{row}" .', f"It was {row}.") for row in range(60)]
    others = [(f"one cup {row}", f"one dog {row}") for row in range(60)]
    write_stsb_as_the_hub_has_it(tmp_path, of_mrpc + others)
    lines = "".join(
        json.dumps({"sentence1": f"He said, \u201c{row}\u201d.", "sentence2": f"other {row}", "label": 1}) + "\n"
        for row in range(60)
    )
    write_mrpc(tmp_path, lines, json_lines("x"))
    alone = PairData(tasks=("stsb",), path=str(tmp_path), judge=STANDIN)
    both = PairData(tasks=("stsb", "mrpc"), path=str(tmp_path), judge=STANDIN)
    assert {text[:4] for text in standin_pairs(alone).a} == {"He s", "one "}
    assert {text[:4] for text in standin_pairs(both).a} == {"one "}
    assert "mrpc" not in seen_by_judge(both)
    (tmp_path / "mrpc" / "test.jsonl").write_text(
        "".join(
            json.dumps({"sentence1": f"last {row}", "sentence2": f"One dog, {row}!", "label": 1}) + "\n"
            for row in range(30)
        )
    )
    tested = PairData(tasks=("stsb", "mrpc"), path=str(tmp_path), judge=STANDIN, final_eval=("mrpc",))
    assert standin_pairs(tested).a == tuple(text for text in standin_pairs(both).a if int(text.split()[-1]) >= 30)


def test_an_stsb_that_leaves_the_offline_judge_no_row_is_refused(tmp_path: Path) -> None:
    """All rows have one sentence, so that those held out share it with the rest."""
    write_stsb_as_the_hub_has_it(tmp_path, [("a cup", f"a dog {row}") for row in range(60)])
    data = PairData(tasks=("stsb",), path=str(tmp_path), judge=STANDIN)
    with pytest.raises(CorpusError, match=r"judge = 'token_match_standin': of 60 training rows .* none .*\n  acc"):
        fingerprint(data)


@needs_data
def test_the_hubs_rows_of_stsb_leave_the_offline_judge_what_mrpc_does_not_use(tmp_path: Path) -> None:
    """Of its 1,349 candidates, 278 share a sentence with MRPC, 166 of them with its training and validation rows."""
    from datasets import Dataset, DatasetDict

    def split(name: str) -> Dataset:
        lines = (SHARED / f"senteval/STS/STSBenchmark/sts-{name}.csv").read_text(encoding="utf-8").splitlines()
        fields = [line.split("\t") for line in lines]
        a, b = [one[5].strip() for one in fields], [one[6].strip() for one in fields]
        return Dataset.from_dict({"sentence1": a, "sentence2": b, "score": [float(one[4]) / 5 for one in fields]})

    parts = {"train": "train", "validation": "dev", "test": "test"}
    DatasetDict({name: split(file) for name, file in parts.items()}).save_to_disk(str(tmp_path / "stsb"))
    (tmp_path / "MRPC").symlink_to(SHARED / "senteval/MRPC")
    data = PairData(tasks=("stsb", "mrpc"), path=str(tmp_path), judge=STANDIN)
    assert len(standin_pairs(data)) == 1349 - 166


@pytest.mark.parametrize("written", ["stsb", "STS-B", "sts_b"])
def test_a_set_that_the_judge_saw_is_known_however_it_is_written(written: str) -> None:
    seen = seen_by_judge(PairData(judge="some/judge", judge_saw=(written,)))
    assert seen == {"stsb": "stsb"} | dict.fromkeys(("mrpc", "sickr", *YEARS), "stsb")


def test_sets_share_pairs_both_ways() -> None:
    """And what the judge learned itself is told before what only shares pairs with that."""

    def seen(*saw: str) -> dict[str, str]:
        return seen_by_judge(PairData(judge="some/judge", judge_saw=saw))

    assert all(seen(name)["stsb"] == name for name in ("mrpc", "sickr", *YEARS))
    assert (seen("mrpc")["sts12"], seen("sts12")["mrpc"]) == ("mrpc", "sts12")
    assert "mrpc" not in seen("sts13")
    assert seen("paws") == {"paws": "paws", "paws_offline": "paws"}
    assert seen("stsb", "sts12")["stsb"] == "stsb"
    assert seen("nli") == {}


def test_too_few_rows_for_a_search_are_said() -> None:
    """Of these the hash gives the search all but the first to choose by; one row has no rank."""

    def of(count: int) -> PairTask:
        split = rows(*(0.1 * row for row in range(count)))
        return PairTask("stsb", True, split, split, "validation", "made up")

    for count in (1, 2):
        said = (
            rf"stsb: of {count} training rows a search has {count - 1} to choose by, 1 to train on\n  accepted: at"
        )
        with pytest.raises(CorpusError, match=said):
            for_selection(of(count))
    assert for_selection(of(3)).evaluation.ids == ("1", "2")


def write_sick(folder: Path) -> None:
    folder.mkdir(parents=True)
    head = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    for part, golds in (("train", (1.0, 3.0)), ("trial", (5.0,)), ("test_annotated", (2.0, 4.0, 5.0))):
        rows = "".join(f"{row}\tone {part} {row}\ttwo {row}\t{gold}\tNEUTRAL\n" for row, gold in enumerate(golds))
        (folder / f"SICK_{part}.txt").write_text(head + rows)


def test_sick_runs_from_1_to_5_and_has_parts_of_its_own(tmp_path: Path) -> None:
    write_sick(tmp_path / "SICK")
    task = load_task("sickr", PairData(path=str(tmp_path)))
    assert (task.train.gold.tolist(), task.evaluation.gold.tolist(), task.graded) == ([0.0, 0.5], [1.0], True)
    final = load_task("sickr", PairData(path=str(tmp_path), tasks=("sickr",), final_eval=("sickr",)))
    assert (final.evaluation.gold.tolist(), final.evaluated_on) == ([0.25, 0.75, 1.0], "test")


@pytest.mark.parametrize("written", ["0.5", "5.5", "1_0"])
def test_a_score_that_sick_does_not_have_is_refused(tmp_path: Path, written: str) -> None:
    write_sick(tmp_path / "SICK")
    with (tmp_path / "SICK" / "SICK_train.txt").open("a") as file:
        file.write(f"2\tone\ttwo\t{written}\tNEUTRAL\n")
    with pytest.raises(CorpusError, match=rf"line 4: score '{written}'\n  accepted: a number from 1 to 5"):
        load_task("sickr", PairData(path=str(tmp_path)))


def test_a_year_trains_on_the_rows_of_stsb_that_share_no_sentence_with_it(tmp_path: Path) -> None:
    write_sts(tmp_path / "STSBenchmark")
    with (tmp_path / "STSBenchmark" / "sts-train.csv").open("a") as file:
        file.write("main\tMSRvid\t2012\t0002\t3\tSomething of ONWN .\tq\n")
        file.write("main\tMSRvid\t2012\t0003\t3\tr\tY!\n")
    write_sts13(tmp_path)
    task = load_task("sts13", PairData(path=str(tmp_path)))
    assert task.train.a == ('A "plane" lands.',)  # of the others one holds b, one a sentence in capitals, one y
    assert task.evaluation.gold.tolist() == [1.0, 0.5] * 3
    with pytest.raises(CorpusError, match="STS14 not found"):
        load_task("sts14", PairData(path=str(tmp_path)))


@needs_data
def test_the_published_sets_by_their_counts() -> None:
    """SICK's own counts; the yearly sets are evaluated whole, by what STS-B leaves."""
    data = PairData(path=str(SHARED), train_cap=10**6, eval_cap=10**6)
    counts = {name: (len(task.train), len(task.evaluation)) for name in SETS if (task := load_task(name, data))}
    assert counts["sickr"] == (4500, 500)
    assert {name: evaluated for name, (_, evaluated) in counts.items()} | {"sickr": 500} == {
        "sickr": 500, "sts12": 3108, "sts13": 1500, "sts14": 3750,
    }  # fmt: skip
    for name in YEARS:
        task = load_task(name, data)
        trained, evaluated = (set(map(letters_of, (*part.a, *part.b))) for part in (task.train, task.evaluation))
        assert trained.isdisjoint(evaluated)
        assert len(task.train) > 1000
