"""What stands still in training, and the proof that it did."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from torch import nn

from trainers.errors import TrainerError

if TYPE_CHECKING:
    from trainers.defsent.encoder import WordEncoder


class Moved(TrainerError):
    """Weights that were to stand still are not as they were."""


def freeze(model: WordEncoder, policy: str) -> None:
    """Take from training what the policy holds (`Settings.freeze`); the others are to be trained.

    ValueError for an architecture without an embedding module. "head" and "head+embeddings" keep the decoder
    shared with the word embeddings, so both stand still. Dropout stays on in a frozen embedding module, as in the
    authors' code.
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
    """sha256 over name and bytes of every parameter that is not trained."""
    total = hashlib.sha256()
    for name, parameter in sorted(model.named_parameters()):
        if not parameter.requires_grad:
            total.update(name.encode())
            total.update(parameter.detach().cpu().contiguous().numpy().tobytes())
    return total.hexdigest()


def check_frozen(model: nn.Module, before: str) -> None:
    """Moved unless the frozen parameters are byte for byte those of `before`."""
    after = digest_of_frozen(model)
    if after != before:
        raise Moved(f"frozen weights changed in training: sha256 {before[:12]} before, {after[:12]} after")


def trainable(model: nn.Module) -> int:
    """How many numbers training may change."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
