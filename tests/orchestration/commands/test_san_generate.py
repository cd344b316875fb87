"""The words of `semray san-generate` and `semray mlm-train`: what cannot be is said before anything is made."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import pytest

from orchestration.commands.cli import main
from orchestration.families import mlm_train, san_generate
from tests.corpora.conftest import write_small_wordnet
from tests.tiny import tiny_backbone


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
    write_small_wordnet(tmp_path / "wordnet")
    assert (
        main(["san-generate", "--out", str(tmp_path / "x"), "--wordnet", str(tmp_path / "wordnet"), *flags]) == 2
    )
    assert says in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(("command", "flags"), [(mlm_train, ["--steps", "3"]), (san_generate, [])])
def test_all_that_is_pending_is_counted(tmp_path, monkeypatch, command, flags):
    """Steps of a training, sentences of a set."""
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / "cache"))
    write_small_wordnet(tmp_path / "wordnet")
    (tmp_path / "lines.txt").write_text("a cat runs\na dog runs\nan old dog runs\n")
    parser = ArgumentParser()
    command.add_arguments(parser)
    words = ["--out", str(tmp_path / "out"), "--sentences", str(tmp_path / "lines.txt"), *flags]
    if command is mlm_train:
        words += ["--backbone", str(tiny_backbone(tmp_path / "tiny", layers=1))]
    options = parser.parse_args([*words, "--wordnet", str(tmp_path / "wordnet")])
    work = command.work_of(Namespace(**vars(options), gpus=0))
    assert work.pending == {0: 3}
    done = list[int]()
    work.writer()()(0, done.append)
    assert done[-1] == 3
    assert not command.work_of(Namespace(**vars(options), gpus=0)).pending


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--steps", "0"], "--steps 0\n  accepted: a whole number from 1"),
        (["--learning-rate", "0"], "--learning-rate 0.0\n  accepted: a number above 0"),
        (["--sample", "0"], "--sample 0\n  accepted: a whole number from 1"),
        (["--backbone", "/no/such/model"], "no such folder"),
        ([], "holds another folder\n  accepted: a folder that is not there yet"),
    ],
)
def test_flags_of_a_training_that_cannot_be(tmp_path, monkeypatch, capsys, flags, says):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "lines.txt").write_text("a cat\na dog\n")
    words = ["mlm-train", "--out", str(tmp_path), "--sentences", str(tmp_path / "lines.txt")]
    assert main([*words, "--backbone", str(tiny_backbone(tmp_path / "tiny")), *flags]) == 2
    assert says in capsys.readouterr().err


def test_a_kind_that_cannot_be_trained_in_bf16_is_refused_before_ray_starts(tmp_path, capsys):
    backbone = tiny_backbone(tmp_path / "tiny")
    config = backbone / "config.json"
    config.write_text(config.read_text().replace('"model_type": "bert"', '"model_type": "deberta"'))
    (tmp_path / "lines.txt").write_text("a cat\na dog\n")
    words = ["mlm-train", "--out", str(tmp_path / "out"), "--sentences", str(tmp_path / "lines.txt")]
    assert main([*words, "--backbone", str(backbone), "--precision", "bf16"]) == 2
    assert capsys.readouterr().err.endswith("that transformers cannot train in it\n  accepted: --precision fp32\n")
