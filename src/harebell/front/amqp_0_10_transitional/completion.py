"""The completed commands of a peer, for execution.complete (class 140).

Commands are numbered from 1 as they come, in 32 bits and around again (RFC 1982); methods of the
classes connection, channel, session and execution are none. A command without a reply is complete
when it was done, one that changed something durable when that is on disk.

    command   1  2  3  4  5  6  7            complete: mark 2, ranges (4,4) (6,7)
    waits           9     9                  for the commit 9
"""

from __future__ import annotations

from harebell.base.limits import COMPLETION_RANGES

SERIALS = 1 << 32
SESSION_CLASS = 20
CONTROLS = frozenset((10, SESSION_CLASS, 21, 140))
"""Classes whose methods are no commands."""
_UNTOLD = -1


def after(serial: int, steps: int = 1) -> int:
    """The serial number that many steps later."""
    return (serial + steps) % SERIALS


def distance(first: int, last: int) -> int:
    """How many steps lead from one serial number to another; negative for one before it."""
    steps = (last - first) % SERIALS
    return steps if steps < SERIALS // 2 else steps - SERIALS


class Completions:
    """The commands of one channel or session, and which of them are complete.

    Attributes:
        last: the number of the newest command; 0 before the first.
        asked: the peer wants to know when those that wait are complete.
    """

    __slots__ = ("_open", "_told", "asked", "last")

    def __init__(self) -> None:
        self.last = 0
        self.asked = False
        self._told = _UNTOLD
        # Number -> the commit it waits for, or _UNTOLD while the command is executed.
        self._open: dict[int, int] = {}

    def take(self) -> int:
        """Number another command."""
        self.last = after(self.last)
        return self.last

    def wait(self, ticket: int) -> None:
        """The newest command is complete with this commit."""
        if ticket > self._open.get(self.last, _UNTOLD):
            self._open[self.last] = ticket

    def hold(self) -> int:
        """The newest command is complete when `done` is called with the number returned."""
        self._open.setdefault(self.last, _UNTOLD)
        return self.last

    def release(self) -> None:
        """The newest command, which was held, is complete unless it waits for the disk."""
        if self._open.get(self.last) == _UNTOLD:
            del self._open[self.last]

    def done(self, number: int, ticket: int = 0) -> None:
        """A command that was held is complete, with this commit or at once."""
        self._open[number] = max(ticket, 0)

    def newest(self) -> int:
        """The latest commit that some command waits for; 0 for none."""
        return max(self._open.values(), default=0)

    def written_with(self) -> int:
        """The commit that the newest command waits for; at most 0 when it waits for none."""
        return self._open.get(self.last, 0)

    @property
    def waiting(self) -> bool:
        """Whether some command was not complete when that was looked at last."""
        return bool(self._open)

    def look(self, done: int) -> tuple[int, tuple[tuple[int, int], ...]]:
        """The completed ranges.

        Args:
            done: the last commit on disk.

        Returns:
            The mark, up to which everything is, and closed intervals above it.
        """
        for number, ticket in list(self._open.items()):
            if ticket == _UNTOLD or ticket > done:
                break
            del self._open[number]
        if not self._open:
            return self.last, ()
        unfinished = [n for n, ticket in self._open.items() if ticket == _UNTOLD or ticket > done]
        mark = after(unfinished[0], -1)
        ranges = []
        for number, following in zip(unfinished, [*unfinished[1:], after(self.last)], strict=True):
            first, last = after(number), after(following, -1)
            if distance(first, last) >= 0:
                ranges.append((first, last))
        return mark, tuple(ranges[:COMPLETION_RANGES])

    def news(self, done: int) -> bool:
        """Whether the mark has changed since it was sent last; it is noted as sent."""
        mark, _ = self.look(done)
        changed = mark != self._told
        self._told = mark
        return changed
