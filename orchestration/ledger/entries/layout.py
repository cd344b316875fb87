"""One entry of the ledger: the files that a training, or scoring on one task, leaves.

    <run id>/                  spec.json result.json env.json curve.parquet model/ seal.json
    <run id>.<scores id>/      spec.json result.json env.json scores.parquet seal.json [taken_for.parquet]

Old ledgers hold both in one, `<run id>/` with scores.parquet beside curve.parquet and no seal; those entries
stay readable, and count as unsealed.
"""

from __future__ import annotations

import pyarrow as pa

FORMAT = 2  # of the entry's files; 1 had no seal, and scores beside the training
# Beside seal and model; a passport has these
ENTRY_FILES = ("spec.json", "result.json", "env.json", "curve.parquet", "scores.parquet")
ITEM_FILE = "scores.parquet"
TAKEN_FOR = "taken_for.parquet"  # what items were confused with, where it is known; no figure rests on it
ITEMS = pa.schema(
    {
        "metric": pa.dictionary(pa.int32(), pa.string()),
        "item_id": pa.string(),
        "group_id": pa.string(),
        "value": pa.float64(),
        "gold": pa.float64(),
    }
)
CONFUSED = pa.schema({"metric": pa.string(), "item_id": pa.string(), "taken_for": pa.string()})
CURVE = pa.schema({"step": pa.int64(), "name": pa.string(), "value": pa.float64()})
