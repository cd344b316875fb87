"""DWUG, CoSimLex and WiC as they are published: odd rows, broken rows, and what is said when they are missing."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from corpora.benchmarks import cosimlex, dwug, wic
from corpora.sources.occurrences import Occurrence
from corpora.store.errors import CorpusError

SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "data"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEMRAY_DATA", raising=False)


def write(path: Path, *rows: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


HEADER = "lemma\tpos\tdate\tgrouping\tidentifier\tdescription\tcontext\tindexes_target_token"
USES = (
    'lane_nn\tnn\t1820\t1\ta1\t\t"Lanes are narrow," he said\t1:6',  # a quote that never closes, an inflected target
    "lane_nn\tnn\t1850\t1\ta2\t\tDown the lane\t9:13",  # the target ends the text
    "lane_nn\tnn\t1990\t2\tb1\t\tlane markings\t0:4",  # the target begins it
    "lane_nn\tnn\t1995\t2\tb2\t\tthe bus lane is closed\t8:12",  # cluster -1
)


def write_dwug(root: Path, *uses: str, gold: str = "lane_nn\t0.25", stats: str = "stats/opt") -> Path:
    write(root / "dwug_en" / "data" / "lane_nn" / "uses.csv", HEADER, *uses)
    write(root / "dwug_en" / "clusters" / "opt" / "lane_nn.csv", "identifier\tcluster", "a1\t0", "b2\t-1")
    write(root / "dwug_en" / stats / "stats_groupings.csv", "lemma\tchange_binary\tchange_graded", gold_row(gold))
    return root / "dwug_en"


def gold_row(gold: str) -> str:
    lemma, _, change = gold.partition("\t")
    return f"{lemma}\t1\t{change}"


class TestDwug:
    def test_every_use_is_read_as_it_stands(self, tmp_path: Path) -> None:
        write_dwug(tmp_path, *USES)
        (target,) = dwug.read("en", path=str(tmp_path))
        assert (target.lemma, target.change) == ("lane", 0.25)
        assert target.first == (
            Occurrence('"Lanes are narrow," he said', 1, 6, "lane"),
            Occurrence("Down the lane", 9, 13, "lane"),
        )
        assert [use.target for use in target.first + target.second] == ["Lanes", "lane", "lane", "lane"]
        assert len(target.second) == 2

    def test_older_releases(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Another name for the span, gold without part of speech beside the statistics, a folder named by variable."""
        root = write_dwug(tmp_path / "dwug", *USES, gold="lane\t0.5", stats="stats")
        uses = root / "data" / "lane_nn" / "uses.csv"
        uses.write_text(uses.read_text().replace("indexes_target_token", "indexes_target"))
        monkeypatch.setenv("SEMRAY_DATA", str(tmp_path))
        (target,) = dwug.read("en", path=None)
        assert target.change == 0.5
        assert target.first[1].target == "lane"

    def test_a_list_that_scores_some_targets_only_is_passed_over(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        root = write_dwug(tmp_path, *USES)
        write(root / "stats" / "semeval" / "stats_groupings.csv", "lemma\tchange_graded", "plane_nn\t0.9")
        with caplog.at_level(logging.INFO):
            (target,) = dwug.read("en", path=str(tmp_path))
        assert target.change == 0.25
        assert "graded change from stats/opt/stats_groupings.csv" in caplog.text

    @pytest.mark.parametrize(
        ("use", "gold", "told"),
        [
            (
                "lane_nn\tnn\t\t1\tx\t\tlane\t0:5",
                "lane_nn\t0",
                r"line 6: indexes_target_token = '0:5'\n  accepted",
            ),
            *(
                (f"lane_nn\tnn\t\t1\tx\t\tlane\t{span}", "lane_nn\t0", f"'{span}'")
                for span in ("-4:4", "2:2", "0:end", "4")
            ),
            ("lane_nn\tnn\t\t3\tx\t\tlane\t0:4", "lane_nn\t0", r"grouping = '3'\n  accepted: 1, 2"),
            ("lane_nn\tnn\t1\tx", "lane_nn\t0", "line 6: 4 fields, expected 8"),
            (
                USES[0],
                "plane_nn\t0",
                r"accepted: stats/semeval.*\n    stats/opt/stats_groupings.csv lacks lane_nn",
            ),
            (USES[0], "lane_nn\tnan", "change_graded = 'nan'"),
            (USES[0], "lane_nn\t1.5", "change_graded = '1.5'"),
        ],
    )
    def test_what_cannot_be_is_named(self, tmp_path: Path, use: str, gold: str, told: str) -> None:
        write_dwug(tmp_path, *USES, use, gold=gold)
        with pytest.raises(CorpusError, match=told):
            dwug.read("en", path=str(tmp_path))

    def test_only_a_part_of_speech_is_cut_off_a_lemma(self, tmp_path: Path) -> None:
        """It has two letters behind the last mark; targets come by their folders' names."""
        scores = {"lane_nn": 0.1, "Ad": 0.2, "ice_cream": 0.3, "Gift": 0.4, "upp_vb": 0.5, "_nn": 0.6}
        root = write_dwug(tmp_path, *USES)
        gold = (f"{name}\t1\t{score}" for name, score in scores.items())
        write(root / "stats" / "opt" / "stats_groupings.csv", "lemma\tchange_binary\tchange_graded", *gold)
        for name in reversed(scores):
            write(root / "data" / name / "uses.csv", HEADER, *USES)
        targets = dwug.read("en", path=str(tmp_path))
        assert [(target.lemma, target.change) for target in targets] == [
            ("Ad", 0.2), ("Gift", 0.4), ("_nn", 0.6), ("ice_cream", 0.3), ("lane", 0.1), ("upp", 0.5)
        ]  # fmt: skip
        assert {use.lemma for use in targets[3].first} == {"ice_cream"}

    def test_a_folder_without_a_target_and_uses_without_a_place_are_named(self, tmp_path: Path) -> None:
        root = write_dwug(tmp_path, *USES)
        uses = root / "data" / "lane_nn" / "uses.csv"
        uses.write_text(uses.read_text().replace("indexes_target_token", "indexes"))
        with pytest.raises(
            CorpusError, match="line 2: no column indexes_target_token or indexes_target; it has lemma"
        ):
            dwug.read("en", path=str(tmp_path))
        uses.unlink()
        with pytest.raises(CorpusError, match=r"dwug_en has no target\n  accepted: data/<lemma>/uses\.csv"):
            dwug.read("en", path=str(tmp_path))

    @pytest.mark.parametrize("gold", ["lane\t0.5", "lane_nn\t0.5\nlane_vb\t1\t0.1"])
    def test_two_parts_of_speech_of_one_lemma_are_refused(self, tmp_path: Path, gold: str) -> None:
        """Gold without part of speech would score both alike; with it, both would be the item `lane`."""
        root = write_dwug(tmp_path, *USES, gold=gold)
        write(root / "data" / "lane_vb" / "uses.csv", HEADER, *USES)
        with pytest.raises(
            CorpusError, match=r"lane_nn and lane_vb are .* lemma lane\n  accepted: one target for"
        ):
            dwug.read("en", path=str(tmp_path))

    def test_a_target_needs_both_periods(self, tmp_path: Path) -> None:
        write_dwug(tmp_path, *USES[:2])
        with pytest.raises(CorpusError, match="has no use of period 2"):
            dwug.read("en", path=str(tmp_path))

    def test_when_it_is_absent(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SEMRAY_DATA", str(tmp_path / "data"))
        with pytest.raises(CorpusError) as error:
            dwug.read("sv", path=str(tmp_path))
        assert str(error.value) == (
            "corpora: DWUG (sv) not found; looked at\n"
            f"    data.path: {tmp_path}/dwug_sv\n"
            f"    data.path: {tmp_path}/dwug/dwug_sv\n"
            f"    $SEMRAY_DATA: {tmp_path}/data/dwug_sv\n"
            f"    $SEMRAY_DATA: {tmp_path}/data/dwug/dwug_sv\n"
            "  to get it: https://www.ims.uni-stuttgart.de/data/wugs\n"
            "  then: export SEMRAY_DATA=FOLDER with FOLDER holding dwug_sv/data/<lemma>/uses.csv"
        )


PAIRS_HEADER = (
    "word1\tword2\tcontext1\tcontext2\tsim1\tsim2\tstdev1\tstdev2\tpvalue\t"
    "word1_context1\tword2_context1\tword1_context2\tword2_context2"
)
BEACH = (
    'beach\tisland\t"<strong>Islands</strong> have a <strong>beach</strong>\t'
    "<strong>Beaches</strong> ring the <strong>island</strong>\t2.88\t7.83\t1\t1\t0.01\t"
    "beach\tIslands\tbeaches\tisland"
)


class TestCosimlex:
    def read(self, tmp_path: Path, *rows: str) -> tuple[object, ...]:
        write(tmp_path / "cosimlex" / "cosimlex_en.tsv", PAIRS_HEADER, *rows)
        return cosimlex.read("en", path=str(tmp_path))

    def test_both_words_of_both_contexts(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        """A leading quote that never closes, word 2 before word 1, inflected and capital forms, a mark at either end."""
        (pair,) = self.read(tmp_path, BEACH)
        assert not caplog.text
        assert isinstance(pair, cosimlex.SimilarityPair)
        assert (pair.word1, pair.word2, pair.sim1, pair.sim2) == ("beach", "island", 2.88, 7.83)
        text = '"Islands have a beach'
        assert pair.context1 == (Occurrence(text, 16, 21, "beach"), Occurrence(text, 1, 8, "island"))
        assert [one.target for one in pair.context2] == ["Beaches", "island"]
        assert pair.context2[0].text == "Beaches ring the island"

    @pytest.mark.parametrize(
        "row",
        [
            BEACH.replace("<strong>beach</strong>", "beach"),  # one mark
            BEACH.replace("have", "<strong>have</strong>"),  # three
            BEACH.replace("<strong>Islands</strong>", "<strong>beach</strong>"),  # both on one word
            BEACH.replace("\tbeaches\t", "\tbeached\t"),  # neither is word 1
        ],
    )
    def test_rows_that_do_not_mark_two_words_are_counted(
        self, tmp_path: Path, row: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        assert len(self.read(tmp_path, BEACH, row)) == 1
        assert "tsv: 1 rows skipped" in caplog.text
        with pytest.raises(CorpusError, match="has no usable row"):
            self.read(tmp_path, row)

    def test_broken_rows_are_named(self, tmp_path: Path) -> None:
        for score in ("high", "-4", "10.5", "nan", "inf", "1_0"):
            with pytest.raises(CorpusError, match=rf"line 2: sim1 = '{score}'\n  accepted: a number from 0 to 10"):
                self.read(tmp_path, BEACH.replace("2.88", score))
        write(tmp_path / "cosimlex" / "cosimlex_en.tsv", PAIRS_HEADER.replace("sim1", "similarity"), BEACH)
        with pytest.raises(CorpusError, match="lacks the column 'sim1'; it has word1, word2"):
            cosimlex.read("en", path=str(tmp_path))

    def test_when_it_is_absent(self, tmp_path: Path) -> None:
        with pytest.raises(CorpusError) as error:
            cosimlex.read("fi", path=None)
        assert str(error.value) == (
            "corpora: CoSimLex (fi) not found; looked at no place: neither data.path nor the variable is set\n"
            "  to get it: https://www.clarin.si/repository/xmlui/handle/11356/1308\n"
            "  then: export SEMRAY_DATA=FOLDER with FOLDER holding cosimlex/cosimlex_fi.tsv"
        )


class TestWic:
    def write(self, root: Path, data: str, gold: str) -> None:
        for split in wic.SPLITS:
            write(root / "wic" / split / f"{split}.data.txt", data)
            write(root / "wic" / split / f"{split}.gold.txt", gold)

    def test_a_pair(self, tmp_path: Path) -> None:
        self.write(tmp_path, 'board\tN\t2-0\t" Room and\tBoards nailed', "F")
        (pair,) = wic.read(path=str(tmp_path))["dev"]
        assert (pair.id, pair.same) == ("dev:1", False)
        assert pair.first == Occurrence('" Room and', 7, 10, "board")
        assert pair.second == Occurrence("Boards nailed", 0, 6, "board")

    @pytest.mark.parametrize(
        ("data", "gold", "told"),
        [
            ("board\tN\t2-0\tRoom", "T", "line 1: 4 fields, expected 5"),
            ("board\tN\t2\ta b c\tc", "T", r"places '2'\n  accepted: two token numbers"),
            ("board\tN\ta-0\ta b c\tc", "T", r"places 'a-0'\n  accepted: two token numbers"),
            ("board\tN\t2-1\ta b c\tc", "T", "token 1 of an example of 1 tokens"),
            ("board\tN\t2-0\ta b c\tc", "yes", r"line 1: 'yes'\n  accepted: T, F"),
            ("board\tN\t2-0\ta b c\tc", "T\nF", "has 1 rows and train.gold.txt 2\n  accepted: as many"),
        ],
    )
    def test_broken_rows_are_named(self, tmp_path: Path, data: str, gold: str, told: str) -> None:
        self.write(tmp_path, data, gold)
        with pytest.raises(CorpusError, match=told):
            wic.read(path=str(tmp_path))

    def test_files_without_a_row_are_no_set(self, tmp_path: Path) -> None:
        self.write(tmp_path, "", "")
        with pytest.raises(CorpusError, match=r"train\.data\.txt holds no row"):
            wic.read(path=str(tmp_path))

    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        write(tmp_path / "wic" / "train" / "train.data.txt", "board\tN\t0-0\ta\tb")
        with pytest.raises(CorpusError, match=r"train\.gold\.txt cannot be read"):
            wic.read(path=str(tmp_path))
        with pytest.raises(CorpusError, match=r"WiC not found; looked at\n    data\.path: .*/none/wic"):
            wic.read(path=str(tmp_path / "none"))

    @pytest.mark.skipif(not (SHARED / "wic").is_dir(), reason="the published WiC is not beside the project")
    def test_the_published_files(self) -> None:
        """Sizes as the authors give them; half of every split is true; targets are forms of their lemma."""
        splits = wic.read(path=str(SHARED))
        assert {name: len(pairs) for name, pairs in splits.items()} == {"train": 5428, "dev": 638, "test": 1400}
        assert all(2 * sum(pair.same for pair in pairs) == len(pairs) for pairs in splits.values())
        sides = [side for pairs in splits.values() for pair in pairs for side in (pair.first, pair.second)]
        alike = [side.target[0].lower() == side.lemma[0] for side in sides]
        assert sum(alike) > 0.99 * len(alike)
