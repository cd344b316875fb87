"""The search space of the defsent family. To search by: `dev/d2w/mrr_at_10`, on definitions of words held out.

The paper's protocol is the grid of `lr_exponent` alone, 15 points for each backbone and readout; the test rows
and the yearly STS sets take no part. Word prediction and similarity disagree on what is best (DefSent, tables 5
and 8), so a study may search by the development part of an STS benchmark too, and says so. Where a head is from
is no dimension: figures of different heads are never put into one comparison.
"""

from __future__ import annotations

from search_spaces.space import Dimension, Space

EXPONENTS = tuple(half / 2 for half in range(17))

SPACE: Space = (
    Dimension(
        name="lr_exponent",
        choices=EXPONENTS,
        when={"learning_rate": (None,)},
        source="DefSent, section 3.2: 0 to 7 in halves; ours: up to 8, for a best point at the paper's border",
    ),
    Dimension(name="readout", choices=("cls", "mean", "max"), source="DefSent, section 2.2"),
    Dimension(
        name="freeze",
        choices=("head+embeddings", "head", "head_untied"),
        when={"objective": ("definitions",)},
        source="the first is the authors' code, the second what the paper says; ours: the third",
    ),
    Dimension(
        name="order",
        choices=("shuffled", "file"),
        when={"objective": ("definitions",)},
        source="ours; the authors' code goes by the file",
    ),
    Dimension(
        name="epochs",
        choices=(1, 2, 3),
        when={"steps": (None,), "matched_budget": (False,)},
        source="1 in the paper",
    ),
    Dimension(name="batch_size", choices=(16, 32), source="16 in the paper"),
    Dimension(name="warmup_ratio", choices=(0.0, 0.1), source="0.1 in the paper"),
)
