"""The results of a study as plain data, which reports print and the tracker mirrors.

`find.py` builds it from the ledger and the study. A report needs nothing else: no file is opened later. Values are
in the metric's own unit and in full precision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from orchestration.ledger.points import Confirmed

if TYPE_CHECKING:
    from evaluators.significance.verdict import Verdict

Status = Literal["finished", "failed", "missing"]


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """One run of the study, whether the ledger holds it or not.

    seed is None for an untrained arm, whose one result is paired with every seed.
    curve is the total loss by step; metrics and curve are empty unless the run is finished.
    """

    id: str
    arm: str
    backbone: str
    seed: int | None
    status: Status = "finished"
    metrics: Mapping[str, float] = field(default_factory=dict)
    curve: tuple[tuple[int, float], ...] = ()
    seconds: float | None = None
    began: float | None = None  # in Unix time
    training: float | None = None  # seconds of training without data and scoring; None if not recorded
    cost: Mapping[str, float] = field(default_factory=dict)  # as the run recorded it; empty in old entries
    attempt: int = 0
    location: str = ""  # the run's folder in the ledger, as a person would open it
    entries: tuple[str, ...] = ()  # its entries in the ledger: its training first, then its scores
    problem: str = ""  # the error of a failed run, one line
    selection: bool = False  # a selection seed of a search: no evidence for a claim


@dataclass(frozen=True, kw_only=True)
class ItemDelta:
    """One item under both arms, averaged over the paired seeds. delta is positive if the treatment wins."""

    item_id: str
    group_id: str
    treatment: float
    control: float
    delta: float


@dataclass(frozen=True, kw_only=True)
class TakenFor:
    """The item that an arm most often confused an item with, in `times` of the `runs` runs that recorded it."""

    arm: str
    other: str
    times: int
    runs: int


@dataclass(frozen=True, kw_only=True)
class Moves:
    """How many gained, lost and stayed, in a unit for people ("concepts"), and the items that moved most."""

    counted: str
    better: int
    worse: int
    equal: int
    items: tuple[ItemDelta, ...]

    @property
    def total(self) -> int:
        return self.better + self.worse + self.equal


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One comparison: the verdict, the runs behind every delta, and the items that moved most.

    items holds the largest wins and the largest losses, best first; the three counts cover all items and are 0 if
    the metric keeps none. They count signs of the items' own differences, as passports hold them. Reports show
    moves, which no passport holds, in their place. caveats: remarks of the family on the claim. published: the
    difference that a paper prints, compared with ours in words; "" until `with_published`.
    """

    verdict: Verdict
    larger_is_better: bool
    treatment_runs: Mapping[int, str]  # seed -> run id; "id - id" for a gain; empty for a joint claim
    control_runs: Mapping[int, str]
    places: tuple[tuple[str, str], ...] = ()  # the (arm, backbone) that it compares
    items: tuple[ItemDelta, ...] = ()
    items_better: int = 0
    items_worse: int = 0
    items_equal: int = 0
    moves: Moves | None = None
    scored: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # arm -> entries that hold its items
    taken_for: Mapping[str, tuple[TakenFor, ...]] = field(default_factory=dict)  # by item; see `with_item_texts`
    caveats: tuple[str, ...] = ()
    published: str = ""

    @property
    def one_run(self) -> bool:
        """Whether each arm has a single run, which is paired with all seeds."""
        runs = (self.treatment_runs.values(), self.control_runs.values())
        return self.verdict.seedless and all(len(set(ids)) == 1 for ids in runs)

    @property
    def shown_moves(self) -> Moves:
        """What a report shows of the items."""
        counts = {"better": self.items_better, "worse": self.items_worse, "equal": self.items_equal}
        return self.moves or Moves(counted="items", **counts, items=self.items)


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """The items of one arm on one backbone, over all its seeds: for each part, counts in equal bins and the mean.

    low and high, the ends of the bins, are the same for all arms.
    """

    quantity: str  # what is counted: "cosine distance"
    arm: str
    backbone: str
    low: float
    high: float
    counts: Mapping[str, tuple[int, ...]]
    means: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The training time of one arm on one backbone: wall seconds a step, the median of its runs, and their range.

    thousand_rows: seconds for a thousand rows of the corpus; None if the arm has no batch size.
    """

    arm: str
    backbone: str
    runs: int
    a_step: float
    least: float
    most: float
    thousand_rows: float | None


@dataclass(frozen=True, kw_only=True)
class ConfirmedSearch(Confirmed):
    """The result of confirming the search around an arm, and the state of that search since.

    point: the number of the confirmed point. best: the number of the best point now; 0 is the arm itself, None if
    none is known. ended: whether no run of the search is left. words: all of this for a person.
    """

    arm: str
    point: int
    best: int | None
    moved_on: bool
    ended: bool
    words: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Findings:
    """A study and its results. Compared by identity, so that costly derived values can be cached by it.

    revision: digest of the resolved study. declared: digest of its comparisons as first declared.
    metrics: every metric of the study -> whether larger is better, in the order of tables. headlines: the metrics
    that decide, one for each task.
    environment: name (python, torch, cpu) -> its distinct values among the finished runs; more than one value
    means that the runs differ in it.
    """

    study: str
    question: str
    family: str
    revision: str
    declared: str
    rule: int  # the version of the rule that judged
    created: str  # ISO 8601, UTC
    ledger: str  # the ledger's URL or path
    seeds: tuple[int, ...]  # as declared, in the order they are added
    metrics: Mapping[str, bool]
    arms: Mapping[str, Mapping[str, Any]]  # arm -> its resolved settings
    data: Mapping[str, Any]
    corpus_fingerprint: str
    runs: tuple[RunRow, ...]
    findings: tuple[Finding, ...]
    headlines: tuple[str, ...] = ()
    distributions: tuple[Distribution, ...] = ()  # empty until `with_distributions`
    costs: tuple[Cost, ...] = ()  # empty until `with_costs`
    item_texts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by metric, until `with_item_texts`
    environment: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # stand-ins for real parts and anything else a reader must know
    beside: tuple[str, ...] = ()  # notes that may change until the next look; in no passport
    confirmed: tuple[ConfirmedSearch, ...] = ()  # of the study's searches; in no passport
    price: float | None = None  # of an hour, if a reader gave one

    @cached_property
    def backbones(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.backbone for row in self.runs))

    @property
    def all_notes(self) -> tuple[str, ...]:
        return (*self.notes, *self.beside)

    @property
    def has_curves(self) -> bool:
        return any(row.curve for row in self.runs)

    def of(self, arm: str, backbone: str) -> tuple[RunRow, ...]:
        """The runs of one arm on one backbone, in the order of the plan."""
        return self._by_place.get((arm, backbone), ())

    @cached_property
    def _by_place(self) -> Mapping[tuple[str, str], tuple[RunRow, ...]]:
        found: dict[tuple[str, str], list[RunRow]] = {}
        for row in self.runs:
            found.setdefault((row.arm, row.backbone), []).append(row)
        return {place: tuple(rows) for place, rows in found.items()}

    def with_status(self, status: Status) -> tuple[RunRow, ...]:
        return tuple(row for row in self.runs if row.status == status)

    def finished(self, arm: str, backbone: str) -> tuple[RunRow, ...]:
        """The finished runs of one arm on one backbone that a claim may rest on, so without selection seeds."""
        return tuple(row for row in self.of(arm, backbone) if row.status == "finished" and not row.selection)

    def values(self, arm: str, backbone: str, metric: str) -> dict[int | None, float]:
        """seed -> value, for the finished runs that have the metric."""
        rows = self.finished(arm, backbone)
        return {row.seed: row.metrics[metric] for row in rows if metric in row.metrics}
