"""An encoder on disk, in the layout of sentence-transformers: anyone can load what a run leaves behind."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from trainers.encoders.backbones import GATED_POOLING, OWN_FORMAT, normalises, prefix_of
from trainers.encoders.layer_gate import LayerGate
from trainers.encoders.readout_names import MIXTURES


class Written(Protocol):
    """The attributes of an encoder that its folder holds."""

    backbone: Any
    tokenizer: Any
    layers: int
    max_length: int
    prefix: str
    normalises: bool

    @property
    def readout(self) -> str: ...
    @property
    def layer_logits(self) -> Tensor | None: ...
    @property
    def layer_gate(self) -> LayerGate | None: ...
    @property
    def width(self) -> int: ...
    def layer_weights(self) -> list[float]: ...


Module = tuple[dict[str, Any], dict[str, Tensor]]  # configuration, and weights by name
MODULES = "sentence_transformers.models."
GATE = "1_GatedLayerPooling"
# Pooling flags by readout, in the older spelling, which all versions of sentence-transformers read.
POOLING = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
    "sep": "pooling_mode_lasttoken",
}


def write_encoder(encoder: Written, path: Path) -> None:
    """Write backbone, tokenizer, readout and normalisation as sentence-transformers modules, plus our record."""
    from safetensors.torch import save_file

    _write_transformer(encoder, path)
    readout = _readout_modules(encoder)
    modules = ["Transformer", *readout, "Normalize"]
    for n, (name, (config, weights)) in enumerate(readout.items(), start=1):
        write_json(path / f"{n}_{name}" / "config.json", config)
        if weights:
            save_file(weights, path / f"{n}_{name}" / "model.safetensors")
    (path / f"{len(modules) - 1}_Normalize").mkdir(exist_ok=True)
    write_json(
        path / "modules.json",
        [
            {
                "idx": n,
                "name": str(n),
                "path": f"{n}_{name}" if n else "",
                "type": GATED_POOLING if name == "GatedLayerPooling" else MODULES + name,
            }
            for n, name in enumerate(modules)
        ],
    )
    write_json(
        path / OWN_FORMAT,
        {
            "readout": encoder.readout,
            "layers": encoder.layers,
            "layer_weights": encoder.layer_weights(),
            "max_length": encoder.max_length,
            "prefix": encoder.prefix,
            "normalises": encoder.normalises,
        },
    )


def _readout_modules(encoder: Written) -> dict[str, Module]:
    """The modules that make a text's vector from the states of its tokens, by name, in order.

    A weighted readout becomes a WeightedLayerPooling. That module divides its weights by their sum, so it gets
    softmax(logits), whose sum is 1; it counts layers from the embeddings (0), so the last K begin at L + 1 - K. It
    mixes layers before Pooling averages tokens, which gives the same, as both are linear. A gated readout becomes
    our own GatedLayerPooling, which includes the average.
    """
    if (gate := encoder.layer_gate) is not None:
        weights = {name: weight.detach().float().cpu().contiguous() for name, weight in gate.state_dict().items()}
        return {"GatedLayerPooling": ({"embedding_dimension": encoder.width, "layers": encoder.layers}, weights)}
    pooling: dict[str, Module] = {"Pooling": (_pooling(encoder), {})}
    if encoder.layer_logits is None:
        return pooling
    depth = encoder.backbone.config.num_hidden_layers
    mixing = {
        "word_embedding_dimension": encoder.width,
        "layer_start": depth + 1 - encoder.layers,
        "num_hidden_layers": depth,
    }
    mixture = encoder.layer_logits.detach().float().softmax(-1).cpu().contiguous()
    return {"WeightedLayerPooling": (mixing, {"layer_weights": mixture}), **pooling}


def read_record(path: Path) -> tuple[dict[str, Any], list[float]]:
    """An encoder's options as its folder records them (readout, layers, length, prefix, scale), and its layer
    weights."""
    file = path / OWN_FORMAT
    record: dict[str, Any] = json.loads(file.read_text()) if file.is_file() else {"prefix": prefix_of(path)}
    record = {"normalises": normalises(path), **record}
    return record, record.pop("layer_weights", [])


def read_gate(path: Path, gate: LayerGate) -> None:
    """Load a gate's weights from a folder; leave it unchanged if the folder has none, or of other shapes."""
    from safetensors.torch import load_file

    file = path / GATE / "model.safetensors"
    held = load_file(file) if file.is_file() else {}
    if {name: weight.shape for name, weight in held.items()} == {
        name: weight.shape for name, weight in gate.state_dict().items()
    }:
        gate.load_state_dict(held)


def _write_transformer(encoder: Written, path: Path) -> None:
    config = encoder.backbone.config
    before = config.output_hidden_states
    config.output_hidden_states = encoder.readout in MIXTURES  # what is mixed
    try:
        encoder.backbone.save_pretrained(path)
    finally:
        config.output_hidden_states = before
    encoder.tokenizer.save_pretrained(path)
    own: dict[str, Any] = {"max_seq_length": encoder.max_length, "do_lower_case": False}
    if "add_pooling_layer" in inspect.signature(type(encoder.backbone)).parameters:
        own["model_args"] = {"add_pooling_layer": False}  # else loading warns of an untrained pooler
    write_json(path / "sentence_bert_config.json", own)
    prompt = {"prompts": {"text": encoder.prefix}, "default_prompt_name": "text"} if encoder.prefix else {}
    write_json(path / "config_sentence_transformers.json", {"similarity_fn_name": "cosine", **prompt})


def _pooling(encoder: Written) -> dict[str, Any]:
    """Pooling's configuration. "weighted" needs the mean after mixing; "sum" has the mean's direction."""
    chosen = "mean" if encoder.readout in ("weighted", "sum") else encoder.readout
    modes = {name: readout == chosen for readout, name in POOLING.items()}
    return {"word_embedding_dimension": encoder.width, **modes, "include_prompt": True}


def write_json(path: Path, content: Any) -> None:
    """Write indented JSON to a file, and make its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n")
