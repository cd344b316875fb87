"""Comments and labels of an ontology: what is read of RDF, what is masked, that train and test are apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from corpora.concept.build import build_concept
from corpora.concept.corpus import fingerprint, load
from corpora.concept.data import ConceptData
from corpora.concept.ontology import labelled, spoken, stems, without
from corpora.sources import dbpedia
from corpora.sources.dbpedia import OntologyTerm
from corpora.sources.texts import norm, normdef
from corpora.sources.wordnet import Wordnet
from corpora.store.errors import CorpusError
from tests.ontology import write_ontology

HERE = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "dbpedia_ontology"


def test_labels_and_comments_are_read_in_english(tmp_path: Path) -> None:
    place = write_ontology(tmp_path, [("birthPlace", "birth place", "where the\n   person was born")])
    assert list(dbpedia.read(place)) == [OntologyTerm("birthPlace", "birth place", "where the person was born")]


@pytest.mark.parametrize(
    ("label", "comment", "masked"),
    [
        ("birth place", "where the person was born", "where the person was born"),
        ("military rank", "The highest rank achieved by a person.", "The highest achieved by a person."),
        ("deathPlace", "the place (placement) of a passing", "the of a passing"),
        ("pdb id", "the id of an idea in the PDB", "the of an idea in the"),  # two letters are no beginning
        ("of the", "of the sea", "of the sea"),
    ],
)
def test_no_word_of_the_label_is_left(label: str, comment: str, masked: str) -> None:
    assert without(comment, spoken(label)) == masked
    assert stems(masked).isdisjoint(stems(spoken(label)))


def test_what_says_too_little_or_the_same_of_several_is_left_out() -> None:
    told = [
        ("a", "mountain", "a very high place on land"),
        ("b", "river", "Reserved for DBpedia."),
        ("c", "lake", "Reserved for DBpedia."),
        ("d", "sea shore", "shore of the sea"),
    ]
    rows = labelled([OntologyTerm(*one) for one in told], seed=0)
    assert [row.label for row in (*rows.train, *rows.test)] == ["mountain"]


def test_mistakes_say_how_to_get_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(dbpedia.VARIABLE, raising=False)
    with pytest.raises(CorpusError, match=r"the DBpedia ontology not found(.|\n)*to get it: curl -LO https"):
        dbpedia.locate()
    with pytest.raises(CorpusError, match=r"data\.dbpedia = .* holds no dbo-snapshots\.owl\n  to get it"):
        dbpedia.locate(str(tmp_path))
    (tmp_path / dbpedia.FILE).write_text("<rdf>cut")
    with pytest.raises(CorpusError, match="cannot be read"):
        list(dbpedia.read(dbpedia.locate(str(tmp_path))))


@pytest.fixture
def asked(small_data: ConceptData, tmp_path: Path) -> ConceptData:
    """300 made-up classes beside the small WordNet."""
    terms = [(f"Thing{n}", f"zz{n:03} kind", f"a made up sort of goods number {n} in a shop") for n in range(300)]
    return replace(small_data, ontology="dbpedia", dbpedia=str(write_ontology(tmp_path, terms).parent))


def test_rows_are_a_view_of_their_own_and_name_the_corpus(
    asked: ConceptData, small_data: ConceptData, own_cache: Path
) -> None:
    corpus = load(asked)
    assert corpus.c2l is not None
    assert len(corpus.c2l) == 300 - 245
    for left, right in zip(corpus.c2l.left, corpus.c2l.right, strict=True):
        assert corpus.texts[left] == f"a made up sort of goods number {int(corpus.texts[right][2:5])} in a shop"
    assert fingerprint(asked) != fingerprint(small_data)
    assert fingerprint(replace(small_data, dbpedia=asked.dbpedia)) == fingerprint(small_data)
    plain = load(small_data)
    assert plain.c2l is None
    assert corpus.splits == plain.splits
    assert list(corpus.t2d.left) == list(plain.t2d.left)


def test_what_is_held_out_of_the_lexicon_is_held_out_of_the_ontology(
    small_data: ConceptData, small: Wordnet, tmp_path: Path
) -> None:
    """A label that is a tested term of WordNet, and a comment that is a tested definition, train nothing."""
    held = build_concept(small_data, small).splits["id"]
    terms = [(f"T{n}", term, f"some sort of goods {n} in a shop") for n, term in enumerate(held.terms)]
    terms += [(f"D{n}", f"qq{n}", text) for n, text in enumerate(held.definitions)]
    terms += [(f"F{n}", f"zz{n}", f"another sort of goods {n} in a shop") for n in range(600)]
    built = build_concept(
        replace(small_data, ontology="dbpedia", dbpedia=str(write_ontology(tmp_path, terms).parent)), small
    )
    assert built.c2l is not None
    assert {norm(built.texts[one]) for one in built.c2l.right}.isdisjoint(map(norm, held.terms))
    assert {normdef(built.texts[one]) for one in built.c2l.left}.isdisjoint(map(normdef, held.definitions))


@pytest.mark.skipif(not HERE.is_dir(), reason="needs the DBpedia ontology of 2024")
def test_the_real_ontology() -> None:
    """790 classes and 3,029 properties, of which 282 and 667 have label and comment in English."""
    terms = list(dbpedia.read(dbpedia.locate(str(HERE))))
    assert len(terms) == 949
    rows = labelled(terms, seed=0)
    assert (len(rows.train), len(rows.test), len({row.label for row in rows.test})) == (449, 247, 245)
    for part in ("label", "name"):
        assert {getattr(row, part) for row in rows.train}.isdisjoint(getattr(row, part) for row in rows.test)
    assert {normdef(row.comment) for row in rows.train}.isdisjoint(normdef(row.comment) for row in rows.test)
    assert all(stems(row.comment).isdisjoint(stems(row.label)) for row in (*rows.train, *rows.test))
    assert labelled(terms, seed=0) == rows != labelled(terms, seed=1)
