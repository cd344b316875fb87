"""A paper's figures beside ours: which are compared in size, which in sign, which not at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluators.significance.verdict import Verdict
from orchestration.ledger.ledger import Ledger
from orchestration.reading.published import Printed, read_published
from orchestration.reading.read_study import read_study
from orchestration.report import forms
from orchestration.report.tables import CLAIM_HEAD, PUBLISHED, claim_head
from orchestration.study.errors import StudyError
from orchestration.verdicts.findings import Findings
from orchestration.verdicts.published import beside, with_published
from tests.finished_study import BACKBONE, findings_of

STUDIES = Path(__file__).resolve().parents[3] / "studies"
FILES = sorted((STUDIES / "published").glob("*.yaml"))
STUDY = """\
question: Is a paper's figure shown beside ours?
family: concept
backbones: [tiny]
arms: {B0: {train: false}, B1: {}}
evaluate: [t2d]
compare:
  - {claim: H1, treatment: B1, control: B0, metric: t2d/recall@10, expect: better}
"""
PRINTED = """\
source: a paper
backbone: tiny
seeds: 1
studies:
  shown:
    H1: 0.1
    H3a: {difference: -0.2, backbone: huge}
    H3b: {difference: 0.0, not_comparable: "our pool is smaller"}
"""


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    return findings_of(Ledger(tmp_path_factory.mktemp("ledger")))


def ours(findings: Findings, **changed: Any) -> Verdict:
    known = {"delta_mean": 0.10, "ci_low": 0.08, "ci_high": 0.12, "backbone": BACKBONE}
    return replace(findings.findings[0].verdict, **{**known, **changed})


@pytest.mark.parametrize(
    ("printed", "changed", "larger", "words"),
    [
        ({"difference": 0.11}, {}, True, "+0.11 (1 seed), inside our interval"),
        ({"difference": 0.11, "seeds": 10}, {}, True, "+0.11 (10 seeds), inside our interval"),
        ({"difference": 0.2}, {}, True, "+0.2 (1 seed), same sign"),
        ({"difference": -0.2}, {}, True, "-0.2 (1 seed), other sign"),
        (
            {"difference": -0.11},
            {},
            False,
            "-0.11 (1 seed), inside our interval",
        ),  # smaller is better: ours are gains
        ({"difference": 0.11, "backbone": "other/huge"}, {}, True, "+0.11 on other/huge (1 seed), same sign"),
        ({"difference": 0.11, "backbone": f"owner/{BACKBONE}"}, {}, True, "+0.11 (1 seed), inside our interval"),
        (
            {"difference": 0.11, "backbone": "other/huge"},
            {"backbone": ""},
            True,
            "+0.11 (1 seed), inside our interval",
        ),
        ({"difference": 0.0}, {}, True, "+0 (1 seed), no sign to compare"),
        ({"difference": 0.0}, {"ci_low": -0.01}, True, "+0 (1 seed), inside our interval"),
        ({"difference": 0.3, "not_comparable": "another pool"}, {}, True, "+0.3, not comparable: another pool"),
        ({"difference": 0.3}, {"delta_mean": None}, True, "+0.3 (1 seed)"),
        ({"difference": 0.11}, {"ci_low": None, "ci_high": None}, True, "+0.11 (1 seed), same sign"),
    ],
)
def test_words(findings: Findings, printed: dict, changed: dict, larger: bool, words: str) -> None:
    figure = Printed(**{"backbone": BACKBONE, "seeds": 1, **printed})
    assert beside(figure, ours(findings, **changed), larger) == words


def test_the_report_has_a_column_where_a_figure_is_known(findings: Findings, tmp_path: Path) -> None:
    (tmp_path / "shown.yaml").write_text(STUDY)
    study = read_study(tmp_path / "shown.yaml")
    assert with_published(findings, study) is findings
    assert claim_head([findings]) == CLAIM_HEAD
    assert PUBLISHED not in forms.table(findings).splitlines()[0]
    (tmp_path / "published").mkdir()
    (tmp_path / "published" / "concept.yaml").write_text(PRINTED)
    told = with_published(findings, study)
    said = {one.verdict.claim: one.published for one in told.findings}
    assert said["H1"] == "+0.1 (1 seed), inside our interval"
    assert said["H3a"] == "-0.2 on huge (1 seed), other sign"
    assert said["H3b"] == "+0, not comparable: our pool is smaller"
    assert said["H2"] == ""
    for shown in (forms.table(told), forms.markdown(told), forms.side_by_side([told, findings])):
        assert PUBLISHED in shown
        assert "not comparable: our pool is smaller" in shown
    assert [one["published"] for one in forms.as_json(told)] == list(said.values())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_claim_that_is_named_exists(path: Path) -> None:
    named = read_published(path)
    assert named
    for name, claims in named.items():
        study = read_study(STUDIES / f"{name}.yaml")
        assert study.family == path.stem
        assert set(claims) <= {part.claim for part in study.parts}
        assert all(printed.backbone for printed in claims.values())


LANGUAGES = ("en", "de", "es", "it", "la", "sv")
# CALE, table 10, in thousandths: APD and PRT of each language.
TABLE_10 = {
    "layers-mid": ((568, 543, 495, 316, 237, 575), (500, 756, 510, 538, 481, 466)),
    "wic": ((786, 798, 633, 512, 142, 854), (671, 803, 610, 637, 549, 739)),
    "cale": ((705, 777, 655, 755, 108, 833), (533, 823, 543, 753, 461, 720)),
}


def test_figures_of_change_are_those_of_the_table_with_most_digits():
    """Table 2 rounds the same correlations: .75 - .32 is .43, where table 10 has .755 - .316 = .439."""
    named = read_published(STUDIES / "published" / "cale.yaml")["cale_change"]
    for place, language in enumerate(LANGUAGES):
        for claim, measure, control in (
            (f"C8-{language}", 0, "layers-mid"),
            (f"C9-{language}", 0, "wic"),
            (f"C8-prt.{place + 1}", 1, "layers-mid"),
        ):
            printed = TABLE_10["cale"][measure][place] - TABLE_10[control][measure][place]
            assert named[claim].difference == pytest.approx(printed / 1000), claim


@pytest.mark.parametrize(
    ("family", "study", "claim", "control"),
    [
        ("cale", "cale_space", "C14", "base"),  # the paper reads an untrained encoder at the target word
        ("difficulty", "difficulty_multi_task", "C12", "baseline"),  # of GLUE's MRPC, not of its text files
    ],
)
def test_a_figure_of_another_measurement_is_not_set_beside_ours(
    family: str, study: str, claim: str, control: str
) -> None:
    (part,) = (one for one in read_study(STUDIES / f"{study}.yaml").parts if one.claim == claim)
    assert str(part.control) == control
    assert read_published(STUDIES / "published" / f"{family}.yaml")[study][claim].not_comparable


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("H1: 0.1", "H1: much", r"yaml:6: studies\.shown\.H1 = 'much'\n  accepted: the printed difference"),
        ("H1: 0.1", "H1: {backbone: huge}", r"H1\.difference is missing\n  accepted: the printed difference"),
        ("H1: 0.1", "H1: .nan", r"H1 = \.nan\n  accepted: a finite number"),
        ("H1: 0.1", "H1: 0.1\n    H1: 0.2", r"yaml:7: studies\.shown\.H1 is written twice"),
        ("backbone: huge", "model: huge", r"H3a\.model = 'huge'\n  accepted: difference, backbone"),
        ("backbone: huge", "backbone: 5", r"H3a\.backbone = 5\n  accepted: text"),
        ("shown:\n", "other: [H1]\n  shown:\n", r"studies\.other = \[H1\]\n  accepted: a mapping"),
        ("seeds: 1\n", "", r"seeds is missing\n  accepted: a whole number from 1"),
        ("source: a paper", "source: [", r"accepted: valid YAML"),
    ],
)
def test_an_odd_file_is_refused_in_words(tmp_path: Path, old: str, new: str, says: str) -> None:
    (tmp_path / "concept.yaml").write_text(PRINTED.replace(old, new))
    with pytest.raises(StudyError, match=says):
        read_published(tmp_path / "concept.yaml")


def test_a_study_may_be_named_before_its_claims_are(tmp_path: Path) -> None:
    (tmp_path / "concept.yaml").write_text(PRINTED + "  another:\n")
    assert read_published(tmp_path / "concept.yaml")["another"] == {}
