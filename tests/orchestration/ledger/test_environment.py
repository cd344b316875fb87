"""What is recorded of the machine is a fixed list: nothing of the person, nothing of the environment."""

from __future__ import annotations

import json
import os

import pytest

from orchestration.ledger.environment import LIBRARIES, environment


def test_only_what_is_on_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_s3cr3t")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "t0ken-of-the-cluster")
    found = environment()
    assert found.keys() == {"python", "platform", "cpu", "libraries", "device", "threads"}
    assert found["libraries"].keys() <= set(LIBRARIES)
    text = json.dumps(found)
    assert "s3cr3t" not in text
    assert "t0ken" not in text
    assert os.path.expanduser("~") not in text
