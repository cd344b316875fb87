"""The sentence encoder: a transformer backbone, a readout, and rows of length 1.

encoder = Encoder.load(resolve_backbone("all-MiniLM-L6-v2"))
encoder.encode(["a vessel for hot drinks"])                              # (1, 384) float32
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from corpora.store.telling import Tell, counted, unheard
from trainers.encoders import packing, readouts
from trainers.encoders.backbones import ENCODER_ALONE, BackboneError, check_kind, read_otherwise
from trainers.encoders.cpu_products import put_even
from trainers.encoders.dropout import put_sites
from trainers.encoders.encoder_folder import read_gate, read_record, write_encoder
from trainers.encoders.fused import fused_copies, put_fusing
from trainers.encoders.layer_gate import LayerGate
from trainers.encoders.quiet import quiet
from trainers.encoders.readout_names import MIXTURES, Readout
from trainers.encoders.tokens import (
    CELLS,
    Group,
    Tokens,
    groups,
    passes,
    positions_of,
    remembered,
    tokenise,
    tokenizer_in,
)
from trainers.engine.bf16_copies import Bf16Copy, bf16_copies
from trainers.engine.transfers import moved, moved_together
from trainers.engine.world import Precision
from trainers.losses import unit

MASKED_READOUTS = {
    "mean": readouts.mean,
    "max": readouts.maximum,
    "sep": readouts.last,
    "sum": readouts.total,
}
# Padding cells that a rectangle may have before another rectangle is cheaper: 64 to 200 are equally fast for
# MiniLM on one CPU thread. On a GPU cells cost little, but each rectangle costs some 20 kernel launches a layer:
# on an H200 2,048 are as fast as any other number, or within a tenth (section `cuts` of benchmarks/gpu.py).
SLACK, SLACK_OF_GPU = 64, 2048
# Tokens of one forward pass. On a GPU a pass costs as many launches whatever its size (also in `cuts`).
PASS, PASS_OF_GPU = CELLS, 4 * CELLS
# Tokens of a pass without gradients on a CPU: small enough for its activations to stay in caches
# (benchmarks/evaluation_share.py); a larger rectangle runs whole. With gradients larger passes pay, as each pass
# writes a gradient of every weight.
PASS_IN_USE = 2048
PORTION = 8 * CELLS  # tokens whose word embeddings are held at once: 100 MB for MiniLM
Reading = Callable[[Tokens], np.ndarray]  # N texts -> (N, D) float32
Running = Callable[..., Any]  # called with a pass's arguments in place of the backbone; returns what that would


class Encoder(nn.Module):
    """Maps texts to unit vectors. `forward` is for training, `encode` for use; both run the same computation.

    readout: "mean", "cls" (first token), "max", "sep" (last token) and "sum" read the last layer; "weighted" mixes
    the token means of the last `layers` layers by softmax(layer_logits), which starts uniform; "gated" mixes them
    by weights that layer_gate computes from each text, which start uniform too. precision "bf16" lets `encode` run
    its matrix products in bfloat16. normalises: the backbone's own sentence-transformers modules end in unit
    vectors; if not, `readers` also offers its vectors unscaled. max_length: None for as many tokens as the
    backbone has positions for. `truncated` counts the texts that `encode` and `tokenise` cut at max_length.
    """

    def __init__(
        self,
        backbone: Any,
        tokenizer: Any,
        *,
        readout: Readout = "mean",
        layers: int = 4,
        max_length: int | None = 128,
        prefix: str = "",
        normalises: bool = True,
        precision: Precision = "fp32",
    ) -> None:
        super().__init__()
        depth = backbone.config.num_hidden_layers
        if readout in MIXTURES and not 1 <= layers <= depth:
            raise ValueError(f"layers = {layers}\n  accepted: 1 to {depth}, the layers of this backbone")
        self.backbone = backbone
        self.tokenizer = tokenizer
        self.readout: Readout = readout
        self.layers = layers
        longest = _longest(backbone.config, tokenizer)
        self.max_length = longest if max_length is None else min(max_length, longest)
        self.prefix = prefix
        self.normalises = normalises
        self.precision: Precision = precision
        self.truncated = 0
        self.layer_logits = nn.Parameter(torch.zeros(layers)) if readout == "weighted" else None
        self.layer_gate = LayerGate(backbone.config.hidden_size, layers) if readout == "gated" else None
        self._looked_up: tuple[np.ndarray, Tensor] | None = None  # ids, ascending, and their word embeddings
        self.reading: Reading | None = None  # replaces `embed` during evaluation (`trainers.encoders.together`)
        self.tell: Tell = unheard  # hears of readings of layers during evaluation
        # replaces the backbone in training (`trainers.encoders.stack`, `trainers.encoders.graphs`)
        self.running: Running | None = None

    @staticmethod
    def load(path: Path, **options: Any) -> Encoder:
        """An encoder from a backbone's folder, or from one that `save` wrote (which knows its own readout)."""
        check_kind(path)
        record, weights = read_record(path)
        try:
            backbone, tokenizer = load_backbone(path)
        except (OSError, ValueError, KeyError) as error:
            raise BackboneError(f"backbones: {path} cannot be loaded: {error}") from error
        encoder = Encoder(backbone, tokenizer, **{**record, **options})
        if encoder.layer_logits is not None and len(weights) == encoder.layers:
            with torch.no_grad():
                encoder.layer_logits.copy_(torch.tensor([math.log(weight) for weight in weights]))
        if encoder.layer_gate is not None:
            read_gate(path, encoder.layer_gate)
        return encoder.eval()

    def save(self, path: Path) -> None:
        """Write a folder that `SentenceTransformer(path)` and `Encoder.load(path)` read, safetensors only.

        With a gated readout: `gated_pooling.sentence_transformer(path)`.
        """
        write_encoder(self, path)

    @property
    def readers(self) -> Mapping[str, Callable[[Sequence[str]], Any]]:
        """Functions that tasks read texts with, by kind of input: as vectors, layer by layer, or unscaled."""
        return {"texts": self.encode, "layers": self.read_layers, **self.unscaled_reader}

    @property
    def unscaled_reader(self) -> Mapping[str, Callable[[Sequence[str]], np.ndarray]]:
        """The reader of vectors at their own lengths; {} if the backbone's own vectors are unit vectors."""
        return {} if self.normalises else {"unscaled": self.encode_unscaled}

    @property
    def device(self) -> torch.device:
        device: torch.device = self.backbone.get_input_embeddings().weight.device
        return device

    @property
    def packed(self) -> bool:
        """True if texts run without padding (`trainers.encoders.packing`); False if in padded rectangles."""
        return self.backbone.config._attn_implementation == packing.ATTENTION

    @property
    def depth(self) -> int:
        """L, the number of layers."""
        return self.backbone.config.num_hidden_layers

    @property
    def width(self) -> int:
        """D, the length of an embedding."""
        return self.backbone.config.hidden_size

    def bf16_copies(self, device: str, *, in_parts: bool = False) -> list[Bf16Copy]:
        """The weights of the backbone's linear layers that training in bf16 copies on this device.

        in_parts: texts may be encoded again in the backward pass, where there are no copies, so nothing is fused.
        """
        fuses = self.packed and not in_parts and torch.device(device).type != "cpu"
        layers = self.backbone.encoder.layer if fuses else ()
        fused = [copy for layer in layers for copy in fused_copies(layer.attention.self)]
        already = {id(weight) for copy in fused for weight in copy.weights}
        linear = [module for module in self.backbone.modules() if isinstance(module, nn.Linear)]
        return fused + [
            copy for layer in linear for copy in bf16_copies(layer) if id(copy.weights[0]) not in already
        ]

    def tokenise(self, texts: Sequence[str]) -> Tokens:
        """Token ids of the texts with this backbone's prefix; texts that are cut are counted in `truncated`."""
        tokens = tokenise(self.tokenizer, texts, self.max_length, self.prefix)
        self.truncated += tokens.truncated
        return tokens

    def forward(self, *several: Tokens) -> Tensor:
        """Unit vectors of all texts, in their order, float32. -> (N, D)."""
        return unit(self.pooled(*several))

    def pooled(self, *several: Tokens) -> Tensor:
        """The readout's vectors, not normalised, in the order of the texts, float32. -> (N, D).

        Texts of several arguments share a pass if one pass holds all of them, but never a rectangle.
        """
        begins = np.cumsum([0, *map(len, several)])
        ordered, orders = zip(*(tokens.longest_first() for tokens in several), strict=True)
        order = np.concatenate([own + begin for own, begin in zip(orders, begins, strict=False)])
        every = self.readout in MIXTURES
        parts = [self._read(layers, mask) for mask, layers in self._rectangles(*ordered, every=every)]
        places, inverse = moved_together([np.argsort(order), order], self.device)
        return packing.regathered(torch.cat(parts), places, inverse)

    @contextmanager
    def one_lookup(self, *several: Tokens) -> Iterator[None]:
        """Until the block ends, let these texts share one lookup of word embeddings, also over several passes.

        The gradient of a lookup is as large as the whole vocabulary; the gradient of the shared rows only as large
        as the words that occur. Results equal those of one lookup per pass to the last digit; with one worker on a
        CPU, where gradients are sparse (`trainers.engine.row_gradients`), up to rounding.
        """
        ids = np.unique(np.concatenate([tokens.ids for tokens in several]))
        self._looked_up = ids, self.backbone.get_input_embeddings()(moved(ids, self.device))
        try:
            yield
        finally:
            self._looked_up = None

    def _words(self, tokens: Tokens) -> Tensor:
        """Word embeddings of all tokens, (M, E)."""
        if self._looked_up is None:
            words: Tensor = self.backbone.get_input_embeddings()(moved(tokens.ids, self.device))
            return words
        ids, rows = self._looked_up
        return embedding(moved(np.searchsorted(ids, tokens.ids), self.device), rows)

    def hidden_layers(self, tokens: Tokens) -> np.ndarray:
        """Token means of every layer, not normalised, embeddings first. N texts -> (L + 1, N, D) float32."""
        with self._evaluating():
            return self._layer_means(tokens, self.depth + 1).cpu().numpy()

    def mixed_layers(self, tokens: Tokens) -> Tensor:
        """Token means of the layers that the readout mixes, with gradient, deepest last. -> (K, N, D) float32."""
        return self._layer_means(tokens, self.layers)

    def _layer_means(self, tokens: Tokens, deepest: int) -> Tensor:
        ordered, order = tokens.longest_first()
        means, count = list[Tensor](), counted("reading layers of texts", len(tokens), self.tell)
        for mask, layers in self._rectangles(ordered, every=True):
            means.append(torch.stack([readouts.mean(layer.float(), mask) for layer in layers[-deepest:]]))
            count(len(mask))
        return torch.cat(means, dim=1)[:, moved(np.argsort(order), self.device)]

    def mixture(self, last: Tensor) -> Tensor | None:
        """The readout's weight of each layer, embeddings first, given the token means of the last layer.

        (N, D) -> (N, L + 1), rows of sum 1; None for a readout that does not mix token means.
        """
        weights = last.new_zeros(len(last), self.depth + 1)
        if self.layer_logits is not None:
            weights[:, -self.layers :] = readouts.layer_mixture(self.layer_logits)
        elif self.layer_gate is not None:
            weights[:, -self.layers :] = self.layer_gate(last)
        elif self.readout == "mean":
            weights[:, -1] = 1.0
        else:
            return None
        return weights

    def read_layers(self, texts: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray | None]]:
        """For each text the token means of every layer, not normalised, embeddings first, and `mixture`'s weights.

        N texts -> N × ((L + 1, D) float32, (L + 1,) of sum 1, or None if the readout does not mix token means).
        """
        if not len(texts):
            return []
        tokens = remembered(self.tokenizer, texts, self.max_length, self.prefix)
        layers = self.hidden_layers(tokens)  # (L + 1, N, D)
        with self._evaluating():
            weights = self.mixture(moved(layers[-1], self.device))
        rows = [None] * len(texts) if weights is None else weights.cpu().numpy()
        return list(zip(layers.swapaxes(0, 1), rows, strict=True))

    def states(self, tokens: Tokens) -> Tensor:
        """Last-layer states of at least one text, without dropout, ordered as `tokens.ids`. -> (M, D) float32."""
        with self._evaluating():
            ordered, _ = tokens.longest_first()
            places, _ = Tokens(np.arange(len(tokens.ids)), tokens.lengths).longest_first()
            rows = [layers[-1].float()[mask.bool()] for mask, layers in self._rectangles(ordered, every=False)]
            return torch.cat(rows)[moved(np.argsort(places.ids), self.device)]

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors of texts, without dropout. N texts -> (N, D) float32."""
        return unit(torch.from_numpy(self.encode_unscaled(texts))).numpy()

    def encode_unscaled(self, texts: Sequence[str]) -> np.ndarray:
        """The readout's vectors of texts, without dropout, not normalised. N texts -> (N, D) float32."""
        if not len(texts):
            return np.zeros((0, self.width), np.float32)
        tokens = remembered(self.tokenizer, texts, self.max_length, self.prefix)
        self.truncated += tokens.truncated
        return self.embed(tokens)

    def embed(self, tokens: Tokens) -> np.ndarray:
        """The readout's vectors of at least one text, without dropout, not normalised. -> (N, D) float32."""
        if self.reading is not None:
            return self.reading(tokens)
        return np.concatenate([rows for _, rows in self.portions(tokens)])[np.argsort(tokens.longest_first()[1])]

    def portions(self, tokens: Tokens) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """`embed` in portions, long texts first: yields the texts' places (n,) and their vectors (n, D)."""
        ordered, order = tokens.longest_first()
        ends = np.flatnonzero(np.diff(np.cumsum(ordered.lengths) // PORTION)) + 1
        for part in np.split(np.arange(len(ordered)), ends):
            with self._evaluating():
                rows = self.pooled(ordered.take(part))
                yield order[part], rows.cpu().numpy()

    def layer_weights(self) -> list[float]:
        """The layer weights of a weighted readout, deepest layer last; [] for other readouts."""
        return [] if self.layer_logits is None else readouts.layer_mixture(self.layer_logits.detach()).tolist()

    def _rectangles(self, *several: Tokens, every: bool) -> Iterator[tuple[Tensor, Sequence[Tensor]]]:
        """Run the backbone; yield each group's mask (n, T) of tokens to read and its states (n, T, D).

        every: states of every layer, not of the last alone. Word embeddings are looked up once for all groups: the
        gradient of a lookup may be as large as the whole vocabulary, and one per group would cost a fifth of a
        training step.
        """
        tokens = Tokens.joined(several)
        words = self._words(tokens)
        begins, slack = np.cumsum([0, *(len(own.ids) for own in several)]), slack_of(self.device)
        by_argument = [
            [replace(group, places=group.places + begin) for group in groups(own, slack=slack)]
            for own, begin in zip(several, begins, strict=False)
        ]
        every_group = [group for own in by_argument for group in own]
        run = self._packed(words, by_argument, every) if self.packed else self._padded(words, every_group, every)
        if tokens.read is None:
            return run
        masks = (moved(group.mask & tokens.read[group.places], self.device) for group in every_group)
        return ((mask, layers) for mask, (_, layers) in zip(masks, run, strict=True))

    def _packed(
        self, words: Tensor, by_argument: Sequence[Sequence[Group]], every: bool
    ) -> Iterator[tuple[Tensor, Sequence[Tensor]]]:
        device, first = self.device, packing.first_position(self.backbone.config)
        begin, limit = 0, pass_of(device)
        if len(words) <= limit:
            by_argument = [[group for own in by_argument for group in own]]
        trains = self.training or torch.is_grad_enabled()  # without gradients: parts of a batch, the first time
        run = self.running if self.running is not None and trains else self.backbone
        for part in (part for own in by_argument for part in passes(own, limit=limit)):
            positions, texts, areas = packing.laid_out(part, begin, first, device)
            end = begin + positions.shape[1]
            out = run(
                inputs_embeds=words[None, begin:end],
                position_ids=positions,
                output_hidden_states=every,
                layout=areas,
                texts=texts,
            )
            parts = [layer.squeeze(0).split([len(area.cells) for area in areas]) for layer in _layers(out, every)]
            for area, layers in zip(areas, zip(*parts, strict=True), strict=True):
                yield area.mask, [area.padded(own) for own in layers]
            begin = end

    def _padded(
        self, words: Tensor, cut: Sequence[Group], every: bool
    ) -> Iterator[tuple[Tensor, Sequence[Tensor]]]:
        for group, own in zip(cut, words.split([group.tokens for group in cut]), strict=True):
            area = packing.Rectangle.of(group, self.device)
            out = self.backbone(
                inputs_embeds=area.padded(own), attention_mask=area.mask.long(), output_hidden_states=every
            )
            yield area.mask, _layers(out, every)

    def _read(self, hidden: Sequence[Tensor], mask: Tensor) -> Tensor:
        if self.readout == "weighted":
            assert self.layer_logits is not None
            return readouts.weighted([layer.float() for layer in hidden[-self.layers :]], mask, self.layer_logits)
        if self.readout == "gated":
            assert self.layer_gate is not None
            return readouts.gated([layer.float() for layer in hidden[-self.layers :]], mask, self.layer_gate)
        last = hidden[-1].float()
        if self.readout == "cls":
            return readouts.first(last)
        return MASKED_READOUTS[self.readout](last, mask)

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        """No gradient, no dropout, this encoder's precision; training mode is put back afterwards."""
        before, half = self.training, self.precision == "bf16"
        self.eval()
        try:
            with torch.inference_mode(), torch.autocast(self.device.type, torch.bfloat16, enabled=half):
                yield
        finally:
            self.train(before)


def slack_of(device: torch.device) -> int:
    """The padding cells that a rectangle may have on this device."""
    return SLACK if device.type == "cpu" else SLACK_OF_GPU


def pass_of(device: torch.device) -> int:
    """The tokens of one forward pass on this device."""
    if device.type != "cpu":
        return PASS_OF_GPU
    return PASS if torch.is_grad_enabled() else PASS_IN_USE


def load_backbone(path: Path) -> tuple[Any, Any]:
    """Transformer and tokenizer of a folder in hub format; safetensors only, no code from the folder."""
    from transformers import MODEL_MAPPING, AutoConfig, AutoModel, AutoModelForTextEncoding

    packing.register()
    torch.backends.cuda.enable_cudnn_sdp(False)  # it plans anew for every shape, and is not deterministic
    with quiet():
        otherwise = read_otherwise(path)
        config = AutoConfig.from_pretrained(path, local_files_only=True, trust_remote_code=False, **otherwise)
        architecture: Any = MODEL_MAPPING[type(config)]
        accepted = inspect.signature(architecture).parameters
        extra: dict[str, Any] = {"add_pooling_layer": False} if "add_pooling_layer" in accepted else {}
        packed = config.model_type in packing.PACKED
        if packed:
            extra["attn_implementation"] = packing.ATTENTION
        kind: Any = AutoModelForTextEncoding if config.model_type in ENCODER_ALONE else AutoModel
        backbone = kind.from_pretrained(
            path,
            config=config,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=torch.float32,
            **extra,
        )
        if packed:
            put_sites(backbone)
            put_even(backbone)
            put_fusing(backbone)
        return backbone, tokenizer_in(path)


def _layers(out: Any, every: bool) -> Sequence[Tensor]:
    return out.hidden_states if every else (out.last_hidden_state,)


def _longest(config: Any, tokenizer: Any) -> int:
    """The most tokens of a text that both backbone and tokenizer accept."""
    return int(min(positions_of(config) or tokenizer.model_max_length, tokenizer.model_max_length))
