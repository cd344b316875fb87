"""The readouts by name, for settings, which are read without torch."""

from typing import Literal

Readout = Literal["mean", "cls", "max", "sep", "sum", "weighted", "gated"]
MIXTURES = frozenset({"weighted", "gated"})  # readouts of several layers
