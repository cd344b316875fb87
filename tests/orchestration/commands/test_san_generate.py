"""The words of `semray san-generate`: what cannot be is said before anything is made."""

from __future__ import annotations

import pytest

from orchestration.commands.cli import main
from tests.corpora.conftest import SMALL_EXCEPTIONS, small_entries, write_wordnet


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--scale", "0"], "--scale 0.0\n  accepted: a number above 0"),
        (["--iterations", "99"], "--iterations 99\n  accepted: a whole number from 1 up to 32"),
        (["--sample", "0"], "--sample 0\n  accepted: a whole number from 1"),
        (["--workers", "0"], "--workers 0\n  accepted: a whole number of at least 1"),
        (["--gpus", "-1"], "--gpus -1.0\n  accepted: a number from 0"),
        (["--sentences", "wiki2m"], "sentences = 'wiki2m': no such file"),
        (["--generator", "/no/such/model"], "no such folder"),
    ],
)
def test_flags_that_cannot_be(tmp_path, monkeypatch, capsys, flags, says):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "wordnet").mkdir()
    write_wordnet(tmp_path / "wordnet", small_entries(), SMALL_EXCEPTIONS)
    assert (
        main(["san-generate", "--out", str(tmp_path / "x"), "--wordnet", str(tmp_path / "wordnet"), *flags]) == 2
    )
    assert says in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
