"""The contract that every family passes, on a study of this one that takes seconds."""

from __future__ import annotations

from pathlib import Path

from semray.testing import WORDS, FamilyContract


class TestFamily(FamilyContract):
    family = "partners"
    study = """\
data: {pairs: PLACE/pairs.tsv}
train: {steps: 4, batch_size: 4, max_length: 32}
arms: {still: {train: false}, plain: {}, fast: {learning_rate: 1.0e-3}}
evaluate: [partners, partners/word_order]
"""

    def write(self, place: Path) -> None:
        words = zip(WORDS[26:48], WORDS[38:60], strict=True)
        pairs = [f"the {one} is {other}\ta {one} that is {other}\n" for one, other in words]
        (place / "pairs.tsv").write_text("".join(pairs))
