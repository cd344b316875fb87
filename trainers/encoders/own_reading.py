"""The readout and maximum length that a backbone's folder declares for sentence-transformers. No torch here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainers.encoders.backbones import OWN_FORMAT, TRANSFORMER, modules_in, prefix_of, read_json

# sentence-transformers' pooling modes -> the equal readouts of `Encoder`.
READOUTS = {"cls": "cls", "mean": "mean", "max": "max", "lasttoken": "sep"}
FLAGS = {  # the older spelling of pooling modes: a flag for each
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
# Settings of a transformer's file that may differ: `length_of` reads the first, the second changes speed only, the
# rest concern search.
PASSED = {"max_seq_length", "unpad_inputs", "query_length", "document_length", "query_expansion"}
USUAL = {
    "transformer_task": "feature-extraction",
    "module_output_name": "token_embeddings",
    "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
    "model_args": {"add_pooling_layer": False},
}
OF_OWN_FORMAT = {"Pooling", "WeightedLayerPooling", "GatedLayerPooling"}  # what `Encoder.save` writes


def own_readout(path: Path) -> str:
    """The name of `Encoder`'s readout that equals the folder's modules.

    A bare transformer has "mean", as in sentence-transformers. Raises ValueError, naming the cause, for modules or
    settings with which `Encoder` would give other vectors than sentence-transformers.
    """
    saved_here = (path / OWN_FORMAT).is_file()
    if not saved_here and (odd := _odd(path)) is not None:
        raise _unread(path, odd)
    modules = [(kind, folder) for kind, folder in modules_in(path) if kind != "Normalize"]
    kinds = [kind for kind, _ in modules]
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
    """The maximum number of tokens that the folder declares; None if it leaves that to the tokenizer."""
    return read_json(_of_transformer(path)).get("max_seq_length")


def _odd(path: Path) -> str | None:
    """A setting that sentence-transformers obeys and `Encoder` does not, in words; None if there is none."""
    if read_json(path / "config_sentence_transformers.json").get("truncate_dim"):
        return "truncate_dim in config_sentence_transformers.json"
    file = _of_transformer(path)
    for name, value in read_json(file).items():
        if value and name not in PASSED and value != USUAL.get(name):
            return f"{name} in {file.name}"
    return None if (path / "modules.json").is_file() else _odd_of_bare(path)


def _odd_of_bare(path: Path) -> str | None:
    """Why sentence-transformers does not read this bare transformer by the mean of tokens; None if it does."""
    config = read_json(path / "config.json")
    causal = [kind for kind in config.get("architectures") or [] if kind.endswith("ForCausalLM")]
    if causal and config.get("is_causal", True):
        return f"{causal[0]} and no modules.json, so that a text is read by its last token"
    if "chat_template" in read_json(path / "tokenizer_config.json") or (path / "chat_template.jinja").is_file():
        return "a chat template and no modules.json, so that a text is put in the template"
    return None


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
        f"readout = 'own': {path} has {what}, which is not done here\n"
        "  accepted: family: command with `train: false`, which has sentence-transformers itself read it;"
        " or a readout to read the transformer by: mean, cls, max"
    )


def _of_transformer(path: Path) -> Path:
    """The file with a transformer's settings in sentence-transformers; older versions named it after the kind."""
    usual = path / "sentence_bert_config.json"
    return usual if usual.is_file() else next(iter(sorted(path.glob(TRANSFORMER))), usual)
