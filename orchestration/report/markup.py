"""Escapes text for Markdown and LaTeX, so that every name is shown exactly as it is."""

from __future__ import annotations

import re

from orchestration.study.names import printable

# Characters with a meaning in Markdown, anywhere or only beside the characters named here.
_MARKDOWN = re.compile(
    r"[\\`*~|$]|(?<![^\W_])_|_(?![^\W_])|<(?=[A-Za-z/!?])|\](?=[(\[:])|&(?=#?\w+;)|^>|^[-+#](?=[-+#\s]|$)"
    r"|(?<=\s)#(?=#*\s*$)"  # at the end of a heading, # would close it
)
_NUMBERED = re.compile(r"^(\d{1,9})([.)])(?=\s|$)")

_TEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{sign: f"{sign}{{}}" for sign in "-`',!?<>"},  # two of them would be joined into another sign
    **{"±": r"$\pm$", "−": "$-$", "×": r"$\times$", "≤": r"$\leq$", "≥": r"$\geq$", "√": r"$\surd$"},
    **{"<": "$<$", ">": "$>$", "|": r"\textbar{}", '"': r"\symbol{34}", "\\": r"\textbackslash{}", "–": "--"},
    **{"…": r"\ldots{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\u00a0": "~"},
}
_TEX_SIGNS = re.compile(r"[-`',!?](?=[-`',])|[&%$#_{}±−×≤≥√<>|\"\\–…~^\u00a0]")


def marked_down(text: str) -> str:
    """The text escaped for Markdown, on one line."""
    text = _MARKDOWN.sub(lambda found: f"\\{found[0]}", printable(text))
    return _NUMBERED.sub(r"\1\\\2", text)


def tex(text: str) -> str:
    """The text escaped for LaTeX, on one line. Non-Latin letters need XeLaTeX or LuaLaTeX and a font with them."""
    text = _TEX_SIGNS.sub(lambda found: _TEX[found[0]], printable(text))
    return re.sub(r"(?<![\w-])-(?=[\d.])", "$-$", text)
