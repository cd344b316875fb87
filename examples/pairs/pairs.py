"""Writes pairs.tsv, which stands for a file of your own: what a verb means, and the verb. From WordNet 3.0.

Called as `python pairs.py [ROWS]`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from corpora.sources.wordnet_files import locate

rows = {}
for line in locate().read("data.verb").decode().splitlines():
    if not line.startswith("  "):  # the licence
        fields, gloss = line.split(" | ")
        rows[gloss.split(";")[0].strip(' "')] = fields.split()[4].replace("_", " ")
wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 3_000
every = max(1, len(rows) // wanted)
chosen = list(rows.items())[::every][:wanted]
text = "meaning\tverb\n" + "".join(f"{meaning}\tto {verb}\n" for meaning, verb in chosen)
Path("pairs.tsv").write_text(text, encoding="utf-8")
print(f"pairs.tsv: {len(chosen)} rows")
