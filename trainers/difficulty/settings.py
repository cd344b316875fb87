"""Difficulty: does conditioning a frozen embedding on how hard the input is improve it, and when?

The arms as data, and the settings of one arm. Source: Hwang 2026 (arXiv 2606.03244), sections 3.2 to 3.6 and 4.
Arms the paper does not have are marked `ours`: without them a gain of the gated form cannot be told from a smaller
correction, or from the label in disguise.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from corpora.store.fields import Count, NotNegative, Positive, check_fields
from trainers.engine.limits import Batch, Steps

Source = Literal["zero", "half", "global", "shuffled", "own"]


@dataclass(frozen=True)
class PairForm:
    """cos + gamma [c] delta. target: what supervises the predicted hardness c."""

    gated: bool
    target: Literal["hard_lex", "hard_ce", "label"] | None = None
    shuffled: bool = False  # the same targets, permuted over the training pairs: same mean, no information
    matched: bool = False  # gamma is multiplied by the mean gate of the arm named in `matched_to`
    taught: bool = False  # regresses on the judge's score and never sees gold


@dataclass(frozen=True)
class SentenceForm:
    """cosine of adapted vectors. source: what the scale is fed; None: the projection alone, without scale."""

    source: Source | None
    target: Literal["surface", "hard_lex"] | None = None
    blended: bool = False  # mixed with the frozen vector


PAIR_FORMS = {
    "pair_ungated": PairForm(gated=False),
    "pair_lex": PairForm(gated=True, target="hard_lex"),
    "pair_judge": PairForm(gated=True, target="hard_ce"),
    "pair_gate_free": PairForm(gated=True),  # ours: the gate's form without its supervision
    "pair_lex_shuffled": PairForm(gated=True, target="hard_lex", shuffled=True),  # ours
    "pair_judge_shuffled": PairForm(gated=True, target="hard_ce", shuffled=True),  # ours
    "pair_ungated_matched": PairForm(gated=False, matched=True),  # ours: as small a residual, no gate
    "pair_label_target": PairForm(gated=True, target="label"),  # ours: is the difficulty the label?
    "pair_distilled": PairForm(gated=False, taught=True),  # ours: is the judge worth more as a teacher?
}
_SCALED = {
    "h_only": SentenceForm("zero"),
    "fixed": SentenceForm("half"),
    "global": SentenceForm("global"),
    "shuffled": SentenceForm("shuffled", target="surface"),
    "complexity": SentenceForm("own", target="surface"),
    "complexity_lex": SentenceForm("own", target="hard_lex"),
}
SENTENCE_FORMS = {
    "proj_only": SentenceForm(None),
    **_SCALED,
    **{f"interp_{name}": SentenceForm(form.source, form.target, blended=True) for name, form in _SCALED.items()},
}
ISOLATED_BY = {
    "pair_lex": "pair_lex_shuffled",
    "pair_judge": "pair_judge_shuffled",
    "complexity": "fixed",
    "complexity_lex": "fixed",
    "interp_complexity": "interp_fixed",
    "interp_complexity_lex": "interp_fixed",
}  # treated arm -> the control without the difficulty signal
UNTRAINED = ("baseline", "judge_scorer")  # the frozen cosine; the judge itself as scorer, an upper reference
FORMS = (*UNTRAINED, *SENTENCE_FORMS, *PAIR_FORMS)
if TYPE_CHECKING:
    Form = str
else:
    Form = Literal[FORMS]
DOUBTED = tuple(name for name, form in PAIR_FORMS.items() if form.target == "hard_ce")  # gated by a judge's doubt
JUDGED = ("judge_scorer", *DOUBTED, *(name for name, form in PAIR_FORMS.items() if form.taught))


VECTOR = 32  # float32 numbers: two AVX-512 vectors, the widest step of a vector loop (stack_arithmetic, rule 2)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One arm. Sections and equations beside the defaults are the paper's.

    d_h, m: working width and hidden units; `full` is the width of the embedding. None gives pair arms 128 and 64,
    per-sentence arms the full width and 128. ce_map: the judge's score is compared with (cos + 1) / 2 (`half`,
    equation 7) or with cos itself (`identity`). lambda_anchor acts on per-sentence arms alone.
    matched_to: the treated arm whose mean gate shrinks the residual of `pair_ungated_matched`. It is trained
    with all other settings equal and the same seed; the mean is over the training pairs.
    """

    form: Form = "pair_judge"  # section 3.5
    gamma: Positive = 0.25  # section 4
    init: Literal["linear", "identity"] = "linear"  # ours
    steps: Steps = 600  # section 4: 400 to 800
    batch_size: Batch = 128  # section 4: 64 to 128
    learning_rate: Positive = 1e-3  # section 4
    weight_decay: NotNegative = 1e-2  # section 4
    d_h: Count | Literal["full"] | None = None  # ours: the paper gives no sizes
    m: Count | None = None  # ours: the paper gives no sizes
    alpha0: Positive = 0.2  # ours: section 3.2 says "a small range"
    lambda_rank: NotNegative = 0.1  # section 3.6
    lambda_anchor: NotNegative = 0.05  # section 3.6
    lambda_hard: NotNegative = 0.5  # section 3.6
    tau: Positive = 0.05  # section 3.6
    ce_map: Literal["half", "identity"] = "half"  # equation 7
    interp_form: Literal["interpolate", "residual"] = "interpolate"  # ours
    matched_to: str | None = None  # ours

    def __post_init__(self) -> None:
        check_fields(self, "train")
        gated = [name for name, form in PAIR_FORMS.items() if form.gated]
        if self.form == "pair_ungated_matched" and self.matched_to not in gated:
            raise ValueError(f"matched_to = {self.matched_to!r}; accepted with this form: {', '.join(gated)}")
        if self.form != "pair_ungated_matched" and self.matched_to is not None:
            raise ValueError(f"matched_to = {self.matched_to!r}; only the form pair_ungated_matched has it")
        blend = SENTENCE_FORMS.get(self.form)
        if self.gamma > 1 and blend is not None and blend.blended and self.interp_form == "interpolate":
            raise ValueError(
                f"gamma = {self.gamma:g}; accepted with {self.form}: at most 1, or interp_form: residual, since"
                " above 1 the frozen vector is taken away"
            )
        if self.batch_size % VECTOR:
            raise ValueError(
                f"batch_size = {self.batch_size}\n  accepted: a multiple of {VECTOR}, or a model's numbers would"
                " depend on the stack it is trained in"
            )

    @property
    def train(self) -> bool:
        """False for an arm that needs no training and no seed."""
        return self.form not in UNTRAINED

    @property
    def needs_judge(self) -> bool:
        return self.form in JUDGED or self.matched_to in JUDGED

    @property
    def usual_sizes(self) -> tuple[int | Literal["full"], int]:
        """What d_h and m are where they are None."""
        return (128, 64) if self.form in PAIR_FORMS else ("full", 128)

    def sizes(self, d: int) -> tuple[int, int]:
        """Working width and hidden units on embeddings of width d."""
        usual_d_h, usual_m = self.usual_sizes
        d_h = self.d_h or usual_d_h
        return d if d_h == "full" else d_h, self.m or usual_m


def isolating(settings: Settings) -> Settings | None:
    """The control that lacks only the difficulty signal, all else equal; None for an arm that has none to lack."""
    control = ISOLATED_BY.get(settings.form)
    return None if control is None else replace(settings, form=control)


def defining(settings: Settings) -> dict[str, Any]:
    """The settings that can change the result of this form, and no others: a frozen baseline has no step count.

    Sizes that are this form's own are None, as in an arm that says nothing of them.
    """
    kept = asdict(settings)
    own = zip(("d_h", "m"), settings.usual_sizes, strict=True)
    kept |= {name: None for name, usual in own if kept[name] == usual}
    if not settings.train:
        return {"form": settings.form}
    unused: set[str] = {"lambda_anchor", "alpha0", "interp_form"}
    form: PairForm | SentenceForm = PAIR_FORMS.get(settings.form) or SENTENCE_FORMS[settings.form]
    if isinstance(form, SentenceForm):
        unused = set() if form.blended else {"gamma", "interp_form"}
        unused |= set() if form.source else {"alpha0"}
    if settings.form not in DOUBTED and settings.matched_to not in DOUBTED:
        unused.add("ce_map")
    if form.target is None and settings.matched_to is None:
        unused.add("lambda_hard")
    if settings.matched_to is None:
        unused.add("matched_to")
    return {name: value for name, value in kept.items() if name not in unused}
