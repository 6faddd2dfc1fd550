"""Queues whose messages go to one consumer each: turns, credit, and what comes back.

A kind derives from this and says where a message is kept and which one is next. The methods it
fills are called once per message, so they are typed and never called from Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.clock import Clock
from harebell.base.limits import EXPIRED_PER_TURN
from harebell.base.message import PERSISTENT, Message, copy_message
from harebell.base.timers import NEVER, Timer
from harebell.model.consumer import Consumer
from harebell.model.dead_letter import EXPIRED, REJECTED, DeadLetters
from harebell.model.queue.arguments import SINGLE_ACTIVE
from harebell.model.queue.kind import ACCEPTED, PENDING, Queue
from harebell.model.queue.retry import Retry, Rules
from harebell.model.queue.unused import Unused
from harebell.model.resource import refused, rendered

if TYPE_CHECKING:
    from harebell.model.surroundings import Surroundings

NO_POSITION = -1
_NO_POSITION = NO_POSITION
_ACCEPTED = ACCEPTED
_PENDING = PENDING
_PERSISTENT = PERSISTENT
_EXPIRED_PER_TURN = EXPIRED_PER_TURN
_FOR_EVER = -1
_NO_CLOCK = Clock()


class CompetingQueue(Queue):
    """Consumers compete for its messages.

    Args:
        name: its name.
        vhost: the name of its vhost.
        **options: as for `Queue`.

    Attributes:
        dead_letters: where refused messages go; None when nobody wants them.
    """

    LASTING = False
    """Whether all messages of a durable queue have to reach the disk, or persistent ones only."""

    MANY_HEADS = False
    """Whether a message behind others may be looked at before they are gone."""

    PREEMPTS = False
    """Whether a consumer of higher priority takes over from the single active one."""

    def __init__(self, name: str, vhost: str, **options: Any) -> None:
        super().__init__(name, vhost, **options)
        self.dead_letters: DeadLetters | None = None
        self._surroundings: Surroundings | None = None
        self._ready = 0
        self._turn = 0
        self._ranked = False
        self._lasting = self.LASTING
        self._single = self.arguments.get(SINGLE_ACTIVE) is True
        self._preempts = self.PREEMPTS
        self._active: Consumer | None = None
        self._position = NO_POSITION
        self._again = False
        self._clock = _NO_CLOCK
        self._ttl = _FOR_EVER
        self._expiring = False
        self._mixed = False
        self._timer: Timer | None = None
        self._unused: Unused | None = None
        self._retry: Retry | None = None
        self._restored = False

    def _found(self, count: int) -> None:
        """Ready messages were there from the start; nobody knows yet whether they expire."""
        self._ready += count
        self._expiring = self._mixed = self._restored = count > 0

    def join(self, surroundings: Surroundings) -> None:
        """The queue is part of a vhost now, where dead messages can go, and time passes."""
        self._surroundings = surroundings
        self._clock = surroundings.clock

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Find out where dead messages go, and how long messages and the queue last."""
        ttl = settings.get("message-ttl", _FOR_EVER)
        # What is here already keeps its time, so the oldest need not be the first to expire.
        self._mixed = self._mixed or ttl != self._ttl
        self._ttl = ttl
        surroundings = self._surroundings
        if surroundings is None:
            return
        self.dead_letters = surroundings.dead_letters_of(self, settings)
        self._take_retry(Rules(self.arguments, settings))
        if self._unused is None and "expires" in settings:
            self._unused = Unused(self, surroundings.timers, surroundings.drop_queue)
        if self._unused is not None:
            self._unused.limit(settings.get("expires", 0))
        if self._expiring:
            # Not now: where dead letters go may have to be restored yet.
            self._wake_at(self._clock.steady)

    # --- what a kind fills ----------------------------------------------------------------------

    def _keep(self, message: Message) -> int:
        """Put a message behind those that are ready."""
        raise NotImplementedError

    def _hand_over(self, message: Message) -> int:
        """Keep a message that goes out at once, as none is ready; returns its position."""
        raise NotImplementedError

    def _take(self) -> Message | None:
        """The next ready message, counted in `_ready` no longer.

        Sets `_position`, and `_again` when it may have been delivered before.
        """
        raise NotImplementedError

    def _peek(self) -> Message | None:
        """The next ready message, which stays ready."""
        raise NotImplementedError

    def _read(self, position: int) -> Message | None:
        """A message that was delivered."""
        raise NotImplementedError

    def _drop(self, position: int) -> int:
        """A message is done with."""
        raise NotImplementedError

    def _put_back(self, position: int) -> int:
        """A delivered message is ready again, and counted in `_ready`."""
        raise NotImplementedError

    def failures(self, position: int) -> int:
        """How many deliveries of a message failed."""
        raise NotImplementedError

    def set_failures(self, position: int, count: int) -> int:
        """Remember how many deliveries of a message failed."""
        raise NotImplementedError

    def failed_ones(self) -> list[int]:
        """The positions of messages with failed deliveries."""
        raise NotImplementedError

    def hold(self, position: int) -> bool:
        """Leave a message out that was there before a restart; False for others."""
        raise NotImplementedError

    def _drop_ready(self) -> int:
        """Every ready message is done with; `_ready` is set by the caller."""
        raise NotImplementedError

    def _drop_all(self) -> int:
        """The queue is gone, and its logs with it."""
        raise NotImplementedError

    # --- messages -------------------------------------------------------------------------------

    def publish(self, message: Message) -> int:
        """Take a message; behind ready ones it waits, for then no consumer is ready."""
        self.published += 1
        if self._ttl >= 0:
            message = self._dated(message)
        if self._ready == 0 and self.consumers:
            consumer = self._pick()
            if consumer is not None:
                if consumer.no_ack:
                    consumer.deliver(message, _NO_POSITION, False)
                    return _ACCEPTED
                position = self._hand_over(message)
                self.unacked += 1
                consumer.deliver(message, position, False)
                return self._taken(message)
        self._keep(message)
        self._ready += 1
        if message.due:
            self._expects(message.due)
        return self._taken(message)

    def _taken(self, message: Message) -> int:
        """Whether a message that is in the log now has to reach the disk."""
        if self.durable and (message.delivery_mode == _PERSISTENT or self._lasting):
            return _PENDING
        return _ACCEPTED

    def ready_count(self) -> int:
        """Messages waiting for a consumer."""
        return self._ready

    def drain(self) -> int:
        """Serve ready consumers as long as there is a message and one of them."""
        while self._ready > 0:
            consumer = self._pick()
            if consumer is None:
                break
            self._serve(consumer)
        if self._expiring:
            self._look_ahead()
        return 0

    def _serve(self, consumer: Consumer) -> int:
        """Hand the next ready message to a consumer that is ready."""
        message = self._take()
        if message is None:
            return 0
        position = self._position
        if message.due and message.due <= self._clock.steady:
            self._bury(position, EXPIRED)
        elif consumer.no_ack:
            consumer.deliver(message, _NO_POSITION, self._again)
            self._drop(position)
        else:
            self.unacked += 1
            consumer.deliver(message, position, self._again)
        return 0

    def get(self) -> tuple[Message, int, bool] | None:
        """Take the next message, to be settled or requeued later."""
        if self._unused is not None:
            self._unused.used()
        if self._expiring:
            self.expire()
        message = self._take()
        if self._expiring:
            self._look_ahead()
        if message is None:
            return None
        self.unacked += 1
        return message, self._position, self._again

    def settle(self, position: int) -> int:
        """A delivered message is done with."""
        if not self.deleted:
            self.unacked -= 1
            self._drop(position)
        return 0

    def requeue(self, position: int) -> int:
        """A delivered message comes back to its place; the caller drains afterwards."""
        if not self.deleted:
            self.unacked -= 1
            self._put_back(position)
        return 0

    def reject(self, position: int) -> int:
        """A delivered message is refused for good: it is dead-lettered where that is wanted."""
        if not self.deleted:
            self.unacked -= 1
            if self._retry is None or not self._retry.rejected(position):
                self._bury(position, REJECTED)
        return 0

    def time_out(self, position: int) -> int:
        """Not acknowledged in time: as if it were rejected, where what is rejected comes back."""
        if self._retry is not None and self._retry.rules.delays:
            return self.reject(position)
        return self.requeue(position)

    def _bury(self, position: int, reason: str) -> int:
        """A message leaves for a reason that dead-lettering knows."""
        if self.dead_letters is not None:
            message = self._read(position)
            if message is not None:
                self.dead_letters.send(message, reason)
        self._drop(position)
        return 0

    # --- time -----------------------------------------------------------------------------------

    def _dated(self, message: Message) -> Message:
        """A copy that expires when the queue's messages do, or earlier by its own property."""
        due = self._clock.steady + self._ttl
        if message.due:
            self._mixed = True
            due = min(due, message.due)
        # Other queues, with other times, may get the same object.
        message = copy_message(message, message.exchange, message.routing_key)
        message.due = due
        return message

    def _expects(self, due: int) -> int:
        """A message that expires was kept; only at the head that matters."""
        self._expiring = True
        self._mixed = self._mixed or self._ttl < 0
        if self._ready == 1 or self.MANY_HEADS:
            if due <= self._clock.steady:
                self.expire()
            else:
                self._wake_at(due)
        return 0

    def _wake_at(self, due: int) -> int:
        """Look at the head then, or earlier."""
        if self._timer is None and self._surroundings is not None:
            self._timer = self._surroundings.timers.timer(self.expire)
        if self._timer is not None:
            self._timer.set_earlier(due)
        return 0

    def expire(self) -> None:
        """Let go what has expired at the head, and look again when the next head does."""
        if self.deleted:
            return
        due = self._expire_heads(self._clock.steady)
        if due:
            self._wake_at(due)

    def _expire_heads(self, now: int) -> int:
        """Let expired messages go from the head; returns when the next one is due, 0 for never."""
        for _ in range(_EXPIRED_PER_TURN):
            message = self._peek()
            if message is None:
                return 0
            if message.due == 0 or message.due > now:
                return message.due
            message = self._take()
            if message is not None:
                self._bury(self._position, EXPIRED)
        return now

    def _look_ahead(self) -> int:
        """Another message may be at the head now."""
        if self._ready == 0:
            self._expiring = self.unacked > 0
        elif self._mixed or self._timer is None or self._timer.due == NEVER:
            # Where all messages last equally long, whoever is first now expires later than
            # whoever the timer was set for.
            self.expire()
        return 0

    def _take_retry(self, rules: Rules) -> None:
        """Take how long a message waits that comes back."""
        surroundings = self._surroundings
        if self._retry is None and rules and surroundings is not None:
            self._retry = Retry(self, surroundings.timers)
        if self._retry is not None:
            self._retry.rules = rules
            if self._restored:
                self._retry.restore()
        self._restored = False

    def come_back(self, position: int) -> int:
        """A message has waited long enough."""
        if not self.deleted:
            self._put_back(position)
        return 0

    def delayed_count(self) -> int:
        """Messages that wait before they are delivered again."""
        return len(self._retry) if self._retry is not None else 0

    def retry_now(self) -> int:
        """Deliver again at once what waits for that; returns how many messages."""
        return self._retry.release_all() if self._retry is not None else 0

    def declared(self) -> None:
        """To declare a queue again is to use it."""
        if self._unused is not None:
            self._unused.used()

    def purge(self) -> int:
        """Drop every message that is not out; returns how many."""
        count = self._ready
        self._drop_ready()
        self._ready = 0
        if self._retry is not None:
            waiting = self._retry.take_all()
            for position in waiting:
                self._drop(position)
            count += len(waiting)
        return count

    def delete(self) -> int:
        """Tell the consumers, drop everything."""
        count = self._ready
        self.deleted = True
        if self._timer is not None:
            self._timer.stop()
        if self._unused is not None:
            self._unused.stop()
        if self._retry is not None:
            self._retry.clear()
        consumers, self.consumers = self.consumers, []
        self._active = None
        for consumer in consumers:
            consumer.queue_deleted()
        self._drop_all()
        self._ready = 0
        self.unacked = 0
        self.itself = ()
        return count

    # --- consumers ------------------------------------------------------------------------------

    def check_consumer(
        self,
        tag: str,
        arguments: Mapping[str, Any],
        *,
        no_ack: bool,
        exclusive: bool,
        prefetch: int,
    ) -> bool:
        """Refuse an exclusive consumer where there may be others that wait for their turn."""
        if exclusive and self._single:
            raise refused(f"{rendered('queue', self.name, self.vhost)} in exclusive use")
        return exclusive

    def add_consumer(self, consumer: Consumer) -> None:
        """Serve a new consumer after those of the same priority, and before lower ones."""
        self._rewind()
        at = len(self.consumers)
        while at and self.consumers[at - 1].priority < consumer.priority:
            at -= 1
        self.consumers.insert(at, consumer)
        self.had_consumers = True
        self._consumers_changed()
        self.drain()

    def remove_consumer(self, consumer: Consumer) -> None:
        """Serve a consumer no longer."""
        if consumer in self.consumers:
            self._rewind()
            self.consumers.remove(consumer)
            if consumer is self._active:
                self._active = None
            self._consumers_changed()
            if self._unused is not None and not self.consumers:
                self._unused.used()

    def _consumers_changed(self) -> None:
        """Find out whether it matters who is who, and who is the one if there is only one."""
        consumers = self.consumers
        self._ranked = self._single or bool(
            consumers and consumers[0].priority != consumers[-1].priority
        )
        if self._single and self._active is None and consumers:
            self._active = consumers[0]

    def _rewind(self) -> None:
        """Put first whose turn it is, so that coming and going does not change whose it is."""
        turn, self._turn = self._turn, 0
        if turn and not self._ranked:
            self.consumers[:] = self.consumers[turn:] + self.consumers[:turn]

    def _pick(self) -> Consumer | None:
        """The consumer whose turn it is among those that are ready."""
        if self._ranked:
            return self._pick_ranked()
        count = len(self.consumers)
        turn = self._turn
        for _ in range(count):
            if turn >= count:
                turn = 0
            consumer = self.consumers[turn]
            turn += 1
            if consumer.ready():
                self._turn = turn
                return consumer
        return None

    def _pick_active(self) -> Consumer | None:
        """The single active consumer if it is ready.

        Where it can be replaced by one of higher priority it gets nothing more until it has
        settled what it has; then the other one is active.
        """
        active = self._active
        if active is None:
            return None
        if self._preempts:
            first = self.consumers[0]
            if first.priority > active.priority:
                if active.unacked:
                    return None
                active = self._active = first
        return active if active.ready() else None

    def _pick_ranked(self) -> Consumer | None:
        """The first ready consumer in order of priority; it goes behind its equals."""
        if self._single:
            return self._pick_active()
        for at, consumer in enumerate(self.consumers):
            if consumer.ready():
                last = at
                while (
                    last + 1 < len(self.consumers)
                    and self.consumers[last + 1].priority == consumer.priority
                ):
                    last += 1
                self.consumers.insert(last + 1, consumer)
                del self.consumers[at]
                return consumer
        return None
