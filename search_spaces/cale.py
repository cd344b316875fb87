"""The search space of the cale family. To search by: `dev/spcd/ba_all`, on pairs of the validation split.

CALE, table 6, prints what its search found and not where it looked; the ranges are ours around that.
"""

from __future__ import annotations

from search_spaces.space import Dimension, Space

SPACE: Space = (
    Dimension(name="margin", low=0.3, high=1.0, source="CALE, table 6: 0.7"),
    Dimension(name="learning_rate", low=1e-6, high=5e-5, log=True, source="CALE, table 6: 6.02e-6"),
    Dimension(name="warmup_ratio", low=0.0, high=0.3, source="CALE, table 6: 0.24"),
    Dimension(name="weight_decay", low=0.0, high=0.1, source="CALE, table 6: 0.05"),
)
