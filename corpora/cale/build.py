"""Builds SPCD: SemCor or the published pairs -> occurrences, pairs, Wu-Palmer similarities and digests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corpora.cale import spcd_published
from corpora.cale.records import OccurrencePairs, Occurrences, Tagged
from corpora.cale.spcd import rules_of, synset_id, tagged
from corpora.cale.spcd_pairs import digests_of, pairs_of
from corpora.cale.tables import Spcd
from corpora.sources import semcor
from corpora.sources.semcor_files import SemcorFiles
from corpora.sources.wordnet import Wordnet
from corpora.sources.wu_palmer import WuPalmer

if TYPE_CHECKING:
    from corpora.cale.data import CaleData


def from_semcor(data: CaleData, files: SemcorFiles, lexicon: Wordnet) -> Spcd:
    """SPCD by the rules of the data block; the same files and rules give the same bytes."""
    rows = tagged(semcor.read(files.texts), lexicon, data)
    pairs = pairs_of(rows, seed=data.seed, partner_pool=data.partner_pool)
    return _spcd(rows, pairs, lexicon, rules_of(data))


def from_published(published: Mapping[str, Iterable[spcd_published.Row]], lexicon: Wordnet) -> Spcd:
    """SPCD with its authors' pairs."""
    return _spcd(*spcd_published.spcd_of(published, lexicon), lexicon, {"pairs": "as published"})


def _spcd(
    rows: Sequence[Tagged], pairs: Mapping[str, OccurrencePairs], lexicon: Wordnet, rules: Mapping[str, Any]
) -> Spcd:
    similarity = WuPalmer(lexicon)
    synsets = [synset_id(row.concept) for row in rows]
    test = zip(pairs["test"].anchor.tolist(), pairs["test"].partner.tolist(), strict=True)
    return Spcd(
        occurrences=Occurrences.of(rows),
        pairs=pairs,
        wu_palmer=np.array([similarity(synsets[a], synsets[b]) for a, b in test], np.float64),
        digests=digests_of(rows, pairs),
        rules=rules,
    )
