"""Reads the DBpedia ontology: the English labels and comments of its classes and properties.

    for term in read(locate()): print(term.name, term.label, term.comment)

RDF in XML, as its maintainers publish it: a class or property is an element with `rdfs:label` and `rdfs:comment`
in several languages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from corpora.store.errors import CorpusError
from corpora.store.places import named_file

VARIABLE = "SEMRAY_DBPEDIA"
FILE = "dbo-snapshots.owl"
MENDING = (
    f"curl -LO https://github.com/dbpedia/ontology-tracker/raw/master/{FILE}\n"
    f"    then: export {VARIABLE}=$PWD/{FILE}, or name the file under data.dbpedia"
)
_RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
_RDFS = "{http://www.w3.org/2000/01/rdf-schema#}"
_OWL = "{http://www.w3.org/2002/07/owl#}"
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
TAGS = frozenset(_OWL + kind for kind in ("Class", "ObjectProperty", "DatatypeProperty"))


@dataclass(frozen=True, slots=True)
class OntologyTerm:
    """A class or property with its first English label and comment, runs of white space as one space."""

    name: str
    label: str
    comment: str


def locate(path: str | None = None) -> Path:
    """The ontology's file at `path` or in that folder, else at $SEMRAY_DBPEDIA. CorpusError says how to get it."""
    if place := named_file(path, setting="data.dbpedia", variable=VARIABLE, file=FILE, mending=MENDING):
        return place
    raise CorpusError(
        "corpora: the DBpedia ontology not found; looked at\n"
        f"    data.dbpedia: not set\n    ${VARIABLE}: not set\n  to get it: {MENDING}"
    )


def read(place: Path) -> Iterator[OntologyTerm]:
    """Every class and property that has both in English, in file order. CorpusError for a file that is no RDF."""
    try:
        root = ElementTree.parse(place).getroot()
    except (OSError, ElementTree.ParseError) as error:
        raise CorpusError(f"corpora: the DBpedia ontology at {place} cannot be read: {error}") from error
    for element in root:
        if element.tag in TAGS:
            label, comment = (_english(element, _RDFS + kind) for kind in ("label", "comment"))
            if label and comment:
                yield OntologyTerm(element.get(_RDF + "about", "").rpartition("/")[2], label, comment)


def _english(element: ElementTree.Element, tag: str) -> str:
    texts = (" ".join((found.text or "").split()) for found in element.iter(tag) if found.get(_LANGUAGE) == "en")
    return next(texts, "")
