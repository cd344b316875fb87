"""Functions that do what `semray run`, `judge` and `report` do, by the same code. The import loads no torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, overload

from orchestration.ledger.place import usual_place
from orchestration.study.errors import StudyError
from orchestration.study.writable import drafted, folder_fits

ONE_KIND = "the columns of `semray judge`, each once and with values of one kind, text or numbers"

_one_at_a_time = Lock()  # a process has one Ray, which ends with the run that started it

if TYPE_CHECKING:
    from pandas import DataFrame

    from orchestration.commands.judge import Judged
    from orchestration.ledger.ledger import Ledger
    from orchestration.study.study import Study
    from orchestration.verdicts.findings import Findings


def load_study(path: str | Path) -> Study:
    """Read the study in a YAML file, given by its path or, as on the command line, its name.

    StudyError lists every mistake with file, line, field, value and what would be accepted.
    """
    from orchestration.commands.terminal import study_file
    from orchestration.reading.read_study import read_study

    return read_study(study_file(str(path)))


def run(study: Study, ledger: str | Path | None = None) -> Findings:
    """Train and score the runs that the ledger lacks, and judge. Progress goes to stderr. A second call runs none.

    ledger: a folder or a URL such as s3://bucket/ledger; None for $SEMRAY_LEDGER or ./ledger, as on the command
    line. The findings also list runs that failed or are missing: `findings.with_status("failed")`. StudyError
    for a request that cannot work. Calls from several threads wait for each other.
    """
    from orchestration.commands.run_study import run_study
    from orchestration.commands.standing import with_beside
    from orchestration.verdicts.published import with_published
    from semray.shown import shown

    _check_study(study, "run", "")
    opened = _ledger(ledger)
    with _one_at_a_time:
        findings, _ = run_study(study, opened)
    return shown(with_published(with_beside(findings, study, opened), study), study)


@overload
def judge(study: Study, ledger: str | Path | None = None) -> Findings: ...
@overload
def judge(
    study: DataFrame | str | Path,
    *,
    compare: Sequence[Mapping[str, Any]],
    read: Mapping[str, str] | None = None,
    folder: str | Path | None = None,
) -> Findings: ...
def judge(
    study: Any,
    ledger: str | Path | None = None,
    *,
    compare: Sequence[Mapping[str, Any]] = (),
    read: Mapping[str, str] | None = None,
    folder: str | Path | None = None,
) -> Findings:
    """Judge a study by the runs that the ledger holds now, or scores from elsewhere. Nothing is trained.

    Scores are a table with the columns of `semray judge`, as a data frame or a file. compare: claims as in a
    study, such as [{"claim": "H1", "treatment": "B", "control": "A", "metric": "acc", "expect": "better"}]. read:
    metric -> how its rows become a figure. folder: for the study file and its ledger (default: judged/...). The
    findings show their report when printed, or at the end of a notebook's cell. StudyError for a wrong request.
    """
    from semray.shown import shown

    if claims := _claims(compare):
        done = _judged(study, claims, {} if read is None else read, folder)
        return shown(done.findings, done.plan.study)
    _check_study(study, "judge", "; or a table of scores with compare=[{...}]")
    return shown(_of_study(study, ledger), study)


def _check_study(given: Any, word: str, more: str) -> None:
    from orchestration.study.study import Study

    if not isinstance(given, Study):
        name = repr(given) if isinstance(given, str | Path) else type(given).__name__
        raise StudyError(
            f"semray.{word}: {name} is no study\n  accepted: what semray.load_study(FILE) gives{more}"
        )


def _claims(compare: Any) -> list[Any]:
    """The claims as plain data, [] where there are none. StudyError for what is no list of claims."""
    listed = isinstance(compare, Iterable) and not isinstance(compare, str | Mapping)
    claims = list(compare) if listed else [compare] * (compare is not None)
    if claims and not (listed and all(isinstance(claim, Mapping) for claim in claims)):
        shown = repr(compare) if isinstance(compare, str) else f"a {type(compare).__name__}"
        raise StudyError(
            f"semray.judge: compare = {shown}\n"
            '  accepted: a list of claims, such as [{"claim": "H1", "treatment": "B", "control": "A", '
            '"metric": "acc", "expect": "better"}]'
        )
    return [_plain(claim) for claim in claims]


def _plain(given: Any) -> Any:
    """The claims with plain numbers in place of numpy's. StudyError for a value that a study file cannot hold."""
    if isinstance(given, Mapping):
        return {_plain(name): _plain(value) for name, value in given.items()}
    if isinstance(given, list | tuple):
        return [_plain(value) for value in given]
    value = given.item() if hasattr(given, "dtype") and not given.shape else given
    if value is not None and type(value) not in (str, int, float, bool):
        raise StudyError(
            f"semray.judge: compare holds {value!r}\n  accepted: text, numbers, lists and mappings, as in a study"
        )
    return value


def _judged(scores: Any, compare: list[Any], read: Mapping[str, str], folder: str | Path | None) -> Judged:
    from orchestration.commands.judge import judged

    if not isinstance(read, Mapping):
        raise StudyError(
            f'semray.judge: read = {read!r}\n  accepted: how metrics are read, such as {{"loss": "lower"}}'
        )
    if isinstance(scores, str | Path):
        return judged(Path(scores), compare, read, folder)
    table = _as_table(scores)
    digest = sha256(table).hexdigest()
    place = Path(folder or f"judged/frame-{digest[:8]}")  # other frames may be judged at the same time
    folder_fits(place)
    place.mkdir(parents=True, exist_ok=True)
    with drafted(place / "scores.parquet") as draft:
        draft.write_bytes(table)
    return judged(place / "scores.parquet", compare, read, place, made_of="a data frame", digest=digest)


def _as_table(scores: Any) -> bytes:
    """A data frame as a table in parquet."""
    if not hasattr(scores, "to_parquet"):
        problem = f"{type(scores).__name__} is no table of scores"
        raise StudyError(f"semray.judge: {problem}\n  accepted: a data frame of pandas, or the path of a table")
    try:
        table: bytes = scores.to_parquet(index=False)
    except (ValueError, TypeError, NotImplementedError) as error:  # the last argument names the column
        problem = f"the data frame makes no table ({error.args[-1]})"
        raise StudyError(f"semray.judge: {problem}\n  accepted: {ONE_KIND}") from None
    return table


def _ledger(place: str | Path | None) -> Ledger:
    from orchestration.ledger.ledger import Ledger

    return Ledger(usual_place() if place is None else place)


def _of_study(study: Study, ledger: str | Path | None) -> Findings:
    from orchestration.commands.standing import to_report
    from orchestration.verdicts.published import with_published

    _, findings = to_report(study, _ledger(ledger))
    return with_published(findings, study)


def report(findings: Findings, folder: str | Path) -> Path:
    """Write report.html, report.md, report.tex, report.json and the plots into a folder; returns the page.

    Scores of single items, which it draws, are read from the ledger of the findings.
    """
    from orchestration.commands.standing import for_report
    from orchestration.report.forms import write
    from orchestration.verdicts.distributions import with_distributions
    from semray.shown import Shown

    if not isinstance(findings, Shown):
        problem = f"{type(findings).__name__} is none of a study's findings"
        raise StudyError(f"semray.report: {problem}\n  accepted: what semray.run or semray.judge gives")
    ledger = _ledger(findings.ledger)
    return write(for_report(with_distributions(findings, ledger), findings.asked_by, ledger), Path(folder))
