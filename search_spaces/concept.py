"""The search space of the concept family: the loss's scales, the hard negatives' term, and learning rates.

The sources hold the paper's values; the ranges around them are ours. Objectives to search by: `dev/t2d/mrr` for
ranking, and `dev/pair_auc` for calibration, which hard negatives improve.
"""

from __future__ import annotations

from search_spaces.space import Dimension, Space

_HARD = {"hard_negatives": (True,)}
_PUSHED = {**_HARD, "hn_mode": ("absolute", "relative", "both", "unscaled")}  # other modes have no such term
_SCALED = {**_HARD, "hn_mode": ("absolute", "relative", "both")}
_MIXED = {"readout": ("weighted", "gated")}

SPACE: Space = (
    Dimension(name="learning_rate", low=5e-6, high=1e-4, log=True, source="ours: 2e-5 is usual for this size"),
    Dimension(name="layer_decay", low=0.8, high=1.0, source="Concept, appendix E: 0.90"),
    Dimension(name="temperature", low=0.01, high=0.2, log=True, source="Concept, appendix E: 0.05"),
    Dimension(
        name="hn_mode",
        choices=("absolute", "relative", "both"),
        when=_HARD,
        source="ours: the formula is missing from the paper's text",
    ),
    Dimension(name="hn_margin", low=0.05, high=0.5, when=_PUSHED, source="Concept, appendix E: 0.20"),
    Dimension(
        name="hn_coefficient",
        low=0.05,
        high=2.0,
        log=True,
        when=_PUSHED,
        source="Concept, section 4.3: 0.5, not ablated",
    ),
    Dimension(
        name="hn_temperature",
        choices=(None, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
        when=_SCALED,
        source="ours; None: that of the other terms",
    ),
    Dimension(name="batch_size", choices=(16, 32, 64), source="16 in the paper"),
    Dimension(name="layers", choices=(1, 2, 4, 6), when=_MIXED, source="Concept, appendix E: 4"),
    Dimension(
        name="pool_lr_multiplier",
        low=1.0,
        high=1000.0,
        log=True,
        when=_MIXED,
        source="at 1 a mixing weight moves about 0.08 in 8,000 steps: nearly a fixed mixture",
    ),
    Dimension(
        name="d2d_weight",
        low=0.0,
        high=1.0,
        when={"rows": ("lexicons",)},
        source="Concept, section 4.3: 0.7, not ablated",
    ),
)
