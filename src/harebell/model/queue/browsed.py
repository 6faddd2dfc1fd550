"""Queues that can be read without taking anything, and whose messages can be taken one by one.

A browser is a consumer that takes nothing: it is shown what is ready, each message once, in the
order in which the messages would go out, and goes on with what comes. It may take what it was shown
(`acquire`) as long as nobody else has, and is then like any other who has it. What others have out
is never shown; what they give back is, if the browser has not come past its place.

    ready      1   2   3   .   .   6   7 ...          4 and 5 are out
                       ^ cursor of a browser: 3 is next, then 6, unless 4 or 5 come back first

A queue without browsers has none of this, but for one test per message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.base.limits import BROWSED_PER_TURN
from harebell.base.message import Message
from harebell.model.consumer import Consumer
from harebell.model.dead_letter import EXPIRED
from harebell.model.queue.arguments import REPEATS
from harebell.model.queue.competing import CompetingQueue
from harebell.model.queue.kind import ACCEPTED, REJECTED, Queue
from harebell.model.queue.repeats import Repeats

if TYPE_CHECKING:
    from harebell.model.surroundings import Surroundings

_MOST = BROWSED_PER_TURN
_NOTHING = -1
_ACCEPTED = ACCEPTED
_FULL = REJECTED
_EXPIRED = EXPIRED
ALTERNATE = "x-alternate-exchange"
"""The argument that names the exchange which gets what is rejected, or left at the end."""


def leaves_messages(queue: Queue) -> bool:
    """Whether messages go to its alternate exchange when a queue is deleted."""
    held = queue.ready_count() + queue.unacked + queue.leased + queue.delayed_count()
    return held > 0 and ALTERNATE in queue.arguments


class Browser:
    """Where one browser is.

    Args:
        consumer: whose place it is.
        cursors: the first position that it has not been shown, in each log of the queue.
    """

    __slots__ = ("consumer", "cursors")

    def __init__(self, consumer: Consumer, cursors: list[int]) -> None:
        self.consumer = consumer
        self.cursors = cursors


class BrowsedQueue(CompetingQueue):
    """Consumers compete for its messages, and browsers look at them.

    Args:
        name: its name.
        vhost: the name of its vhost.
        **options: as for `Queue`.
    """

    LOGS = 1
    """How many ready orders a browser goes through."""

    def __init__(self, name: str, vhost: str, **options: Any) -> None:
        super().__init__(name, vhost, **options)
        self._places: list[Browser] | None = None
        alternate = self.arguments.get(ALTERNATE)
        self._alternate: str = alternate if isinstance(alternate, str) else ""
        self._repeats: Repeats | None = None

    def publish(self, message: Message) -> int:
        """Take a message, unless it is one that is here already and may be here once only."""
        if self._repeats is not None and self._repeats.known(message):
            # A row of an open batch may be rolled back: then this message would be lost.
            return _FULL if self.staging else _ACCEPTED
        return CompetingQueue.publish(self, message)

    def join(self, surroundings: Surroundings) -> None:
        """The queue is part of a vhost now, which can look into messages."""
        CompetingQueue.join(self, surroundings)
        if self.arguments.get(REPEATS) is True:
            self._repeats = Repeats(surroundings.editor, self, self._waiting())

    # --- what a kind fills ----------------------------------------------------------------------

    def holds(self, position: int) -> bool:
        """Whether the message at a position is still here, ready or delivered."""
        raise NotImplementedError

    def _look(self, cursors: list[int]) -> int:
        """The first ready position from these cursors on; -1 when there is none."""
        raise NotImplementedError

    def _pass(self, cursors: list[int], position: int) -> int:
        """Move the cursors behind a position that was looked at."""
        raise NotImplementedError

    def _was_out(self, position: int) -> bool:
        """Whether a ready message may have been delivered before."""
        raise NotImplementedError

    def _take_out(self, position: int) -> bool:
        """Take a ready message out of turn, setting `_again`; False when it is not ready."""
        raise NotImplementedError

    def _untouched(self, position: int) -> int:
        """What was just put back counts as never delivered, where the kind can tell."""
        return 0

    def _send_on_all(self) -> int:
        """Send on every message that is not settled: ready, delivered, claimed or waiting."""
        raise NotImplementedError

    def _waiting(self) -> list[tuple[int, Message]]:
        """What is ready, with its positions."""
        cursors = [0] * self.LOGS
        found = []
        position = self._look(cursors)
        while position >= 0:
            self._pass(cursors, position)
            message = self._read(position)
            if message is not None:
                found.append((position, message))
            position = self._look(cursors)
        return found

    # --- browsers -------------------------------------------------------------------------------

    def first(self) -> Message | None:
        """The message that would go out next; it stays where it is."""
        return self._peek()

    def add_browser(self, consumer: Consumer) -> None:
        """Show what is ready, and what comes from now on, to somebody who takes nothing."""
        if self._places is None:
            self._places = []
        self.browsers = [*self.browsers, consumer]
        self.had_consumers = True
        place = Browser(consumer, [0] * self.LOGS)
        self._places.append(place)
        self._show(place)

    def remove_consumer(self, consumer: Consumer) -> None:
        """Serve a consumer or a browser no longer."""
        if self._places is not None and consumer in self.browsers:
            self.browsers = [each for each in self.browsers if each is not consumer]
            self._places = [each for each in self._places if each.consumer is not consumer] or None
            if self._unused is not None:
                self._unused.used()
            return
        super().remove_consumer(consumer)

    def _show_all(self) -> int:
        """Show every browser what it has not seen."""
        if self._places is not None:
            for place in list(self._places):
                self._show(place)
        return 0

    def _show(self, place: Browser) -> int:
        """Show one browser as much as it has credit for."""
        consumer = place.consumer
        shown = 0
        while self._ready > 0 and consumer.ready():
            if shown >= _MOST:
                consumer.again()
                return 0
            position = self._look(place.cursors)
            if position < 0:
                return 0
            message = self._read(position)
            if message is not None and not consumer.fits(message):
                return 0
            self._pass(place.cursors, position)
            shown += 1
            if message is not None and not (message.due and message.due <= self._clock.steady):
                consumer.deliver(message, position, self._was_out(position))
        return 0

    def acquire(self, position: int, consumer: Consumer) -> bool:
        """Take a message that was shown; False when it is somebody else's, or gone."""
        if self.deleted or not self._acquire(position, consumer):
            return False
        message = self._read(position)
        if message is None:
            return False
        if self._overflow is not None:
            self._position = position
            self._left(self._overflow, message)
        if message.due and message.due <= self._clock.steady:
            self._bury(position, _EXPIRED)
            return False
        self.unacked += 1
        if message.due:
            self._expiring = True
        return True

    def _acquire(self, position: int, consumer: Consumer) -> bool:
        """Take a message out of what is ready, for a consumer."""
        return self._take_out(position)

    def let_go(self, position: int, again: bool) -> int:
        """A delivered message comes back to its place; the caller drains afterwards.

        Args:
            position: of the message.
            again: whether it counts as delivered before.
        """
        CompetingQueue.requeue(self, position)
        if not again and not self.deleted:
            self._untouched(position)
        return 0

    def _taken(self, message: Message) -> int:
        if self._places is not None:
            self._show_all()
        return CompetingQueue._taken(self, message)  # noqa: SLF001  # what a queue always does

    def drain(self) -> int:
        """Serve ready consumers, then show browsers what is left."""
        CompetingQueue.drain(self)
        if self._places is not None:
            self._show_all()
        return 0

    # --- what is rejected, or left --------------------------------------------------------------

    def reject(self, position: int) -> int:
        """A delivered message is refused for good: to its alternate exchange, if it has one."""
        if not self._alternate or self.deleted:
            return CompetingQueue.reject(self, position)
        self.unacked -= 1
        message = self._read(position)
        if message is not None:
            self._send_on(message)
        self._drop(position)
        return 0

    def _send_on(self, message: Message) -> int:
        """A message goes to the alternate exchange, as it is."""
        surroundings = self._surroundings
        if surroundings is None:
            return 0
        router = surroundings.router
        exchange = router.exchanges.get(self._alternate)
        for queue in () if exchange is None else router.route(exchange, message):
            if queue is not self:
                queue.take_over(message)
        return 0

    def delete(self) -> int:
        """Send on what is here to the alternate exchange, tell consumers and browsers, drop it.

        What is out goes there too: once the queue is gone, its deliveries can be given back to
        nobody.
        """
        count = self.ready_count()
        if self._alternate:
            self._send_on_all()
        browsers, self.browsers = self.browsers, ()
        self._places = None
        CompetingQueue.delete(self)
        for consumer in browsers:
            consumer.queue_deleted()
        return count
