"""What a connection has below and above it: the scanner of its input, the socket of the shell."""

from __future__ import annotations

from typing import Protocol


class Transport(Protocol):
    """The socket of a connection, as its connection and the server use it."""

    def abort(self) -> None:
        """Close the socket at once and drop unsent output."""

    def flush(self, now: float) -> None:
        """Write the output of the connection."""

    def unsent(self) -> bool:
        """True if there is output that the socket has not accepted yet."""

    def unread(self) -> bool:
        """True if there is input that was not read yet."""


class Scanner(Protocol):
    """Splits the input of a connection; see `FrameScanner` and `SegmentScanner`.

    Attributes:
        frame_max: the largest accepted frame.
        fast: whether complete messages are passed on, which needs an open connection.
        stopped: whether input is dropped.
        hold: whether input is kept for later.
        cut: whether input was left when the work budget of the turn was spent.
        pending: contents that are being received as single frames.
    """

    frame_max: int
    fast: bool
    stopped: bool
    hold: bool
    cut: bool
    pending: int

    def feed(self, data: bytes | memoryview) -> object:
        """Scan input."""

    def break_cycle(self) -> object:
        """Break the reference cycle with the connection."""
