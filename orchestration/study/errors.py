"""The errors that are for people: the command prints them without a traceback."""

from __future__ import annotations


class StudyError(Exception):
    """A study, a request or its data is wrong; the message says where and what would be accepted. Exit code 2."""
