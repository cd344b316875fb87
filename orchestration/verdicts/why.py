"""The text of `semray why`: each verdict with its deltas, runs, items and files."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestration.verdicts.findings import Finding, Findings

ITEMS_EACH_WAY = 5


def chain(findings: Findings) -> str:
    """Verdict → deltas → runs → items → files, for every comparison in the findings."""
    return "\n\n".join(_chain(findings, finding) for finding in findings.findings)


def _chain(findings: Findings, finding: Finding) -> str:
    verdict = finding.verdict
    places = {row.id: row.location for row in findings.runs}
    lines = [f"{verdict.claim}   {verdict.words}", f"  {verdict.sentence}"]
    if verdict.exploratory:
        lines += ["  declared, or its seeds or rows changed, after its runs could be seen: exploratory"]
    else:
        lines += ["  declared before" if findings.declared else "  not declared yet: the first run writes it down"]
    tested = f", {verdict.test}" if verdict.test else ""
    lines += [f"deltas   {verdict.treatment} - {verdict.control}, {verdict.metric}{tested}"]
    for pair in verdict.per_seed[: 1 if verdict.seedless else None]:
        seed = int(pair["seed"])
        label = "no seed" if finding.one_run else "every seed" if verdict.seedless else f"seed {seed}"
        lines.append(f"  {label}   {pair['treatment']:.6f} - {pair['control']:.6f}   delta {pair['delta']:+.6f}")
        for runs in (finding.treatment_runs.get(seed), finding.control_runs.get(seed)):
            lines += [f"    run {run}   {places.get(run, '')}/result.json" for run in (runs or "").split(" - ")]
    if (moves := finding.shown_moves).items:
        lines.append(
            f"items    {moves.better} better, {moves.worse} worse, {moves.equal} equal of {moves.total} "
            f"{moves.counted}, averaged over seeds (scores.parquet of each run)"
        )
        shown = (*moves.items[:ITEMS_EACH_WAY], *moves.items[-ITEMS_EACH_WAY:])
        for item in dict.fromkeys(shown):
            lines.append(f"  {item.delta:+.4f}   {item.control:.4f} to {item.treatment:.4f}   {item.item_id}")
    return "\n".join(lines)
