"""The sentence_transformers family: recipes as users of that library write them, through its own trainer."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpora.sentence_transformers.corpus import RecipeCorpus, load
from corpora.sentence_transformers.data import RecipeData
from evaluators.tasks import held_out
from orchestration.families.contract import Family, FirstStudy, RowsOf, Trainer
from orchestration.families.encoder_checks import length_slips
from orchestration.families.encoders import EncoderFamily
from orchestration.study.names import names_accepted
from orchestration.study.run import NO_BACKBONE
from search_spaces.sentence_transformers import SPACE
from trainers.encoders.backbones import backbone_fingerprint, check_precision, resolve_backbone
from trainers.sentence_transformers.losses import ALONE, LOSSES, Spec, guide_of, inner
from trainers.sentence_transformers.settings import Settings, defining

if TYPE_CHECKING:
    from orchestration.study.study import Study


def corpus(data: RecipeData) -> RecipeCorpus:
    return load(data, [backbone_fingerprint(resolve_backbone(name)) for name in data.guides.values()])


def trained(study: Study) -> Iterator[tuple[str, Settings, tuple[str, ...]]]:
    """Every arm that is trained, with its data sets."""
    for name, arm in study.arms.items():
        if arm.train:
            yield name, arm, arm.datasets or tuple(_training_sets(study.data))


def check_world(study: Study) -> None:
    """Raise ValueError for resources that this family does not support, such as several workers with GPUs."""
    resources = study.resources
    if resources.launcher == "train" and resources.workers_per_run == 1:
        raise ValueError(
            "resources.launcher = 'train'\n  accepted: auto or pool: one worker of this family trains in a lane"
        )
    if resources.workers_per_run > 1 and resources.gpus_per_run:
        raise ValueError(
            f"resources.workers_per_run = {resources.workers_per_run}\n"
            "  accepted: 1 with GPUs: this family has workers on CPUs alone"
        )
    if resources.deepspeed.zero_stage:
        raise ValueError(
            f"resources.deepspeed.zero_stage = {resources.deepspeed.zero_stage}\n"
            "  accepted: 0: the library's own trainer trains this family"
        )
    if NO_BACKBONE in study.backbones:
        raise ValueError("backbones: accepted: one encoder or more")


def check_workers(study: Study) -> None:
    """Raise ValueError for losses that several workers cannot share, or that need several workers."""
    several = study.resources.workers_per_run > 1
    for name, arm, sets in trained(study):
        for spec in arm.losses(sets).values():
            within = inner(spec)
            if several and within["name"] in ALONE:
                raise ValueError(
                    f"arms.{name}.loss: {within['name']} with resources.workers_per_run = "
                    f"{study.resources.workers_per_run}\n"
                    "  accepted: 1 worker: the library would let the workers' models drift apart"
                )
            if within.get("gather_across_devices") and not several:
                raise ValueError(
                    f"arms.{name}.loss: gather_across_devices: true\n"
                    "  accepted: with resources.workers_per_run of 2 or more"
                )
            if within.get("gather_across_devices") and len(sets) > 1:
                raise ValueError(
                    f"arms.{name}.loss: gather_across_devices: true with {len(sets)} data sets\n"
                    "  accepted: with one, since a step may have another set on each worker"
                )


def check_names(study: Study) -> None:
    """Raise ValueError for data sets, guides or columns of arms that the data block does not define."""
    known = _training_sets(study.data)
    for name, arm, sets in trained(study):
        if not sets:
            raise ValueError("data.datasets: accepted: one training set or more")
        per_set = (("weights", arm.weights), ("loss", _per_set(arm)))
        for field, named in (("datasets", sets), *per_set):
            for one in named:
                if one not in known:
                    held = "; of this one every row is held out" if one in study.data.datasets else ""
                    raise ValueError(
                        f"arms.{name}.{field} = {one}\n  accepted: {names_accepted(one, known)}{held}"
                    )
        for field, named in per_set:
            if named and set(named) != set(sets):
                raise ValueError(f"arms.{name}.{field}: accepted: for each of {', '.join(sets)}, and no other")
        if arm.weights and len(sets) == 1:
            raise ValueError(f"arms.{name}.weights: accepted: absent with one data set")
        columns = {column for one in sets for column in study.data.datasets[one].texts}
        for column in arm.prompts:
            if column not in columns:
                raise ValueError(f"arms.{name}.prompts = {column}\n  accepted: {', '.join(sorted(columns))}")
        for spec in arm.losses(sets).values():
            guide = guide_of(spec)
            if guide is not None and guide not in study.data.guides:
                offered = ", ".join(study.data.guides) or "none, for data.guides is empty"
                raise ValueError(f"arms.{name}.loss: guide = {guide}\n  accepted: {offered}")
        if arm.lora is not None and find_spec("peft") is None:
            raise ValueError(f"arms.{name}.lora: needs PEFT\n  accepted: after pip install 'semray[lora]'")


def check_forms(study: Study) -> None:
    """Raise ValueError for a loss whose data set has other columns or labels than it takes."""
    for name, arm, sets in trained(study):
        for one, spec in arm.losses(sets).items():
            kind, form = LOSSES[inner(spec)["name"]], study.data.datasets[one]
            told = f"arms.{name}.loss: {inner(spec)['name']} on {one}"
            fewest, most = kind.texts
            if not fewest <= len(form.texts) <= most:
                count = f"{fewest}" if fewest == most else f"{fewest} to {most}"
                raise ValueError(
                    f"{told}, which has {len(form.texts)} columns\n  accepted: {count} columns of texts"
                )
            if (kind.label == "none") != (form.labelled is None):
                wanted = "no label" if kind.label == "none" else f"a label with a {kind.label}"
                raise ValueError(f"{told}\n  accepted: a data set with {wanted}")
            if arm.batch_sampler == "group_by_label":
                sampler, size = f"arms.{name}.batch_sampler = group_by_label", arm.per_device_train_batch_size
                if kind.label != "class":
                    raise ValueError(f"{sampler}\n  accepted: with a loss of classes")
                if size < 4 or size % 2:
                    raise ValueError(f"{sampler}\n  accepted: with batches of 4 rows or more, an even number")


def check_guides(study: Study, backbones: Sequence[Path]) -> None:
    """Raise BackboneError for a guide that cannot read beside the runs, in their precision."""
    for name, guide in study.data.guides.items():
        check_precision(resolve_backbone(guide), study.resources.precision, f"data.guides.{name}")


def check_labels(study: Study, backbones: Sequence[Path], found: RecipeCorpus) -> None:
    """Classes are whole numbers, as many as the loss is told; no data set is smaller than a batch."""
    for name, arm, sets in trained(study):
        for one, spec in arm.losses(sets).items():
            rows, told = found.sets[one], f"arms.{name}.loss: {inner(spec)['name']} on {one}"
            if len(rows) < arm.per_device_train_batch_size:
                raise ValueError(
                    f"arms.{name}.per_device_train_batch_size = {arm.per_device_train_batch_size}\n"
                    f"  accepted: at most {len(rows)}, the rows of {one}"
                )
            labels = rows.labels or ()
            _check_classes(told, spec, labels if LOSSES[inner(spec)["name"]].label == "class" else ())
            pairs = sum(count > 1 for count in Counter(labels).values())
            if arm.batch_sampler == "group_by_label" and pairs < 2:
                raise ValueError(f"{told}: group_by_label\n  accepted: two classes or more with two rows each")
            _check_width(told, max(spec.get("matryoshka_dims", [0])), backbones)


def check_gathered(study: Study, backbones: Sequence[Path], found: RecipeCorpus) -> None:
    """Raise ValueError for a training that comes to the end of an epoch where a worker's batch has fewer rows than
    another's, or a step fewer batches: to gather these would abort, or wait for ever."""
    workers = study.resources.workers_per_run
    for name, arm, sets in trained(study):
        size, turns = arm.per_device_train_batch_size, arm.gradient_accumulation_steps
        for one, spec in arm.losses(sets).items():
            if not inner(spec).get("gather_across_devices") or arm.dataloader_drop_last:
                continue
            rows = len(found.sets[one])
            whole, rest = divmod(rows, size * workers)  # batches of every worker, and the rows beyond
            steps = arm.max_steps or math.ceil((arm.num_train_epochs or 0) * math.ceil((whole + 1) / turns))
            if (rest % size or (rest and turns > 1)) and steps * turns > whole:
                raise ValueError(
                    f"arms.{name}.loss: gather_across_devices: true: of {rows} rows of {one} {workers} workers"
                    " have other batches at the end of an epoch\n  accepted: dataloader_drop_last: true"
                )


def check_lora(study: Study, backbones: Sequence[Path], found: RecipeCorpus) -> None:
    """Raise ValueError for an arm whose LoRA finds no layers to update in a backbone."""
    from trainers.sentence_transformers.lora import check_targets

    for name, arm, _ in trained(study):
        if arm.lora is None:
            continue
        for folder in backbones:
            try:
                check_targets(folder, arm.lora)
            except ValueError as error:
                raise ValueError(f"arms.{name}.{error}") from None


def _check_width(told: str, widest: int, backbones: Sequence[Path]) -> None:
    """No more dimensions are asked than vectors have; of an encoder that projects them the library says so."""
    for folder in backbones:
        width = json.loads((folder / "config.json").read_text()).get("hidden_size")
        listed = folder / "modules.json"
        projected = listed.exists() and "Dense" in listed.read_text()
        if width is not None and widest > width and not projected:
            raise ValueError(f"{told}: matryoshka_dims\n  accepted: up to {width}, the width of {folder.name}")


def _check_classes(told: str, spec: Spec, labels: Sequence[float]) -> None:
    most = inner(spec).get("num_labels") or LOSSES[inner(spec)["name"]].classes
    for label in labels:
        if label < 0 or label != int(label) or (most is not None and label >= most):
            accepted = "whole numbers from 0" + (f" to {most - 1}" if most else "")
            raise ValueError(f"{told} has the label {label:g}\n  accepted: {accepted}")


def _training_sets(data: RecipeData) -> list[str]:
    """The data sets of which some rows are for training."""
    return [name for name, dataset in data.datasets.items() if dataset.trains]


def _per_set(arm: Settings) -> Mapping[str, Any]:
    return arm.loss if arm.loss_by_dataset and isinstance(arm.loss, Mapping) else {}


def told_of_rows(arm: Settings, found: RecipeCorpus) -> Mapping[str, Any]:
    """A note on the rows that an arm was not trained on because one of their texts is held out."""
    of_arm = [name for name in arm.datasets or found.left_out if found.left_out.get(name)]
    counts = ", ".join(f"{found.left_out[name]:,} of {name}" for name in of_arm)
    return {"rows not trained on, for a text that is held out": counts} if counts else {}


def rows_of(found: RecipeCorpus) -> list[RowsOf]:
    return [
        RowsOf(
            name,
            len(found.sets.get(name, ())),
            {"to measure on": held["test"], "to choose by": held["dev"]},
            {
                "for a text that is held out": found.left_out.get(name, 0),
                "beyond the sample": found.beyond.get(name, 0),
            },
        )
        for name, held in found.held.items()
    ]


def first_study(setting: str) -> FirstStudy:
    """An example on a file of pairs, a fifth of which is held out for tests."""
    pairs = {"source": "pairs.tsv", "columns": ["anchor", "positive"], "hold": {"test": 0.2}}
    return FirstStudy(
        data={"datasets": {"mine": pairs}},
        told={"datasets": "your file and its columns; nothing trains on what is held out"},
    )


def trainer() -> Trainer:
    from trainers.sentence_transformers import training

    return training


FAMILY: Family = EncoderFamily(
    settings=Settings,
    data=RecipeData,
    defining=defining,
    fingerprint=lambda data: corpus(data).fingerprint,
    load=corpus,
    rows_of=rows_of,
    trainer=trainer,
    own_tasks=held_out.tasks,
    told_of_corpus=told_of_rows,
    checks=(check_labels, check_gathered, check_lora),
    backbone_checks=(check_guides,),
    first_checks=(check_world, check_names, check_workers, check_forms),
    slips=length_slips(defining, by_library=True),
    first_study=first_study,
    space=SPACE,
    by_library=True,
)
