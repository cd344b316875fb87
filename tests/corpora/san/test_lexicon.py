"""The order of resolution, step by step, and tables from outside."""

from __future__ import annotations

from collections import Counter

import pytest

from corpora.san.importance import POS
from corpora.san.lexicon import by_ending, by_list_or_form, counts_of, resolver, tags_of
from corpora.sources.semcor import tagged_words
from tests.corpora.semcor_samples import as_xml


@pytest.mark.parametrize(
    ("word", "pos"),
    [
        *(("to", "PART"), ("n't", "PART"), ("'s", "PART"), ("has", "AUX"), ("may", "AUX"), ("doing", "AUX")),
        *(("plus", "CCONJ"), ("the", "DET"), ("whose", "DET"), ("such", "DET"), ("herself", "PRON")),
        *(
            ("nothing", "PRON"),
            ("who", "PRON"),
            ("than", "SCONJ"),
            ("how", "SCONJ"),
            ("like", "ADP"),
            ("as", "ADP"),
        ),
        *(("before", "ADP"), ("after", "ADP"), ("oh", "INTJ"), ("seventeen", "NUM")),
        *(("1956", "NUM"), ("1,000.5", "NUM"), ("20th", "NUM"), ("1980s", "NUM"), ("10/11", "NUM")),
        *(("...", "PUNCT"), ("—", "PUNCT"), ("$", "SYM"), ("+", "SYM"), ("boat", None), ("-$", None)),
    ],
)
def test_lists_and_form(word, pos):
    assert by_list_or_form(word) == pos


@pytest.mark.parametrize(
    ("word", "pos"),
    [
        ("zorgly", "ADV"),
        ("zorging", "VERB"),
        ("zorged", "VERB"),
        ("zorgous", "ADJ"),
        ("zorg", "PROPN"),
        ("zo", "X"),
    ],
)
def test_endings(word, pos):
    assert by_ending(word) == pos


def test_counts_decide_from_two_on_and_never_over_a_list():
    counts = {"zorg": Counter(VERB=2, NOUN=1), "zerg": Counter(VERB=1), "the": Counter(NOUN=9)}
    resolve = resolver(counts=counts)
    assert [resolve(word) for word in ("zorg", "zerg", "the")] == ["VERB", "PROPN", "DET"]


def test_counts_of_tags():
    counts = counts_of(
        [("Ran", "VBD"), ("ran", "VBD"), ("was", "VBD"), ("not", "RB"), ("that", "IN"), ("Rome", "NNP")]
    )
    assert counts == {
        "ran": {"VERB": 2},
        "was": {"AUX": 1},
        "not": {"PART": 1},
        "that": {"SCONJ": 1},
        "rome": {"PROPN": 1},
    }


def test_wordnet_knows_forms_and_names(real):
    resolve = resolver(wordnet=real)
    words = ("boats", "repaired", "quickly", "muddy", "wrote", "london", "paris", "geese", "colourless")
    tags = ("NOUN", "VERB", "ADV", "ADJ", "VERB", "PROPN", "PROPN", "NOUN", "ADJ")
    assert tuple(map(resolve, words)) == tags


def test_entries_of_a_vocabulary():
    entries = ["[CLS]", "[unused3]", "ing", "The", "<s>", "...", "["]
    tags = tags_of(entries, resolver(), initial=[True, True, False, True, True, True, True])
    assert [POS[tag] for tag in tags] == ["SPECIAL", "X", "X", "DET", "SPECIAL", "PUNCT", "PUNCT"]


def test_words_of_tag_files():
    """Tags of an expression's parts and expressions themselves say nothing about a word."""
    content = (
        b"<s snum=1>\n<wf cmd=done pos=VB lemma=take wnsn=1 lexsn=2:41:00::>took</wf>\n"
        b"<wf cmd=done pos=VB ot=notag>the</wf>\n<wf cmd=done pos=NN lemma=a_b wnsn=1>a_b</wf>\n<punc>.</punc>\n</s>\n"
        b"<s snum=2>\n<wf cmd=ignore pos=DT>The</wf>\n<wf cmd=tag pos=VB|NN>run</wf>\n<punc>&</punc>\n</s>"
    )
    xml = as_xml(content.decode()).encode()
    for form in (content, xml, xml.partition(b"\n")[2]):  # with and without its declaration
        assert list(tagged_words({"br-a01": form})) == [
            [("took", "VB"), (".", ".")],
            [("The", "DT"), ("run", "VB"), ("&", ".")],
        ]
