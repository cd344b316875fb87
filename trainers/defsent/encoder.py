"""A sentence encoder that can name the word of a definition: the encoder and its head, trained and saved together.

model.encode(["a vessel for hot drinks"])                                  # (1, 768), the sentence vector
model.encode([Definition("a vessel for hot drinks", "cup")])               # (1, 1), the place of "cup", from 1
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
LOGITS_BYTES = 256 << 20  # of one chunk of texts x vocabulary
NO_WORD = -1.0  # the place of a word that is no single entry of the vocabulary


def places(logits: Tensor, target: Tensor) -> Tensor:
    """Place of each target among all logits, from 1; equal logits count against it. (N, V), (N,) -> (N,) int64.

    Departure: the authors' code takes the order of top-k, in which ties fall as they may.
    """
    return (logits >= logits.gather(1, target[:, None])).sum(1)


class WordEncoder(nn.Module):
    """`forward` is for training: texts to the logits of all words. `readers` are for use.

    about: what the run has to say of the model, in plain JSON types; saved with it.
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
        """Logits of every word for each text, float32. -> (N, V)."""
        return self.head(self.encoder.pooled(tokens))

    @property
    def readers(self) -> Mapping[str, Callable[[Sequence[Any]], np.ndarray]]:
        """Sentences to vectors, taken before the head; definitions to the places of their words."""
        return {"texts": self.encoder.encode, "definitions": self.places, **self.encoder.unscaled_reader}

    def places(self, asked: Sequence[Definition]) -> np.ndarray:
        """Where each word stands among the whole vocabulary for its definition; NO_WORD for one that is no entry.

        -> (N, 1) float32. A definition is encoded once for all words that are asked of it; logits are formed for
        as many rows as fit in LOGITS_BYTES.
        """
        found = np.full((len(asked), 1), NO_WORD, np.float32)
        pieces = word_pieces(self.encoder.tokenizer, [one.word for one in asked])
        known = np.flatnonzero(pieces >= 0).tolist()
        if not known:
            return found
        row_of = {text: row for row, text in enumerate(dict.fromkeys(asked[at].definition for at in known))}
        rows = torch.tensor([row_of[asked[at].definition] for at in known])
        targets = torch.from_numpy(pieces[known])
        vectors = torch.from_numpy(self.encoder.embed(self.encoder.tokenise(list(row_of))))
        words = self.encoder.backbone.config.vocab_size  # ZeRO 3 leaves nothing of the decoder between two calls
        device, chunk = self.encoder.device, max(1, LOGITS_BYTES // (4 * words))
        with torch.inference_mode():
            parts = [
                places(self.head(vectors[some].to(device)), aim.to(device)).cpu()
                for some, aim in zip(rows.split(chunk), targets.split(chunk), strict=True)
            ]
        found[known, 0] = torch.cat(parts).numpy()
        return found

    def save(self, path: Path) -> None:
        """A folder that `SentenceTransformer(path)` reads, with the head and what the run says beside it."""
        from safetensors.torch import save_file

        self.encoder.save(path)
        tied = self.head.decoder is self.encoder.backbone.get_input_embeddings().weight
        kept = {name: tensor for name, tensor in self.head.state_dict().items() if name != "decoder" or not tied}
        if not kept:
            kept = {"nothing": torch.zeros(0)}  # a tied head without transform; the file is there all the same
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in kept.items()}, path / HEAD)
        norm = None if self.head.transform is None else self.head.transform.norm.eps
        record = {"tied": tied, "bias": self.head.bias is not None, "norm_eps": norm, "about": self.about}
        write_json(path / RECORD, record)

    @staticmethod
    def load(path: Path) -> WordEncoder:
        """What `save` wrote."""
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
