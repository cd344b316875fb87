"""Values of a study that are warned of: numbers of texts at a time that divide nothing, weights of no pairs."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orchestration.families.defsent import FAMILY
from orchestration.families.encoder_checks import length_slips
from orchestration.families.registry import family
from orchestration.plan.slips import slips
from orchestration.reading.read_study import read_study
from tests.tiny import tiny_backbone
from trainers.cale import settings as cale
from trainers.defsent.settings import Settings
from trainers.sentence_transformers import settings as recipes

STUDY = """\
question: Is this meant?
family: {family}
backbones: [small]
data: {data}
train: {{batch_size: 16, micro_batch: {asked}}}
arms: {{{arms}, none: {{train: false}}, plain: {{micro_batch: null}}}}
evaluate: [{tasks}]
resources: {{workers_per_run: {workers}}}
{search}"""
SEARCH = "search: {space: concept, arms: [A], trials: 2, objective: {metric: dev/t2d/mrr, mode: max}, seeds: [100]"
TWO = "{lexicons: [wordnet, gcide]}"
GCIDE = "{lexicons: [gcide], split: source-holdout}"


def told(
    place: Path, family: str, arms: str, asked: str, *, data: str = "{}", workers: int = 1, search: str = ""
) -> list[str]:
    path, tasks = place / "slips.yaml", "t2d" if search else "sts"
    given = {"family": family, "arms": arms, "asked": asked, "data": data, "workers": workers}
    path.write_text(STUDY.format(tasks=tasks, search=search, **given))
    return slips(read_study(path))


@pytest.mark.parametrize(
    ("family", "data", "arm", "most"),
    [
        ("concept", TWO, "{}", 96),  # left and right of three views
        ("concept", TWO, "{syn_weight: 0}", 64),
        ("concept", "{}", "{}", 64),  # one dictionary gives no pairs of two
        ("concept", GCIDE, "{}", 32),
        ("concept", "{}", "{hard_negatives: true}", 80),  # a negative of each rule, read after the pairs
        ("concept", "{}", "{hard_negatives: true, negatives_per_definition: 8}", 80),
        ("concept", "{}", "{hard_negatives: true, negatives_per_definition: 3}", 64),
        ("concept", "{ontology: dbpedia}", "{rows: ontology}", 32),
        ("cale", "{}", "{}", 32),
        ("san", "{}", "{}", 32),
        ("san", "{}", "{host: simcse_sup}", 48),
        ("san", "{}", "{p2_of: second_view}", 16),  # at a rate of its own, after the first
    ],
)
def test_a_micro_batch_that_divides_nothing_is_told(
    tmp_path: Path, family: str, data: str, arm: str, most: int
) -> None:
    assert told(tmp_path, family, f"A: {arm}", str(most - 1), data=data) == []
    other = arm.replace("}", ", clip_norm: 0.5}").replace("{, ", "{")
    (line,) = told(tmp_path, family, f"A: {arm}, B: {other}", str(most), data=data)
    assert line.startswith(f"A, B: micro_batch = {most} divides no step: at most {most} texts pass at once")


def test_each_worker_divides_its_own_texts(tmp_path: Path) -> None:
    (line,) = told(tmp_path, "cale", "A: {}", "16", workers=2)
    assert "at most 16 texts of a worker pass at once" in line
    assert told(tmp_path, "cale", "A: {}", "15", workers=2) == []


def test_nothing_is_told_where_the_card_decides(tmp_path: Path) -> None:
    assert told(tmp_path, "cale", "A: {}", "auto") == []


@pytest.mark.parametrize(
    ("family", "arms", "field"),
    [
        ("concept", "A: {max_length: 300}, B: {max_length: 300, train: false}, C: {max_length: 100}", "max_length"),
        ("cale", "A: {max_length: 300}, B: {max_length: 300, train: false}, C: {max_length: 100}", "max_length"),
        ("san", "A: {max_length: 300}, B: {max_length: 300, clip_norm: 0.5}, C: {max_length: 100}", "max_length"),
        ("san", "A: {read_length: 300}, B: {read_length: 300, clip_norm: 0.5}, C: {read_length: 100}", "read_length"),
    ],
)  # fmt: skip
def test_a_length_beyond_what_a_backbone_takes_is_told(
    tmp_path: Path, family: str, arms: str, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of its positions, or of its tokenizer, whichever is less; of a backbone that is here."""
    assert told(tmp_path, family, arms, "null") == []
    monkeypatch.setenv("SEMRAY_BACKBONES", str(tmp_path))
    files = tiny_backbone(tmp_path / "small")
    said = (
        f"A, B: {field} = 300 reads 128 tokens of a text, all that small takes; yet such runs have other ids than"
    )
    for name, entry in (("tokenizer_config", "model_max_length"), ("config", "max_position_embeddings")):
        file = files / f"{name}.json"
        known = json.loads(file.read_text())
        assert told(tmp_path, family, arms, "null") == [f"{said} with 128"]
        file.write_text(json.dumps({**known, entry: 1000}))
    assert told(tmp_path, family, arms, "null") == []


def test_a_length_that_every_arm_has_by_default_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of DefSent is 512, more than a tiny backbone takes."""
    monkeypatch.setenv("SEMRAY_BACKBONES", str(tmp_path))
    tiny_backbone(tmp_path / "small")
    study: Any = SimpleNamespace(backbones=["small"], arms={"A": Settings(), "B": Settings(max_length=100)})
    assert FAMILY.slips(study) == []
    study.arms["C"] = Settings(max_length=600)
    (line,) = FAMILY.slips(study)
    assert line.startswith("C: max_length = 600 reads 128 tokens")


def test_a_length_beyond_positions_is_told_of_recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their library reads beyond the limit of a tokenizer, and never beyond positions."""
    monkeypatch.setenv("SEMRAY_BACKBONES", str(tmp_path))
    file = tiny_backbone(tmp_path / "small") / "tokenizer_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "model_max_length": 32}))
    arms = {str(length): recipes.Settings(max_seq_length=length) for length in (100, 128, 300)}
    (line,) = family("sentence_transformers").slips(SimpleNamespace(backbones=["small"], arms=arms))
    assert line.startswith("300: max_seq_length = 300 reads 128 tokens of a text, all that small takes")


def test_a_length_of_an_arm_that_reads_none_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The points of CALE's lemmas are of words alone."""
    monkeypatch.setenv("SEMRAY_BACKBONES", str(tmp_path))
    tiny_backbone(tmp_path / "small")
    lemma = cale.Settings(train=False, readout="lemma", max_length=300)
    study: Any = SimpleNamespace(backbones=["small"], arms={"A": lemma})
    assert length_slips(cale.defining)(study) == []


def test_weights_of_pairs_that_the_data_does_not_give_are_told(tmp_path: Path) -> None:
    """Such arms train alike, under ids of their own."""
    arms = (
        "A: {d2d_weight: 0}, B: {d2d_weight: 0, steps: 900}, C: {d2d_weight: 2.0}, "
        "D: {d2d_weight: 0, train: false, readout: cls}"
    )
    same, other = told(tmp_path, "concept", arms, "null")
    assert same.startswith("A, B: d2d_weight = 0 weighs nothing: data.lexicons = [wordnet] has no such pairs; yet")
    assert other.startswith("C: d2d_weight = 2 weighs nothing")
    assert told(tmp_path, "concept", arms, "null", data=TWO) == []
    (line,) = told(tmp_path, "concept", "A: {syn_weight: 0.5}, B: {t2d_weight: 0.5}", "null", data=GCIDE)
    assert line.startswith("A: syn_weight = 0.5 weighs nothing: data.lexicons = [gcide] has no such pairs")


@pytest.mark.parametrize("dimensions", ["", ", dimensions: {d2d_weight: all}"])
def test_a_search_for_the_weight_of_no_pairs_is_told(tmp_path: Path, dimensions: str) -> None:
    """Where a study does not say what moves, all does."""
    moved = f"{SEARCH}{dimensions}}}\n"
    (line,) = told(tmp_path, "concept", "A: {steps: 900}", "null", search=moved)
    assert line.startswith(
        "A: d2d_weight, which the search moves, weighs nothing: data.lexicons = [wordnet] has no"
    )
    assert told(tmp_path, "concept", "A: {steps: 900}", "null", search=moved, data=TWO) == []
    others = f"{SEARCH}, dimensions: {{temperature: all}}}}\n"
    assert told(tmp_path, "concept", "A: {steps: 900}", "null", search=others) == []


SAYS = """\
question: Is one claim told twice?
family: concept
backbones: [{backbones}]
arms: {{B0: {{train: false}}, B1: {{}}}}
evaluate: [t2d, d2t]
compare:
  - {{claim: H1, treatment: B1, control: B0, metric: t2d/mrr, expect: equivalent, margin: 0.01}}
  - {{claim: H2, treatment: B1, control: B0, {second}}}
"""


@pytest.mark.parametrize(
    ("second", "backbones", "same"),
    [
        ("metric: t2d/mrr, expect: equivalent, margin: 0.01", "small", True),
        ("metric: t2d/mrr, expect: equivalent, margin: 0.010", "small, large", True),
        ("metric: t2d/mrr, expect: equivalent, margin: 0.01, backbone: small", "small", True),
        ("metric: t2d/mrr, expect: equivalent, margin: 0.01, family: other", "small", False),  # corrected apart
        ("metric: t2d/mrr, expect: equivalent, margin: 0.02", "small", False),
        ("metric: t2d/mrr, expect: not_worse, margin: 0.01", "small", False),
        ("metric: t2d/mrr, expect: equivalent, margin: 0.01, scope: test_set", "small", False),
        ("metric: d2t/mrr, expect: equivalent, margin: 0.01", "small", False),
    ],
)
def test_a_claim_under_two_names_is_told_once(second: str, backbones: str, same: bool, tmp_path: Path) -> None:
    """It costs all claims of its group a hypothesis, on every backbone."""
    path = tmp_path / "twice.yaml"
    path.write_text(SAYS.format(second=second, backbones=backbones))
    told = [line for line in slips(read_study(path)) if "names" in line]
    assert [line.partition(":")[0] for line in told] == ["H1, H2"] * same
