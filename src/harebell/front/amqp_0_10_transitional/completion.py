"""The completed commands of a peer, for execution.complete (class 140).

Commands are numbered from 1 in order of arrival, in 32 bits with wrap-around (RFC 1982); methods of
the classes connection, channel, session and execution are not commands. A command without a reply
is complete when it was executed, one with a durable change when that is on disk.

    command   1  2  3  4  5  6  7            complete: mark 2, ranges (4,4) (6,7)
    waits           9     9                  for the commit 9
"""

from __future__ import annotations

from harebell.front.limits import COMPLETION_RANGES

SERIALS = 1 << 32
SESSION_CLASS = 20
CONTROLS = frozenset((10, SESSION_CLASS, 21, 140))
"""Classes whose methods are no commands."""
_PENDING = -1


def after(serial: int, steps: int = 1) -> int:
    """Return the serial number that many steps later."""
    return (serial + steps) % SERIALS


def distance(first: int, last: int) -> int:
    """Return the steps from one serial number to another; negative if it is earlier."""
    steps = (last - first) % SERIALS
    return steps if steps < SERIALS // 2 else steps - SERIALS


class Completions:
    """The commands of one channel or session, and which of them are complete.

    Attributes:
        last: the number of the newest command; 0 before the first.
        asked: whether the peer requests completions of pending commands.
    """

    __slots__ = ("_open", "_sent_mark", "asked", "last")

    def __init__(self) -> None:
        self.last = 0
        self.asked = False
        self._sent_mark = _PENDING
        # Number -> the commit it waits for, or _PENDING while the command is executed.
        self._open: dict[int, int] = {}

    def take(self) -> int:
        """Number the next command."""
        self.last = after(self.last)
        return self.last

    def wait(self, ticket: int) -> None:
        """Complete the newest command with this commit."""
        # A command with several changes waits for the latest of their commits.
        if ticket > self._open.get(self.last, _PENDING):
            self._open[self.last] = ticket

    def hold(self) -> int:
        """Hold the newest command until `done` is called with the returned number."""
        self._open.setdefault(self.last, _PENDING)
        return self.last

    def release(self) -> None:
        """Release the newest command, which was held; it may still wait for the disk."""
        if self._open.get(self.last) == _PENDING:
            del self._open[self.last]

    def done(self, number: int, ticket: int = 0) -> None:
        """Complete a held command, with this commit or at once."""
        self._open[number] = max(ticket, 0)

    def newest(self) -> int:
        """Return the latest commit that a command waits for; 0 for none."""
        return max(self._open.values(), default=0)

    def written_with(self) -> int:
        """Return the commit that the newest command waits for; at most 0 for none."""
        return self._open.get(self.last, 0)

    @property
    def waiting(self) -> bool:
        """True if some command was not complete at the last `look`."""
        return bool(self._open)

    def look(self, done: int) -> tuple[int, tuple[tuple[int, int], ...]]:
        """Compute the completed ranges.

        Args:
            done: the last commit on disk.

        Returns:
            The mark, up to which everything is, and closed intervals above it.
        """
        # Commands above the first unfinished one stay, as the ranges are made of the gaps.
        for number, ticket in list(self._open.items()):
            if ticket == _PENDING or ticket > done:
                break
            del self._open[number]
        if not self._open:
            return self.last, ()
        unfinished = [n for n, ticket in self._open.items() if ticket == _PENDING or ticket > done]
        mark = after(unfinished[0], -1)
        ranges = []
        for number, following in zip(unfinished, [*unfinished[1:], after(self.last)], strict=True):
            first, last = after(number), after(following, -1)
            if distance(first, last) >= 0:
                ranges.append((first, last))
        # The rule "unique-encoding" holds by itself: mark + 1 is unfinished, and so in no range.
        return mark, tuple(ranges[:COMPLETION_RANGES])

    def news(self, done: int) -> bool:
        """True if the mark has changed since it was last sent; marks it as sent."""
        mark, _ = self.look(done)
        changed = mark != self._sent_mark
        self._sent_mark = mark
        return changed
