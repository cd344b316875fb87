"""Lines of Python that open a saved encoder; FOLDER stands for its folder."""

from __future__ import annotations

import json
from pathlib import Path

TEXTS = '["a vessel for hot drinks"]'
SENTENCE_TRANSFORMER = f"""\
from sentence_transformers import SentenceTransformer

vectors = SentenceTransformer("FOLDER").encode({TEXTS})
"""
GATED = f"""\
from pathlib import Path

from trainers.encoders.gated_pooling import sentence_transformer  # sentence-transformers mixes no layers by text

vectors = sentence_transformer(Path("FOLDER")).encode({TEXTS})
"""


def opened_by(folder: Path) -> str:
    """Lines that open an encoder in the layout of sentence-transformers or transformers; "" for another folder."""
    from trainers.encoders.backbones import GATED_POOLING

    listed = folder / "modules.json"
    if not listed.is_file():
        return SENTENCE_TRANSFORMER if (folder / "config.json").is_file() else ""
    kinds = {module["type"] for module in json.loads(listed.read_text(encoding="utf-8"))}
    return GATED if GATED_POOLING in kinds else SENTENCE_TRANSFORMER
