"""GCIDE as Debian packs it: what is an entry, what is a definition, and what of the page is neither."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from pathlib import Path

import pytest

from corpora.sources.dictionary import Word
from corpora.sources.gcide import GcideEntry, locate, read, senses
from corpora.store.errors import CorpusError

PAGE = r"""
A line of the preface
   that is no entry.

Jug \Jug\ (j[u^]g), n. [Prob. fr. Jug, a corruption of, or nickname for,
   Joanna. See {Jane}.]
   1. A deep vessel with a narrow {mouth}, and a handle; as, a jug
      of cider.
      [1913 Webster]

            He poured it from a jug.              --Nobody.
      [1913 Webster]

   2. (Slang) A prison. [Obs.]
      [1913 Webster]

   3. pl. Odd.

   4. [Obs.]

Erst \\Erst\\, n.
   First.

Lisbon \Lis"bon\ prop. n. (Geography)
   The capital city of Portugal. --Gazetteer.
   [PJC]

Hum \Hum\, v. i.
   To make a low sound. "A humming bee." --Somebody. -- {Hum"mer}, n.

   Note: Of bees, mostly.

Humid \humid\ adj.
   containing much water; (b) full of vapour.

   Syn: damp.
        [WordNet 1.5]
"""


def dictionary(folder: Path, text: str = PAGE) -> Path:
    """A file as dictd has it: gzip reads what dictzip writes."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "gcide.dict.dz"
    with gzip.open(file, "wt", encoding="cp1252") as written:
        written.write(text)
    return file


def test_entries_and_their_senses(tmp_path: Path):
    assert list(read(dictionary(tmp_path))) == [
        GcideEntry(
            "jug",
            "n",
            ("A deep vessel with a narrow mouth, and a handle; as, a jug of cider.", "A prison."),
            False,
            3,
        ),
        GcideEntry("Lisbon", "n", ("The capital city of Portugal.",), False, 1),
        GcideEntry("hum", "v", ("To make a low sound.",), False, 1),
        GcideEntry("humid", "a", ("containing much water;",), True, 2),
    ]


def test_senses_are_counted_with_those_that_define_nothing(tmp_path: Path):
    counts: Counter[Word] = Counter()
    named = [sense.concept for sense in senses(dictionary(tmp_path), counts=counts)]
    assert named == ["gcide:0:0-n", "gcide:1:0-n", "gcide:2:0-v"]  # entries that define nothing have no number
    assert counts == {
        ("gcide", "jug", "n"): 3,
        ("gcide", "erst", "n"): 1,
        ("gcide", "lisbon", "n"): 1,
        ("gcide", "hum", "v"): 1,
        ("gcide", "humid", "a"): 2,
    }


NOT_OURS = r"""
Gad \Gad\
   A point or wedge of steel.
   1. A sharp pointed rod.
   2. The point of a spear; as, the gad; as, another; -- called also {goad}. See {Rod}.
   3. A spike.

Loch \Loch\ n.
   A lake in Scotland.

Lob \Lob\ n.; pl. {Lobs}
   (l[o^]bz). [W. llob.]
   1. A dull, heavy person. "He is a lob." -- Nobody. "Quite a lob." -- Nobody.

      Note: An old word.

      Syn: Clown.
"""


def test_senses_left_out_are_counted_by_reason(tmp_path: Path):
    """What stands before the first number, such as the plural of the head, is no sense."""
    skipped: Counter[str] = Counter()
    ours = senses(dictionary(tmp_path, PAGE + NOT_OURS), skipped)
    assert [(sense.concept, sense.term, sense.definition) for sense in ours][-2:] == [
        ("gcide:5:0-n", "loch", "A lake in Scotland"),
        ("gcide:6:0-n", "lob", "A dull, heavy person"),
    ]
    assert skipped == {"no usable definition": 1, "from WordNet": 1, "no part of speech": 3}  # prison; humid; gad
    assert list(senses(dictionary(tmp_path, ""))) == []


def test_a_headword_keeps_its_capital_only_as_a_proper_noun(tmp_path: Path):
    """A cased vocabulary has another id for "Jug" than for "jug"."""
    heads = {entry.head for entry in read(dictionary(tmp_path))}
    assert "Lisbon" in heads
    assert "jug" in heads


def test_where_it_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = dictionary(tmp_path / "shelf")
    monkeypatch.delenv("SEMRAY_GCIDE", raising=False)
    monkeypatch.setattr("corpora.sources.gcide.DEBIAN", tmp_path / "none")
    assert locate(str(tmp_path / "shelf")) == locate(str(file)) == file
    with pytest.raises(CorpusError, match="GCIDE not found"):
        locate()
    monkeypatch.setenv("SEMRAY_GCIDE", str(tmp_path / "shelf"))
    assert locate() == file
    with pytest.raises(CorpusError, match=r"data\.gcide = .* holds no gcide\.dict\.dz"):
        locate(str(tmp_path / "empty"))


def test_a_cut_file_is_an_error_for_people(tmp_path: Path):
    file = dictionary(tmp_path)
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(CorpusError, match="cannot be read"):
        list(read(file))


@pytest.fixture(scope="module")
def real() -> list[GcideEntry]:
    try:
        return list(read(locate()))
    except CorpusError as error:
        pytest.skip(f"needs GCIDE 0.48: {error}")


def test_the_real_dictionary(real: list[GcideEntry]):
    """A rough parser of the same shape counts 126,106 entries and 164,579 pairs; ours leaves out the entries that
    define nothing, and looks for later senses behind a remark."""
    pairs = {(entry.head, sense) for entry in real for sense in entry.senses}
    assert len(real) == pytest.approx(126_106, rel=0.05)
    assert len(pairs) == pytest.approx(164_579, rel=0.02)
    jug = next(entry for entry in real if entry.head == "jug" and entry.pos == "n")
    assert jug.senses[1:3] == ("A pitcher; a ewer.", "A prison; a jail; a lockup.")


def test_marks_of_the_page_are_no_part_of_definitions(real: list[GcideEntry]):
    """`[Obs.]` or `(Bot.)` before every third definition would be a feature."""
    senses = [sense for entry in real for sense in entry.senses]
    marked = [s for s in senses if re.search(r"[\[{}]|\[Obs|^\([A-Z]|\s--[A-Z]", s)]
    assert len(marked) < 0.0005 * len(senses)
