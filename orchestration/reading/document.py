"""A YAML file and the place of everything in it, so that a mistake can be named by file, line and field."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import SafeConstructor

from orchestration.reading.limits import LimitedLoader, LimitsError, content_of
from orchestration.study.errors import StudyError
from orchestration.study.names import acting, cut, names_accepted, printable

Place = tuple[str | int, ...]  # ("compare", 1, "metric"): how to walk from the top of the file to a value

_TEXT = "tag:yaml.org,2002:str"
_MERGE = "tag:yaml.org,2002:merge"
_NULL = "tag:yaml.org,2002:null"
_DATE = "tag:yaml.org,2002:timestamp"
_INT = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"
_ONE_LINE = "text on one line that shows as it is: no line ends, control characters or turns of direction"
DIGITS = 10  # of a whole number: seeds go up to 4294967295, and nothing in a study counts further
_STUDY = "a study: a mapping that begins with `question:`"
_PLAIN = "plain text, numbers, lists and mappings; no tags"
_TOLD = 300  # characters of what is wrong
_SHOWN = 70  # characters of a list or mapping repeated in a message


@dataclass(frozen=True)
class Mistake:
    """One mistake: the line it stands in, what is there, and what would be accepted."""

    line: int
    found: str
    accepted: str

    def words(self, where: str) -> str:
        return f"{where}{cut(printable(self.found), _TOLD)}\n  accepted: {printable(self.accepted)}"


@dataclass(frozen=True, eq=False)
class Document:
    """What a file says (`content`, in plain Python values) and where. problems: mistakes of the YAML itself."""

    path: Path
    content: Any
    nodes: Mapping[Place, yaml.Node]
    lines: Mapping[Place, int]
    problems: tuple[Mistake, ...]

    def holds(self, place: Place) -> bool:
        return place in self.nodes

    def at(self, place: Place) -> Any:
        """The value at a place that the document holds."""
        value = self.content
        for step in place:
            value = value[step]
        return value

    def line(self, place: Place) -> int:
        """The line of a place, or of the nearest thing around it where the place is not in the file."""
        while place not in self.lines:
            place = place[:-1]
        return self.lines[place]

    def written(self, place: Place) -> str:
        """A value as its author wrote it; text in quotes; long lists and mappings cut."""
        node = self.nodes[place]
        if isinstance(node, yaml.ScalarNode):
            if node.tag == _NULL:
                return node.value or "(nothing)"
            return repr(node.value) if node.tag == _TEXT else node.value
        text = yaml.safe_dump(self.at(place), default_flow_style=True, sort_keys=False, width=10**6).strip()
        return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"

    def plain(self, place: Place) -> str | None:
        """The characters of an unquoted scalar, before YAML gave them a type; None for anything else."""
        node = self.nodes[place]
        return node.value if isinstance(node, yaml.ScalarNode) and node.style is None else None

    def field(self, place: Place) -> str:
        """How a place is called in a message: `compare[H2].metric`, where H2 is the claim the entry makes."""
        name = ""
        for depth, step in enumerate(place):
            if isinstance(step, int):
                claim = self.nodes.get((*place[: depth + 1], "claim"))
                label = claim.value if isinstance(claim, yaml.ScalarNode) and claim.value else step
                name += f"[{label}]"
            else:
                name += f".{step}" if name else step
        return name

    def found(self, place: Place) -> str:
        """What there is at a place, in words."""
        return f"{self.field(place)} {f'= {self.written(place)}' if self.holds(place) else 'is missing'}"

    def told(self, mistake: Mistake) -> str:
        """A mistake of this document in words, with the file and the line."""
        return mistake.words(f"{self.path}:{mistake.line}: ")


def read(path: Path) -> Document:
    """The document in a file. StudyError, with file and line, when it cannot be read as YAML at all."""
    return document_of(path, _text(path))


def document_of(path: Path, text: str) -> Document:
    """As `read`, of what the file holds."""
    try:
        loader = LimitedLoader(text)
        node = loader.get_single_node()
        if node is None:
            raise StudyError(f"{path}: is empty\n  accepted: {_STUDY}")
        problems = tuple(_traps(node, (), frozenset()))
        content = loader.construct_document(node)
    except yaml.YAMLError as error:
        raise StudyError(_not_yaml(path, text, error)) from None
    except (ValueError, OverflowError) as error:  # the digits of an escape, which make no character
        raise StudyError(f"{path}:{loader.line + 1}: {error}\n  accepted: {_PLAIN}") from None
    if not isinstance(content, dict):
        line, kind = node.start_mark.line + 1, "a list" if isinstance(content, list) else "one value"
        raise StudyError(f"{path}:{line}: holds {kind}, not a mapping\n  accepted: {_STUDY}")
    places = {place: (line, node) for place, line, node in _places(node, (), node.start_mark.line + 1)}
    return Document(
        path=path,
        content=content,
        nodes={place: node for place, (_, node) in places.items()},
        lines={place: line for place, (line, _) in places.items()},
        problems=problems,
    )


def _text(path: Path) -> str:
    if os.path.isdir(path):
        raise StudyError(f"{path}: is a folder\n  accepted: the .yaml file of a study{_files_near(path, path)}")
    try:
        content = content_of(path)
    except FileNotFoundError:
        raise StudyError(
            f"{path}: no such file\n  accepted: the .yaml file of a study{_files_near(path, path.parent)}"
        ) from None
    except OSError as error:
        raise StudyError(f"{path}: cannot be read ({error.strerror})\n  accepted: a readable .yaml file") from None
    if path.suffix not in {".yaml", ".yml"}:
        raise StudyError(f"{path}: ends in {path.suffix!r}\n  accepted: the .yaml file of a study")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise StudyError(
            f"{path}:{line}: byte 0x{content[error.start]:02x} is not UTF-8\n"
            "  accepted: a text file in UTF-8; save it again with that encoding"
        ) from None


def _files_near(path: Path, folder: Path) -> str:
    """The studies of a folder, as words for a message."""
    names = sorted(file.stem for file in folder.glob("*.y*ml")) if folder.is_dir() else []
    return f"; {folder} holds {names_accepted(path.stem, names)}" if names else ""


def _not_yaml(path: Path, text: str, error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:  # a reader error: it knows the character, not the line
        position = getattr(error, "position", 0)
        line, what = text.count("\n", 0, position) + 1, f"the character {text[position : position + 1]!r}"
        return f"{path}:{line}: {what} may not stand in YAML\n  accepted: printable text in UTF-8"
    if isinstance(error, LimitsError):
        return f"{path}:{mark.line + 1}: holds {error.problem}\n  accepted: {error.accepted}"
    problem = getattr(error, "problem", None) or "cannot be read"
    accepted = "valid YAML; this place is where reading stopped, the cause may stand a line above"
    if "\\t" in problem:
        problem, accepted = "a tab where YAML wants spaces", "indentation by spaces only"
    elif "constructor for the tag" in problem:
        accepted = _PLAIN
    elif "single document" in (getattr(error, "context", None) or ""):
        problem, accepted = "a second document begins here", "one study per file, so one document"
    return f"{path}:{mark.line + 1}: {problem}\n{_two_lines(text, mark.line)}\n  accepted: {accepted}"


def _two_lines(text: str, line: int) -> str:
    """The line where reading stopped, counted from 0, and the last one with words above it, with their numbers."""
    lines = text.split("\n")
    above = next((number for number in range(min(line, len(lines)) - 1, -1, -1) if lines[number].strip()), None)
    shown = [number for number in (above, line) if number is not None and number < len(lines)]
    return "\n".join(f"  {number + 1:>4} | {cut(printable(lines[number].rstrip()), _SHOWN)}" for number in shown)


def _traps(node: yaml.Node, place: Place, around: frozenset[int]) -> Iterator[Mistake]:
    """Mistakes that YAML itself lets pass: keys written twice or read as no text, characters that do not show.

    Keys that are not text are turned into the text that was written, so that only this is said of them.
    """
    if id(node) in around:
        raise yaml.composer.ComposerError(None, None, "an alias inside its own anchor", node.start_mark)
    around |= {id(node)}
    if isinstance(node, yaml.MappingNode):
        yield from _key_traps(node, place)
        for key, value in node.value:
            yield from _traps(value, (*place, key.value) if isinstance(key.value, str) else place, around)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _traps(value, (*place, index), around)
    else:
        yield from _value_traps(node, place)


def _value_traps(node: yaml.Node, place: Place) -> Iterator[Mistake]:
    line, name = node.start_mark.line + 1, _dotted(place)
    if node.tag == _DATE or _makes_no_number(node):  # a study has no dates: what looks like one is a name
        node.tag = _TEXT
    if node.tag in (_INT, _FLOAT) and (meant := _in_tens(node)):
        read = SafeConstructor().construct_object(node)
        yield Mistake(line, f"{name}: YAML reads {node.value} as {read}", f"{meant}, or '{node.value}' as text")
    if node.tag == _INT and len(node.value) > DIGITS:
        yield Mistake(
            line, f"{name} = {node.value}", f"a whole number of at most {DIGITS} digits: nothing counts further"
        )
    keep = "\n\t" if place == ("question",) else ""  # a question may take several lines
    if (sign := acting(node.value, keep)) is not None:
        yield Mistake(line, f"{name} holds {sign}", _ONE_LINE)


def _makes_no_number(node: yaml.Node) -> bool:
    """Whether YAML takes a scalar for a number, such as `0b_` without digits, and Python can make none of it."""
    if node.tag not in (_INT, _FLOAT):
        return False
    try:
        SafeConstructor().construct_object(node)
    except (ValueError, OverflowError):
        return True
    return False


def _in_tens(node: yaml.Node) -> str:
    """What to write for a number that YAML counts in sixties, by its colon, or in eights, by its zero; or ""."""
    if ":" in node.value:
        return "a number without colons"
    digits = node.value.replace("_", "")
    octal = re.fullmatch(r"[-+]?0[0-7]+", digits) and int(digits) != int(digits, 8)
    return str(int(digits)) if octal else ""


def _key_traps(node: yaml.MappingNode, place: Place) -> Iterator[Mistake]:
    first_line: dict[str, int] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
            continue
        line, name = key.start_mark.line + 1, _dotted((*place, key.value))
        if key.tag not in (_TEXT, _DATE):
            kind = key.tag.rsplit(":", 1)[-1]
            yield Mistake(line, f"{name}: YAML reads the key {key.value} as {kind}", f"text: write '{key.value}'")
        key.tag = _TEXT
        if (sign := acting(key.value)) is not None:
            yield Mistake(line, f"{name} holds {sign}", _ONE_LINE)
        if key.value in first_line:
            yield Mistake(line, f"{name} is written twice", f"once; it stands in line {first_line[key.value]} too")
        first_line.setdefault(key.value, line)


def _dotted(place: Place) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).lstrip(".")


def _places(node: yaml.Node, place: Place, line: int) -> Iterator[tuple[Place, int, yaml.Node]]:
    """Every place with its line and node. Runs after construction, when merge keys (`<<`) are resolved."""
    yield place, line, node
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _places(value, (*place, key.value), key.start_mark.line + 1)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _places(value, (*place, index), value.start_mark.line + 1)
