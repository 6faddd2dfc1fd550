"""Consumers that do not want what their own connection publishes (AMQP 0-9-1 1.8.3.3, no-local).

A queue has one of these while such a consumer is there. It remembers which messages came from the
connection of one; where such a message is next and nobody else is ready for it, it is put aside, so
that it holds up nothing behind it. It goes out, before anything that came later, as soon as another
consumer is ready or somebody asks for it with basic.get.

    ready order   | m2 m3 m5 ... |        aside, by connection   { 7: [m1, m4] }

Where keys are kept in order, a message that is put aside holds up what comes after it of its key.
A stream has `Skipped` instead, for each such consumer: there nobody takes a message from others.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from harebell.base.limits import NO_LOCAL_FORGOTTEN, NO_LOCAL_RUNS
from harebell.model.queue.arguments import SINGLE_ACTIVE

if TYPE_CHECKING:
    from harebell.model.consumer import Consumer
    from harebell.model.queue.features.host import Host


class NoLocal:
    """What some consumers of one queue do not want.

    Args:
        queue: the queue.
    """

    def __init__(self, queue: Host) -> None:
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
        """Whether it knows nothing that matters once the consumers are gone."""
        return not self._fresh

    def concerns(self, origin: int) -> bool:
        """Whether a consumer of that connection does not want its messages."""
        return any(consumer.excluded == origin for consumer in self._queue.consumers)

    def lost(self, origin: int) -> bool:
        """Whether nobody could ever take a message: the queue is that connection's alone."""
        queue = self._queue
        return queue.owner is not None and all(c.excluded == origin for c in queue.consumers)

    def note(self, position: int, origin: int) -> None:
        """A message of a connection gets this position."""
        self._origins[position] = origin
        queue = self._queue
        most = 2 * (queue.ready_count() + queue.unacked) + NO_LOCAL_FORGOTTEN
        while len(self._origins) > most:
            # Settled long ago, but for what has been waiting the longest.
            del self._origins[next(iter(self._origins))]

    def taker(self, consumer: Consumer, position: int, *, only: bool = False) -> Consumer | None:
        """Who gets a message: the consumer whose turn it is, another one, or nobody now.

        Args:
            consumer: whose turn it is.
            position: of the message.
            only: whether no other one may have it.
        """
        origin = self._origins.get(position)
        if origin is None or consumer.excluded != origin:
            return consumer
        return None if only else self._other(origin)

    def _other(self, origin: int) -> Consumer | None:
        if self._single:
            # The single active consumer alone is served, and it is known not to want this.
            return None
        for consumer in self._queue.consumers:
            if consumer.excluded != origin and consumer.ready():
                return consumer
        return None

    def redelivered(self, position: int, redelivered: bool) -> bool:
        """Whether a message was delivered before, not merely put aside."""
        if position in self._fresh:
            self._fresh.discard(position)
            return False
        return redelivered

    def put_aside(self, position: int, redelivered: bool) -> None:
        """Nobody is ready for a message that was just taken."""
        heappush(self._aside.setdefault(self._origins[position], []), position)
        self._count += 1
        if not redelivered:
            self._fresh.add(position)

    def release_one(self) -> bool:
        """Make one message ready again for whom there is a consumer now; False when none is."""
        for origin, positions in self._aside.items():
            if positions and self._ready_for(origin):
                self._count -= 1
                self._queue.come_back(heappop(positions))
                return True
        return False

    def _ready_for(self, origin: int) -> bool:
        if self._single:
            active = self._queue.consumers.active()
            return active is not None and active.excluded != origin
        return self._other(origin) is not None

    def release_all(self) -> None:
        """Make everything ready again."""
        aside, self._aside, self._count = self._aside, {}, 0
        for positions in aside.values():
            for position in positions:
                self._queue.come_back(position)

    def purge(self) -> None:
        """Everything that is ready goes now, and what was put aside with it."""
        self.release_all()
        self._fresh.clear()


class Skipped:
    """Which messages of a stream one consumer does not want, of those it has not come to.

    What follows each other is one run, so a connection that publishes much takes little room.
    """

    def __init__(self) -> None:
        self._runs: deque[list[int]] = deque()

    def note(self, position: int) -> None:
        """The consumer's own connection published what stands at a position, the last so far."""
        runs = self._runs
        if runs and runs[-1][1] == position:
            runs[-1][1] = position + 1
            return
        runs.append([position, position + 1])
        if len(runs) > NO_LOCAL_RUNS:
            # The consumer gets what has been waiting for it the longest.
            runs.popleft()

    def behind(self, position: int) -> int:
        """The first position from one on that the consumer wants; it never goes back."""
        runs = self._runs
        while runs and runs[0][0] <= position:
            position = max(position, runs.popleft()[1])
        return position
