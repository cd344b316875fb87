"""Tasks on a corpus small enough to read, with an encoder that counts letter triples; and the real one, frozen."""

import hashlib
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from corpora.concept.corpus import ConceptData, fingerprint
from corpora.concept.records import ConceptCorpus, EvalSplit, PairRows, RuleNegatives, StressRow
from corpora.store.cache import key_of
from corpora.store.columns import Ragged, Texts
from evaluators.metrics.item_metrics import aggregate
from evaluators.tasks.concept import tasks, tasks_on
from evaluators.tasks.task import Benchmark, evaluate, metric_names, named
from tests.corpora.conftest import write_small_wordnet
from tests.measuring import given, scores_of
from tests.ontology import write_ontology

TASKS = tasks(ConceptData())  # on WordNet; here they are measured on made-up rows
ELSEWHERE = (
    "layers",
    "readout",
    "np",
    "distortion",
    "dbpedia_comments",
)  # read layer by layer, or rows of their own
OF_TEXTS = [name for name in TASKS if name not in ELSEWHERE]
NOTHING = np.zeros(0, np.int32)
EMPTY = PairRows("syn", NOTHING, NOTHING, Ragged.of([]))


def split(name):
    """Three concepts: bank and shore share one, bank has a second, moth's wording belongs to two synsets."""
    river, money = "the side of a river or the sea", "a firm that keeps money for others"
    insect = "an insect that flies at night towards the light"
    rows = (
        StressRow("river-n", "bank", river, "negate", "prefix", f"not {river}"),
        StressRow("money-n", "bank", money, "negate", "lexical", "a firm that not keeps money for others"),
        StressRow("money-n", "bank", money, "pos_random", "random", "a small cup for tea"),
        StressRow("moth-n", "moth", insect, "negate", "prefix", f"not {insect}"),
    )
    return EvalSplit(
        name=name,
        terms=("bank", "shore of a river", "moth"),
        definitions=(river, money, insect),
        gold=((0, 1), (0,), (2,)),
        concept_of_definition=(("river-n",), ("money-n",), ("moth-n", "moth-2-n")),
        stress=rows,
    )


@pytest.fixture(scope="module")
def corpus():
    return ConceptCorpus(
        texts=Texts(pa.array([], pa.string())),
        syn=EMPTY,
        t2d=EMPTY,
        negatives=RuleNegatives(Ragged.of([]), NOTHING, NOTHING),
        splits={name: split(name) for name in ("id", "dev", "hh")},
        fingerprint="hand-made",
        digests={},
    )


def table(corpus):
    splits = {name: given(part) for name, part in corpus.splits.items()}
    return tasks_on(splits, splits)


def triples(texts):
    """Counts of letter triples in 64 buckets: a real encoder of texts, if a poor one."""
    vectors = np.zeros((len(texts), 64), np.float32)
    for row, text in enumerate(texts):
        for start in range(len(text)):
            vectors[row, hashlib.blake2b(text[start : start + 3].encode()).digest()[0] % 64] += 1
    return vectors


def test_every_score_is_declared_and_made_of_its_items(corpus):
    scores = scores_of(table(corpus), OF_TEXTS, triples)
    names = metric_names(TASKS.values())
    assert len({score.metric for score in scores}) == len(scores)
    for score in scores:
        assert names[score.metric] == score.larger_is_better
        if score.aggregate is not None:
            assert score.value == aggregate(score.aggregate, score.values, score.gold)
            assert len(set(score.item_ids)) == len(score.item_ids) == len(score.group_ids) == len(score.values)


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_headlines_are_among_the_metrics(task):
    assert task.headline in task.metrics


def test_every_split_has_its_stress_tests(corpus):
    held = replace(corpus.splits["id"], stress=corpus.splits["id"].stress[:2])
    parts = {"id": given(held), "dev": given(corpus.splits["dev"]), "hh": given(corpus.splits["hh"])}
    sizes = {
        name: len(score.values)
        for name in ("stress", "hh/stress", "dev/stress")
        for score in scores_of(tasks_on(parts, parts), [name], triples)
        if score.metric == f"{name}/negate/acc"
    }
    assert sizes == {"stress": 2, "hh/stress": 3, "dev/stress": 3}


def test_items_are_named_by_what_they_are(corpus):
    figures = {score.metric: score for score in scores_of(table(corpus), ["t2d", "d2t"], triples)}
    assert list(figures["t2d/mrr"].item_ids) == ["bank", "shore of a river", "moth"]
    assert list(figures["t2d/mrr"].group_ids) == ["river-n", "river-n", "moth-n"]
    assert list(figures["d2t/mrr"].item_ids) == ["river-n", "money-n", "moth-n"]


def test_both_directions_by_hand(corpus):
    """Unit vectors in a plane: bank (0°) is nearest to insect (10°) and meets its own at 60°; moth (180°) is far."""
    angles = {"bank": 0, "shore of a river": 65, "moth": 180}
    part = corpus.splits["id"]
    angles |= dict(zip(part.definitions, (60, 80, 10), strict=True))

    def encode(texts):
        radians = np.radians([angles[text] for text in texts])
        return np.stack([np.cos(radians), np.sin(radians)], axis=1)

    figures = {score.metric: score for score in scores_of(table(corpus), ["t2d", "d2t"], encode)}
    assert figures["t2d/mrr"].values.tolist() == [1 / 2, 1, 1 / 3]  # moth: 100° and 120° before its own 170°
    assert figures["d2t/mrr"].values.tolist() == [1, 1 / 2, 1 / 3]  # money: shore at 15°, then bank at 80°
    assert figures["t2d/recall@1"].value == pytest.approx(1 / 3)


def test_every_text_is_encoded_once(corpus):
    seen = Counter()

    def counting(texts):
        seen.update(texts)
        return triples(texts)

    scores_of(table(corpus), ["t2d", "stress", "geometry", "pair_auc"], counting)
    part = corpus.splits["id"]
    assert set(seen.values()) == {1}
    assert set(seen) == {*part.terms, *part.definitions, *(row.negative for row in part.stress)}


def test_the_company_of_other_tasks_changes_nothing(corpus):
    together = {score.metric: score.value for score in scores_of(table(corpus), OF_TEXTS, triples)}
    for name in OF_TEXTS:
        for score in scores_of(table(corpus), [name], triples):
            assert together[score.metric] == score.value


def test_an_encoding_that_is_not_usable_is_named(corpus):
    def spoiled(value):
        def encode(texts):
            vectors = triples(texts)
            vectors[texts.index("moth")] = value
            return vectors

        return encode

    for value in (np.nan, np.inf, 0):
        with pytest.raises(ValueError, match="t2d: the encoding of 'moth'"):
            scores_of(table(corpus), ["t2d"], spoiled(value))
    with pytest.raises(ValueError, match=r"t2d: 6 texts, the first 'bank'.* shape \(5, 64\)"):
        scores_of(table(corpus), ["t2d"], lambda texts: triples(texts)[:-1])


def test_an_unknown_task_is_named_with_those_that_exist(corpus):
    with pytest.raises(ValueError, match="no task 't2e'\n  accepted: t2d, d2t"):
        named(TASKS, ["t2d", "t2e"])


def test_a_task_that_reads_what_the_encoder_does_not_is_named():
    with pytest.raises(ValueError, match="t2d reads texts\n  accepted: tasks that read occurrences"):
        list(evaluate([TASKS["t2d"]], {"occurrences": triples}))


def test_rows_and_version_are_part_of_what_a_task_is_called_by():
    task = next(iter(table_of_one("a").values()))
    other = next(iter(table_of_one("b").values()))
    assert len({task.fingerprint, other.fingerprint, replace(task, version=task.version + 1).fingerprint}) == 3
    assert task.fingerprint == next(iter(table_of_one("a").values())).fingerprint


def table_of_one(rows):
    benchmark = Benchmark(fingerprint=lambda: rows, load=lambda: split("id"))
    return tasks_on(dict.fromkeys(("id", "dev", "hh"), benchmark), dict.fromkeys(("id", "dev", "hh"), benchmark))


def test_a_readout_without_weights_has_no_figure(corpus):
    """Every other reading of layers has its headline."""
    part = corpus.splits["id"]
    layers, readout = (table(corpus)[name] for name in ("layers", "readout"))
    for task in (layers, readout):
        scores = task.score(part, lambda texts, task=task: task.made_up(np.random.default_rng(1), texts))
        assert task.headline in {score.metric for score in scores}
    assert readout.score(part, lambda texts: [(np.eye(3), None) for _ in texts]) == []


def test_how_tested_terms_are_written_changes_what_is_measured_on_them(tmp_path):
    """Written as the paper wrote them, tasks are called as they were before there was a choice."""
    write_small_wordnet(tmp_path)
    data = ConceptData(wordnet=str(tmp_path), dbpedia=str(write_ontology(tmp_path, [])))
    normalised = replace(data, test_surfaces="normalised")
    table = tasks(normalised)
    same = {name for name, task in tasks(data).items() if task.fingerprint == table[name].fingerprint}
    assert same == {"np", "distortion", "dbpedia_comments"}
    earlier = key_of({"corpus": fingerprint(normalised), "split": "dev"})
    assert table["dev/t2d"].benchmark.fingerprint() == earlier


def test_sizes_of_what_is_tested_change_those_tasks_alone(tmp_path):
    """And never what is trained on."""
    write_small_wordnet(tmp_path)
    data = ConceptData(wordnet=str(tmp_path), dbpedia=str(write_ontology(tmp_path, [])))
    fewer = replace(data, stress_concepts=1)
    assert fingerprint(data) == fingerprint(fewer)
    names = {name for name, task in tasks(data).items() if task.fingerprint != tasks(fewer)[name].fingerprint}
    stressed = {"stress", "pair_auc"}
    assert names == {f"{split}{task}" for split in ("", "hh/", "dev/") for task in stressed}
