"""What a command is made of, as a run finds it where it executes."""

from __future__ import annotations

from dataclasses import dataclass

from corpora.command.data import CommandData
from corpora.command.watched import fingerprint as content_of
from corpora.command.watched import git_states


@dataclass(frozen=True)
class CommandCorpus:
    """fingerprint: of the files' content. states: what git says of each work tree that they lie in."""

    fingerprint: str
    states: tuple[str, ...]


def fingerprint(data: CommandData) -> str:
    """Names the content of the watched files. CorpusError where one is not there."""
    return content_of(data.watch)


def load(data: CommandData) -> CommandCorpus:
    """As `fingerprint`, with what git says."""
    return CommandCorpus(fingerprint(data), git_states(data.watch))
