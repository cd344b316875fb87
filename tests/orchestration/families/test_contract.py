"""Every family of this package passes the contract that `semray.testing` publishes: one small study of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from orchestration.families.registry import FAMILIES
from semray.testing import WORDS, Broken, FamilyContract, Small, prepared
from tests.corpora.conftest import write_small_wordnet
from tests.corpora.semcor_samples import tagfiles, write_archive, write_lexicon
from tests.corpora.sources.test_gcide import dictionary
from tests.trainers.masked_lm import SHAPES, masked_lm

SCRIPT = str(Path(__file__).parents[2] / "a_script.py")


@dataclass(frozen=True)
class Case:
    """A study of a family: its data, training and tasks. The untrained arm is `still`; `fast` only learns faster;
    `more`, where there is one, differs in what it adds to the loss.

    backbone: a folder that `write` makes; "tiny" is there. broken: a mistake in the study.
    """

    text: str
    write: Callable[[Path], object]
    backbone: str = "tiny"
    broken: Broken = FamilyContract.broken


def _wordnet(place: Path) -> None:
    write_small_wordnet(place / "wordnet")


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


def _triplets(place: Path) -> None:
    _sentences(place)
    rows = (f"the {a} runs to the {b} .,the {a} runs .,no {a} runs ." for a, b in pairwise(WORDS[26:50]))
    (place / "triplets.csv").write_text("sent0,sent1,hard_neg\n" + "\n".join(rows) + "\n")


def _definitions(place: Path) -> None:
    for shape in SHAPES:
        masked_lm(place / shape, shape)
    entries = (
        f"{word.capitalize()} \\{word}\\, n.\n   the {WORDS[at - 1]} {word} of {WORDS[at - 3]}.\n"
        for at, word in enumerate(WORDS)
    )
    dictionary(place / "gcide", "\n".join(entries))


def _graded(place: Path) -> None:
    _benchmark(place)
    rows = (f"a {a} is\tthe {b} of {a}\t{n % 6}\n" for n, (a, b) in enumerate(pairwise(WORDS[20:48])))
    (place / "pairs.tsv").write_text("one\tother\tgold\n" + "".join(rows))


def _benchmark(place: Path) -> None:
    (place / "STSBenchmark").mkdir()
    rows = (f"main\tnews\t2012\t1\t{n % 6}\ta {a} is\tthe {b}\n" for n, (a, b) in enumerate(pairwise(WORDS)))
    (place / "STSBenchmark" / "sts-test.csv").write_text("".join(rows))


DEFSENT = """\
data: {sources: [gcide], gcide: PLACE/gcide, path: PLACE}
train: {steps: 4, batch_size: 4, max_length: 32}
arms: {still: {train: false}, plain: {}, fast: {learning_rate: 1.0e-3}}
evaluate: [d2w]
"""
TAUGHT = "teachers: [a, b], rl_every: 2, "
HOSTS = {  # of the san family; each is trained plain and with aligned negatives
    "simcse": "",
    "simcse_sup": "host: simcse_sup, ",
    "sncse": "host: sncse, ",
    "rankcse": f"host: rankcse, {TAUGHT}",
    "rlrd": f"host: rlrd, {TAUGHT}",
}


def _san(host: str, negatives: bool) -> Case:
    sentences = "triplets.csv" if host == "simcse_sup" else "lines.txt"
    teachers = "{a: PLACE/tiny@mean, b: PLACE/tiny@idf}" if TAUGHT in HOSTS[host] else "{}"
    against = "san: hince, negatives: san, " if negatives else ""
    return Case(
        f"""\
data: {{sentences: PLACE/{sentences}, wordnet: PLACE/wordnet, path: PLACE, teachers: {teachers}}}
train: {{{HOSTS[host]}{against}readout: mean, steps: 4, batch_size: 4, max_length: 40}}
arms: {{still: {{train: false}}, plain: {{}}, fast: {{learning_rate: 1.0e-3}}}}
evaluate: [rerank/SciDocsRR]
""",
        _triplets if host == "simcse_sup" else _sentences,
    )


CASES = {  # what stands behind a stroke tells cases of one family apart
    "command": Case(
        """\
data: {watch: [SCRIPT], metrics: {accuracy: higher, loss: lower}, path: PLACE}
train: {timeout: 300.0, run: [python, SCRIPT, --seed, "{seed}", --out, "{out}", --backbone, "{backbone}", --learning_rate, "{learning_rate}"], learning_rate: 1.0e-2}
arms: {still: {train: false, run: []}, plain: {}, fast: {learning_rate: 1.0e-3}}
evaluate: [sts/STS-B, geometry/STS-B]
""",
        _benchmark,
        broken=Broken("timeout: 300.0", "timeout: -1.0", r"timeout = -1\.0\n  accepted: .*above 0"),
    ),
    "concept": Case(
        """\
data: {wordnet: PLACE/wordnet, n_hh: 20, n_id: 20, n_dev: 10}
train: {steps: 4, batch_size: 4, warmup: 1, max_length: 32}
arms: {still: {train: false}, plain: {}, fast: {learning_rate: 1.0e-3}, more: {hard_negatives: true}}
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
    **{f"defsent/{shape}": Case(DEFSENT, _definitions, shape) for shape in SHAPES},
    "difficulty": Case(
        """\
data: {path: PLACE, tasks: [stsb]}
train: {steps: 8, batch_size: 32}
arms: {still: {form: baseline}, plain: {form: pair_lex}, fast: {form: pair_lex, learning_rate: 1.0e-2}}
evaluate: [similarity, retrieval]
""",
        _pairs,
        broken=Broken("1.0e-2", "-1.0e-2", r"learning_rate = -1\.0e-2\n  accepted: .*above 0"),
    ),
    "frozen": Case(
        """\
data: {path: PLACE}
arms: {still: {readout: cls}}
evaluate: [sts/STS-B, geometry/STS-B]
""",
        _benchmark,
        broken=Broken("readout: cls", "readout: clz", r"readout = 'clz'\n  accepted: own, mean, cls, max"),
    ),
    "sentence_transformers": Case(
        """\
data: {datasets: {pairs: {source: PLACE/pairs.tsv, columns: [one, other], label: gold, largest: 5}}, path: PLACE}
train: {loss: CoSENTLoss, max_steps: 9, per_device_train_batch_size: 4}
arms: {still: {train: false}, plain: {}, fast: {learning_rate: 1.0e-3}}
evaluate: [sts/STS-B, geometry/STS-B]
""",
        _graded,
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


CASES |= {
    f"san/{host}{'+san' if negatives else ''}": _san(host, negatives)
    for host in HOSTS
    for negatives in (False, True)
    if (host, negatives) != ("simcse", False)  # which is `san` itself
}
OFTEN = {"san", "san/simcse+san", "san/sncse+san"}  # without labels and teachers; the others on demand


@contextmanager
def made(name: str, place: Path) -> Iterator[Small]:
    """A case's study in a folder of its own, ready to run."""
    case, (family, _, _) = CASES[name], name.partition("/")
    (place / "wordnet").mkdir()
    with prepared(family, case.text.replace("SCRIPT", SCRIPT), case.write, place, case.backbone) as small:
        yield small


def _in_turn(name: str) -> Any:
    rare = name.startswith("san") and name not in OFTEN
    return pytest.param(name, marks=pytest.mark.long) if rare else name


def test_no_family_is_without_a_case() -> None:
    assert {name.partition("/")[0] for name in CASES} == FAMILIES.keys()


class TestFamilies(FamilyContract):
    """All families, one after another."""

    @pytest.fixture(scope="class", params=map(_in_turn, sorted(CASES)))
    @classmethod
    def small(cls, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Small]:
        with made(request.param, tmp_path_factory.mktemp("family")) as small:
            yield small

    def broken_in(self, small: Small) -> Broken:
        family = small.runs[0].family
        return next(case.broken for name, case in CASES.items() if name.partition("/")[0] == family)
