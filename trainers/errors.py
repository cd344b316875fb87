"""The one base of this package's errors that are meant for people."""


class TrainerError(Exception):
    """Something a person must change: done again, it would end the same way."""
