"""`semray headroom`: what a study could gain, before anything is trained."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import asdict

from orchestration.commands.terminal import DONE, study_of
from orchestration.families.headroom import table
from orchestration.families.registry import FAMILIES, family
from orchestration.plan.plan import gather_facts, prepare
from orchestration.study.errors import StudyError


def headroom(options: Namespace) -> int:
    """Baseline, spread of its errors and the signals that follow them, for every data set and backbone."""
    study = study_of(options)
    headroom_of = family(study.family).headroom
    if headroom_of is None:
        able = ", ".join(name for name in FAMILIES if family(name).headroom)
        raise StudyError(f"{study.path}: family = {study.family}\n  accepted: {able}, to be told of headroom")
    gather_facts(study)
    prepare(study)
    found = {name: headroom_of(study.data, name) for name in study.backbones}
    if options.json:
        print(json.dumps({name: [asdict(one) for one in sets] for name, sets in found.items()}, indent=1))
    else:
        print("\n\n".join(f"{name}\n\n{table(sets)}" for name, sets in found.items()))
    return DONE
