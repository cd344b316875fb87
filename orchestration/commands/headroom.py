"""`semray headroom`: what a study could gain, before anything is trained."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from corpora.store.json_text import json_text
from corpora.store.telling import aloud
from orchestration.commands.terminal import DONE, study_of
from orchestration.commands.waiting import PREPARING, doing
from orchestration.families.registry import family, names
from orchestration.plan.plan import gather_facts, prepare
from orchestration.study.errors import StudyError, written_to
from orchestration.study.writable import folder_fits

if TYPE_CHECKING:
    from evaluators.metrics.headroom import Headroom


def headroom(options: Namespace) -> int:
    """Print the frozen baseline, its errors and the signals that correlate with them, by data set and backbone."""
    study = study_of(options)
    headroom_of = family(study.family).headroom
    if headroom_of is None:
        able = ", ".join(name for name in names() if family(name).headroom)
        raise StudyError(f"{study.path}: family = {study.family}\n  accepted: {able}, to be told of headroom")
    if options.plot:
        folder_fits(Path(options.plot))
    # DeepSpeed prints to stdout as it loads, which must hold JSON only
    with doing(PREPARING), redirect_stdout(sys.stderr):
        gather_facts(study)
        prepare(study)
        found = {name: headroom_of(study.data, name, aloud) for name in study.backbones}
    if options.plot:
        _draw(found, Path(options.plot))
    if options.json:
        print(json_text({name: [asdict(one) for one in sets] for name, sets in found.items()}))
    else:
        print("\n\n".join(f"{name}\n\n{table(sets)}" for name, sets in found.items()))
    return DONE


def _draw(found: Mapping[str, Sequence[Headroom]], folder: Path) -> None:
    from orchestration.report.drawing import svg_file
    from orchestration.report.headroom_plot import signals

    for name, sets in found.items():
        drawing, plain = svg_file(signals(sets)), re.sub(r"[^\w.-]+", "_", name)
        with written_to(folder):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"headroom-{plain}.svg").write_text(drawing, encoding="utf-8")


def table(found: Sequence[Headroom]) -> str:
    """A block of lines for each task: the frozen baseline, what correlates with its errors, advice."""
    return "\n\n".join("\n".join(_lines(one)) for one in found)


def _lines(one: Headroom) -> list[str]:
    def figures(values: Mapping[str, float]) -> str:
        return "   ".join(f"{name} {value:+.3f}" for name, value in values.items())

    lines = [
        f"{one.task}   {one.pairs} pairs   Spearman {one.spearman:.4f}   Pearson {one.pearson:.4f}   "
        f"|cos - gold| {one.err_mean:.3f} ± {one.err_std:.3f}",
        f"  follows the error:   {figures(one.alignment)}",
        f"  of a sentence:       {figures(one.sentence_alignment)}",
        f"  target and 1 - gold: {figures(one.target_is_label)}",
        f"  gold 0: {one.share_zero:.0%}   gold 1: {one.share_one:.0%}",
    ]
    return [*lines, *(f"  {flag}" for flag in one.flags), f"  {one.advice}"]
