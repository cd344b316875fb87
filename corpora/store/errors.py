"""The one error of this package that is meant for people, and what any other says in a line."""


class CorpusError(Exception):
    """A corpus is missing, broken or asked for something it cannot give.

    The message names the file or setting, what was found and what would be accepted; the command prints it
    without a traceback.
    """


def first_line(error: BaseException) -> str:
    """What an error says first; its kind where it says nothing."""
    if isinstance(error, UnicodeDecodeError):  # of a person's own file; a codec's words help nobody
        wanted = error.encoding.upper()
        return f"byte 0x{error.object[error.start]:02x} is not {wanted}; save it again with that encoding"
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def last_line(error: BaseException) -> str:
    """What an error says last, which of one that another process sent is what that said; its kind as above."""
    return (str(error).strip() or type(error).__name__).splitlines()[-1]


def kind_and_first_line(error: BaseException) -> str:
    """For errors whose words alone may not say what they are: "ConnectionError: the hub is away"."""
    kind, said = type(error).__name__, first_line(error)
    return kind if said == kind else f"{kind}: {said}"
