"""The `data:` block of a study whose recipes are those of sentence-transformers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from corpora.benchmarks import sts
from corpora.san import sentences
from corpora.store.fields import Count, Positive, check_fields

FILES = (".csv", ".tsv", ".jsonl", ".parquet")
GRADED = tuple(name for name in sts.NAMES if name.rpartition("/")[2] in ("train", "trial", "dev"))
TRIPLETS = sentences.TRIPLETS
KNOWN: Mapping[str, tuple[tuple[str, ...], str | None]] = {  # benchmark -> its columns of texts, that of its label
    **dict.fromkeys(GRADED, (("sentence1", "sentence2"), "score")),
    **dict.fromkeys(TRIPLETS, (("anchor", "positive", "negative"), None)),
}
SETS = (
    "a mapping of names to {source: a benchmark, a file or a data set, columns: [anchor, positive], label, "
    "largest, split, config, sample}"
)
GUIDES = "a mapping of names to encoders, such as {mini: all-MiniLM-L6-v2}"


@dataclass(frozen=True, kw_only=True)
class TrainingSet:
    """Where rows come from and what is read of them.

    source: a benchmark of `KNOWN`, a file that ends in one of `FILES`, or a data set in the hub's form, by its
    name or as a folder. columns: of texts, in the order in which the loss takes them; () for all that a benchmark
    has. label: the column with a similarity or a class; a benchmark's own where `columns` is not given. largest:
    what similarities are divided by. split, config: of a data set in the hub's form. sample: so many rows, chosen
    by their texts.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    source: str
    columns: tuple[str, ...] = ()
    label: str | None = None
    largest: Positive = 1.0
    split: str = "train"
    config: str | None = None
    sample: Count | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns of texts."""
        return self.columns or KNOWN[self.source][0]

    @property
    def labelled(self) -> str | None:
        """The column of labels."""
        return self.label if self.columns else KNOWN[self.source][1]


@dataclass(frozen=True, kw_only=True)
class RecipeData:
    """datasets: what arms are trained on, by the name that they give it. guides: encoders that a GIST loss asks.
    path: a folder in which benchmarks and data sets are looked for before $SEMRAY_DATA."""

    datasets: Annotated[Mapping[str, TrainingSet], SETS] = field(default_factory=dict)
    guides: Annotated[Mapping[str, str], GUIDES] = field(default_factory=dict)
    path: str | None = None  # a place, no choice

    def __post_init__(self) -> None:
        made = {name: _made(given) if isinstance(given, dict) else given for name, given in self.datasets.items()}
        object.__setattr__(self, "datasets", made)  # they come as mappings from a ledger's record
        check_fields(self, "data")
        for name, one in self.datasets.items():
            check_fields(one, f"datasets.{name}")
            _check(name, one)


def _made(given: Mapping[str, Any]) -> TrainingSet:
    fields: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in given.items()}
    return TrainingSet(**fields)


def _check(name: str, one: TrainingSet) -> None:
    """ValueError for columns that cannot be."""
    if one.source not in KNOWN and not one.columns:
        raise ValueError(
            f"datasets: accepted: for {name} its columns of texts, such as [anchor, positive]; only "
            f"{', '.join(KNOWN)} have columns of their own"
        )
    if one.label is not None and not one.columns:
        raise ValueError(f"datasets: accepted: for {name} columns beside its label, or neither")
    if len({*one.texts, one.labelled}) < len(one.texts) + 1:
        raise ValueError(f"datasets: accepted: in {name} each column once, the label none of the texts")
    if one.source in KNOWN:
        texts, label = KNOWN[one.source]
        strange = {*one.texts, one.labelled} - {*texts, label, None}
        if strange:
            offered = ", ".join(filter(None, (*texts, label)))
            raise ValueError(f"datasets: accepted: in {name} the columns {offered}; not {min(map(str, strange))}")
