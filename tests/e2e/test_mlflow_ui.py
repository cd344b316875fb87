"""MLflow's own page in a real browser: what a person sees after a sync, started with the command semray names.

Screenshots go to screenshots/, which git ignores.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from orchestration.ledger.ledger import Ledger
from orchestration.report.forms import write
from orchestration.tracking.sync import sync
from orchestration.tracking.ui import experiment_page
from orchestration.tracking.ui import server as serving
from orchestration.verdicts.findings import Findings
from tests.browsers import CHROMIUM, DRIVER, headless
from tests.finished_study import findings_of
from tests.waiting import free_port

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

SCREENSHOTS = Path(__file__).resolve().parents[2] / "screenshots"
SECONDS = 60  # MLflow's page loads megabytes of script; a busy machine needs that long

pytestmark = [
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy"),  # MLflow's own affair
    pytest.mark.e2e,
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER), reason="needs Debian's chromium and chromium-driver: no chromium on PATH"
    ),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with MLflow's tables, still empty."""
    from mlflow import MlflowClient

    folder = tmp_path_factory.mktemp("ui")
    MlflowClient(tracking_uri=f"sqlite:///{folder / 'mlflow.db'}").search_experiments()
    return folder


@pytest.fixture(scope="module")
def started(place: Path) -> Iterator[Future[str]]:
    """A server started as `semray ui` starts it, on a free port: it starts while the study is synced."""
    with ExitStack() as until_the_end, ThreadPoolExecutor(1) as aside:
        yield aside.submit(until_the_end.enter_context, serving(f"sqlite:///{place / 'mlflow.db'}", free_port()))


@pytest.fixture(scope="module")
def tracked(place: Path, started: Future[str]) -> tuple[Findings, str]:
    """A finished study, synced straight into SQLite."""
    ledger = Ledger(place / "ledger")
    findings, uri = findings_of(ledger), f"sqlite:///{place / 'mlflow.db'}"
    assert sync(findings, ledger, uri).problem == ""
    return findings, uri


@pytest.fixture(scope="module")
def server(tracked: tuple[Findings, str], started: Future[str]) -> str:
    """Its address, once it answers and shows the study."""
    return started.result()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    found = headless(
        "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--window-size=1600,1150", f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
    )  # fmt: skip
    SCREENSHOTS.mkdir(exist_ok=True)
    yield found
    found.quit()


def until(browser: Chrome, condition: Callable[[Chrome], Any]) -> Any:
    """What the condition returns once it is truthy; elements that the page replaces meanwhile are looked up again."""
    from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException, TimeoutException
    from selenium.webdriver.support.ui import WebDriverWait

    ignored = (NoSuchElementException, StaleElementReferenceException)
    try:
        return WebDriverWait(browser, SECONDS, ignored_exceptions=ignored).until(condition)
    except TimeoutException:
        keep(browser, "timeout")
        raise AssertionError(f"not within {SECONDS} s; on the screen: {text_of(browser)[:2000]}") from None


def visit(browser: Chrome, address: str, *words: str) -> None:
    """Open a page of MLflow, wait for these words, and close the side panel that covers a quarter of it."""
    browser.get(address)
    until(browser, shows(*words))
    for close in browser.find_elements("css selector", "[data-component-id='mlflow.assistant.chat_panel.close']"):
        close.click()


def text_of(browser: Chrome) -> str:
    return browser.find_element("tag name", "body").text


def shows(*words: str) -> Callable[[Chrome], bool]:
    return lambda browser: all(word in text_of(browser) for word in words)


def keep(browser: Chrome, name: str) -> None:
    browser.save_screenshot(str(SCREENSHOTS / f"{name}.png"))


def tracked_runs(uri: str, findings: Findings, condition: str) -> tuple[str, list[Any]]:
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name(findings.study)
    assert experiment is not None
    return experiment.experiment_id, list(client.search_runs([experiment.experiment_id], condition))


def test_paired_runs_side_by_side(tracked: tuple[Findings, str], server: str, browser: Chrome) -> None:
    """The compare page of both arms at one seed: settings that differ, and the metric with both values."""
    findings, uri = tracked
    experiment, runs = tracked_runs(uri, findings, "tags.seed = '3' and tags.arm LIKE 'B1%'")
    ids = quote(json.dumps([run.info.run_id for run in runs]))
    address = f"{server}/#/compare-runs?runs={ids}&experiments={quote(json.dumps([experiment]))}"
    visit(browser, address, "B1 seed 3", "B1-noHN seed 3", "hard_negatives", "t2d/recall_at_10")
    values = [run.data.metrics["t2d/recall_at_10"] for run in runs]
    until(browser, shows(*(f"{value:.3f}"[:5] for value in values)))
    until(browser, lambda page: page.find_elements("css selector", ".js-plotly-plot svg"))
    keep(browser, "compare_runs")


def test_a_comparison_says_its_verdict_and_draws_it(
    tracked: tuple[Findings, str], server: str, browser: Chrome
) -> None:
    """The description opens with the verdict and the forest plot; its link leads to the claim's metric, a bar a run.

    On a telephone's width too.
    """
    findings, uri = tracked
    experiment, runs = tracked_runs(uri, findings, "tags.claim = 'H1'")
    page = f"{server}/#/experiments/{experiment}/runs/{runs[0].info.run_id}"
    visit(browser, page, "H1: B1 - B0", "better", "is better than B0 on t2d/recall@10", "delta_mean")
    until(browser, lambda found: widest_picture(found) > 500)
    keep(browser, "comparison")
    with narrow(browser):
        until(browser, shows("better"))
        keep(browser, "comparison_390")
    until(browser, lambda page: page.find_element("xpath", "//*[text()='Show more']")).click()
    link = browser.find_element("partial link text", "t2d/recall_at_10 of its 9 runs").get_attribute("href")
    keep(browser, "comparison_whole")
    visit(browser, str(link), "t2d/recall_at_10")
    until(browser, lambda found: len(found.find_elements("css selector", ".js-plotly-plot .bars .point")) >= 9)
    keep(browser, "claimed_metric")


def test_the_table_has_verdicts_and_claimed_metrics(
    tracked: tuple[Findings, str], server: str, browser: Chrome
) -> None:
    """What `semray ui` opens: the study, then its claims, then its runs, under these columns."""
    findings, uri = tracked
    page = experiment_page(uri, findings.study, server)
    visit(browser, page, "verdict", "difference", "t2d/recall_at_10", "H1: B1 - B0", "equivalent")
    text = text_of(browser)
    assert text.index("H1: B1 - B0") < text.index("H2: M1 - B1") < text.index("B0 untrained")
    until(browser, shows("2 better, 1 equivalent"))
    keep(browser, "table")
    with narrow(browser):
        until(browser, shows("concept-hypotheses", "Training runs"))
        keep(browser, "table_390")


@contextmanager
def narrow(browser: Chrome) -> Iterator[None]:
    """As wide as a telephone within the block."""
    size = {"width": 390, "height": 1400, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def widest_picture(browser: Chrome) -> int:
    return max(map(drawn_width, browser.find_elements("css selector", "img")), default=0)


def drawn_width(image: Any) -> int:
    """Pixels of an image's content once it is decoded, 0 before."""
    return int(image.get_property("naturalWidth") or 0)


def test_verdicts_are_filtered_by_tag(tracked: tuple[Findings, str], server: str, browser: Chrome) -> None:
    findings, uri = tracked
    experiment, _ = tracked_runs(uri, findings, "")
    asked = quote("tags.verdict = 'better'")
    visit(browser, f"{server}/#/experiments/{experiment}/runs?searchFilter={asked}", "matching runs")
    until(browser, lambda page: page.find_elements("css selector", "[role=gridcell] button"))[0].click()  # unfold
    until(browser, shows("H1: B1 - B0", "H3a: B1 - B1-noHN"))
    assert "H3b: B1 - B1-noHN" not in text_of(browser)
    keep(browser, "better_verdicts")


def test_the_report_opens_from_a_file(tracked: tuple[Findings, str], browser: Chrome, tmp_path: Path) -> None:
    """No network, nothing wider than the window, and a figure leads to its run."""
    findings, _ = tracked
    browser.get_log("browser")
    browser.get(write(findings, tmp_path).as_uri())
    assert findings.question in text_of(browser)
    assert "Where it fails" in text_of(browser)
    assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert browser.get_log("browser") == []
    keep(browser, "report")
    browser.find_element("css selector", "summary").click()
    browser.find_element("css selector", "#seeds td a").click()
    run = findings.findings[0].control_runs[0]
    assert browser.current_url.endswith(f"#run-{run}")
    assert browser.find_element("id", f"run-{run}").is_displayed()


def test_nothing_runs_in_the_report(tracked: tuple[Findings, str], browser: Chrome, tmp_path: Path) -> None:
    """Its content security policy refuses a script and a picture, even if they stood in the page itself."""
    page = write(tracked[0], tmp_path)
    text, planted = (
        page.read_text(),
        '<script>document.title = "run"</script><img src="https://example.org/seen.png">',
    )
    page.write_text(text.replace("<main>", f"<main>{planted}", 1))
    browser.get_log("browser")
    browser.get(page.as_uri())
    assert browser.title.startswith(tracked[0].study)
    refused = [entry["message"] for entry in browser.get_log("browser")]
    assert len(refused) == 2
    assert all("Content Security Policy" in message for message in refused)
