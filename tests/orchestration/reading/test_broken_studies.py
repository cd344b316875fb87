"""Broken studies and data, one mistake each: `semray plan` names field, value and what is accepted, and exits with 2."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from corpora.concept.corpus import load
from corpora.concept.data import ConceptData
from corpora.sources.wordnet_files import DEBIAN
from corpora.store.errors import CorpusError
from orchestration.commands.cli import main
from orchestration.commands.terminal import WRONG_REQUEST
from orchestration.reading.read_study import read_study
from tests.tiny import tiny_backbone

ROOT = Path(__file__).resolve().parents[3]
GOOD = """\
question: Do hard negatives calibrate a concept encoder without improving its ranking?
family: concept
backbones: [BACKBONE]
seeds: 8
data: {split: in-domain}
train: {steps: 300, learning_rate: 2.0e-5}
arms:
  B0: {train: false}
  B1: {hard_negatives: true}
  B1-noHN: {hard_negatives: false}
evaluate: [t2d, stress]
compare:
  - {claim: H1, treatment: B1, control: B0, metric: t2d/recall@10, expect: better}
  - {claim: H2, treatment: B1, control: B1-noHN, metric: t2d/recall@10, expect: equivalent, margin: 0.01}
search:
  space: concept
  arms: [B1]
  dimensions: {hn_margin: {low: 0.1, high: 0.3}, temperature: all}
  trials: 4
  objective: {metric: dev/t2d/mrr, mode: max}
  seeds: [100, 101]
resources: {workers_per_run: 1, deepspeed: {zero_stage: 1}}
"""


H2 = "{claim: H2, treatment: B1, control: B1-noHN, metric: t2d/recall@10, expect: equivalent, margin: 0.01}"
PART = "{claim: a, treatment: B1, control: B0, metric: t2d/mrr, expect: better}"
PART_TOO = "{claim: b, treatment: B1, control: B1-noHN, metric: t2d/mrr, expect: better}"
SCRIPT = """\
question: Does a larger x score better?
family: command
seeds: 2
data: {watch: [train.py], metrics: {acc: higher}}
train: {run: [python, train.py, "{seed}", "{x}"]}
arms: {A: {x: 1}, B: {x: 2}}
evaluate: [scores]
compare:
  - {claim: H1, treatment: B, control: A, metric: scores/acc, expect: better}
"""
OF_SCRIPT = (
    "search: {space: command, arms: [A], dimensions: {x: [1, 2]}, trials: 2, seeds: [5],"
    " objective: {metric: dev/paws/auc, mode: max, confirm: scores/acc}"
)


@dataclass(frozen=True)
class Broken:
    """A study, as text or bytes, and what the message about it must hold."""

    text: str | bytes
    says: tuple[str, ...]


def changed(old: str, new: str, *says: str) -> Broken:
    """The good study with one thing written otherwise."""
    assert GOOD.count(old) == 1, old
    return Broken(GOOD.replace(old, new), says)


def changed_script(old: str, new: str, *says: str) -> Broken:
    """The study of a script with one thing written otherwise."""
    assert SCRIPT.count(old) == 1, old
    return Broken(SCRIPT.replace(old, new), says)


def added(text: str, *says: str) -> Broken:
    return Broken(GOOD + text, says)


MARGIN = "a number above 0"
OF_BOTH = "t2d/mrr, sts/STS-B/spearman"  # 0 to 1, and -1 to 1
STEPS = "a whole number from 1 to 10,000,000, days of training at any speed"
STUDIES = {
    # what YAML makes of a file
    "empty": Broken("", ("is empty", "a mapping that begins with `question:`")),
    "only a comment": Broken("# to do\n", ("is empty",)),
    "a list": Broken("- question: a\n", (":1: holds a list, not a mapping",)),
    "one word": Broken("studies\n", ("holds one value, not a mapping",)),
    "a tab": changed("  B0: {train", "\tB0: {train", ":8: a tab where YAML wants spaces", "indentation by spaces only"),
    "an open bracket": Broken(GOOD + "backup: [a,\n", ("accepted: valid YAML",)),
    "not UTF-8": Broken(GOOD.encode().replace(b"calibrate", b"calibr\xe9"), (":1: byte 0xe9 is not UTF-8",)),
    "a control character": changed("improving", "impr\x07ving", ":1: the character '\\x07' may not stand in YAML"),
    "two documents": Broken(GOOD + "---\n" + GOOD, ("a second document begins here", "one document")),
    "a Python tag": changed("[t2d, stress]", "!!python/tuple [t2d]", "the tag tag:yaml.org,2002:python/tuple", "no tags"),
    "a wrong tag": changed("seeds: 8", "seeds: !!int eight", "no tags"),
    "an unknown alias": changed("data: {split: in-domain}", "data: *none", ":5: found undefined alias"),
    "an endless alias": changed("data: {split: in-domain}", "data: &x {split: *x}", ":5: an alias inside its own anchor"),
    "a template left in": changed("[BACKBONE]", "{{ backbone }}", ":3: found unhashable key"),
    "a key twice": added("seeds: 3\n", ":23: seeds is written twice", "it stands in line 4 too"),
    "an arm twice": changed("  B1:", "  B1: {steps: 3}\n  B1:", ":10: arms.B1 is written twice", "line 9"),
    "an arm called no": changed("  B1:", "  no: {steps: 3}\n  B1:", ":9: arms.no: YAML reads the key no as bool", "write 'no'"),
    "an arm called 1": changed("  B1:", "  1: {steps: 3}\n  B1:", ":9: arms.1: YAML reads the key 1 as int", "write '1'"),
    "a colon at the end of a name": changed("[t2d, stress]", "[t2d: , stress]", "evaluate[0] = {t2d: null}", "as a mapping: write t2d, or"),
    "a number beyond all numbers": changed("2.0e-5", "1.0e+999", "train.learning_rate = 1.0e+999", "a finite number"),
    "not a number": changed("2.0e-5", ".nan", "train.learning_rate = .nan", "a finite number"),
    # names of fields, and values of the wrong kind
    "no question": changed(GOOD.splitlines()[0] + "\n", "", "question is missing", "what the study is to answer"),
    "an empty question": changed(GOOD.splitlines()[0], "question: ''", "question = ''", "what the study is to answer"),
    "no arms": Broken(GOOD.split("arms:")[0] + "evaluate: [t2d]\n", ("arms is missing", "a mapping of arm names")),
    "an unknown key": added("sedes: 3\n", ":23: sedes = 3", "(did you mean seeds?)"),
    "an unknown setting": changed("steps: 300", "step: 300", ":6: train.step = 300", "(did you mean steps?)"),
    "an unknown setting of an arm": changed("B1: {hard_negatives", "B1: {hard_negative", ":9: arms.B1.hard_negative = true", "(did you mean hard_negatives?)"),
    "an unknown data field": changed("{split: in-domain}", "{lexicon: [wordnet]}", "data.lexicon = [wordnet]", "(did you mean lexicons?)"),
    "an unknown lexicon": changed("{split: in-domain}", "{lexicons: [wordnt]}", ":5: data.lexicons", "wordnt", "accepted: wordnet"),
    "an unknown split": changed("in-domain", "indomain", "data.split = 'indomain'", "(did you mean in-domain?)"),
    "a negative size": changed("split: in-domain", "n_id: -4", "data.n_id = -4", "a whole number from 0"),
    "a number in eights": changed("steps: 300", "steps: 060", ":6: train.steps: YAML reads 060 as 48\n  accepted: 60, or '060' as text"),
    "a number in sixties": changed("steps: 300", "steps: 1:30", ":6: train.steps: YAML reads 1:30 as 90\n  accepted: a number without colons"),
    "a fraction in sixties": changed("2.0e-5", "1:30.5", ":6: train.learning_rate: YAML reads 1:30.5 as 90.5"),
    "a rate as text": changed("2.0e-5", "3e-5", ":6: train.learning_rate = '3e-5'", "a number", "YAML reads 3e-5 as text, write 3.0e-5"),
    "a rate in quotes": changed("2.0e-5", "'0.01'", "train.learning_rate = '0.01'", "without quotes: 0.01"),
    "a rate of nothing": changed("2.0e-5", "0", "train.learning_rate = 0", "accepted:"),
    "half a step": changed("300", "300.5", "train.steps = 300.5", "a whole number"),
    "no step": changed("300", "0", "train.steps = 0", "accepted:"),
    "true for a number": changed("300", "true", "train.steps = true", "a whole number"),
    "1 for true": changed("train: false", "train: 0", "arms.B0.train = 0", "true or false"),
    "1 for true in an arm": changed("hard_negatives: true", "hard_negatives: 1", "arms.B1.hard_negatives = 1\n  accepted: true or false\n"),
    "a word for true": changed("hard_negatives: true", "hard_negatives: 'yes'", "arms.B1.hard_negatives = 'yes'\n  accepted: true or false\n"),
    "false in quotes": changed("train: false", "train: 'False'", "arms.B0.train = 'False'\n  accepted: true or false; write false without quotes\n"),
    "steps in quotes": changed("300", "'300'", f"train.steps = '300'\n  accepted: {STEPS}; without quotes: 300\n"),
    "steps with an exponent": changed("300", "3e2", f"train.steps = '3e2'\n  accepted: {STEPS}; YAML reads 3e2 as text, write 300\n"),
    "half a step in quotes": changed("300", "'300.5'", f"train.steps = '300.5'\n  accepted: {STEPS}\n"),
    "steps without end": changed("300", "1e999", f"train.steps = '1e999'\n  accepted: {STEPS}\n"),
    "no for a number": changed("300", "no", f"train.steps = no\n  accepted: {STEPS}\n"),
    "a mapping for a number": changed("300", "{a: }", f"train.steps = {{a: null}}\n  accepted: {STEPS}\n"),
    "a rate with an exponent that lacks its sign": changed("2.0e-5", "2.5e5", "as text, write 2.5e+5\n"),
    "true for a name": changed("in-domain", "true", "data.split = true\n  accepted: in-domain, source-holdout\n"),
    "a number for a name": changed("[t2d, stress]", "[t2d, 5]", "evaluate[1] = 5\n  accepted: text; write '5' in quotes\n"),
    "yes for a name": changed("[t2d, stress]", "[t2d, yes]", "evaluate[1] = yes\n  accepted: text; YAML reads yes as true, write 'yes'\n"),
    "a mapping for a name": changed("[t2d, stress]", "[t2d, {stress: 1}]", "evaluate[1] = {stress: 1}\n  accepted: text\n"),
    "settings under train of an arm": changed("B0: {train: false}", "B0: {train: {steps: 3}}", "arms.B0.train = {steps: 3}", "true or false"),
    "an unknown readout": changed("B0: {train: false}", "B0: {train: false, readout: men}", "arms.B0.readout = 'men'", "accepted: mean, cls, max, weighted, gated (did you mean mean?)\n"),
    "an arm that is a word": changed("B0: {train: false}", "B0: frozen", "arms.B0 = 'frozen'", "accepted: a mapping"),
    "train as a list": changed("train: {steps: 300, learning_rate: 2.0e-5}", "train: [300]", "train = [300]", "a mapping"),
    # names that must exist
    "an unknown family": changed("family: concept", "family: concpt", ":2: family = 'concpt'", "(did you mean concept?); one that another package brings, once that is installed"),
    "no family": changed("family: concept\n", "", "family is missing", "concept"),
    "backbones as a word": changed("[BACKBONE]", "all-MiniLM-L6-v2", "backbones = 'all-MiniLM-L6-v2'", "a list of encoders"),
    "no backbone": changed("[BACKBONE]", "[]", "backbones = []", "a list of encoders"),
    "a backbone twice": changed("[BACKBONE]", "[a, a]", "backbones[1] = 'a'", "each only once"),
    "an unknown task": changed("[t2d, stress]", "[t2d, stres]", ":11: evaluate[1] = 'stres'", "(did you mean stress?)"),
    "a task twice": changed("[t2d, stress]", "[t2d, t2d]", "evaluate[1] = 't2d'", "entry 0 is t2d too"),
    "an unknown treatment": changed("treatment: B1, control: B0", "treatment: b1, control: B0", ":13: compare[H1].treatment = 'b1'", "(did you mean B1?)"),
    "an unknown metric": changed("metric: t2d/recall@10, expect: better", "metric: t2d/recal@10, expect: better", "compare[H1].metric = 't2d/recal@10'", "(did you mean t2d/recall@10?)"),
    "a metric of no task": changed("metric: t2d/recall@10, expect: better", "metric: pair_auc, expect: better", "compare[H1].metric = 'pair_auc'", "comes with `evaluate: pair_auc`"),
    "a comparison on an unknown backbone": changed("expect: better}", "expect: better, backbone: bert}", "compare[H1].backbone = 'bert'"),
    # comparisons
    "an unknown expectation": changed("expect: better", "expect: beter", ":13: compare[H1].expect = 'beter'", "(did you mean better?)"),
    "an expectation that YAML reads as no": changed("expect: better", "expect: no", "compare[H1].expect = no", "YAML reads no as false"),
    "equivalent without a margin": changed(", margin: 0.01", "", ":14: compare[H2].margin is missing", "the largest difference that counts as none"),
    "a negative margin": changed("margin: 0.01", "margin: -0.01", "compare[H2].margin = -0.01", MARGIN),
    "a margin that cannot fail": changed("margin: 0.01", "margin: 2", "compare[H2].margin = 2", "below 1: t2d/recall@10 lies between 0 and 1, so no difference is larger"),
    "an effect that cannot be": changed("expect: better}", "expect: better, min_effect: 1.0}", "compare[H1].min_effect = 1.0", "below 1: t2d/recall@10 lies between 0 and 1"),
    "an arm against itself": changed("control: B1-noHN", "control: B1", "compare[H2].control = 'B1'", "another arm than treatment"),
    "a joint claim without a name": changed(H2, f"{{all: [{PART}, {PART_TOO}]}}", "compare[1].claim is missing", "a name for the claim"),
    "a joint claim by a name that is taken": changed(H2, f"{{claim: H1, all: [{PART}, {PART_TOO}]}}", "compare[H1].claim = 'H1'", "a name that no other comparison has"),
    "two parts of one name": changed(H2, f"{{claim: J, all: [{PART}, {PART}]}}", "compare[J].all[a].claim = 'a'", "a name that no other comparison has"),
    "a part that is a word": changed(H2, f"{{claim: J, all: [{PART}, b]}}", "compare[J].all[1] = 'b'", "a mapping"),
    "a part with a slip": changed(H2, f"{{claim: J, all: [{PART}, {PART_TOO.replace('better', 'beter')}]}}", "compare[J].all[b].expect = 'beter'", "(did you mean better?)"),
    "a field of a difference in a joint claim": changed(H2, f"{{claim: J, metric: t2d/mrr, all: [{PART}, {PART_TOO}]}}", "compare[J].metric = 't2d/mrr'", "accepted: claim, at_least, family, all\n"),
    "on no part": changed(H2, f"{{claim: J, at_least: 0, all: [{PART}, {PART_TOO}]}}", "compare[J].at_least = 0", "a whole number from 1"),
    "a task that no arm can read": changed("[t2d, stress]", "[t2d, stress, wic]", ":11: evaluate holds wic, which reads occurrences", "tasks that read texts or layers, as arms.B0 does"),
    "parts that are a word": changed(H2, "{claim: J, all: B1}", ":14: compare[J].all = 'B1'", "a list of claims"),
    "on more tasks than are named": changed("metric: t2d/recall@10, expect: better", "metric: 'each(t2d/mrr, t2d/recall@10)', at_least: 3, expect: better", "compare[H1].at_least = 3\n  accepted: 1 to 2, as many tasks as each(t2d/mrr, t2d/recall@10) names"),
    "a margin beyond a mean": Broken(GOOD.replace("stress]", "stress, sts/STS-B]").replace("t2d/recall@10, expect: equivalent, margin: 0.01", f"'mean({OF_BOTH})', expect: equivalent, margin: 1.5"), ("compare[H2].margin = 1.5", f"below 1.5: mean({OF_BOTH}) lies between -0.5 and 1")),
    "a margin beyond one of each": Broken(GOOD.replace("stress]", "stress, sts/STS-B]").replace("t2d/recall@10, expect: equivalent, margin: 0.01", f"'each({OF_BOTH})', expect: equivalent, margin: 1"), ("compare[H2].margin = 1", f"below 1: each({OF_BOTH}) lies between 0 and 1")),
    "a claim twice": changed("claim: H2", "claim: H1", ":14: compare[H1].claim = 'H1'", "a name that no other comparison has"),
    "no claim": changed("claim: H1, ", "", "compare[0].claim is missing", "a name for the claim"),
    "a comparison that is a word": changed("  - {claim: H1, treatment: B1, control: B0, metric: t2d/recall@10, expect: better}", "  - B1 > B0", "compare[0] = 'B1 > B0'", "a mapping"),
    "a matched control without its signal": changed("expect: better}", "expect: better, matched_control: B1-noHN}", "compare[H1].signal is missing", "what the matched control lacks"),
    "twin arms": changed("{hard_negatives: false}", "{hard_negatives: true}", ":10: arms.B1-noHN is the same recipe as arms.B1"),
    # seeds, search, resources
    "no seeds": changed("seeds: 8", "seeds: 0", ":4: seeds = 0", "a whole number from 1"),
    "a list of no seeds": changed("seeds: 8", "seeds: []", ":4: seeds = []", "at least one seed"),
    "seeds as true": changed("seeds: 8", "seeds: true", "seeds = true", "a whole number from 1"),
    "seeds without a digit": changed("seeds: 8", "seeds: 0b_", ":4: seeds = '0b_'", "a whole number from 1"),
    "a rate without a digit": changed("2.0e-5", "-0x_", ":6: train.learning_rate = '-0x_'", "a number above 0"),
    "an escape beyond all characters": changed("family: concept", 'family: "\\UFFFFFFFF"', "study.yaml:2: ", "accepted: plain text"),
    "a seed twice": changed("seeds: 8", "seeds: [1, 2, 1]", "seeds[2] = 1", "each only once"),
    "a negative seed": changed("seeds: 8", "seeds: [-1]", "seeds[0] = -1", "a whole number from 0"),
    "a most below the start": changed("seeds: 8", "seeds: {start: 8, max: 6}", "seeds.max = 6", "above start, which is 8"),
    "selection seeds among the confirmation seeds": changed("[100, 101]", "[100, 7]", "search.seeds[1] = 7", "not among `seeds`"),
    "a search on the test set": changed("dev/t2d/mrr", "t2d/mrr", "search.objective.metric = 't2d/mrr'", "(did you mean dev/t2d/mrr?)"),
    "no space": changed("  space: concept\n", "", "search.space is missing", "the name of the study's family"),
    "one seed where a list belongs": changed("[100, 101]", "100", "search.seeds = 100", "a list of whole numbers from 0"),
    "a range in numbers that YAML reads as text": changed("low: 0.1, high", "low: 1e-1, high", "hn_margin = {low: 1e-1, high: 0.3}", "within 0.05 to 0.5; YAML reads 1e-1 as text, write 1.0e-1"),
    "a list in numbers that YAML reads as text": changed("temperature: all", "temperature: [5e-2, 0.1]", "YAML reads 5e-2 as text, write 5.0e-2"),
    "dimensions by a word": changed("{hn_margin: {low: 0.1, high: 0.3}, temperature: all}", "all", "search.dimensions = 'all'", "paper, or a mapping of settings to `all`"),
    "a part of a batch that is none": changed("steps: 300", "steps: 300, micro_batch: 0", "train.micro_batch = 0", "a whole number from 1 or auto"),
    "a part of a batch by a wrong word": changed("steps: 300", "steps: 300, micro_batch: atuo", "a whole number from 1 or auto or null (did you mean auto?)"),
    "an unknown space": changed("space: concept", "space: san", "search.space = 'san'", "accepted: concept"),
    "a search of what is not trained": changed("arms: [B1]", "arms: [B0]", "search.arms[0] = 'B0'", "accepted: B1, B1-noHN"),
    "a dimension that is none": changed("temperature: all", "temperatur: all", "search.dimensions.temperatur = 'all'", "(did you mean temperature?)"),
    "a dimension beyond its space": changed("high: 0.3", "high: 3.0", "search.dimensions.hn_margin = {low: 0.1, high: 3.0}", "within 0.05 to 0.5"),
    "a dimension upside down": changed("low: 0.1, high: 0.3", "low: 0.3, high: 0.1", "search.dimensions.hn_margin", "low below high"),
    "a dimension that is a word": changed("temperature: all", "temperature: some", "search.dimensions.temperature = 'some'", "all, {low: …, high: …} or a list"),
    "a dimension that changes nothing": changed("temperature: all", "layers: [2, 4]", "search.dimensions.layers changes nothing", "only with readout = weighted"),
    "a search away from its arm": changed("temperature: all", "temperature: [0.02, 0.1]", "search.dimensions.temperature", "hold 0.05, where arms.B1 is"),
    "a grid over a range": changed("trials: 4", "trials: 4\n  sampler: grid", "search.sampler = 'grid'", "a list of values for each of temperature, hn_margin"),
    "the wrong way": changed("mode: max", "mode: min", "search.objective.mode = 'min'", "max: larger is better"),
    "an objective without a test": changed("dev/t2d/mrr", "dev/d2t/mrr", "search.objective.metric = 'dev/d2t/mrr'", "one that `evaluate` measures on test data, or with `confirm` set to such: t2d/recall@1"),
    "a confirmation on development data": changed("mode: max", "mode: max, confirm: dev/t2d/mrr", "search.objective.confirm = 'dev/t2d/mrr'", "on test data"),
    "a confirmation on development data that are measured": Broken(GOOD.replace("[t2d, stress]", "[t2d, dev/t2d]").replace("mode: max", "mode: max, confirm: dev/t2d/mrr"), ("search.objective.confirm = 'dev/t2d/mrr'", "set to such: t2d/recall@1")),
    "a search where nothing is measured on test data": Broken(GOOD.replace("[t2d, stress]", "[dev/t2d]").replace("metric: t2d", "metric: dev/t2d"), ("search.objective.metric = 'dev/t2d/mrr'", "such: it names none")),
    "a confirmation the other way round": Broken(GOOD.replace("[t2d, stress]", "[t2d, stress, geometry]").replace("mode: max", "mode: max, confirm: geometry/anisotropy"), ("search.objective.confirm = 'geometry/anisotropy'", "better when larger, as dev/t2d/mrr is")),
    "a race of several objectives": changed("{metric: dev/t2d/mrr, mode: max}", "[{metric: dev/t2d/mrr, mode: max}, {metric: dev/t2d/recall@1, mode: max}]\n  race: 0.2", "search.race = 0.2", "0 or absent with several objectives"),
    "no step to stop at": changed("trials: 4", "trials: 4\n  stop_early: {rule: median, at: []}", "search.stop_early.at = []", "one step or more"),
    "steps to stop at that go back": changed("trials: 4", "trials: 4\n  stop_early: {rule: median, at: [5, 3]}", "search.stop_early.at = [5, 3]", "each above the one before"),
    "a rule of stopping that is none": changed("trials: 4", "trials: 4\n  stop_early: {rule: hyperband, at: [2]}", "search.stop_early.rule = 'hyperband'", "median, asha"),
    "a stop at the end": changed("trials: 4", "trials: 4\n  stop_early: {rule: asha, at: [2, 300]}", "search.stop_early.at = [2, 300]", "steps below 300, which B1 is trained for"),
    "a stop of several objectives": changed("{metric: dev/t2d/mrr, mode: max}", "[{metric: dev/t2d/mrr, mode: max}, {metric: dev/t2d/recall@1, mode: max}]\n  stop_early: {rule: asha, at: [2]}", "search.stop_early", "absent with several objectives"),
    "no point at once": changed("trials: 4", "trials: 4\n  at_once: 0", "search.at_once = 0", "a whole number from 1"),
    "a budget for less than a point": changed("trials: 4", "trials: 4\n  budget: 1", "search.budget = 1", "at least 2 runs"),
    "a search on several workers": changed("workers_per_run: 1", "workers_per_run: 2", "resources.workers_per_run = 2", "1 with a search"),
    "a search on no backbone": changed("trials: 4", "trials: 4\n  backbone: mpnet", "search.backbone = 'mpnet'"),
    "a search around no arm": changed("arms: [B1]", "arms: []", "search.arms = []", "at least one trained arm"),
    "a search around one arm twice": changed("arms: [B1]", "arms: [B1, B1]", "search.arms[1] = 'B1'", "entry 0 is B1 too"),
    "no objective": changed("{metric: dev/t2d/mrr, mode: max}", "[]", "search.objective = []", "at least one objective"),
    "an objective twice": changed("{metric: dev/t2d/mrr, mode: max}", "[{metric: dev/t2d/mrr, mode: max}, {metric: dev/t2d/mrr, mode: max}]", "search.objective[1]", "entry 0 is dev/t2d/mrr too"),
    "no selection seed": changed("[100, 101]", "[]", "search.seeds = []", "at least one selection seed"),
    "a selection seed twice": changed("[100, 101]", "[100, 100]", "search.seeds[1] = 100", "entry 0 is 100 too"),
    "the grid of a paper without one": changed("{hn_margin: {low: 0.1, high: 0.3}, temperature: all}", "paper", "search.dimensions = 'paper'", "no grid of a paper is known here"),
    "a search in which nothing moves an arm": Broken(GOOD.replace("arms: [B1]", "arms: [B1, B1-noHN]").replace(", temperature: all", ""), ("search.dimensions = {hn_margin: {low: 0.1, high: 0.3}}", "at least one setting that matters for B1-noHN")),
    "a search in groups of its own": changed("workers_per_run: 1", "launcher: train", "resources.launcher = 'train'", "auto or pool with a search"),
    "a search of a family without a space": Broken("question: q?\nfamily: frozen\nbackbones: [all-MiniLM-L6-v2]\narms: {mean: {readout: mean}}\nevaluate: [sts/STS-B]\nsearch: {space: frozen, arms: [mean], trials: 2, seeds: [100], objective: {metric: dev/sts/STS-B/spearman, mode: max}}\n", ("6: search = {space: frozen", "no such block: the family frozen has no search space")),
    "a search of a script without a dimension": changed_script("seeds: 2", "seeds: 2\n" + OF_SCRIPT.replace("{x: [1, 2]}", "{}") + "}", "search.dimensions = {}", "a mapping of placeholders to"),
    "a search of a script from nowhere": changed_script("seeds: 2", "seeds: 2\n" + OF_SCRIPT.replace("{x: [1, 2]}", "{x: [1, 2], y: [1, 2]}") + "}", "search.dimensions.y = [1, 2]", "a placeholder that arms.A has a value for"),
    "a stop within a command": changed_script("seeds: 2", f"seeds: 2\n{OF_SCRIPT}, stop_early: {{rule: median, at: [1]}}}}", "search.stop_early = {rule: median, at: [1]}", "nothing looks into a command"),
    "a stack of commands": changed_script("seeds: 2", "seeds: 2\nresources: {runs_per_stack: 2}", "resources.runs_per_stack = 2", "1: runs of this family train one by one"),
    "a stop within a stack": Broken((ROOT / "studies" / "difficulty_search.yaml").read_text() + "  stop_early: {rule: median, at: [50]}\n", ("search.stop_early = {rule: median, at: [50]}", "its runs train as one stack")),
    "no trial": changed("trials: 4", "trials: 0", "search.trials = 0", "a whole number from 1"),
    "an unknown ZeRO stage": changed("zero_stage: 1", "zero_stage: 4", "resources.deepspeed.zero_stage = 4", "from 0 up to 3"),
    "half a worker": changed("workers_per_run: 1", "workers_per_run: 0.5", "resources.workers_per_run = 0.5", "a whole number from 1"),
    "two workers in a pooled lane": changed("workers_per_run: 1", "workers_per_run: 2, launcher: pool", "resources.launcher = 'pool'", "auto or train"),
    "a stack in a search": changed("workers_per_run: 1, deepspeed: {zero_stage: 1}", "runs_per_stack: 4", "resources.runs_per_stack = 4", "1 with a search"),
    "a stack whose state is shared out": changed("workers_per_run: 1", "runs_per_stack: 4", "resources.runs_per_stack = 4", "ZeRO stage 0: a stack trains in one lane"),
    "one GPU for two workers": changed("workers_per_run: 1", "workers_per_run: 2, gpus_per_run: 1", "resources.gpus_per_run = 1", "0, or 2: one GPU for each of the workers"),
    "two GPUs for one worker": changed("workers_per_run: 1", "workers_per_run: 1, gpus_per_run: 2", "resources.gpus_per_run = 2", "0 to 1 with one worker"),
    "a share of a GPU in a group": changed("workers_per_run: 1", "launcher: train, gpus_per_run: 0.5", "resources.gpus_per_run = 0.5", "0 or 1 with launcher train"),
    "memory beyond numbers": changed("workers_per_run: 1", "memory_gib_per_run: 1.0e+300", "resources.memory_gib_per_run = 1", "up to 1000000"),
    "an unknown precision": changed("workers_per_run: 1", "precision: fp16", "resources.precision = 'fp16'", "auto, fp32, bf16"),
}  # fmt: skip


@pytest.fixture
def plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[Path], str]:
    """`semray plan` on a file; returns what it says, having checked that it refused in words and touched nothing."""

    def plan(path: Path) -> str:
        ledger = tmp_path / "ledger"
        assert main(["plan", str(path), "--ledger", str(ledger)]) == WRONG_REQUEST
        printed = capsys.readouterr()
        assert printed.out == ""
        assert "Traceback" not in printed.err
        assert not ledger.exists()
        ray = sys.modules.get("ray")
        assert ray is None or not ray.is_initialized()
        return printed.err

    return plan


def written(folder: Path, broken: Broken) -> Path:
    path = folder / "study.yaml"
    path.write_bytes(broken.text if isinstance(broken.text, bytes) else broken.text.encode())
    return path


@pytest.mark.parametrize("broken", STUDIES.values(), ids=STUDIES.keys())
def test_a_broken_study(broken: Broken, tmp_path: Path, plan: Callable[[Path], str]) -> None:
    path = written(tmp_path, broken)
    said = plan(path)
    for part in (str(path), *broken.says):
        assert part in said, said
    assert said.count("\n  accepted: ") == 1, said


TWO = "[{metric: dev/t2d/mrr, mode: mx}, {metric: dev/t2d/mr, mode: max}]"
SEARCHES: dict[str, dict[str, tuple[str, ...]]] = {  # what is written, by what stood there -> how each mistake begins
    "fields": {
        "trials: 4": ("trails: 4", "search.trials is missing", "search.trails = 4"),
        "arms: [B1]": ("arms: [B2]", "search.arms[0] = 'B2'"),
        "high: 0.3": ("high: 3.0", "search.dimensions.hn_margin = {low: 0.1, high: 3.0}"),
        "[100, 101]": ("[100, 7]", "search.seeds[1] = 7"),
    },
    "an objective": {
        "dev/t2d/mrr, mode: max": ("t2d/mrr, mode: mx", "search.objective.metric = 't2d/mrr'", "search.objective.mode = 'mx'"),
        "space: concept": ("space: san", "search.space = 'san'"),
        "trials: 4": ("trials: 4\n  stop_early: {rule: best, at: [400]}", "search.stop_early.rule = 'best'", "search.stop_early.at = [400]"),
    },
    "several objectives": {
        "{metric: dev/t2d/mrr, mode: max}": (f"{TWO}\n  race: 0.2", "search.objective[0].mode = 'mx'", "search.objective[1].metric = 'dev/t2d/mr'", "search.race = 0.2"),
        "temperature: all": ("temprature: all", "search.dimensions.temprature = 'all'"),
    },
    "a confirmation": {
        "mode: max": ("mode: min, confirm: t2d/mr", "search.objective.mode = 'min'", "search.objective.confirm = 't2d/mr'"),
        "  seeds: [100, 101]\n": ("", "search.seeds is missing"),
        "{hn_margin: {low: 0.1, high: 0.3}, temperature: all}": ("{temperature: [0.02], layers: [2, 4]}", "search.dimensions.temperature = [0.02]", "search.dimensions.layers changes nothing"),
    },
    "beside a broken arm": {
        "B1-noHN: {hard_negatives: false}": ("B1-noHN: {hard_negative: false}", "arms.B1-noHN.hard_negative = false"),
        "trials: 4": ("trials: 0\n  backbone: mpnet", "search.trials = 0", "search.backbone = 'mpnet'"),
        "temperature: all": ("temperature: [0.02, 0.1]", "search.dimensions.temperature = [0.02, 0.1]"),
    },
}  # fmt: skip


@pytest.mark.parametrize("mistakes", SEARCHES.values(), ids=SEARCHES.keys())
def test_all_mistakes_of_a_search_are_told_at_once(
    mistakes: dict[str, tuple[str, ...]], tmp_path: Path, plan: Callable[[Path], str]
) -> None:
    """And of nothing else: what is wrong lends no blame to what rests on it."""
    text = GOOD
    for old, (new, *_) in mistakes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    said = plan(written(tmp_path, Broken(text, ())))
    begun = [begin for _, *begins in mistakes.values() for begin in begins]
    assert [begin for begin in begun if f": {begin}" not in said] == [], said
    assert said.count("\n  accepted: ") == len(begun), said


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("trials: 4", "trials: 4\n  budget: 2"),
        ("trials: 4", "trials: 4\n  stop_early: {rule: median, at: [299]}"),
        ("{metric: dev/t2d/mrr, mode: max}", "[{metric: dev/t2d/mrr, mode: max}, {metric: dev/t2d/recall@1, mode: max}]\n  race: 0.0"),
        ("[100, 101]", "[8, 9]"),
        ("high: 0.3", "high: 0.5"),
        ("low: 0.1", "low: 0.2"),
        ("expect: better}", "expect: better, min_effect: 0.99}"),
        ("seeds: 8", "seeds: {start: 8, max: 9}"),
    ],
)  # fmt: skip
def test_what_is_just_within_a_limit_is_read(old: str, new: str, tmp_path: Path) -> None:
    """The selection seeds begin behind the study's, the arm stands at an end of its dimension, and so on."""
    assert read_study(written(tmp_path, changed(old, new))).search is not None


@pytest.mark.parametrize("name", ["empty", "a tab", "a rate as text", "an unknown metric", "twin arms"])
def test_a_broken_study_as_a_user_meets_it(name: str, tmp_path: Path) -> None:
    broken = STUDIES[name]
    command = [sys.executable, "-m", "orchestration", "plan", str(written(tmp_path, broken))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for part in broken.says:
        assert part in done.stderr
    assert not (tmp_path / "ledger").exists()


# The file itself.


def test_a_study_that_is_not_there(tmp_path: Path, plan: Callable[[Path], str]) -> None:
    (tmp_path / "quickstart.yaml").write_text(GOOD)
    (tmp_path / "other.yaml").write_text(GOOD)
    said = plan(tmp_path / "quikstart.yaml")
    assert "quikstart.yaml: no such file" in said
    assert "holds other, quickstart (did you mean quickstart?)" in said


def test_a_study_in_a_folder_that_is_not_there(tmp_path: Path, plan: Callable[[Path], str]) -> None:
    assert "no such file\n  accepted: the .yaml file of a study" in plan(tmp_path / "none" / "study.yaml")


def test_a_folder_for_a_study(tmp_path: Path, plan: Callable[[Path], str]) -> None:
    (tmp_path / "quickstart.yaml").write_text(GOOD)
    said = plan(tmp_path)
    assert "is a folder" in said
    assert f"{tmp_path} holds quickstart" in said


def test_a_study_that_cannot_be_read(tmp_path: Path, plan: Callable[[Path], str]) -> None:
    loop = tmp_path / "loop.yaml"
    loop.symlink_to(loop)
    assert "loop.yaml: cannot be read (Too many levels of symbolic links)" in plan(loop)


def test_a_file_of_another_kind(tmp_path: Path, plan: Callable[[Path], str]) -> None:
    (tmp_path / "study.json").write_text("{}")
    assert "ends in '.json'" in plan(tmp_path / "study.json")


# What the study points to.


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_backbone(tmp_path_factory.mktemp("tiny"), layers=1, width=8, heads=1)


@pytest.fixture
def study(tmp_path: Path) -> Callable[..., Path]:
    def study(backbones: str, data: str = "{}") -> Path:
        text = GOOD.replace("[BACKBONE]", f"[{backbones}]").replace("{split: in-domain}", data)
        return written(tmp_path, Broken(text, ()))

    return study


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.delenv("SEMRAY_BACKBONES", raising=False)


@pytest.mark.usefixtures("offline")
def test_an_unknown_backbone_offline(study: Callable[..., Path], plan: Callable[[Path], str]) -> None:
    said = plan(study("no-such-encoder"))
    assert "'no-such-encoder' was not found" in said
    assert "HF_HUB_OFFLINE is set" in said
    assert "to get it: " in said
    assert "'all-MiniLM-L6-v3' was not found (did you mean all-MiniLM-L6-v2?)" in plan(study("all-MiniLM-L6-v3"))


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize(
    ("missing", "says"),
    [
        ("config.json", "has no config.json"),
        ("model.safetensors", "has no model.safetensors (pickled weights are never loaded)"),
    ],
)
def test_a_backbone_with_a_part_missing(
    missing: str,
    says: str,
    backbone: Path,
    tmp_path: Path,
    study: Callable[..., Path],
    plan: Callable[[Path], str],
) -> None:
    folder = shutil.copytree(backbone, tmp_path / "encoder")
    (folder / missing).unlink()
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x02")
    assert says in plan(study(str(folder)))


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("config_sentence_transformers.json", "{", ""),
        ("config.json", "{", ""),
        ("config.json", "[]", " has a config.json that is no JSON object\n"),
        (
            "config_sentence_transformers.json",
            "[]",
            " has a config_sentence_transformers.json that is no JSON object\n",
        ),
        ("tokenizer_config.json", '"x"', " has a tokenizer_config.json that is no JSON object\n"),
    ],
)
def test_a_backbone_whose_description_is_damaged(
    file: str,
    text: str,
    says: str,
    backbone: Path,
    tmp_path: Path,
    study: Callable[..., Path],
    plan: Callable[[Path], str],
) -> None:
    folder = shutil.copytree(backbone, tmp_path / "encoder")
    (folder / file).write_text(text)
    assert f"{folder}{says}" in plan(study(str(folder)))


def test_one_backbone_under_two_names(
    backbone: Path, tmp_path: Path, study: Callable[..., Path], plan: Callable[[Path], str]
) -> None:
    twin = shutil.copytree(backbone, tmp_path / "encoder")
    assert "are the same weights" in plan(study(f"{backbone}, {twin}"))


def test_a_wordnet_that_is_not_there(
    backbone: Path, study: Callable[..., Path], plan: Callable[[Path], str]
) -> None:
    said = plan(study(str(backbone), "{wordnet: /no/such/wordnet}"))
    assert "'/no/such/wordnet' holds no WordNet" in said
    assert "to get it:" in said


def test_a_folder_with_a_part_of_wordnet(
    backbone: Path, tmp_path: Path, study: Callable[..., Path], plan: Callable[[Path], str]
) -> None:
    (tmp_path / "wordnet").mkdir()
    (tmp_path / "wordnet" / "data.noun").write_text("")
    said = plan(study(str(backbone), f"{{wordnet: {tmp_path / 'wordnet'}}}"))
    assert "cannot read" in said
    assert str(tmp_path / "wordnet") in said


@pytest.mark.skipif(not (DEBIAN / "data.noun").is_file(), reason="WordNet is not installed in its usual place")
def test_a_wordnet_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by whoever parses the files first, a plan or a lane; either way with file and place, and nothing is kept."""
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / "cache"))
    folder = shutil.copytree(DEBIAN, tmp_path / "wordnet", ignore=shutil.ignore_patterns("bin"))
    os.truncate(folder / "data.noun", 1_000_000)
    with pytest.raises(CorpusError, match=r"data\.noun, byte 999787: .*the line is cut short"):
        load(ConceptData(wordnet=str(folder)))
    assert not list((tmp_path / "cache").rglob("manifest.json"))


def test_a_wordnet_that_is_a_broken_archive(
    backbone: Path, tmp_path: Path, study: Callable[..., Path], plan: Callable[[Path], str]
) -> None:
    (tmp_path / "wordnet.zip").write_bytes(b"PK\x03\x04 cut")
    assert "wordnet.zip: cannot read" in plan(study(str(backbone), f"{{wordnet: {tmp_path / 'wordnet.zip'}}}"))


@pytest.mark.usefixtures("offline")
def test_missing_models_and_missing_data_are_said_together(
    study: Callable[..., Path], plan: Callable[[Path], str]
) -> None:
    said = plan(study("no-such-encoder, nor-this", "{wordnet: /no/such/wordnet}"))
    assert all(part in said for part in ("'no-such-encoder'", "'nor-this'", "'/no/such/wordnet'"))
