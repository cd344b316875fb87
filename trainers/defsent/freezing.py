"""Freezing of parameters, and the check that training left them unchanged."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from torch import nn

from trainers.errors import TrainerError

if TYPE_CHECKING:
    from trainers.defsent.encoder import WordEncoder


class FrozenWeightsChanged(TrainerError):
    """Training changed weights that were frozen."""


def freeze(model: WordEncoder, policy: str) -> None:
    """Freeze the parameters that the policy names (`Settings.freeze`); make all others trainable.

    "head" and "head+embeddings" keep the decoder shared with the word embeddings, so both are frozen. Dropout
    stays on in a frozen embedding module, as in the authors' code. Raises ValueError for "head+embeddings" on an
    architecture without an embedding module.
    """
    if policy in ("head_untied", "none"):
        model.head.untie()
    model.requires_grad_(True)
    if policy != "none":
        model.head.requires_grad_(False)
    if policy == "head+embeddings":
        embeddings = dict(model.encoder.backbone.named_children()).get("embeddings")
        if embeddings is None:
            raise ValueError(
                f"train.freeze = 'head+embeddings', and a {model.encoder.backbone.config.model_type} model has no"
                " embedding module of its own\n  accepted: head, head_untied or none"
            )
        embeddings.requires_grad_(False)


def digest_of_frozen(model: nn.Module) -> str:
    """sha256 over name and bytes of every frozen parameter."""
    total = hashlib.sha256()
    for name, parameter in sorted(model.named_parameters()):
        if not parameter.requires_grad:
            total.update(name.encode())
            total.update(parameter.detach().cpu().contiguous().numpy().tobytes())
    return total.hexdigest()


def check_frozen(model: nn.Module, before: str) -> None:
    """Raise FrozenWeightsChanged unless the digest of the frozen parameters still is `before`."""
    after = digest_of_frozen(model)
    if after != before:
        raise FrozenWeightsChanged(
            f"frozen weights changed in training: sha256 {before[:12]} before, {after[:12]} after"
        )


def trainable(model: nn.Module) -> int:
    """The number of trainable parameters."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
