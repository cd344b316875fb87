"""Closed lists of English words for the rules of hard negatives."""

from __future__ import annotations

from corpora.sources.inflection import variants
from corpora.sources.texts import word_set, words

DETERMINERS = word_set("""
    a an the this that these those such same other another each every either neither both all any some no none
    my our your his her its their whose which what whatever whichever
    """)
PREPOSITIONS = word_set("""
    of in on at by for with without within from to into onto upon about above across after against along among amid
    around before behind below beneath beside besides between beyond despite down during except inside like near
    off out outside over past per through throughout toward towards under underneath until up via
    """)
AUXILIARIES = word_set(
    "is are was were am have has had does do did can could may might must shall should will would"
)
# Words of grammar, which carry no meaning of a definition.
FUNCTION_WORDS = (
    DETERMINERS
    | PREPOSITIONS
    | AUXILIARIES
    | word_set("""
        i me mine we us ours you yours he him she hers it they them theirs one oneself himself herself itself
        themselves who whom whoever where when while how why and or but nor so yet if unless till because since
        although though whereas whether than as be been being having doing done ought not also too very more most
        much many less least few only just even then there here ever never often usually especially particularly
        etc
        """)
)
# Words too general for their opposite to be the opposite of the concept ("the act of" -> "the inaction of").
_LIGHT_NOUNS = words("""
    act state quality condition kind sort type form part member group one person someone something thing manner way
    amount number
    """)
_LIGHT_VERBS = words("make give take get put set go come become use have relate pertain belong show cause")
_LIGHT_IRREGULAR = words("made gave given took taken got gotten went gone came became had has shown people")
LIGHT_WORDS = frozenset(
    {
        *(form for noun in _LIGHT_NOUNS for form in variants(noun, "n")),
        *(form for verb in _LIGHT_VERBS for form in variants(verb, "v")),
        *_LIGHT_IRREGULAR,
    }
)
# Prefixes that keep their meaning from word to word, the longest first.
PREFIXES = tuple(
    sorted(
        words("""
        counter electro cardio circum contra pseudo psycho thermo extra hydro hyper infra inter intra macro micro
        multi neuro photo proto quasi retro super trans ultra under anti auto down fore hypo mega meta mono omni
        over para peri poly post self semi tele vice bio dis geo iso mis neo non out pan pre sub sur tri bi co de
        em en ex il im in ir re un
        """),
        key=lambda prefix: (-len(prefix), prefix),
    )
)
