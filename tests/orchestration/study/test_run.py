"""The names of runs and of their scores: a ledger is asked by them, so that they change with `SCHEMA` on purpose alone."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from orchestration.study.run import Run

RUN = Run(
    family="concept",
    arm="B1",
    backbone="tiny",
    seed=3,
    settings={"steps": 2, "betas": [0.9, 0.99]},
    data={"lexicons": ["wordnet"]},
    tasks={"t2d": "rows", "geometry": "words"},
    defining={"steps": 2, "name": "é"},
    backbone_fingerprint="bb",
    corpus_fingerprint="cc",
    look_at=(1, 2),
)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("run", "identity"),
    [
        (RUN, '"schema":2,"seed":3,"world":[1,"fp32",0]'),
        (replace(RUN, arm="other", backbone="renamed", settings={}), '"schema":2,"seed":3,"world":[1,"fp32",0]'),
        (replace(RUN, world_size=2, precision="bf16", zero_stage=1), '"schema":2,"seed":3,"world":[2,"bf16",1]'),
        (replace(RUN, seed=None, precision="bf16", world_size=2), '"schema":2,"seed":null,"world":["bf16"]'),
        (replace(RUN, stacked=True), '"schema":2,"seed":3,"stacked":true,"world":[1,"fp32",0]'),
        (
            replace(RUN, streams={"order": 7, "init": 1}),
            '"schema":2,"seed":3,"streams":{"init":1,"order":7},"world":[1,"fp32",0]',
        ),
    ],
)
@pytest.mark.parametrize(("corpus", "read"), [("cc", '"cc"'), ("", "null")])
def test_an_id_is_the_hash_of_a_text_that_stays(run: Run, identity: str, corpus: str, read: str) -> None:
    run = replace(run, corpus_fingerprint=corpus)
    defining = '"defining":{"name":"\\u00e9","steps":2}'
    assert run.id == digest(f'{{"backbone":"bb","corpus":{read},{defining},"family":"concept",{identity}}}')
    scores = f'{{"precision":"{run.precision}","rows":"rows","task":"t2d","training":"{run.id}"}}'
    assert run.entries[:2] == (run.id, f"{run.id}.{digest(scores)}")
    assert Run.from_dict(run.to_dict()) == run
