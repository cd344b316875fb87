"""What an arm that is a command may say, and the words that come of it."""

from __future__ import annotations

import pytest

from trainers.command.settings import Settings, command_of, defining, literal_words

GIVEN = {"seed": "3", "out": "/o", "backbone": ""}


def test_every_placeholder_is_filled_in() -> None:
    run = ("python", "train.py", "--seed={seed}", "--lr", "{lr}", "--tag", "{{x}}-{flag}", 7)
    settings = Settings(run=run, values={"lr": 1e-4, "flag": True})
    assert command_of(settings, GIVEN) == [
        "python",
        "train.py",
        "--seed=3",
        "--lr",
        "0.0001",
        "--tag",
        "{x}-true",
        "7",
    ]
    assert literal_words(settings) == ["python", "train.py", "--lr", "0.0001", "--tag", "{x}-true", "7"]


def test_a_value_is_the_same_recipe_wherever_it_is_written() -> None:
    inline = Settings(run=("a", "--lr", 0.1, "{seed}"))
    beside = Settings(run=("a", "--lr", "{lr}", "{seed}"), values={"lr": 0.1}, timeout=5.0)
    assert defining(inline) == defining(beside)
    assert defining(inline) != defining(Settings(run=("a", "--lr", 0.1, "{{seed}}")))  # plain braces are no seed


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "run: a command"),
        ({"run": ("a", "{lr}")}, "lr: .* for {lr} in"),
        ({"run": ("a",), "values": {"lr": 1}}, "lr: .*holds no {lr}"),
        ({"run": ("a", "{seed}"), "values": {"seed": 1}}, "seed: absent"),
        ({"run": ("a", "{seed}"), "train": False}, "no {seed} with train: false"),
        ({"run": ("a", "{")}, "run: a name in braces"),
        ({"run": ("a", "{x.y}")}, "run: a name in braces"),
        ({"run": ("a", "{x!r}")}, "run: a name in braces"),
        ({"run": ("", "x")}, "run: a program"),
        ({"run": ("a",), "timeout": 0.0}, r"timeout = 0\.0\n  accepted: a number above 0"),
    ],
)
def test_what_is_refused(fields: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Settings(**fields)


def test_an_arm_without_a_command_takes_no_notice_of_shared_values() -> None:
    assert defining(Settings(train=False, values={"lr": 1.0})) == defining(Settings(train=False))
