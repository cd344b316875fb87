"""The contract of a model family as tests, for packages that add one; and a tiny backbone to train in tests.

    from semray.testing import FamilyContract

    class TestMine(FamilyContract):
        family = "mine"
        study = "train: {steps: 4, batch_size: 4}\\narms: {still: {train: false}, plain: {}, fast: {learning_rate:
        1.0e-3}}\\n…"

Call `pytest.register_assert_rewrite("semray.testing.contract")` in a conftest.py, so that pytest shows the values
that an assertion compared.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from semray.testing.outcomes import RunResults, outcome
from semray.testing.tiny import WORDS, tiny_backbone

if TYPE_CHECKING:
    from semray.testing.contract import Broken, FamilyContract, Small, prepared
else:

    def __getattr__(name: str) -> Any:
        """The contract is imported when it is asked for: it needs pytest, which the rest does not."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module("semray.testing.contract"), name)


__all__ = ["WORDS", "Broken", "FamilyContract", "RunResults", "Small", "outcome", "prepared", "tiny_backbone"]


def __dir__() -> list[str]:
    return __all__
