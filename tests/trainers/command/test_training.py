"""A command from its start to what it leaves; what goes wrong is said with the end of its log, and nothing stays."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import tracemalloc
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from corpora.command.corpus import CommandCorpus
from tests.tiny import tiny_backbone
from tests.waiting import until
from trainers.command.process import CommandFailed, CommandRefused
from trainers.command.product import NothingLeft, Product
from trainers.command.settings import Settings
from trainers.command.training import fit
from trainers.engine.world import Progress, Stopped, World

CORPUS = CommandCorpus("c", ("code at 1234, nothing uncommitted",))
SCRIPT = str(Path(__file__).parents[2] / "a_script.py")


def carried_out(
    *words: str, world: World | None = None, seed: int = 3, **more: float
) -> tuple[Product, list[Progress]]:
    return fit(Settings(run=words, **more), None, CORPUS, seed, world or World())


def script(*words: str, world: World | None = None, **more: float) -> tuple[Product, list[Progress]]:
    return carried_out("python", SCRIPT, "--seed", "{seed}", "--out", "{out}", *words, world=world, **more)


def python(text: str, *words: str, world: World | None = None, **more: float) -> tuple[Product, list[Progress]]:
    return carried_out("python", "-c", literally(text), *words, world=world, **more)


def literally(text: str) -> str:
    """A program as a word in which braces are no placeholders."""
    return textwrap.dedent(text).replace("{", "{{").replace("}", "}}")


def test_it_leaves_scores_and_a_curve(tmp_path: Path) -> None:
    seen: list[Progress] = []
    product, curve = script("--pause", "0.3", world=World(scratch=tmp_path, report=seen.append))
    assert product.scores == tmp_path / "out" / "scores.csv"
    assert product.notes == {"code": CORPUS.states[0]}
    assert [point.step for point in curve] == [1, 2, 3, 4]
    assert curve[0].figures == {"lr": 0.1}
    assert {moved.step for moved in seen} >= {2, 3}
    assert 0 < seen[-1].figures["bytes printed"] <= (tmp_path / "command.log").stat().st_size
    (tmp_path / "saved").mkdir()
    product.save(tmp_path / "saved")
    assert sorted(place.name for place in (tmp_path / "saved").iterdir()) == ["command.log", "scores.csv"]


def test_of_an_encoder_that_is_kept_nothing_hidden_is(tmp_path: Path) -> None:
    """Systems leave such files beside others' (._config.json); an entry of the ledger holds none."""
    encoder = tiny_backbone(tmp_path / "encoder", layers=1)
    files = {place.name for place in encoder.iterdir()}
    (encoder / "._config.json").write_text("{}")
    (encoder / ".cache").mkdir()
    (encoder / ".cache" / "config.json").write_text("{}")
    (tmp_path / "kept").mkdir()
    Product(encoder, None, World()).save(tmp_path / "kept")
    kept = {place.relative_to(tmp_path / "kept").as_posix() for place in (tmp_path / "kept").rglob("*")}
    assert kept == {name for name in files if name.endswith((".json", ".safetensors", ".txt"))}


def test_without_a_ledger_of_its_own_machine_the_room_lasts_as_long_as_the_product() -> None:
    product, _ = script("--pause", "0")
    assert product.scores is not None
    place = product.scores
    assert place.is_file()
    del product
    assert not place.exists()


def test_it_is_told_by_words_and_by_its_environment(tmp_path: Path) -> None:
    code = """
    import json, os, sys
    told = {name: value for name, value in os.environ.items() if name.startswith("SEMRAY_")}
    json.dump({"same": float(told["SEMRAY_OUT"] == sys.argv[1]), "seed": int(told["SEMRAY_SEED"])},
              open(sys.argv[1] + "/scores.json", "w"))
    assert "RANK" not in os.environ and sys.stdin.read() == ""
    assert os.getpgid(0) == os.getpid() and os.getpgid(os.getppid()) == os.getppid()  # Ctrl-C ends neither
    """
    words = ("python", "-c", literally(code), "{out}")
    product, _ = carried_out(*words, world=World(scratch=tmp_path), seed=5)
    assert product.scores is not None
    assert product.scores.read_text() == '{"same": 1.0, "seed": 5}'


def test_modules_of_the_user_do_not_reach_what_watches_over_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "subprocess.py").write_text("raise RuntimeError('of the user')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    write = 'echo \'{{"same": 1}}\' > "$SEMRAY_OUT/scores.json"'
    product, _ = carried_out("sh", "-c", write, world=World(scratch=tmp_path))
    assert product.scores is not None
    assert product.scores.read_text() == '{"same": 1}\n'


def test_of_a_bar_that_redraws_its_line_the_newest_state_is_told(tmp_path: Path) -> None:
    code = """
    import sys
    sys.stdout.write("step 1/3 loss 3\\rstep 2/3 loss 2\\r")
    open(sys.argv[1] + "/scores.json", "w").write('{"a": 1}')
    """
    seen: list[Progress] = []
    python(code, "{out}", world=World(scratch=tmp_path, report=seen.append))
    assert seen[-1].step == 2


def test_a_retry_finds_what_was_left_under_the_same_path(tmp_path: Path) -> None:
    """The ledger's folder for checkpoints gets another number with each attempt; the script must not see it."""
    code = """
    import os, pathlib, sys
    out = pathlib.Path(sys.argv[1])
    first = out / "first"
    if not first.exists():
        first.write_text(str(out))
        sys.exit(3)
    (out / "scores.json").write_text('{"same": %d}' % (first.read_text() == str(out)))
    """
    earlier, later = tmp_path / "abc.1", tmp_path / "abc.2"
    earlier.mkdir()
    with pytest.raises(CommandFailed):
        python(code, "{out}", world=World(scratch=earlier))
    earlier.rename(later)
    product, _ = python(code, "{out}", world=World(scratch=later))
    assert product.scores is not None
    assert product.scores.read_text() == '{"same": 1}'


def test_a_retry_makes_its_folder_where_a_file_was_left_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a model, perhaps")
    product, _ = script("--pause", "0", world=World(scratch=tmp_path))
    assert product.scores == tmp_path / "out" / "scores.csv"


def test_a_command_that_removes_the_folder_above_its_own_is_told_so(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    code = "import os, shutil, sys; shutil.rmtree(os.path.realpath(sys.argv[1] + '/..'))"
    with pytest.raises(
        CommandRefused, match=f"python: removed {kept}, the folder .*\\n  accepted: a command that"
    ):
        python(code, "{out}", world=World(scratch=kept))


@pytest.mark.parametrize(
    ("act", "kind", "said"),
    [
        (
            lambda w: script("--fail", "3", world=w),
            CommandFailed,
            "python: exit code 3 after .* s: Traceback: it broke",
        ),
        (lambda w: script("--lr", "1", world=w), CommandRefused, "exit code 2 .*unrecognized arguments: --lr 1"),
        (
            lambda w: carried_out("/no/such/program", world=w),
            CommandRefused,
            "could not be started: .*No such file",
        ),
        (lambda w: python("import os; os.kill(os.getpid(), 9)", world=w), CommandFailed, "ended by SIGKILL"),
        (
            lambda w: python("import os; os.kill(os.getppid(), 9); os.kill(os.getpid(), 9)", world=w),
            CommandFailed,
            "ended by SIGKILL",
        ),
        (lambda w: python("import sys; sys.exit(-1)", world=w), CommandFailed, "exit code 255 after"),
        (
            lambda w: python("import sys; print('not started'); sys.exit(127)", world=w),
            CommandFailed,
            "exit code 127 after",
        ),
        (lambda w: script("--pause", "60", world=w, timeout=4.0), CommandFailed, "its timeout of 4 s: step 1/4"),
        (
            lambda w: python("print('all is well')", world=w),
            NothingLeft,
            "left nothing\n  accepted: one of scores.csv",
        ),
        (
            lambda w: python(
                "import os, sys; open(os.fsencode(sys.argv[1]) + b'/\\xff.bin', 'w')", "{out}", world=w
            ),
            NothingLeft,
            r"and left \\udcff\.bin\n  accepted: one of scores.csv",
        ),
        (
            lambda w: python("import os, sys; os.mkdir(sys.argv[1] + '/scores.csv')", "{out}", world=w),
            NothingLeft,
            "and left scores.csv, which is no file\n  accepted: one of scores.csv",
        ),
        (
            lambda w: python("import shutil, sys; shutil.rmtree(sys.argv[1])", "{out}", world=w),
            NothingLeft,
            "and left no folder there\n  accepted: one of scores.csv",
        ),
        (
            lambda w: python("import os, sys; os.rmdir(sys.argv[1]); open(sys.argv[1], 'w')", "{out}", world=w),
            NothingLeft,
            "out: the command ended well, and left a file in place of that folder\n  accepted: one of scores.csv",
        ),
        (
            lambda w: python("import os, sys; os.mkdir(sys.argv[1] + '/model')", "{out}", world=w),
            NothingLeft,
            "model: has no config.json\n  accepted: a folder of Sentence",
        ),
        (
            lambda w: python(
                "import sys; [open(sys.argv[1] + '/scores.' + n, 'w') for n in ('csv', 'json')]", "{out}", world=w
            ),
            NothingLeft,
            "holds scores.csv and scores.json",
        ),
    ],
)
def test_what_goes_wrong_is_said_with_the_end_of_the_log(act, kind, said: str, tmp_path: Path) -> None:
    with pytest.raises(kind, match=said) as caught:
        act(World(scratch=tmp_path))
    if kind is not NothingLeft:
        assert f"  log: {tmp_path}/command.log" in str(caught.value)
        assert (tmp_path / "command.log").exists()


def test_the_end_of_a_log_is_its_last_twenty_lines_that_say_something(tmp_path: Path) -> None:
    code = "import sys; [print(f'line {number}\\r\\n  ') for number in range(50)]; sys.exit(1)"
    with pytest.raises(CommandFailed) as caught:
        python(code, world=World(scratch=tmp_path))
    told = str(caught.value).splitlines()
    assert told[0].endswith(": line 49")
    assert told[2:] == [f"  | line {number}" for number in range(30, 50)]


@pytest.mark.parametrize("end", ["\\r", ""], ids=["redrawn", "never ended"])
def test_what_it_prints_may_be_larger_than_memory(end: str, tmp_path: Path) -> None:
    """64 MiB on one line, between two steps; the last MiB is kept, and the curve is whole."""
    code = (
        f"import sys; print('step 1/2 loss 4'); [sys.stdout.write('bar ' * 2**18 + '{end}') for _ in range(64)]; "
        "print('\\nstep 2/2 loss 3'); open(sys.argv[1] + '/scores.json', 'w').write('{\"a\": 1}')"
    )
    scratch, kept = tmp_path / "scratch", tmp_path / "kept"
    scratch.mkdir()
    kept.mkdir()
    tracemalloc.start()
    try:
        product, curve = python(code, "{out}", world=World(scratch=scratch))
        product.save(kept)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [(point.step, point.loss) for point in curve] == [(1, 4.0), (2, 3.0)]
    assert (kept / "command.log").stat().st_size == 1 << 20
    assert peak < 16 << 20


def test_it_hears_a_hangup_though_a_lane_does_not(tmp_path: Path) -> None:
    """A closing terminal must not end lanes; a script may need SIGHUP for processes of its own.

    The script takes back what `nohup` has the whole session of tests ignore.
    """
    code = "import os, signal; signal.signal(signal.SIGHUP, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGHUP)"
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        with pytest.raises(CommandFailed, match="ended by SIGHUP after"):
            python(code, world=World(scratch=tmp_path))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_asked_to_stop_it_may_save_and_goes_on_later(tmp_path: Path) -> None:
    saved = tmp_path / "out" / "checkpoint.json"
    with pytest.raises(Stopped):
        script("--pause", "0.5", world=World(scratch=tmp_path, stopping=saved.exists))
    assert saved.exists()
    done, seen = json.loads(saved.read_text())[0], list[Progress]()
    _, curve = script("--pause", "0.3", world=World(scratch=tmp_path, report=seen.append))
    assert {told.step for told in seen}.isdisjoint(range(1, done + 1))  # no news of the earlier attempt
    assert "resuming after step" in (tmp_path / "command.log").read_text()
    assert [point.loss for point in curve] == [point.loss for point in script("--pause", "0")[1]]


AT_WORK = """
import pathlib, signal, sys, time
out = pathlib.Path(sys.argv[1])
def save(number, frame):
    time.sleep(0.3)  # what saving takes
    (out / "saved").touch()
    sys.exit()
signal.signal(signal.SIGTERM, save if sys.argv[2] == "saves" else signal.SIG_IGN)
(out / "begun").touch()
time.sleep(600)
"""


@pytest.mark.parametrize("kind", ["saves", "deaf"])
def test_asked_to_stop_it_is_waited_for_and_ended_if_it_does_not(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In any case nothing of it runs on once the training has stopped."""
    monkeypatch.setenv("OF_THIS_TEST", str(tmp_path))
    if kind == "deaf":
        monkeypatch.setattr("trainers.command.process.END_SECONDS", 0.5)
    out = tmp_path / "out"
    with pytest.raises(Stopped):
        python(AT_WORK, "{out}", kind, world=World(scratch=tmp_path, stopping=(out / "begun").exists))
    assert (out / "saved").exists() == (kind == "saves")
    assert started_with("OF_THIS_TEST", str(tmp_path)) == []


def test_what_an_earlier_attempt_cost_is_told_to_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of one that was killed too, up to a moment before."""
    monkeypatch.setattr("trainers.command.training.KEEP_SECONDS", 0.0)
    killed, told = tmp_path / "killed", list[Mapping[str, float]]()
    killed.mkdir()

    def at_work(progress: Progress) -> None:
        if (kept := tmp_path / "cost.json").exists():
            shutil.copy(kept, killed)

    world = World(scratch=tmp_path, report=at_work, so_far=lambda: {"seconds": 7.0}, go_on=told.append)
    with pytest.raises(Stopped):
        script("--pause", "0.3", world=replace(world, stopping=(tmp_path / "out" / "checkpoint.json").exists))
    script("--pause", "0", world=replace(world, report=World().report))
    script("--pause", "0.3", world=replace(world, scratch=killed))
    assert told == [{"seconds": 7.0}] * 2


STARTS_MORE = """
import pathlib, subprocess, sys, time
out = pathlib.Path(sys.argv[1])
subprocess.Popen(["sleep", "600"], start_new_session=True)
ORPHAN = '''
import os, pathlib, subprocess, sys
os.setsid() if os.fork() == 0 else os._exit(0)
own = subprocess.Popen(["sleep", "600"])
pathlib.Path(sys.argv[1]).touch()
own.wait()
'''
subprocess.run([sys.executable, "-c", ORPHAN, out / "begun"])
while not (out / "begun").exists():
    time.sleep(0.01)
(out / "scores.json").write_text('{"a": 1}')
if sys.argv[2] == "stay":
    time.sleep(600)
"""
HOLDS = """
import sys
from pathlib import Path
from corpora.command.corpus import CommandCorpus
from trainers.command.settings import Settings
from trainers.command.training import fit
from trainers.engine.world import World
fit(Settings(run=("python", "-c", sys.argv[1], "{out}", "stay")), None, CommandCorpus("c", ()), 1, World(scratch=Path(sys.argv[2])))
"""


def descendants(process: psutil.Process) -> list[psutil.Process]:
    return [one for one in process.children(recursive=True) if one.status() != psutil.STATUS_ZOMBIE]


def started_with(variable: str, value: str) -> list[psutil.Process]:
    """Processes of this environment, whoever is their parent by now."""
    every = psutil.process_iter(["environ", "status"])
    own = [one for one in every if (one.info["environ"] or {}).get(variable) == value]
    return [one for one in own if one.info["status"] != psutil.STATUS_ZOMBIE]


def test_what_a_command_leaves_running_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THIS_TEST", str(tmp_path))
    product, _ = python(STARTS_MORE, "{out}", "go", world=World(scratch=tmp_path))
    assert product.scores is not None
    assert started_with("OF_THIS_TEST", str(tmp_path)) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_the_process_that_started_it(number: int, tmp_path: Path) -> None:
    """Killed as a lane is, without a word: the command, its children and those that left its group end too."""
    holder = subprocess.Popen([sys.executable, "-c", HOLDS, literally(STARTS_MORE), str(tmp_path)])
    until(lambda: (tmp_path / "out" / "scores.json").exists(), seconds=60)
    below = descendants(psutil.Process(holder.pid))
    assert len(below) >= 5  # supervisor, command, a session of its own, an orphan in another and its child
    holder.send_signal(number)
    holder.wait()
    until(lambda: not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in below), seconds=10)


def test_a_command_ends_when_its_supervisor_is_killed(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDS, literally(AT_WORK), str(tmp_path)], stderr=subprocess.DEVNULL
    )
    until((tmp_path / "out" / "begun").exists, seconds=60)
    (watching,) = psutil.Process(holder.pid).children()
    (command,) = (one for one in watching.children() if "stay" in one.cmdline())
    os.kill(watching.pid, signal.SIGKILL)
    until(lambda: not command.is_running() or command.status() == psutil.STATUS_ZOMBIE, seconds=10)
    assert holder.wait() != 0
