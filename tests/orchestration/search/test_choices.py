"""Every choice and end of a search stands beside its arm for a look at what backbone and rows allow, before it starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import AlbertConfig

from orchestration.families.concept import check_layer_decay, check_layers
from orchestration.plan.plan import Facts
from orchestration.search.trials import Selection, selections
from tests.small_study import study_in
from tests.tiny import tiny_backbone

MIXED = """\
question: How many layers?
family: concept
backbones: [tiny]
arms: {B0: {train: false}, M1: {readout: gated, layers: 2}}
evaluate: [t2d]
search:
  space: concept
  arms: [M1]
  dimensions: {temperature: all, layers: all}
  trials: 2
  objective: {metric: dev/t2d/mrr, mode: max}
  seeds: [100]
"""
WIDE = """\
question: How wide?
family: difficulty
backbones: [tiny]
data: {tasks: [stsb]}
arms: {frozen: {form: baseline}, lex: {form: pair_lex, init: identity, d_h: full}}
evaluate: [similarity]
search:
  space: difficulty
  arms: [lex]
  dimensions: {init: all, d_h: [64, full]}
  trials: 2
  objective: {metric: dev/stsb/spearman, mode: max}
  seeds: [100]
"""


def selection(place: Path, text: str, old: str = "", new: str = "") -> Selection:
    facts = Facts(backbones={"tiny": "b"}, corpus="c", tasks={"dev/t2d": "r"}, precision="fp32")
    (found,) = selections(study_in(place, text, old, new), facts)
    return found


def test_more_layers_than_the_backbone_has_are_no_choice(tmp_path: Path) -> None:
    tiny = tiny_backbone(tmp_path / "tiny", layers=3)
    with pytest.raises(ValueError, match=r"arms\.M1 \(search\.dimensions\.layers: 4\)\.layers = 4\n  .*: up to 3"):
        check_layers(selection(tmp_path, MIXED).at_choices, [tiny])
    fewer = selection(tmp_path, MIXED, "layers: all", "layers: [1, 2]").at_choices
    check_layers(fewer, [tiny])
    assert [arm.layers for arm in fewer.arms.values()] == [2, 2, 2, 1, 2]  # its own, two temperatures, each choice


def test_both_ends_of_a_range_are_looked_at(tmp_path: Path) -> None:
    """Layers that share their weights learn at one rate, which the arm has and most points of its search have not."""
    AlbertConfig(num_hidden_layers=4).save_pretrained(tmp_path / "tiny")
    text = MIXED.replace("{temperature: all, layers: all}", "{layer_decay: all}")
    found = selection(tmp_path, text, "arms: {B0", "train: {layer_decay: 1.0}\narms: {B0").at_choices
    with pytest.raises(ValueError, match=r"\(search\.dimensions\.layer_decay: 0\.8\): train\.layer_decay = 0\.8"):
        check_layer_decay(found, [tmp_path / "tiny"])
    assert {arm.layer_decay for arm in found.arms.values()} == {0.8, 1.0}


def test_a_choice_is_looked_at_where_it_matters(tmp_path: Path) -> None:
    """A width of 64 is one of the linear start alone, and the arm begins as the identity."""
    found = selection(tmp_path, WIDE)
    looked_at = {name.removeprefix("lex "): (arm.init, arm.d_h) for name, arm in found.at_choices.arms.items()}
    assert looked_at == {
        "lex": ("identity", "full"),
        "(search.dimensions.init: linear)": ("linear", "full"),
        "(search.dimensions.init: identity)": ("identity", "full"),
        "(search.dimensions.d_h: 64)": ("linear", 64),
        "(search.dimensions.d_h: full)": ("linear", "full"),
    }
    never = selection(tmp_path, WIDE, "init: all", "init: [identity]").at_choices
    assert {arm.init for arm in never.arms.values()} == {"identity"}
