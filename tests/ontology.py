"""An ontology in DBpedia's own file format, of a few made-up classes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import escape

HEAD = """<?xml version="1.0" encoding="utf-8"?>
<rdf:RDF xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#" xmlns:owl="http://www.w3.org/2002/07/owl#"
 xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xml:base="http://dbpedia.org/ontology/">
<owl:Ontology rdf:about="http://dbpedia.org/ontology/"/>
"""


def write_ontology(folder: Path, terms: Iterable[tuple[str, str, str]]) -> Path:
    """A file of these (name, label, comment), each with a label in German before, and one class without a comment."""
    classes = (
        f'<owl:Class rdf:about="http://dbpedia.org/ontology/{name}"><rdfs:label xml:lang="de">Ding</rdfs:label>'
        f'<rdfs:label xml:lang="en">{escape(label)}</rdfs:label>'
        f'<rdfs:comment xml:lang="en">{escape(comment)}</rdfs:comment></owl:Class>\n'
        for name, label, comment in terms
    )
    bare = '<owl:Class rdf:about="http://dbpedia.org/ontology/Bare"><rdfs:label xml:lang="en">bare</rdfs:label></owl:Class>'
    place = folder / "dbo-snapshots.owl"
    place.write_text(f"{HEAD}{''.join(classes)}{bare}</rdf:RDF>", encoding="utf-8")
    return place
