"""Text as data in Markdown and LaTeX: whatever a name holds, it is read and set as it stands."""

from __future__ import annotations

import re

from orchestration.study.names import printable

# What has a meaning in Markdown wherever it stands, or only before or behind what is named here.
_MARKDOWN = re.compile(
    r"[\\`*~|$]|(?<![^\W_])_|_(?![^\W_])|<(?=[A-Za-z/!?])|\](?=[(\[:])|&(?=#?\w+;)|^>|^[-+#](?=[-+#\s]|$)"
    r"|(?<=\s)#(?=#*\s*$)"  # at the end of a heading they would close it
)
_NUMBERED = re.compile(r"^(\d{1,9})([.)])(?=\s|$)")

_TEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{sign: f"{sign}{{}}" for sign in "-`',!?<>"},  # two of them would join into another sign
    **{"±": r"$\pm$", "−": "$-$", "×": r"$\times$", "≤": r"$\leq$", "≥": r"$\geq$", "√": r"$\surd$"},
    **{"<": "$<$", ">": "$>$", "|": r"\textbar{}", '"': r"\symbol{34}", "\\": r"\textbackslash{}", "–": "--"},
    **{"…": r"\ldots{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\u00a0": "~"},
}
_TEX_SIGNS = re.compile(r"[-`',!?](?=[-`',])|[&%$#_{}±−×≤≥√<>|\"\\–…~^\u00a0]")


def marked_down(text: str) -> str:
    """The text in Markdown, on one line."""
    text = _MARKDOWN.sub(lambda found: f"\\{found[0]}", printable(text))
    return _NUMBERED.sub(r"\1\\\2", text)


def tex(text: str) -> str:
    """The text in LaTeX, on one line. Letters beyond Latin need XeLaTeX or LuaLaTeX, and a font that has them."""
    text = _TEX_SIGNS.sub(lambda found: _TEX[found[0]], printable(text))
    return re.sub(r"(?<![\w-])-(?=[\d.])", "$-$", text)
