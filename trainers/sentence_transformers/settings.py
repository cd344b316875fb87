"""The settings of an arm of a sentence_transformers study, under the library's names.

Defaults are the library's own, except for a number of steps in place of its three epochs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge, Lt

from corpora.store.fields import Count, Length, NotNegative, Positive, check_fields
from trainers.engine.limits import Batch, Steps
from trainers.sentence_transformers.losses import LOSSES, Spec, spec_of

LOSS = f"a loss by its name, {{name: …, its arguments}}, or one for each data set, of {', '.join(LOSSES)}"
TARGETS = "a list of at least one name of layers"
BatchSampler = Literal["batch_sampler", "no_duplicates", "group_by_label"]
MixtureSampler = Literal["proportional", "round_robin", "weighted"]
Schedule = Literal["linear", "cosine", "constant", "constant_with_warmup"]


@dataclass(frozen=True, kw_only=True)
class LoraSettings:
    """Low-rank updates of layers: only these are trained, then added to the weights (PEFT's LoraConfig).

    target_modules: names of layers; None: PEFT's choice for the architecture.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    r: Count = 8
    lora_alpha: Count = 8
    lora_dropout: Annotated[float, Ge(0), Lt(1)] = 0.0
    target_modules: Annotated[tuple[str, ...], TARGETS] | None = None

    def __post_init__(self) -> None:
        if self.target_modules == ():
            raise ValueError(f"lora.target_modules = []\n  accepted: {TARGETS} or null")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One recipe. ValueError names a field that is refused.

    loss: one loss, or one for each data set. datasets: names in data.datasets, in this order; () for all.
    batch_sampler, multi_dataset_batch_sampler: the library's, and `weighted`, which draws the data set of every
    step by `weights`. prompts: column -> text before its texts in training. prompt: text before every text in
    evaluation, and in the saved encoder. max_seq_length: in tokens; None for the encoder's own. num_train_epochs:
    replaces max_steps, which is None then. lora: see LoraSettings.
    """

    train: bool = True
    loss: Annotated[str | Mapping[str, Any], LOSS] = "MultipleNegativesRankingLoss"
    datasets: Annotated[tuple[str, ...], "a list of names in data.datasets"] = ()
    weights: Annotated[Mapping[str, Positive], "a mapping of data sets to numbers above 0"] = field(
        default_factory=dict
    )
    batch_sampler: BatchSampler = "batch_sampler"
    multi_dataset_batch_sampler: MixtureSampler = "proportional"
    prompts: Annotated[Mapping[str, str], "a mapping of columns to texts"] = field(default_factory=dict)
    prompt: str | None = None
    max_seq_length: Length | None = None
    max_steps: Steps | None = 100
    num_train_epochs: Positive | None = None
    per_device_train_batch_size: Batch = 8
    gradient_accumulation_steps: Count = 1
    dataloader_drop_last: bool = False
    learning_rate: Positive = 5e-5
    weight_decay: NotNegative = 0.0
    warmup_steps: Annotated[int, Ge(0)] = 0
    lr_scheduler_type: Schedule = "linear"
    max_grad_norm: NotNegative = 1.0
    lora: LoraSettings | None = None

    def __post_init__(self) -> None:
        if isinstance(self.lora, dict):  # as it comes from a ledger's record
            given = {name: tuple(one) if isinstance(one, list) else one for name, one in self.lora.items()}
            object.__setattr__(self, "lora", LoraSettings(**given))
        check_fields(self, "train")
        if self.lora is not None:
            check_fields(self.lora, "lora")
        if (self.max_steps is None) == (self.num_train_epochs is None):
            raise ValueError("num_train_epochs: accepted: with max_steps: null, and max_steps without it")
        if (self.multi_dataset_batch_sampler == "weighted") != bool(self.weights):
            raise ValueError("weights: accepted: together with multi_dataset_batch_sampler: weighted")
        if len(set(self.datasets)) < len(self.datasets):
            raise ValueError("datasets: accepted: each data set once")
        self.losses(self.datasets)

    def losses(self, names: tuple[str, ...]) -> dict[str, Spec]:
        """The loss of each of these data sets: name -> spec."""
        if isinstance(self.loss, str) or "name" in self.loss:
            return dict.fromkeys(names, spec_of(self.loss))
        specs = {name: spec_of(given) for name, given in self.loss.items()}
        if not specs:
            raise ValueError(f"loss: accepted: {LOSS}")
        return {name: specs[name] for name in names if name in specs}

    @property
    def loss_by_dataset(self) -> bool:
        """Whether each data set has a loss of its own."""
        return not isinstance(self.loss, str) and "name" not in self.loss


def defining(settings: Settings) -> dict[str, Any]:
    """The settings that can change the model: all, or for an untrained arm only how it reads texts."""
    if not settings.train:
        return {name: getattr(settings, name) for name in ("train", "max_seq_length", "prompt")}
    kept = asdict(settings)
    kept["loss"] = {"name": settings.loss} if isinstance(settings.loss, str) else dict(settings.loss)
    kept["datasets"] = list(settings.datasets)
    return kept
