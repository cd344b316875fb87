"""A study of commands, from its file to figures: what plan refuses, what counts as the same run, what is scored."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from corpora.store.errors import CorpusError
from evaluators.tasks.scores_file import tasks_of_script
from orchestration.commands.cli import main
from orchestration.commands.run_study import next_steps
from orchestration.lanes.in_this_process import carry_out
from orchestration.lanes.lane import execute
from orchestration.ledger.ledger import Ledger
from orchestration.plan.held import planned as made
from orchestration.plan.plan import Plan, checked_backbones, gather_facts, plan
from orchestration.reading.read_study import read_study
from orchestration.search.shown import summary
from orchestration.search.trials import Searched, Selection, selections
from orchestration.study.errors import StudyError
from orchestration.study.run import Job
from orchestration.verdicts import declared_rows
from orchestration.verdicts.declared import declare
from orchestration.verdicts.find import find
from search_spaces.space import default_point, grid, settings_at
from tests.results import outcome
from tests.tiny import tiny_backbone
from trainers.engine.world import World

SCRIPT = (Path(__file__).parents[2] / "a_script.py").read_text()
STUDY = """\
question: Does a higher rate help?
family: command
seeds: [3, 4]
data: {watch: [train.py], metrics: {accuracy: higher, loss: lower}}
train: {run: [python, train.py, --seed, "{seed}", --out, "{out}", --learning_rate, "{lr}", --pause, 0], timeout: 60}
arms: {slow: {lr: 1.0e-3}, fast: {lr: 1.0e-1}}
evaluate: [scores]
compare:
  - {claim: H1, treatment: fast, control: slow, metric: scores/accuracy, expect: better}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEMRAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path


def planned(place: Path, old: str = "", new: str = "") -> Plan:
    assert not old or STUDY.count(old) == 1
    (place / "mine.yaml").write_text(STUDY.replace(old, new) if old else STUDY)
    study = read_study(place / "mine.yaml")
    return plan(study, gather_facts(study))


def test_the_methods_paragraph_claims_nothing_of_a_script(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No encoder is named where there is none, and nobody knows what its runs of one seed share."""
    asked, ledger = planned(place), Ledger(place / "ledger")
    carry_out(asked.runs, ledger)
    assert main(["report", "mine", "--methods"]) == 0
    said = capsys.readouterr().out
    assert "We compared slow and fast. Each trained recipe (slow and fast)" in said
    assert "seeds (3 to 4); recipes with the same seed are paired, whatever they make of it." in said
    assert main(["report", "mine"]) == 0
    assert "Study <b>mine</b> · family command</p>" in (place / "reports" / "mine" / "report.html").read_text()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("", "", ""),
        ('"{seed}"', "1", "slow, fast"),
        ("slow: {lr: 1.0e-3}", "slow: {run: [python, train.py, --out, '{out}', --rate, '{lr}'], lr: 1}", "slow"),
        ("slow: {lr: 1.0e-3}", "slow: {run: [sh, -c, 'x $SEMRAY_SEED {lr}'], lr: 1}", ""),
        ("slow: {lr: 1.0e-3}", "slow: {run: [python, train.py, '{out}', '{lr}'], lr: 1, train: false}", ""),
        (
            "[3, 4]\ndata: {watch: [train.py], metrics: {accuracy: higher, loss: lower}}\ntrain: {run: [python, "
            'train.py, --seed, "{seed}"',
            "[3]\ndata: {watch: [train.py], metrics: {accuracy: higher}}\ntrain: {run: [python, train.py",
            "",
        ),
    ],
)
def test_a_command_that_names_no_seed_is_warned_of(
    place: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, said: str
) -> None:
    """It is not refused: the script may read its environment. Nor is anything said of one seed alone."""
    planned(place, old, new)
    assert main(["plan", "mine"]) == 0
    warned = [line for line in capsys.readouterr().out.splitlines() if "{seed}" in line]
    told = f"warn    {said}: run names no {{seed}}: all seeds are alike unless the script reads SEMRAY_SEED"
    assert warned == ([told] if said else [])


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("python", ""),
        ("python3", ""),
        (sys.executable, ""),
        ("sh", ""),
        ("pyhton", "pyhton, which is no program here (did you mean python?)"),
        ("SLOW=1, python", "SLOW=1, which is no program here; no shell reads its words"),
        ("'{seed}'", ""),
    ],
)
def test_a_program_that_does_not_start_here_is_warned_of(
    place: Path, capsys: pytest.CaptureFixture[str], program: str, said: str
) -> None:
    """It is not refused: the machines that run it may have it."""
    planned(place, "[python,", f"[{program},")
    assert main(["plan", "mine"]) == 0
    warned = [line for line in capsys.readouterr().out.splitlines() if "run begins with" in line]
    assert warned == ([f"warn    slow, fast: run begins with {said}"] if said else [])


def test_a_placeholder_without_quotes_is_told_what_yaml_makes_of_it(place: Path) -> None:
    told = r"train\.run\[3\] = \{seed: null\}\n  accepted: text .*; YAML reads .* braces, as a mapping: .*\"\{seed\}\" in quotes"
    with pytest.raises(StudyError, match=told):
        planned(place, '"{seed}"', "{seed}")


def test_a_script_that_is_not_there_is_refused(place: Path) -> None:
    """The one that Python is told, not what a module or a script of its own is told."""
    told = r"arms\.slow\.run: trian\.py: no such file in .*\n  accepted: a script that is there \(did you mean train\.py"
    for words in ("python, trian.py", "python3, -u, trian.py", f"{sys.executable}, trian.py"):
        with pytest.raises(StudyError, match=told):
            planned(place, "[python, train.py", f"[{words}")
    others = ("-m, black, trian.py", "-mblack, trian.py", "-, trian.py", "train.py, trian.py", "'{out}.py'")
    for words in (f"python, {other}" for other in others):
        assert planned(place, "[python, train.py", f"[{words}").runs


def ids(place: Path, old: str = "", new: str = "") -> list[str]:
    return [run.id for run in planned(place, old, new).runs]


def test_no_backbone_is_needed_and_every_arm_is_scored_by_its_file(place: Path) -> None:
    runs = planned(place).runs
    assert [run.label for run in runs] == ["slow, seed 3", "fast, seed 3", "slow, seed 4", "fast, seed 4"]
    found = [outcome(execute(Job(runs=(run,)), World())) for run in runs]
    assert all(one.values.keys() == {"scores/accuracy", "scores/loss"} for one in found)
    assert found[0].values["scores/loss"] > found[1].values["scores/loss"]
    assert found[0].curve[0].loss == found[1].curve[0].loss != found[2].curve[0].loss


def test_the_id_holds_what_can_change_a_result_and_nothing_else(place: Path) -> None:
    first = ids(place)
    assert ids(place, "timeout: 60", "timeout: 90") == first
    assert ids(place, "lr: 1.0e-3", "lr: 0.001") == first
    assert (
        ids(place, "accuracy: higher, ", "accuracy: higher, steps: higher, ") == first
    )  # a metric more is scored
    assert set(ids(place, "--pause, 0", "--pause, 0.01")).isdisjoint(first)
    (place / "train.py").write_text(SCRIPT + "\n# changed\n")
    assert set(ids(place)).isdisjoint(first)


def test_a_metric_more_is_read_from_what_was_kept(place: Path, tmp_path: Path) -> None:
    run = planned(place, "accuracy: higher, loss: lower", "accuracy: higher").runs[0]
    first = outcome(execute(Job(runs=(run,)), World()))
    assert first.trained is not None
    assert first.trained.save_model is not None
    (tmp_path / "kept").mkdir()
    first.trained.save_model(tmp_path / "kept")
    more = planned(place).runs[0]
    again = outcome(execute(Job(runs=(more,), models={more.id: tmp_path / "kept"}), World()))
    assert (more.id, again.trained) == (run.id, None)
    assert again.values["scores/accuracy"] == first.values["scores/accuracy"]
    assert again.values["scores/loss"] > 0


def test_a_bad_file_that_was_kept_is_named_with_what_has_the_command_run_again(place: Path) -> None:
    """What spoilt it lies where nothing watches it: the run's id stays, and so would the file."""
    with (place / "train.py").open("a") as script:
        script.write(
            "\nif Path('spoilt').exists():\n"
            "    place = Path(sys.argv[sys.argv.index('--out') + 1], 'scores.csv')\n"
            "    place.write_text(place.read_text() + 'loss,,nan,\\n')\n"
        )
    (place / "spoilt").touch()
    ledger, run = Ledger(place / "ledger"), planned(place).runs[0]
    with pytest.raises(CorpusError, match=r"a finite number$"):
        carry_out([run], ledger)
    with pytest.raises(CorpusError, match=rf"a finite number\n.*`semray set-aside {run.id}`"):
        carry_out([run], ledger)
    (place / "spoilt").unlink()
    assert main(["set-aside", run.id, "--ledger", str(place / "ledger")]) == 0
    carry_out([run], ledger)
    assert ledger.holds(run)


def test_a_script_that_no_seed_moves_runs_once_for_all_metrics(place: Path) -> None:
    """A metric that is declared later is read from what its one run left."""
    with (place / "train.py").open("a") as script:
        script.write(f"\nwith open({str(place / 'calls')!r}, 'a') as calls:\n    calls.write('called ')\n")
    still = "slow: {lr: 1.0e-3, train: false, run: [python, train.py, --out, '{out}', --learning_rate, '{lr}', --seed, 3, --pause, 0]}"
    ledger, first = Ledger(place / "ledger"), "accuracy: higher"
    text = STUDY.replace("slow: {lr: 1.0e-3}", still)
    for metrics in (first, f"{first}, loss: lower"):
        (place / "mine.yaml").write_text(text.replace("accuracy: higher, loss: lower", metrics))
        carry_out(made(read_study(place / "mine.yaml"), ledger).left, ledger)
    (run,) = (run for run in made(read_study(place / "mine.yaml"), ledger).done if run.seed is None)
    assert ledger.record(run).metrics.keys() == {"scores/accuracy", "scores/loss"}
    assert (place / "calls").read_text().split() == 3 * ["called"]


def test_a_claim_on_a_metric_that_is_read_later_was_seen(place: Path) -> None:
    """The file that was kept lay open from the training on; a metric more is another task by its fingerprint."""
    asked, ledger = planned(place, ", loss: lower", ""), Ledger(place / "ledger")
    carry_out(asked.runs, ledger)
    later = planned(place)
    assert not any(map(ledger.holds, later.runs))
    assert [claim["seen"] for claim in declare(later.study, later.runs, ledger).claims] == [True]


@pytest.mark.parametrize("by_all_metrics", [False, True])  # the rows that ledgers of before have of a claim
def test_a_claim_stays_declared_where_another_metric_is_read_later_and_not_where_its_own_is_read_otherwise(
    place: Path, by_all_metrics: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, one = Ledger(place / "ledger"), ", loss: lower"
    asked = planned(place, one, "")
    with monkeypatch.context() as before:
        if by_all_metrics:
            before.setattr(declared_rows, "_measured_by_metric", lambda records, claim: {})
        declare(asked.study, asked.runs, ledger)
    carry_out(asked.runs, ledger)
    found = []
    for old, new in ((one, ""), ("", ""), ("accuracy: higher", "accuracy: lower")):
        asked = planned(place, old, new)
        carry_out(asked.runs, ledger)
        found += [finding.verdict.exploratory for finding in find(asked.study, asked.runs, ledger).findings]
    assert found == [False, by_all_metrics, True]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("arms: {slow: {lr: 1.0e-3}", "arms: {slow: {}", r"arms\.slow\.lr is missing\n  accepted: text, a number, .* for \{lr\} in `run`"),
        ("lr: 1.0e-1}", "lr: 1.0e-1, lrr: 1}", r"arms\.fast\.lrr = 1\n  accepted: .*holds no \{lrr\}"),
        ("lr: 1.0e-1}", "lr: [1]}", r"arms\.fast\.lr = \[1\]\n  accepted: text or a whole number or"),
        ("timeout: 60", "timeout: 0", r"train\.timeout = 0\n  accepted: a number above 0"),
        ("watch: [train.py]", "watch: []", r"run: train\.py is a file, and data\.watch does not hold it\n  accepted: watch: \[train\.py\]"),
        ("watch: [train.py]", "watch: [trian.py]", r"data\.watch: trian\.py: no such file"),
        ("accuracy: higher", f"accuracy: higher, {'m' * 201}: higher", r"data\.metrics(.|\n)*each of at most 200 characters"),
        ("accuracy: higher", "accuracy: more", r"data\.metrics(.|\n)*higher or lower"),
        ("metrics: {accuracy: higher, loss: lower}", "metrics: {acc: higher}", r"compare\[H1\]\.metric = 'scores/accuracy'\n  accepted: scores/acc"),
        ("evaluate: [scores]", "evaluate: [score]", "did you mean scores"),
        ("lr: 1.0e-3}", "train: false, run: [python, train.py, '{seed}']}", r"no \{seed\} with train: false"),
        ("slow: {lr: 1.0e-3}", "slow: {train: false, run: []}", r"evaluate holds scores, which reads scores"),
        ("seeds:", "resources: {deepspeed: {zero_stage: 3}}\nseeds:", r"zero_stage = 3\n  accepted: 0: a script trains in its own way"),
        ("seeds:", "resources: {checkpoint_every: 5}\nseeds:", r"checkpoint_every = 5\n  accepted: 0: a script says itself when"),
    ],
)  # fmt: skip
def test_plan_refuses(place: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        planned(place, old, new)


@pytest.mark.parametrize("name", ["edit_dist", "gap", "accuracy_gain"])
def test_a_figure_of_ones_own_may_lie_anywhere(place: Path, name: str) -> None:
    """Its name is no promise: neither a margin nor a score of it is refused for its size."""
    text = STUDY.replace("accuracy: higher", f"{name}: higher").replace("scores/accuracy", f"scores/{name}")
    (place / "mine.yaml").write_text(text.replace("expect: better", "expect: equivalent, margin: 5"))
    study = read_study(place / "mine.yaml")
    (place / "scores.csv").write_text(f"metric,item,score\n{name},one,6\n{name},two,-7\nloss,,1\n")
    task = tasks_of_script(study.data.metrics)["scores"]
    found = task.score(study.data.metrics, lambda names: [place / "scores.csv"])
    assert found[0].value == -0.5
    with pytest.raises(StudyError, match=r"margin = 5\n  accepted: below 1: scores/accuracy lies between 0 and 1"):
        planned(place, "expect: better", "expect: equivalent, margin: 5")


def test_what_is_printed_to_type_next_can_be_typed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever a study's file and its claims are called."""
    (place / "my study #1.yaml").write_text(STUDY)
    assert main(["plan", "my study #1.yaml"]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("next"))
    assert shlex.split(line)[1:] == ["semray", "run", "my study #1.yaml"]
    verdict: Any = SimpleNamespace(
        findings=[SimpleNamespace(verdict=SimpleNamespace(claim="H 1 'a'"))], ledger=str(place / "ledger")
    )
    why, ui = next_steps("my study #1.yaml", verdict, whole=True)
    assert shlex.split(why)[1:5] == ["semray", "why", "my study #1.yaml", "H 1 'a'"]
    assert shlex.split(ui)[:3] == ["semray", "ui", "my study #1.yaml"]


def test_what_is_printed_to_type_next_names_another_ledger_than_the_usual_one(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the command would begin the study anew in a ledger of its own."""
    planned(place)

    def told(*words: str) -> str:
        code = main([*words])
        said = capsys.readouterr()
        (line,) = (line for line in (said.out + said.err).splitlines() if line.lstrip().startswith("next"))
        assert code == (0 if words[0] == "plan" else 2)
        return line.partition("semray ")[2]

    other = place / "our runs"
    assert told("plan", "mine") == "run mine.yaml"
    for word in ("plan", "report"):
        assert shlex.split(told(word, "mine", "--ledger", "our runs")) == [
            "run",
            "mine.yaml",
            "--ledger",
            str(other),
        ]
    monkeypatch.setenv("SEMRAY_LEDGER", "our runs")
    for word in ("plan", "report"):
        assert told(word, "mine") == told(word, "mine", "--ledger", str(other)) == "run mine.yaml"
    assert told("plan", "mine", "--ledger", "ledger") == f"run mine.yaml --ledger {place}/ledger"
    monkeypatch.setenv("SEMRAY_LEDGER", f"../{place.name}/our runs")
    assert told("plan", "mine") == "run mine.yaml"


def test_a_program_is_watched_unless_it_is_installed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python that runs semray, what lies in PATH, and a Python environment elsewhere; not a script of one's
    own, however its path is written."""

    def starts(program: Path | str) -> Plan:
        return planned(place, "[python, train.py,", f"[{program}, train.py,")

    own, other = place / "own", place / "env"
    for program in (own / "start.sh", other / "bin" / "python"):
        program.parent.mkdir(parents=True)
        program.touch()
    (other / "pyvenv.cfg").touch()
    for program in (sys.executable, "/bin/sh", other / "bin" / "python"):
        assert starts(program).runs
    for program in (own / "start.sh", "own/start.sh"):
        with pytest.raises(StudyError, match=rf"run: {program} is a file, and data\.watch does not hold it"):
            starts(program)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}{os.pathsep}{own}")
    assert starts(own / "start.sh").runs


@pytest.mark.parametrize("word", ["rates.yaml", "--rates=rates.yaml", "rates=rates.yaml", "--rates=./rates.yaml"])
def test_a_file_that_a_word_names_is_watched(place: Path, word: str) -> None:
    assert planned(place, "--pause, 0]", f"{word}]").runs, "no such file: a word like any other"
    (place / "rates.yaml").touch()
    with pytest.raises(StudyError, match=r"run: (\./)?rates\.yaml is a file, and data\.watch does not hold it"):
        planned(place, "--pause, 0]", f"{word}]")
    (place / "more.yaml").write_text(STUDY.replace("--pause, 0]", f"{word}]").replace("[train.py]", "[.]"))
    study = read_study(place / "more.yaml")
    assert plan(study, gather_facts(study)).runs


@pytest.mark.parametrize("word", ["x = 1; " * 100, "/" + "x" * 300, "/" + "x" * 300 + "/python"])
def test_a_word_may_be_longer_than_a_name(place: Path, word: str) -> None:
    assert planned(place, "[python, train.py,", f"[python, -c, '{word}',").runs
    assert planned(place, "[python, train.py,", f"['{word}', train.py,").runs
    with pytest.raises(StudyError, match=r"arms\.fast\.run: x+\.py: no such file in"):
        planned(place, "{lr: 1.0e-1}", f"{{run: [python, {'x' * 300}.py]}}")
    with pytest.raises(StudyError, match=r"data\.watch: x+: no such file or folder in"):
        planned(place, "watch: [train.py]", f"watch: [{'x' * 300}]")


SEARCH = """\
search:
  space: command
  arms: [slow]
  dimensions: {lr: {low: 1.0e-4, high: 1.0e-1, log: true}}
  trials: 3
  objective: {metric: dev/scores/accuracy, mode: max}
  seeds: [100, 101]
"""
WITH_DEV = STUDY.replace("accuracy: higher,", "accuracy: higher, dev/accuracy: higher,") + SEARCH


def around(place: Path, old: str = "", new: str = "") -> Selection:
    assert not old or WITH_DEV.count(old) == 1
    (place / "mine.yaml").write_text(WITH_DEV.replace(old, new) if old else WITH_DEV)
    study = read_study(place / "mine.yaml")
    (selection,) = selections(study, gather_facts(study))
    return selection


def test_the_values_of_a_command_can_be_searched(place: Path) -> None:
    selection = around(place, "{low: 1.0e-4, high: 1.0e-1, log: true}", "{low: 0.0001, high: 0.2}")
    assert default_point(selection.space, selection.settings) == {"lr": 1e-3}
    assert selection.study.evaluate == ("dev/scores",)
    run = selection.run(1, {"lr": 0.05}, 100)
    assert (run.label, run.seed) == ("slow@1, seed 100", 100)
    assert "0.05" in run.defining["run"]
    assert run.settings["values"] == {"lr": 0.05}
    assert around(place).id != selection.id  # other bounds are another search
    assert summary(Searched(selection=selection, trials=())).startswith(
        "slow: dev/scores/accuracy (max) over seeds 100 101; "
    )


def test_a_point_is_the_run_that_an_arm_with_its_values_would_be(place: Path) -> None:
    at = around(place).run(1, {"lr": 1e-1}, 3)
    (place / "mine.yaml").write_text(WITH_DEV)
    study = read_study(place / "mine.yaml")
    assert at.id in {run.id for run in plan(study, gather_facts(study)).runs if run.arm == "fast"}


def test_a_search_over_choices_of_a_command(place: Path) -> None:
    selection = around(place, "{low: 1.0e-4, high: 1.0e-1, log: true}", "[1.0e-3, 0.5, fast]")
    points = list(grid(selection.space, selection.settings))
    assert [point["lr"] for point in points] == [1e-3, 0.5, "fast"]
    assert settings_at(selection.space, selection.settings, points[2]).values == {"lr": "fast"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{lr: {low: 1.0e-4, high: 1.0e-1, log: true}}", "{}", r"dimensions(.|\n)*accepted: a mapping of placeholders"),
        ("dimensions: {lr:", "dimensions: {rate:", r"dimensions\.rate(.|\n)*a placeholder that arms\.slow has a value for"),
        ("low: 1.0e-4", "low: 1.0", r"dimensions\.lr(.|\n)*\{low: …, high: …\}, with log: true"),
        ("low: 1.0e-4", "low: 1.0e-2", r"dimensions\.lr(.|\n)*bounds or values that hold 0\.001"),
        ("high: 1.0e-1, log: true}", "low2: 1}", r"dimensions\.lr"),
        ("seeds: [100, 101]", "seeds: [3, 101]", r"a seed that is not among `seeds`"),
        ("metric: dev/scores/accuracy", "metric: scores/accuracy", r"objective\.metric(.|\n)*dev/scores/accuracy"),
        ("  trials: 3", "  stop_early: {rule: median, at: [1]}\n  trials: 3", r"nothing looks into a command before its end"),
        ("arms: [slow]", "arms: [slw]", r"arms(.|\n)*slow"),
        ("space: command", "space: concept", r"search\.space(.|\n)*command"),
    ],
)  # fmt: skip
def test_plan_refuses_a_search_that_cannot_work(place: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        around(place, old, new)


@pytest.mark.long
def test_a_command_is_searched_and_confirmed(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{place}/mlflow.db")
    script = (
        "import sys\nseed, out, lr = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])\n"
        "rows = [f'{at},{item},{0.9 - abs(lr - 0.3) + seed / 1e4 + item / 1e3}'"
        " for at in ('accuracy', 'dev/accuracy') for item in range(8)]\n"
        "open(out + '/scores.csv', 'w').write('\\n'.join(['metric,item,score', *rows]) + '\\n')\n"
    )
    (place / "train.py").write_text(script)
    (place / "mine.yaml").write_text(
        WITH_DEV.replace(", loss: lower", "")
        .replace(
            '--seed, "{seed}", --out, "{out}", --learning_rate, "{lr}", --pause, 0', '"{seed}", "{out}", "{lr}"'
        )
        .replace("seeds: [3, 4]", "seeds: 8")
        .replace("{low: 1.0e-4, high: 1.0e-1, log: true}", "[1.0e-3, 0.3, 0.5]")
        .replace("  trials: 3", "  trials: 3\n  sampler: grid\n  race: 0")
    )
    assert main(["search", "mine.yaml", "--lanes", "1", "--json"]) == 0
    said = capsys.readouterr().out
    assert '"lr": 0.3' in said
    assert main(["confirm", "mine.yaml", "--lanes", "1"]) == 0
    told = capsys.readouterr().out
    assert re.search(r"search slow +slow@1 - slow .*better", told), told


def test_scores_without_metrics_are_refused(place: Path) -> None:
    text = STUDY.replace(", metrics: {accuracy: higher, loss: lower}", "").partition("compare:")[0]
    (place / "mine.yaml").write_text(text)
    with pytest.raises(StudyError, match=r"data\.metrics\n  accepted: what the file holds, such as metrics: "):
        gather_facts(read_study(place / "mine.yaml"))
    with pytest.raises(StudyError, match=r"'scores/accuracy'\n  accepted: none: the study declares nothing that"):
        planned(place, ", metrics: {accuracy: higher, loss: lower}", "")


def test_a_task_more_that_reads_what_no_script_left_is_refused(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of an arm all of whose finished commands left none; one that left an encoder, or whose files are gone, goes on."""
    (place / "STSBenchmark").mkdir()
    (place / "STSBenchmark" / "sts-test.csv").write_text("main\tnews\t2012\t1\t2\tone\ttwo\n")
    then = "    options.backbone = 'tiny' if Path('tiny').exists() else ''\n    if options.backbone:\n"
    (place / "train.py").write_text(SCRIPT.replace("    if options.backbone:\n", then))
    ledger, asked = Ledger(place / "ledger"), planned(place)
    carry_out(asked.runs[:3], ledger)
    text = STUDY.replace("data: {", f"data: {{path: {place}, ").replace("[scores]", "[scores, sts/STS-B]")
    (place / "mine.yaml").write_text(text)
    for word in ("plan", "run"):
        assert main([word, "mine"]) == 2
        told = "mine.yaml: evaluate: sts/STS-B needs an encoder, and no finished run of slow left one\n  accepted"
        assert told in capsys.readouterr().err
    ledger.drop_model(asked.runs[0])  # its command runs again, the other two still left none
    assert main(["plan", "mine"]) == 2
    (place / "mine.yaml").write_text(text.replace("arms: {slow: {lr: 1.0e-3}, ", "arms: {slow: {lr: 1.0e-2}, "))
    assert main(["plan", "mine"]) == 2
    assert "no finished run of fast left one" in capsys.readouterr().err
    tiny_backbone(place / "tiny")
    carry_out(asked.runs[3:], ledger)
    assert main(["plan", "mine"]) == 0


def test_an_arm_may_be_the_backbone_as_it_is(place: Path) -> None:
    """Beside a command that starts from it, on a task that semray scores."""
    (place / "STSBenchmark").mkdir()
    rows = (f"main\tnews\t2012\t1\t{n % 6}\ta {n} is\tthe {n * n}\n" for n in range(12))
    (place / "STSBenchmark" / "sts-test.csv").write_text("".join(rows))
    tiny_backbone(place / "tiny")
    text = STUDY.partition("compare:")[0].replace("slow: {lr: 1.0e-3}", "as-it-is: {train: false, run: []}")
    text = text.replace("evaluate: [scores]", "evaluate: [sts/STS-B]").replace("seeds: [3, 4]", "seeds: [3]")
    text = text.replace("data: {", f"backbones: [{place}/tiny]\ndata: {{path: {place}, ")
    text = text.replace("--pause, 0]", '--pause, 0, --backbone, "{backbone}"]')
    (place / "mine.yaml").write_text(text)
    study = read_study(place / "mine.yaml")
    still, trained = (outcome(execute(Job(runs=(run,)), World())) for run in plan(study, gather_facts(study)).runs)
    assert still.values.keys() == trained.values.keys()
    assert (still.scores[0].values != trained.scores[0].values).any()


def test_of_backbones_that_a_script_opens_itself_none_is_refused(place: Path) -> None:
    """An arm without one is read by semray, in the precision of the study."""
    tiny_backbone(place / "tiny")
    (place / "tiny" / "config.json").write_text('{"model_type": "deberta"}')
    text = STUDY.replace("seeds:", f"backbones: [{place}/tiny]\nresources: {{precision: bf16}}\nseeds:")
    bare = text.replace("slow: {lr: 1.0e-3}", "slow: {train: false, run: []}")
    (place / "mine.yaml").write_text(text)
    checked_backbones(read_study(place / "mine.yaml"))
    (place / "bare.yaml").write_text(bare.replace("[scores]", "[geometry/STS-B]").partition("compare:")[0])
    with pytest.raises(StudyError, match=r"of the kind deberta, .*\n  accepted: resources\.precision: fp32"):
        checked_backbones(read_study(place / "bare.yaml"))
