"""Values of options that are not accepted: one message that says what is, exit code 2, and no usage of twenty lines."""

from __future__ import annotations

import pytest

from orchestration.commands.cli import main


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


def test_an_option_of_no_word_is_refused_with_the_usage_of_its_word(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["confirm", "first", "--seed", "3"])
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert told.startswith("usage: semray confirm [-h] ")
    assert "semray confirm: error: unrecognized arguments: --seed 3" in told
