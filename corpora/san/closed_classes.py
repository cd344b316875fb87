"""The closed classes of English, by Universal POS: words whose tag needs no lexicon.

A word of several classes has that of the first class which lists it, in the order of CLOSED. `like`, `as`,
`before` and `after` are prepositions here.
"""

from __future__ import annotations

from collections.abc import Mapping

from corpora.sources.texts import word_set

HAVE = word_set("have has had having 've 'd")
DO = word_set("do does did doing done")
BE = word_set("be am is are was were been being 'm 're ai")
MODALS = word_set("can could may might must shall should will would ought 'll ca wo sha cannot")

CLOSED: Mapping[str, frozenset[str]] = {
    "PART": word_set("not n't nt 's to ' n’t ’s"),
    "AUX": HAVE | DO | BE | MODALS | word_set("’ve ’d ’m ’re ’ll"),
    "CCONJ": word_set("and or but nor yet plus &"),
    "DET": word_set("""
        a an the this that these those each every either neither any some no all both half such another what which
        whose
        """),
    "PRON": word_set("""
        i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her
        hers herself it its itself they them their theirs themselves themself one's oneself who whom whoever
        whomever whatever whichever anyone anybody anything everyone everybody everything someone somebody
        something nobody nothing none thee thou thy thine ye there
        """),
    "SCONJ": word_set("""
        if because although though while whilst whereas unless until till since whether when whenever where
        wherever than lest once why how
        """),
    "ADP": word_set("""
        of in on at by for with without within from into onto upon about above across after against along alongside
        amid amidst among amongst around as before behind below beneath beside besides between beyond concerning
        despite down during except inside like near off out outside over past per regarding through throughout
        toward towards under underneath unlike unto up versus via vs
        """),
    "INTJ": word_set("oh ah aha alas bye eh gee goodbye ha hello hey hi hmm hurrah ouch ugh uh um wow yes yeah"),
    "NUM": word_set("""
        zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
        seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million
        billion trillion
        """),
}
POS_OF = {word: pos for pos, listed in reversed(list(CLOSED.items())) for word in listed}
