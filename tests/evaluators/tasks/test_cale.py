"""Tasks on a corpus small enough to read, with an encoder that counts the letters around a word."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.spatial.distance import cosine
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score, roc_auc_score, silhouette_score

from corpora.benchmarks.records import ChangeTarget, SimilarityPair, WicPair
from corpora.cale.data import CaleData
from corpora.cale.records import CATEGORIES, CaleCorpus, OccurrencePairs, Occurrences, Tagged
from corpora.sources.occurrences import Occurrence
from evaluators.metrics.item_metrics import aggregate
from evaluators.significance.claims import Claim
from evaluators.significance.comparisons import pair
from evaluators.significance.judge import judge
from evaluators.significance.paired_items import align_items
from evaluators.tasks import words_in_context
from evaluators.tasks.cale import lin, pair_tasks, tasks
from evaluators.tasks.task import metric_names, named
from tests.measuring import given, scores_of

CONTEXTS = ("a {} by the water", "they went to the {} twice", "no {} here", "that old {} of hers", "the {} it was")
WORDS = (  # lemma, concept, part of speech, lexicographer file
    *(("bank", "n1", "n", "noun.group"), ("bank", "n2", "n", "noun.object"), ("shore", "n2", "n", "noun.object")),
    *(
        ("walk", "v1", "v", "verb.motion"),
        ("walk", "v2", "v", "verb.social"),
        ("stroll", "v1", "v", "verb.motion"),
    ),
    *(("calm", "a1", "a", "adj.all"), ("quiet", "a1", "a", "adj.all"), ("calm", "a2", "a", "adj.all")),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Everything(CaleCorpus):
    """A corpus, and the sets of others that its tasks are measured on."""

    lscd: Mapping[str, tuple[ChangeTarget, ...]]
    cosimlex: Mapping[str, tuple[SimilarityPair, ...]]
    wic: Mapping[str, tuple[WicPair, ...]]


TASKS = {
    **words_in_context.tasks(None),
    **tasks(CaleData()),
}  # on published rows; here they are measured on made-up ones


def table(rows):
    """The tasks that there are rows for."""
    others = {"wic": rows.wic, **{f"{kind}/en": getattr(rows, kind)["en"] for kind in ("lscd", "cosimlex")}}
    on_pairs = {task.name: task for task in pair_tasks(given(rows))}
    return on_pairs | {name: replace(TASKS[name], benchmark=given(data)) for name, data in others.items()}


def used(word, number=0, end=""):
    before, after = CONTEXTS[number].split("{}")
    return Occurrence(before + word + after + end, len(before), len(before) + len(word), word)


def all_pairs(table, rows):
    """Every ordered pair of these occurrences, with its category."""
    anchor, partner = (side.ravel() for side in np.meshgrid(rows, rows, indexing="ij"))
    different = anchor != partner
    anchor, partner = anchor[different].astype(np.int32), partner[different].astype(np.int32)
    same_concept = table.concept[anchor] == table.concept[partner]
    same_lemma = table.lemma[anchor] == table.lemma[partner]
    return OccurrencePairs(anchor, partner, (2 * ~same_concept + ~same_lemma).astype(np.uint8))


@pytest.fixture(scope="module")
def corpus():
    table = Occurrences.of(
        Tagged(f"br-a01:{row}:{number}", used(lemma, number, f" {row}"), concept, pos, lexname)
        for row, (lemma, concept, pos, lexname) in enumerate(WORDS)
        for number in range(4)
    )
    rows = np.arange(len(table))
    pairs = {split: all_pairs(table, rows[start::3]) for start, split in enumerate(("train", "val", "test"))}
    test = pairs["test"]
    return Everything(
        occurrences=table,
        pairs=pairs,
        wu_palmer=np.where(test.label, 1.0, (1 + table.concept[test.anchor] % 3) / 5),
        threshold=np.arange(0, len(pairs["train"]), 2),
        unseen=np.flatnonzero(test.anchor % 2),
        lscd={
            "en": tuple(
                ChangeTarget(word, (used(word, 0), used(word, 1)), (used(word, 2), used(word, 3)), change)
                for word, change in (("lane", 0.0), ("plane", 0.9), ("tree", 0.2), ("gas", 0.4))
            )
        },
        cosimlex={
            "en": tuple(
                SimilarityPair(a, b, (used(a, 0), used(b, 1)), (used(a, 2), used(b, 3)), first, second)
                for a, b, first, second in (("cup", "mug", 7, 8), ("dog", "cat", 3, 6), ("sun", "sea", 2, 1))
            )
        },
        wic={
            split: tuple(
                WicPair(f"{split}:{number}", used(word, number), used(word, number + 1), bool(number % 2))
                for number, word in enumerate(words)
            )
            for split, words in (
                ("train", ("set", "go", "run")),
                ("dev", ("lie", "turn")),
                ("test", ("put", "cut", "let", "hit")),
            )
        },
        fingerprint="hand-made",
        digests={},
    )


def letters(occurrences):
    """Letters of the text and, three times over, of the target: longer texts give longer vectors."""
    vectors = np.zeros((len(occurrences), 26), np.float32)
    for row, occurrence in enumerate(occurrences):
        for letter in occurrence.text + 3 * occurrence.target:
            if letter.isalpha():
                vectors[row, ord(letter) - ord("a")] += 1
    return vectors


def figures(corpus, names, encode=letters):
    return {score.metric: score for score in scores_of(table(corpus), names, encode)}


HELD = ["spcd", "spcd/unseen", "spcd/ranking", "dev/spcd", "space", "lscd/en", "cosimlex/en", "wic"]


def test_every_score_is_declared_and_made_of_its_items(corpus):
    scores = scores_of(table(corpus), HELD, letters)
    recorded = {"spcd/threshold", "wic/threshold"}  # no larger one is better: not to be claimed
    yielded = {score.metric: score.larger_is_better for score in scores if score.metric not in recorded}
    assert yielded == metric_names(named(TASKS, HELD))
    assert recorded <= {score.metric for score in scores}
    for score in scores:
        assert np.isfinite(score.value), score.metric
        if score.aggregate is not None:
            assert score.value == aggregate(score.aggregate, score.values, score.gold)
            assert len(set(score.item_ids)) == len(score.item_ids) == len(score.group_ids) == len(score.values)


@pytest.mark.parametrize("name", ["spcd", "dev/spcd", "spcd/ranking", "space", "wic"])
def test_every_pair_is_told_by_its_sentences(corpus, name):
    task = table(corpus)[name]
    for score in scores_of({name: task}, [name], letters):
        if score.aggregate is not None:
            texts = task.item_texts(task.benchmark.load(), score.metric)
            assert all(texts[item].count("[") == 2 for item in score.item_ids)


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_headlines_are_among_the_metrics(task):
    assert task.headline in task.metrics
    assert all(metric.startswith((task.name, "spcd/")) for metric in task.metrics)


def test_every_occurrence_is_encoded_once(corpus):
    seen = Counter()

    def counting(occurrences):
        seen.update(occurrences)
        return letters(occurrences)

    scores_of(table(corpus), HELD, counting)
    assert set(seen.values()) == {1}


def test_one_sentence_with_two_targets_is_two_inputs(corpus):
    text = "the bank by the shore"
    twice = (Occurrence(text, 4, 8, "bank"), Occurrence(text, 16, 21, "shore"))
    pair = SimilarityPair("bank", "shore", twice, twice, 1.0, 2.0)
    other = SimilarityPair("cup", "mug", (used("cup"), used("mug")), (used("cup", 1), used("mug", 1)), 3.0, 2.0)
    seen = []

    def encode(occurrences):
        seen.extend(occurrences)
        return letters(occurrences)

    figures(replace(corpus, cosimlex={"en": (pair, other)}), ["cosimlex/en"], encode)
    assert len(seen) == 6


def test_test_labels_never_touch_the_threshold(corpus):
    """Every test label turned round: the figures change, the threshold does not."""
    test = corpus.pairs["test"]
    turned = replace(test, category=(test.category + 2) % len(CATEGORIES))
    corrupted = replace(corpus, pairs={**corpus.pairs, "test": turned})
    before, after = (figures(data, ["spcd", "dev/spcd"]) for data in (corpus, corrupted))
    assert before["spcd/threshold"].value == after["spcd/threshold"].value
    assert after["spcd/test/ba_all"].value == pytest.approx(1 - before["spcd/test/ba_all"].value)
    assert before["spcd/test/ba_all"].value != 0.5
    for metric, score in before.items():
        if metric.startswith("dev/"):
            assert after[metric].value == score.value


def test_test_vectors_never_touch_the_threshold(corpus):
    """Test occurrences of their own, encoded as noise."""
    alone = set(corpus.occurrences.take(np.unique(corpus.pairs["test"].anchor)))
    rng = np.random.default_rng(0)

    def noisy(occurrences):
        vectors = letters(occurrences)
        for row, occurrence in enumerate(occurrences):
            if occurrence in alone:
                vectors[row] = rng.normal(size=26)
        return vectors

    before, after = figures(corpus, ["spcd"]), figures(corpus, ["spcd"], noisy)
    assert before["spcd/threshold"].value == after["spcd/threshold"].value
    assert before["spcd/test/ba_all"].value != after["spcd/test/ba_all"].value


@pytest.mark.parametrize("part", ["val", "train"])
def test_the_other_labels_do_touch_it(corpus, part):
    pairs = {
        **corpus.pairs,
        part: replace(corpus.pairs[part], category=np.full_like(corpus.pairs[part].category, 3)),
    }
    assert (
        figures(replace(corpus, pairs=pairs), ["spcd"])["spcd/threshold"].value
        != figures(corpus, ["spcd"])["spcd/threshold"].value
    )


def test_points_of_lemmas_are_one_lemma_one_concept(corpus):
    """An encoder that knows only the lemma: its own threshold finds the rule, and rounding splits no lemma."""

    def points(occurrences):
        return np.stack([
            np.random.default_rng(list(occurrence.lemma.encode())).normal(size=50) for occurrence in occurrences
        ])  # fmt: skip

    pairs = dict(corpus.pairs)
    for split in ("train", "val"):  # mostly one concept where the lemma is the same, as in any corpus of senses
        kept = np.flatnonzero((pairs[split].category != 2) | (np.arange(len(pairs[split])) % 9 == 0))
        pairs[split] = pairs[split].take(kept)
    spread = replace(corpus, pairs=pairs, threshold=np.arange(len(pairs["train"])))
    found = figures(spread, ["spcd", "space"], points)
    for figure in ("ba_all", "f1_all", "ba_sl", "f1_sl"):
        assert found[f"spcd/test/{figure}"].value == found[f"spcd/1l1c/{figure}"].value
    assert found["spcd/dist_q95_sc_sl"].value == 0
    assert found["space/gap"].value < -0.5


def test_items_are_pairs_grouped_by_the_anchors_concept(corpus):
    score = figures(corpus, ["spcd"])["spcd/test/ba_all"]
    anchor, partner = score.item_ids[0].split(" | ")
    assert (anchor, partner) == ("bank br-a01:0:2", "bank br-a01:1:1")
    assert score.group_ids[0] == "n1"
    assert set(score.group_ids) == {"n1", "n2", "v1", "v2", "a1", "a2"}
    assert set(score.values) == {0.0, 1.0}


def test_pairs_of_one_lemma_are_grouped_by_it(corpus):
    found = figures(corpus, ["spcd"])
    for name in ("test/ba_sl", "test/f1_sl", "test/acc_dc_sl", "dist_mean_sc_sl"):
        score = found[f"spcd/{name}"]
        assert all(
            item.startswith(f"{lemma} ") for item, lemma in zip(score.item_ids, score.group_ids, strict=True)
        )
    assert set(found["spcd/test/acc_sc_dl"].group_ids) <= {"n1", "n2", "v1", "v2", "a1", "a2"}


def cosines_of_test(corpus):
    test, rows = corpus.pairs["test"], letters(corpus.occurrences.take(np.arange(len(corpus.occurrences))))
    return np.array([1 - cosine(rows[a], rows[b]) for a, b in zip(test.anchor, test.partner, strict=True)])


def test_the_figures_of_the_space_are_scipys_and_scikit_learns(corpus):
    """A concept that a single anchor holds is in no silhouette of concepts."""
    test, table = corpus.pairs["test"], corpus.occurrences
    found, near = figures(corpus, ["space"]), cosines_of_test(corpus)
    assert found["space/wup_all"].value == pytest.approx(spearmanr(near, corpus.wu_palmer).statistic)
    apart, together = ((1 - near[test.category == CATEGORIES.index(one)]).mean() for one in ("DC/SL", "SC/DL"))
    assert found["space/gap"].value == pytest.approx(apart - together)
    anchors = np.unique(test.anchor)
    concepts = table.concept[anchors]
    repeated = anchors[[np.sum(concepts == one) > 1 for one in concepts]]
    assert 0 < len(repeated) < len(anchors)
    rooted = anchors[table.pos[anchors] < 2]  # nouns and verbs, whose concepts have a unique beginner
    for figure, rows, labels in (("concept", repeated, table.concept), ("ub", rooted, table.lexname)):
        expected = silhouette_score(letters(table.take(rows)), labels[rows], metric="cosine")
        assert found[f"space/silhouette_{figure}"].value == pytest.approx(expected, abs=1e-6)


def test_agreement_with_the_taxonomy(corpus):
    """`all` holds every test pair, `same_pos` pairs of two nouns or two verbs: adjectives have no hierarchy."""
    found = figures(corpus, ["space"])
    test, pos = corpus.pairs["test"], corpus.occurrences.pos
    assert found["space/wup_all"].gold.tolist() == corpus.wu_palmer.tolist()
    rooted = (pos[test.anchor] == pos[test.partner]) & (pos[test.anchor] < 2)
    assert 0 < rooted.sum() < len(test)
    assert found["space/wup_same_pos"].gold.tolist() == corpus.wu_palmer[rooted].tolist()
    polysemous = test.category == CATEGORIES.index("DC/SL")
    assert 0 < polysemous.sum() < len(test)
    assert found["space/wup_dc_sl"].gold.tolist() == corpus.wu_palmer[polysemous].tolist()


def test_agreement_with_lin_leaves_out_what_has_no_hierarchy(corpus):
    """Pairs without a similarity are no items; where all are alike there is no figure."""
    similar = np.where(np.arange(len(corpus.wu_palmer)) % 3, corpus.wu_palmer, np.nan)
    (score,) = scores_of({"space/lin": lin(given(corpus), lambda _: similar)}, ["space/lin"], letters)
    known = ~np.isnan(similar)
    assert score.gold.tolist() == similar[known].tolist()
    assert score.value == pytest.approx(spearmanr(cosines_of_test(corpus)[known], similar[known]).statistic)
    flat = np.where(np.isnan(similar), np.nan, 0.5)
    assert not list(scores_of({"space/lin": lin(given(corpus), lambda _: flat)}, ["space/lin"], letters))


@pytest.mark.parametrize(
    ("categories", "missing"),
    [
        ((1, 3), {"gap", "wup_dc_sl"}),
        ((2, 3), {"gap"}),
        ((0,), {"gap", "wup_all", "wup_same_pos", "wup_dc_sl"}),  # of one concept, all are as similar as can be
        ((), {"gap", "silhouette_concept", "silhouette_ub", "wup_all", "wup_same_pos", "wup_dc_sl"}),
    ],
)
def test_a_figure_of_the_space_that_is_not_defined_is_left_out(corpus, categories, missing):
    kept = np.flatnonzero(np.isin(corpus.pairs["test"].category, categories))
    pairs = {**corpus.pairs, "test": corpus.pairs["test"].take(kept)}
    few = replace(corpus, pairs=pairs, wu_palmer=corpus.wu_palmer[kept])
    found = figures(few, ["space", "dev/spcd"])
    assert {f"space/{name}" for name in missing} == TASKS["space"].metrics.keys() - found.keys()
    assert all(np.isfinite(score.value) for score in found.values())


def test_word_in_context_takes_its_threshold_from_train_and_dev(corpus):
    before = figures(corpus, ["wic"])
    turned = {**corpus.wic, "test": tuple(replace(pair, same=not pair.same) for pair in corpus.wic["test"])}
    after = figures(replace(corpus, wic=turned), ["wic"])
    assert after["wic/threshold"].value == before["wic/threshold"].value
    assert after["wic/accuracy"].value == pytest.approx(1 - before["wic/accuracy"].value)
    assert list(before["wic/accuracy"].group_ids) == ["put", "cut", "let", "hit"]

    def distance(pair):
        return cosine(*letters([pair.first, pair.second]))

    known, test = [*corpus.wic["train"], *corpus.wic["dev"]], corpus.wic["test"]
    threshold = before["wic/threshold"].value
    worth = {
        at: sum((distance(pair) < at) == pair.same for pair in known)
        for at in (*np.linspace(0, 2, 999), threshold)
    }
    assert worth[threshold] == max(worth.values())
    right = [(distance(pair) < threshold) == pair.same for pair in test]
    assert before["wic/accuracy"].values.tolist() == right
    auc = roc_auc_score([pair.same for pair in test], [-distance(pair) for pair in test])
    assert before["wic/auc"].value == pytest.approx(auc)


def test_change_and_similarity_hand_on_what_they_are_given(corpus):
    found = figures(corpus, ["lscd/en", "cosimlex/en"])
    assert list(found["lscd/en/apd_spearman"].item_ids) == ["lane", "plane", "tree", "gas"]
    assert found["lscd/en/prt_spearman"].gold.tolist() == [0.0, 0.9, 0.2, 0.4]
    assert found["cosimlex/en/st1_pearson"].gold.tolist() == [1.0, 3.0, -1.0]
    near = [
        1 - cosine(*letters([used(a, number), used(b, number + 1)]))
        for a, b in (("cup", "mug"), ("dog", "cat"), ("sun", "sea"))
        for number in (0, 2)
    ]
    assert found["cosimlex/en/st2_spearman"].values == pytest.approx(near)


@pytest.mark.parametrize(
    "metric", ["spcd/test/ba_all", "spcd/test/f1_sl", "spcd/dist_mean_sc_dl", "space/wup_all"]
)
def test_items_serve_a_verdict(corpus, metric):
    """Three seeds of two arms: the crossed t and the two-level interval rest on the items of these scores."""

    def arm(noise):
        found = {}
        for seed in range(3):
            rng = np.random.default_rng([noise, seed])
            found[seed] = figures(
                corpus,
                ["spcd", "space"],
                lambda rows, rng=rng: letters(rows) + noise * rng.random((len(rows), 26)),
            )[metric]
        return found

    treatment, control = arm(1), arm(6)
    first = treatment[0]
    items = align_items(
        range(3),
        *(
            {seed: dict(zip(s.item_ids, s.values, strict=True)) for seed, s in runs.items()}
            for runs in (treatment, control)
        ),
        aggregate=first.aggregate,
        gold=None if first.gold is None else dict(zip(first.item_ids, first.gold, strict=True)),
        groups=dict(zip(first.item_ids, first.group_ids, strict=True)),
    )
    scores = [{seed: score.value for seed, score in runs.items()} for runs in (treatment, control)]
    pairs = replace(pair(*scores, larger_is_better=first.larger_is_better), items=items)
    claim = Claim(claim="C", treatment="a", control="b", metric=metric, expect="better")
    found = judge([(claim, pairs)])[0]
    assert (found.test, found.n_groups) == ("crossed t", len(set(first.group_ids)))
    assert found.two_level_low < found.two_level_high
    assert found.each_run == ()  # pairs of one concept are not independent


def test_ranking_agrees_with_sklearn_and_needs_no_threshold(corpus):
    found, pairs = figures(corpus, ["spcd/ranking"]), corpus.pairs["test"]
    vectors = letters(corpus.occurrences).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    near = (vectors[pairs.anchor] * vectors[pairs.partner]).sum(1)
    for column, rows in (("all", pairs.category >= 0), ("sl", pairs.same_lemma), ("dl", ~pairs.same_lemma)):
        assert found[f"spcd/ranking/auc_{column}"].value == pytest.approx(
            roc_auc_score(pairs.label[rows], near[rows])
        )
        assert found[f"spcd/ranking/ap_{column}"].value == pytest.approx(
            average_precision_score(pairs.label[rows], near[rows])
        )


def test_unseen_pairs_are_scored_by_the_threshold_of_all(corpus):
    whole = replace(corpus, unseen=np.arange(len(corpus.pairs["test"])))
    found = figures(whole, ["spcd", "spcd/unseen"])
    assert found["spcd/unseen/ba_all"].value == found["spcd/test/ba_all"].value
    assert figures(corpus, ["spcd/unseen"])["spcd/unseen/ba_all"].item_ids == [
        found["spcd/test/ba_all"].item_ids[row] for row in corpus.unseen
    ]
    assert scores_of(table(replace(corpus, unseen=np.zeros(0, np.int64))), ["spcd", "spcd/unseen"], letters)
