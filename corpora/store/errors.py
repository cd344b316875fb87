"""The one error of this package that is meant for people."""


class CorpusError(Exception):
    """A corpus is missing, broken or asked for something it cannot give.

    The message names the file or setting, what was found and what would be accepted; the command prints it
    without a traceback.
    """
