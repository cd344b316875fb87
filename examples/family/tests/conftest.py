import pytest

pytest.register_assert_rewrite("semray.testing.contract")  # to show what a failed assertion compared
