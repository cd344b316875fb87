"""What a san study may set, and which of it can change a result.

Arms are settings: simcse {}, simcse+san {san: hince, negatives: san, tau2: 0.08, p2: 0.2}, NL {san: hard, ...},
rlrd-fixed {host: rlrd, rl_update: fixed}. Tables, equations and sections beside the defaults are the paper's,
scripts and code its authors'; docs/san.md has a table of the scripts' settings.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal

from annotated_types import Ge, Lt

from corpora.store.fields import Count, Length, NotNegative, Positive, check_fields
from trainers.engine.limits import Batch, MicroBatchSize, Steps

Share = Annotated[float, Ge(0), Lt(1)]
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
    and how often they go over these. read_length: tokens of a text that are read when it is evaluated, in the
    middle of training too, and by the encoder that is kept; None for max_length. micro_batch: texts that pass the
    encoder at a time (docs/studies.md).
    """

    train: bool = True
    host: Host = "simcse"  # the first of section 3.3
    san: Literal["off", "hince", "hard"] = "off"  # equation 2, or section 5.3's NL; off is the plain host
    negatives: str = ""  # none: the study says which
    column: Literal["san", "random", "soft"] = "san"  # ours, a control: are three columns the gain?
    postprocess: Literal["off", "authors", "semray"] = "semray"  # ours; table 6: used with RankCSE and RLRD
    conform: Literal["paper", "authors"] = "paper"  # ours
    readout: Literal["cls", "mean"] = "cls"  # SimCSE's, read without its head
    layers: Count | None = None  # ours
    tau1: Positive = 0.05  # SimCSE's, in every script
    tau2: Positive = 0.08  # table 6, SimCSE on BERT-base
    p1: Share | None = None  # the backbone's own 0.1; three scripts of SimCSE+SAN have 0.15
    p2: Share = 0.2  # table 6, BERT-base
    p2_of: Literal["negatives", "second_view"] = "negatives"  # section 5.1; the other is ours, a control
    san_pass: Literal["separate", "fused"] = "separate"  # ours; the code draws from one stream
    own_weight: float = 0.0  # SimCSE's code; 0 in every script
    dedup_in_batch: bool | None = None  # ours
    learning_rate: Positive = 3e-5  # SimCSE's for BERT-base, in the script of SimCSE+SAN
    epochs: Count = 1  # SimCSE's for BERT-base, in the script of SimCSE+SAN
    batch_size: Batch = 64  # SimCSE's for BERT-base, in the script of SimCSE+SAN
    steps: Steps | None = None  # ours
    warmup: Annotated[int, Ge(0)] = 0  # the default of transformers, which no script changes
    weight_decay: NotNegative = 0.0  # the default of transformers, which no script changes
    clip_norm: Positive = 1.0  # the default of transformers, which no script changes
    max_length: Length = 32  # every script, tokens
    read_length: Length | None = None  # ours; the authors' evaluation cuts nothing
    bml_alpha: NotNegative = 0.1  # SNCSE's, in the scripts on BERT
    bml_beta: NotNegative = 0.3  # SNCSE's, in the scripts on BERT
    bml_weight: NotNegative = 1e-3  # equation 4's λ: SNCSE's, in the scripts on BERT
    teachers: tuple[str, ...] = ()  # none: the study says which
    rank_loss: Literal["listmle", "listnet"] = "listmle"  # section 3.3: "as the baseline"
    rank_tau: Positive = 0.05  # RankCSE's, in its scripts
    rank_teacher_tau: Positive | None = None  # half for listnet is RankCSE's; its code has the student's
    rank_mix: Share = 0.33  # RankCSE's, in its scripts
    rank_weight: NotNegative = 1.0  # equation 6's γ, in RankCSE's scripts
    rank_normalise: Literal["none", "items"] = "none"  # equation 5 sums; the other is ours
    consistency: Literal["js", "entropy", "off"] | None = None  # ours
    consistency_weight: NotNegative = 1.0  # equation 6's β, in RankCSE's scripts, which apply none
    san_mle: NotNegative = 0.2  # equation 6's λ: table 6, RLRD, where the grid of appendix C ends; RankCSE has 0.4
    tau3: Positive = 0.05  # equation 5, in RankCSE's scripts
    rl_weight: NotNegative = 1e-3  # equation 7's λ, in RLRD's scripts
    rl_update: Literal["ppo", "reinforce", "fixed"] = "ppo"  # the authors' code of RLRD
    rl_every: Count = 125  # the authors' code of RLRD
    rl_epochs: Count = 3  # the authors' code of RLRD
    micro_batch: MicroBatchSize = None  # ours

    def __post_init__(self) -> None:
        check_fields(self, "train")
        if self.reads_at < self.max_length:
            raise ValueError(f"train.read_length = {self.read_length}\n  accepted: null, or max_length and more")
        if self.train:
            self._check_negatives()
            self._check_teachers()
            if self.batch_size == 1 and self.in_batch_alone:
                raise ValueError(
                    "train.batch_size = 1\n  accepted: 2 and more, or with san hince or hard: a sentence is told"
                    " from the others of its batch"
                )

    def _check_negatives(self) -> None:
        if self.needs_set and not self.negatives:
            raise ValueError(
                f"train.negatives = ''\n  accepted: with san {self.san} the name of a set in data.negatives"
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
        if wanted and len(set(self.teachers)) < len(self.teachers):
            raise ValueError(f"train.teachers = {list(self.teachers)!r}\n  accepted: each teacher once")
        if self.policies_learn and self.micro_batch == "auto":
            raise ValueError(
                "train.micro_batch = 'auto'\n  accepted: a number, since policies learn from a step once; "
                "auto with rl_update fixed, or another host"
            )

    @property
    def needs_set(self) -> bool:
        """True if the arm trains on a set of aligned negatives."""
        return self.train and self.san != "off" and self.column == "san"

    @property
    def rates(self) -> dict[str, float]:
        """The dropout rates that this arm sets, by field."""
        second = self.san != "off" or self.p2_of == "second_view"
        own = {"p1": self.p1, "p2": self.p2 if second else None}
        return {field: rate for field, rate in own.items() if self.train and rate is not None}

    @property
    def own_dropout_alone(self) -> bool:
        """True if the two views of a sentence differ only by the backbone's own dropout."""
        one_text = self.host not in PROMPTED | {"simcse_sup"}
        second_rate = self.p2_of == "second_view" and self.p2 > 0
        return self.train and one_text and self.p1 is None and not second_rate

    @property
    def in_batch_alone(self) -> bool:
        """True if all that a sentence is told from, or ranked among, are the others of its batch."""
        return self.san == "off" and self.host not in PROMPTED | {"simcse_sup"}

    @property
    def reads_at(self) -> int:
        """The maximum number of tokens of a text after training."""
        return self.max_length if self.read_length is None else self.read_length

    @property
    def tau_negative(self) -> float:
        """The temperature of the negatives."""
        return self.tau1 if self.san == "hard" else self.tau2

    @property
    def dedup(self) -> bool:
        """True if sentences that equal an anchor are left out of its negatives."""
        return self.conform == "paper" if self.dedup_in_batch is None else self.dedup_in_batch

    @property
    def consistent(self) -> Literal["js", "entropy", "off"]:
        """The form of RankCSE's consistency loss."""
        return self.consistency or ("js" if self.conform == "paper" else "entropy")

    @property
    def policies_learn(self) -> bool:
        """True if RLRD's policies weigh the teachers."""
        return self.host == "rlrd" and self.rl_update != "fixed"

    @property
    def fewest_to_learn(self) -> int:
        """The smallest `rl_every` with which policies learn: in the authors' code a window's first step is lost,
        and in PPO its last step has no advantage."""
        if self.conform == "paper":
            return 1
        return 3 if self.rl_update == "ppo" else 2

    @property
    def teacher_tau(self) -> float:
        """The temperature of the teachers' lists over views."""
        if self.rank_teacher_tau is not None:
            return self.rank_teacher_tau
        return self.rank_tau / (2 if self.rank_loss == "listnet" else 1)


OF_NEGATIVES = frozenset({"negatives", "column", "postprocess", "tau2", "own_weight", "san_mle", "tau3"})
OF_SECOND_RATE = frozenset({"p2", "san_pass"})
OF_BML = frozenset({"bml_alpha", "bml_beta", "bml_weight"})
OF_LISTS = frozenset({"teachers", "rank_loss", "rank_tau", "rank_teacher_tau", "rank_normalise"})
OF_RANKCSE = frozenset({"rank_mix", "rank_weight", "consistency", "consistency_weight"})
OF_RLRD = frozenset({"rl_weight", "rl_update", "rl_every", "rl_epochs"})
OF_POLICIES = frozenset({"rl_every", "rl_epochs"})
AS_CODED = {"transitions": 2}  # raised whenever RLRD's policies would learn otherwise with conform `authors`
BESIDE_POLICIES = {"student": 2}  # raised whenever a student would train otherwise beside learning policies
UNTRAINED = frozenset({"train", "readout", "layers", "max_length"})


def defining(settings: Settings) -> dict[str, Any]:
    """The settings that can change the result of this arm.

    Fields that default to what `conform` says are resolved, so that an arm that sets the same value is the same
    arm.
    """
    kept = asdict(settings)
    prompted = settings.host in PROMPTED
    if not settings.train:
        kept = {name: kept[name] for name in UNTRAINED} | {"max_length": settings.reads_at}
        return kept | ({"host": "prompted", "readout": "mask"} if prompted else {})
    kept |= {"dedup_in_batch": settings.dedup, "consistency": settings.consistent}
    if settings.policies_learn:
        kept |= BESIDE_POLICIES
    if settings.host == "rlrd" and settings.conform == "authors" and settings.rl_update == "ppo":
        kept |= AS_CODED
    usual = asdict(Settings(train=False))
    kept |= {name: usual[name] for name in _idle(settings)}
    unread = _unread(settings)
    return {name: value for name, value in kept.items() if name not in unread}


def _unread(settings: Settings) -> frozenset[str]:
    """The fields that a trained arm does not use, and that are left out of its identity."""
    without = settings.san == "off"
    groups = (
        ({"micro_batch"}, settings.micro_batch is None),
        ({"read_length"}, settings.reads_at == settings.max_length),
        ({"epochs"}, settings.steps is not None),
        ({"readout"}, settings.host in PROMPTED),
        (OF_BML, settings.host not in PROMPTED),
        (OF_NEGATIVES, without),
        (OF_SECOND_RATE, without and settings.p2_of == "negatives"),
        ({"negatives", "postprocess"}, settings.column != "san"),
        ({"tau2"}, settings.san == "hard"),
        (OF_LISTS | {"san_mle", "tau3"}, settings.host not in TAUGHT),
        ({"conform"}, settings.host not in TAUGHT),  # the fields that it decides for other hosts are resolved
        (OF_RANKCSE, settings.host != "rankcse"),
        (OF_RLRD, settings.host != "rlrd"),
        (OF_POLICIES, settings.rl_update == "fixed"),
    )
    return frozenset().union(*(names for names, unread in groups if unread))


def _idle(settings: Settings) -> set[str]:
    """The fields that this arm does not use, but that older ids contain: they enter the identity as defaults."""
    idle = set()
    order_alone = settings.rank_loss == "listmle"  # of a teacher's list, which no temperature changes
    unread_tau = order_alone and not settings.policies_learn
    usual_tau = settings.teacher_tau == replace(settings, rank_teacher_tau=None).teacher_tau
    if order_alone:
        idle.add("tau3")
    if unread_tau or usual_tau:
        idle.add("rank_teacher_tau")
    if len(settings.teachers) == 1:
        idle.add("rank_mix")
    if settings.consistent == "off":
        idle.add("consistency_weight")
    if not order_alone and not settings.policies_learn:
        idle.add("conform")  # of lists it decides listmle's logarithm alone, and the rest is written out
    if settings.host == "rlrd" and (unread_tau or not usual_tau):
        idle.add("rank_tau")  # the student's is tau1
    if settings.rl_update == "reinforce":
        idle.add("rl_epochs")  # one step
    return idle
