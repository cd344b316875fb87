"""A study of an ontology's labels, from its file to verdicts: arms of dictionaries, and one of the ontology's own rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpora.sources import dbpedia
from orchestration.commands.cli import main
from orchestration.lanes.lane import execute
from orchestration.ledger.ledger import Ledger
from orchestration.plan.plan import gather_facts, plan, prepare
from orchestration.study.errors import StudyError
from orchestration.study.run import Job, Trained
from orchestration.verdicts.declared import declare
from orchestration.verdicts.find import find
from tests.corpora.conftest import write_small_wordnet
from tests.ontology import write_ontology
from tests.small_study import study_in
from tests.tiny import WORDS, tiny_backbone
from trainers.engine.world import World

STUDY = """\
question: What do a few steps on an ontology's own comments buy?
family: concept
backbones: [PLACE/tiny]
seeds: 2
data: {wordnet: PLACE/wordnet, n_hh: 20, n_id: 20, n_dev: 10, ontology: dbpedia, dbpedia: PLACE}
train: {steps: 3, batch_size: 4, warmup: 1, max_length: 32}
arms:
  B0: {train: false}
  B1: {hard_negatives: true}
  ontology: {rows: ontology, symmetric: false, steps: 4}
evaluate: [dbpedia_comments]
compare:
  - {claim: X1, treatment: B1, control: B0, metric: dbpedia_comments/recall@10, expect: better}
  - {claim: X2, treatment: ontology, control: B1, metric: dbpedia_comments/recall@10, expect: better}
  - {claim: X3, treatment: ontology, control: B0, metric: dbpedia_comments/mrr, expect: better}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(dbpedia.VARIABLE, raising=False)
    write_small_wordnet(tmp_path / "wordnet")
    tiny_backbone(tmp_path / "tiny")
    write_ontology(
        tmp_path, [(f"T{n}", f"zz{n} {WORDS[n % 9]}", f"some sort of goods {n} in a shop") for n in range(260)]
    )
    return tmp_path


def test_every_arm_runs_and_claims_are_judged(place: Path) -> None:
    study, ledger = study_in(place, STUDY), Ledger(place / "ledger")
    runs = plan(study, gather_facts(study)).runs
    prepare(study)
    declare(study, runs, ledger)
    for run in runs:
        attempt = ledger.lease(run.id)
        for result in execute(Job(runs=(run,)), World()):
            if isinstance(result, Trained):
                terms = {name for step in result.curve for name in step.terms}
                assert terms == {"B0": set(), "B1": {"syn", "t2d", "hard_negatives"}, "ontology": {"c2l"}}[run.arm]
            ledger.stage(result, attempt)
            ledger.commit(result.entry, attempt)
    found = find(study, runs, ledger)
    assert [finding.verdict.claim for finding in found.findings] == ["X1", "X2", "X3"]
    for arm in found.arms:
        for row in found.of(arm, found.backbones[0]):
            assert row.status == "finished", row.problem
            assert 0 < row.metrics["dbpedia_comments/recall@10"] < 1


def test_plan_says_what_is_not_at_hand(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As any mistake in a study: in words, with what mends it, exit code 2."""
    assert main(["plan", str(study_in(place, STUDY, ", dbpedia: PLACE", "").path)]) == 2
    said = capsys.readouterr()
    assert "the DBpedia ontology not found" in said.err
    assert "to get it: curl -LO" in said.err
    assert "Traceback" not in said.err


def test_an_arm_without_the_ontology_it_trains_on_is_refused(place: Path) -> None:
    study = study_in(place, STUDY, "ontology: dbpedia, ", "")
    accepted = r"arms\.ontology: train\.rows = 'ontology'\n  accepted: lexicons, or with data\.ontology: dbpedia"
    for look in (gather_facts, prepare):
        with pytest.raises(StudyError, match=accepted):
            look(study)
    with pytest.raises(StudyError, match="hard_negatives"):
        study_in(place, STUDY, "symmetric: false", "hard_negatives: true")
