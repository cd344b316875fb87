"""Code that comes with a model or a data set is never run: no load without saying so, and such folders are refused."""

from __future__ import annotations

import ast
import json
import sys
from functools import cache
from pathlib import Path

import pytest

from corpora.cale.spcd_published import read
from corpora.store.errors import CorpusError
from tests.tiny import tiny_backbone
from trainers.encoders.backbones import BackboneError, resolve_backbone

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (
    "orchestration",
    "trainers",
    "evaluators",
    "corpora",
    "search_spaces",
    "semray",
    "benchmarks",
    "examples",
)
LOADS = {
    "from_pretrained",
    "SentenceTransformer",
    "CrossEncoder",
    "load_dataset",
    "load_dataset_builder",
    "pipeline",
}
NEVER = {
    "torch.load",
    "pickle.load",
    "pickle.loads",
    "joblib.load",
    "yaml.load",
    "yaml.unsafe_load",
    "yaml.full_load",
}
FILES = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))


@cache
def _calls(file: Path) -> list[tuple[int, str, ast.Call]]:
    calls = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call))
    return [(call.lineno, ast.unparse(call.func), call) for call in calls]


def _refuses(call: ast.Call) -> bool:
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    value = given.get("trust_remote_code")
    return isinstance(value, ast.Constant) and value.value is False


def test_every_load_refuses_foreign_code() -> None:
    loads = [
        (f"{file.relative_to(ROOT)}:{line}", call)
        for file in FILES
        for line, name, call in _calls(file)
        if name.rpartition(".")[2] in LOADS
    ]
    assert len(loads) > 5
    assert [place for place, call in loads if not _refuses(call)] == []


def test_nothing_is_unpickled() -> None:
    """But by `semray convert`, and there by torch's reader of weights alone."""
    found = [
        (file.relative_to(ROOT).as_posix(), name, _weights_only(call))
        for file in FILES
        for _, name, call in _calls(file)
        if name in NEVER
    ]
    assert found == [("trainers/encoders/convert.py", "torch.load", True)]


def _weights_only(call: ast.Call) -> bool:
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    value = given.get("weights_only")
    return isinstance(value, ast.Constant) and value.value is True


@pytest.fixture
def planted(tmp_path: Path) -> tuple[Path, Path]:
    """A backbone of a kind that only its own code knows, and what that code would leave behind."""
    folder, trace = tiny_backbone(tmp_path / "backbone"), tmp_path / "it-ran"
    (folder / "modeling_own.py").write_text(
        f"open({str(trace)!r}, 'w').close()\nOwn = OwnConfig = OwnTokenizer = object\n"
    )
    own = {"AutoConfig": "modeling_own.OwnConfig", "AutoModel": "modeling_own.Own"}
    _change(folder / "config.json", model_type="own", architectures=["Own"], auto_map=own)
    return folder, trace


def _change(file: Path, **fields: object) -> None:
    file.write_text(json.dumps({**(json.loads(file.read_text()) if file.exists() else {}), **fields}))


def test_a_backbone_with_code_of_its_own_is_refused_in_words(planted: tuple[Path, Path]) -> None:
    folder, trace = planted
    with pytest.raises(
        BackboneError, match=r"asks for code of its own \(auto_map in config.json\), which is never run"
    ):
        resolve_backbone(str(folder), fetch=False)
    assert not trace.exists()


def test_its_code_is_not_run_by_loading_it_either(
    planted: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even with somebody at a terminal who would say yes."""
    from trainers.encoders.encoder import load_backbone

    folder, trace = planted
    monkeypatch.setattr("builtins.input", lambda *asked: "y")
    with pytest.raises(ValueError, match="trust_remote_code"):
        load_backbone(folder)
    assert not trace.exists()


def test_a_module_of_its_own_is_refused_in_words(tmp_path: Path) -> None:
    folder = tiny_backbone(tmp_path / "backbone")
    (folder / "own.py").write_text(f"open({str(tmp_path / 'it-ran')!r}, 'w').close()\nclass Own: pass\n")
    modules = [{"idx": 0, "name": "0", "path": "", "type": "own.Own"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(BackboneError, match=r"code of its own \(own.Own in modules.json\)"):
        resolve_backbone(str(folder), fetch=False)
    assert not (tmp_path / "it-ran").exists()


def test_code_beside_a_known_kind_of_model_is_passed_over(tmp_path: Path) -> None:
    folder = tiny_backbone(tmp_path / "backbone")
    _change(folder / "config.json", auto_map={"AutoModel": "modeling_own.Own"})
    assert resolve_backbone(str(folder), fetch=False) == folder


def test_the_script_of_a_data_set_is_not_run(tmp_path: Path) -> None:
    folder = tmp_path / "spcd"
    folder.mkdir()
    (folder / "spcd.py").write_text(f"open({str(tmp_path / 'it-ran')!r}, 'w').close()\n")
    with pytest.raises(CorpusError, match="accepted: a data set on the hub"):
        read(str(folder))
    assert not (tmp_path / "it-ran").exists()
    assert "spcd" not in sys.modules
