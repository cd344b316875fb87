"""Limits of a study file. A file far beyond any real study is refused before it costs time or memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from orchestration.study.errors import StudyError

BYTES = 256 * 1024  # the longest study of this project has 4 KB
DEPTH = 20  # lists and mappings inside each other; a study has 5
VALUES = 10_000  # aliases expanded: a study of 500 arms and 500 claims has 7,500
CHARACTERS = 2_000  # of one key or value
MISTAKES = 100  # shown at once


class LimitsError(yaml.MarkedYAMLError):
    """A document that goes beyond what a study may hold. accepted: the limit and its reason."""

    def __init__(self, problem: str, accepted: str, mark: yaml.Mark | None) -> None:
        super().__init__(problem=problem, problem_mark=mark)
        self.accepted = accepted


class LimitedLoader(yaml.SafeLoader):
    """PyYAML's safe loader that raises LimitsError as soon as a limit is passed, or at any tag."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = self._values = 0
        self._sizes: dict[int, int] = {}  # node id -> values inside, aliases expanded

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()
        self._check(event)
        before = self._values
        self._values += 1
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(event, yaml.AliasEvent):
            self._values += self._sizes.get(id(node), 1)
        else:
            self._sizes[id(node)] = self._values - before
        if self._values > VALUES:
            self._refuse(
                event,
                f"more than {VALUES:,} values",
                "fewer: a study names its seeds by their count, as in `seeds: 8`",
            )
        return node

    def _check(self, event: Any) -> None:
        if self._depth >= DEPTH:
            self._refuse(event, f"more than {DEPTH} lists and mappings inside each other", "a study, which has 5")
        if getattr(event, "tag", None):
            self._refuse(event, f"the tag {event.tag}", "plain text, numbers, lists and mappings; no tags")
        if len(getattr(event, "value", "")) > CHARACTERS:
            self._refuse(
                event, f"one text of {len(event.value):,} characters", f"at most {CHARACTERS:,} characters"
            )

    def _refuse(self, event: Any, problem: str, accepted: str) -> None:
        raise LimitsError(problem, accepted, event.start_mark)


def content_of(path: Path) -> bytes:
    """The bytes of a study file. StudyError if it is too large or no plain file."""
    if path.exists() and not path.is_file():
        raise StudyError(f"{path}: is no plain file\n  accepted: the .yaml file of a study")
    with path.open("rb") as file:
        content = file.read(BYTES + 1)
    if len(content) > BYTES:
        raise StudyError(
            f"{path}: is larger than {BYTES // 1024} KiB\n"
            "  accepted: a study, which is a page of text; data lie in files of their own, which `data` names"
        )
    return content
