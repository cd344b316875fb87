"""STS sets in SentEval's layout and the hub's: what is read, what is left out, and what is said of odd files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from corpora.benchmarks import sts
from corpora.benchmarks.pairs import text_key
from corpora.store import hub
from corpora.store.errors import CorpusError
from tests.published import COLLECTION, needs

PARTS = {
    "answer-answer": (["A b.\tB a.\tfirst source\tsecond source", "Unscored.\tToo."], ["3", ""]),
    "headlines": (["“Quoted\tmidway"], ["0"]),
    "plagiarism": (["x\ty"], ["4.5"]),
    "postediting": (["x\tz"], ["5"]),
    "question-question": (["y\tz"], ["1"]),
}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a folder of the machine's nor the hub."""
    monkeypatch.delenv("SEMRAY_DATA", raising=False)

    def away(hub: hub.HubSet) -> None:
        raise ConnectionError("no route to the hub\nand more words")

    monkeypatch.setattr(hub, "_fetched", away)


def write_sts16(root: Path, end: str = "\n", **changed: tuple[list[str], list[str]]) -> Path:
    folder = root / "STS" / "STS16-en-test"
    folder.mkdir(parents=True)
    for name, (texts, scores) in {**PARTS, **changed}.items():
        (folder / f"STS.input.{name}.txt").write_text("".join(text + end for text in texts), encoding="utf-8")
        (folder / f"STS.gs.{name}.txt").write_text("".join(score + end for score in scores), encoding="utf-8")
    return folder


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_year_is_read_subset_by_subset_without_what_is_unscored(tmp_path: Path, end: str) -> None:
    write_sts16(tmp_path, end)
    subsets = sts.read("STS16", path=str(tmp_path))
    assert list(subsets) == list(PARTS)
    first = subsets["answer-answer"]
    assert (first.ids, first.a, first.b, first.gold.tolist()) == (
        ("answer-answer:1",),
        ("A b.",),
        ("B a.",),
        [3.0],
    )
    assert subsets["headlines"].a == ("“Quoted",)


@pytest.mark.parametrize(
    ("texts", "scores", "said"),
    [
        (["a\tb", "c\td"], ["1"], r"has 2 lines and STS.gs.headlines.txt 1\n  accepted: as many"),
        (["only one"], ["1"], r"STS.input.headlines.txt, line 1: 1 field, expected two sentences"),
        (["a\tb"], ["5.1"], r"STS.gs.headlines.txt, line 1: score '5.1'\n  accepted: a number from 0 to 5"),
        (["a\tb"], ["nan"], r"line 1: score 'nan'"),
        (["a\tb"], ["four"], r"line 1: score 'four'"),
        (["a\tb"], ["0_4"], r"line 1: score '0_4'"),
        (["a\tb"], [" "], r"STS.gs.headlines.txt scores no pair"),
    ],
)
def test_an_odd_file_is_named_with_its_line(
    tmp_path: Path, texts: list[str], scores: list[str], said: str
) -> None:
    write_sts16(tmp_path, headlines=(texts, scores))
    with pytest.raises(CorpusError, match=said):
        sts.read("STS16", path=str(tmp_path))


SICK = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"


@pytest.mark.parametrize(
    ("name", "file", "text", "said"),
    [
        ("STS-B/train", "STS/STSBenchmark/sts-train.csv", "", r"sts-train\.csv holds no row$"),
        ("STS-B", "STS/STSBenchmark/sts-test.csv", "\n \n", r"sts-test\.csv holds no row$"),
        ("SICK-R", "SICK/SICK_test_annotated.txt", "", r"SICK_test_annotated\.txt holds no row$"),
        ("SICK-R", "SICK/SICK_test_annotated.txt", f"{SICK}\n", "holds no row below its header"),
    ],
)
def test_a_file_without_a_row_is_no_set(tmp_path: Path, name: str, file: str, text: str, said: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(text)
    with pytest.raises(CorpusError, match=said):
        sts.read(name, path=str(tmp_path))


def test_a_header_may_stand_below_a_blank_line(tmp_path: Path) -> None:
    (tmp_path / "SICK").mkdir()
    (tmp_path / "SICK" / "SICK_test_annotated.txt").write_text(f"\n{SICK}\n7\tA cat.\tA dog.\t3.5\tNEUTRAL\n")
    (pairs,) = sts.read("SICK-R", path=str(tmp_path)).values()
    assert (pairs.ids, pairs.gold.tolist()) == (("7",), [3.5])


@pytest.mark.parametrize(("gold", "scored"), [("1", 1.0), ("0.9", None)])
def test_sick_is_scored_from_1(tmp_path: Path, gold: str, scored: float | None) -> None:
    (tmp_path / "SICK").mkdir()
    (tmp_path / "SICK" / "SICK_test_annotated.txt").write_text(f"{SICK}\n7\tA cat.\tA dog.\t{gold}\tNEUTRAL\n")
    if scored is None:
        with pytest.raises(CorpusError, match=r"line 2: score '0\.9'\n  accepted: a number from 1 to 5"):
            sts.read("SICK-R", path=str(tmp_path))
    else:
        assert sts.read("SICK-R", path=str(tmp_path))["SICK-R"].gold.tolist() == [scored]


def test_a_missing_subset_is_named(tmp_path: Path) -> None:
    (write_sts16(tmp_path) / "STS.gs.plagiarism.txt").unlink()
    with pytest.raises(CorpusError, match=r"STS.gs.plagiarism.txt cannot be read"):
        sts.read("STS16", path=str(tmp_path))


def test_what_is_nowhere_says_every_place_and_what_mends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMRAY_DATA", str(tmp_path / "named"))
    with pytest.raises(CorpusError) as raised:
        sts.read("STS12", path=str(tmp_path / "told"))
    said = str(raised.value)
    for place in (
        f"data.path: {tmp_path}/told/senteval/STS/STS12-en-test/STS.input.MSRpar.txt",
        f"$SEMRAY_DATA: {tmp_path}/named/mteb/sts12-sts",
        "the hub: mteb/sts12-sts: ConnectionError: no route to the hub",
        'load_dataset("mteb/sts12-sts").save_to_disk("FOLDER/sts12-sts")',
        "export SEMRAY_DATA=FOLDER with FOLDER holding STS/STS12-en-test/STS.input.MSRpar.txt",
    ):
        assert place in said
    assert "more words" not in said


def test_a_set_that_the_hub_has_not_alone_says_so(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"the hub: not asked; its copy of SICK does not say"):
        sts.read("SICK-R", path=str(tmp_path))


STSB = "genre\tMSRvid\t2012\t1\t{}\t{}\t{}"


def write_stsb(root: Path) -> Path:
    folder = root / "STSBenchmark"
    folder.mkdir()
    (folder / "sts-train.csv").write_text(STSB.format("2.5", "a man sings", " A man, singing "))
    (folder / "sts-dev.csv").write_text(STSB.format("5.000", '"Quoted', "Two\tlicence\tcolumns"))
    (folder / "sts-test.csv").write_text(STSB.format("0", "Kept.", "Kept too."))
    return folder


def test_stsb_needs_no_quotes_that_close_and_drops_what_follows_the_sentences(tmp_path: Path) -> None:
    write_stsb(tmp_path)
    (pairs,) = sts.read("STS-B/dev", path=str(tmp_path)).values()
    assert (pairs.a, pairs.b, pairs.gold.tolist()) == (('"Quoted',), ("Two",), [5.0])
    assert pairs.ids == ("MSRvid:1",)


def test_dedup_knows_a_pair_turned_round_and_punctuated_otherwise(tmp_path: Path) -> None:
    write_stsb(tmp_path)
    write_sts16(tmp_path, headlines=(["A man SINGING\tA man sings!", "new\tpair"], ["1", "2"]))
    kept = sts.read_dedup("STS16", path=str(tmp_path))
    assert kept["headlines"].ids == ("headlines:2",)
    write = tmp_path / "STS" / "STS16-en-test" / "STS.input.headlines.txt"
    write.write_text("a man sings\tA man singing\ntwo\tquoted\n")  # all pairs of a subset: it is gone
    assert "headlines" not in sts.read_dedup("STS16", path=str(tmp_path))
    dev = tmp_path / "STSBenchmark" / "sts-dev.csv"
    dev.write_text((tmp_path / "STSBenchmark" / "sts-test.csv").read_text())
    with pytest.raises(CorpusError, match="STS-B without the pairs of STS-B train and dev holds no pair"):
        sts.read_dedup("STS-B", path=str(tmp_path))


def test_a_local_copy_of_the_hub_gives_the_same_rows(tmp_path: Path) -> None:
    from datasets import Dataset, DatasetDict

    rows = Dataset.from_dict({"sentence1": ["Kept."], "sentence2": ["Kept too."], "score": [0.0]})
    (tmp_path / "files").mkdir()
    write_stsb(tmp_path / "files")
    DatasetDict({"test": rows}).save_to_disk(str(tmp_path / "saved" / "stsbenchmark-sts"))
    (tmp_path / "copied" / "mteb" / "stsbenchmark-sts").mkdir(parents=True)
    rows.to_json(str(tmp_path / "copied" / "mteb" / "stsbenchmark-sts" / "test.jsonl"))
    read = {place: sts.read("STS-B", path=str(tmp_path / place)) for place in ("files", "saved", "copied")}
    assert len({sts.fingerprint(subsets) for subsets in read.values()}) == 1
    assert read["saved"]["STS-B"].ids == ("STS-B:1",)
    with pytest.raises(CorpusError, match=r"saved/stsbenchmark-sts has no split 'validation'; it has test"):
        sts.read("STS-B/dev", path=str(tmp_path / "saved"))


def test_the_fingerprint_follows_the_rows(tmp_path: Path) -> None:
    folder = write_stsb(tmp_path)
    before = sts.fingerprint(sts.read("STS-B", path=str(tmp_path)))
    (folder / "sts-test.csv").write_text(STSB.format("0.1", "Kept.", "Kept too."))
    assert sts.fingerprint(sts.read("STS-B", path=str(tmp_path))) != before


COUNTS = {
    "STS12": {"MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 459, "surprise.OnWN": 750, "surprise.SMTnews": 399},
    "STS13": {"FNWN": 189, "headlines": 750, "OnWN": 561},
    "STS14": {"deft-forum": 450, "deft-news": 300}
    | dict.fromkeys(("headlines", "images", "OnWN", "tweet-news"), 750),
    "STS-B": {"STS-B": 1379},
    "STS-B/dev": {"STS-B": 1500},
    "SICK-R": {"SICK-R": 4927},
    "SICK-R/all": {"SICK-R": 9927},
}
SHARED_WITH_STSB = {"STS12": (1011, 256), "STS13": (597, 81), "STS14": (1864, 193), "SICK-R/all": (124, 24)}


@needs("senteval/STS")
class TestPublished:
    """Counts of the papers, and overlaps that were counted independently of this reader."""

    @pytest.mark.parametrize("name", COUNTS)
    def test_pairs(self, name: str) -> None:
        subsets = sts.read(name, path=str(COLLECTION))
        assert {subset: len(pairs) for subset, pairs in subsets.items()} == COUNTS[name]
        assert len({id_ for pairs in subsets.values() for id_ in pairs.ids}) == sum(map(len, subsets.values()))

    @pytest.mark.parametrize("name", SHARED_WITH_STSB)
    def test_pairs_that_stsb_shares(self, name: str) -> None:
        def keys(part: str) -> list[str]:
            read = sts.read(part, path=str(COLLECTION)).values()
            return [text_key(a, b) for pairs in read for a, b in zip(pairs.a, pairs.b, strict=True)]

        held = set(keys(name))
        found = tuple(sum(key in held for key in keys(part)) for part in ("STS-B/train", "STS-B/dev"))
        assert found == SHARED_WITH_STSB[name]

    def test_dedup_leaves_no_pair_of_train_or_dev(self) -> None:
        kept = sts.read_dedup("STS13", path=str(COLLECTION))
        seen = {
            frozenset((a, b))
            for part in ("STS-B/train", "STS-B/dev")
            for pairs in sts.read(part, path=str(COLLECTION)).values()
            for a, b in zip(pairs.a, pairs.b, strict=True)
        }
        assert not any(
            frozenset(pair) in seen for part in kept.values() for pair in zip(part.a, part.b, strict=True)
        )
        whole = sts.read("STS13", path=str(COLLECTION))
        assert 0 < np.sum([len(part) for part in kept.values()]) < np.sum([len(part) for part in whole.values()])


def test_two_folders_of_one_name_hold_each_its_own_rows(tmp_path: Path) -> None:
    """`datasets` caches what it read of a folder under the folder's last name."""
    for name, gold in (("first", 1.0), ("second", 2.0)):
        folder = tmp_path / name / "sts12-sts"
        folder.mkdir(parents=True)
        row = {"sentence1": "Kept.", "sentence2": "Kept too.", "score": gold}
        (folder / "test.jsonl").write_text(json.dumps(row) + "\n")
        (pairs,) = sts.read("STS12", path=str(tmp_path / name)).values()
        assert pairs.gold.tolist() == [gold]
