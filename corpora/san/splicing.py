"""The rewritten sentence: the original string with the replaced tokens put in, in the casing of what they replace.

The released code writes lower-cased tokens joined by blanks, also for encoders that read case: casing alone would
then tell a negative from its sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from corpora.san.mask_predict import TaggedTokens


def spliced(text: str, tokens: TaggedTokens, ids: np.ndarray, surfaces: Sequence[str]) -> str:
    """text with the tokens replaced whose id is another now. ids (T,)."""
    parts, at = [], 0
    for place in np.flatnonzero(ids != tokens.ids).tolist():
        start, end = int(tokens.start[place]), int(tokens.end[place])
        alone = start == 0 or not text[start - 1].isalnum()
        parts += [text[at:start], cased(surfaces[ids[place]], like=text[start:end], begins_word=alone)]
        at = end
    return "".join(parts) + text[at:]


def cased(word: str, *, like: str, begins_word: bool = True) -> str:
    """word in lower case, Title or UPPER as `like` is; one capital at a word's beginning counts as Title."""
    letters = [letter for letter in like if letter.isalpha()]
    if letters and all(letter.isupper() for letter in letters) and (len(letters) > 1 or not begins_word):
        return word.upper()
    if letters and like[:1].isupper() and all(letter.islower() for letter in letters[1:]):
        return word[:1].upper() + word[1:]
    return word
