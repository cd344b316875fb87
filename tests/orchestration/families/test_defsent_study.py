"""A study of the defsent family, from its file through every arm, on a masked LM and a dictionary made for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestration.lanes.lane import execute
from orchestration.plan.plan import gather_facts, plan, prepare
from orchestration.study.errors import StudyError
from orchestration.study.run import Job, Run, Scored, Trained
from tests.corpora.sources.test_gcide import dictionary
from tests.small_study import study_in
from tests.tiny import WORDS, tiny_backbone
from tests.trainers.masked_lm import masked_lm, wordpiece
from trainers.engine.world import World

STUDY = """\
question: Do definitions teach words?
family: defsent
backbones: [PLACE/bert]
seeds: 2
data: {sources: [gcide], gcide: PLACE/gcide, path: PLACE, nli: sick_e}
train: {learning_rate: 5.0e-3, batch_size: 8, max_length: 32, mlm_epochs: 2}
arms:
  defsent: {}
  frozen: {train: false}
  random: {head_source: random}
  fitted: {head_source: mlm_fit, train: false}
  sbert: {objective: inference, readout: mean, matched_budget: true}
evaluate: [d2w, dev/d2w]
compare:
  - {claim: D1, treatment: defsent, control: frozen, metric: d2w/mrr_at_10, expect: better}
  - {claim: D11, treatment: defsent, control: random, metric: d2w/mrr_at_10, expect: better}
"""
METRICS = ("mrr_at_10", "mrr", "top1", "top3", "top10", "mrr_any")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    masked_lm(folder / "bert", "bert")
    without_mask_token(masked_lm(folder / "maskless", "bert"))
    tiny_backbone(folder / "bare")
    for name, ending in (("gcide", ""), ("strange", "zzq")):
        entries = [
            f"{word.capitalize()}{ending} \\{word}\\, n.\n   the {WORDS[at - 1]} {word} of {WORDS[at - 3]}.\n"
            for at, word in enumerate(WORDS)
        ]
        dictionary(folder / name, "\n".join(entries))
    rows = [f"{at}\ta {word}\tthe {word} is old\t4\tENTAILMENT" for at, word in enumerate(WORDS)]
    header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
    (folder / "SICK_train.txt").write_text("\n".join([header, *rows]) + "\n")
    return folder


def without_mask_token(folder: Path) -> None:
    """Give this backbone a tokenizer that never hides a word, as a decoder's."""
    from transformers import PreTrainedTokenizerFast

    special = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=wordpiece().backend_tokenizer, **special).save_pretrained(folder)


@pytest.fixture(autouse=True)
def own_cache(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMRAY_CACHE", str(place / "cache"))
    monkeypatch.setattr("trainers.defsent.mlm_fit.LEAST_RATIO", 0.0)


@pytest.fixture
def runs(place: Path) -> dict[str, Run]:
    study = study_in(place, STUDY)
    return {run.arm: run for run in plan(study, gather_facts(study)).runs}


@pytest.mark.parametrize("arm", ["defsent", "frozen", "random", "fitted", "sbert"])
def test_every_arm_runs_and_a_saved_model_scores_the_same(runs: dict[str, Run], arm: str, tmp_path: Path) -> None:
    run = runs[arm]
    trained, *scored = execute(Job(runs=(run,)), World())
    assert isinstance(trained, Trained)
    assert all(isinstance(one, Scored) for one in scored)
    found = {score.metric: score.value for one in scored for score in one.scores}
    assert set(found) == {f"{task}/{metric}" for task in ("d2w", "dev/d2w") for metric in METRICS}
    assert trained.notes["head_source"].startswith(
        {"random": "random", "fitted": "mlm_fit, fitted on"}.get(arm, "pretrained")
    )
    assert trained.notes.get("nli_source") == ("sick_e" if arm == "sbert" else None)
    assert bool(trained.curve) is (arm not in ("frozen", "fitted"))
    if trained.save_model is not None:
        trained.save_model(tmp_path / "model")
        again = execute(Job(runs=(run,), models={run.id: tmp_path / "model"}), World())
        assert {score.metric: score.value for one in again for score in one.scores} == found


def test_a_fitted_head_makes_an_untrained_arm_depend_on_the_rows(runs: dict[str, Run], place: Path) -> None:
    study = study_in(place, STUDY, "gcide: PLACE/gcide,", "gcide: PLACE/gcide, split_seed: 1,")
    other = {run.arm: run for run in plan(study, gather_facts(study)).runs}
    assert runs["frozen"].id == other["frozen"].id
    assert runs["fitted"].id != other["fitted"].id


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("PLACE/bert", "PLACE/bare", r"arms\.defsent: train\.head_source = 'pretrained', and .* has no masked-LM head"),
        (
            "PLACE/bert",
            "PLACE/maskless",
            r"arms\.fitted: train\.head_source = 'mlm_fit', and the tokenizer of maskless has no mask token\n  acc",
        ),
        ("nli: sick_e", "nli: none", r"arms\.sbert\.objective = 'inference', and data\.nli = 'none'\n  accepted: "),
        ("nli: sick_e", "nli: snli_devtest", r"SNLI's dev and test not found"),
        (
            "random: {head_source: random}",
            "random: {head_source: random, readout: mean}",
            r"compare: D11: defsent has head_source pretrained, random random\n  accepted: ",
        ),
        ("seeds: 2", "seeds: 2\nresources: {workers_per_run: 3}", r"train\.batch_size = 8\n  accepted: a multiple of the 3 w"),
        (
            "gcide: PLACE/gcide",
            "gcide: PLACE/strange",
            r"data: no word of the training rows is one entry of the vocabulary of bert\n  accepted: ",
        ),
        ("gcide: PLACE/gcide", "gcide: PLACE/none", r"data\.gcide = .* holds no gcide\.dict\.dz"),
    ],
)  # fmt: skip
def test_what_cannot_run_or_be_claimed_is_refused(place: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        looked_at(place, old, new)


def looked_at(place: Path, old: str, new: str) -> None:
    study = study_in(place, STUDY, old, new)
    gather_facts(study)
    prepare(study)
