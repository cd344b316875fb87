"""A sentence encoder with a head that predicts the word of a definition, trained and saved together.

model.encode(["a vessel for hot drinks"])                                  # (1, 768), the sentence vector
model.encode([Definition("a vessel for hot drinks", "cup")])               # (1, 1), the rank of "cup", from 1
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from corpora.defsent.records import Definition
from trainers.defsent.heads import PredictionHead, Transform, embeddings_of
from trainers.defsent.vocabulary import word_pieces
from trainers.encoders.encoder import Encoder
from trainers.encoders.encoder_folder import write_json
from trainers.encoders.tokens import Tokens

HEAD, RECORD = "head.safetensors", "semray_head.json"
LOGITS_BYTES = 256 << 20  # at most, for one chunk of texts x vocabulary
NO_WORD = -1.0  # the rank of a word that is not a single entry of the vocabulary


def places(logits: Tensor, target: Tensor) -> Tensor:
    """Rank of each target among all logits, from 1; ties count against it. (N, V), (N,) -> (N,) int64.

    Departure: the authors' code takes the order of top-k, which breaks ties arbitrarily.
    """
    return (logits >= logits.gather(1, target[:, None])).sum(1)


class WordEncoder(nn.Module):
    """Encoder and prediction head. `forward` serves training, `readers` evaluation.

    about: facts about the training run, in plain JSON types; saved with the model.
    """

    def __init__(self, encoder: Encoder, head: PredictionHead, about: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head
        self.about = dict(about or {})

    @property
    def truncated(self) -> int:
        return self.encoder.truncated

    def forward(self, tokens: Tokens) -> Tensor:
        """Logits over the vocabulary for each text, float32. -> (N, V)."""
        return self.head(self.encoder.pooled(tokens))

    @property
    def readers(self) -> Mapping[str, Callable[[Sequence[Any]], np.ndarray]]:
        """Functions from sentences to vectors before the head, and from definitions to their words' ranks."""
        return {"texts": self.encoder.encode, "definitions": self.places, **self.encoder.unscaled_reader}

    def places(self, definitions: Sequence[Definition]) -> np.ndarray:
        """Rank of each word in the vocabulary given its definition; NO_WORD for one that is not an entry.

        -> (N, 1) float32. Each distinct definition is encoded once; logits are computed for as many rows at a time
        as fit in LOGITS_BYTES.
        """
        ranks = np.full((len(definitions), 1), NO_WORD, np.float32)
        pieces = word_pieces(self.encoder.tokenizer, [definition.word for definition in definitions])
        known = np.flatnonzero(pieces >= 0).tolist()
        if not known:
            return ranks
        texts = [definitions[index].definition for index in known]
        row_of = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        rows = torch.tensor([row_of[text] for text in texts])
        targets = torch.from_numpy(pieces[known])
        vectors = torch.from_numpy(self.encoder.embed(self.encoder.tokenise(list(row_of))))
        # Read from the config, as under ZeRO 3 the decoder is empty outside of a forward pass.
        vocabulary = self.encoder.backbone.config.vocab_size
        device, chunk = self.encoder.device, max(1, LOGITS_BYTES // (4 * vocabulary))
        with torch.inference_mode():
            parts = [
                places(self.head(vectors[chunk_rows].to(device)), target.to(device)).cpu()
                for chunk_rows, target in zip(rows.split(chunk), targets.split(chunk), strict=True)
            ]
        ranks[known, 0] = torch.cat(parts).numpy()
        return ranks

    def save(self, path: Path) -> None:
        """Write a folder that `SentenceTransformer(path)` reads, with the head and `about` in two more files."""
        from safetensors.torch import save_file

        self.encoder.save(path)
        tied = self.head.decoder is self.encoder.backbone.get_input_embeddings().weight
        kept = {name: tensor for name, tensor in self.head.state_dict().items() if name != "decoder" or not tied}
        if not kept:
            kept = {"nothing": torch.zeros(0)}  # a tied head without transform; `load` expects the file
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in kept.items()}, path / HEAD)
        norm = None if self.head.transform is None else self.head.transform.norm.eps
        record = {"tied": tied, "bias": self.head.bias is not None, "norm_eps": norm, "about": self.about}
        write_json(path / RECORD, record)

    @staticmethod
    def load(path: Path) -> WordEncoder:
        """Read a folder that `save` wrote; the model is in eval mode."""
        from safetensors.torch import load_file

        encoder, record, kept = Encoder.load(path), json.loads((path / RECORD).read_text()), load_file(path / HEAD)
        embeddings = embeddings_of(encoder)
        transform = None if record["norm_eps"] is None else Transform(encoder.width, record["norm_eps"])
        bias = nn.Parameter(torch.zeros(len(embeddings))) if record["bias"] else None
        decoder = embeddings if record["tied"] else nn.Parameter(torch.empty_like(embeddings))
        head = PredictionHead(decoder, transform, bias)
        kept.pop("nothing", None)
        missing, unexpected = head.load_state_dict(kept, strict=False)
        assert set(missing) <= ({"decoder"} if record["tied"] else set()), missing
        assert not unexpected, unexpected
        return WordEncoder(encoder, head, record["about"]).eval()
