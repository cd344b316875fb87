"""The losses of sentence-transformers that an arm may name, with their arguments. This module imports no torch.

A loss is its class's name, or {name: …, argument: …}; one that wraps another has it as `loss`. Arguments have the
library's names; a guide is the name of one of `data.guides`. Losses outside this table are refused, as they are
not tested here: those with a teacher's vectors or lists as labels, those on texts alone, and those that the
library deprecates (a symmetric ranking is one of two `directions`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Annotated, Any, Literal, get_args, get_origin

from annotated_types import Ge, Le

from corpora.store.fields import Count, NotNegative, Positive, accepts, unwrapped, words

Label = Literal["none", "similarity", "class"]
Spec = Mapping[str, Any]
Wraps = object()  # the argument that is another loss
Guide = object()  # the argument that is a guide of the data


@dataclass(frozen=True)
class LossKind:
    """A loss's inputs. label: its kind of label. texts: least and most columns of texts. arguments: name ->
    accepted values. classes: their number; None if an argument gives it, or for any number."""

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
# Losses for one worker only. The workers' classifiers of SoftmaxLoss would differ, and the batch triplet losses
# bypass the averaging of gradients, so each worker would learn another model.
ALONE = ("SoftmaxLoss", *(name for name in LOSSES if name.startswith("Batch")))
WHOLE_MODEL = ("AdaptiveLayerLoss", "Matryoshka2dLoss")  # they read single layers, which cached losses do not give


def spec_of(given: Any) -> Spec:
    """A loss as a mapping of its name and the given arguments. ValueError says what is accepted."""
    spec = {"name": given} if isinstance(given, str) else given
    if not isinstance(spec, Mapping) or spec.get("name") not in [*LOSSES]:  # a name may be a list, by mistake
        written = spec.get("name") if isinstance(spec, Mapping) else given
        near = "".join(f" (did you mean {one}?)" for one in get_close_matches(str(written), LOSSES, 1))
        raise ValueError(f"loss: accepted: {', '.join(LOSSES)}; not {written!r}{near}")
    kind, name = LOSSES[spec["name"]], spec["name"]
    arguments = {argument: value for argument, value in spec.items() if argument != "name"}
    for argument in arguments:
        if argument not in kind.arguments:
            takes = ", ".join(kind.arguments) or "no arguments"
            raise ValueError(f"loss: accepted: for {name} {takes}; not {argument}")
    for argument in kind.required:
        if argument not in arguments:
            raise ValueError(f"loss: accepted: for {name} its {argument} too")
    checked = {"name": name} | {
        argument: _value(name, argument, kind.arguments[argument], value) for argument, value in arguments.items()
    }
    _check_together(name, checked)
    return checked


def _check_together(name: str, spec: Spec) -> None:
    """Raise ValueError for combinations of arguments that the library refuses, or refuses only in training."""
    weights = spec.get("matryoshka_weights")
    if weights is not None and len(weights) != len(spec["matryoshka_dims"]):
        raise ValueError(f"loss: accepted: for {name} as many matryoshka_weights as matryoshka_dims")
    wrapped = inner(spec)["name"]
    if name in WHOLE_MODEL and wrapped in CACHED:
        raise ValueError(f"loss: accepted: {name} around a loss that is not cached")
    if "matryoshka_dims" in spec and wrapped == "SoftmaxLoss":
        raise ValueError(
            f"loss: accepted: {name} around another loss: the classifier of SoftmaxLoss has one width"
        )
    parts = [f"concatenation_sent_{part}" for part in ("rep", "difference", "multiplication")]
    if not any(spec.get(part, part != parts[2]) for part in parts):
        raise ValueError(f"loss: accepted: for {name} one of {', '.join(parts)}")
    directions = spec.get("directions", ["query_to_doc"])
    if "query_to_doc" not in directions or len(set(directions)) < len(directions):
        raise ValueError(f"loss: accepted: for {name}.directions query_to_doc and others, each once")
    if spec.get("partition_mode") == "per_direction" and {"query_to_query", "doc_to_doc"} & set(directions):
        raise ValueError(f"loss: accepted: for {name}.partition_mode joint with query_to_query or doc_to_doc")


def inner(spec: Spec) -> Spec:
    """The innermost of losses that wrap one another, which uses the labels."""
    return inner(spec["loss"]) if "loss" in spec else spec


def guide_of(spec: Spec) -> str | None:
    """The name in the data of a loss's guide; None without one."""
    return inner(spec).get("guide")


def _value(name: str, argument: str, kind: Any, value: Any) -> Any:
    if kind is Wraps:
        wrapped = spec_of(value)
        if "loss" in wrapped:
            raise ValueError(f"loss: accepted: {name} around a loss that wraps no other")
        return wrapped
    if kind is Guide:
        fits, accepted = isinstance(value, str) and bool(value), "one of data.guides"
    elif kind is bool:
        fits, accepted = isinstance(value, bool), "true or false"
    elif get_origin(kind) is tuple:
        fits = (
            isinstance(value, list | tuple)
            and bool(value)
            and all(_is_one(get_args(kind)[0], one) for one in value)
        )
        accepted = words(kind)
    else:
        fits, accepted = _is_one(kind, value), words(kind)
    if not fits:
        raise ValueError(f"loss: accepted: for {name}.{argument} {accepted}; not {value!r}")
    return value


def _is_one(kind: Any, value: Any) -> bool:
    """Whether a value is one of a kind; true is no number, and 8.0 no whole one."""
    broken = isinstance(value, bool) or (unwrapped(kind)[0] is int and not isinstance(value, int))
    return not broken and accepts(kind, value)
