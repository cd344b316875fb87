"""Writes the Methods paragraphs for a paper from the findings: recipes, seeds, tests, corrections, versions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from orchestration.families.registry import family
from orchestration.report.tables import known, tests_of
from orchestration.study.names import counted
from orchestration.study.run import is_encoder

if TYPE_CHECKING:
    from evaluators.significance.verdict import Verdict
    from orchestration.verdicts.findings import Findings

SHARED = {  # random stream -> what runs of one seed share by it; a script has streams of its own
    "data": "the order of the data",
    "init": "the initialisation of what they have in common",
    "negatives": "the negatives that they draw",
}
GROWING = "t e-process"  # the test of a study until decided
LIBRARIES = ("semray", "torch", "transformers", "deepspeed", "sentence-transformers")


def methods(findings: Findings) -> str:
    """Sentences about this study, for the author of a paper to shorten."""
    verdicts = [finding.verdict for finding in findings.findings if not finding.verdict.part_of]
    declared = [verdict for verdict in verdicts if not verdict.exploratory]
    judged = (
        _judged(findings, declared, len(verdicts) - len(declared))
        if declared
        else f"No comparison was declared{' with these seeds and rows' * bool(verdicts)} before the runs."
    )
    paragraphs = [_runs(findings), judged, _record(findings)]
    return "\n\n".join(paragraphs)


def _runs(findings: Findings) -> str:
    trained = [
        arm for arm in findings.arms if any(row.seed is not None for row in findings.runs if row.arm == arm)
    ]
    untrained = [arm for arm in findings.arms if arm not in trained]
    encoders = [Path(name).name for name in findings.backbones if is_encoder(name)]
    text = f"We compared {_listed(list(findings.arms))}{f' on {_listed(encoders)}' if encoders else ''}."
    if trained:
        text += _seeds(findings, trained)
    if untrained:
        verbs = ("is", "stands") if len(untrained) == 1 else ("are", "stand")
        text += f" {_listed(untrained)} {verbs[0]} not trained and {verbs[1]} beside every seed with one result."
    return text


def _seeds(findings: Findings, trained: list[str]) -> str:
    """Sentences on how many seeds each trained arm has on a backbone, and what runs of one seed share."""
    seeds_of = {(row.arm, row.backbone): set[int]() for row in findings.runs if row.seed is not None}
    for row in findings.with_status("finished"):
        if row.seed is not None:
            seeds_of[row.arm, row.backbone].add(row.seed)
    seeds, counts = sorted(set().union(*seeds_of.values())), sorted(map(len, seeds_of.values()))
    if not seeds:
        return f" No run of a trained recipe ({_listed(trained)}) is finished."
    if counts[0] == len(seeds):
        text = f" Each trained recipe ({_listed(trained)}) was run with {counted(len(seeds), 'random seed')}"
    else:
        least = f"{counts[0]} to " * (counts[0] != counts[-1])
        text = f" The trained recipes ({_listed(trained)}) were run with {least}{counts[-1]} of "
        text += counted(len(seeds), "random seed")
    shared = [words for stream, words in SHARED.items() if stream in family(findings.family).streams]
    return (
        f"{text}{_span(seeds)}; recipes with the same seed "
        f"{f'share {_listed(shared)}' if shared else 'are paired, whatever they make of it'}."
    )


def _judged(findings: Findings, declared: list[Verdict], late: int) -> str:
    text = f"{counted(len(declared), 'comparison')} {'was' if len(declared) == 1 else 'were'} declared before "
    text += (
        f"the first run (SHA-256 of the declaration: {findings.declared})." if findings.declared else "the runs."
    )
    text += _tested([finding.verdict for finding in findings.findings if not finding.verdict.exploratory])
    corrected = {verdict.group: verdict.family_size for verdict in declared if verdict.family_size > 1}
    if corrected:
        sizes = _listed([f"{size}{f' of {group}' if group else ''}" for group, size in corrected.items()])
        text += (
            f" p-values are adjusted with Holm's method over {sizes} hypotheses; intervals are 95 %, unadjusted."
        )
    if late:
        text += (
            f" {counted(late, 'further comparison')}, made or given other seeds or rows later, "
            f"{'is' if late == 1 else 'are'} exploratory."
        )
    return text


def _tested(verdicts: list[Verdict]) -> str:
    """Sentences on the tests of these verdicts, including those of parts of joint claims."""
    text = ""
    tests = tests_of([verdict for verdict in verdicts if verdict.parts is None])
    if tests:
        text += f" Differences are paired by seed and tested with the {_listed(tests)}"
        text += f" test{'s' * (len(tests) > 1)} at a level of {verdicts[0].alpha:g}."
    if GROWING in tests:
        text += (
            " Seeds were added to the recipes of open comparisons, with a look after each; the e-process and its "
            "intervals hold at every look."
        )
    if futile := [verdict.claim for verdict in verdicts if verdict.hopeless and not verdict.part_of]:
        text += f" {_listed(futile)} {'was' if len(futile) == 1 else 'were'} given up for futility."
    if any(known(verdict.tost_p) for verdict in verdicts):
        text += " Equivalence was tested with two one-sided tests against a margin declared beforehand."
    if any("crossed t" in test for test in tests):
        text += " Where items were sampled from the task, their chance is counted beside that of the seeds."
    if joint := tests_of([verdict for verdict in verdicts if verdict.parts is not None]):
        text += f" A claim of several parts is judged by the p-values of its parts ({_listed(joint)})."
    return text


def _record(findings: Findings) -> str:
    found = [(name, values) for name in LIBRARIES for values in (findings.environment.get(name),) if values]
    versions = _listed([f"{name} {' and '.join(values)}" for name, values in found]) if found else ""
    return (
        f"Runs and tests were made with {versions or 'semray'}. Every score behind these figures is in the "
        f"study's passport, which `semray verify` recomputes without models or data (study {findings.revision}, "
        f"rule {findings.rule}; cite the passport by its SHA-256, which `semray report --passport` prints)."
    )


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _span(seeds: list[int]) -> str:
    whole = seeds == list(range(seeds[0], seeds[-1] + 1))
    return f" ({seeds[0]} to {seeds[-1]})" if whole and len(seeds) > 1 else f" ({', '.join(map(str, seeds))})"
