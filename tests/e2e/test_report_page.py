"""The report as a browser shows it: on a desk, on a telephone of 390 pixels, and on A4."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from orchestration.ledger.ledger import Ledger
from orchestration.report.forms import write
from tests.browsers import CHROMIUM, DRIVER, headless
from tests.finished_study import findings_of

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

A4 = 688  # pixels between the margins of a sheet: 182 mm at 96 to the inch
WIDER = """
return [...document.querySelectorAll('table, svg, li, p, dd')]
    .filter(one => one.getClientRects().length && one.getBoundingClientRect().right > arguments[0] + 1)
    .filter(one => !arguments[1] || !one.closest('.scroll, figure'))
    .map(one => one.outerHTML.slice(0, 120))
"""
# Of each claim with a bar, whether its mark is filled; plots below the verdicts that are drawn smaller than they are;
# means that take more than one line.
FILLED = """
const marks = [...document.querySelectorAll('.claims .bar b')]
return Object.fromEntries(marks.map(one => [one.closest('li').querySelector('a').textContent,
    getComputedStyle(one).backgroundColor != getComputedStyle(document.body).backgroundColor]))
"""
SHRUNK = """
return [...document.querySelectorAll('#curves svg, #distributions svg')]
    .filter(one => one.getBoundingClientRect().width < one.viewBox.baseVal.width)
    .map(one => one.getBoundingClientRect().width)
"""
BROKEN = """
const high = one => { const text = new Range(); text.selectNodeContents(one); return text.getBoundingClientRect().height }
return [...document.querySelectorAll('#arms > .scroll td + td')].filter(one => high(one) > 30).map(one => one.textContent)
"""

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs Debian's chromium and chromium-driver"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """A browser with a finished study's report open."""
    folder = tmp_path_factory.mktemp("page")
    findings = findings_of(Ledger(folder / "ledger"))
    findings = replace(findings, notes=(*findings.notes, f"declared {'0123456789abcdef' * 4}"))
    page = write(findings, folder / "report")
    found = headless(f"--user-data-dir={folder / 'profile'}")
    found.get(Path(page).as_uri())
    yield found
    found.quit()


def show(browser: Chrome, width: int, media: str = "screen") -> None:
    size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media})


def wider(browser: Chrome, width: int, *, may_scroll: bool) -> Any:
    return browser.execute_script(WIDER, width, may_scroll)


def column(browser: Chrome, place: int) -> list[str]:
    script = "return [...document.querySelector('#runs table').tBodies[0].rows].filter(r => !r.hidden).map(r => r.cells[arguments[0]].textContent.trim())"
    found: list[str] = browser.execute_script(script, place)
    return found


def test_tables_sort_and_filter_without_a_network(browser: Chrome) -> None:
    show(browser, 1280)
    heads = browser.find_elements("css selector", "#runs thead th")
    place = [head.text for head in heads].index("t2d/recall@10")
    heads[place].click()
    values = [float(value) for value in column(browser, place) if value != "–"]
    assert len(values) > 20
    assert values == sorted(values, reverse=True)
    heads[place].click()
    assert [float(value) for value in column(browser, place) if value != "–"] == sorted(values)
    field = browser.find_element("css selector", "#runs input")
    field.send_keys("b1-nohn")
    assert set(column(browser, 1)) == {"B1-noHN"}
    field.clear()
    field.send_keys(" ")
    assert browser.get_log("browser") == []


def test_a_telephone_shows_the_verdicts_stacked(browser: Chrome) -> None:
    show(browser, 390)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    assert wider(browser, 390, may_scroll=True) == []
    assert not browser.find_element("css selector", ".answer figure").is_displayed()
    bars = browser.find_elements("css selector", ".claims .bar")
    assert len(bars) == 4  # of five comparisons, the one without an interval has none
    assert all(bar.is_displayed() and bar.size["width"] > 250 for bar in bars)
    filled = browser.execute_script(FILLED)
    assert filled == {"H1": True, "H3a": True, "H3b": True, "X1": False}
    assert browser.execute_script(SHRUNK) == []
    assert browser.execute_script(BROKEN) == []


def test_a_sheet_of_a4_clips_nothing(browser: Chrome) -> None:
    show(browser, A4, "print")
    assert wider(browser, A4, may_scroll=False) == []
    show(browser, 1280)


def test_every_term_stands_in_the_glossary(browser: Chrome) -> None:
    terms = {term.get_attribute("textContent") for term in browser.find_elements("css selector", "#reading dt")}
    assert terms >= {"paired seeds", "crossed t", "Holm", "◆ equivalent", "lane", "ledger", "exploratory"}
