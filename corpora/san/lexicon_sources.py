"""The lexicon that tags and negates, from available sources: closed lists, WordNet, SemCor, or spaCy's model.

found = lexicon("auto", wordnet_at=None, semcor_at=None)
found.resolve("boats")                      # "NOUN"
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from corpora.san import lexicon_file, negation
from corpora.san.generate import Rewriter
from corpora.san.lexicon import Resolve, counts_of, resolver
from corpora.san.mask_predict import Generator
from corpora.san.recipe import SetRecipe
from corpora.san.tagging import by_isolated_word, tagged
from corpora.sources import semcor, semcor_files, spacy_model, wordnet, wordnet_files
from corpora.sources.wordnet import Wordnet
from corpora.store.cache import key_of
from corpora.store.errors import CorpusError
from corpora.store.places import named_path

AUTO, SPACY = "auto", "spacy"


@dataclass(frozen=True)
class Lexicon:
    """name: its steps, in words. fingerprint: a hash of its sources."""

    resolve: Resolve
    wordnet: Wordnet
    name: str
    fingerprint: str


def lexicon(source: str, *, wordnet_at: str | None = None, semcor_at: str | None = None) -> Lexicon:
    """auto: WordNet, and SemCor's counts if SemCor is available. spacy: its model in place of both.

    Any other source is a file (lexicon_file.py), which decides before closed lists and WordNet.
    """
    read = wordnet.read(wordnet_files.locate(wordnet_at))
    fingerprint = lexicon_fingerprint(source, wordnet_at=wordnet_at, semcor_at=semcor_at)
    if source == SPACY:
        return Lexicon(by_isolated_word(), read, f"closed lists, {spacy_model.named()}", fingerprint)
    if source != AUTO:
        file = named_path(source)
        steps = f"{file.name}, closed lists, WordNet"
        return Lexicon(lexicon_file.by_file(file, resolver(wordnet=read)), read, steps, fingerprint)
    files = _semcor(semcor_at)
    if files is None:
        return Lexicon(resolver(wordnet=read), read, "closed lists, WordNet", fingerprint)
    counts = counts_of(token for sentence in semcor.tagged_words(files.texts) for token in sentence)
    return Lexicon(resolver(wordnet=read, counts=counts), read, "closed lists, SemCor, WordNet", fingerprint)


def lexicon_fingerprint(source: str, *, wordnet_at: str | None, semcor_at: str | None) -> str:
    """A hash of the sources that `lexicon` would read, computed cheaply."""
    content: dict[str, Any] = {"wordnet": wordnet_files.locate(wordnet_at).digests()}
    if source == SPACY:
        content["spacy"] = spacy_model.named()
    elif source != AUTO:
        content["file"] = lexicon_file.digest_of(named_path(source))
    elif (files := _semcor(semcor_at)) is not None:
        content["semcor"] = files.digests()
    return key_of(content)


def rewriter(generator: Generator, recipe: SetRecipe, found: Lexicon) -> Rewriter:
    """The generator with the recipe's tagger and negator."""
    negate: Callable[[Sequence[str]], Iterable[str]] = negation.by_parse
    if recipe.negator == "rule":
        negate = partial(negation.by_rule, resolve=found.resolve, wordnet=found.wordnet)
    return Rewriter(
        generator=generator, recipe=recipe, negate=negate, tag=tagged if recipe.tagging == "dynamic" else None
    )


def negator_name(recipe: SetRecipe) -> str:
    """The negator that writes the soft negatives, in words."""
    if recipe.negator == "parse":
        return f"dependency parse by {spacy_model.named()}, rules of version {negation.PARSE}"
    return f"rules of version {negation.RULE} by closed lists and WordNet (a stand-in for a dependency parse)"


def _semcor(path: str | None) -> semcor_files.SemcorFiles | None:
    """SemCor, or None if it is not available. CorpusError if a named place lacks it."""
    try:
        return semcor_files.locate(path)
    except CorpusError:
        if path is not None:
            raise
        return None
