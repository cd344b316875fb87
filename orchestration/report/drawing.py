"""Colours, marks and fonts of plots, and their output as PNG and as SVG in the page's colours.

Verdicts differ in colour (Okabe and Ito's palette, for any kind of colour vision) and in the shape of their mark.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from orchestration.study.names import cut, printable

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

    from orchestration.verdicts.findings import Findings

INK, FAINT, PAPER = "#1b1f24", "#8a9099", "#fdfdfc"  # replaced by the page's variables in the SVG
COLOURS = {
    "better": "#009e73",
    "worse": "#d55e00",
    "equivalent": "#0072b2",
    "not worse": "#0072b2",
    "undecided": "#6e7681",
}
MARKS = {"better": "^", "worse": "v", "equivalent": "D", "not worse": ">", "undecided": "o"}
MARK_VARIABLES = {COLOURS[word]: f"mark-{word}" for word in ("better", "worse", "equivalent", "undecided")}
# One line for each part of a distribution; they differ in dashes too.
LINES = [(COLOURS["better"], "-"), (COLOURS["equivalent"], "-"), (COLOURS["worse"], "--"), (INK, ":")]
DOTS, TALLEST = 160, 2**14  # of a PNG: dots per inch, and the most dots in height
DRAWN_BY = "semray"  # in a PNG, by which a later report knows it as one of its own
HEAD = 1000  # bytes of a PNG in which it says what drew it
COLUMNS = 3  # of panels
LAID_OUT = 30  # panels; with more, the layout is fixed instead of computed
ROW, PANEL = 34, 32  # characters that fit before a row and above a panel
STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.labelsize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.0,
    "axes.titlelocation": "left",
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "figure.facecolor": PAPER,
    "axes.facecolor": "none",
    "svg.fonttype": "none",
    "text.parse_math": False,  # a name with two $ is no formula
}


@dataclass(frozen=True)
class Picture:
    """A plot as SVG for the page. The PNG is drawn only when asked for, as it takes as long again."""

    svg: str
    figure: Callable[[], Figure]

    @property
    def tall(self) -> bool:
        """Whether the PNG would be higher than programs can open, as with some hundred claims or arms."""
        return self.figure().get_size_inches()[1] * DOTS > TALLEST

    @cached_property
    def png(self) -> bytes:
        return png(laid_out(self.figure()))


def picture(figure: Figure, name: str) -> Picture:
    figure = laid_out(figure)
    return Picture(svg(figure, name), lambda: figure)


def laid_out(figure: Figure) -> Figure:
    """The figure with its layout computed and fixed, so that no form computes it again."""
    if figure.get_layout_engine() is not None:
        with styled():
            figure.draw_without_rendering()
        figure.set_layout_engine(None)
    return figure


def panel_name(findings: Findings, arm: str, backbone: str) -> str:
    return (
        short_name(arm, PANEL) if len(findings.backbones) == 1 else f"{short_name(arm)} on {short_name(backbone)}"
    )


def short_name(name: str, width: int = 18) -> str:
    """A name cut to the room in a plot; the tables have it in full."""
    return cut(printable(name), width)


def svg(figure: Figure, name: str) -> str:
    """The figure as an `<svg>` element of a page. name: a prefix that makes its ids unique in the page."""
    text = svg_file(figure, name, transparent=True)
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r">\s+<", "><", text)  # indentation is a ninth of a large figure
    targets = set(re.findall(r'(?:url\(#|xlink:href="#)([^")]*)', text))
    # text between the tags, such as names, stays unchanged
    return re.sub(r"<[^>]*>", lambda tag: _for_the_page(tag[0], name, targets), text)


def _for_the_page(tag: str, name: str, targets: Collection[str]) -> str:
    """The tag with the page's font and colours, and with ids only if something points to them, prefixed by `name`.

    Coordinates are rounded to a hundredth of a point, and rotations by nothing left out. Links open in the same
    page, not in a new one.
    """
    tag = tag.replace(' target="_blank"', "")
    tag = re.sub(r' transform="rotate\(-0 [^"]*"', "", tag)
    tag = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in targets else "", tag)
    tag = re.sub(r' (?:d|x|y|transform)="[^"]*"', lambda found: re.sub(r"(\.\d\d)\d+", r"\1", found[0]), tag)
    tag = re.sub(r'(\bid="|url\(#|xlink:href="#)(?!run-|claim-)', rf"\g<1>{name}-", tag)
    tag = re.sub(r"'DejaVu Sans'[^;\"]*", "var(--sans)", tag)
    for colour, variable in {INK: "ink", FAINT: "faint", PAPER: "paper", **MARK_VARIABLES}.items():
        tag = tag.replace(colour, f"var(--{variable})")
    return tag


def named(svg: str, what: str, links: Mapping[str, str]) -> Markup:
    """The `<svg>` with an aria-label, and one for each of its links, for screen readers.

    links: id in the page -> the label of links to it. Other links get the label of the whole.
    """

    def aria_label(text: str) -> str:
        return f'aria-label="{escape(printable(text))}"'

    svg = svg.replace("<svg", f'<svg role="group" {aria_label(what)}', 1)
    link = re.compile(r'<a [^>]*href="#([^"]*)"')
    return Markup(link.sub(lambda found: f"{found[0]} {aria_label(links.get(found[1], what))}", svg))


def svg_file(figure: Figure, name: str = "file", *, transparent: bool | None = None) -> str:
    """The figure as an SVG file in the colours for paper. name: the seed of its ids."""
    buffer = io.StringIO()
    with styled({"svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", transparent=transparent, metadata={"Date": None})
    return buffer.getvalue()


def png(figure: Figure) -> bytes:
    """The figure as a PNG."""
    buffer = io.BytesIO()
    with styled():
        figure.savefig(buffer, format="png", dpi=DOTS, metadata={"Software": DRAWN_BY})
    return buffer.getvalue()


def is_drawn_by_us(file: Path) -> bool:
    """Whether a file is there and a PNG that `png` gave."""
    with suppress(OSError), file.open("rb") as opened:
        return f"Software\0{DRAWN_BY}".encode() in opened.read(HEAD)
    return False


def canvas(width: float, height: float) -> Figure:
    """A Figure outside pyplot, which need not be closed. width, height: in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def grid(count: int, height: float, above: float = 0.3, **how: Any) -> tuple[Figure, np.ndarray]:
    """A Figure with so many panels, three in a line, and the panels: (lines, columns) of Axes.

    height: of a line, above: of the space over all lines, in inches. With many panels the layout is fixed, since
    computing it is slow; names of ticks have room in it.
    """
    columns = min(COLUMNS, count)
    lines = -(-count // columns)
    figure = canvas(0.6 + 2.5 * columns, above + height * lines)
    panels = figure.subplots(lines, columns, squeeze=False, **how)
    for axes in panels.ravel()[count:]:
        axes.set_visible(False)
    if count > LAID_OUT:
        figure.set_layout_engine(None)
        wide, tall = figure.get_size_inches()
        room = {"left": 0.6 / wide, "right": 1 - 0.1 / wide, "bottom": 0.5 / tall, "top": 1 - above / tall}
        figure.subplots_adjust(**room, wspace=0.25, hspace=0.4)
    return figure, panels


@contextmanager
def styled(more: dict[str, Any] | None = None) -> Iterator[None]:
    import matplotlib

    settings: Any = STYLE | (more or {})
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # a letter that the font lacks is a box in the PNG; browsers have it
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        yield
