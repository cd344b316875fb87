"""The `data:` block of a sentence_transformers study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from annotated_types import Ge, Gt, Le, Lt

from corpora.benchmarks import sts
from corpora.san import sentences
from corpora.store.fields import Count, Positive, check_fields

FILES = (".csv", ".tsv", ".jsonl", ".parquet")
GRADED = tuple(name for name in sts.NAMES if name.rpartition("/")[2] in ("train", "trial", "dev"))
TRIPLETS = sentences.TRIPLETS
KNOWN: Mapping[str, tuple[tuple[str, ...], str | None]] = {  # benchmark -> its columns of texts, its label
    **dict.fromkeys(GRADED, (("sentence1", "sentence2"), "score")),
    **dict.fromkeys(TRIPLETS, (("anchor", "positive", "negative"), None)),
}
# Names that the library's trainer reads as a label or reserves.
RESERVED = frozenset({"dataset_name", "label", "labels", "return_loss", "score", "scores"})
SETS = (
    "a mapping of names to {source: a benchmark, a file or a data set, columns: [anchor, positive], label, "
    "largest, split, config, sample, hold}"
)
GUIDES = "a mapping of names to encoders, such as {mini: all-MiniLM-L6-v2}"


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """The rows that nothing trains on: test to measure on, dev for searches to choose by, as shares of the keys.

    Where they come to 1, nothing trains on the set at all: a file with a test of one's own. by: the column with a
    row's key, the first of the texts unless given. Rows of one key are never parted, and a key's place does not
    depend on the other rows.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    test: Annotated[float, Gt(0), Le(1)] = 0.1
    dev: Annotated[float, Ge(0), Lt(1)] = 0.0
    by: str | None = None


@dataclass(frozen=True, kw_only=True)
class TrainingSet:
    """Where rows come from and what is read of them.

    source: a benchmark of `KNOWN`, a file that ends in one of `FILES`, or a data set in the hub's form, by its
    name or as a folder. columns: of texts, in the order in which the loss takes them; () for all that a benchmark
    has. label: the column with a similarity or a class; a benchmark's own where `columns` is not given. largest:
    what similarities are divided by. split, config: of a data set in the hub's form. sample: so many rows to train
    on, chosen by their texts. hold: rows that are kept from training, for the tasks held/NAME and dev/held/NAME.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    source: str
    columns: tuple[str, ...] = ()
    label: str | None = None
    largest: Positive = 1.0
    split: str = "train"
    config: str | None = None
    sample: Count | None = None
    hold: HeldOut | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """The names of the columns of texts."""
        return self.columns or KNOWN[self.source][0]

    @property
    def labelled(self) -> str | None:
        """The name of the column of labels."""
        return self.label if self.columns else KNOWN[self.source][1]

    @property
    def key(self) -> str:
        """The name of the column by which rows are held out."""
        return (self.hold and self.hold.by) or self.texts[0]

    @property
    def trains(self) -> bool:
        """Whether any row is left to train on."""
        return self.hold is None or self.hold.test + self.hold.dev < 1

    @property
    def read(self) -> tuple[str, ...]:
        """The names of all columns to read, each once."""
        return tuple(dict.fromkeys(filter(None, (*self.texts, self.labelled, self.key if self.hold else None))))


@dataclass(frozen=True, kw_only=True)
class RecipeData:
    """datasets: what arms are trained and measured on, by the name that they give it. guides: encoders that a GIST
    loss asks. path: a folder in which benchmarks and data sets are looked for before $SEMRAY_DATA."""

    datasets: Annotated[Mapping[str, TrainingSet], SETS] = field(default_factory=dict)
    guides: Annotated[Mapping[str, str], GUIDES] = field(default_factory=dict)
    path: str | None = None  # a place, no choice

    def __post_init__(self) -> None:
        made = {name: _made(given) if isinstance(given, dict) else given for name, given in self.datasets.items()}
        object.__setattr__(self, "datasets", made)  # a ledger's record has mappings
        check_fields(self, "data")
        for name, one in self.datasets.items():
            check_fields(one, f"datasets.{name}")
            _check(name, one)
            if one.hold is not None:
                check_fields(one.hold, f"datasets.{name}.hold")
                _check_hold(name, one, one.hold)


def _made(given: Mapping[str, Any]) -> TrainingSet:
    fields: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in given.items()}
    hold = fields.get("hold")
    return TrainingSet(**fields | {"hold": HeldOut(**hold) if isinstance(hold, dict) else hold})


def _check(name: str, one: TrainingSet) -> None:
    """Raise ValueError for impossible columns."""
    if one.source not in KNOWN and not one.columns:
        raise ValueError(
            f"datasets: accepted: for {name} its columns of texts, such as [anchor, positive]; only "
            f"{', '.join(KNOWN)} have columns of their own"
        )
    if one.label is not None and not one.columns:
        raise ValueError(f"datasets: accepted: for {name} columns beside its label, or neither")
    if len({*one.texts, one.labelled}) < len(one.texts) + 1:
        raise ValueError(f"datasets: accepted: in {name} each column once, the label none of the texts")
    if one.trains and (taken := sorted(RESERVED & {*one.texts})):
        raise ValueError(
            f"datasets: accepted: in {name} columns of texts by other names than {', '.join(sorted(RESERVED))}, "
            f"which sentence-transformers takes for its own; not {taken[0]}"
        )
    if one.source in KNOWN:
        texts, label = KNOWN[one.source]
        strange = {*one.texts, one.labelled} - {*texts, label, None}
        if strange:
            offered = ", ".join(filter(None, (*texts, label)))
            raise ValueError(f"datasets: accepted: in {name} the columns {offered}; not {min(map(str, strange))}")


def _check_hold(name: str, one: TrainingSet, hold: HeldOut) -> None:
    """Raise ValueError for rows that cannot be held out, or that no task could use."""
    if hold.test + hold.dev > 1:
        raise ValueError(f"datasets: accepted: in {name}.hold a test and a dev of at most 1 together")
    if not 2 <= len(one.texts) <= (3 if one.labelled is None else 2):
        raise ValueError(f"datasets: accepted: {name}.hold with 2 columns of texts, or with 3 and no label")
    if one.source in KNOWN and one.key not in (*KNOWN[one.source][0], KNOWN[one.source][1]):
        raise ValueError(f"datasets: accepted: for {name}.hold.by {', '.join(KNOWN[one.source][0])}")
