"""Soft negatives by rule and by parse, on sentences whose negation is plain English."""

from __future__ import annotations

import pytest

from corpora.san.lexicon import resolver
from corpora.san.negation import by_parse, negated_rule
from corpora.sources import spacy_model
from corpora.store.errors import CorpusError


@pytest.fixture(scope="module")
def model():
    try:
        return spacy_model.load()
    except CorpusError as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize(
    ("text", "negated"),
    [
        ("He is not here.", "He is here ."),  # the first `not` goes
        ("She didn't leave.", "She did leave ."),
        ("They can't swim.", "They can swim ."),
        ("They cannot swim.", "They can swim ."),
        ("It ain't so.", "It is so ."),
        ("It was built by AI not by men.", "It was built by AI by men ."),  # `AI` is no rest of ain't
        ("The boat was repaired by him.", "The boat was not repaired by him ."),  # auxpass
        ("He will leave and has won.", "He will not leave and has won ."),  # the first of two
        ("Won't he come?", "Will he come ?"),
        ("She is a doctor.", "She is not a doctor ."),  # the root itself
        ("Is he here?", "Is not he here ?"),
        ("Were they late?", "Were not they late ?"),
        ("He repaired the boat.", "He did not repair the boat ."),  # VBD
        ("He repairs boats.", "He does not repair boats ."),  # VBZ
        ("They repair boats.", "They do not repair boats ."),  # VBP
        ("A muddy field near the school.", "Not A muddy field near the school ."),
        ("", ""),
    ],
)
def test_by_parse(text, negated, model):
    assert list(by_parse([text])) == [negated]


@pytest.mark.parametrize(
    ("text", "negated"),
    [
        ("He is not here.", "He is here."),
        ("She didn't leave.", "She did leave."),
        ("They can't swim.", "They can swim."),
        ("They cannot swim.", "They can swim."),
        ("Cannot we swim?", "Can we swim?"),
        ("It ain't so.", "It is so."),
        ("It was built by AI not by men.", "It was built by AI by men."),
        ("CA Technologies was sold.", "CA Technologies was not sold."),  # nor `CA` of can't
        ("AI found the boat.", "AI did not find the boat."),
        ("The town of Sha Tin.", "Not The town of Sha Tin."),
        ("Won't he come?", "Will he come?"),
        ("The boat was  repaired.", "The boat was not  repaired."),
        ("He has a boat.", "Not He has a boat."),  # no verb follows `has`
        ("He has never repaired it.", "He has not never repaired it."),
        ("He repaired the boat.", "He did not repair the boat."),
        ("She wrote letters.", "She did not write letters."),  # verb.exc
        ("He repairs boats.", "He does not repair boats."),
        ("Repair the boat.", "Do not repair the boat."),
        ("The boat whizzes by.", "The boat does not whiz by."),  # in verb.exc too
        ("He praticed law and won.", "He praticed law and did not win."),  # no verb of WordNet's
        ("Khalid Mohamed repaired it.", "Khalid Mohamed did not repair it."),
        ("Praticed law.", "Not Praticed law."),
        ("the repaired boat", "Not the repaired boat"),  # after a determiner
        ("to repair boats", "Not to repair boats"),
        ("A muddy field.", "Not A muddy field."),
        ("  ", ""),
    ],
)
def test_by_rule(text, negated, real):
    assert negated_rule(text, resolver(wordnet=real), real) == negated
