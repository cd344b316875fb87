"""A study of the cale family from its file to its report, on a SemCor of tiny files; and what such a study may claim."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from corpora.cale.corpus import load
from orchestration.families.cale import FAMILY, check_claims, check_target_layers
from orchestration.lanes.lane import execute
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import gather_facts, plan, prepare
from orchestration.reading.read_study import read_study
from orchestration.report import forms, plots
from orchestration.report.html import html
from orchestration.study.errors import StudyError
from orchestration.study.run import Job
from orchestration.study.study import Study
from orchestration.verdicts.declared import declare
from orchestration.verdicts.distributions import with_distributions
from orchestration.verdicts.find import find
from orchestration.verdicts.findings import Findings
from orchestration.verdicts.passport import verify, write_passport
from tests.corpora.semcor_samples import tagfiles, write_archive, write_lexicon
from tests.results import put, without_model
from tests.small_study import study_in
from tests.tiny import tiny_backbone
from trainers.encoders.marking import Markers
from trainers.encoders.occurrence_encoder import OccurrenceEncoder
from trainers.engine.world import World

STUDY = """\
question: Do concepts teach more than words?
family: cale
backbones: [PLACE/tiny]
seeds: 2
data:
  {semcor: PLACE, wordnet: PLACE/wordnet, min_len: 4, val: 0.2, test: 0.2, threshold_pairs: 60, test_pairs: 150,
   val_pairs: 60}
train: {steps: 6, batch_size: 8, learning_rate: 1.0e-3, max_length: 48}
arms:
  1L1C: {train: false, readout: lemma}
  base: {train: false}
  layers-mid: {train: false, readout: target, layers: [2, 3]}
  printed: {loss: printed}
  wic: {pairs: same_lemma}
  shuffled: {pairs: shuffled}
  cale: {}
evaluate: [spcd, space, dev/spcd]
compare:
  - {claim: C1, treatment: cale, control: wic, metric: spcd/test/ba_all, expect: better, matched_control: shuffled, signal: concepts}
  - {claim: C2, treatment: cale, control: base, metric: spcd/test/ba_all, expect: better}
  - {claim: C3, treatment: layers-mid, control: 1L1C, metric: spcd/test/ba_all, expect: better}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    write_archive(folder / "semcor3.0.tar.gz", tagfiles())
    write_lexicon(folder / "wordnet")
    tiny_backbone(folder / "tiny")
    return folder


@pytest.fixture(autouse=True)
def _own_cache(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMRAY_CACHE", str(place / "cache"))


@pytest.fixture(scope="module")
def findings(place: Path) -> Findings:
    """Every run of the study, executed here one after another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEMRAY_CACHE", str(place / "cache"))
        study, ledger = study_in(place, STUDY), Ledger(place / "ledger")
        planned = plan(study, gather_facts(study))
        prepare(study)
        declare(study, planned.runs, ledger)
        for run in planned.runs:
            put(ledger, run, map(without_model, execute(Job(runs=(run,)), World())))
        with patch.context() as only:  # nothing is claimed of the arm `printed`: verdicts leave its items alone
            read = ledger.items
            unclaimed = {entry for run in planned.runs if run.arm == "printed" for entry in run.entries}
            only.setattr(
                ledger, "items", lambda run, *more: pytest.fail(run) if run in unclaimed else read(run, *more)
            )
            judged = find(study, planned.runs, ledger)
        return with_distributions(judged, ledger)


def test_the_report_shows_1l1c_and_the_target_beside_every_gain(findings: Findings) -> None:
    """On the terminal's first screen, in Markdown and on the page; 1L1C is what the counts of pairs say."""
    assert len(findings.with_status("finished")) == 3 + 4 * 2
    for text in (forms.table(findings), forms.markdown(findings)):
        assert all(f"{arm} " in text for arm in ("1L1C", "base", "layers-mid", "cale"))
    alone, base = (findings.of(arm, findings.backbones[0])[0].metrics for arm in ("1L1C", "base"))
    decided = alone["spcd/threshold"] == 0.5  # halfway between one lemma and two; else it says no to all
    expected = base["spcd/1l1c/ba_all"] if decided else 0.5
    assert alone["spcd/test/ba_all"] == pytest.approx(expected, abs=1e-9)
    assert {finding.verdict.claim for finding in findings.findings} == {"C1", "C2", "C3"}


def distances_of(findings: Findings, arm: str, ledger: Ledger) -> dict[str, np.ndarray]:
    """Category -> the distances of all runs of an arm, as their files hold them."""
    found: dict[str, list[float]] = {}
    for row in findings.of(arm, findings.backbones[0]):
        for entry in row.entries[1:]:
            for item in ledger.items(entry).to_pylist():
                for part, metric in FAMILY.distributions["cosine distance"].items():
                    if item["metric"] == metric:
                        found.setdefault(part, []).append(item["value"])
    return {part: np.array(values) for part, values in found.items()}


def test_distances_of_every_arm_are_shown_by_category(findings: Findings, place: Path) -> None:
    shown = {found.arm: found for found in findings.distributions}
    assert set(shown) == set(findings.arms)
    for found in shown.values():
        assert found.quantity == "cosine distance"
        assert len(found.counts["SC/SL"]) == 50
    items = {arm: distances_of(findings, arm, Ledger(place / "ledger")) for arm in shown}
    whole = np.concatenate([distances for by_part in items.values() for distances in by_part.values()])
    for arm, found in shown.items():
        assert (found.low, found.high) == (whole.min(), whole.max())  # the same bins for every arm
        for part, distances in items[arm].items():
            edges = np.linspace(whole.min(), whole.max(), 51)[1:-1]
            binned = np.bincount(np.searchsorted(edges, distances, side="right"), minlength=50)
            assert found.counts[part] == tuple(binned.tolist())
            assert found.means[part] == pytest.approx(np.mean(distances))
    runs = len(findings.of("cale", findings.backbones[0]))
    assert {part: sum(counts) for part, counts in shown["cale"].counts.items()} == {
        part: runs * sum(counts) for part, counts in shown["base"].counts.items()
    }
    means = shown["base"].means
    row = findings.of("base", findings.backbones[0])[0].metrics
    assert means["DC/DL"] - means["SC/SL"] == pytest.approx(row["spcd/dist_spread"], abs=1e-6)
    assert 'id="distributions"' in html(findings, plots.every(findings))


def test_arms_without_distances_are_left_out(findings: Findings, place: Path) -> None:
    """One has finished no run, of another no such task was scored; before the first run there is nothing to show."""
    ledger = Ledger(place / "ledger")
    rows = [
        replace(row, status="missing")
        if row.arm == "base"
        else replace(row, entries=row.entries[:1] if row.arm == "wic" else row.entries)
        for row in findings.runs
    ]
    shown = with_distributions(replace(findings, runs=tuple(rows)), ledger).distributions
    assert {found.arm for found in shown} == set(findings.arms) - {"base", "wic"}
    rows = [replace(row, status="missing") for row in findings.runs]
    assert with_distributions(replace(findings, runs=tuple(rows)), ledger).distributions == ()


def test_a_passport_recomputes_the_distances_shown(findings: Findings, place: Path, tmp_path: Path) -> None:
    study = study_in(place, STUDY)
    asked = plan(study, gather_facts(study))
    write_passport(tmp_path / "passport.zip", asked, Ledger(place / "ledger"), findings)
    assert verify(tmp_path / "passport.zip").differences == ()


def test_what_is_watched_is_in_the_curves(findings: Findings, place: Path) -> None:
    run = findings.of("cale", findings.backbones[0])[0].id
    names = set(Ledger(place / "ledger").curve_of(run)["name"].to_pylist())
    assert {"loss", "loss/contrastive", "pos_dist", "neg_dist", "active_neg_share"} <= names


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "  1L1C: {train: false, readout: lemma}\n",
            "  1L1C: {markers: added}\n",
            r"compare: C2: cale - base alone says little\n  accepted: .*\{readout: lemma\}",
        ),
        (
            "readout: target, layers: [2, 3]",
            "readout: mean, max_length: 40",
            r"compare: C2: .*\n  accepted: .*\{readout: target",
        ),
        (
            "{claim: C2, treatment: cale, control: base,",
            "{claim: C2, treatment: {arm: cale, over: printed}, control: {arm: wic, over: shuffled},",
            r"C2: treatment = printed has loss printed\n  accepted: ",
        ),
        ("control: wic", "control: printed", r"C1: control = printed has loss printed\n  accepted: "),
        ("[2, 3]", "[3, 4]", r"arms\.layers-mid\.layers = \[3, 4\]\n  accepted: up to 3"),
        ("batch_size: 8", "batch_size: 80000", r"arms\.\w+: train\.batch_size = 80000\n  accepted: at most \d+"),
        (
            "max_length: 48",
            "max_length: 4",
            r"arms\.\w+: train\.max_length = 4: '<t> .* </t>' alone is longer\n  accepted: at least \d+",
        ),
        (
            "1L1C, metric: spcd/test/ba_all",
            "1L1C, metric: spcd/threshold",
            r"metric = .?spcd/threshold.?\n  accepted: ",
        ),
        (
            "test_pairs: 150,\n   val_pairs: 60}\n",
            "test_pairs: 1,\n   val_pairs: 60}\n",
            r"compare: C1: spcd/test/ba_all has no figure in this corpus\n  accepted: spcd/test/(?!.*threshold)",
        ),
    ],
)
def test_what_cannot_be_claimed_or_run_is_refused(place: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        prepare(study_in(place, STUDY, old, new))


@pytest.mark.parametrize("markers", ["plain", "added"])
def test_the_least_length_that_is_accepted_reads_every_word_that_is_trained_on(
    place: Path, markers: Markers
) -> None:
    """Tags that are tokens take less room than those that are text."""

    def at(length: int) -> Study:
        return study_in(place, STUDY, "max_length: 48", f"max_length: {length}, markers: {markers}")

    with pytest.raises(StudyError, match="accepted: at least") as refused:
        prepare(at(3))
    least = int(str(refused.value).rpartition(" ")[2])
    prepare(at(least))
    corpus = load(at(least).data)
    reader = OccurrenceEncoder.load(place / "tiny", markers=markers, max_length=least)
    reader.tokenise(corpus.occurrences.take(corpus.pairs["train"].anchor))
    with pytest.raises(StudyError, match=f"accepted: at least {least}$"):
        prepare(at(least - 1))


def test_a_gain_over_an_untrained_arm_stands_beside_1l1c_whichever_side_of_a_difference_it_is(place: Path) -> None:
    gains = "{claim: C2, treatment: {arm: cale, over: base}, control: {arm: wic, over: base},"
    study = study_in(place, STUDY, "{claim: C2, treatment: cale, control: base,", gains)
    check_claims(study, [], None)
    alone = {name: arm for name, arm in study.arms.items() if name not in ("1L1C", "layers-mid")}
    with pytest.raises(
        ValueError, match=r"C2: .*says little\n  accepted: .*\{readout: lemma\}.*\{readout: target"
    ):
        check_claims(replace(study, arms=alone, compare=study.compare[1:2]), [], None)


def test_a_set_that_is_not_at_hand_is_said_before_anything_runs(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SEMRAY_DATA", raising=False)
    with pytest.raises(StudyError, match=r"DWUG \(en\) not found; looked at"):
        gather_facts(study_in(place, STUDY, "dev/spcd]", "lscd/en]"))


def test_layers_are_counted_whatever_a_configuration_calls_them(place: Path, tmp_path: Path) -> None:
    from transformers import DistilBertConfig

    DistilBertConfig(n_layers=2).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"arms\.layers-mid\.layers = \[2, 3\]\n  accepted: up to 2"):
        check_target_layers(study_in(place, STUDY), [tmp_path])
    check_target_layers(study_in(place, STUDY, "[2, 3]", "[1, 2]"), [tmp_path])


SHIPPED = sorted((Path(__file__).resolve().parents[3] / "studies").glob("cale_*.yaml"))


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_the_shipped_studies_claim_what_may_be_claimed(file: Path) -> None:
    """Also with the arms alone that a comparison names, which are all that the confirmation of a search keeps."""
    study = read_study(file)
    compared = {arm for claim in study.compare for arm in claim.arms}
    check_claims(study, [], None)
    if study.search is not None:
        check_claims(
            replace(study, arms={name: arm for name, arm in study.arms.items() if name in compared}), [], None
        )
