"""Studies of sentence-transformers' recipes: what is refused before anything is trained, and what makes an id."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from orchestration.families.registry import family
from orchestration.plan.plan import gather_facts, plan, prepare
from orchestration.plan.slips import slips
from orchestration.reading.read_study import read_study
from orchestration.study.errors import StudyError
from orchestration.study.run import Job, Scored
from semray.testing import WORDS
from tests.tiny import tiny_backbone
from trainers.engine.world import World

STUDY = """\
question: Which loss?
family: sentence_transformers
backbones: [PLACE/tiny]
seeds: 2
data:
  datasets:
    pairs: {source: PLACE/pairs.tsv, columns: [one, other], label: gold, largest: 5}
    bare: {source: PLACE/pairs.tsv, columns: [one, other]}
  guides: {small: PLACE/tiny}
  path: PLACE
train: {max_steps: 4, per_device_train_batch_size: 4}
arms:
  still: {train: false}
  cosent: {loss: CoSENTLoss, datasets: [pairs]}
  gist: {loss: {name: GISTEmbedLoss, guide: small}, datasets: [bare]}
  both:
    loss: {pairs: {name: AnglELoss}, bare: {name: MultipleNegativesRankingLoss}}
    multi_dataset_batch_sampler: weighted
    weights: {pairs: 1, bare: 2}
    prompts: {one: "query: "}
evaluate: [sts/STS-B]
compare:
  - {claim: H1, treatment: both, control: cosent, metric: sts/STS-B/spearman, expect: better}
resources: {lanes: 1}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("recipes")
    tiny_backbone(place / "tiny")
    rows = [f"a {a} is\tthe {b} of {a}\t{n % 6}\n" for n, (a, b) in enumerate(pairwise(WORDS[20:48]))]
    (place / "pairs.tsv").write_text("one\tother\tgold\n" + "".join(rows))
    (place / "STSBenchmark").mkdir()
    lines = (f"main\tnews\t2012\t1\t{n % 6}\ta {a}\tthe {b}\n" for n, (a, b) in enumerate(pairwise(WORDS)))
    (place / "STSBenchmark" / "sts-test.csv").write_text("".join(lines))
    return place


def planned(place: Path, text: str = STUDY) -> dict[str, str]:
    """Arm -> id at seed 0, after every check."""
    (place / "study.yaml").write_text(text.replace("PLACE", str(place)))
    study = read_study(place / "study.yaml")
    runs = plan(study, gather_facts(study)).runs
    prepare(study)
    return {run.arm: run.id for run in runs if not run.seed}


def test_what_can_change_a_model_changes_its_id_alone(place: Path) -> None:
    ids = planned(place)
    assert len(set(ids.values())) == 4
    other = planned(place, STUDY.replace("{loss: CoSENTLoss,", "{loss: {name: CoSENTLoss, scale: 30.0},"))
    assert {arm for arm in ids if ids[arm] != other[arm]} == {"cosent"}
    fewer = planned(place, STUDY.replace("largest: 5", "largest: 6"))
    assert {arm for arm in ids if ids[arm] != fewer[arm]} == {"cosent", "gist", "both"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "datasets: [pairs]",
            "datasets: [pairz]",
            r"arms\.cosent\.datasets = pairz\n  accepted: .*did you mean pairs",
        ),
        ("datasets: [pairs]", "datasets: [bare]", r"CoSENTLoss on bare\n  accepted: a data set with a label"),
        (
            "datasets: [bare]}",
            "datasets: [pairs]}",
            r"GISTEmbedLoss on pairs\n  accepted: a data set with no label",
        ),
        ("guide: small", "guide: large", r"guide = large\n  accepted: small"),
        (
            "CoSENTLoss",
            "CoSENT",
            r"accepted: MultipleNegativesRankingLoss, .*; not .CoSENT. \(did you mean CoSENTLoss",
        ),
        ("loss: CoSENTLoss", "loss: TripletLoss", r"which has 2 columns\n  accepted: 3 columns of texts"),
        (
            "[one, other]}",
            "[one, other, more, most]}",
            r"which has 4 columns\n  accepted: 2 to 3 columns of texts",
        ),
        ("loss: CoSENTLoss", "loss: ContrastiveLoss", r"has the label 0\.2\n  accepted: whole numbers from 0"),
        (
            "loss: CoSENTLoss, datasets: [pairs]",
            "batch_sampler: group_by_label, loss: CoSENTLoss, datasets: [pairs]",
            "with a loss of classes",
        ),
        (
            "{loss: CoSENTLoss, datasets: [pairs]}",
            "{loss: {name: MatryoshkaLoss, matryoshka_dims: [64], loss: CoSENTLoss}, datasets: [pairs]}",
            "up to 32, the width of tiny",
        ),
        (
            "largest: 5}",
            "largest: 1}\n    more: {source: PLACE/none.tsv, columns: [a]}",
            r"datasets\.more\.source = .*: no such file, seen from /",
        ),
        (
            "largest: 5}",
            "largest: 5, hold: {test: 1.0}}",
            r"datasets = pairs\n  accepted: bare; of this one every row is",
        ),
        (
            "largest: 5}",
            "largest: 5, hold: {test: 1.5}}",
            r"pairs\.hold\.test = 1\.5\n  accepted: a number above 0 up to 1",
        ),
        ("label: gold", "lable: gold", r"data\.datasets\.pairs\.lable = .gold.\n  accepted: .*, label, largest"),
        ("weights: {pairs: 1, bare: 2}", "weights: {pairs: 1}", "weights: accepted: for each of pairs, bare"),
        ("bare: {name: MultipleNegativesRankingLoss}", "", "loss: accepted: for each of pairs, bare"),
        ("prompts: {one:", "prompts: {two:", r"prompts = two\n  accepted: one, other"),
        ("columns: [one, other]}", "colums: [one, other]}", r"datasets\.\w+\.colums = .*\n.*did you mean columns"),
        ("per_device_train_batch_size: 4", "per_device_train_batch_size: 40", "at most 27, the rows of pairs"),
        (
            "resources: {lanes: 1}",
            "resources: {workers_per_run: 2, gpus_per_run: 2}",
            "this family has workers on CPUs alone",
        ),
        ("resources: {lanes: 1}", "resources: {launcher: train}", "one worker of this family trains in a lane"),
        (
            "guide: small",
            "guide: small, gather_across_devices: true",
            r"gather_across_devices: true\n  accepted: with resources\.workers_per_run of 2 or more",
        ),
        ("resources: {lanes: 1}", "resources: {deepspeed: {zero_stage: 1}}", "the library's own trainer trains"),
        ("guides: {small: PLACE/tiny}", "guides: {small: PLACE/none}", "no such folder"),
        ("max_steps: 4", "max_step: 4", "did you mean max_steps"),
    ],
)
def test_plan_refuses(place: Path, old: str, new: str, said: str) -> None:
    assert old in STUDY
    with pytest.raises(StudyError, match=said):
        planned(place, STUDY.replace(old, new))


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (
            "{name: SoftmaxLoss, num_labels: 2}",
            r"SoftmaxLoss with resources\.workers_per_run = 2\n  accepted: 1 worker",
        ),
        (
            "{name: MatryoshkaLoss, matryoshka_dims: [8], loss: BatchAllTripletLoss}",
            r"BatchAllTripletLoss with resources\.workers_per_run = 2",
        ),
    ],
)
def test_losses_that_workers_would_learn_apart_are_refused(place: Path, loss: str, said: str) -> None:
    several = STUDY.replace("resources: {lanes: 1}", "resources: {workers_per_run: 2}")
    with pytest.raises(StudyError, match=said):
        planned(place, several.replace("loss: CoSENTLoss", f"loss: {loss}"))


def test_a_warm_up_as_long_as_the_training_is_warned_of(place: Path) -> None:
    def told(train: str) -> list[str]:
        (place / "st.yaml").write_text(STUDY.replace("max_steps: 4", train).replace("PLACE", str(place)))
        return [line for line in slips(read_study(place / "st.yaml")) if "warmup" in line]

    (line,) = told("max_steps: 4, warmup_steps: 4")
    assert line.endswith("warmup_steps = 4 lasts as long as the training of 4 steps: the learning rate only rises")
    assert told("max_steps: 4, warmup_steps: 3") == []
    assert told("max_steps: 4, warmup_steps: 4, lr_scheduler_type: constant") == []
    assert told("max_steps: null, num_train_epochs: 1, warmup_steps: 400") == []


def test_batches_that_workers_cannot_gather_are_refused(place: Path) -> None:
    """Of 27 rows two workers get three batches of four each, and then one gets three rows: to gather them aborts.
    Three steps never come there."""
    gathering = STUDY.replace("resources: {lanes: 1}", "resources: {workers_per_run: 2}")
    gathering = gathering.replace("guide: small}", "guide: small, gather_across_devices: true}")
    for given in ({}, {"max_steps": "null", "num_train_epochs": 1}, {"gradient_accumulation_steps": 2}):
        with pytest.raises(
            StudyError, match=r"of 27 rows of bare 2 workers have .*\n  accepted: dataloader_drop_last"
        ):
            planned(place, arm_of(gathering, **given))
    for given in ({"dataloader_drop_last": "true"}, {"max_steps": 3}, {"per_device_train_batch_size": 9}):
        planned(place, arm_of(gathering, **given))


def arm_of(text: str, **given: Any) -> str:
    """The study with more settings of the arm that gathers."""
    told = "".join(f", {name}: {value}" for name, value in given.items())
    return text.replace("datasets: [bare]}", f"datasets: [bare]{told}}}")


def test_lora_without_peft_is_refused_in_words(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from orchestration.families import sentence_transformers

    monkeypatch.setattr(sentence_transformers, "find_spec", lambda name: None)
    with pytest.raises(StudyError, match=r"lora: needs PEFT\n  accepted: after pip install 'semray\[lora\]'"):
        planned(place, STUDY.replace("{loss: CoSENTLoss,", "{lora: {r: 2}, loss: CoSENTLoss,"))


@pytest.mark.parametrize(
    ("lora", "said"),
    [
        ("{target_modules: [quary]}", r'holds "quary"\n  accepted: with tiny a list of dense, key, query, value'),
        (
            "{target_modules: [query, valu]}",
            r'holds "valu"\n  accepted: with tiny a list of dense, key, query, value',
        ),
        (
            "{target_modules: [LayerNorm]}",
            r'= \["LayerNorm"\]\n  accepted: with tiny a list of dense, key, query, value',
        ),
        ("{target_modules: []}", r"= \[\]\n  accepted: a list of at least one name of layers or null"),
    ],
)
def test_lora_of_layers_that_a_backbone_lacks_is_refused(place: Path, lora: str, said: str) -> None:
    pytest.importorskip("peft")
    with pytest.raises(StudyError, match=rf"arms\.cosent\.lora\.target_modules {said}"):
        planned(place, STUDY.replace("{loss: CoSENTLoss,", f"{{lora: {lora}, loss: CoSENTLoss,"))
    kept = "{lora: {target_modules: [key, self.query, encoder.layer.0.output.dense]}, loss: CoSENTLoss,"
    planned(place, STUDY.replace("{loss: CoSENTLoss,", kept))  # as PEFT takes names


def test_lora_without_names_is_refused_where_peft_chooses_none(place: Path, tmp_path: Path) -> None:
    """It knows BERT's layers, and none of MPNet's."""
    pytest.importorskip("peft")
    text = STUDY.replace("{loss: CoSENTLoss,", "{lora: {}, loss: CoSENTLoss,")
    planned(place, text)
    copied = of_kind("mpnet", place, tmp_path)
    with pytest.raises(
        StudyError, match=r"lora\.target_modules = null\n  accepted: with mpnet a list of dense, k, "
    ):
        planned(place, text.replace("[PLACE/tiny]", f"[{copied}]"))


def test_backbones_and_guides_that_cannot_run_in_bf16_are_refused(place: Path, tmp_path: Path) -> None:
    half = STUDY.replace("lanes: 1", "lanes: 1, precision: bf16")
    copied = of_kind("deberta", place, tmp_path)
    said = r": .*deberta is of the kind deberta, .*\n  accepted: resources\.precision: fp32"
    with pytest.raises(StudyError, match=f"backbones{said}"):
        planned(place, half.replace("[PLACE/tiny]", f"[{copied}]"))
    with pytest.raises(StudyError, match=f"data.guides.small{said}"):
        planned(place, half.replace("small: PLACE/tiny", f"small: {copied}"))
    planned(place, half.replace("bf16", "fp32").replace("[PLACE/tiny]", f"[{copied}]"))


def of_kind(kind: str, place: Path, folder: Path) -> Path:
    """The tiny backbone with the configuration of another kind: its weights are not looked into before a lane."""
    copied = shutil.copytree(place / "tiny", folder / kind)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    (copied / "config.json").write_text(json.dumps({"model_type": kind, "vocab_size": 400, **sizes}))
    return copied


@pytest.mark.parametrize(
    ("length", "told"), [("", []), (", max_seq_length: 3", ["texts cut at max_seq_length"])], ids=str
)
def test_texts_that_are_cut_are_told_by_the_library_s_name_of_the_length(
    place: Path, length: str, told: list[str]
) -> None:
    (place / "cut.yaml").write_text(
        STUDY.replace("{train: false}", f"{{train: false{length}}}").replace("PLACE", str(place))
    )
    study = read_study(place / "cut.yaml")
    run = next(one for one in plan(study, gather_facts(study)).runs if one.arm == "still")
    _, scored = family("sentence_transformers").execute(Job(runs=(run,)), World())
    assert isinstance(scored, Scored)
    assert [*scored.notes] == told


def test_rows_of_ones_own_are_held_out_and_measured_on(place: Path) -> None:
    held = (
        STUDY.replace(
            "label: gold, largest: 5}", "label: gold, largest: 5, hold: {test: 0.2, dev: 0.2, by: other}}"
        )
        .replace("[sts/STS-B]", "[held/pairs]")
        .replace("sts/STS-B/spearman", "held/pairs/spearman")
    )
    before, after = planned(place), planned(place, held)
    assert before["still"] == after["still"]
    assert before["cosent"] != after["cosent"]
    assert before["gist"] != after["gist"]  # its set is of the same file, and loses the texts that are held out
    with pytest.raises(StudyError, match=r"held/bare"):
        planned(place, held.replace("evaluate: [held/pairs]", "evaluate: [held/pairs, held/bare]"))
    with pytest.raises(StudyError, match=r"held/pairs/auc has no figure in this corpus"):
        planned(place, held.replace("metric: held/pairs/spearman", "metric: held/pairs/auc"))
    with pytest.raises(StudyError, match=r"in pairs.hold a test and a dev"):
        planned(place, held.replace("test: 0.2", "test: 0.9"))


@pytest.mark.parametrize(
    ("hold", "task", "said"),
    [
        ("", "held/pairs", r"evaluate\[0\] = 'held/pairs'\n  accepted: held/pairs comes with `hold:` under data\.datasets\.pairs"),
        (", hold: {}", "dev/held/pairs", r"accepted: dev/held/pairs comes with `dev` in `hold:` under data\.datasets\.pairs"),
        (", hold: {}", "held/pears", r"accepted: held/NAME, for one of data\.datasets that has `hold:`: pairs, bare"),
        (", hold: {test: 20}", "held/pairs", r"hold\.test = 20\n  accepted: a number above 0 up to 1"),
        (", hold: {test: 0.9, dev: 0.2}", "held/pairs", r"accepted: in pairs\.hold a test and a dev of at most 1 together"),
    ],
)  # fmt: skip
def test_what_brings_a_task_of_ones_own_rows_is_said_once(place: Path, hold: str, task: str, said: str) -> None:
    """Nothing is said of the task where its set is what is wrong, nor of the figures of a task that is not there."""
    text = STUDY.replace("largest: 5}", f"largest: 5{hold}}}").replace("[sts/STS-B]", f"[{task}]")
    with pytest.raises(StudyError, match=said) as refused:
        planned(place, text.replace("sts/STS-B/spearman", f"{task}/spearman"))
    assert str(refused.value).count("accepted:") == 1


def test_a_claim_on_rows_that_are_not_held_out_is_told_what_holds_them_out(place: Path) -> None:
    said = r"sts/STS-B/[^;\n]*; held/pairs comes with `hold:` under data\.datasets\.pairs"
    with pytest.raises(StudyError, match=said):
        planned(place, STUDY.replace("sts/STS-B/spearman", "held/pairs/spearman"))
