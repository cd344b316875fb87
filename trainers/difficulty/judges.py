"""Judges: models or files that score the similarity of pairs, as targets for hardness; and their stored scores.

A judge's scores are never an arm's score, except for the reference arm `judge_scorer`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from corpora.benchmarks.pairs import Pairs
from corpora.difficulty.pairs import STANDIN, PairData, standin_pairs
from corpora.difficulty.rows import PairTask, pair_sha256
from corpora.store.cache import digest_of, entry, key_of
from corpora.store.errors import CorpusError
from corpora.store.places import named_path
from corpora.store.rows import number_within
from corpora.store.telling import Tell, unheard
from trainers.difficulty.fingerprint import check_cross_encoder
from trainers.encoders.backbones import read_otherwise
from trainers.encoders.frozen_encoder import SentenceEncoder, weights_digests
from trainers.encoders.passes_told import passes_told
from trainers.encoders.quiet import quiet

FORMAT = 1
BATCH = 32


class Judge(Protocol):
    """A source of similarity scores. name: as in artefacts. saw: the data sets from whose labels it learned."""

    @property
    def name(self) -> str: ...
    @property
    def saw(self) -> tuple[str, ...]: ...
    @property
    def identity(self) -> Mapping[str, Any]: ...

    def score(self, a: Sequence[str], b: Sequence[str]) -> np.ndarray:
        """Similarity of each ordered pair, (N,) in [0, 1]."""
        ...


@dataclass(frozen=True)
class CrossEncoderJudge:
    """A cross-encoder with one output, through a sigmoid. Reads (a, b); symmetric: the mean of both orders.

    tell: hears, in words, how far it is.
    """

    name: str
    folder: Path
    saw: tuple[str, ...]
    symmetric: bool = False
    device: str = "cpu"
    tell: Tell = field(default=unheard, compare=False)

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        digests = weights_digests(self.folder, "a cross-encoder's folder")
        check_cross_encoder(self.name, self.folder)
        return {"cross_encoder": digests, "symmetric": self.symmetric}

    def score(self, a: Sequence[str], b: Sequence[str]) -> np.ndarray:
        forward = self._predict(a, b)
        return (forward + self._predict(b, a)) / 2 if self.symmetric else forward

    def _predict(self, a: Sequence[str], b: Sequence[str]) -> np.ndarray:
        import torch

        pairs = list(zip(a, b, strict=True))
        with passes_told(self._model, len(pairs), self.tell, doing="judging pairs", gives="scores"):
            return self._model.predict(
                pairs, batch_size=BATCH, activation_fn=torch.nn.Sigmoid(), show_progress_bar=False
            )

    @cached_property
    def _model(self) -> Any:
        from sentence_transformers import CrossEncoder

        with quiet():
            self._check_whole()
            return CrossEncoder(
                str(self.folder),
                num_labels=1,
                device=self.device,
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True},
                config_kwargs=dict(read_otherwise(self.folder)),
            )

    def _check_whole(self) -> None:
        """Raise CorpusError for weights that the folder lacks: they would be drawn at random."""
        from transformers import AutoModelForSequenceClassification

        _, loaded = AutoModelForSequenceClassification.from_pretrained(
            self.folder,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
        )
        if missing := sorted(loaded["missing_keys"]):
            raise CorpusError(
                f"data.judge = {self.name!r}: {self.folder} lacks {missing[0]}\n"
                "  accepted: a cross-encoder's folder with all of its weights"
            )


@dataclass(frozen=True)
class ScoresFile:
    """Scores somebody computed: lines of `a, b, score` or `pair_sha256, score`, separated by tabs."""

    path: Path
    saw: tuple[str, ...]
    name: str = "scores_file"

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        if not self.path.is_file():
            raise CorpusError(f"data.scores_file: {self.path} is missing\n  accepted: a TSV of a, b, score")
        return {"scores_file": digest_of(self.path)}

    def score(self, a: Sequence[str], b: Sequence[str]) -> np.ndarray:
        """CorpusError naming how many pairs have no score, and the first of them."""
        names = [pair_sha256(*pair) for pair in zip(a, b, strict=True)]
        missing = [row for row, name in enumerate(names) if name not in self._scores]
        if missing:
            row = missing[0]
            raise CorpusError(
                f"{self.path}: {len(missing)} of {len(names)} pairs have no score, the first is"
                f" {a[row]!r} / {b[row]!r}; every pair of the study's tasks needs one"
            )
        return np.array([self._scores[name] for name in names])

    @cached_property
    def _scores(self) -> dict[str, float]:
        scores: dict[str, float] = {}
        try:
            text = self.path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise CorpusError(
                f"data.scores_file: {self.path} cannot be read: {error}\n  accepted: text in UTF-8"
            ) from None
        for number, line in enumerate(text.rstrip("\n").split("\n"), start=1):
            fields = line.rstrip("\r").split("\t")
            try:
                score = number_within(fields[-1], 1.0)
            except ValueError:
                score = -1.0
            if len(fields) not in (2, 3) or score < 0:
                raise CorpusError(
                    f"{self.path}, line {number}: {line[:80]!r}\n  accepted: a, b, score in [0, 1], by tabs"
                )
            name = fields[0] if len(fields) == 2 else pair_sha256(fields[0], fields[1])
            if (first := scores.setdefault(name, score)) != score:
                raise CorpusError(
                    f"{self.path}, line {number}: {line[:80]!r} after a score of {first:g}\n"
                    "  accepted: one score of a pair"
                )
        return scores


def judge_of(data: PairData, *, encoder: SentenceEncoder, resolve: Callable[[str], Path]) -> Judge | None:
    """The judge that a data block names, or None. encoder: the frozen one, whose tokens the stand-in matches, and
    whose `tell` hears of the judging too.

    resolve(name) gives a cross-encoder's folder. CorpusError when something is missing.
    """
    if data.judge == "none":
        return None
    if data.judge == "scores_file":
        assert data.scores_file is not None
        return ScoresFile(named_path(data.scores_file), data.judge_saw)
    if data.judge == STANDIN:
        from trainers.difficulty.judge_standin import TokenMatchStandin

        return TokenMatchStandin(encoder, standin_pairs(data))
    folder = resolve(data.judge)
    return CrossEncoderJudge(
        data.judge, folder, data.judge_saw, data.judge_symmetric, encoder.device, encoder.tell
    )


def judged(judge: Judge, task: PairTask, tell: Tell = unheard) -> dict[str, np.ndarray]:
    """The judge's scores of the task's `train` and `evaluation` pairs, (N,) each, stored per ordered pair.

    tell: hears, in words, of the judging before it starts.
    """
    return {"train": scores_of(judge, task.train, tell), "evaluation": scores_of(judge, task.evaluation, tell)}


def scores_of(judge: Judge, pairs: Pairs, tell: Tell = unheard) -> np.ndarray:
    """Scores of these pairs in their order, from the store or, once, from the judge. ValueError outside [0, 1]."""
    names = [pair_sha256(*pair) for pair in zip(pairs.a, pairs.b, strict=True)]
    key = key_of({"judge": dict(judge.identity), "pairs": key_of({"pairs": names}), "format": FORMAT})

    def build(folder: Path) -> None:
        import pyarrow as pa
        from pyarrow import feather

        tell(f"{judge.name} scores {len(pairs):,} pairs")
        scores = np.asarray(judge.score(pairs.a, pairs.b), np.float64)
        if scores.shape != (len(pairs),) or not ((scores >= 0) & (scores <= 1)).all():
            raise ValueError(f"{judge.name}: scores are to be ({len(pairs)},) in [0, 1], got {scores.shape}")
        table = pa.table({"pair_sha256": names, "a": list(pairs.a), "b": list(pairs.b), "score": scores})
        feather.write_feather(table.replace_schema_metadata({"judge": judge.name}), str(folder / "scores.arrow"))

    from pyarrow import feather

    place, _ = entry("judge", key, build, tell)
    return feather.read_table(str(place / "scores.arrow"))["score"].to_numpy()
