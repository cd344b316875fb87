"""How a set of aligned negatives is made, as fields of a study or flags of a command: read without numpy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le, Lt

from corpora.store.fields import check_fields

Law = Literal["importance", "uniform", "content_only"]


@dataclass(frozen=True, kw_only=True)
class SetRecipe:
    """How sentences are rewritten. ValueError names a field whose value is not accepted.

    law, scale: who is masked how often (importance.py). importance: a table of scores in a file; None for the
    paper's. iterations: cycles of mask and predict. decode: the best filling, or one of the k best by Gumbel
    noise. tagging: by vocabulary entry, or by a tagger on the sentence. negator: who writes the soft negatives.
    max_tokens: later ones stay as they are. seed: of masks and noise, never that of a training run.
    """

    law: Law = "importance"  # section 3.1
    scale: Annotated[float, Gt(0), Lt(math.inf), "a number above 0"] = 20.0  # table 7
    importance: str | None = None  # table 2
    iterations: Annotated[int, Ge(1), Le(32)] = 4  # the released code's; the paper says "several"
    decode: Literal["argmax", "topk"] = "argmax"  # the released code
    k: Annotated[int, Ge(1), Le(100)] = 5  # ours
    tagging: Literal["static", "dynamic"] = "static"  # appendix A
    negator: Literal["rule", "parse"] = "rule"  # ours: needs no parser; the authors' have one
    max_tokens: Annotated[int, Ge(1), Le(512)] = 128  # ours: the code cuts at 300 characters
    seed: Annotated[int, Ge(0), Le(2**63)] = 0  # ours

    def __post_init__(self) -> None:
        check_fields(self, "negatives")
