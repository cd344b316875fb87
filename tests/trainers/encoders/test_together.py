"""Reading for evaluation: a group gives what one worker gives, and what was read once is not read again."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from corpora.sources.occurrences import Occurrence
from tests.modes import kept_from_others
from tests.tiny import WORDS
from tests.workers import together
from trainers.encoders import vectors
from trainers.encoders.encoder import Encoder
from trainers.encoders.together import reading_together
from trainers.encoders.tokens import Tokens
from trainers.engine.world import Progress, World
from trainers.errors import TrainerError

TEXTS = [" ".join(WORDS[at : at + 1 + at % 7]) for at in range(41)]


@pytest.fixture(autouse=True)
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "vectors"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts each pass through an encoder holds."""
    seen: list[int] = []
    whole = Encoder.pooled

    def counted(self: Encoder, tokens: Tokens) -> torch.Tensor:
        seen.append(len(tokens))
        return whole(self, tokens)

    monkeypatch.setattr(Encoder, "pooled", counted)
    return seen


def test_what_was_read_once_is_not_read_again(backbone: Path, read: list[int], tmp_path: Path) -> None:
    """By the same weights in another folder too; of new texts the new ones alone are read."""
    plain = Encoder.load(backbone).encode(TEXTS)
    read.clear()
    with reading_together(encoder := Encoder.load(backbone), World()):
        first = encoder.encode(TEXTS[:30])
    assert sum(read) == 30
    assert np.allclose(first, plain[:30], atol=1e-6)
    read.clear()
    elsewhere = shutil.copytree(backbone, tmp_path / "elsewhere")
    with reading_together(encoder := Encoder.load(elsewhere), World()):
        again, more = encoder.encode(TEXTS[:30][::-1]), encoder.encode(TEXTS)
    assert np.array_equal(again, first[::-1])  # to the last bit: they are the stored ones
    assert np.array_equal(more[:30], first)
    assert np.allclose(more, plain, atol=1e-6)
    assert sum(read) == 11
    with reading_together(encoder, World()):
        assert np.array_equal(encoder.encode(TEXTS), more)  # of two files, each of which holds a part
    assert sum(read) == 11
    read.clear()
    encoder.encode(TEXTS[:2])  # outside nothing is looked up
    assert sum(read) == 2


@pytest.mark.parametrize("gigabytes", ["1", "0"])
def test_texts_of_equal_tokens_have_one_vector_at_once(
    backbone: Path, read: list[int], monkeypatch: pytest.MonkeyPatch, gigabytes: str
) -> None:
    """Else a second scoring, by what was kept of them, would have ties where the first had none."""
    monkeypatch.setenv(vectors.VARIABLE, gigabytes)
    texts = [*TEXTS, *(text.upper() for text in TEXTS[::-1])]
    with reading_together(encoder := Encoder.load(backbone), World()):
        first = encoder.encode(texts)
        assert sum(read) == len(TEXTS)
        again = encoder.encode(texts)
    assert np.array_equal(first, [*first[: len(TEXTS)], *first[: len(TEXTS)][::-1]])
    assert np.array_equal(again, first)
    assert np.allclose(first, Encoder.load(backbone).encode(texts), atol=1e-6)


@pytest.mark.parametrize("change", ["weight", "configuration", "readout", "precision"])
def test_another_encoder_reads_for_itself(backbone: Path, read: list[int], change: str) -> None:
    with reading_together(encoder := Encoder.load(backbone), World()):
        encoder.encode(TEXTS)
    other = Encoder.load(backbone, readout="cls" if change == "readout" else "mean")
    if change == "weight":
        with torch.no_grad():
            next(other.backbone.parameters())[0, 0] += 1e-7
    if change == "configuration":
        other.backbone.config.layer_norm_eps *= 10
    if change == "precision":
        other.precision = "bf16"
    read.clear()
    with reading_together(other, World()):
        other.encode(TEXTS)
    assert sum(read) == len(TEXTS)


def test_a_text_that_is_read_in_part_is_another(backbone: Path, read: list[int]) -> None:
    """The same tokens with a mask of those that are averaged: words in their sentences. Its place is no part of it."""
    encoder = Encoder.load(backbone)
    tokens = encoder.tokenise(TEXTS)
    inner = np.concatenate([np.arange(length) == 1 for length in tokens.lengths])
    backwards = np.arange(len(tokens))[::-1]
    with reading_together(encoder, World()):
        whole, part = encoder.embed(tokens), encoder.embed(replace(tokens, read=inner))
        read.clear()
        assert np.array_equal(encoder.embed(replace(tokens, read=inner).take(backwards)), part[backwards])
        assert not read
    assert np.allclose(part, encoder.embed(replace(tokens, read=inner)), atol=1e-6)
    assert not np.allclose(part, whole, atol=1e-2)


def test_texts_that_were_cut_are_counted_whether_or_not_they_are_known(backbone: Path) -> None:
    for _ in range(2):
        with reading_together(encoder := Encoder.load(backbone, max_length=4), World()):
            encoder.encode(TEXTS)
        assert encoder.truncated == sum(len(text.split()) > 2 for text in TEXTS)


def test_a_damaged_file_is_removed_and_read_again(
    backbone: Path, shelf: Path, read: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    with reading_together(encoder := Encoder.load(backbone), World()):
        first = encoder.encode(TEXTS)
    (file,) = shelf.glob("*/*.safetensors")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    (other := file.with_stem("0" * 64)).write_bytes(content)
    read.clear()
    with reading_together(encoder, World()):
        assert np.allclose(encoder.encode(TEXTS), first, atol=1e-6)
    assert sum(read) == len(TEXTS)
    assert list(shelf.glob("*/*")) == [file]
    assert {f"vectors: {one} is not what was written; removed" for one in (file, other)} == set(caplog.messages)


def test_a_colleague_may_read_what_is_kept_and_what_nobody_can_read_is_passed_over(
    backbone: Path, shelf: Path, read: list[int]
) -> None:
    with reading_together(encoder := Encoder.load(backbone), World()):
        first = encoder.encode(TEXTS)
    assert not kept_from_others(shelf)
    (file,) = shelf.glob("*/*.safetensors")
    file.unlink()
    file.mkdir()
    read.clear()
    with reading_together(encoder, World()):
        assert np.allclose(encoder.encode(TEXTS), first, atol=1e-6)
    assert sum(read) == len(TEXTS)


def test_the_shelf_holds_no_more_than_it_may(backbone: Path, shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was used longest ago goes first. What alone exceeds it drives nothing out; with no room nothing is kept."""
    monkeypatch.setenv(vectors.VARIABLE, str(14_000 / 2**30))  # two files of 41 rows of 32 numbers, not three
    files = []
    for readout in ("mean", "cls", "max"):
        with reading_together(encoder := Encoder.load(backbone, readout=readout), World()):
            encoder.encode(TEXTS)
        files.append(set(shelf.glob("*/*.safetensors")))
        for at, file in enumerate(sorted(files[-1], key=lambda file: file.stat().st_mtime_ns)):
            os.utime(file, (at, at))
    assert [len(held) for held in files] == [1, 2, 2]
    assert not files[0] & files[2]
    with reading_together(encoder := Encoder.load(backbone, readout="sep"), World()):
        encoder.encode([f"{first} {second}" for first in TEXTS[:11] for second in TEXTS[:11]])
    assert set(shelf.glob("*/*.safetensors")) == files[2]
    monkeypatch.setenv(vectors.VARIABLE, "0")
    with reading_together(encoder := Encoder.load(backbone, readout="sum"), World()):
        encoder.encode(TEXTS)
    assert set(shelf.glob("*/*.safetensors")) == files[2]


def test_a_file_counts_as_used_when_vectors_are_taken_from_it(
    backbone: Path, shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not when only others of its encoder are."""
    halves, files = (TEXTS[:21], TEXTS[20:]), list[Path]()
    for half in halves:
        with reading_together(encoder := Encoder.load(backbone), World()):
            encoder.encode(half)
        files += set(shelf.glob("*/*.safetensors")) - set(files)
    for half, used, other in zip(halves, files, files[::-1], strict=True):
        os.utime(used, (1, 1))
        os.utime(other, (2, 2))
        with reading_together(encoder, World()):
            encoder.encode(half[2:])
        assert used.stat().st_mtime > other.stat().st_mtime == 2
    monkeypatch.setenv(vectors.VARIABLE, str(10_000 / 2**30))  # all three take 12,400
    with reading_together(encoder := Encoder.load(backbone, readout="cls"), World()):
        encoder.encode(TEXTS)
    assert [file.exists() for file in files] == [False, True]


@pytest.mark.parametrize(
    ("written", "room"), [(None, 2 * 2**30), ("0.5", 2**29), ("0", 0), ("much", None), ("-1", None), ("inf", None)]
)
def test_the_room_is_a_number_of_gigabytes(
    monkeypatch: pytest.MonkeyPatch, written: str | None, room: int | None
) -> None:
    monkeypatch.delenv(vectors.VARIABLE, raising=False)
    if written is not None:
        monkeypatch.setenv(vectors.VARIABLE, written)
    if room is not None:
        assert vectors.limit() == room
        return
    with pytest.raises(TrainerError, match=rf"SEMRAY_VECTORS_GB = '{written}'\n  accepted: a number of gigabytes"):
        vectors.limit()


def test_drafts_of_killed_processes_make_room_too(
    backbone: Path, shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(vectors.VARIABLE, str(14_000 / 2**30))
    draft = shelf / "another" / "killed.draft"
    draft.parent.mkdir(parents=True)
    draft.write_bytes(bytes(10_000))
    os.utime(draft, (1, 1))
    with reading_together(encoder := Encoder.load(backbone), World()):
        encoder.encode(TEXTS)
    assert [file.suffix for file in shelf.glob("*/*")] == [".safetensors"]


def test_a_shelf_that_takes_no_more_costs_no_run(
    backbone: Path, shelf: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What was read is had, and nothing half written is left; it is told once."""
    with reading_together(encoder := Encoder.load(backbone), World()), _no_file_above(4_000):
        rows, more = encoder.encode(TEXTS[:30]), encoder.encode(TEXTS)
    assert (rows.shape[0], more.shape[0]) == (30, 41)
    assert not list(shelf.glob("*/*"))
    assert caplog.messages == [f"vectors: {shelf} cannot be written: File too large; nothing is kept"]


@contextmanager
def _no_file_above(size: int) -> Iterator[None]:
    """A limit on the bytes of a file stands in for a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_an_encoder_of_another_kind_is_left_as_it_is() -> None:
    class Plain:
        def encode(self, texts: list[str]) -> np.ndarray:
            return np.ones((len(texts), 2), np.float32)

    with reading_together(Plain(), World(rank=1, size=2)):
        pass


def _own(folder: Path) -> tuple[Any, Callable[[Any], object]]:
    return Encoder.load(folder), lambda encoder: encoder.encode(TEXTS)


def _layers(folder: Path) -> tuple[Any, Callable[[Any], object]]:
    return Encoder.load(folder), lambda encoder: encoder.read_layers(TEXTS)


def _by_library(folder: Path) -> tuple[Any, Callable[[Any], object]]:
    from trainers.sentence_transformers.encoder import opened
    from trainers.sentence_transformers.settings import Settings

    return opened(Settings(train=False), folder, World()), lambda encoder: encoder.encode(TEXTS)


def _of_a_command(folder: Path) -> tuple[Any, Callable[[Any], object]]:
    from trainers.command.product import opened

    return opened(folder, World()), lambda encoder: encoder.encode(TEXTS)


@pytest.mark.parametrize("kind", [_own, _layers, _by_library, _of_a_command])
def test_whoever_reads_for_long_says_how_far_it_is(
    backbone: Path, kind: Callable[[Path], tuple[Any, Callable[[Any], object]]]
) -> None:
    """Or a run that reads on would be ended as one that stands still. Nothing else changes, and only there it says."""
    heard: list[Progress] = []
    encoder, read = kind(backbone)
    before = read(encoder)
    with reading_together(encoder, World(report=heard.append)):
        told = read(encoder)
    places = [progress.doing.partition(", ")[2] for progress in heard]
    assert places == sorted(set(places), key=places.index)  # no two words in a row are the same
    assert places[-1] == f"{len(TEXTS)} of {len(TEXTS)} done"
    assert {(progress.step, progress.steps) for progress in heard} == {(0, 0)}
    again, number = read(encoder), len(heard)
    assert len(heard) == number
    for one, other in ((told, before), (again, before)):
        torch.testing.assert_close(_rows_of(one), _rows_of(other), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["occurrences", "prompted"])
def test_who_reads_in_chunks_says_how_many_it_has_read_of_all(
    backbone: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Chunks of one size would all be said in the same words, as if nothing went on."""
    heard: list[Progress] = []
    with monkeypatch.context() as patch:
        if kind == "occurrences":
            from trainers.encoders import occurrence_encoder

            patch.setattr(occurrence_encoder, "CHUNK", 16)
            encoder: Any = occurrence_encoder.OccurrenceEncoder.load(backbone)
            inputs: Any = [Occurrence(text, 0, len(text.split()[0]), text.split()[0]) for text in TEXTS]
        else:
            from trainers.san import readers

            patch.setattr(readers, "CHUNK", 16)
            encoder, inputs = readers.Prompted(Encoder.load(backbone)), TEXTS
        with reading_together(encoder, World(report=heard.append)):
            encoder.encode(inputs)
    told = [progress.doing.partition(", ")[2] for progress in heard if "encoding" not in progress.doing]
    assert told == [f"{done} of {len(TEXTS)} done" for done in (16, 32, 41)]


def _rows_of(found: Any) -> torch.Tensor:
    rows = found if isinstance(found, np.ndarray) else np.stack([layers for layers, _ in found])
    return torch.from_numpy(rows)


def test_a_group_gives_what_one_worker_gives(backbone: Path, tmp_path: Path) -> None:
    """Every rank reads its share, also of one text; each tells that it comes further; marks travel too."""
    size = 3
    together(size, _read_in_a_group, tmp_path, str(backbone))
    encoder = Encoder.load(backbone)
    found = np.load(tmp_path / "rows.npy")
    assert np.allclose(found, encoder.encode([*TEXTS, *TEXTS[:1], "a cat"]), atol=1e-6)
    tokens = encoder.tokenise(TEXTS)
    second = np.concatenate([np.arange(length) == 1 for length in tokens.lengths])
    assert np.allclose(np.load(tmp_path / "marked.npy"), encoder.embed(replace(tokens, read=second)), atol=1e-5)
    shares = [int((tmp_path / f"read.{rank}").read_text()) for rank in range(size)]
    assert sum(shares) == 2 * len(TEXTS) + 1  # "a cat" is new, the first text is known
    assert max(shares) - min(shares) <= 3


def _read_in_a_group(rank: int, size: int, folder: Path, backbone: str) -> None:
    os.environ["SEMRAY_CACHE"] = str(folder / "cache")
    told: list[Progress] = []
    encoder, seen = Encoder.load(Path(backbone)), []
    portions = encoder.portions

    def counted(tokens: Tokens) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        seen.append(len(tokens))
        return portions(tokens)

    encoder.portions = counted  # type: ignore[method-assign]
    with reading_together(encoder, World(rank=rank, size=size, report=told.append)):
        if rank == 0:
            rows = np.concatenate([encoder.encode(TEXTS), encoder.encode([TEXTS[0], "a cat"])])
            np.save(folder / "rows.npy", rows)
            tokens = encoder.tokenise(TEXTS)
            second = np.concatenate([np.arange(length) == 1 for length in tokens.lengths])
            np.save(folder / "marked.npy", encoder.embed(replace(tokens, read=second)))
    (folder / f"read.{rank}").write_text(str(sum(seen)))
    assert told
    assert all("encoding texts" in progress.doing for progress in told)
    if rank == 0:  # what goes wrong in scoring lets the others go
        with pytest.raises(ValueError, match="scoring"), reading_together(encoder, World(size=size)):
            raise ValueError("scoring")
    else:
        with reading_together(encoder, World(rank=rank, size=size)):
            pass
