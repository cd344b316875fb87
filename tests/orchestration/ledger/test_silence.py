"""A ledger in an S3 that accepts connections and does not answer, or late, or asks for patience."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import fsspec
import pytest

from orchestration.commands.cli import main
from orchestration.ledger.storage import open_storage

s3fs = pytest.importorskip("s3fs")

SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
Answer = Callable[[int], tuple[int, bytes]]  # of the request with this number, from 1 on


@contextmanager
def store(answer: Answer, patch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A server on loopback, the S3 of this process as long as the block lasts; the requests that it was sent."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            status, body = answer(len(asked))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: the terminal is looked at."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # whoever asked has hung up
    threading.Thread(target=server.serve_forever, daemon=True).start()
    patch.setenv("AWS_ACCESS_KEY_ID", "none")
    patch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    patch.setattr("random.random", lambda: 0.0)  # what the library waits for between two tries
    s3fs.S3FileSystem.clear_instance_cache()  # one made before knows another endpoint
    yield asked
    server.shutdown()
    server.server_close()


@pytest.fixture
def silence() -> Iterator[Answer]:
    over = threading.Event()

    def never(_: int) -> tuple[int, bytes]:
        over.wait()
        return 500, b""

    yield never
    over.set()


def patient(patch: pytest.MonkeyPatch, **settings: object) -> None:
    patch.setitem(fsspec.config.conf, "s3", {"config_kwargs": settings})


@pytest.mark.parametrize("command", [("ls",), ("audit",), ("export", "abc", "there")])
def test_silence_ends_in_words(
    silence: Answer,
    command: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Three tries, where the libraries together would make 25."""
    patient(monkeypatch, read_timeout=0.2)
    with store(silence, monkeypatch) as asked:
        assert main([*command, "--ledger", "s3://bucket/of-nobody"]) == 2
    words = " ".join(capsys.readouterr().err.split())
    assert re.match(r"ledger s3://bucket/of-nobody: Read timeout on endpoint URL: .* accepted: a folder", words)
    assert len(asked) == 3


def test_as_many_tries_as_a_person_has_set(silence: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    patient(monkeypatch, read_timeout=0.1, retries={"total_max_attempts": 5})
    with store(silence, monkeypatch) as asked:
        assert main(["ls", "--ledger", "s3://bucket/of-nobody"]) == 2
    assert len(asked) == 5


def test_two_minutes_at_most_and_half_a_minute_for_an_answer(
    silence: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store(silence, monkeypatch):
        client = open_storage("s3://bucket/of-nobody").filesystem.s3  # type: ignore[attr-defined]
    assert 30 < client.meta.config.read_timeout <= 120 / 3


def test_a_late_answer_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(_: int) -> tuple[int, bytes]:
        threading.Event().wait(0.6)
        return 200, b"found"

    patient(monkeypatch, read_timeout=2)
    with store(late, monkeypatch) as asked:
        assert open_storage("s3://bucket/of-nobody").read("a") == b"found"
    assert len(asked) == 1


def test_two_silences_are_forgiven(silence: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    patient(monkeypatch, read_timeout=0.2)
    with store(lambda number: silence(number) if number < 3 else (200, b"found"), monkeypatch) as asked:
        assert open_storage("s3://bucket/of-nobody").read("a") == b"found"
    assert len(asked) == 3


def test_a_store_that_asks_for_patience_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """More often than botocore alone does."""
    with store(lambda number: (503, SLOW_DOWN) if number < 8 else (200, b"found"), monkeypatch) as asked:
        assert open_storage("s3://bucket/of-nobody").read("a") == b"found"
    assert len(asked) == 8
