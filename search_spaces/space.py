"""Search spaces as data: the dimensions in which settings may move, and the points of a space.

SPACE = (
    Dimension(name="temperature", low=0.01, high=0.2, log=True, source="Concept, appendix E: 0.05"),
    Dimension(name="hn_margin", low=0.05, high=0.5, when={"hard_negatives": (True,)}, source="0.20"),
)
settings_at(SPACE, Settings(hard_negatives=True), {"temperature": 0.1, "hn_margin": 0.3})
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from corpora.store.fields import changed, flat

Point = Mapping[str, Any]  # name of each dimension that moves there -> its value
Settings = TypeVar("Settings")
OF_THE_STUDY = "the study"


@dataclass(frozen=True, kw_only=True)
class Dimension:
    """One setting that may move: from low to high, or among choices.

    name: a field of the family's Settings, or one of its keys, as `loss.scale`, which moves where an arm has it.
    source: the origin of the range. Whole bounds give whole numbers. log: all octaves are equally likely. when:
    setting -> values with which this dimension matters; such a setting comes before it in the space or does not
    move. With other values this one does not move; it is `otherwise`, or the arm's own value if that is None.
    paper: the grid of the family's paper. capped: setting -> values; an arm that has them all keeps this dimension
    at or below `cap`. tied: compared arms share one value, so that they do not differ in it.
    """

    name: str
    source: str
    low: float | None = None
    high: float | None = None
    log: bool = False
    choices: tuple[Any, ...] = ()
    when: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    otherwise: Any = None
    paper: tuple[Any, ...] = ()
    tied: bool = False
    cap: float = math.inf
    capped: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.choices:
            possible = self.low is self.high is None and not self.log
        else:
            possible = self.low is not None and self.high is not None and self.low < self.high
            possible = possible and not (self.log and (self.low is None or self.low <= 0))
        if not possible or not all(self.holds(value) for value in self.paper):
            raise ValueError(
                f"{self.name}: {self.words}\n  accepted: choices, or low below high, with log from above 0, and a"
                f" grid within, not {list(self.paper)}"
            )

    @property
    def whole(self) -> bool:
        """Whether the values are whole numbers of a range."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def words(self) -> str:
        """The range or the choices in words: "0.01 to 0.2 (log)", "mean, cls"."""
        if self.choices:
            return ", ".join(map(str, self.choices))
        return f"{self.low} to {self.high}{' (log)' if self.log else ''}"

    def holds(self, value: Any) -> bool:
        """Whether a value lies in the range or among the choices."""
        if self.choices:
            return any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in self.choices)
        assert self.low is not None
        assert self.high is not None
        number = isinstance(value, int if self.whole else int | float) and not isinstance(value, bool)
        return number and self.low <= value <= self.high


Space = tuple[Dimension, ...]


def moves(dimension: Dimension, settings: Any, point: Point) -> bool:
    """Whether a dimension matters for these settings, as far as the point has moved them."""
    own = flat(settings)
    fulfilled = all(point.get(name, own[name]) in accepted for name, accepted in dimension.when.items())
    return fulfilled and is_at(dimension, own)


def is_at(dimension: Dimension, own: Mapping[str, Any]) -> bool:
    """Whether settings, as `flat` has them, hold a value to move. By the name of a key another thing may go: the
    loss of a data set that is called `scale` is no `loss.scale`."""
    value = own.get(dimension.name)
    other = isinstance(value, str | Mapping) and not any(isinstance(one, type(value)) for one in dimension.choices)
    return dimension.name in own and not ("." in dimension.name and other)


def around(space: Space, settings: Any) -> Space:
    """The space around these settings, in which dimensions that they cap end at the cap."""
    own = flat(settings)

    def limited(dim: Dimension) -> Dimension:
        if not dim.capped or not all(own[name] in values for name, values in dim.capped.items()):
            return dim
        if dim.low is None or dim.high is None:
            return replace(dim, choices=tuple(choice for choice in dim.choices if choice <= dim.cap))
        if dim.low >= dim.cap:
            return replace(dim, low=None, high=None, log=False, choices=(dim.low,))
        return replace(dim, high=min(dim.high, dim.cap))

    return tuple(map(limited, space))


def drawn(space: Space, settings: Any, draw: Callable[[Dimension], Any]) -> dict[str, Any]:
    """A point: draw(dimension) gives the value of every dimension that matters, in order."""
    point: dict[str, Any] = {}
    for dimension in space:
        if moves(dimension, settings, point):
            point[dimension.name] = draw(dimension)
    return point


def settings_at(space: Space, settings: Settings, point: Point) -> Settings:
    """The settings at a point. ValueError for a dimension that does not move there, or a refused value."""
    still = {one.name: one.otherwise for one in space if not moves(one, settings, point)}
    moving = [dimension.name for dimension in space if dimension.name not in still]
    wrong = sorted(set(point) - set(moving))
    if wrong:
        raise ValueError(f"{', '.join(wrong)}: accepted with these settings: {', '.join(moving)}")
    given = {name: value for name, value in still.items() if value is not None}
    return changed(settings, {**given, **point})


def default_point(space: Space, settings: Any) -> dict[str, Any] | None:
    """The point of the settings themselves; None if one of them lies outside its dimension."""
    own = flat(settings)
    point = drawn(space, settings, lambda dimension: own[dimension.name])
    inside = all(one.holds(point[one.name]) for one in space if one.name in point)
    return point if inside else None


def grid(space: Space, settings: Any) -> Iterator[dict[str, Any]]:
    """Every point of a space of choices, each once, the last dimension moving fastest.

    ValueError naming the dimensions that are ranges.
    """
    ranges = [dimension.name for dimension in space if not dimension.choices]
    if ranges:
        raise ValueError(f"{', '.join(ranges)}: ranges; accepted for a grid: a list of values for each dimension")
    seen: list[dict[str, Any]] = []
    for values in itertools.product(*(dimension.choices for dimension in space)):
        at = dict(zip((dimension.name for dimension in space), values, strict=True))
        point = drawn(space, settings, lambda dimension, at=at: at[dimension.name])  # type: ignore[misc]
        if point not in seen:
            seen.append(point)
            yield point


def declared(name: str, wanted: Any) -> Dimension:
    """A dimension that the study itself declares: {low, high}, with log: true if all octaves are equally likely,
    or a list of values. ValueError says what would be accepted."""
    accepted = (
        "{low: …, high: …}, with log: true from above 0, or a list of different texts, numbers, true or false; "
        "numbers are finite, and 1 and true, 0 and false count as one value"
    )
    if isinstance(wanted, Mapping) and {"low", "high"} <= wanted.keys() <= {"low", "high", "log"}:
        low, high, log = wanted["low"], wanted["high"], wanted.get("log", False)
        numbers = all(_plain(end) and not isinstance(end, bool | str) for end in (low, high))
        if numbers and isinstance(log, bool) and 0 < high - low < math.inf and (low > 0 or not log):
            return Dimension(name=name, low=low, high=high, log=log, source=OF_THE_STUDY)
    if isinstance(wanted, list) and wanted and all(map(_plain, wanted)) and len(set(wanted)) == len(wanted):
        return Dimension(name=name, choices=tuple(wanted), source=OF_THE_STUDY)
    raise ValueError(accepted)


def _plain(value: Any) -> bool:
    """Whether it is a text or a finite number."""
    try:
        return isinstance(value, str) or (isinstance(value, int | float) and math.isfinite(value))
    except OverflowError:  # a whole number of hundreds of digits
        return False


def narrowed(dimension: Dimension, wanted: Any) -> Dimension:
    """The dimension as a study wants it: "all" of it, the grid of the "paper", {low, high}, or a list of values.

    Of the paper's grid it keeps what lies within. ValueError says what would be accepted.
    """
    if wanted == "all":
        return dimension
    if wanted == "paper":
        wanted = list(dimension.paper)
    if isinstance(wanted, dict) and wanted and wanted.keys() <= {"low", "high"} and not dimension.choices:
        values = list(wanted.values())
    elif isinstance(wanted, list) and wanted and all(value not in wanted[:i] for i, value in enumerate(wanted)):
        values = wanted
    else:
        bounds = "" if dimension.choices else "{low: …, high: …} or "
        paper = "paper, " if dimension.paper else ""
        raise ValueError(f"all, {paper}{bounds}a list of different values, within {dimension.words}")
    if not all(dimension.holds(value) for value in values):
        raise ValueError(f"within {dimension.words}")
    bare = replace(dimension, paper=())
    if isinstance(wanted, dict):
        kind = int if dimension.whole else float
        low, high = (kind(wanted.get(end, getattr(dimension, end))) for end in ("low", "high"))
        if low >= high:
            raise ValueError("low below high")
        found = replace(bare, low=low, high=high)
    else:
        choices = tuple(_as_declared(dimension, value) for value in values)
        found = replace(bare, choices=choices, low=None, high=None, log=False)
    return replace(found, paper=tuple(filter(found.holds, dimension.paper)))


def _as_declared(dimension: Dimension, value: Any) -> Any:
    """The value in the dimension's type: 0 becomes 0.0 among floats, as the same run would get two ids.

    A key such as `loss.scale` has no type of its own: its value stays as written, like that of an arm.
    """
    if dimension.choices:
        return next(choice for choice in dimension.choices if dimension.holds(value) and choice == value)
    if "." in dimension.name:
        return value
    return int(value) if dimension.whole else float(value)
