"""What a claim may expect of its treatment. Apart from the claim, for a command line that waits for no numpy."""

from typing import Literal

Expect = Literal["better", "worse", "equivalent", "not_worse"]
