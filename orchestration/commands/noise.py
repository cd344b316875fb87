"""`semray noise STUDY ARM`: which random streams an arm's noise comes from, by a crossed design over them.

The runs are ordinary runs of the ledger: they resume, a second call computes nothing, and a run whose streams all
have one seed is the study's own run.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from statistics import fmean

from corpora.store.json_text import json_text
from evaluators.significance.components import Components, components, crossed
from evaluators.significance.power import Noise, seeds_required, smallest_effect
from orchestration.commands.terminal import DONE, ledger_of, study_of
from orchestration.commands.waiting import PREPARING, doing
from orchestration.commands.whole import require_whole
from orchestration.families.registry import family
from orchestration.ledger.ledger import Ledger
from orchestration.plan.crossed import alone_changed, level_seeds, runs_of_design, with_seeds
from orchestration.plan.held import planned
from orchestration.plan.plan import prepare
from orchestration.study.errors import StudyError
from orchestration.study.run import Job, Run, on
from orchestration.study.study import Study

Train = Callable[[Sequence[Run]], None]


@dataclass(frozen=True, kw_only=True)
class NoiseSources:
    """The result of the design. live: streams that change a score. idle: the others. found: None with fewer than
    two live streams."""

    run: str
    metric: str
    live: tuple[str, ...]
    idle: tuple[str, ...]
    found: Components | None


def noise(options: Namespace) -> int:
    """Print the share of every stream in the variance of a metric, with advice."""
    study, ledger = study_of(options), ledger_of(options)
    run, streams = _chosen(study, ledger, options.arm, options.backbone)
    metric = _metric(study, options.arm, options.metric)
    seeds = level_seeds(study.seeds.initial, options.levels)
    with doing(PREPARING):
        prepare(study, run.precision)
    with ledger.drive(study.name), _executor(study, ledger) as train:
        sources = _noise_sources(study, ledger, run, streams, seeds, metric, train)
    if options.json:
        print(json_text(asdict(sources)))
    else:
        print("\n".join([*_table(sources), "", *_advice(sources, study, options.arm)]))
    return DONE


def _chosen(study: Study, ledger: Ledger, arm: str, backbone: str | None) -> tuple[Run, tuple[str, ...]]:
    """The arm's first run on this backbone, and the random streams of its family."""
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
    """The metric asked for, or by default that of the first claim on the arm. StudyError if there is none."""
    if asked is None:
        claimed = [part.metric for part in study.parts if arm in part.arms]
        if not claimed:
            raise StudyError(f"{study.path}: no claim on {arm}\n  accepted: --metric METRIC")
        return claimed[0]
    from evaluators.tasks.figures import is_each
    from evaluators.tasks.task import metric_names, named

    known = metric_names(named(family(study.family).tasks(study.data), study.evaluate))
    if is_each(asked) or not all(figure in known for figure in study.figures_of(asked)):
        raise StudyError(f"--metric {asked}\n  accepted: {', '.join(known)}")
    return asked


@contextmanager
def _executor(study: Study, ledger: Ledger) -> Iterator[Train]:
    """A function that trains the runs that the ledger lacks, in lanes that stay open between calls."""
    from orchestration.lanes.launch import Lanes
    from orchestration.lanes.progress import Watch

    watch = Watch()
    afterwards = partial(_drop_unkept, study, ledger)
    lanes = Lanes(ledger=ledger, resources=study.resources, on_event=watch, afterwards=afterwards)

    def train(runs: Sequence[Run]) -> None:
        held = ledger.held(runs)
        left = list({run.id: run for run in runs if run.lacking(held)}.values())
        if not left:
            return
        with watch.awaiting(len(left)):
            outcome = lanes.run([Job(runs=(run.remaining(held),)) for run in left], more=True)
        require_whole(outcome, left)

    with closing(lanes):
        yield train


def _drop_unkept(study: Study, ledger: Ledger, run: Run) -> None:
    """Delete the run's model if the study keeps none, or the best of its own seeds and this is none of them."""
    keep = study.resources.models
    if keep == "none" or (keep == "best" and (run.streams or run.seed not in study.seeds.all)):
        ledger.drop_model(run)


def _noise_sources(
    study: Study, ledger: Ledger, run: Run, streams: Sequence[str], seeds: Sequence[int], metric: str, train: Train
) -> NoiseSources:
    """Find the streams that change a score, then execute the crossed design over them."""
    base = with_seeds(run, dict.fromkeys(streams, seeds[0]))
    changed = alone_changed(run, streams, seeds[0], seeds[1])
    train([base, *changed.values()])
    base_scores = repr(_scores(ledger, base))  # as text, where a nan is like another
    live = tuple(stream for stream, other in changed.items() if repr(_scores(ledger, other)) != base_scores)
    idle = tuple(stream for stream in streams if stream not in live)
    label = f"{run.arm}{on(run.backbone)}"
    if len(live) < 2:
        return NoiseSources(run=label, metric=metric, live=live, idle=idle, found=None)
    if len(live) > len(seeds):
        raise StudyError(
            f"--levels {len(seeds)}: {len(live)} streams draw ({', '.join(live)})\n"
            f"  accepted: a number of at least {len(live)}: 5, 7 or 11"
        )
    design = crossed(len(live), len(seeds))
    runs = runs_of_design(run, live, seeds, design)
    train(runs)
    figures = study.figures_of(metric)
    scores = [fmean(_scores(ledger, one)[figure] for figure in figures) for one in runs]
    return NoiseSources(run=label, metric=metric, live=live, idle=idle, found=components(scores, live, design))


def _scores(ledger: Ledger, run: Run) -> dict[str, float]:
    return {name: metric.value for name, metric in ledger.record(run).metrics.items()}


def _table(sources: NoiseSources) -> list[str]:
    idle = [f"{stream:12}changes no score of this arm" for stream in sources.idle]
    if sources.found is None:
        live = sources.live
        words = f"all of the noise is from {live[0]}" if live else "one seed gives the scores of another"
        return [f"{sources.run}, {sources.metric}: {words}", *idle]
    found = sources.found
    rows = [*found.factors.items(), ("together", found.rest)]
    return [
        f"{sources.run}, {sources.metric}: {found.mean:.4f} ± {found.sd:.4f} over all streams ({found.runs} runs)",
        f"{'stream':12}{'share of the variance [95 %]':32}sd",
        *(
            f"{name:12}{f'{part.share:.0%} [{part.low:.0%}, {part.high:.0%}]':32}{part.variance**0.5:.4f}"
            for name, part in rows
        ),
        *idle,
    ]


def _advice(sources: NoiseSources, study: Study, arm: str) -> list[str]:
    """Lines of advice on what arms should share, and how many seeds to take."""
    found = sources.found
    if found is None and not sources.live:
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
    unpaired, paired = Noise(sd=(2**0.5) * found.sd), Noise(sd=(2 * rest.variance) ** 0.5)
    if not paired.sd:
        return lines
    n = len(study.seeds.initial)
    if n > 1:
        shown = " to ".join(f"{smallest_effect(n, noise=one):.4f}" for one in (paired, unpaired))
        lines.append(f"seeds     {n} show a difference of {shown}: what streams do alone cancels, or nothing does")
    claims = [part for part in study.parts if arm in part.arms and part.metric == sources.metric]
    for aim in sorted({aim for part in claims if (aim := part.min_effect or part.margin)}):
        needed = [seeds_required(one, effect=aim) for one in (paired, unpaired)]
        words = " to ".join("more than 10,000" if one is None else str(one) for one in needed)
        lines.append(f"          a difference of {aim:g} takes {words}")
    return lines
