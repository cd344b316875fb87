"""Tasks of mteb: the figures that mteb gives by hand, on sets that lie in a folder; and what is not there, said."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("mteb", reason="the extra [mteb] is not installed")

from corpora.store.errors import CorpusError
from evaluators.metrics.item_metrics import aggregate
from evaluators.tasks import suite
from evaluators.tasks.task import evaluate, named
from tests.evaluators.tasks import mteb_sets
from tests.tiny import tiny_backbone
from trainers.encoders.encoder import Encoder

KINDS = {
    "mteb/STS12": "cosine_spearman",
    "mteb/STS17": "cosine_spearman",
    "mteb/SprintDuplicateQuestions": "max_ap",
    "mteb/Banking77Classification.v2": "accuracy",
    "mteb/NanoArguAnaRetrieval": "ndcg_at_10",
    "mteb/AskUbuntuDupQuestions": "map_at_1000",
    "mteb/NorwegianCourtsBitextMining": "f1",
    "mteb/TwentyNewsgroupsClustering": "v_measure",
    "mteb/CEDRClassification": "accuracy",
}


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEMRAY_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return mteb_sets.write(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    """Without modules of its own: its vectors are of any length."""
    return tiny_backbone(tmp_path_factory.mktemp("backbone"), seed=3)


@pytest.fixture(scope="module")
def encoder(backbone):
    return Encoder.load(backbone)


@pytest.fixture(scope="module")
def found(data, encoder):
    """Every score on all sets in one evaluation, by metric."""
    tasks = named(suite.tasks(str(data)), KINDS)
    return {score.metric: score for _, scores in evaluate(tasks, encoder.readers) for score in scores}


@pytest.fixture(scope="module")
def by_hand(data, backbone, tmp_path_factory):
    """What mteb says of the same encoder, called by itself: task -> its figure."""
    import mteb
    from sentence_transformers import SentenceTransformer

    model, said = SentenceTransformer(str(backbone), device="cpu"), {}
    with pytest.MonkeyPatch.context() as patch:  # `datasets` would know a folder by its last name alone
        patch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))
        for name in KINDS:
            task = mteb.get_task(name.removeprefix("mteb/"))
            where = data / task.metadata.dataset["path"]
            where = where if where.is_dir() else data / where.name
            task.metadata = task.metadata.model_copy(update={"dataset": {"path": str(where), "revision": "x"}})
            (said[name],) = mteb.evaluate(model, task, cache=None, show_progress_bar=False).task_results
    return said


@pytest.mark.parametrize("name", KINDS)
def test_a_figure_is_that_of_mteb_by_hand(found, by_hand, name):
    assert found[f"{name}/{KINDS[name]}"].value == pytest.approx(by_hand[name].get_score(), abs=1e-5)


def test_each_subset_has_the_figure_of_mteb(found, by_hand):
    for scores in by_hand["mteb/STS17"].scores["test"]:
        metric = f"mteb/STS17/{scores['hf_subset']}/cosine_spearman"
        assert found[metric].value == pytest.approx(scores["main_score"], abs=1e-6)


def test_every_metric_is_announced_and_no_other_comes(found, data):
    announced = [metric for task in named(suite.tasks(str(data)), KINDS) for metric in task.metrics]
    assert sorted(found) == sorted(announced)


def test_items_make_up_their_figure(found):
    kept = {metric: score for metric, score in found.items() if score.aggregate}
    whole = {"mteb/STS17/cosine_spearman", "mteb/SprintDuplicateQuestions/max_ap"}
    whole |= {"mteb/TwentyNewsgroupsClustering/v_measure", "mteb/CEDRClassification/accuracy"}
    assert kept.keys() == found.keys() - whole
    for score in kept.values():
        assert score.value == pytest.approx(aggregate(score.aggregate, score.values, score.gold))
        assert len(score.item_ids) == len(set(score.item_ids)) == len(score.values) == len(score.group_ids)


def test_every_item_and_what_it_was_taken_for_is_told(found, data):
    told = {}
    for task in named(suite.tasks(str(data)), KINDS):
        for score in (found[metric] for metric in task.metrics if found[metric].aggregate):
            texts = task.item_texts(task.benchmark.load(), score.metric)
            told[task.name] = [texts[item] for item in score.item_ids]
            if "Banking77" not in task.name:  # whose rows here name their classes by numbers alone
                assert set(score.taken_for) - {""} <= texts.keys()
    assert told["mteb/NanoArguAnaRetrieval"][0] == "cat | a small cat"
    assert told["mteb/Banking77Classification.v2"][0] == "a hot cup | 1"


def test_what_is_read_wrongly_was_taken_for_something(found):
    """A row whose classifiers are all right was taken for nothing; a translation that is found, neither."""
    for metric in ("mteb/Banking77Classification.v2/accuracy", "mteb/NorwegianCourtsBitextMining/f1"):
        score = found[metric]
        assert any(score.taken_for)
        for value, other in zip(score.values, score.taken_for, strict=True):
            assert bool(other) == (value < 0.5)


def test_retrieval_keeps_the_figure_of_each_query_that_has_an_answer(found, encoder):
    """nDCG@10 from its definition: gains 2^0 .. by rank, discounted by log2(rank + 1), over the best order's."""
    from corpora.benchmarks.pairs import text_key

    score = found["mteb/NanoArguAnaRetrieval/ndcg_at_10"]
    named = {text_key(text): query for query, text in mteb_sets.QUERIES.items() if query != "q4"}
    assert set(score.item_ids) == named.keys()  # of q4 nothing is relevant
    names = list(mteb_sets.DOCUMENTS)
    documents = encoder.encode(list(mteb_sets.DOCUMENTS.values()))
    for item, value in zip(score.item_ids, score.values, strict=True):
        query = named[item]
        gain = {d: s for q, d, s in mteb_sets.RELEVANT if q == query}
        cosines = documents @ encoder.encode([mteb_sets.QUERIES[query]])[0]
        ranked = [names[at] for at in np.argsort(-cosines)]
        discounted = sum(gain.get(name, 0) / math.log2(rank + 1) for rank, name in enumerate(ranked, 1))
        best = sum(s / math.log2(rank + 1) for rank, s in enumerate(sorted(gain.values(), reverse=True), 1))
        assert value == pytest.approx(discounted / best, abs=1e-6)


def test_a_translation_counts_less_when_others_take_it_too(found, encoder):
    """F1 of a translation that is found: 2 / (1 + how often it is taken), by arithmetic on the nearest of each."""
    sides = [encoder.encode_unscaled([pair[side] for pair in mteb_sets.PAIRS]) for side in (0, 1)]
    units = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in sides]
    nearest = (units[0] @ units[1].T).argmax(1).tolist()
    expected = [2 / (1 + nearest.count(row)) if nearest[row] == row else 0 for row in range(len(nearest))]
    assert found["mteb/NorwegianCourtsBitextMining/f1"].values == pytest.approx(expected)


def test_a_pair_has_the_name_that_it_has_in_our_own_tasks(found):
    """So that what mteb's STS12 shares with STS-B can be told."""
    from corpora.benchmarks.pairs import text_key

    keys = [text_key(a, b) for a, b, _ in mteb_sets.PAIRS]
    assert list(found["mteb/STS12/cosine_spearman"].item_ids) == keys
    groups = found["mteb/STS12/cosine_spearman"].group_ids
    assert groups[0] == groups[1] != groups[2]  # both of the first two hold "a cat"


def test_a_row_that_is_tested_twice_is_resampled_as_one(found):
    groups = found["mteb/Banking77Classification.v2/accuracy"].group_ids
    assert groups[0] == groups[3]
    assert len(set(groups)) == 4
    assert not set(groups) & set(found["mteb/NanoArguAnaRetrieval/ndcg_at_10"].group_ids)  # tasks share no place


def test_other_rows_and_other_folders_have_other_names(data, tmp_path):
    """The same rows elsewhere are the same; a changed row is not."""
    again, changed = mteb_sets.write(tmp_path / "again"), mteb_sets.write(tmp_path / "changed")
    file = changed / "mteb" / "sts12-sts" / "default-test.jsonl"
    file.write_text(file.read_text().replace("4.5", "4.4"))
    first, second, third = (suite.tasks(str(root))["mteb/STS12"].fingerprint for root in (data, again, changed))
    assert first == second != third
    task = suite.tasks(str(changed))["mteb/STS12"]
    assert task.benchmark.load().dataset["test"]["score"][0] == 4.4  # not what `datasets` has cached of the other
    assert task.fingerprint == third


def test_what_is_nowhere_is_said_with_every_place_and_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMRAY_DATA", str(tmp_path / "shelf"))
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", _no_network)
    with pytest.raises(CorpusError) as raised:
        _ = suite.tasks(str(tmp_path / "mine"))["mteb/STS12"].fingerprint
    said = str(raised.value)
    for place in (
        f"data.path: {tmp_path}/mine/mteb/sts12-sts",
        f"data.path: {tmp_path}/mine/sts12-sts",
        f"$SEMRAY_DATA: {tmp_path}/shelf/mteb/sts12-sts",
        f"cache: {tmp_path}/cache/mteb___sts12-sts",
        "the hub: mteb/sts12-sts: ConnectionError: no route to the hub",
        "hf download mteb/sts12-sts --repo-type dataset --revision a0d554a64d88156834ff5ae9920b964011b16384"
        " --local-dir FOLDER/mteb/sts12-sts",
    ):
        assert place in said


def _no_network(*args, **kwargs):
    raise ConnectionError("no route to the hub")


def test_a_cached_revision_needs_no_hub(tmp_path, monkeypatch):
    revision = "a0d554a64d88156834ff5ae9920b964011b16384"
    (tmp_path / "mteb___sts12-sts" / "default" / "0.0.0" / revision).mkdir(parents=True)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path)
    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", _no_network)
    assert len(suite.tasks(None)["mteb/STS12"].fingerprint) == 16


def test_an_odd_folder_is_named(data, tmp_path):
    root = mteb_sets.write(tmp_path / "odd")
    (root / "mteb" / "sts12-sts" / "default-test.jsonl").write_text("no JSON\n")
    with pytest.raises(
        CorpusError, match=r"mteb cannot read STS12 from .*/mteb/sts12-sts.*(\n.*)*accepted: a copy"
    ):
        suite.tasks(str(root))["mteb/STS12"].benchmark.load()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mteb/STS171", "did you mean mteb/STS17?"),
        ("mteb/nothing-like-it", "a task of mteb"),
        ("mteb/Flickr30kI2TRetrieval", "tasks of texts alone; Flickr30kI2TRetrieval holds"),
    ],
)
def test_a_name_without_a_task_is_told_apart(name, said):
    table = suite.tasks(None)
    assert name not in table
    assert said in table.why_not(name)


def test_without_the_package_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install 'semray[mteb]'" in suite.tasks(None).why_not("mteb/STS12")
