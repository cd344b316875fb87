"""The error of this package for people, and any other error in one line."""


class CorpusError(Exception):
    """A corpus is missing, is broken, or lacks what a study asks for.

    The message names the file or setting, what was found and what would be accepted; the command prints it
    without a traceback.
    """


def first_line(error: BaseException) -> str:
    """The first line of an error's message; its kind if the message is empty."""
    if isinstance(error, UnicodeDecodeError):  # of a person's file, in plainer words than the codec's
        wanted = error.encoding.upper()
        return f"byte 0x{error.object[error.start]:02x} is not {wanted}; save it again with that encoding"
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def last_line(error: BaseException) -> str:
    """The last line of an error's message, which is the cause if it comes from another process; else its kind."""
    return (str(error).strip() or type(error).__name__).splitlines()[-1]


def kind_and_first_line(error: BaseException) -> str:
    """Kind and message, as a message alone may be unclear: "ConnectionError: the hub is away"."""
    kind, line = type(error).__name__, first_line(error)
    return kind if line == kind else f"{kind}: {line}"
