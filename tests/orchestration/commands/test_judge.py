"""`semray judge`: scores from elsewhere get the verdicts that the ledger's own would get, to the last digit."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from corpora.command.scores import rows_of
from corpora.elsewhere import table as tables
from evaluators.metrics.item_metrics import score_of_items
from evaluators.metrics.scores import Score
from orchestration.commands import judge
from orchestration.commands.cli import main
from orchestration.families import judged_table, registry
from orchestration.ledger.ledger import Ledger
from orchestration.plan.held import planned
from orchestration.reading.read_study import read_study
from orchestration.study.run import Run
from orchestration.verdicts.declared import declare
from orchestration.verdicts.find import find
from tests.corpora.conftest import write_small_wordnet
from tests.results import finish
from tests.tiny import tiny_backbone

CLAIMS = """\
compare:
  - {claim: H1, treatment: B1, control: B0, metric: t2d/recall@10, expect: better}
  - {claim: H2, treatment: B1, control: B1-noHN, metric: stress/negate/auc, expect: better}
  - {claim: H3, treatment: B1, control: B1-noHN, metric: t2d/recall@10, expect: equivalent, margin: 0.05}
"""
STUDY = """\
question: Does the table say what the ledger says?
family: concept
backbones: [{backbone}]
seeds: 4
data: {{wordnet: {wordnet}, n_hh: 20, n_id: 20, n_dev: 10}}
arms: {{B0: {{train: false}}, B1: {{hard_negatives: true}}, B1-noHN: {{hard_negatives: false}}}}
evaluate: [t2d, stress]
"""
EFFECT = {"B0": 0.0, "B1": 0.6, "B1-noHN": 0.5}


def scores(run: Run) -> Iterator[Score]:
    """Items that are easy or hard for all, with an arm's effect and a seed's noise."""
    items = [f"q{number}" for number in range(60)]
    hard = np.random.default_rng(1).normal(0, 1, 60)
    noise = np.random.default_rng([run.seed or 0, len(run.arm)]).normal(0, 0.7, 60)
    groups = [f"g{number // 2}" for number in range(60)]
    good = hard + noise + EFFECT[run.arm]
    yield score_of_items("t2d/recall@10", "mean", items, groups, (good > 0).astype(float))
    yield score_of_items("stress/negate/auc", "auc", items, groups, good, (hard > 0).astype(float))


def exported(ledger: Ledger, runs: list[Run], table: Path) -> None:
    """What a ledger holds, as somebody else would have it."""
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["arm", "backbone", "seed", "metric", "item", "group", "score", "gold"])
        for run in runs:
            for entry in ledger.entries_of(run)[1:]:
                for row in ledger.items(entry).to_pylist():
                    seed, gold = ("" if value is None else repr(value) for value in (run.seed, row["gold"]))
                    names = [row["metric"], row["item_id"], row["group_id"]]
                    writer.writerow([run.arm, run.backbone, seed, *names, repr(row["value"]), gold])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with its ledger, and its scores as a table."""
    folder = tmp_path_factory.mktemp("judge")
    write_small_wordnet(folder / "wordnet")
    text = STUDY.format(backbone=tiny_backbone(folder / "tiny"), wordnet=folder / "wordnet")
    (folder / "own.yaml").write_text(text + CLAIMS)
    (folder / "claims.yaml").write_text(CLAIMS)
    ledger = Ledger(folder / "ledger")
    runs = list(planned(read_study(folder / "own.yaml"), ledger).runs)
    for run in runs:
        finish(ledger, run, list(scores(run)))
    exported(ledger, runs, folder / "scores.csv")
    return folder


def judged(place: Path, *words: str, capsys: pytest.CaptureFixture[str]) -> list[dict]:
    assert main(["judge", str(place / "scores.csv"), "--read", "stress/negate/auc=auc", "--json", *words]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("declared", [False, True])
def test_it_gives_the_ledgers_own_verdicts(
    declared: bool,
    place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Claims that were declared before are corrected by Holm, others by Benjamini-Hochberg: so on both sides."""
    monkeypatch.chdir(tmp_path)
    study, ledger = read_study(place / "own.yaml"), Ledger(place / "ledger")
    if declared:  # the same runs, in a ledger to which the claims came first
        runs, ledger = list(planned(study, ledger).runs), Ledger(tmp_path / "ledger")
        declare(study, runs, ledger)
        for run in runs:
            finish(ledger, run, list(scores(run)))
    own = find(study, planned(study, ledger).runs, ledger)
    claims = place / "claims.yaml"
    shown = ["--declared", hashlib.sha256(claims.read_bytes()).hexdigest()] if declared else []
    found = judged(place, "--claims", str(claims), "--passport", "p.zip", *shown, capsys=capsys)
    assert len(found) == 3
    for finding, verdict in zip(own.findings, found, strict=True):
        expected = json.loads(json.dumps(finding.verdict.to_dict()))
        assert {name: verdict[name] for name in expected} == expected
        assert verdict["exploratory"] is not declared
    assert main(["verify", "p.zip"]) == 0
    told = capsys.readouterr().out
    assert "all agree" in told
    assert Path("judged/scores/report.html").is_file()
    page = Path("judged/scores/report.md").read_text()
    assert ("shown as declared before; when it was published is for the reader to check" in page) is declared
    assert "GPU-hours" not in page  # what it took to read scores is no cost of theirs


def test_one_claim_on_the_command_line(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--treatment", "B1", "--control", "B0", "--metric", "t2d/recall@10"]
    assert main(["judge", str(place / "scores.csv"), "--read", "stress/negate/auc=auc", *words]) == 0
    out = capsys.readouterr().out
    assert "B1 - B0" in out
    assert "exploratory: declared, or its seeds or rows changed, after results were seen" in out
    assert "scores: made elsewhere, read from scores.csv" in out
    (again,) = judged(place, *words, "--expect", "not_worse", "--margin", "0.1", capsys=capsys)  # another claim
    assert again["expect"] == "not_worse"


def test_a_table_is_read_once_for_all_its_runs(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a million rows that is nearly all the time that it takes."""
    monkeypatch.chdir(tmp_path)
    read: list[Path] = []
    monkeypatch.setattr(tables, "rows_of", lambda file, *more: read.append(file) or rows_of(file, *more))
    file = tmp_path / "once.csv"
    file.write_text((place / "scores.csv").read_text())
    words = [
        "--read",
        "stress/negate/auc=auc",
        "--treatment",
        "B1",
        "--control",
        "B0",
        "--metric",
        "t2d/recall@10",
    ]
    assert main(["judge", str(file), *words]) == 0
    assert read == [file]


@pytest.mark.parametrize("when", ["read_table", "study_of_table"])
def test_a_table_that_is_written_to_while_it_is_judged_is_refused(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else figures of one content would be recorded, and judged ever after, as those of another."""
    monkeypatch.chdir(tmp_path)
    rows = {
        gain: "".join(f"{a},{s},acc,{s / 9 + gain * (a == 'B')}\n" for a in "AB" for s in range(4))
        for gain in (0, 0.5)
    }
    table = Path("scores.csv")
    table.write_text("arm,seed,metric,score\n" + rows[0])
    real = getattr(judged_table, when)

    def meanwhile(path: Path, *given: object, **named: object) -> object:
        done = real(path, *given, **named)
        table.write_text("arm,seed,metric,score\n" + rows[0.5])
        return done

    with monkeypatch.context() as patch:
        for module in (judge, judged_table):
            patch.setattr(module, when, meanwhile, raising=False)
        assert main(["judge", "scores.csv", "--treatment", "B", "--control", "A", "--metric", "acc"]) == 2
    assert capsys.readouterr().err.startswith("scores.csv: changed while it was judged\n  accepted: a table ")
    assert main(["judge", "scores.csv", "--treatment", "B", "--control", "A", "--metric", "acc", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["delta_mean"] == pytest.approx(0.5)


def test_a_mistake_in_claims_is_told_of_their_file(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("claims.yaml").write_text(CLAIMS.replace("treatment: B1, control: B0", "treatment: B2, control: B0"))
    words = ["--claims", "claims.yaml", "--read", "stress/negate/auc=auc"]
    assert main(["judge", str(place / "scores.csv"), *words]) == 2
    assert capsys.readouterr().err.startswith("claims.yaml:2: compare[H1].treatment = 'B2'\n  accepted: B0, B1")


@pytest.mark.parametrize("out", ["judged/scores", ".", "a folder/of [some] (depth)"])
@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (
            "claim: H1\n    all:\n"
            "      - {claim: a, treatment: B1, control: B0, metric: t2d/recall@10, expect: better}\n"
            "      - {claim: b, treatment: B1, control: B2, metric: t2d/recall@10, expect: better}",
            "claims.yaml:5: compare[H1].all[b].control = 'B2'\n  accepted: B0, B1",
        ),
        (
            "{claim: H1, treatment: B1, control: B0, metric: t2d/recall@10,\n     expect: yes}",
            "claims.yaml:3: compare[H1].expect = yes\n  accepted: better, worse, equivalent, not_worse; YAML reads yes",
        ),
        ("5", "claims.yaml:2: compare[0] = 5\n  accepted: a mapping"),
        (
            "{claim: H1, treatment: B1, control: B0, metric: t2d/recall@10, expect: better, expect: worse}",
            "claims.yaml:2: compare[0].expect is written twice\n",
        ),
    ],
)
def test_a_mistake_is_told_by_line_and_field_wherever_the_study_goes(
    claim: str,
    said: str,
    out: str,
    place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("claims.yaml").write_text(f"compare:\n  - {claim}\n")
    words = ["--claims", "claims.yaml", "--read", "stress/negate/auc=auc", "--out", out]
    assert main(["judge", str(place / "scores.csv"), *words]) == 2
    err = capsys.readouterr().err
    assert err.startswith(said)
    assert "scores.yaml" not in err  # the study that is made of the claims


@pytest.mark.parametrize(
    "content", ["question: why", "compare:", "compare: []", "compare: {claim: H1}", "compare: H1"]
)
def test_a_file_without_a_list_of_claims(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    (tmp_path / "claims.yaml").write_text(content)
    assert main(["judge", str(place / "scores.csv"), "--claims", str(tmp_path / "claims.yaml")]) == 2
    said = capsys.readouterr().err
    assert said == f"{tmp_path / 'claims.yaml'}: no list of claims\n  accepted: `compare:` as in a study\n"


def test_another_digest_than_that_of_the_claims(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--claims", str(place / "claims.yaml"), "--declared", "0" * 64]
    assert main(["judge", str(place / "scores.csv"), "--read", "stress/negate/auc=auc", *words]) == 2
    assert "other claims than those in" in capsys.readouterr().err


def test_the_study_that_is_made_of_a_table_is_not_run(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    judged(place, "--claims", str(place / "claims.yaml"), capsys=capsys)
    for word in ("plan", "run"):
        assert main([word, "judged/scores/scores.yaml"]) == 2
        assert "accepted: semray judge" in capsys.readouterr().err


def test_its_family_is_offered_to_nobody() -> None:
    assert set(registry.WRITTEN).isdisjoint(registry.names())


def test_runs_that_another_tool_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Eight seeds, each better by a half: p = 2/2^8 of the exact sign flips. One column, or one folder a run."""
    monkeypatch.chdir(tmp_path)
    runs = [(loss, seed, (seed + 50 * (loss == "B")) / 100) for loss in "AB" for seed in range(8)]
    lines = [f"{loss},{seed},{score}" for loss, seed, score in runs]
    Path("runs.csv").write_text("\n".join(["loss,seed,STSBenchmark", *lines]))
    for loss, seed, score in runs:
        folder = Path("results") / f"{loss}-seed{seed}" / "r"
        folder.mkdir(parents=True)
        scores = {"test": [{"main_score": score, "hf_subset": "default"}]}
        (folder / "s.json").write_text(json.dumps({"task_name": "STSBenchmark", "scores": scores}))
    claim = ["--treatment", "B", "--control", "A", "--metric", "STSBenchmark", "--json"]
    found = []
    by_columns = ["runs.csv", "--arm", "loss", "--seed", "seed"]
    taken = "STSBenchmark: more is better, as nothing says otherwise (--read STSBenchmark=lower does)"
    for source in (by_columns, ["results"]):
        assert main(["judge", *source, *claim]) == 0
        said = capsys.readouterr()
        (verdict,) = json.loads(said.out)
        assert (taken in said.err) is (source == by_columns)  # MTEB's main scores are all of that kind
        page = Path(f"judged/{Path(source[0]).stem}/report.md").read_text()
        assert f"What do the scores in {source[0]} show?" in page
        assert f"made elsewhere, read from {source[0]}" in page
        found.append({name: verdict[name] for name in ("verdict", "words", "p", "deltas") if name in verdict})
    assert found[0]["verdict"] == "better"
    assert found[0] == found[1]
    assert main(["judge", *by_columns, *claim, "--read", "STSBenchmark=higher"]) == 0
    assert "more is better" not in capsys.readouterr().err
    assert main(["judge", "runs.csv", "--arm", "loss", *claim]) == 2
    assert "accepted: both, for a table with a row for each run" in capsys.readouterr().err


def results_of_mteb(folder: Path, better: float) -> None:
    for arm in "AB":
        for seed in range(6):
            score = (seed + better * (arm == "B")) / 100
            content = {"task_name": "STS", "scores": {"test": [{"main_score": score, "hf_subset": "default"}]}}
            (folder / f"{arm}-seed{seed}" / "r").mkdir(parents=True)
            (folder / f"{arm}-seed{seed}" / "r" / "s.json").write_text(json.dumps(content))


def test_a_folder_of_results_is_judged_again_from_within(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report goes below the folder's own name, and is no result when the folder is read once more."""
    results_of_mteb(tmp_path / "res-v1.5", 1)
    monkeypatch.chdir(tmp_path / "res-v1.5")
    words = ["judge", ".", "--treatment", "B", "--control", "A", "--metric", "STS"]
    assert [main(words) for _ in range(2)] == [0, 0]
    assert Path("judged/res-v1.5/report.json").is_file()
    assert [main([*words, "--out", "."]) for _ in range(2)] == [0, 0]


def test_folders_that_differ_by_their_version_keep_their_own_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for version in ("1.5", "1.6"):
        results_of_mteb(Path(f"res-v{version}"), 1)
        words = ["--treatment", "B", "--control", "A", "--metric", "STS"]
        assert main(["judge", f"res-v{version}/", *words]) == 0
    assert sorted(path.name for path in Path("judged").iterdir()) == ["res-v1.5", "res-v1.6"]


def test_a_table_is_not_written_over_by_what_is_made_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    given = "loss,seed,acc,host\n" + "".join(f"{loss},{seed},0.{seed}5,h\n" for loss in "AB" for seed in range(3))
    Path("scores.csv").write_text(given)
    claim = ["--treatment", "B", "--control", "A", "--metric", "acc"]
    assert main(["judge", "scores.csv", "--arm", "loss", "--seed", "seed", *claim, "--out", "."]) == 2
    assert "scores.csv is the table itself" in capsys.readouterr().err
    assert Path("scores.csv").read_text() == given


def test_the_table_of_runs_that_weights_and_biases_exports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every cell quoted, its own columns first, settings and figures after; a run that crashed has no figure."""
    monkeypatch.chdir(tmp_path)
    own = ["Name", "State", "Notes", "User", "Tags", "Created", "Runtime", "Sweep"]
    rows = [[*own, "batch_size", "loss", "seed", "epoch", "eval/sts-dev_spearman_cosine", "train/global_step"]]
    for loss in ("cosent", "mnrl"):
        for seed in range(9):
            ended = [f"{loss}-{seed}", "finished", "-", "me", "sts, bert", "2026-03-01T09:30:00.000Z", "812", ""]
            figure = str(0.8 + seed / 1000 + 0.01 * (loss == "cosent"))
            rows.append([*ended, "16", loss, str(seed), "1", figure, "360"])
    rows[-1][1], rows[-1][-2] = "crashed", ""
    with Path("wandb_export_2026-03-01T10_00_00.000+01_00.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
    (export,) = Path().glob("wandb_export_*.csv")
    columns = ["--arm", "loss", "--seed", "seed", "--metric", "eval/sts-dev_spearman_cosine"]
    assert main(["judge", str(export), *columns, "--treatment", "cosent", "--control", "mnrl", "--json"]) == 0
    (verdict,) = json.loads(capsys.readouterr().out)
    assert (verdict["verdict"], verdict["n_seeds"]) == ("better", 8)
    assert verdict["delta_mean"] == pytest.approx(0.01)


OTHER = {"train/accuracy": 98.2, "train/auc": 1.5, "steps": 400.0, "held/acc": 0.9}
RUNS_OF = ["runs.csv", "--arm", "loss", "--seed", "seed", "--treatment", "B", "--control", "A"]


def table_of_runs(**cells: str) -> None:
    """Eight seeds of two arms, B better by a hundredth; cells: of the run of B at seed 1, in place of its own."""
    with Path("runs.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, ["loss", "seed", "rho", *OTHER])
        table.writeheader()
        for loss in "AB":
            for seed in range(8):
                row = {"loss": loss, "seed": seed, "rho": (seed + (loss == "B")) / 100, **OTHER}
                table.writerow(row | (cells if (loss, seed) == ("B", 1) else {}))


def test_a_column_that_no_claim_names_is_in_nobodys_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is left out where its name says that it lies elsewhere; all others are shown."""
    monkeypatch.chdir(tmp_path)
    table_of_runs()
    assert main(["judge", *RUNS_OF, "--metric", "rho"]) == 0
    told = capsys.readouterr().out
    for metric in ("train/accuracy", "train/auc"):
        said = f"{metric} is left out: no claim names it, and it has scores that do not lie where its name says\n"
        assert told.count(said) == 1
    study = Path("judged/runs/scores.yaml")
    assert set(read_study(study).data.metrics) == {"rho", "steps", "held/acc"}


@pytest.mark.parametrize(
    "claim",
    [
        "claim: H1, treatment: B, control: A, metric: train/accuracy, expect: better",
        'claim: H1, treatment: B, control: A, metric: "mean(held/acc, train/accuracy)", expect: better',
        "claim: H1, all: [{claim: a, treatment: B, control: A, metric: train/accuracy, expect: better}, "
        "{claim: b, treatment: B, control: A, metric: rho, expect: better}]",
    ],
)
def test_a_column_that_a_claim_names_lies_where_its_name_says(
    claim: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    table_of_runs()
    Path("claims.yaml").write_text(f"compare:\n  - {{{claim}}}\n")
    assert main(["judge", *RUNS_OF[:5], "--claims", "claims.yaml"]) == 2
    assert "train/accuracy: score = 98.2\n  accepted: from 0 to 1" in capsys.readouterr().err


def test_a_claimed_column_that_no_metric_may_be_called_is_told_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    table_of_runs()
    runs = Path("runs.csv")
    runs.write_text(runs.read_text().replace("steps", "eval steps"))
    for metric in ("eval steps", '"mean(rho, eval steps)"'):
        Path("claims.yaml").write_text(
            f"compare:\n  - {{claim: H1, treatment: B, control: A, metric: {metric}, expect: better}}\n"
        )
        assert main(["judge", *RUNS_OF[:5], "--claims", "claims.yaml"]) == 2
        assert "columns of numbers that no metric may be called: eval steps\n" in capsys.readouterr().err


def test_a_slip_is_told_every_column_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    table_of_runs()
    assert main(["judge", *RUNS_OF, "--metric", "train/acuracy"]) == 2
    assert "did you mean train/accuracy" in capsys.readouterr().err


@pytest.mark.parametrize("left", ["", "NaN"])
def test_a_run_that_lacks_a_figure_is_named(
    left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    table_of_runs(rho=left, steps=left)
    assert main(["judge", *RUNS_OF, "--metric", "rho"]) == 0
    told = capsys.readouterr().out
    assert "note     B, seed 1 has no figure of: rho, steps\n" in told
    assert "no pair for seed 1 (treatment: its run yielded no such figure)" in " ".join(told.split())
    assert main(["judge", *RUNS_OF, "--metric", "rho", "--json"]) == 0
    (verdict,) = json.loads(capsys.readouterr().out)
    assert (verdict["verdict"], verdict["n_seeds"]) == ("better", 7)


def test_where_too_many_runs_lack_a_figure_the_rule_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two of eight, both in B."""
    monkeypatch.chdir(tmp_path)
    table_of_runs(rho="")
    runs = Path("runs.csv")
    assert "B,4,0.05," in runs.read_text()
    runs.write_text(runs.read_text().replace("B,4,0.05,", "B,4,,"))
    assert main(["judge", *RUNS_OF, "--metric", "rho"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "undecided: runs missing" in told
    lacking = "1, 4 (treatment: its run yielded no such figure)"
    assert (
        f"no pair for seed {lacking}: over 20 % of the pairs, or two or more in one arm alone, are too many"
        in told
    )


def test_items_that_are_not_the_same_are_told_of_the_table(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = (place / "scores.csv").read_text().splitlines()
    lines.remove(next(line for line in lines if re.match(r"B1,.*,2,t2d/recall@10,q7,", line)))
    Path("scores.csv").write_text("\n".join(lines))
    words = ["--claims", str(place / "claims.yaml"), "--read", "stress/negate/auc=auc"]
    assert main(["judge", "scores.csv", *words]) == 2
    err = capsys.readouterr().err
    assert re.match(
        r"scores\.csv: B1 on .*, seed 2: t2d/recall@10: lacks the item 'q7', which B0 on \S+ has\n", err
    )
    assert "set-aside" not in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            [],
            r"^--treatment is missing\n  accepted: --treatment ARM --control ARM --metric METRIC, or --claims FILE",
        ),
        (["--treatment", "B1", "--control", "B0"], r"^--metric is missing\n  accepted: --treatment ARM"),
        (
            ["--treatment", "B2", "--control", "B0", "--metric", "t2d/recall@10"],
            r"^--treatment B2\n  accepted: B0, B1, B1-noHN",
        ),
        (
            ["--treatment", "B1", "--control", "B0", "--metric", "t2d/recall"],
            r"^--metric t2d/recall\n  accepted: .*did you mean t2d/recall@10",
        ),
        (
            ["--treatment", "B1", "--control", "B1", "--metric", "t2d/recall@10", "--out", "."],
            r"^--control B1\n  accepted: another arm",
        ),
        (
            ["--treatment", "B1", "--control", "B0", "--metric", "t2d/recall@10", "--min-effect", "-1"],
            r"^--min-effect -1\.0\n  accepted: a number above 0",
        ),
        (
            ["--treatment", "B1", "--control", "B0", "--metric", "t2d/recall@10", "--expect", "equivalent"],
            r"^--margin is missing\n  accepted: with expect equivalent",
        ),
        (
            ["--read", "x=auc", "--treatment", "B1", "--control", "B0", "--metric", "t2d/recall@10"],
            "of that metric",
        ),
        (["--declared", "0" * 64], "accepted: together with --claims FILE"),
        (["--sign", "key"], "accepted: together with --passport FILE"),
        (["--read", "x=y"], "accepted: METRIC=READING"),
        (["--read", "=auc"], r"^--read =auc\n  accepted: METRIC=READING"),
        (["--treatment", "B1", "--claims", "c.yaml"], "accepted: one of both"),
    ],
)
def test_what_is_refused(
    words: list[str],
    said: str,
    place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["judge", str(place / "scores.csv"), "--read", "stress/negate/auc=auc", *words]) == 2
    assert re.search(said, capsys.readouterr().err)


@pytest.mark.parametrize("others", [0, 1, 4])
def test_arms_without_seeds_are_told_apart_by_their_items_whatever_else_is_in_the_table(
    others: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A and B were scored once. C, which no claim is about, has as many seeds."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    easy = rng.normal(size=200)
    rows = [("A", "", easy), ("B", "", easy + 0.8), *(("C", str(seed), easy) for seed in range(others))]
    right = {}
    with Path("table.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["arm", "seed", "metric", "score", "item"])
        for arm, seed, good in rows:
            right[arm] = (good + rng.normal(size=200) > 0).astype(float)
            table.writerows([arm, seed, "acc", value, f"i{k}"] for k, value in enumerate(right[arm]))
    words = ["--treatment", "B", "--control", "A", "--metric", "acc"]
    assert main(["judge", "table.csv", "--json", *words]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["test"]) == ("better", "crossed t")
    assert found["p"] == pytest.approx(stats.ttest_rel(right["B"], right["A"]).pvalue)
    assert "one run of each arm" in found["sentence"]
