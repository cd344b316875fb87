"""What any error says, in one line."""

import pytest

from corpora.store.errors import first_line, kind_and_first_line


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError("no room\n  on the disk"), "no room"),
        (ValueError("\n  late\n"), "late"),
        (TimeoutError(), "TimeoutError"),
        (RuntimeError("  \n"), "RuntimeError"),
        (
            UnicodeDecodeError("utf-8", b"caf\xe9", 3, 4, "odd"),
            "byte 0xe9 is not UTF-8; save it again with that encoding",
        ),
    ],
)
def test_first_line_is_never_empty(error: Exception, said: str) -> None:
    assert first_line(error) == said


def test_a_kind_is_said_once() -> None:
    assert kind_and_first_line(OSError("no room\nat all")) == "OSError: no room"
    assert kind_and_first_line(TimeoutError()) == "TimeoutError"
