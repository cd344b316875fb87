"""Shards on a real Ray Data: each written once in the end, whatever dies on the way; the same bytes by any number."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from corpora.san import shards as san_shards
from corpora.san.data import SanData
from corpora.san.recipe import SetRecipe
from corpora.san.shards import every_sentence, path_of, pending, read_manifest
from corpora.store.errors import CorpusError
from corpora.store.telling import HowFar
from orchestration.commands.cli import main
from orchestration.families.san_set import Order, begin, writer_of
from orchestration.lanes import shard_pool
from orchestration.lanes.cluster import RunShare
from orchestration.lanes.shard_pool import write_shards
from orchestration.study.errors import StudyError
from tests.tiny import tiny_backbone

pytestmark = [pytest.mark.timeout(280), pytest.mark.usefixtures("ray_of_two")]
SENTENCES = [
    f"the {kind} boat number {number} was sold ." for number in range(20) for kind in ("old", "new", "big")
]
ONE = RunShare(cpus=1)


@pytest.fixture(scope="module")
def order(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Order]:
    """Sixty sentences and a WordNet of one word; the cache is the module's own."""
    from tests.corpora.conftest import write_small_wordnet

    place = tmp_path_factory.mktemp("san")
    write_small_wordnet(place / "wordnet")
    (place / "lines.txt").write_text("\n".join(SENTENCES))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEMRAY_CACHE", str(place / "cache"))
        patch.delenv("SEMRAY_DATA", raising=False)
        data = SanData(sentences=str(place / "lines.txt"), wordnet=str(place / "wordnet"))
        yield Order(data=data, recipe=SetRecipe(scale=10.0), generator="cloze", folder=place / "set")


def in_tens(order: Order, cache: str, killed: str | None = None):
    """A writer of shards of ten sentences, in whatever process; the first that comes to shard 2 is killed."""
    os.environ["SEMRAY_CACHE"] = cache
    san_shards.SHARD = 10
    write = writer_of(order)()

    def one(shard: int, how_far: HowFar) -> None:
        if killed and shard == 2 and not Path(killed).exists():
            Path(killed).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        write(shard, how_far)

    return one


def written(
    order: Order, monkeypatch: pytest.MonkeyPatch, *, workers: int, killed: Path | None = None
) -> list[int]:
    monkeypatch.setattr(san_shards, "SHARD", 10)
    left, told = sorted(begin(order)), []
    writer = partial(in_tens, order, os.environ["SEMRAY_CACHE"], str(killed) if killed else None)
    write_shards(left, writer, share=ONE, workers=workers, on_written=told.append)
    return told


def bytes_of(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.glob("part-*.parquet"))]


def test_kills_and_numbers_of_workers_change_no_byte(order, tmp_path, monkeypatch):
    one, other = replace(order, folder=tmp_path / "one"), replace(order, folder=tmp_path / "two")
    assert sorted(written(one, monkeypatch, workers=1)) == list(range(6))
    told = written(other, monkeypatch, workers=2, killed=tmp_path / "killed")
    assert (tmp_path / "killed").exists()
    assert sorted(told) == list(range(6))
    assert bytes_of(other.folder) == bytes_of(one.folder)
    path_of(other.folder, 4).unlink()  # what is missing alone is written again
    assert pending(other.folder) == [4]
    assert written(other, monkeypatch, workers=2) == [4]
    assert bytes_of(other.folder) == bytes_of(one.folder)
    assert list(every_sentence(one.folder)) == SENTENCES


def test_a_reason_for_people_comes_through():
    def broken():
        raise CorpusError("corpora: lines.txt is gone")

    with pytest.raises(StudyError, match=r"^corpora: lines\.txt is gone"):
        write_shards([0], broken, share=ONE)


def test_sigterm_interrupts_like_ctrl_c():
    driver, before = os.getpid(), signal.getsignal(signal.SIGTERM)

    def open_writer():
        return lambda shard, how_far: os.kill(driver, signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt):
        write_shards([0], open_writer, share=ONE)
    assert signal.getsignal(signal.SIGTERM) is before


def test_how_far_all_shards_are_is_heard_while_they_are_written(tmp_path, monkeypatch):
    """Three units of one and two of the other, each of which is whole once that was heard."""
    monkeypatch.setattr(shard_pool, "LOOK_SECONDS", 0.02)
    gates, told = [tmp_path / "0", tmp_path / "1"], list[int]()

    def open_writer():
        def write(shard: int, how_far: HowFar) -> None:
            how_far(1)
            how_far(3 - shard)
            with gates[shard].open() as gate:
                fcntl.flock(gate, fcntl.LOCK_SH)  # waits until it was heard

        return write

    def hear(done: int) -> None:
        told.append(done)
        for gate, heard in ((first, 3), (second, 5)):
            if done >= heard:
                fcntl.flock(gate, fcntl.LOCK_UN)

    with gates[0].open("w") as first, gates[1].open("w") as second:
        fcntl.flock(first, fcntl.LOCK_EX)
        fcntl.flock(second, fcntl.LOCK_EX)
        write_shards([0, 1], open_writer, share=ONE, workers=2, on_moved=hear)
    assert told == sorted(set(told))
    assert told[-1] == 5


def test_two_shards_are_written_by_two_workers_at_the_same_time(tmp_path):
    """Each is whole once the other was begun, by another process."""
    pipes = [tmp_path / "0", tmp_path / "1"]
    for pipe in pipes:
        os.mkfifo(pipe)

    def open_writer():
        def write(shard: int, how_far: HowFar) -> None:
            mine, other = (os.open(pipes[one], os.O_RDWR) for one in (shard, 1 - shard))  # waits for nobody
            os.write(other, b"begun")
            if not select.select([mine], [], [], 60)[0]:
                raise CorpusError(f"nobody wrote the other shard beside {shard}")

        return write

    told = list[int]()
    write_shards([0, 1], open_writer, share=ONE, workers=2, on_written=told.append)
    assert sorted(told) == [0, 1]


def test_more_than_there_is():
    with pytest.raises(
        StudyError, match=r"needs 1 CPU and 2 GPUs, and Ray has no such room\n  accepted: fewer `--gpus`"
    ):
        write_shards([0], lambda: lambda shard, how_far: None, share=RunShare(cpus=1, gpus=2))


def test_the_command(order, tmp_path, monkeypatch, capsys):
    """From the command line to a set that says what it is like; the same again does nothing but say so.

    Ray was started elsewhere than the command is given, and its folder is seen from there.
    """
    monkeypatch.chdir(tmp_path)
    data = order.data
    words = [
        "san-generate",
        "--out",
        "set",
        "--sentences",
        data.sentences,
        "--wordnet",
        data.wordnet,
    ]
    # actors of the test's Ray have the environment that it was started with
    monkeypatch.setattr(
        "orchestration.families.san_set.writer_of",
        lambda order: partial(_in_cache, order, os.environ["SEMRAY_CACHE"]),
    )
    assert main([*words, "--scale", "10", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["sentences"] == 60
    assert "stand-in" in said["generator"]
    assert json.loads((tmp_path / "set" / "report.json").read_text()) == said
    before = bytes_of(tmp_path / "set")
    assert main([*words, "--scale", "10"]) == 0
    assert "60 sentences   kept 0." in capsys.readouterr().out
    assert bytes_of(tmp_path / "set") == before
    assert main([*words, "--scale", "30"]) == 2
    assert "holds another set of negatives: recipe" in capsys.readouterr().err
    assert read_manifest(tmp_path / "set")["recipe"]["scale"] == 10.0


def test_a_generator_is_trained_and_the_same_again_does_nothing(tmp_path, monkeypatch, capsys):
    (tmp_path / "lines.txt").write_text("\n".join(SENTENCES))
    backbone, out = tiny_backbone(tmp_path / "tiny", layers=1), tmp_path / "generator"
    words = [
        "mlm-train",
        "--backbone",
        str(backbone),
        "--out",
        str(out),
        "--sentences",
        str(tmp_path / "lines.txt"),
    ]
    capsys.readouterr()  # what libraries say when they are first imported, here by the backbone's making
    assert main([*words, "--steps", "2", "--batch-size", "8", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["settings"]["steps"] == 2
    assert main([*words, "--steps", "2", "--batch-size", "8"]) == 0
    assert f"semray san-generate --generator {out}" in capsys.readouterr().out
    assert main([*words, "--steps", "3", "--batch-size", "8"]) == 2
    assert "holds another model" in capsys.readouterr().err


def _in_cache(order: Order, cache: str):
    os.environ["SEMRAY_CACHE"] = cache
    return writer_of(order)()
