"""The losses of sentence-transformers that an arm may name, with what each takes. No torch here.

A loss is its class's name, or {name: …, argument: …}; one that wraps another has it as `loss`. Arguments are
called as the library calls them, but for a guide, which is one of `data.guides`. What is not in this table has not
been run here, and is refused: losses that want vectors or lists of a teacher as labels, those on texts alone, and
those that the library gives up (a symmetric ranking is one of two `directions`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Annotated, Any, Literal, get_origin

from annotated_types import Ge, Le

from corpora.store.fields import Count, NotNegative, Positive, accepts, unwrapped, words

Label = Literal["none", "similarity", "class"]
Spec = Mapping[str, Any]
Wraps = object()  # the argument that is another loss
Guide = object()  # the argument that is a guide of the data


@dataclass(frozen=True)
class LossKind:
    """label: what it wants beside the texts. texts: how many columns, from and to. arguments: what each
    accepts. classes: how many there are; None where an argument says so, or any number."""

    label: Label
    texts: tuple[int, int]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    classes: int | None = None


MANY = 20  # columns: a text, its partner, and hard negatives
HARDNESS = Literal["in_batch_negatives", "hard_negatives", "all_negatives"]
DIRECTIONS = tuple[Literal["query_to_doc", "query_to_query", "doc_to_query", "doc_to_doc"], ...]
RANKING = {
    "scale": Positive,
    "directions": DIRECTIONS,
    "partition_mode": Literal["joint", "per_direction"],
    "hardness_mode": HARDNESS,
    "hardness_strength": NotNegative,
    "gather_across_devices": bool,
}
SMALLER = {"mini_batch_size": Count}
GIST = {
    "guide": Guide,
    "temperature": Positive,
    "margin_strategy": Literal["absolute", "relative"],
    "margin": NotNegative,
    "contrast_anchors": bool,
    "contrast_positives": bool,
    "gather_across_devices": bool,
}
MATRYOSHKA = {
    "loss": Wraps,
    "matryoshka_dims": tuple[Count, ...],
    "matryoshka_weights": tuple[Positive, ...],
    "n_dims_per_step": Annotated[int, Ge(-1), Le(1000)],
}
LAYERS = {
    "loss": Wraps,
    "n_layers_per_step": Annotated[int, Ge(-1), Le(1000)],
    "last_layer_weight": NotNegative,
    "prior_layers_weight": NotNegative,
    "kl_div_weight": NotNegative,
    "kl_temperature": NotNegative,
    "layer_weighting": Literal["uniform", "log", "linear"],
}
LOSSES = {
    "MultipleNegativesRankingLoss": LossKind("none", (2, MANY), RANKING),
    "CachedMultipleNegativesRankingLoss": LossKind("none", (2, MANY), RANKING | SMALLER),
    "GISTEmbedLoss": LossKind("none", (2, 3), GIST, ("guide",)),
    "CachedGISTEmbedLoss": LossKind("none", (2, 3), GIST | SMALLER, ("guide",)),
    "TripletLoss": LossKind("none", (3, 3), {"triplet_margin": Positive}),
    "CoSENTLoss": LossKind("similarity", (2, 2), {"scale": Positive}),
    "AnglELoss": LossKind("similarity", (2, 2), {"scale": Positive}),
    "CosineSimilarityLoss": LossKind("similarity", (2, 2)),
    "ContrastiveLoss": LossKind("class", (2, 2), {"margin": Positive}, classes=2),
    "OnlineContrastiveLoss": LossKind("class", (2, 2), {"margin": Positive}, classes=2),
    "SoftmaxLoss": LossKind(
        "class",
        (2, 2),
        {
            "num_labels": Annotated[int, Ge(2)],
            "concatenation_sent_rep": bool,
            "concatenation_sent_difference": bool,
            "concatenation_sent_multiplication": bool,
        },
        ("num_labels",),
    ),
    "BatchAllTripletLoss": LossKind("class", (1, 1), {"margin": Positive}),
    "BatchHardTripletLoss": LossKind("class", (1, 1), {"margin": Positive}),
    "BatchHardSoftMarginTripletLoss": LossKind("class", (1, 1)),
    "BatchSemiHardTripletLoss": LossKind("class", (1, 1), {"margin": Positive}),
    "MatryoshkaLoss": LossKind("none", (1, MANY), MATRYOSHKA, ("loss", "matryoshka_dims")),
    "AdaptiveLayerLoss": LossKind("none", (1, MANY), LAYERS, ("loss",)),
    "Matryoshka2dLoss": LossKind("none", (1, MANY), LAYERS | MATRYOSHKA, ("loss", "matryoshka_dims")),
}
CACHED = tuple(name for name in LOSSES if name.startswith("Cached"))
# Losses of one worker alone. SoftmaxLoss learns a classifier that no group keeps equal, and the triplet losses of
# a batch pass by what averages the workers' gradients: each worker would learn a model of its own.
ALONE = ("SoftmaxLoss", *(name for name in LOSSES if name.startswith("Batch")))
WHOLE_MODEL = ("AdaptiveLayerLoss", "Matryoshka2dLoss")  # they read single layers, which no cached loss has


def spec_of(given: Any) -> Spec:
    """A loss as a mapping with its name, arguments as given. ValueError says, in words, what is refused."""
    spec = {"name": given} if isinstance(given, str) else given
    if not isinstance(spec, Mapping) or spec.get("name") not in LOSSES:
        told = spec.get("name") if isinstance(spec, Mapping) else given
        near = "".join(f" (did you mean {one}?)" for one in get_close_matches(str(told), LOSSES, 1))
        raise ValueError(f"loss: accepted: {', '.join(LOSSES)}; not {told!r}{near}")
    kind, name = LOSSES[spec["name"]], spec["name"]
    for argument in spec:
        if argument != "name" and argument not in kind.arguments:
            takes = ", ".join(kind.arguments) or "no arguments"
            raise ValueError(f"loss: accepted: for {name} {takes}; not {argument}")
    for argument in kind.required:
        if argument not in spec:
            raise ValueError(f"loss: accepted: for {name} its {argument} too")
    checked = {
        argument: _value(name, argument, kind.arguments.get(argument), one) for argument, one in spec.items()
    }
    _check_together(name, checked)
    return checked


def _check_together(name: str, spec: Spec) -> None:
    """ValueError for arguments that the library would refuse together, or only in training."""
    weights, dims = spec.get("matryoshka_weights"), spec.get("matryoshka_dims")
    if weights is not None and dims is not None and len(weights) != len(dims):
        raise ValueError(f"loss: accepted: for {name} as many matryoshka_weights as matryoshka_dims")
    wrapped = inner(spec)["name"]
    if name in WHOLE_MODEL and wrapped in CACHED:
        raise ValueError(f"loss: accepted: {name} around a loss that is not cached")
    if dims is not None and wrapped == "SoftmaxLoss":
        raise ValueError(
            f"loss: accepted: {name} around another loss: the classifier of SoftmaxLoss has one width"
        )
    parts = [f"concatenation_sent_{part}" for part in ("rep", "difference", "multiplication")]
    if name == "SoftmaxLoss" and not any(spec.get(part, part != parts[2]) for part in parts):
        raise ValueError(f"loss: accepted: for {name} one of {', '.join(parts)}")
    directions = spec.get("directions", ["query_to_doc"])
    if "query_to_doc" not in directions or len(set(directions)) < len(directions):
        raise ValueError(f"loss: accepted: for {name}.directions query_to_doc and others, each once")
    if spec.get("partition_mode") == "per_direction" and {"query_to_query", "doc_to_doc"} & set(directions):
        raise ValueError(f"loss: accepted: for {name}.partition_mode joint with query_to_query or doc_to_doc")


def inner(spec: Spec) -> Spec:
    """The loss that wants the labels: the innermost of those that wrap one another."""
    return inner(spec["loss"]) if "loss" in spec else spec


def guide_of(spec: Spec) -> str | None:
    """The guide that a loss asks, by its name in the data."""
    return inner(spec).get("guide")


def _value(name: str, argument: str, kind: Any, value: Any) -> Any:
    if argument == "name":
        return value
    if kind is Wraps:
        wrapped = spec_of(value)
        if "loss" in wrapped:
            raise ValueError(f"loss: accepted: {name} around a loss that wraps no other")
        return wrapped
    if kind is Guide:
        fits, told = isinstance(value, str) and bool(value), "one of data.guides"
    elif kind is bool:
        fits, told = isinstance(value, bool), "true or false"
    elif get_origin(kind) is tuple:
        fits = isinstance(value, list | tuple) and bool(value) and accepts(kind, tuple(value))
        fits, told = fits and all(not isinstance(one, bool) for one in value), words(kind)
        value = list(value) if fits else value  # as JSON has it
    else:
        broken = isinstance(value, bool) or (unwrapped(kind)[0] is int and not isinstance(value, int))
        fits, told = not broken and accepts(kind, value), words(kind)
    if not fits:
        raise ValueError(f"loss: accepted: for {name}.{argument} {told}; not {value!r}")
    return value
