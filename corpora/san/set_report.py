"""Reports on a set of aligned negatives: its kept ratio, its flags, and samples.

Read the kept ratio first: a weak generator copies with rare masks, and writes word salad with frequent ones. The
paper's four pairs (table 1) keep .44 of the words on average.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from corpora.san.records import BIT, FAILS, FLAGS, SanCorpus
from corpora.sources import shared_words

EXPECTED = (0.30, 0.75)  # mean kept ratio
SAMPLES = 8


@dataclass(frozen=True)
class SetReport:
    """Figures of N sentences. kept: mean share of kept words, with its nine deciles. jaccard: mean word overlap.

    masked: mean share of masked tokens, by iteration. flags: share of rows, by flag. low_quality: share of rows
    with any flag of `semray`. samples: (sentence, negative), the same for the same set. warning: "" or a problem.
    """

    sentences: int
    kept: float
    deciles: tuple[float, ...]
    jaccard: float
    masked: tuple[float, ...]
    flags: dict[str, float]
    low_quality: float
    samples: tuple[tuple[str, str], ...]
    warning: str


def report(tables: Iterable[pa.Table]) -> SetReport:
    """Read the rows of a set (generate.SCHEMA) once."""
    kept, flags, jaccard, drawn, tokens = [], [], [], [], []
    samples: list[tuple[bytes, str, str]] = []
    for table in tables:
        kept.append(table["kept"].to_numpy())
        flags.append(table["flags"].to_numpy())
        drawn.append(np.array(table["n_masked"].to_pylist(), float).sum(0))
        tokens.append(table["n_tokens"].to_numpy().sum())
        pairs = list(zip(table["text"].to_pylist(), table["san"].to_pylist(), strict=True))
        jaccard.append(np.array([shared_words.jaccard(*pair) for pair in pairs]))
        keyed = ((hashlib.sha1(text.encode(), usedforsecurity=False).digest(), text, made) for text, made in pairs)
        samples = sorted({*samples, *keyed})[:SAMPLES]
    share, bits = np.concatenate(kept), np.concatenate(flags)
    mean = float(share.mean())
    return SetReport(
        sentences=len(share),
        kept=mean,
        deciles=tuple(np.quantile(share, np.arange(1, 10) / 10).round(4).tolist()),
        jaccard=float(np.concatenate(jaccard).mean()),
        masked=tuple((np.sum(drawn, 0) / max(int(np.sum(tokens)), 1)).round(4).tolist()),
        flags=_shares(bits),
        low_quality=float((bits & FAILS["semray"] > 0).mean()),
        samples=tuple((text, made) for _, text, made in samples),
        warning=_warning(mean),
    )


def shown(figures: SetReport) -> str:
    """The report as lines for the terminal."""
    deciles = " ".join(f"{value:.2f}" for value in figures.deciles)
    flags = "  ".join(_raised(figures.flags))
    lines = [
        f"{figures.sentences:,} sentences   kept {figures.kept:.3f} of the words (Jaccard {figures.jaccard:.3f})",
        f"deciles of kept {deciles}",
        f"masked by iteration {' '.join(f'{100 * share:.0f}%' for share in figures.masked)}",
        f"low quality {100 * figures.low_quality:.1f}%   ({flags or 'no flag'})",
        *(f"  {text}\n    → {made}" for text, made in figures.samples),
    ]
    return "\n".join([*lines, f"look: {figures.warning}"] if figures.warning else lines)


def notes_of(name: str, corpus: SanCorpus) -> dict[str, str]:
    """Notes on one of a study's sets for its report, with evenly spaced samples."""
    negatives = corpus.sets[name]
    kept = float(negatives.kept.mean())
    summary = f"kept {kept:.3f} of the words; flags: {', '.join(_raised(_shares(negatives.flags))) or 'none'}"
    warning = _warning(kept)
    rows = np.unique(np.linspace(0, len(negatives) - 1, SAMPLES).astype(int))
    pairs = zip(corpus.sentences.take(rows), negatives.last.take(rows), strict=True)
    return {
        f"negatives of {name} by": negatives.generator,
        f"negatives of {name}": f"{summary}; look: {warning}" if warning else summary,
        **{f"negatives of {name}, sample {n}": f"{text} → {made}" for n, (text, made) in enumerate(pairs, 1)},
    }


def _shares(bits: np.ndarray) -> dict[str, float]:
    """The share of rows with each flag."""
    return {name: float((bits & BIT[name] > 0).mean()) for name in FLAGS}


def _raised(shares: dict[str, float]) -> list[str]:
    return [f"{name} {100 * share:.1f}%" for name, share in shares.items() if share]


def _warning(kept: float) -> str:
    """A warning for a mean kept ratio outside the expected range, else ""."""
    low, high = EXPECTED
    if low <= kept <= high:
        return ""
    far = "nearly copies: a smaller scale masks more" if kept > high else "word salad: a larger scale masks less"
    return f"{kept:.2f} of the words are kept, outside {low:.2f} to {high:.2f}; {far}"
