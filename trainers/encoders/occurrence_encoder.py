"""Words in their sentences to vectors: an Encoder behind a front end that marks, cuts and finds the word.

encoder = OccurrenceEncoder.load(resolve_backbone("all-MiniLM-L6-v2"))
encoder.encode([Occurrence("He sat on the bank .", 14, 18, "bank")])     # (1, 384) float32
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from corpora.sources.occurrences import Occurrence
from corpora.store.telling import counted
from trainers.encoders.backbones import BackboneError
from trainers.encoders.encoder import Encoder
from trainers.encoders.encoder_folder import read_record, write_json
from trainers.encoders.marking import TAGS, Markers, add_tags, bare, mark, name_tags, tokens_around
from trainers.encoders.tokens import Tokens, tokenizer_in

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

OccurrenceReadout = Literal["mean", "target"]
RECORD = "semray_occurrences.json"  # what `save` adds to an encoder's folder
CHUNK = 1024  # occurrences in memory at a time: their token states, and every layer's means for "target"


@dataclass(frozen=True, eq=False)
class OccurrenceEncoder:
    """An encoder of words in sentences (occurrences).

    readout "mean": mean of the last layer over all tokens of the marked sentence. "target": in the unmarked
    sentence, mean over `layers` (1 is the first; 0 would be the embeddings) and over the pieces of the target.
    markers: see `trainers.encoders.marking`.
    """

    encoder: Encoder
    readout: OccurrenceReadout = "mean"
    layers: tuple[int, ...] = ()
    markers: Markers = "plain"

    @staticmethod
    def load(
        path: Path,
        *,
        readout: OccurrenceReadout = "mean",
        layers: tuple[int, ...] = (),
        markers: Markers = "plain",
        **options: Any,
    ) -> OccurrenceEncoder:
        """Load from a backbone's folder, or one that `save` wrote. options: max_length, precision.

        Raises ValueError if the backbone has fewer layers, BackboneError if its tokenizer cannot be used.
        """
        encoder = Encoder.load(path, readout="mean", **options)
        if layers and max(layers) > encoder.depth:
            raise ValueError(
                f"train.layers = {list(layers)}\n  accepted: 1 to {encoder.depth}, the layers of {path.name}"
            )
        check_fast(encoder.tokenizer, path)
        if markers == "added":
            add_tags(encoder.backbone, encoder.tokenizer)
        return OccurrenceEncoder(encoder, readout, layers, markers)

    @property
    def readers(self) -> Mapping[str, Callable[[Sequence[Any]], np.ndarray]]:
        """Functions that tasks read inputs with: occurrences and, for readout "mean", texts."""
        if self.readout != "mean":
            return {"occurrences": self.encode}
        return {"occurrences": self.encode, "texts": self.encoder.encode, **self.encoder.unscaled_reader}

    @property
    def truncated(self) -> int:
        """How many sentences had to be cut so far."""
        return self.encoder.truncated

    def tokenise(self, occurrences: Sequence[Occurrence]) -> Tokens:
        """Token ids of the marked sentences (unmarked for "target"); cut ones are counted in `truncated`."""
        encoder, with_span = self.encoder, bare if self.readout == "target" else mark
        texts = [with_span(occurrence) for occurrence in occurrences]
        tokens = tokens_around(encoder.tokenizer, texts, max_length=encoder.max_length, prefix=encoder.prefix)
        encoder.truncated += tokens.truncated
        return tokens if self.readout == "target" else replace(tokens, read=None)

    def encode(self, occurrences: Sequence[Occurrence]) -> np.ndarray:
        """Vectors of occurrences as the readout gives them, not normalised, without dropout. N -> (N, D) float32.

        Their cosines are what training sees; their lengths count where uses of a word are averaged (PRT).
        """
        parts, count = [], counted("reading occurrences", len(occurrences), self.encoder.tell)
        for begin in range(0, len(occurrences), CHUNK):
            parts.append(self._rows(self.tokenise(occurrences[begin : begin + CHUNK])))
            count(len(parts[-1]))
        return np.concatenate(parts) if parts else np.zeros((0, self.encoder.width), np.float32)

    def save(self, path: Path) -> None:
        """Write a folder that `OccurrenceEncoder.load` reads with the same options.

        With readout "mean" SentenceTransformer(path) gives the same directions, as unit vectors, for sentences
        marked as `mark` does.
        """
        self.encoder.save(path)
        record = {"readout": self.readout, "layers": self.layers, "markers": self.markers, "tags": TAGS}
        write_json(path / RECORD, record)

    def _rows(self, tokens: Tokens) -> np.ndarray:
        if self.readout == "mean":
            return self.encoder.embed(tokens)
        layers = self.encoder.hidden_layers(tokens)[list(self.layers)]  # (K, n, D)
        return layers.mean(0)


def check_fast(tokenizer: PreTrainedTokenizerBase, path: Path) -> None:
    """Raise BackboneError for a tokenizer without character offsets."""
    if not tokenizer.is_fast:
        raise BackboneError(
            f"backbones: {path}: its tokenizer does not say where pieces lie\n  accepted: a fast tokenizer"
        )


def check_words(path: Path, words: Sequence[str], *, markers: Markers, max_length: int) -> None:
    """Raise ValueError if the longest of these words, marked, exceeds max_length. Loads only the tokenizer."""
    tokenizer = tokenizer_in(path)
    check_fast(tokenizer, path)
    if markers == "added":
        name_tags(tokenizer)
    marked = [mark(Occurrence(word, 0, len(word), word)) for word in words]
    pieces = tokenizer([text for text, _, _ in marked], add_special_tokens=False, verbose=False)["input_ids"]
    longest = max(range(len(marked)), key=lambda at: len(pieces[at]))
    tokens_around(tokenizer, [marked[longest]], max_length=max_length, prefix=read_record(path)[0]["prefix"])


@dataclass(frozen=True)
class LemmaPoints:
    """One lemma, one concept (1L1C): every occurrence of a lemma is one point, all lemmas are equally far apart.

    Source: CALE, section 5.1. Vectors are those of one call: a base vector for each lemma it has.
    """

    truncated: ClassVar[int] = 0

    @property
    def readers(self) -> Mapping[str, Callable[[Sequence[Any]], np.ndarray]]:
        """The function that tasks read occurrences with; it looks at the lemma only."""
        return {"occurrences": self.encode}

    def encode(self, occurrences: Sequence[Occurrence]) -> np.ndarray:
        """N occurrences of L lemmas -> (N, L) float32."""
        places = {lemma: at for at, lemma in enumerate(sorted({occurrence.lemma for occurrence in occurrences}))}
        rows = np.zeros((len(occurrences), len(places)), np.float32)
        rows[np.arange(len(rows)), [places[occurrence.lemma] for occurrence in occurrences]] = 1
        return rows

    def save(self, path: Path) -> None:
        """Write the record alone: nothing was learnt."""
        write_json(path / RECORD, {"readout": "lemma"})
