"""The search space of the difficulty family: which settings of a pair or per-sentence arm may move, and how far.

The objective to search by is `dev/{task}/isolated_gain`: Spearman on held-out training pairs, over the better of
the control without the difficulty signal and the frozen cosine. Spearman alone would reward a small gamma, which
is no difficulty. The paper (Hwang 2026, section 4) fixes all of these; the ranges are ours around its values.
"""

from __future__ import annotations

from search_spaces.space import Dimension, Space
from trainers.difficulty.settings import DOUBTED, PAIR_FORMS, SENTENCE_FORMS

_BLENDED = tuple(name for name, form in SENTENCE_FORMS.items() if form.blended)
_RESIDUAL = (*PAIR_FORMS, *_BLENDED)
_SCALED = tuple(name for name, form in SENTENCE_FORMS.items() if form.source)
_TARGETED = (
    *(name for name, form in PAIR_FORMS.items() if form.target or form.matched),
    *(name for name, form in SENTENCE_FORMS.items() if form.target),
)

SPACE: Space = (
    Dimension(
        name="gamma",
        low=0.02,
        high=2.0,
        log=True,
        when={"form": _RESIDUAL},
        cap=1.0,
        capped={"form": _BLENDED, "interp_form": ("interpolate",)},
        source="section 5.3: 0.25 and 2",
    ),
    Dimension(name="lambda_rank", choices=(0.0, 0.03, 0.1, 0.3), source="0.1 in the paper"),
    Dimension(name="lambda_hard", choices=(0.1, 0.5, 1.0), when={"form": _TARGETED}, source="0.5 in the paper"),
    Dimension(
        name="lambda_anchor",
        choices=(0.0, 0.05, 0.2),
        when={"form": tuple(SENTENCE_FORMS)},
        source="0.05 in the paper",
    ),
    Dimension(name="learning_rate", low=1e-4, high=3e-3, log=True, source="1e-3 in the paper"),
    Dimension(name="weight_decay", choices=(0.0, 1e-2, 1e-1), source="1e-2 in the paper"),
    Dimension(name="steps", choices=(200, 400, 600, 800), source="400 to 800 in the paper's tables"),
    Dimension(name="batch_size", choices=(64, 128), source="64 to 128 in the paper"),
    Dimension(name="init", choices=("linear", "identity"), source="not stated; both start as the frozen cosine"),
    Dimension(
        name="d_h",
        choices=(None, 64, 256, "full"),  # None: 128 for a pair arm, the full width for a per-sentence one
        when={"init": ("linear",)},
        otherwise="full",  # the identity is a start of full width alone
        source="not stated",
    ),
    Dimension(name="m", choices=(None, 32, 128), source="not stated; None: 64 for a pair arm, 128 for another"),
    Dimension(name="alpha0", choices=(0.05, 0.2, 0.5), when={"form": _SCALED}, source="not stated"),
    Dimension(
        name="ce_map", choices=("half", "identity"), when={"form": DOUBTED}, source="equation 7, and without it"
    ),
)
