"""`semray noise`: a crossed design over the streams of an arm, its table and its words."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower

from evaluators.metrics.scores import Score
from orchestration.commands import noise
from orchestration.commands.cli import main
from orchestration.families import registry
from orchestration.lanes.in_this_process import carry_out
from orchestration.ledger.ledger import Ledger
from orchestration.plan.crossed import alone_changed, level_seeds, with_seeds
from orchestration.plan.held import planned
from orchestration.reading.read_study import read_study
from orchestration.study.run import Run
from orchestration.study.study import Study
from tests import toy_family
from tests.corpora.conftest import write_small_wordnet
from tests.tiny import tiny_backbone
from trainers.engine.streams import numpy_stream
from trainers.engine.world import Progress, World

STUDY = """\
question: Where does it come from?
family: toy
backbones: [PLACE/tiny]
seeds: 5
arms: {still: {train: false}, quick: {}, quicker: {learning_rate: 0.3}, free: {learning_rate: 0.2}}
evaluate: [length]
compare:
  - {claim: T1, treatment: quicker, control: quick, metric: length/mean, expect: better, min_effect: 0.05}
"""
REAL = """\
question: Where does it come from?
family: concept
backbones: [{place}/tiny]
seeds: 3
data: {{wordnet: {place}/wordnet, n_hh: 20, n_id: 20, n_dev: 10}}
train: {{steps: 5, batch_size: 4, max_length: 16, learning_rate: 3.0e-2}}
arms: {{B1: {{hard_negatives: true}}, B0: {{train: false}}}}
evaluate: [t2d]
compare:
  - {{claim: H1, treatment: B1, control: B0, metric: t2d/mrr, expect: better}}
"""


class AtOnce:
    """Lanes in this process, that count what they train."""

    trained = 0

    @classmethod
    @contextmanager
    def executor(cls, study: Study, ledger: Ledger) -> Iterator[noise.Train]:
        def carry(runs: Sequence[Run]) -> None:
            left = [run for run in runs if run.lacking(ledger.held([run]))]
            cls.trained += carry_out(left, ledger)
            for run in left:
                noise._drop_unkept(study, ledger, run)

        yield carry


def toy_with(**effects: float) -> Callable[..., object]:
    """A training whose weight moves with a normal draw from each of these streams, of this size."""

    def fit(settings: object, backbone: Path, corpus: object, seed: int, world: World) -> object:
        moved = sum(size * numpy_stream(seed, stream).normal() for stream, size in effects.items())
        return toy_family.ToyEncoder(5.0 + moved), [Progress(step=1, steps=1, loss=1.0)]

    return fit


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(registry.FAMILIES, "toy", "tests.toy_family")
    monkeypatch.setattr(noise, "_executor", AtOnce.executor)
    monkeypatch.setattr(AtOnce, "trained", 0)
    tiny_backbone(tmp_path / "tiny")
    (tmp_path / "toys.yaml").write_text(STUDY.replace("PLACE", str(tmp_path)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_stream_that_moves_the_score_has_the_largest_share(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(toy_family, "fit", toy_with(init=1.0, data=0.1))
    assert main(["noise", "toys.yaml", "quick", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["live"], told["idle"]) == (["data", "init"], ["dropout", "negatives"])
    shares = {name: part["share"] for name, part in told["found"]["factors"].items()}
    assert shares["init"] > 0.8
    assert shares["init"] + shares["data"] == pytest.approx(1.0)  # effects that only add leave nothing together
    assert AtOnce.trained == 28  # the 25, and data, dropout and negatives changed while all four were apart

    assert main(["noise", "toys.yaml", "quick"]) == 0
    said = capsys.readouterr().out
    assert AtOnce.trained == 28  # a second call trains nothing
    assert "dropout     changes no score of this arm" in said
    assert "share     init between arms" in said
    assert "a difference of 0.05 takes" in said


def test_a_figure_that_does_not_exist_is_changed_by_no_stream(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is nan in every run, and nan is unlike itself."""

    def with_undefined(data: toy_family.ToyData) -> dict[str, Any]:
        table = toy_family.tasks(data)
        undefined = [Score(metric="again/mean", value=math.nan)]
        return table | {"again": replace(table["again"], score=lambda words, encode: undefined)}

    monkeypatch.setattr(toy_family, "FAMILY", replace(toy_family.FAMILY, own_tasks=with_undefined))
    monkeypatch.setattr(toy_family, "fit", toy_with(init=1.0, data=0.1))
    (place / "toys.yaml").write_text(STUDY.replace("[length]", "[length, again]").replace("PLACE", str(place)))
    assert main(["noise", "toys.yaml", "quick", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["live"], told["idle"]) == (["data", "init"], ["dropout", "negatives"])


def test_the_figures_are_those_of_a_two_way_table(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Order and weights, and what they do together: mean squares by hand, power by statsmodels and scipy."""

    def fit(settings: object, backbone: Path, corpus: object, seed: int, world: World) -> object:
        order, weights = (numpy_stream(seed, stream).normal() for stream in ("data", "init"))
        weight = 5.0 + order + 2 * weights + order * weights
        return toy_family.ToyEncoder(weight), [Progress(step=1, steps=1, loss=1.0)]

    more = "{claim: T2, treatment: quick, control: quicker, metric: again/mean, expect: equivalent, margin: 0.25}"
    text = STUDY.replace("[length]", "[length, again]") + f"  - {more}\n"
    (place / "toys.yaml").write_text(text.replace("PLACE", str(place)))
    monkeypatch.setattr(toy_family, "fit", fit)
    assert main(["noise", "toys.yaml", "quick", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["found"]

    drawn = {name: np.array([numpy_stream(s, name).normal() for s in range(5)]) for name in ("data", "init")}
    order, weights = drawn["data"][:, None], drawn["init"][None, :]
    table = (5.0 + order + 2 * weights + order * weights) * (1 + 2 + 4) / 3 / 100
    rest = table - table.mean(0) - table.mean(1)[:, None] + table.mean()
    of_rest = (rest**2).sum() / 16
    parts = [max(table.mean(axis).var(ddof=1) - of_rest / 5, 0.0) for axis in (1, 0)] + [of_rest]
    found = [*told["factors"].values(), told["rest"]]
    assert list(told["factors"]) == ["data", "init"]
    assert [part["variance"] for part in found] == pytest.approx(parts, rel=1e-4)  # the toy encodes in float32
    assert [part["share"] for part in found] == pytest.approx([one / sum(parts) for one in parts], rel=1e-4)
    assert (told["mean"], told["sd"], told["runs"]) == pytest.approx(
        (table.mean(), sum(parts) ** 0.5, 25), rel=1e-5
    )

    assert main(["noise", "toys.yaml", "quick"]) == 0
    said = capsys.readouterr().out
    assert f"length/mean: {table.mean():.4f} ± {sum(parts) ** 0.5:.4f} over all streams (25 runs)" in said
    for name, part in zip(("data", "init", "together"), found, strict=True):
        shown = f"{part['share']:.0%} [{part['low']:.0%}, {part['high']:.0%}]"
        assert re.search(rf"^{name} +{re.escape(shown)} +{part['variance'] ** 0.5:.4f}$", said, re.M)
    alone = [100 * (1 - told["rest"][bound]) for bound in ("share", "high", "low")]
    assert "alone is {:.0f}% [{:.0f}%, {:.0f}%] of the variance".format(*alone) in said
    sds = [(2 * of_rest) ** 0.5, (2 * sum(parts)) ** 0.5]
    least = [TTestPower().solve_power(nobs=5, power=0.8, alpha=0.05) * sd for sd in sds]
    assert "seeds     5 show a difference of {:.4f} to {:.4f}: ".format(*least) in said
    needed = [next(n for n in range(2, 10**4) if TTestPower().power(0.05 / sd, n, 0.05) >= 0.8) for sd in sds]
    assert "a difference of 0.05 takes {} to {}\n".format(*needed) in said
    assert "0.25" not in said  # a margin of another metric

    assert main(["noise", "toys.yaml", "quick", "--metric", "again/mean"]) == 0
    said = capsys.readouterr().out
    assert f", again/mean: {table.mean():.4f} ± " in said
    assert "a difference of 0.25 takes" in said
    assert "a difference of 0.05" not in said


def test_runs_with_one_seed_in_all_streams_are_the_studys_own(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toy_family, "fit", toy_with(init=1.0, data=1.0))
    ledger, study = Ledger("ledger"), read_study("toys.yaml")
    assert main(["noise", "toys.yaml", "quick"]) == 0
    done = {run.seed for run in planned(study, ledger).done if run.arm == "quick"}
    assert done == {0, 1, 2, 3, 4}  # of two streams with five seeds, the five pairs of equal ones


def test_one_live_stream_needs_no_design(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(toy_family, "fit", toy_with(dropout=1.0))
    assert main(["noise", "toys.yaml", "quick"]) == 0
    assert "length/mean: all of the noise is from dropout" in capsys.readouterr().out
    assert AtOnce.trained == 5


def test_the_claim_of_a_side_with_a_backbone_gives_the_metric(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(toy_family, "fit", toy_with(dropout=1.0))
    sided = STUDY.replace("treatment: quicker", "treatment: {arm: quicker, backbone: PLACE/tiny}")
    sided = sided.replace("control: quick,", "control: {arm: quick, backbone: PLACE/tiny},")
    (place / "toys.yaml").write_text(sided.replace("PLACE", str(place)))
    assert main(["noise", "toys.yaml", "quick"]) == 0
    assert "length/mean: all of the noise is from dropout" in capsys.readouterr().out


def test_an_arm_that_no_seed_moves_is_said(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(toy_family, "fit", toy_with())
    assert main(["noise", "toys.yaml", "quick"]) == 0
    said = capsys.readouterr().out
    assert "one seed gives the scores of another" in said
    assert "no seed moves this score" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["slow"], "no arm slow\n  accepted: still, quick, quicker, free"),
        (["free"], "toys.yaml: no claim on free\n  accepted: --metric METRIC"),
        (["still"], "still is not trained, and has no noise"),
        (["quick", "--metric", "t2d/mrr"], "--metric t2d/mrr\n  accepted: length/mean"),
        (["quick", "--backbone", "other"], "--backbone other\n  accepted: "),
    ],
)
def test_what_cannot_be_asked_is_said(
    place: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["noise", "toys.yaml", *words]) == 2
    assert said in capsys.readouterr().err


def test_each_of_several_figures_is_no_metric_to_ask_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_small_wordnet(tmp_path / "wordnet")
    tiny_backbone(tmp_path / "tiny", layers=1)
    each = "each(t2d/mrr, t2d/recall@10)"
    text = REAL.format(place=tmp_path).replace("metric: t2d/mrr", f'metric: "{each}"')
    (tmp_path / "real.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main(["noise", "real.yaml", "B1", "--metric", each]) == 2
    assert f"--metric {each}\n  accepted: t2d/" in capsys.readouterr().err


def test_more_streams_than_levels_are_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(toy_family, "fit", toy_with(data=1.0, init=1.0, dropout=1.0, negatives=1.0))
    assert main(["noise", "toys.yaml", "quick", "--levels", "3"]) == 2
    assert "--levels 3: 4 streams draw (data, init, dropout, negatives)" in capsys.readouterr().err


def test_a_script_with_one_seed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "mine.yaml").write_text(
        "question: Is it?\nfamily: command\nseeds: 2\ndata: {watch: [train.py], metrics: {acc: higher}}\n"
        'train: {run: [python, train.py, "{seed}", "{x}"]}\narms: {A: {x: 1}, B: {x: 2}}\nevaluate: [scores]\n'
        "compare:\n  - {claim: H1, treatment: B, control: A, metric: scores/acc, expect: better}\n"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["noise", "mine.yaml", "A"]) == 2
    assert "accepted: an arm that semray trains from named streams" in capsys.readouterr().err


def test_models_of_crossed_runs_stay_as_the_study_says(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(toy_family, "fit", toy_with(init=1.0, data=0.1))
    text, own = (place / "toys.yaml").read_text(), {0, 1, 2}
    for keep, kept in (("none", 0), ("best", len(own)), ("keep", 12)):
        (place / f"{keep}.yaml").write_text(
            text.replace("seeds: 5", "seeds: 3") + f"resources: {{models: {keep}}}\n"
        )
        assert main(["noise", f"{keep}.yaml", "quick", "--levels", "3", "--ledger", f"ledger-{keep}"]) == 0
        left = [
            Ledger(f"ledger-{keep}").training(at.parent.name).run for at in place.glob(f"ledger-{keep}/*/model")
        ]
        assert len(left) == kept
        assert keep == "keep" or all(run.seed in own and not run.streams for run in left)
    capsys.readouterr()
    assert main(["prune", "keep.yaml", "--models", "none", "--yes", "--json", "--ledger", "ledger-keep"]) == 0
    assert len(json.loads(capsys.readouterr().out)["models"]) == 12
    assert not list(place.glob("ledger-keep/*/model"))


def test_prune_and_reproducible_know_the_seeds_that_were_added(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seeds 2 and 3 while the claim was open, 5 trained ahead of a decision; 4 is not done."""

    def fit(settings: Any, backbone: Path, corpus: object, seed: int, world: World) -> object:
        moved = settings.learning_rate * numpy_stream(seed, "init").normal()
        return toy_family.ToyEncoder(5.0 + moved), [Progress(step=1, steps=1, loss=1.0)]

    monkeypatch.setattr(toy_family, "fit", fit)
    text = (place / "toys.yaml").read_text().replace("seeds: 5", "seeds: {start: 2, max: 6}")
    (place / "toys.yaml").write_text(text.replace(", min_effect: 0.05", ""))
    ledger = Ledger("ledger")
    arms = [run for run in planned(read_study("toys.yaml"), ledger).runs if run.seed == 0]
    runs = [replace(run, seed=seed) for run in arms for seed in (0, 1, 2, 3, 5) if run.arm != "free"]
    carry_out(runs, ledger)
    assert main(["prune", "toys.yaml", "--models", "none", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["models"].keys() == {run.id for run in runs}
    assert main(["reproducible", "toys.yaml", "quick", "--seed", "9"]) == 2
    assert "quick has no run with seed 9\n  accepted: 0, 1, 2, 3" in capsys.readouterr().err


def test_seeds_of_streams_are_part_of_the_id_and_of_the_label(place: Path) -> None:
    runs = planned(read_study("toys.yaml"), Ledger("ledger")).runs
    run = next(run for run in runs if run.arm == "quick")
    streams = ("data", "init", "dropout")
    changed = alone_changed(run, streams, 0, 1)
    assert len({run.id, *(one.id for one in changed.values())}) == 4
    assert changed["init"].label.endswith("seed 0, init 1")
    assert changed["data"].label.endswith("seed 1, init 0, dropout 0")
    assert with_seeds(run, dict.fromkeys(streams, 0)).id == run.id
    assert Run.from_dict(changed["init"].to_dict()).id == changed["init"].id
    assert [level_seeds((4, 9), 5), level_seeds((4, 9), 1), level_seeds((), 2)] == [
        (4, 9, 10, 11, 12),
        (4,),
        (0, 1),
    ]


def test_an_entry_of_before_is_of_the_ordinary_run_of_its_seed_alone(place: Path) -> None:
    """Such an entry is found by the run's former id, whichever streams had a seed of their own."""
    runs = planned(read_study("toys.yaml"), Ledger("ledger")).runs
    run = replace(next(run for run in runs if run.seed == 0), former="0123456789abcdef")
    former = {
        seeds: with_seeds(run, dict(zip(("data", "init"), seeds, strict=True))).former
        for seeds in ((0, 0), (0, 1), (1, 0), (1, 1))
    }
    assert former == {(0, 0): run.former, (0, 1): "", (1, 0): "", (1, 1): ""}


@pytest.mark.long
def test_a_real_arm_is_taken_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a real Ray: a mean readout draws no initial weights; order, dropout and negatives all move the score."""
    write_small_wordnet(tmp_path / "wordnet")
    tiny_backbone(tmp_path / "tiny", layers=1)
    (tmp_path / "real.yaml").write_text(REAL.format(place=tmp_path))
    monkeypatch.chdir(tmp_path)
    assert main(["noise", "real.yaml", "B1", "--levels", "3", "--json"]) == 0
    said = capsys.readouterr().out  # libraries may have their word before
    told = json.loads(said[said.index("{\n") :])
    assert "init" in told["idle"]
    assert told["found"]["runs"] == 9
    parts = [*told["found"]["factors"].values(), told["found"]["rest"]]
    assert np.sum([part["share"] for part in parts]) == pytest.approx(1.0)
