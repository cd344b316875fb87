"""`semray doctor`: check whether this machine, or every node of a cluster, can run studies."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import asdict

from orchestration.commands.terminal import DONE, SOME_FAILED


def doctor(options: Namespace) -> int:
    """Print the checks; the exit code says whether all passed."""
    from orchestration.machines.cluster_checks import cluster_checks
    from orchestration.machines.doctor import checks

    answers = cluster_checks(options.address, options.ledger) if options.address else checks(options.ledger)
    if options.json:
        print(json.dumps([asdict(answer) for answer in answers], indent=1))
    else:
        for answer in answers:
            print(f"{'ok' if answer.ok else 'MISSING':8}{answer.name:18}{answer.found}")
            if not answer.ok and answer.mend:
                print(f"{'':8}{answer.mend}")
    return DONE if all(answer.ok for answer in answers) else SOME_FAILED
