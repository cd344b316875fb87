"""Pickled weights become safetensors once, by hand: what is not a tensor is refused, and nothing of it is run."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from orchestration.commands.cli import main
from tests.modes import kept_from_others
from trainers.encoders.backbones import BackboneError, resolve_backbone
from trainers.encoders.convert import convert
from trainers.encoders.encoder import Encoder

TEXTS = ["the old cat", "a small vessel holds water"]


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """$SEMRAY_BACKBONES, empty, and no hub."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("SEMRAY_BACKBONES", str(tmp_path / "shelf"))
    return tmp_path / "shelf"


@pytest.fixture
def pickled(backbone: Path, tmp_path: Path) -> Callable[..., Path]:
    """A copy of the backbone as the hub had them before safetensors: one file, or as many as told."""

    def make(folder: Path = tmp_path / "old", shards: int = 1) -> Path:
        shutil.copytree(backbone, folder)
        tensors = load_file(folder / "model.safetensors")
        (folder / "model.safetensors").unlink()
        if shards == 1:
            torch.save(tensors, folder / "pytorch_model.bin")
            return folder
        names = {name: f"pytorch_model-{n % shards + 1:05}-of-{shards:05}.bin" for n, name in enumerate(tensors)}
        for shard in set(names.values()):
            torch.save({name: tensors[name] for name in tensors if names[name] == shard}, folder / shard)
        index = {"metadata": {"total_size": 1}, "weight_map": names}
        (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))
        return folder

    return make


def vectors(folder: Path) -> np.ndarray:
    return Encoder.load(folder, readout="mean").encode(TEXTS)


@pytest.mark.parametrize("shards", [1, 2])
def test_the_converted_model_gives_the_same_vectors(
    shards: int, backbone: Path, pickled: Callable[..., Path], tmp_path: Path
) -> None:
    old = pickled(shards=shards)
    digest = convert(str(old), tmp_path / "new")
    assert len(digest) == 64
    assert not list((tmp_path / "new").glob("*.bin*"))
    assert np.array_equal(vectors(tmp_path / "new"), vectors(backbone))
    assert not kept_from_others(tmp_path / "new")
    assert list(old.glob("*.bin"))  # the original stays as it is


def test_modules_above_the_transformer_are_converted_with_it(backbone: Path, tmp_path: Path) -> None:
    """A folder of sentence-transformers: its own program gives the same vectors before and after."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer

    parts = [Transformer(str(backbone)), Pooling(32, "cls"), Dense(32, 8), Normalize()]
    (made := SentenceTransformer(modules=parts, device="cpu")).save(str(old := tmp_path / "old"))
    for weights in list(old.rglob("model.safetensors")):
        torch.save(load_file(weights), weights.with_name("pytorch_model.bin"))
        weights.unlink()
    shutil.rmtree(old / "3_Normalize")  # the hub keeps no empty folders
    convert(str(old), tmp_path / "new")
    assert {file.parent.name for file in (tmp_path / "new").rglob("model.safetensors")} == {"new", "2_Dense"}
    assert not list((tmp_path / "new").rglob("*.bin"))
    again = SentenceTransformer(str(tmp_path / "new"), device="cpu")
    assert np.array_equal(again.encode(TEXTS), made.encode(TEXTS))


def test_a_module_that_has_safetensors_keeps_them(backbone: Path, tmp_path: Path) -> None:
    """The pickle beside them is not opened."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer

    parts = [Transformer(str(backbone)), Pooling(32, "cls"), Dense(32, 8)]
    SentenceTransformer(modules=parts, device="cpu").save(str(old := tmp_path / "old"))
    torch.save(load_file(old / "model.safetensors"), old / "pytorch_model.bin")
    (old / "model.safetensors").unlink()
    (old / "2_Dense" / "pytorch_model.bin").write_bytes(b"no pickle")
    convert(str(old), tmp_path / "new")
    was, made = (folder / "2_Dense" / "model.safetensors" for folder in (old, tmp_path / "new"))
    assert made.read_bytes() == was.read_bytes()


def test_tensors_that_share_memory_are_converted_each_with_its_own(
    pickled: Callable[..., Path], tmp_path: Path
) -> None:
    """As tied weights are pickled, and views of a larger tensor."""
    old, whole = pickled(), torch.arange(6.0).view(2, 3)
    torch.save({"one": whole, "tied": whole, "view": whole.T}, old / "pytorch_model.bin")
    convert(str(old), tmp_path / "new")
    held = load_file(tmp_path / "new" / "model.safetensors")
    for name, tensor in (("one", whole), ("tied", whole), ("view", whole.T)):
        assert torch.equal(held[name], tensor)


def test_shards_that_lie_elsewhere_are_not_touched(pickled: Callable[..., Path], tmp_path: Path) -> None:
    old = pickled(shards=2)
    index = json.loads((old / "pytorch_model.bin.index.json").read_text())
    torch.save({"weight": torch.zeros(2)}, tmp_path / "pytorch_model-other.bin")
    index["weight_map"]["weight"] = "../pytorch_model-other.bin"
    (old / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    before = sorted(tmp_path.iterdir())
    with pytest.raises(
        BackboneError, match=r"names '\.\./pytorch_model-other\.bin'\n  accepted: files of the same"
    ):
        convert(str(old), tmp_path / "new")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.usefixtures("shelf")
def test_what_plan_refuses_names_the_command_that_mends_it(
    pickled: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = pickled()
    with pytest.raises(BackboneError) as raised:
        resolve_backbone(str(old))
    new = tmp_path / "old-safetensors"
    assert f"semray convert {old}\n  and then: name {new} instead" in str(raised.value)
    assert main(["convert", str(old), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["folder"] == str(new)
    assert resolve_backbone(str(new)) == new


def test_a_name_of_the_hub_that_the_cache_holds(
    shelf: Path, pickled: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fetched into the hub's cache, links and all, converted onto the shelf, found there by its name."""
    home = tmp_path / "hub" / "models--owner--name"
    snapshot = pickled(home / "snapshots" / "0123abc")
    (home / "blobs").mkdir()
    for file in list(snapshot.iterdir()):
        (home / "blobs" / file.name).write_bytes(file.read_bytes())
        file.unlink()
        file.symlink_to(Path("../../blobs") / file.name)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text("0123abc")
    with pytest.raises(BackboneError, match="to make safetensors of pickled weights: semray convert owner/name"):
        resolve_backbone("owner/name")
    assert main(["convert", "owner/name"]) == 0
    folder, digest = capsys.readouterr().out.splitlines()
    assert (folder, digest[:7]) == (str(shelf / "owner--name"), "sha256 ")
    assert resolve_backbone("owner/name") == shelf / "owner--name"
    assert not any(file.is_symlink() for file in (shelf / "owner--name").iterdir())


class Harm:
    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.file),)


@pytest.mark.parametrize(
    ("held", "says"),
    [
        (
            lambda harm: {"weight": torch.zeros(2), "more": Harm(harm)},
            "holds more than weights and was not opened",
        ),
        (lambda harm: {"model": {"weight": torch.zeros(2)}}, "holds no plain table of tensors"),
        (lambda harm: {"weight": torch.zeros(2), "step": 3}, "holds no plain table of tensors"),
        (lambda harm: [torch.zeros(2)], "holds no plain table of tensors"),
    ],
)
def test_a_pickle_that_is_more_than_weights_is_refused_in_words(
    held: Callable[[Path], Any],
    says: str,
    pickled: Callable[..., Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    old, harm = pickled(), tmp_path / "harm"
    torch.save(held(harm), old / "pytorch_model.bin")
    assert main(["convert", str(old), "--out", str(tmp_path / "new")]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert "accepted:" in said
    assert "Traceback" not in said
    assert not harm.exists()
    assert not (tmp_path / "new").exists()
    assert not list(tmp_path.glob(".new*"))


@pytest.mark.usefixtures("shelf")
@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda old: (old / "pytorch_model.bin").unlink(), "has no pytorch_model.bin"),
        (lambda old: (old / "pytorch_model.bin").write_bytes(b"no pickle"), "pytorch_model.bin"),
        (lambda old: os.truncate(old / "pytorch_model.bin", 1000), r"pytorch_model\.bin cannot be read"),
        (lambda old: (old / "config.json").unlink(), "has no config.json"),
        (lambda old: (old / "model.safetensors").touch(), "has safetensors"),
        (lambda old: (old / "model-00001-of-00002.safetensors").touch(), "has safetensors"),
        (lambda old: (old.parent / "new").mkdir(), "exists"),
        (lambda old: shutil.rmtree(old), r"no such folder, nor on the hub\n  hub: .*old: "),
    ],
)
def test_what_cannot_be_converted(
    spoil: Callable[[Path], Any], says: str, pickled: Callable[..., Path], tmp_path: Path
) -> None:
    old = pickled()
    spoil(old)
    with pytest.raises(BackboneError, match=says) as raised:
        convert(str(old), tmp_path / "new")
    assert "accepted:" in str(raised.value)
