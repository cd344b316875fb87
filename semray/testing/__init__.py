"""The contract that every model family passes, as tests for whoever brings one; and what is small enough for a
test.

    from semray.testing import FamilyContract

    class TestMine(FamilyContract):
        family = "mine"
        study = "train: {steps: 4, batch_size: 4}\\narms: {still: {train: false}, plain: {}, fast: {learning_rate:
        1.0e-3}}\\n…"

pytest shows what an assertion compared once `pytest.register_assert_rewrite("semray.testing.contract")` has been
called, in a conftest.py.
"""

from semray.testing.contract import Broken, FamilyContract, Small, prepared
from semray.testing.outcomes import RunResults, outcome
from semray.testing.tiny import WORDS, tiny_backbone

__all__ = ["WORDS", "Broken", "FamilyContract", "RunResults", "Small", "outcome", "prepared", "tiny_backbone"]
