"""`semray headroom`: what a study could gain, before anything is trained."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import asdict

from orchestration.commands.terminal import DONE, study_of
from orchestration.plan.plan import gather_facts, prepare
from orchestration.study.errors import StudyError


def headroom(options: Namespace) -> int:
    """Baseline, spread of its errors and the signals that follow them, for every task and backbone."""
    from orchestration.families.headroom import headrooms, table
    from orchestration.families.registry import as_plain

    study = study_of(options)
    if study.family != "difficulty":
        raise StudyError(f"{study.path}: family = {study.family}\n  accepted: difficulty, for a look at headroom")
    gather_facts(study)
    prepare(study)
    found = {name: headrooms(as_plain(study.data), name) for name in study.backbones}
    if options.json:
        print(json.dumps({name: [asdict(one) for one in looks] for name, looks in found.items()}, indent=1))
    else:
        print("\n\n".join(f"{name}\n\n{table(looks)}" for name, looks in found.items()))
    return DONE
