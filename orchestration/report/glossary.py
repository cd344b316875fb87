"""The terms of a report: each is explained at its first place (as a tooltip), and all at the end."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from orchestration.study.names import printable

GLOSSARY = {
    "paired seeds": (
        "both arms run with the same seed, which gives arms that semray trains the same order of data, the same "
        "start and the same draws; so a difference between them is the recipe's"
    ),
    "crossed t": (
        "a t test that counts two kinds of chance, in the seeds and in the choice of test items, and asks the "
        "difference to hold over both"
    ),
    "Holm": (
        "a correction for several claims: the smallest p is multiplied by the number of claims, the next by one "
        "less, and so on"
    ),
    "Benjamini-Hochberg": (
        "a correction for several claims that bounds the share of false ones among those that are shown"
    ),
    "ledger": (
        "the folder that every figure here is read from: one sealed entry for each run's training and for each of "
        "its scores"
    ),
    "lane": "a place where runs are trained one after another: a core, or a share of a GPU",
    "exploratory": "a claim that was added, or given other seeds or rows, when results could be seen already",
    "seeds agree": "paired seeds whose difference has the sign of the verdict, else of the mean; no test",
}
TERM = re.compile(rf"\b({'|'.join(map(re.escape, GLOSSARY))})\b")


class Hover:
    """Marks up texts of one page: the first occurrence of each term gets its explanation as a tooltip."""

    def __init__(self) -> None:
        self.explained: set[str] = set()

    def __call__(self, text: str) -> Markup:
        """The escaped text, with tooltips."""
        return Markup(TERM.sub(self._with_tooltip, str(escape(printable(text)))))

    def _with_tooltip(self, found: re.Match[str]) -> str:
        term = found[0]
        if term in self.explained:
            return term
        self.explained.add(term)
        return str(Markup('<abbr title="{}">{}</abbr>').format(GLOSSARY[term], term))
