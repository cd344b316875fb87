"""Values of options that are not accepted: one message that says what is, exit code 2, and no usage of twenty lines."""

from __future__ import annotations

import argparse

import pytest

from orchestration.commands.cli import main, parser


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("judge t.csv --margin x", "--margin x\n  accepted: a number\n"),
        ("judge t.csv --margin nan", "--margin nan\n  accepted: a number\n"),
        ("judge t.csv --min-effect 0,1", "--min-effect 0,1\n  accepted: a number\n"),
        ("export B1 folder --seed one", "--seed one\n  accepted: a whole number\n"),
        ("reproducible first B1 --seed 1.5", "--seed 1.5\n  accepted: a whole number\n"),
        ("noise first B1 --levels 4", "--levels 4\n  accepted: 3, 5, 7, 11\n"),
        ("san-generate --out folder --workers x", "--workers x\n  accepted: a whole number\n"),
        ("san-generate --out folder --scale x", "--scale x\n  accepted: a number\n"),
        ("san-generate --out folder --gpus inf", "--gpus inf\n  accepted: a number\n"),
        ("run first --lanes 0", "--lanes 0\n  accepted: a whole number of at least 1\n"),
        (f"run first --lanes {'9' * 5000}", "9\n  accepted: a whole number of at least 1\n"),
        (f"reproducible first B1 --seed {'9' * 400}", "9\n  accepted: a whole number\n"),
        ("ui first --port 0", "--port 0\n  accepted: a port, from 1 to 65535\n"),
        ("ui first --port 65536", "--port 65536\n  accepted: a port, from 1 to 65535\n"),
        ("plan first --price 0", "--price 0\n  accepted: a number above 0, the price of an hour\n"),
        ("check-claim 76,25 77.05", "CONTROL 76,25\n  accepted: a number such as 76.25 or .7625\n"),
        ("check-claim 76.25 nan", "TREATMENT nan\n  accepted: a number such as 76.25 or .7625\n"),
        ("judge t.csv --expect bettr", "worse, equivalent, not_worse (did you mean better?)\n"),
        ("serach first", "COMMAND serach\n  accepted: search and 25 more (did you mean search?)\n"),
        (
            "status first --ledger s3:/bucket/ledger",
            "s3:/bucket/ledger\n  accepted: s3://bucket/ledger, or a folder\n",
        ),
        ("status first --ledger memory://x", "--ledger memory://x\n  accepted: a folder, or a URL such as s3://"),
        ("audit --ledger s3://", "--ledger s3://\n  accepted: a folder, or a URL such as s3://bucket/ledger\n"),
    ],
)
def test_a_value_that_is_not_accepted(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    told = capsys.readouterr().err
    assert said in told
    assert (ended.value.code, told.count("accepted: "), "usage" in told) == (2, 1, False)


@pytest.mark.parametrize("words", [["doctor", "--ledger=~/here"], ["doctor"]])
def test_a_ledger_at_home_is_found_where_no_shell_expands_its_place(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hint to another ledger, and `doctor` with its free space and MLflow, looked in a folder called `~`."""
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("SEMRAY_LEDGER", "~/here")
    assert parser().parse_args(words).ledger == "/home/ada/here"


def test_an_option_of_no_word_is_refused_with_the_usage_of_its_word(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["confirm", "first", "--seed", "3"])
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert told.startswith("usage: semray confirm [-h] ")
    assert "semray confirm: error: unrecognized arguments: --seed 3" in told


@pytest.mark.parametrize(
    "words",
    [
        "verify p.zip --declared=",
        "verify p.zip --signers=",
        "verify p.zip --signers= --signed-by=",
        "gate first H1 --budget=",
        "judge t.csv --claims=",
        "judge t.csv --arm= --seed=",
        "judge t.csv --metric=",
        "judge t.csv --read=",
        "check-claim 76.25 77.05 --study=",
        "check-claim 76.25 77.05 --metric=",
        "export B1 folder --study=",
        "sync first --mlflow=",
        "run first --mlflow=",
        "noise first B1 --backbone=",
        "doctor --address=",
        "init study new --control=",
        "san-generate --out=",
    ],
)
def test_an_empty_value_skips_no_check_that_was_asked_for(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As a shell leaves it of a variable that is not set."""
    option = next(word for word in words.split() if word.endswith("=")).removesuffix("=")
    for empty in ("", " "):
        with pytest.raises(SystemExit) as ended:
            main([f"{word}{empty}" if word.endswith("=") else word for word in words.split()])
        told = capsys.readouterr().err
        assert told.startswith(f"{option} {empty!r}\n  accepted: ")
        assert ", which is not empty" in told
        assert (ended.value.code, told.count("accepted: ")) == (2, 1)


@pytest.mark.parametrize("words", [["judge", ""], ["verify", ""], ["plan", ""], ["report", "first", ""]])
def test_an_empty_name_is_none(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """`judge ''` was taken for the folder that it was called in."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert ", which is not empty\n" in capsys.readouterr().err


def test_every_option_that_takes_a_text_refuses_an_empty_one() -> None:
    """Also those that a command gets later: the parser itself sees to it."""
    [commands] = [action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)]
    for command in commands.choices.values():
        for action in command._actions:
            if action.nargs != 0 and not isinstance(action, argparse._SubParsersAction):
                with pytest.raises((argparse.ArgumentError, SystemExit)):
                    command._check_value(action, command._get_value(action, ""))
