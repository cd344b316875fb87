"""The Methods paragraph of a paper, written from what was done: recipes, seeds, tests, corrections, versions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from orchestration.families.registry import family
from orchestration.report.tables import tests_of
from orchestration.study.names import counted
from orchestration.study.run import is_encoder

if TYPE_CHECKING:
    from evaluators.significance.verdict import Verdict
    from orchestration.verdicts.findings import Findings

SHARED = {  # by runs of one seed: random stream -> what is drawn from it. A script's streams are its own
    "data": "the order of the data",
    "init": "the initialisation of what they have in common",
    "negatives": "the negatives that they draw",
}
LIBRARIES = ("semray", "torch", "transformers", "deepspeed", "sentence-transformers")


def methods(findings: Findings) -> str:
    """Plain sentences that hold for this study, to be shortened, not to be believed beyond it."""
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
    seeded = sorted({row.seed for row in findings.runs if row.seed is not None and row.status == "finished"})
    trained = [
        arm for arm in findings.arms if any(row.seed is not None for row in findings.runs if row.arm == arm)
    ]
    untrained = [arm for arm in findings.arms if arm not in trained]
    encoders = [Path(name).name for name in findings.backbones if is_encoder(name)]
    said = f"We compared {_listed(list(findings.arms))}{f' on {_listed(encoders)}' if encoders else ''}."
    if trained and seeded:
        shared = [words for stream, words in SHARED.items() if stream in family(findings.family).streams]
        said += (
            f" Each trained recipe ({_listed(trained)}) was run with {counted(len(seeded), 'random seed')}"
            f"{_span(seeded)}; recipes with the same seed "
            f"{f'share {_listed(shared)}' if shared else 'are paired, whatever they make of it'}."
        )
    elif trained:
        said += f" No run of a trained recipe ({_listed(trained)}) is finished."
    if untrained:
        verbs = ("is", "stands") if len(untrained) == 1 else ("are", "stand")
        said += f" {_listed(untrained)} {verbs[0]} not trained and {verbs[1]} beside every seed with one result."
    return said


def _judged(findings: Findings, declared: list[Verdict], late: int) -> str:
    said = f"{counted(len(declared), 'comparison')} {'was' if len(declared) == 1 else 'were'} declared before "
    said += (
        f"the first run (SHA-256 of the declaration: {findings.declared})." if findings.declared else "the runs."
    )
    if tests := tests_of(declared):
        said += f" Differences are paired by seed and tested with the {_listed(tests)}"
        said += f" test{'s' * (len(tests) > 1)} at a level of {declared[0].alpha:g}."
    if any(verdict.expect == "equivalent" for verdict in declared):
        said += " Equivalence was tested with two one-sided tests against a margin declared beforehand."
    corrected = {verdict.group: verdict.family_size for verdict in declared if verdict.family_size > 1}
    if corrected:
        sizes = _listed([f"{size}{f' of {group}' if group else ''}" for group, size in corrected.items()])
        said += (
            f" p-values are adjusted with Holm's method over {sizes} hypotheses; intervals are 95 %, unadjusted."
        )
    if any(verdict.scope == "task" for verdict in declared):
        said += " Where items were sampled from the task, their chance is counted beside that of the seeds."
    if late:
        said += (
            f" {counted(late, 'further comparison')}, made or given other seeds or rows later, "
            f"{'is' if late == 1 else 'are'} exploratory."
        )
    return said


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
    whole = seeds == list(range(seeds[0], seeds[-1] + 1)) if seeds else False
    return f" ({seeds[0]} to {seeds[-1]})" if whole and len(seeds) > 1 else f" ({', '.join(map(str, seeds))})"
