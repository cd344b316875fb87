"""`semray noise STUDY ARM`: where does an arm's noise come from? A crossed design over its random streams.

The runs are ordinary runs of the ledger: they resume, are the study's own where all streams have one seed, and a
second call computes nothing.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from statistics import fmean

from evaluators.significance.components import Components, components, crossed
from evaluators.significance.power import Noise, seeds_required, smallest_effect
from orchestration.commands.terminal import DONE, ledger_of, study_of
from orchestration.commands.whole import require_whole
from orchestration.families.registry import family
from orchestration.ledger.ledger import Ledger
from orchestration.plan.crossed import alone_changed, level_seeds, runs_of_design, with_seeds
from orchestration.plan.held import planned
from orchestration.plan.plan import prepare
from orchestration.study.errors import StudyError
from orchestration.study.run import Job, Run, on
from orchestration.study.study import Study

Carry = Callable[[Sequence[Run]], None]


@dataclass(frozen=True, kw_only=True)
class Told:
    """What came of the design. idle: streams that change no score. found: None where fewer than two are live."""

    run: str
    metric: str
    live: tuple[str, ...]
    idle: tuple[str, ...]
    found: Components | None


def noise(options: Namespace) -> int:
    """Print the share of every stream in the variance of a metric, and what to make of it."""
    study, ledger = study_of(options), ledger_of(options)
    run, streams = _chosen(study, ledger, options.arm, options.backbone)
    metric = _metric(study, options.arm, options.metric)
    seeds = level_seeds(study.seeds.initial, options.levels)
    prepare(study)
    with ledger.drive(study.name), _carrying_out(study, ledger) as carry:
        told = _told(study, ledger, run, streams, seeds, metric, carry)
    if options.json:
        print(json.dumps(asdict(told), indent=1))
    else:
        print("\n".join([*_table(told), "", *_advice(told, study, options.arm)]))
    return DONE


def _chosen(study: Study, ledger: Ledger, arm: str, backbone: str | None) -> tuple[Run, tuple[str, ...]]:
    """The arm's first run on this backbone, and the streams that its family draws from."""
    if arm not in study.arms:
        raise StudyError(f"{study.path}: no arm {arm}\n  accepted: {', '.join(study.arms)}")
    streams = family(study.family).streams
    if not streams:
        raise StudyError(
            f"{study.path}: family = {study.family}: what it draws from its one seed cannot be told apart\n"
            "  accepted: an arm that semray trains from named streams"
        )
    runs = [run for run in planned(study, ledger).runs if run.arm == arm and backbone in (run.backbone, None)]
    if not runs:
        raise StudyError(f"--backbone {backbone}\n  accepted: {', '.join(study.backbones)}")
    if runs[0].seed is None:
        raise StudyError(
            f"{study.path}: {arm} is not trained, and has no noise\n  accepted: an arm that is trained"
        )
    return runs[0], streams


def _metric(study: Study, arm: str, asked: str | None) -> str:
    """The metric that is asked for, if the study's tasks give it; else that of the first claim on the arm."""
    if asked is None:
        claimed = [part.metric for part in study.parts if arm in part.arms]
        if not claimed:
            raise StudyError(f"{study.path}: no claim on {arm}\n  accepted: --metric METRIC")
        return claimed[0]
    from evaluators.tasks.task import metric_names, named

    known = metric_names(named(family(study.family).tasks(study.data), study.evaluate))
    if not all(figure in known for figure in study.figures_of(asked)):
        raise StudyError(f"--metric {asked}\n  accepted: {', '.join(known)}")
    return asked


@contextmanager
def _carrying_out(study: Study, ledger: Ledger) -> Iterator[Carry]:
    """What trains those runs that the ledger lacks, in lanes that are kept from the first call to the last."""
    from orchestration.lanes.launch import Lanes
    from orchestration.lanes.progress import Watch

    watch = Watch()
    lanes = Lanes(ledger=ledger, resources=study.resources, on_event=watch)

    def carry(runs: Sequence[Run]) -> None:
        held = ledger.held(runs)
        left = list({run.id: run for run in runs if run.lacking(held)}.values())
        if not left:
            return
        with watch.awaiting(len(left)):
            outcome = lanes.run([Job(runs=(run.remaining(held),)) for run in left], more=True)
        require_whole(outcome, left)

    with closing(lanes):
        yield carry


def _told(
    study: Study, ledger: Ledger, run: Run, streams: Sequence[str], seeds: Sequence[int], metric: str, carry: Carry
) -> Told:
    """First which streams draw at all, then the design over those."""
    base = with_seeds(run, dict.fromkeys(streams, seeds[0]))
    changed = alone_changed(run, streams, seeds[0], seeds[1])
    carry([base, *changed.values()])
    as_it_is = _scores(ledger, base)
    live = tuple(stream for stream, other in changed.items() if _scores(ledger, other) != as_it_is)
    idle = tuple(stream for stream in streams if stream not in live)
    label = f"{run.arm}{on(run.backbone)}"
    if len(live) < 2:
        return Told(run=label, metric=metric, live=live, idle=idle, found=None)
    if len(live) > len(seeds):
        raise StudyError(
            f"--levels {len(seeds)}: {len(live)} streams draw ({', '.join(live)})\n"
            f"  accepted: a number of at least {len(live)}: 5, 7 or 11"
        )
    design = crossed(len(live), len(seeds))
    runs = runs_of_design(run, live, seeds, design)
    carry(runs)
    figures = study.figures_of(metric)
    scores = [fmean(_scores(ledger, one)[figure] for figure in figures) for one in runs]
    return Told(run=label, metric=metric, live=live, idle=idle, found=components(scores, live, design))


def _scores(ledger: Ledger, run: Run) -> dict[str, float]:
    return {name: metric.value for name, metric in ledger.record(run).metrics.items()}


def _table(told: Told) -> list[str]:
    idle = [f"{stream:12}changes no score of this arm" for stream in told.idle]
    if told.found is None:
        words = f"all of the noise is from {told.live[0]}" if told.live else "one seed gives the scores of another"
        return [f"{told.run}, {told.metric}: {words}", *idle]
    found = told.found
    rows = [*found.factors.items(), ("together", found.rest)]
    return [
        f"{told.run}, {told.metric}: {found.mean:.4f} ± {found.sd:.4f} over all streams ({found.runs} runs)",
        f"{'stream':12}{'share of the variance [95 %]':32}sd",
        *(
            f"{name:12}{f'{part.share:.0%} [{part.low:.0%}, {part.high:.0%}]':32}{part.variance**0.5:.4f}"
            for name, part in rows
        ),
        *idle,
    ]


def _advice(told: Told, study: Study, arm: str) -> list[str]:
    """What to share between arms, and how many seeds to take."""
    found = told.found
    if found is None and not told.live:
        return ["advice    no seed moves this score: more of them tell no more, a harder task may"]
    if found is None:
        return ["advice    every seed of a study varies it; nothing else needs to be shared or drawn anew"]
    rest = found.rest
    alone = f"{1 - rest.share:.0%} [{1 - rest.high:.0%}, {1 - rest.low:.0%}]"
    large = [name for name, part in found.factors.items() if part.low > 0.05]
    lines = [
        f"share     {' and '.join(large)} between arms, as runs of one seed do: each moves the score by itself"
        if large
        else "share     no stream moves the score by itself for certain: which of them arms share matters little",
        f"          what streams do alone is {alone} of the variance: between arms",
        "          that respond alike it cancels; what they do together cancels as far as arms correlate at",
        "          equal seed, which `semray report` says",
        "vary      all streams with the seed: who fixes one of them does not see its part of the noise",
    ]
    apart, paired = Noise(sd=(2**0.5) * found.sd), Noise(sd=(2 * rest.variance) ** 0.5)
    if not paired.sd:
        return lines
    n = len(study.seeds.initial)
    if n > 1:
        shown = " to ".join(f"{smallest_effect(n, noise=one):.4f}" for one in (paired, apart))
        lines.append(f"seeds     {n} show a difference of {shown}: what streams do alone cancels, or nothing does")
    of_arm = [part for part in study.parts if arm in part.arms]
    for aim in sorted({aim for part in of_arm if (aim := part.min_effect or part.margin)}):
        asked = [seeds_required(one, effect=aim) for one in (paired, apart)]
        words = " to ".join("more than 10,000" if one is None else str(one) for one in asked)
        lines.append(f"          a difference of {aim:g} takes {words}")
    return lines
