"""Standard streams that last as long as a command does, whoever stops reading them. Quick to import."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def open_streams() -> None:
    """Have the streams last.

    One that whoever started us closed leads nowhere, not into the file that is opened next. One that a program put
    in its place is left alone: it may be closed once nobody holds it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            nowhere = open(os.devnull, mode)  # noqa: SIM115  # it takes the lowest free number: the stream's
            os.set_inheritable(nowhere.fileno(), True)
            setattr(sys, name, nowhere)
        elif mode == "w" and stream is getattr(sys, f"__{name}__"):
            setattr(sys, name, _lasting(stream))


def lead_nowhere(descriptor: int) -> None:
    """Have what is written there from now on be dropped."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


class _Lasting(io.FileIO):
    """Where a stream is written to; nowhere, once its pipe has no reader or its terminal has closed.

    `semray run STUDY | head` trains, judges and writes its page all the same, and exits as it would have.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        # EIO of anything but a terminal is a failing disk
        self._gone = (errno.EPIPE, errno.EIO) if self.isatty() else (errno.EPIPE,)

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno not in self._gone:
                raise
            lead_nowhere(self.fileno())
            return memoryview(data).nbytes


def _lasting(stream: object) -> object:
    """The stream over a `_Lasting`; as it is where no file of the system takes its text."""
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    raw = getattr(stream.buffer, "raw", stream.buffer)
    if type(raw) is not io.FileIO:
        return stream
    stream.flush()
    lasting: Any = _Lasting(raw.fileno())
    return io.TextIOWrapper(
        lasting if raw is stream.buffer else io.BufferedWriter(lasting),  # `python -u` has no buffer
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
