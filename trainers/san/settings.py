"""What a san study may set, and which of it can change a result.

Arms are settings: simcse {}, simcse+san {san: hince, negatives: san, tau2: 0.08, p2: 0.2}, NL {san: hard, ...},
rlrd-fixed {host: rlrd, rl_update: fixed}. The settings of the paper's scripts stand in docs/san.md.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from trainers.engine.limits import Steps

Host = Literal["simcse", "simcse_sup", "sncse", "rankcse", "rlrd"]
PROMPTED = frozenset({"sncse", "rlrd"})
TAUGHT = frozenset({"rankcse", "rlrd"})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The `train:` block of a san study. ValueError names a field whose value is not accepted.

    layers: the first layers of the backbone, which alone are kept; None for all.
    host: the recipe that negatives are added to. san: not at all, at a temperature of their own (HiNCE), or at
    tau1 (hard). negatives: the name of a set in data.negatives. column: what takes their place in controls.
    postprocess: the rule by which negatives of low quality are replaced.
    conform: where the authors' code departs from the paper, follow the one or the other (docs/san.md lists where).
    p1: dropout of the views, None for the backbone's own. p2: of the negatives, or of the second view (p2_of).
    own_weight: log-weight of an anchor's own negative. dedup_in_batch: sentences that equal an anchor are no
    negatives of it; None as `conform` says.
    batch_size: anchors a step over all workers; a batch that is not full is left out. steps: None for `epochs`.
    bml_*: SNCSE's margins and their weight.
    teachers: one or two frozen encoders of data.teachers, by their names. rank_*: the loss on lists, the student's
    temperature and the teachers' (None: the student's; half of it for listnet), the first teacher's share, the
    loss's weight; normalised by items it is divided by their number. consistency: None as `conform` says.
    san_mle: weight of the lists over negatives beside those over views; tau3: the teachers' temperature there.
    rl_*: in RLRD the weight of all lists; how policies learn (fixed: none, equal shares), after how many steps,
    and how often they go over these.
    """

    train: bool = True
    host: Host = "simcse"
    san: Literal["off", "hince", "hard"] = "off"
    negatives: str = ""
    column: Literal["san", "random", "soft"] = "san"
    postprocess: Literal["off", "authors", "semray"] = "semray"
    conform: Literal["paper", "authors"] = "paper"
    readout: Literal["cls", "mean"] = "cls"
    layers: int | None = None
    tau1: float = 0.05
    tau2: float = 0.08
    p1: float | None = None
    p2: float = 0.2
    p2_of: Literal["negatives", "second_view"] = "negatives"
    san_pass: Literal["separate", "fused"] = "separate"
    own_weight: float = 0.0
    dedup_in_batch: bool | None = None
    learning_rate: float = 3e-5
    epochs: int = 1
    steps: Steps | None = None
    batch_size: int = 64
    warmup: int = 0
    weight_decay: float = 0.0
    clip_norm: float = 1.0
    max_length: int = 32
    bml_alpha: float = 0.1
    bml_beta: float = 0.3
    bml_weight: float = 1e-3
    teachers: tuple[str, ...] = ()
    rank_loss: Literal["listmle", "listnet"] = "listmle"
    rank_tau: float = 0.05
    rank_teacher_tau: float | None = None
    rank_mix: float = 0.33
    rank_weight: float = 1.0
    rank_normalise: Literal["none", "items"] = "none"
    consistency: Literal["js", "entropy", "off"] | None = None
    consistency_weight: float = 1.0
    san_mle: float = 0.2
    tau3: float = 0.05
    rl_weight: float = 1e-3
    rl_update: Literal["ppo", "reinforce", "fixed"] = "ppo"
    rl_every: int = 125
    rl_epochs: int = 3

    def __post_init__(self) -> None:
        for name in sorted(POSITIVE):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"train.{name} = {value!r}\n  accepted: a number above 0")
        for name in sorted(NOT_NEGATIVE):
            if not getattr(self, name) >= 0:
                raise ValueError(f"train.{name} = {getattr(self, name)!r}\n  accepted: 0 or above")
        for name, value in (("p1", self.p1), ("p2", self.p2), ("rank_mix", self.rank_mix)):
            if value is not None and not 0 <= value < 1:
                raise ValueError(f"train.{name} = {value!r}\n  accepted: a number from 0 to below 1")
        if self.train:
            self._check_negatives()
            self._check_teachers()

    def _check_negatives(self) -> None:
        if self.needs_set and not self.negatives:
            raise ValueError(
                f"train.negatives = ''\n  accepted: with san {self.san} the name of a set in data.sets"
            )
        if self.p2_of == "second_view" and (self.san != "off" or self.host in PROMPTED | {"simcse_sup"}):
            raise ValueError(
                "train.p2_of = 'second_view'\n  accepted: negatives, or with san off and host simcse or rankcse"
            )
        if self.column != "san" and self.san == "off":
            raise ValueError(f"train.column = {self.column!r}\n  accepted: san, or any with san hince or hard")

    def _check_teachers(self) -> None:
        wanted = {"rankcse": (1, 2), "rlrd": (2,)}.get(self.host)
        if wanted and len(self.teachers) not in wanted:
            raise ValueError(
                f"train.teachers = {list(self.teachers)!r}\n  accepted: with host {self.host} "
                f"{' or '.join(map(str, wanted))} of the names in data.teachers"
            )

    @property
    def needs_set(self) -> bool:
        """Whether a set of aligned negatives takes part."""
        return self.train and self.san != "off" and self.column == "san"

    @property
    def tau_negative(self) -> float:
        """The temperature of the negatives."""
        return self.tau1 if self.san == "hard" else self.tau2

    @property
    def dedup(self) -> bool:
        """Whether what equals an anchor is left out of its negatives."""
        return self.conform == "paper" if self.dedup_in_batch is None else self.dedup_in_batch

    @property
    def consistent(self) -> Literal["js", "entropy", "off"]:
        """The form of RankCSE's consistency."""
        return self.consistency or ("js" if self.conform == "paper" else "entropy")

    @property
    def teacher_tau(self) -> float:
        """The temperature of the teachers' lists over views."""
        if self.rank_teacher_tau is not None:
            return self.rank_teacher_tau
        return self.rank_tau / (2 if self.rank_loss == "listnet" else 1)


POSITIVE = frozenset(
    {"tau1", "tau2", "tau3", "rank_tau", "rank_teacher_tau", "learning_rate", "epochs", "steps", "batch_size"}
    | {"clip_norm", "max_length", "rl_every", "rl_epochs", "layers"}
)
NOT_NEGATIVE = frozenset(
    {"warmup", "weight_decay", "bml_alpha", "bml_beta", "bml_weight", "rank_weight", "consistency_weight"}
    | {"san_mle", "rl_weight"}
)
OF_NEGATIVES = frozenset({"negatives", "column", "postprocess", "tau2", "own_weight", "san_mle", "tau3"})
OF_SECOND_RATE = frozenset({"p2", "san_pass"})
OF_BML = frozenset({"bml_alpha", "bml_beta", "bml_weight"})
OF_LISTS = frozenset({"teachers", "rank_loss", "rank_tau", "rank_teacher_tau", "rank_normalise"})
OF_RANKCSE = frozenset({"rank_mix", "rank_weight", "consistency", "consistency_weight"})
OF_RLRD = frozenset({"rl_weight", "rl_update", "rl_every", "rl_epochs"})
OF_POLICIES = frozenset({"rl_every", "rl_epochs"})
UNTRAINED = frozenset({"train", "readout", "layers", "max_length"})


def defining(settings: Settings) -> dict[str, Any]:
    """The settings that can change the result of this arm.

    What `conform` decides alone is written out, so that an arm which says so itself is the same arm.
    """
    kept = asdict(settings)
    prompted = settings.host in PROMPTED
    if not settings.train:
        kept = {name: kept[name] for name in UNTRAINED}
        return kept | ({"host": "prompted", "readout": "mask"} if prompted else {})
    kept |= {"dedup_in_batch": settings.dedup, "consistency": settings.consistent}
    unread: set[str] = set()
    if settings.steps is not None:
        unread.add("epochs")
    if prompted:
        unread.add("readout")
    if settings.san == "off":
        unread |= OF_NEGATIVES | (OF_SECOND_RATE if settings.p2_of == "negatives" else frozenset())
    elif settings.column != "san":
        unread |= {"negatives", "postprocess"}
    if settings.san == "hard":
        unread.add("tau2")
    if settings.host not in PROMPTED:
        unread |= OF_BML
    if settings.host not in TAUGHT:
        unread |= OF_LISTS | {"san_mle", "tau3"}
    if settings.host != "rankcse":
        unread |= OF_RANKCSE
    if settings.host != "rlrd":
        unread |= OF_RLRD
    elif settings.rl_update == "fixed":
        unread |= OF_POLICIES
    if settings.host not in TAUGHT:
        unread.add("conform")  # all that it decides elsewhere is written out above
    return {name: value for name, value in kept.items() if name not in unread}
