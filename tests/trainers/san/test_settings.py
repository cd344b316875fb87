"""What a san arm may set, and when two arms are one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainers.san.settings import Settings, defining

TEACHERS = ("simcse", "diffcse")
ORDERED = {"host": "rankcse", "teachers": TEACHERS, "san": "hince", "negatives": "s"}
AS_CODED = {"conform": "authors", "dedup_in_batch": False, "consistency": "entropy"}


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("tau2", {"tau2": 0.0}),
        ("p2", {"p2": 1.0}),
        ("p1", {"p1": -0.1}),
        ("batch_size", {"batch_size": 0}),
        ("batch_size", {"batch_size": 1}),
        ("batch_size", {"batch_size": 1, "host": "rankcse", "teachers": TEACHERS}),
        ("bml_weight", {"bml_weight": -1.0}),
        ("negatives", {"san": "hince"}),
        ("column", {"column": "random"}),
        ("read_length", {"read_length": 31}),
        ("p2_of", {"san": "hince", "negatives": "san", "p2_of": "second_view"}),
        ("p2_of", {"host": "sncse", "p2_of": "second_view"}),
        ("teachers", {"host": "rankcse"}),
        ("teachers", {"host": "rlrd", "teachers": ("simcse",)}),
        ("teachers", {"host": "rankcse", "teachers": ("a", "b", "c")}),
        ("teachers", {"host": "rankcse", "teachers": ("a", "a")}),
        ("teachers", {"host": "rlrd", "teachers": ("a", "a")}),
        ("micro_batch", {"host": "rlrd", "teachers": TEACHERS, "micro_batch": "auto"}),
    ],
)
def test_a_setting_that_is_not_accepted_is_named(field: str, given: dict[str, Any]):
    with pytest.raises(ValueError, match=rf"train\.{field} = .*\n  accepted: "):
        Settings(**given)


@pytest.mark.parametrize("host", ["simcse_sup", "sncse", "rankcse", "simcse"])
def test_a_sentence_alone_in_its_batch_is_told_from_its_own_negatives(host: Any):
    """Contradictions, negations, or aligned negatives."""
    negatives: Any = {} if host in ("simcse_sup", "sncse") else {"san": "hard", "negatives": "s"}
    Settings(batch_size=1, host=host, teachers=TEACHERS, **negatives)
    Settings(batch_size=1, train=False)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {"tau2": 0.3, "p2": 0.4, "own_weight": 1.0, "postprocess": "off", "teachers": TEACHERS}),
        ({}, {"conform": "authors", "dedup_in_batch": True}),
        ({"steps": 5}, {"steps": 5, "epochs": 3}),
        ({}, {"read_length": 32}),
        ({"train": False, "max_length": 64}, {"train": False, "read_length": 64}),
        ({"san": "hard", "negatives": "s"}, {"san": "hard", "negatives": "s", "tau2": 0.9}),
        ({"train": False}, {"train": False, "host": "rankcse", "learning_rate": 1.0}),
        ({"train": False, "host": "sncse"}, {"train": False, "host": "rlrd", "readout": "mean"}),
        ({"host": "sncse"}, {"host": "sncse", "readout": "mean"}),
        ({"san": "hince", "column": "soft"}, {"san": "hince", "column": "soft", "negatives": "s"}),
        (
            {"host": "rlrd", "teachers": TEACHERS, "rl_update": "fixed"},
            {"host": "rlrd", "teachers": TEACHERS, "rl_update": "fixed", "rl_every": 7},
        ),
        (
            {"host": "rankcse", "teachers": TEACHERS[:1]},
            {"host": "rankcse", "teachers": TEACHERS[:1], "rank_mix": 0.5},
        ),
        (
            {"host": "rankcse", "teachers": TEACHERS, "consistency": "off"},
            {"host": "rankcse", "teachers": TEACHERS, "consistency": "off", "consistency_weight": 0.5},
        ),
        (
            {"host": "rankcse", "teachers": TEACHERS, "rank_loss": "listnet", **AS_CODED},
            {"host": "rankcse", "teachers": TEACHERS, "rank_loss": "listnet", **AS_CODED, "conform": "paper"},
        ),
        (
            {"host": "rlrd", "teachers": TEACHERS, "rank_loss": "listnet", "rl_update": "fixed", **AS_CODED},
            {
                "host": "rlrd",
                "teachers": TEACHERS,
                "rank_loss": "listnet",
                "rl_update": "fixed",
                "dedup_in_batch": False,
            },
        ),
        (
            {"host": "rlrd", "teachers": TEACHERS, "rank_teacher_tau": 0.1},
            {"host": "rlrd", "teachers": TEACHERS, "rank_teacher_tau": 0.1, "rank_tau": 0.2},
        ),
        (
            {"host": "rlrd", "teachers": TEACHERS, "rl_update": "reinforce"},
            {"host": "rlrd", "teachers": TEACHERS, "rl_update": "reinforce", "rl_epochs": 7},
        ),
        (ORDERED, {**ORDERED, "tau3": 0.5, "rank_teacher_tau": 0.5}),
        (
            {**ORDERED, "conform": "authors"},
            {**ORDERED, "conform": "authors", "tau3": 0.5, "rank_teacher_tau": 0.5},
        ),
        (
            {**ORDERED, "host": "rlrd", "rl_update": "fixed"},
            {
                **ORDERED,
                "host": "rlrd",
                "rl_update": "fixed",
                "tau3": 0.5,
                "rank_teacher_tau": 0.5,
                "rank_tau": 0.5,
            },
        ),
        ({**ORDERED, "host": "rlrd"}, {**ORDERED, "host": "rlrd", "tau3": 0.5}),
        ({**ORDERED, "host": "rlrd"}, {**ORDERED, "host": "rlrd", "rank_teacher_tau": 0.05}),
        ({**ORDERED, "rank_loss": "listnet"}, {**ORDERED, "rank_loss": "listnet", "rank_teacher_tau": 0.025}),
    ],
)
def test_what_an_arm_does_not_read_makes_no_other_arm(one: dict[str, Any], other: dict[str, Any]):
    assert defining(Settings(**one)) == defining(Settings(**other))


def test_arms_that_differ_in_what_they_read_are_others():
    san = {"san": "hince", "negatives": "s"}
    rank = {"host": "rankcse", "teachers": TEACHERS}
    arms: list[dict[str, Any]] = [
        {},
        {"p1": 0.15},
        {"read_length": 64},
        {"p2_of": "second_view"},
        {"p2_of": "second_view", "p2": 0.1},
        {"dedup_in_batch": False},
        {"batch_size": 96},
        {"readout": "mean"},
        {"micro_batch": 8},
        {"host": "simcse_sup"},
        {"host": "sncse"},
        {"host": "sncse", "bml_weight": 0.1},
        san,
        {**san, "tau2": 0.1},
        {**san, "p2": 0.1},
        {**san, "negatives": "t"},
        {**san, "postprocess": "off"},
        {**san, "san_pass": "fused"},
        {**san, "column": "random"},
        {**san, "column": "soft"},
        {"san": "hard", "negatives": "s"},
        rank,
        {**rank, "consistency": "entropy"},
        {**rank, "consistency": "off"},
        {**rank, "consistency_weight": 0.5},
        {**rank, "rank_mix": 0.5},
        {**rank, "rank_tau": 0.1, "rank_teacher_tau": 0.1},
        {**rank, "conform": "authors"},
        {**rank, "dedup_in_batch": False, "consistency": "entropy"},
        {**rank, "rank_loss": "listnet"},
        {**rank, "rank_loss": "listnet", "conform": "authors"},
        {**rank, "rank_loss": "listnet", "rank_teacher_tau": 0.05},
        {**rank, **san, "rank_loss": "listnet"},
        {**rank, **san, "rank_loss": "listnet", "tau3": 0.5},
        {**rank, **san},
        {**rank, **san, "san_mle": 0.4},
        {**rank, "host": "rlrd"},
        {**rank, "host": "rlrd", "rank_tau": 0.1},
        {**rank, "host": "rlrd", "rank_teacher_tau": 0.2},
        {**rank, "host": "rlrd", "rl_epochs": 7},
        {**rank, "host": "rlrd", "rl_update": "reinforce"},
        {**rank, "host": "rlrd", "rl_update": "fixed"},
        {**rank, "host": "rlrd", "rank_loss": "listnet"},
        {**rank, "host": "rlrd", "rank_loss": "listnet", "conform": "authors", "dedup_in_batch": True},
        {**rank, "host": "rlrd", "rank_loss": "listnet", "rl_update": "reinforce"},
        {
            **rank,
            "host": "rlrd",
            "rank_loss": "listnet",
            "rl_update": "reinforce",
            "conform": "authors",
            "dedup_in_batch": True,
        },
        {"train": False},
        {"train": False, "readout": "mean"},
        {"train": False, "read_length": 64},
        {"train": False, "host": "sncse"},
    ]
    assert len({json.dumps(defining(Settings(**arm)), sort_keys=True) for arm in arms}) == len(arms)


def test_temperatures_that_an_arm_does_not_read_leave_its_name_as_it_was():
    """Arms at the defaults have the names that they had when all temperatures counted."""
    for arm in (ORDERED, {**ORDERED, "host": "rlrd"}, {**ORDERED, "host": "rlrd", "rl_update": "fixed"}):
        kept = defining(Settings(**arm))
        assert (kept["tau3"], kept["rank_teacher_tau"], kept["rank_tau"]) == (0.05, None, 0.05)


def test_what_the_code_as_it_was_taught_the_policies_has_names_of_its_own():
    """Only where values count: reinforce has none, and fixed shares learn nothing. A student beside policies that
    learn is named for them in either."""
    taught = {"host": "rlrd", "teachers": TEACHERS, "conform": "authors"}
    assert defining(Settings(**taught))["transitions"] == 2
    others: list[dict[str, Any]] = [{"conform": "paper"}, {"rl_update": "reinforce"}, {"rl_update": "fixed"}]
    assert not any("transitions" in defining(Settings(**{**taught, **changes})) for changes in others)
    assert [defining(Settings(**{**taught, **changes})).get("student") for changes in others] == [2, 2, None]
    assert "student" not in defining(Settings(host="rankcse", teachers=TEACHERS))


def test_what_is_not_set_is_what_the_paper_and_its_scripts_have():
    """SimCSE+SAN on BERT-base, with SNCSE's margins, RankCSE's lists and RLRD's policies."""
    figures: dict[str, Any] = {
        **{"batch_size": 64, "learning_rate": 3e-5, "epochs": 1, "max_length": 32},
        **{"tau1": 0.05, "tau2": 0.08, "p1": None, "p2": 0.2, "own_weight": 0},
        **{"warmup": 0, "weight_decay": 0, "clip_norm": 1},
        **{"bml_alpha": 0.1, "bml_beta": 0.3, "bml_weight": 1e-3},
        **{"rank_tau": 0.05, "rank_mix": 0.33, "rank_weight": 1, "consistency_weight": 1},
        **{"tau3": 0.05, "san_mle": 0.2},
        **{"rl_weight": 1e-3, "rl_every": 125, "rl_epochs": 3},
    }
    usual = Settings()
    assert {name: getattr(usual, name) for name in figures} == figures


def test_what_came_later_leaves_an_arm_without_it_as_it_was():
    """Its names are those of arms that were trained before there was such a setting."""
    assert not {"read_length", "micro_batch"} & defining(Settings()).keys()
    assert "read_length" not in defining(Settings(train=False))


def test_what_conform_decides():
    paper, authors = (Settings(host="rankcse", teachers=TEACHERS, conform=way) for way in ("paper", "authors"))  # type: ignore[arg-type]
    assert (paper.dedup, paper.consistent) == (True, "js")
    assert (authors.dedup, authors.consistent) == (False, "entropy")
    assert Settings(rank_loss="listnet").teacher_tau == 0.025
    assert Settings().teacher_tau == 0.05
