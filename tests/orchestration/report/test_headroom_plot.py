"""The look before training, drawn: a mark for each correlation that is one, and a file for each backbone."""

from __future__ import annotations

import json
from math import nan
from pathlib import Path
from xml.etree import ElementTree

import pytest

from evaluators.metrics.headroom import Headroom
from orchestration.commands import waiting
from orchestration.commands.cli import main
from orchestration.commands.headroom import _draw
from orchestration.report.headroom_plot import signals
from tests.orchestration.families.test_contract import _pairs
from tests.tiny import tiny_backbone

STUDY = """\
question: What is there to gain?
family: difficulty
backbones: [PLACE/tiny]
seeds: 2
data: {path: PLACE, tasks: [stsb]}
train: {steps: 8, batch_size: 32}
arms: {still: {form: baseline}, lex: {form: pair_lex}}
evaluate: [similarity]
compare:
  - {claim: gain, treatment: lex, control: still, metric: stsb/spearman, expect: better}
"""


def one(task: str, **changes: float) -> Headroom:
    return Headroom(
        task=task,
        pairs=3,
        spearman=0.5,
        pearson=0.5,
        err_mean=0.2,
        err_std=0.1,
        share_zero=0.0,
        share_one=0.0,
        alignment={"hard_lex": changes.get("lexical", 0.4), "judge": -0.2},
        sentence_alignment={},
        target_is_label={"hard_lex": 0.9},
        flags=(),
        advice="",
    )


def test_each_correlation_has_a_mark_and_one_that_is_not_defined_has_none() -> None:
    figure = signals([one("paws"), one("stsb", lexical=nan)])
    marked = [[line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"] for axes in figure.axes]
    assert marked == [[0.4, -0.2, 0.9], [-0.2, 0.9]]
    assert [[tick.get_text() for tick in axes.get_yticklabels()] for axes in figure.axes] == [
        ["hard_lex", "judge", "hard_lex"]
    ] * 2
    assert [axes.get_title("left").split()[0] for axes in figure.axes] == ["paws", "stsb"]


def test_a_file_stands_alone_and_is_named_by_its_backbone(tmp_path: Path) -> None:
    _draw({"intfloat/e5-base-v2": [one("paws")], "small": [one("paws")]}, tmp_path / "plots")
    files = sorted((tmp_path / "plots").iterdir())
    assert [file.name for file in files] == ["headroom-intfloat_e5-base-v2.svg", "headroom-small.svg"]
    for file in files:
        text = file.read_text()
        assert ElementTree.fromstring(text).tag.endswith("svg")
        assert "var(--" not in text
        assert "+0.40" in text


def test_the_command_says_and_draws_what_there_is_to_gain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(waiting, "SILENT_SECONDS", 0.0)
    tiny_backbone(tmp_path / "tiny")
    _pairs(tmp_path)
    study = tmp_path / "pairs.yaml"
    study.write_text(STUDY.replace("PLACE", str(tmp_path)))
    capsys.readouterr()  # what libraries said while the encoder was made
    assert main(["headroom", str(study), "--plot", str(tmp_path / "plots"), "--json"]) == 0
    said = capsys.readouterr()
    ((told,),) = json.loads(said.out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON")).values()
    assert told["sentence_alignment"]["length"] is None  # every sentence is one word: nothing can correlate
    assert "stsb: embedding " in said.err  # of a large encoder and many sentences that takes hours
    (drawn,) = (tmp_path / "plots").iterdir()
    assert told["task"] == "stsb"
    assert f"{told['alignment']['hard_lex']:+.2f}" in drawn.read_text()
