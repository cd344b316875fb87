"""The files of a command, as a run finds them where it executes."""

from __future__ import annotations

from dataclasses import dataclass

from corpora.command.data import CommandData
from corpora.command.watched import fingerprint as content_of
from corpora.command.watched import git_states


@dataclass(frozen=True)
class CommandCorpus:
    """fingerprint: of the files' content. states: the git state of each work tree with such files, in words."""

    fingerprint: str
    states: tuple[str, ...]


def fingerprint(data: CommandData) -> str:
    """A hash of the content of the watched files. CorpusError if one is missing."""
    return content_of(data.watch)


def load(data: CommandData) -> CommandCorpus:
    """The fingerprint, with the git states."""
    return CommandCorpus(fingerprint(data), git_states(data.watch))
