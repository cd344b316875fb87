"""The first screen of a report as a picture: docs/report.png, which README shows.

    semray run quickstart
    python benchmarks/report_picture.py reports/quickstart/report.html

It needs Debian's chromium and chromium-driver.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from tests.browsers import CHROMIUM, DRIVER, headless  # noqa: E402

WIDTH, HEIGHT, COLOURS = 1280, 800, 64  # the screen; as many colours keep letters smooth and the file small


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path, help="a report.html")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "report.png")
    options = parser.parse_args()
    picture = Image.open(io.BytesIO(first_screen(options.page))).convert("RGB")
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(options.out, optimize=True)
    print(f"{options.out}: {options.out.stat().st_size / 1024:.0f} KiB")


def first_screen(page: Path) -> bytes:
    """What a browser of WIDTH pixels shows of a report down to its list of sections, as PNG."""
    if not (CHROMIUM and DRIVER):
        raise SystemExit("no chromium and chromedriver on PATH\n  accepted: apt-get install chromium-driver")
    with headless() as chrome:
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        chrome.get(page.resolve().as_uri())
        end = chrome.execute_script("return document.querySelector('nav').getBoundingClientRect().bottom")
        chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {**size, "height": round(end) + 8})
        return chrome.get_screenshot_as_png()


if __name__ == "__main__":
    main()
