"""How a backbone's own modules read it: the readout and the length that its folder names. No torch here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainers.encoders.backbones import OWN_FORMAT, modules_in, prefix_of, read_json

# sentence-transformers' words for how tokens become a sentence, where a readout is the same.
READOUTS = {"cls": "cls", "mean": "mean", "max": "max", "lasttoken": "sep"}
FLAGS = {  # the longer-standing spelling: a flag for each
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
OF_OWN_FORMAT = {"Pooling", "WeightedLayerPooling", "GatedLayerPooling"}  # what `Encoder.save` writes


def own_readout(path: Path) -> str:
    """The readout that a folder's modules are, by the name that `Encoder` has for it.

    A bare transformer is read by its mean, as sentence-transformers reads one. ValueError, naming what is in the
    way, for modules that `Encoder` has not.
    """
    if _transformer(path).get("do_lower_case"):
        raise _unread(path, "do_lower_case in sentence_bert_config.json")
    modules = [(kind, folder) for kind, folder in modules_in(path) if kind != "Normalize"]
    kinds = [kind for kind, _ in modules]
    saved_here = (path / OWN_FORMAT).is_file()
    if strange := [kind for kind in kinds if kind not in (OF_OWN_FORMAT if saved_here else ("Pooling",))]:
        raise _unread(path, f"{strange[0]} in modules.json")
    if saved_here:
        return str(read_json(path / OWN_FORMAT)["readout"])
    if not (path / "modules.json").is_file():
        return "mean"
    if len(modules) != 1:
        raise _unread(path, f"{len(modules)} Pooling modules in modules.json")
    return _readout_of(path, read_json(modules[0][1] / "config.json"))


def length_of(path: Path) -> int | None:
    """How many tokens of a text the folder says are read; None where it leaves that to the tokenizer."""
    return _transformer(path).get("max_seq_length")


def _readout_of(path: Path, pooling: dict[str, Any]) -> str:
    """The readout of a Pooling module's configuration."""
    said = pooling.get("pooling_mode") or [mode for flag, mode in FLAGS.items() if pooling.get(flag)] or "mean"
    modes = [said] if isinstance(said, str) else list(said)
    if len(modes) != 1 or modes[0] not in READOUTS:
        raise _unread(path, f"pooling by {' and '.join(modes)}")
    if not pooling.get("include_prompt", True) and prefix_of(path):
        raise _unread(path, "pooling without the prompt")
    return READOUTS[modes[0]]


def _unread(path: Path, what: str) -> ValueError:
    return ValueError(
        f"readout = 'own': {path} has {what}, which no readout here is\n"
        "  accepted: family: command with `train: false`, which has sentence-transformers itself read it;"
        " or a readout to read the transformer by: mean, cls, max"
    )


def _transformer(path: Path) -> dict[str, Any]:
    return read_json(path / "sentence_bert_config.json")
