"""What a large finished study costs to look at: plan, status, why and report, each a process of its own.

    python benchmarks/large_studies.py [--sizes 100/10 1000/100 …] [--commands plan …] [--merge] [--limit SECONDS]
                                       [--ledgers FOLDER] [--against CHECKOUT]

A study of the concept family is made up, of so many runs and claims: every other claim about the mean of 2,000
items (with four more metrics of 2,000 items in the same file), the others about an AUC of 2,000 items. It is
declared as `semray run` does, so that no claim is exploratory. Three sizes have 500 arms and 500 claims and differ
in their seeds: by those one reads whether a command is linear in the runs. --commands measures some alone, and
--merge keeps the rows of all others that were measured before, each with its own day and code.
--ledgers keeps what was made for a later run, which goes on where one that was ended left off. --against runs the
same commands with the code of another checkout too, on the same ledgers, and shows it beside.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tables import RESULTS, revision, save

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from evaluators.metrics.item_metrics import score_of_items  # noqa: E402
from evaluators.metrics.scores import Score  # noqa: E402
from orchestration.ledger.ledger import Ledger  # noqa: E402
from orchestration.plan.held import planned  # noqa: E402
from orchestration.reading.read_study import read_study  # noqa: E402
from orchestration.study.run import Result, Run, Scored, Trained  # noqa: E402
from orchestration.verdicts.declared import declare  # noqa: E402
from tests.browsers import CHROMIUM, DRIVER, headless  # noqa: E402
from trainers.engine.world import Progress  # noqa: E402

ITEMS, STEPS = 2_000, 60
RECALL, AUC = "t2d/recall@10", "stress/negate/auc"
RETRIEVAL = ("t2d/recall@1", "t2d/recall@5", RECALL, "t2d/recall@50", "t2d/mrr")
LIMIT_SECONDS = 600
NAME = "large_studies"
COMMANDS = ("plan", "status", "why", "report")


class Size(NamedTuple):
    """How large a study is."""

    arms: int
    seeds: int
    claims: int

    @property
    def runs(self) -> int:
        return self.arms * self.seeds


SIZES = {
    f"{size.runs}/{size.claims}": size
    for size in (Size(5, 20, 10), Size(50, 20, 100), Size(500, 2, 500), Size(500, 6, 500), Size(500, 20, 500))
}
ASKED = {
    "1000/100": "status 4 s, why 6 s, report 30 s and 600 MB, page 3 MB and 3 s in Chromium",
    "10000/500": "plan 20 s, report 240 s",
}


class Cost(NamedTuple):
    """What a command took; None where it was ended."""

    wall: float
    cpu: float
    peak: float  # MB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES), help="runs/claims")
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    parser.add_argument("--ledgers", type=Path, default=None, help="where made-up ledgers are kept")
    parser.add_argument("--against", type=Path, default=None, help="a checkout of other code, to compare with")
    parser.add_argument("--merge", action="store_true", help="keep the rows of other sizes and commands")
    parser.add_argument(
        "--limit", type=float, default=LIMIT_SECONDS, help="wall seconds after which a command ends"
    )
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        place = (options.ledgers or Path(folder)).absolute()
        for size in options.sizes:
            for row in measured(SIZES[size], options.commands, place, options.against, options.limit):
                rows.append(row)
                # at once: a large size takes long, and may be ended
                keep(together(rows, _kept() if options.merge else ()), options.against)


def together(rows: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """These rows, and those of before of other sizes and commands, by size and command.

    What a row lacks is –; a column that all lack is left out.
    """

    def of(row: dict[str, Any]) -> tuple[int, int, int]:
        return row["runs"], row["claims"], COMMANDS.index(row["command"])

    found = {of(row): row for row in (*before, *rows)}
    columns = dict.fromkeys(name for row in found.values() for name, figure in row.items() if figure != "–")
    return [{column: found[place].get(column, "–") for column in columns} for place in sorted(found)]


def _kept() -> list[dict[str, Any]]:
    """The rows that were kept last; nothing before the first time."""
    place = RESULTS / f"{NAME}.json"
    found: list[dict[str, Any]] = json.loads(place.read_text())["rows"] if place.exists() else []
    return found


def keep(rows: Sequence[dict[str, Any]], against: Path | None) -> None:
    """Write what was measured so far. against: the checkout that the columns of before are of."""
    sizes = {f"{row['runs']}/{row['claims']}" for row in rows}
    notes = [
        f"Half of the claims are about a mean of {ITEMS:,} items in a file with four more such "
        f"metrics, half about an AUC of {ITEMS:,} items, curves of {STEPS} steps. Every command is a process of "
        "its own, interpreter and imports included, and checks the seal of every file that it reads. Numerical "
        "libraries compute in one thread.",
        "Peak memory is what the kernel counted for the process. A page is opened in headless Chromium until it "
        "is laid out.",
        *(f"Asked of {size} runs/claims: at most {asked}." for size, asked in ASKED.items() if size in sizes),
        "Load: the average number of processes that wanted one of the cores. Where it is more than their number, "
        "wall times say nothing, and CPU times are longer than on a machine that is free.",
    ]
    if against:
        notes.append(
            f"Before: the code of {revision(against)}, on the same ledgers. Every field of every verdict in "
            "report.json is the same by both, or the script ends."
        )
    save(NAME, "Looking at large studies", rows, notes, packages=("pyarrow", "pydantic", "matplotlib"))


def measured(
    size: Size, chosen: Sequence[str], place: Path, against: Path | None, limit: float
) -> Iterator[dict[str, Any]]:
    """One row a command."""
    study, ledger = made(size, place)
    out = place / "report"
    words = ["--ledger", str(ledger)]
    commands = {
        "plan": ["plan", str(study), *words],
        "status": ["status", str(study), *words],
        "why": ["why", str(study), "H1", *words],
        "report": ["report", str(study), *words, "--out", str(out)],
    }
    for name, command in ((name, commands[name]) for name in chosen):
        row: dict[str, Any] = {
            "runs": size.runs,
            "claims": size.claims,
            "seeds": size.seeds,
            "command": name,
        }
        costs = {"": cost(command, ROOT, limit)}
        page = _page(out) if name == "report" and costs[""] else ("–", "–")
        if against is not None:
            verdicts = _verdicts(out)
            costs[", before"] = cost(command, against, limit)
            if name == "report" and costs[", before"]:
                require_equal(verdicts, _verdicts(out))
        for when, found in costs.items():
            row |= {
                f"wall, s{when}": f"> {limit:g}" if found is None else round(found.wall, 2),
                f"CPU, s{when}": "–" if found is None else round(found.cpu, 2),
                f"peak, MB{when}": "–" if found is None else round(found.peak),
            }
        row |= {"page, MB": page[0], "opened, s": page[1]}
        if against is not None:
            row["page, MB, before"] = _page(out)[0] if name == "report" and costs[", before"] else "–"
        row |= {"load": round(os.getloadavg()[0], 1), "code": revision(ROOT), "day": date.today().isoformat()}
        yield row
    shutil.rmtree(out, ignore_errors=True)


def require_equal(verdicts: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]]) -> None:
    """SystemExit where a field that both codes print of a claim differs, be it in its last digit."""
    for one, other in zip(verdicts, others, strict=True):
        if wrong := [name for name in one.keys() & other.keys() if one[name] != other[name]]:
            raise SystemExit(f"{one['claim']}: {', '.join(wrong)} differ from those of the other checkout")


def _verdicts(report: Path) -> list[dict[str, Any]]:
    """What a report wrote of every claim; nothing before there is one."""
    written = report / "report.json"
    found: list[dict[str, Any]] = json.loads(written.read_text()) if written.exists() else []
    return found


def made(size: Size, place: Path) -> tuple[Path, Path]:
    """A study of this size, declared and finished: its file and its ledger. Studies of as many arms share one."""
    place.mkdir(parents=True, exist_ok=True)
    file, url = place / f"large_{size.runs}_{size.claims}.yaml", place / f"ledger_{size.arms}"
    file.write_text(as_yaml(size))
    study, ledger = read_study(file), Ledger(url)
    plan = planned(study, ledger)
    declare(study, plan.runs, ledger)
    for run in plan.left:
        attempt = ledger.lease(run.id)
        for result in results(run):
            ledger.stage(result, attempt)
            ledger.commit(result.entry, attempt)
        ledger.forget(run.id)
    return file, url


def as_yaml(size: Size) -> str:
    """Arms that differ in their learning rate; each is compared with the first, by turns in both metrics."""
    lines = [
        "question: Which of many learning rates is better than the first?",
        "family: concept",
        "backbones: [all-MiniLM-L6-v2]",
        f"seeds: {size.seeds}",
        f"train: {{steps: {STEPS}, batch_size: 16}}",
        "resources: {precision: fp32}",  # `auto` reads a ledger of another machine by both precisions
        "arms:",
        *(f"  A{arm}: {{learning_rate: {1 + arm / 10_000:.4f}e-5}}" for arm in range(size.arms)),
        "evaluate: [t2d, stress]",
        "compare:",
    ]
    for claim in range(size.claims):
        others = size.arms - 1
        arm, metric = 1 + claim % others, (RECALL, AUC)[(claim // others + claim) % 2]
        lines.append(
            f"  - {{claim: H{claim + 1}, treatment: A{arm}, control: A0, metric: {metric}, expect: better}}"
        )
    return "\n".join(lines) + "\n"


def results(run: Run) -> Iterator[Result]:
    """Its training, then the scores of both tasks: what an arm gains, and noise of seeds and of items."""
    arm, seed = int(run.arm[1:]), run.seed or 0
    rng = np.random.default_rng([arm, seed])
    level = 0.5 + 0.1 * np.sin(arm) + rng.normal(0, 0.01)
    hard = np.random.default_rng(7).normal(0, 0.5, ITEMS)  # of the items, the same for all runs
    names = [f"wordnet:word{number:05d}.n.01" for number in range(ITEMS)]
    curve = [
        Progress(step=step, steps=STEPS, loss=float(2 * np.exp(-step / 20) + rng.normal(0, 0.05)), terms={})
        for step in range(STEPS)
    ]
    yield Trained(run=run, curve=curve, seconds={"train": 2.5})
    ranks = np.exp(3 - 3 * level + hard + rng.normal(0, 0.3, ITEMS)) + 1
    cuts = (1, 5, 10, 50)
    values = [*((ranks / 1.5 <= cut).astype(float) for cut in cuts), 1 / ranks]
    pairs = zip(RETRIEVAL, values, strict=True)
    scores = [score_of_items(metric, "mean", names, names, found) for metric, found in pairs]
    yield Scored(run=run, task="t2d", scores=scores, seconds={"evaluate": 0.5})
    gold = np.arange(ITEMS) % 2
    near = level * gold + hard + rng.normal(0, 0.3, ITEMS)
    auc = score_of_items(AUC, "auc", names, names, near, gold)
    accuracy = Score(metric="stress/negate/acc", value=float(np.mean((near > level / 2) == gold)))
    yield Scored(run=run, task="stress", scores=[auc, accuracy], seconds={"evaluate": 0.5})


def cost(words: list[str], checkout: Path, limit: float) -> Cost | None:
    """What a command takes with the code of a checkout; None when it was still at it after so many seconds."""
    began = time.perf_counter()
    environment = os.environ | {"PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "orchestration", *words]
    with tempfile.TemporaryFile() as told:
        child = subprocess.Popen(command, cwd=checkout, env=environment, stdout=subprocess.DEVNULL, stderr=told)
        while True:
            done, status, usage = os.wait4(child.pid, os.WNOHANG)
            if done:
                break
            if time.perf_counter() - began > limit:
                child.kill()
                os.wait4(child.pid, 0)
                return None
            time.sleep(0.02)
        child.returncode = os.waitstatus_to_exitcode(status)  # collected here: Popen must not wait for it again
        if child.returncode:
            told.seek(0)
            raise SystemExit(f"{' '.join(words)}: {told.read().decode()}")
    wall = time.perf_counter() - began
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000)


def _page(folder: Path) -> tuple[float, float | str]:
    """Megabytes of a report's page, and the seconds until Chromium has laid it out."""
    page = folder / "report.html"
    return round(page.stat().st_size / 1e6, 2), opened(page)


def opened(page: Path) -> float | str:
    """Seconds until the browser, which is running, has loaded a page and knows how tall it is."""
    if not (CHROMIUM and DRIVER):
        return "no browser"
    browser = headless()
    try:
        browser.set_page_load_timeout(LIMIT_SECONDS)
        browser.get("about:blank")
        began = time.perf_counter()
        browser.get(page.as_uri())
        browser.execute_script("return document.documentElement.getBoundingClientRect().height")
        return round(time.perf_counter() - began, 2)
    finally:
        browser.quit()


if __name__ == "__main__":
    main()
