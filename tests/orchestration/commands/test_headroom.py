"""`semray headroom` is for studies of families that can tell of it, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestration.commands.cli import main
from orchestration.families.registry import FAMILIES, WITH_HEADROOM, family

STUDIES = Path(__file__).parents[3] / "studies"


def test_help_names_the_families(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(WITH_HEADROOM) == {name for name in FAMILIES if family(name).headroom}
    with pytest.raises(SystemExit):
        main(["headroom", "--help"])
    assert "show what a study of the family difficulty could gain" in capsys.readouterr().out


@pytest.mark.parametrize("study", ["quickstart", "recipes_quickstart", "frozen_encoders"])
def test_a_study_of_another_family_is_refused(study: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = STUDIES / f"{study}.yaml"
    assert main(["headroom", str(file)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    (told,) = [line for line in said.err.splitlines() if "family = " in line]
    assert told.startswith(f"{file}: family = ")
    assert said.err.endswith("accepted: difficulty, to be told of headroom\n")
    assert said.err.count("accepted:") == 1
