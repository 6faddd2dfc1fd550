"""Output that is held until a commit is on disk.

    out of the front      | declare-ok ......... | more ............... |
    waits for the commit  | 7                    | 8                    |
                            parts                  the connection's OutBuffer

A reply that promises durability is written behind a barrier: the number of the commit that must
be on disk first. Later output waits, too, so the order of the output never changes. Output
before the first barrier is sent at once.
"""

from __future__ import annotations

from collections import deque

from harebell.base.body_frames import BodyFrames
from harebell.kernels.output import OutBuffer


class OutputBarrier:
    """The held output of one connection.

    Attributes:
        ticket: the commit that the newest output waits for; 0 when it waits for none.
    """

    __slots__ = ("_ahead", "_parts", "ticket")

    def __init__(self) -> None:
        self.ticket = 0
        self._parts: deque[tuple[int, list[bytes | BodyFrames]]] = deque()
        self._ahead = b""

    def cut(self, ticket: int, out: OutBuffer) -> None:
        """Hold output written from now on until the commit `ticket` is on disk."""
        # Commits reach the disk in order: output that waits for a later one needs no other barrier.
        if ticket > self.ticket:
            if out.size:
                self._parts.append((self.ticket, out.take_parts()))
            self.ticket = ticket

    def overtake(self, frame: bytes) -> None:
        """Send a heartbeat frame ahead of the held output."""
        self._ahead = frame

    def take(self, done: int, out: OutBuffer) -> list[bytes | BodyFrames]:
        """Take the output that may be sent when `done` is the last commit on disk."""
        free: list[bytes | BodyFrames] = [self._ahead] if self._ahead else []
        self._ahead = b""
        while self._parts and self._parts[0][0] <= done:
            free += self._parts.popleft()[1]
        if self.ticket <= done:
            self.ticket = 0
            free += out.take_parts()
        return free
