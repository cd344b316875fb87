"""What a look at the corpus finds before a lane starts: one mistake each, by field, value and what is accepted."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from orchestration.commands.cli import main
from orchestration.families.concept import check_layers
from orchestration.ledger.ledger import Ledger
from orchestration.plan.held import planned
from orchestration.plan.plan import gather_facts, plan, prepare
from orchestration.study.errors import StudyError
from tests.corpora.conftest import write_small_wordnet
from tests.finished_study import fill
from tests.small_study import study_in
from tests.tiny import tiny_backbone

STUDY = """\
question: Can it run?
family: concept
backbones: [PLACE/tiny]
data: {wordnet: PLACE/wordnet, n_hh: 20, n_id: 20, n_dev: 10}
train: {steps: 8, batch_size: 8}
arms:
  B0: {train: false}
  B1: {hard_negatives: true}
  M1: {readout: weighted, layers: 3}
evaluate: [t2d, stress]
compare:
  - {claim: H1, treatment: B1, control: B0, metric: t2d/mrr, expect: better}
resources: {workers_per_run: 2}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    write_small_wordnet(folder / "wordnet")
    tiny_backbone(folder / "tiny")
    return folder


@pytest.fixture(autouse=True)
def _own_cache(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMRAY_CACHE", str(place / "cache"))


def readied(place: Path, old: str = "", new: str = "") -> None:
    prepare(study_in(place, STUDY, old, new))


def test_what_can_run_is_let_through(place: Path) -> None:
    readied(place)
    readied(place, "{workers_per_run: 2}", "{}")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "batch_size: 8",
            "batch_size: 7",
            r"arms\.B1: train\.batch_size = 7\n  accepted: a multiple of the 2 work",
        ),
        ("batch_size: 8", "batch_size: 8000", r"batch_size = 8000\n  accepted: at most \d+, the \w+ pairs"),
        (
            "{hard_negatives: true}",
            "{syn_weight: 0, t2d_weight: 0}",
            r"train\.syn_weight = 0, .*\n  accepted: at least one view",
        ),
        ("layers: 3", "layers: 4", r"arms\.M1\.layers = 4\n  accepted: up to 3"),
        ("n_id: 20", "n_id: 0", r"evaluate: t2d: (.|\n)*accepted: .*n_id = 0"),
        ("n_dev: 10", "n_dev: 10, stress_concepts: 0", r"evaluate: stress: (.|\n)*stress_concepts = 0"),
        (
            "t2d/mrr",
            "stress/antonym/fallback/auc",
            r"H1: stress/antonym/fallback/auc has no (.|\n)*: t2d/recall@1, ",
        ),
    ],
)
def test_what_can_only_fail_later_is_found(place: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        readied(place, old, new)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("batch_size: 8", "batch_size: 7", r"B1: train\.batch_size = 7\n  accepted: a multiple of the 2 workers"),
        (
            "{hard_negatives: true}",
            "{syn_weight: 0, t2d_weight: 0}",
            r"B1: train\.syn_weight = 0, train\.t2d_weight = 0, .*\n  accepted: at least one view",
        ),
    ],
)
def test_what_arms_and_data_show_is_found_by_a_plan(place: Path, old: str, new: str, said: str) -> None:
    """No corpus is built for it."""
    with pytest.raises(StudyError, match=said):
        gather_facts(study_in(place, STUDY, old, new))


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"model_type": "fnet"}, r"fnet, .*\n  accepted: a backbone of another kind"),
        ({"model_type": "bart", "is_encoder_decoder": True}, r"\n  accepted: family: sentence_transformers"),
        (
            {"model_type": "albert", "num_hidden_layers": 6},
            r"arms\.B1: train\.layer_decay = 0\.9\n  accepted: 1\.0 with other, whose layers",
        ),
    ],
)
def test_backbones_that_no_run_could_train_are_found(
    place: Path, tmp_path: Path, config: dict[str, object], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By a plan, too: a configuration is read for it, and no corpus built."""
    copied = shutil.copytree(place / "tiny", tmp_path / "other")
    (copied / "config.json").write_text(json.dumps(config))
    with pytest.raises(StudyError, match=said):
        readied(place, "PLACE/tiny", str(copied))
    study = study_in(place, STUDY, "PLACE/tiny", str(copied))
    assert main(["plan", str(study.path), "--ledger", str(tmp_path / "ledger")]) == 2
    assert re.search(said, capsys.readouterr().err)


@pytest.mark.parametrize("kind", ["deberta", "xmod"])
def test_a_kind_that_no_run_could_read_in_bf16_is_found(
    place: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whether the study says bf16 or `auto` means it, and not where the ledger's runs have it mean fp32."""
    copied = shutil.copytree(place / "tiny", tmp_path / kind)
    (copied / "config.json").write_text(json.dumps({"model_type": kind, "num_hidden_layers": 6}))
    text = STUDY.replace("PLACE/tiny", str(copied))
    said = rf"{kind}, which transformers cannot run in bf16, .*\n  accepted: resources\.precision: fp32"
    with pytest.raises(StudyError, match=said):
        prepare(study_in(place, text, "workers_per_run: 2", "workers_per_run: 2, precision: bf16"))
    with pytest.raises(StudyError, match=said):
        prepare(study_in(place, text, "workers_per_run: 2", "workers_per_run: 2, gpus_per_run: 2"))
    prepare(study_in(place, text, "workers_per_run: 2", "workers_per_run: 2, precision: fp32"))
    monkeypatch.setattr("trainers.engine.precision.best_precision", lambda device: "bf16")
    study, ledger = study_in(place, text), Ledger(tmp_path / "ledger")
    asked = ["plan", str(study.path), "--ledger", ledger.url]
    assert main(asked) == 2
    assert re.search(said, capsys.readouterr().err)
    in_fp32 = plan(study, replace(gather_facts(study), precision="fp32"))
    fill(ledger, in_fp32.runs[:2])
    assert planned(study, ledger).left
    assert main(asked) == 0


def test_layers_that_a_backbone_lacks_are_found_by_a_plan_that_has_something_left(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A finished study is looked at whatever an older version let through."""
    study, ledger = study_in(place, STUDY, "layers: 3", "layers: 4"), Ledger(tmp_path / "ledger")
    asked = ["plan", str(study.path), "--ledger", ledger.url]
    assert main(asked) == 2
    assert "arms.M1.layers = 4\n  accepted: up to 3, the layers of tiny" in capsys.readouterr().err
    fill(ledger, planned(study, ledger).runs)
    assert main(asked) == 0


def test_a_backbone_whose_layers_are_one_learns_at_one_rate(place: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(place / "tiny", tmp_path / "other")
    (copied / "config.json").write_text(json.dumps({"model_type": "albert", "num_hidden_layers": 6}))
    study = STUDY.replace("PLACE/tiny", str(copied))
    prepare(study_in(place, study, "batch_size: 8}", "batch_size: 8, layer_decay: 1.0}"))


def test_layers_are_counted_whatever_a_configuration_calls_them(place: Path, tmp_path: Path) -> None:
    """DistilBERT writes n_layers. A backbone that no arm asks for layers is not looked at."""
    from transformers import DistilBertConfig

    DistilBertConfig(n_layers=2).save_pretrained(tmp_path)
    assert "num_hidden_layers" not in (tmp_path / "config.json").read_text()
    with pytest.raises(ValueError, match=r"arms\.M1\.layers = 3\n  accepted: up to 2"):
        check_layers(study_in(place, STUDY), [tmp_path])
    check_layers(study_in(place, STUDY, "layers: 3", "layers: 2"), [tmp_path])
    check_layers(
        study_in(place, STUDY, "{readout: weighted, layers: 3}", "{train: false, readout: cls}"),
        [tmp_path / "no"],
    )
