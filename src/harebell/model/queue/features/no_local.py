"""no-local: consumers that do not get messages of their own connection (AMQP 0-9-1 1.8.3.3).

A queue has this part while it has such a consumer. The part notes messages that the connection of
one has published. If such a message is next and no other consumer is ready, it is put aside, so
that it does not block the messages behind it. It is delivered, before any later message, as soon as
another consumer is ready, or by basic.get.

    ready order   | m2 m3 m5 ... |        aside, by connection   { 7: [m1, m4] }

With ordering keys, a message that is put aside blocks later messages of its key. A stream has
`Skipped` instead, one for each such consumer: consumers of a stream do not share messages.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from harebell.model.limits import NO_LOCAL_FORGOTTEN, NO_LOCAL_RUNS
from harebell.model.queue.arguments import SINGLE_ACTIVE

if TYPE_CHECKING:
    from harebell.model.consumer import Consumer
    from harebell.model.queue.features.queue_internals import QueueInternals


class NoLocal:
    """The messages of one queue that no-local consumers do not get."""

    def __init__(self, queue: QueueInternals) -> None:
        self._queue = queue
        self._single = queue.arguments.get(SINGLE_ACTIVE) is True
        self._origins: dict[int, int] = {}
        self._aside: dict[int, list[int]] = {}
        self._fresh: set[int] = set()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def idle(self) -> bool:
        """Whether nothing is noted that matters without these consumers."""
        return not self._fresh

    def concerns(self, origin: int) -> bool:
        """True if a consumer of that connection is no-local."""
        return any(consumer.excluded == origin for consumer in self._queue.consumers)

    def lost(self, origin: int) -> bool:
        """True if no consumer can ever get a message, as the queue is exclusive."""
        queue = self._queue
        return queue.owner is not None and all(c.excluded == origin for c in queue.consumers)

    def note(self, position: int, origin: int) -> None:
        """Note that the next message, of this connection, gets this position."""
        self._origins[position] = origin
        queue = self._queue
        # The queue does not report settled messages, so the oldest notes are dropped at a limit
        # that leaves room for all messages that are not settled.
        limit = 2 * (queue.ready_count() + queue.unacked) + NO_LOCAL_FORGOTTEN
        while len(self._origins) > limit:
            # These were settled long ago, except for the messages that have waited the longest.
            del self._origins[next(iter(self._origins))]

    def taker(self, consumer: Consumer, position: int, *, only: bool = False) -> Consumer | None:
        """Return the consumer that gets a message, or None if none can get it now.

        Args:
            consumer: the consumer that is next.
            position: the position of the message.
            only: whether no other consumer may get it.
        """
        origin = self._origins.get(position)
        if origin is None or consumer.excluded != origin:
            return consumer
        return None if only else self._other(origin)

    def origin_of(self, position: int) -> int:
        """Return the connection that a message came from, if it is noted; else 0."""
        return self._origins.get(position, 0)

    def _other(self, origin: int) -> Consumer | None:
        if self._single:
            # Only the single active consumer is served, and it does not get this message.
            return None
        for consumer in self._queue.consumers:
            if consumer.group is None and consumer.excluded != origin and consumer.ready():
                return consumer
        return None

    def redelivered(self, position: int, redelivered: bool) -> bool:
        """True if a message was delivered before, not only put aside."""
        if position in self._fresh:
            self._fresh.discard(position)
            return False
        return redelivered

    def put_aside(self, position: int, redelivered: bool) -> None:
        """Put aside a message that was just taken, as no consumer is ready for it."""
        heappush(self._aside.setdefault(self._origins[position], []), position)
        self._count += 1
        if not redelivered:
            # The order marks what is restored as redelivered, but no client has seen this one.
            self._fresh.add(position)

    def release_one(self) -> bool:
        """Make one message ready that a consumer can get now; False if there is none."""
        for origin, positions in self._aside.items():
            if positions and self._ready_for(origin):
                self._count -= 1
                self._queue.restore(heappop(positions), True)
                return True
        return False

    def _ready_for(self, origin: int) -> bool:
        if self._single:
            active = self._queue.consumers.active()
            return active is not None and active.excluded != origin
        return self._other(origin) is not None

    def release_all(self) -> None:
        """Make all messages ready that were put aside."""
        aside, self._aside, self._count = self._aside, {}, 0
        for positions in aside.values():
            for position in positions:
                self._queue.restore(position, True)

    def purge(self) -> None:
        """Make all messages ready before a purge, and forget them."""
        self.release_all()
        self._fresh.clear()


class Skipped:
    """The messages of a stream that one no-local consumer skips, ahead of its cursor.

    Adjacent messages are one range, which saves memory.
    """

    def __init__(self) -> None:
        self._runs: deque[list[int]] = deque()

    def note(self, position: int) -> None:
        """Note the position of a message of the consumer's own connection, the last so far."""
        runs = self._runs
        if runs and runs[-1][1] == position:
            runs[-1][1] = position + 1
            return
        runs.append([position, position + 1])
        if len(runs) > NO_LOCAL_RUNS:
            # Memory is bounded: the oldest range is forgotten, and the consumer gets its messages.
            runs.popleft()

    def behind(self, position: int) -> int:
        """Return the first position to deliver from one on; positions never decrease."""
        runs = self._runs
        while runs and runs[0][0] <= position:
            position = max(position, runs.popleft()[1])
        return position
