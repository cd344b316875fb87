"""JSON for programs, which has no number for a figure that does not exist."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def json_text(content: Any, *, indent: int | None = 1) -> str:
    """Mappings, lists, texts and numbers as JSON; a number that is not finite, such as nan, becomes null."""
    return json.dumps(finite(content), indent=indent, allow_nan=False)


def finite(value: Any) -> Any:
    """Plain lists and dictionaries of the same content, with None for a number that is not finite."""
    if isinstance(value, Mapping):
        return {key: finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
