"""What every model family passes, whatever it trains: one small study of each, two arms that differ in their rate."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count, pairwise
from pathlib import Path

import numpy as np
import pytest

from orchestration.families.contract import Family
from orchestration.families.registry import FAMILIES, family
from orchestration.lanes.lane import execute
from orchestration.plan.plan import gather_facts, plan, prepare
from orchestration.reading.read_study import read_study
from orchestration.study.errors import StudyError
from orchestration.study.run import Job, Run, Scored, Trained
from tests.corpora.conftest import SMALL_EXCEPTIONS, small_entries, write_wordnet
from tests.corpora.semcor_samples import tagfiles, write_archive, write_lexicon
from tests.corpora.sources.test_gcide import dictionary
from tests.results import outcome
from tests.tiny import WORDS, tiny_backbone
from tests.trainers.masked_lm import masked_lm
from trainers.engine.world import Stopped, World

HEAD = """\
question: Does the family keep its word?
family: FAMILY
backbones: [PLACE/tiny]
seeds: [3, 4]
"""


@dataclass(frozen=True)
class Case:
    """A study of a family: its data, training and tasks. The untrained arm is `still`; `fast` only learns faster."""

    text: str
    write: Callable[[Path], object]


def _wordnet(place: Path) -> None:
    write_wordnet(place / "wordnet", small_entries(), SMALL_EXCEPTIONS)


def _semcor(place: Path) -> None:
    write_archive(place / "semcor3.0.tar.gz", tagfiles())
    write_lexicon(place / "wordnet")


def _pairs(place: Path) -> None:
    line = "main\tMSRvid\t2012\t0001\t{}\t{}\t{}\n"
    for split in ("train", "dev", "test"):
        rows = (line.format(gold % 6, a, b) for gold, (a, b) in enumerate(pairwise(WORDS)))
        (place / f"sts-{split}.csv").write_text("".join(rows))


def _sentences(place: Path) -> None:
    write_lexicon(place / "wordnet")
    lines = [f"the {one} runs to the old {other} ." for one, other in pairwise(WORDS[26:50])]
    (place / "lines.txt").write_text("\n".join(lines) + "\n")
    (place / "reranking").mkdir()
    rows = [{"query": line, "positive": [line[4:]], "negative": ["a cup", "the fire"]} for line in lines[:4]]
    (place / "reranking" / "SciDocsRR.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")


def _definitions(place: Path) -> None:
    masked_lm(place / "bert", "bert")
    entries = (
        f"{word.capitalize()} \\{word}\\, n.\n   the {WORDS[at - 1]} {word} of {WORDS[at - 3]}.\n"
        for at, word in enumerate(WORDS)
    )
    dictionary(place / "gcide", "\n".join(entries))


def _benchmark(place: Path) -> None:
    (place / "STSBenchmark").mkdir()
    rows = (f"main\tnews\t2012\t1\t{n % 6}\ta {a} is\tthe {b}\n" for n, (a, b) in enumerate(pairwise(WORDS)))
    (place / "STSBenchmark" / "sts-test.csv").write_text("".join(rows))


CASES = {
    "concept": Case(
        """\
data: {wordnet: PLACE/wordnet, n_hh: 20, n_id: 20, n_dev: 10}
train: {steps: 4, batch_size: 4, warmup: 1, max_length: 32}
arms: {still: {train: false}, plain: {}, fast: {learning_rate: 1.0e-3}}
evaluate: [t2d, stress]
""",
        _wordnet,
    ),
    "cale": Case(
        """\
data: {semcor: PLACE/semcor3.0.tar.gz, wordnet: PLACE/wordnet, min_count: 2, min_len: 2, val: 0.2, test: 0.3}
train: {steps: 4, batch_size: 4, max_length: 32}
arms: {still: {train: false}, plain: {}, fast: {learning_rate: 1.0e-3}}
evaluate: [spcd]
""",
        _semcor,
    ),
    "defsent": Case(
        """\
data: {sources: [gcide], gcide: PLACE/gcide, path: PLACE}
train: {steps: 4, batch_size: 4, max_length: 32}
arms: {still: {train: false}, plain: {}, fast: {learning_rate: 1.0e-3}}
evaluate: [d2w]
""",
        _definitions,
    ),
    "difficulty": Case(
        """\
data: {path: PLACE, tasks: [stsb]}
train: {steps: 8, batch_size: 32}
arms: {still: {form: baseline}, plain: {form: pair_lex}, fast: {form: pair_lex, learning_rate: 1.0e-2}}
evaluate: [similarity, retrieval]
""",
        _pairs,
    ),
    "frozen": Case(
        """\
data: {path: PLACE}
arms: {still: {readout: cls}}
evaluate: [sts/STS-B, geometry/STS-B]
""",
        _benchmark,
    ),
    "san": Case(
        """\
data: {sentences: PLACE/lines.txt, wordnet: PLACE/wordnet, path: PLACE}
train: {readout: mean, steps: 4, batch_size: 4, max_length: 32}
arms: {still: {train: false}, plain: {}, fast: {learning_rate: 1.0e-3}}
evaluate: [rerank/SciDocsRR]
""",
        _sentences,
    ),
}


@dataclass(frozen=True)
class Small:
    """A family with the runs of its study."""

    family: Family
    place: Path
    runs: tuple[Run, ...]

    def run(self, arm: str, seed: int | None = 3) -> Run:
        found = [run for run in self.runs if (run.arm, run.seed) == (arm, seed)]
        if not found and not any(run.seed is not None for run in self.runs):
            pytest.skip("no setting of this family trains")
        return found[0]


@pytest.fixture(scope="module", params=sorted(FAMILIES))
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Small]:
    name, place = request.param, tmp_path_factory.mktemp(request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEMRAY_CACHE", str(place / "cache"))
        patch.delenv("SEMRAY_DATA", raising=False)
        (place / "wordnet").mkdir()
        CASES[name].write(place)
        tiny_backbone(place / "tiny")
        study = read_study(_file(name, place))
        runs = plan(study, gather_facts(study)).runs
        prepare(study)
        yield Small(family(name), place, runs)


def _file(name: str, place: Path, old: str = "", new: str = "") -> Path:
    head = HEAD.replace("PLACE/tiny", "PLACE/bert") if name == "defsent" else HEAD
    text = (head + CASES[name].text).replace("FAMILY", name).replace("PLACE", str(place))
    assert not old or text.count(old) == 1
    (place / "study.yaml").write_text(text.replace(old, new) if old else text)
    return place / "study.yaml"


def test_it_has_all_that_is_asked_of_a_family(case: Small) -> None:
    asked = {name for name in vars(Family) if not name.startswith("_")}
    assert {name for name in asked if not hasattr(case.family, name)} == set()


def test_one_seed_gives_the_same_bits_twice_and_another_seed_others(case: Small, tmp_path: Path) -> None:
    run = case.run("plain")
    first, again, other = (outcome(execute(Job(runs=(one,)), World())) for one in (run, run, case.run("plain", 4)))
    assert first.values == again.values
    assert first.trained is not None
    assert again.trained is not None
    assert [(p.step, p.loss, p.terms) for p in first.curve] == [(p.step, p.loss, p.terms) for p in again.curve]
    assert [point.loss for point in first.curve] != [point.loss for point in other.curve]
    saved = [tmp_path / "one", tmp_path / "two"]
    for trained, folder in zip((first.trained, again.trained), saved, strict=True):
        assert trained.save_model is not None
        folder.mkdir()
        trained.save_model(folder)
    weights = [sorted(path.relative_to(saved[0]) for path in saved[0].rglob("*.safetensors"))]
    assert weights[0]
    assert all((saved[0] / name).read_bytes() == (saved[1] / name).read_bytes() for name in weights[0])


def test_arms_of_one_seed_see_the_same_batches_dropout_and_beginning(case: Small) -> None:
    """They differ in their rate alone, so before the first update they are one: the first loss is the same."""
    plain, fast = (outcome(execute(Job(runs=(case.run(arm),)), World())) for arm in ("plain", "fast"))
    assert plain.curve[0].loss == fast.curve[0].loss
    assert plain.curve[-1].loss != fast.curve[-1].loss


def test_a_run_that_was_stopped_goes_on_to_the_same_result(case: Small, tmp_path: Path) -> None:
    run, asked = case.run("plain"), count()
    if case.family.stacked:
        pytest.skip("a stack is trained in one go: what is missing of it is done again")
    world = World(scratch=tmp_path, checkpoint_every=1, stopping=lambda: next(asked) == 1)
    with pytest.raises(Stopped):
        list(execute(Job(runs=(run,)), world))
    resumed = outcome(execute(Job(runs=(run,)), World(scratch=tmp_path, checkpoint_every=1)))
    assert resumed.values == outcome(execute(Job(runs=(run,)), World())).values


def test_a_saved_model_scores_as_it_did_and_is_not_trained_again(case: Small, tmp_path: Path) -> None:
    run = case.run("plain")
    first = outcome(execute(Job(runs=(run,)), World()))
    assert first.trained is not None
    assert first.trained.save_model is not None
    first.trained.save_model(tmp_path)
    again = outcome(execute(Job(runs=(run,), models={run.id: tmp_path}), World()))
    assert again.trained is None
    assert again.values == pytest.approx(first.values, abs=1e-7, nan_ok=True)


def test_what_is_saved_opens_without_semray(case: Small, tmp_path: Path) -> None:
    """In SentenceTransformer or, where no encoder was trained, as the family's own product."""
    results = list(execute(Job(runs=(case.run("plain"),)), World()))
    (trained,) = (one for one in results if isinstance(one, Trained))
    assert trained.save_model is not None
    trained.save_model(tmp_path)
    texts = ["the old cat", "a small cup of water"]
    if case.family.stacked:
        from trainers.difficulty.pair_scorer import GatedPairScorer

        scorer = GatedPairScorer.load(tmp_path / "stsb")
        assert np.isfinite(scorer.score([(texts[0], texts[1])])).all()
        return
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(tmp_path), device="cpu", local_files_only=True, trust_remote_code=False)
    rows = model.encode(texts, show_progress_bar=False)
    assert rows.shape[0] == 2
    assert np.isfinite(rows).all()


def test_an_arm_without_training_is_scored_like_all_others(case: Small) -> None:
    run = case.run("still", None)
    results = list(execute(Job(runs=(run,)), World()))
    assert isinstance(results[0], Trained)
    assert (results[0].save_model, tuple(results[0].curve)) == (None, ())
    assert [one.task for one in results[1:] if isinstance(one, Scored)] == list(run.tasks)


def test_a_task_is_scored_alone_as_it_is_in_company(case: Small) -> None:
    run = case.run("still", None)
    together = outcome(execute(Job(runs=(run,)), World())).values
    for name in run.tasks:
        alone = replace(run, tasks={name: run.tasks[name]})
        assert alone.id == run.id
        found = outcome(execute(Job(runs=(alone,)), World())).values
        assert {metric: together[metric] for metric in found} == pytest.approx(found, nan_ok=True)


def test_a_broken_setting_is_refused_by_field_and_value(case: Small) -> None:
    name, old = case.run("plain").family, "1.0e-2" if case.family.stacked else "1.0e-3"
    with pytest.raises(StudyError, match=r"learning_rate = -1\.0e-3\n  accepted: .*above 0") as said:
        read_study(_file(name, case.place, old, "-1.0e-3"))
    assert "study.yaml" in str(said.value)
