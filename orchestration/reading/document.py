"""Reads a YAML file and keeps the place of every value, so that a message can name file, line and field."""

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
from orchestration.study.names import cut, names_accepted, printable, unprintable_character

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
_WIDTH = 300  # characters of a message that say what is wrong
_QUOTED = 70  # characters of a list, a mapping or a line of the file, quoted in a message


@dataclass(frozen=True)
class Mistake:
    """One mistake: the line it stands in, what is there, and what would be accepted."""

    line: int
    found: str
    accepted: str

    def words(self, where: str) -> str:
        return f"{where}{cut(printable(self.found), _WIDTH)}\n  accepted: {printable(self.accepted)}"


@dataclass(frozen=True, eq=False)
class Document:
    """A parsed file: `content` in plain Python values, and each place's node and line. problems: of its YAML."""

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
        """The value as its author wrote it: text in quotes, long lists and mappings cut."""
        node = self.nodes[place]
        if isinstance(node, yaml.ScalarNode):
            if node.tag == _NULL:
                return node.value or "(nothing)"
            return repr(node.value) if node.tag == _TEXT else node.value
        text = yaml.safe_dump(self.at(place), default_flow_style=True, sort_keys=False, width=10**6).strip()
        return text if len(text) <= _QUOTED else text[: _QUOTED - 1] + "…"

    def plain(self, place: Place) -> str | None:
        """The characters of an unquoted scalar, before YAML gave them a type; None for anything else."""
        node = self.nodes[place]
        return node.value if isinstance(node, yaml.ScalarNode) and node.style is None else None

    def field(self, place: Place) -> str:
        """The name of a place in messages, such as `compare[H2].metric`, where H2 is the claim of the entry."""
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
        """`field = value`, or `field is missing`."""
        return f"{self.field(place)} {f'= {self.written(place)}' if self.holds(place) else 'is missing'}"

    def message(self, mistake: Mistake) -> str:
        """The message about a mistake of this document, with file and line."""
        return mistake.words(f"{self.path}:{mistake.line}: ")


def read(path: Path) -> Document:
    """The document in a file. StudyError, with file and line, when it cannot be read as YAML at all."""
    return document_of(path, _text(path))


def document_of(path: Path, text: str) -> Document:
    """The document in a text that was read from `path`. Raises as `read` does."""
    try:
        loader = LimitedLoader(text)
        node = loader.get_single_node()
        if node is None:
            raise StudyError(f"{path}: is empty\n  accepted: {_STUDY}")
        problems = tuple(_mistakes(node, (), frozenset()))
        content = loader.construct_document(node)
    except yaml.YAMLError as error:
        raise StudyError(_not_yaml(path, text, error)) from None
    except (ValueError, OverflowError) as error:  # an escape whose digits name no character
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
    """The end of a message that lists the YAML files of a folder; "" if it has none."""
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
    return f"{path}:{mark.line + 1}: {problem}\n{_excerpt(text, mark.line)}\n  accepted: {accepted}"


def _excerpt(text: str, line: int) -> str:
    """The line where reading stopped (`line`, counted from 0) and the last line above it that is not blank."""
    lines = text.split("\n")
    above = next((number for number in range(min(line, len(lines)) - 1, -1, -1) if lines[number].strip()), None)
    shown = [number for number in (above, line) if number is not None and number < len(lines)]
    return "\n".join(f"  {number + 1:>4} | {cut(printable(lines[number].rstrip()), _QUOTED)}" for number in shown)


def _mistakes(node: yaml.Node, place: Place, ancestors: frozenset[int]) -> Iterator[Mistake]:
    """Mistakes that YAML accepts: repeated keys, keys that are not text, misread numbers, invisible characters.

    A key that is not text is replaced by its written text, so that it causes no second message.
    """
    if id(node) in ancestors:
        raise yaml.composer.ComposerError(None, None, "an alias inside its own anchor", node.start_mark)
    ancestors |= {id(node)}
    if isinstance(node, yaml.MappingNode):
        yield from _mistakes_in_keys(node, place)
        for key, value in node.value:
            yield from _mistakes(value, (*place, key.value) if isinstance(key.value, str) else place, ancestors)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _mistakes(value, (*place, index), ancestors)
    else:
        yield from _mistakes_in_value(node, place)


def _mistakes_in_value(node: yaml.Node, place: Place) -> Iterator[Mistake]:
    line, name = node.start_mark.line + 1, _dotted(place)
    if node.tag == _DATE or _is_unparsable_number(node):  # a study has no dates: what looks like one is a name
        node.tag = _TEXT
    if node.tag in (_INT, _FLOAT) and (meant := _decimal_spelling(node)):
        read = SafeConstructor().construct_object(node)
        yield Mistake(line, f"{name}: YAML reads {node.value} as {read}", f"{meant}, or '{node.value}' as text")
    if node.tag == _INT and len(node.value) > DIGITS:
        yield Mistake(
            line, f"{name} = {node.value}", f"a whole number of at most {DIGITS} digits: nothing counts further"
        )
    keep = "\n\t" if place == ("question",) else ""  # a question may take several lines
    if (character := unprintable_character(node.value, keep)) is not None:
        yield Mistake(line, f"{name} holds {character}", _ONE_LINE)


def _is_unparsable_number(node: yaml.Node) -> bool:
    """Whether YAML tags a scalar as a number that Python cannot parse, such as `0b_`."""
    if node.tag not in (_INT, _FLOAT):
        return False
    try:
        SafeConstructor().construct_object(node)
    except (ValueError, OverflowError):
        return True
    return False


def _decimal_spelling(node: yaml.Node) -> str:
    """What to write for a number that YAML reads in base 60 (a colon) or base 8 (a leading zero); else ""."""
    if ":" in node.value:
        return "a number without colons"
    digits = node.value.replace("_", "")
    octal = re.fullmatch(r"[-+]?0[0-7]+", digits) and int(digits) != int(digits, 8)
    return str(int(digits)) if octal else ""


def _mistakes_in_keys(node: yaml.MappingNode, place: Place) -> Iterator[Mistake]:
    first_line: dict[str, int] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
            continue
        line, name = key.start_mark.line + 1, _dotted((*place, key.value))
        if key.tag not in (_TEXT, _DATE):
            kind = key.tag.rsplit(":", 1)[-1]
            yield Mistake(line, f"{name}: YAML reads the key {key.value} as {kind}", f"text: write '{key.value}'")
        key.tag = _TEXT
        if (character := unprintable_character(key.value)) is not None:
            yield Mistake(line, f"{name} holds {character}", _ONE_LINE)
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
