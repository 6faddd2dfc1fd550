"""Queues whose messages go to one consumer each: what waits, what is out, and what comes back.

A kind derives from this and fills what `kept` asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.clock import Clock
from harebell.base.limits import EXPIRED_PER_TURN
from harebell.base.message import FAMILY_FILE, PERSISTENT, Message, copy_message
from harebell.base.timers import NEVER, Timer
from harebell.base.work import Work
from harebell.model.consumer import Consumer
from harebell.model.dead_letter import EXPIRED, REJECTED
from harebell.model.queue.arguments import SINGLE_ACTIVE
from harebell.model.queue.consumers import Consumers, dismiss
from harebell.model.queue.kept import NO_POSITION
from harebell.model.queue.kind import ACCEPTED, PENDING, Queue
from harebell.model.queue.kind import REJECTED as FULL
from harebell.model.queue.no_local import NoLocal
from harebell.model.queue.overflow import overflow_of
from harebell.model.queue.promised import PromisedQueue
from harebell.model.queue.retry import FAILURES, REJECTIONS_SHIFT, Retry, Rules
from harebell.model.queue.unused import Unused
from harebell.model.resource import refused, rendered

if TYPE_CHECKING:
    from harebell.model.surroundings import Surroundings

_NO_POSITION = NO_POSITION
_ACCEPTED = ACCEPTED
_PENDING = PENDING
_FULL = FULL
_PERSISTENT = PERSISTENT
_SPARED = FAMILY_FILE
_EXPIRED_PER_TURN = EXPIRED_PER_TURN
_FOR_EVER = -1
_FAILURES = FAILURES
_REJECTIONS_SHIFT = REJECTIONS_SHIFT
_NO_CLOCK = Clock()
_MS = 1000
LINGER = "qpid.auto_delete_timeout"
"""The argument of AMQP 0-10's users: seconds that an auto-delete queue stays when it is unused."""
_NO_WORK = Work()


class CompetingQueue(PromisedQueue):
    """Consumers compete for its messages.

    Args:
        name: its name.
        vhost: the name of its vhost.
        **options: as for `Queue`.
    """

    LASTING = False
    """Whether all messages of a durable queue have to reach the disk, or persistent ones only."""

    LETTERS_REFUSED = True
    """Whether `reject-publish-dlx` is known; if not, it means drop-head."""

    PREEMPTS = False
    """Whether a consumer of higher priority takes over from the single active one."""

    MANY_HEADS = False
    """Whether a message behind others may be looked at before they are gone."""

    def __init__(self, name: str, vhost: str, **options: Any) -> None:
        super().__init__(name, vhost, **options)
        self._single = self.arguments.get(SINGLE_ACTIVE) is True
        self.consumers = Consumers(self._single, self.PREEMPTS)
        self._surroundings: Surroundings | None = None
        self._lasting = self.LASTING
        self._clock = _NO_CLOCK
        self._work = _NO_WORK
        self._put_off = self._fetching = False
        self._ttl = _FOR_EVER
        self._expiring = self._mixed = False
        self._timer: Timer | None = None
        self._unused: Unused | None = None
        self._linger: Unused | None = None
        self._retry: Retry | None = None
        self._local: NoLocal | None = None
        self._restored = self._spares = False

    def _found(self, count: int) -> None:
        """Ready messages were there from the start; nobody knows yet whether they expire."""
        self._ready += count
        self._expiring = self._mixed = self._restored = self._spares = count > 0

    def join(self, surroundings: Surroundings) -> None:
        """The queue is part of a vhost now, where dead messages can go, and time passes."""
        self._surroundings = surroundings
        self._clock = surroundings.clock
        self._work = surroundings.timers.work

    @property
    def refuses(self) -> bool:
        """Whether it refuses messages when it is full."""
        return self._overflow is not None and not self._overflow.drops

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Find out where dead messages go, and how many wait and how long."""
        ttl = settings.get("message-ttl", _FOR_EVER)
        # What is here already keeps its time, so the oldest need not be the first to expire.
        self._mixed = self._mixed or ttl != self._ttl
        self._ttl = ttl
        surroundings = self._surroundings
        if surroundings is not None:
            self.dead_letters = surroundings.dead_letters_of(self, settings)
            self._take_retry(Rules(self.arguments, settings))
            if self._unused is None and "expires" in settings:
                self._unused = Unused(self, surroundings.timers, surroundings.drop_queue)
            if self._unused is not None:
                self._unused.limit(settings.get("expires", 0))
            if self._expiring:
                # Not now: where dead letters go may have to be restored yet.
                self._wake_at(self._clock.steady)
        before = self._overflow
        overflow = self._overflow = overflow_of(settings, letters=self.LETTERS_REFUSED)
        if overflow is not None:
            if overflow.counts:
                if before is not None and before.counts:
                    overflow.octets = before.octets
                    overflow.counting = before.counting
                else:
                    self.begin_count()
            self._grown()

    def abandon(self, drop: Callable[[Queue], object]) -> None:
        """Nobody uses an auto-delete queue any more: it goes, now or when its time is over."""
        seconds = self.arguments.get(LINGER)
        surroundings = self._surroundings
        if surroundings is None or type(seconds) is not int or seconds <= 0:
            drop(self)
            return
        if self._linger is None:
            self._linger = Unused(
                self, surroundings.timers, lambda queue: queue.owner is None and drop(queue)
            )
            self._linger.limit(seconds * _MS)
        self._linger.used()

    # --- messages -------------------------------------------------------------------------------

    def publish(self, message: Message) -> int:
        """Take a message; behind ready ones it waits, for then no consumer is ready."""
        if self.staging:
            return self._publish_hidden(message)
        overflow = self._overflow
        if overflow is not None and self._refuses(overflow, message):
            return _FULL
        self.published += 1
        if self._ttl >= 0:
            message = self._dated(message)
        if self._local is not None and message.origin and self._local.concerns(message.origin):
            return self._publish_local(message)
        if self._ready == 0 and self.consumers.count:
            consumer = self._pick()
            if consumer is not None:
                if consumer.no_ack:
                    consumer.deliver(message, _NO_POSITION, False)
                    return _ACCEPTED
                position = self._hand_over(message)
                self.unacked += 1
                if message.due:
                    # It may come back.
                    self._expiring = True
                consumer.deliver(message, position, False)
                return self._taken(message)
        self._keep(message)
        self._ready += 1
        if overflow is not None:
            self._spares = self._spares or message.family >= _SPARED
            overflow.octets += len(message.body)
            self._grown()
        if message.due:
            self._expects(message.due)
        return self._taken(message)

    def _publish_local(self, message: Message) -> int:
        """Take a message that a consumer does not want, because its own connection published it."""
        local = self._local
        if local is None or local.lost(message.origin):
            return _ACCEPTED
        local.note(self.next_position(message), message.origin)
        self._keep(message)
        self._ready += 1
        if self._overflow is not None:
            self._overflow.octets += len(message.body)
        if message.due:
            self._expects(message.due)
        self.drain()
        return self._taken(message)

    def _publish_hidden(self, message: Message) -> int:
        """Take a message while what comes is kept back."""
        raise NotImplementedError

    def _taken_hidden(self, message: Message) -> int:
        """The same as `_taken` for a message that is kept back: it is served to nobody yet."""
        if self.durable and (message.delivery_mode == _PERSISTENT or self._lasting):
            return _PENDING
        return _ACCEPTED

    def _taken(self, message: Message) -> int:
        """Whether a message that is in the log now has to reach the disk."""
        if self.durable and (message.delivery_mode == _PERSISTENT or self._lasting):
            return _PENDING
        return _ACCEPTED

    def ready_count(self) -> int:
        """Messages waiting for a consumer."""
        return self._ready if self._local is None else self._ready + len(self._local)

    def drain(self) -> int:
        """Serve ready consumers as long as there is a message and one of them."""
        while True:
            if self._local is not None:
                self._local.release_one()
            if self._ready <= 0:
                break
            if self._fetching or self._is_far():
                self._fetch_next()
                break
            consumer = self._pick()
            if consumer is None:
                break
            self._serve(consumer)
            self._work.spent += 1
            if self._work.spent >= self._work.look_at and self._work.look():
                self._drain_later()
                break
        if self._overflow is not None:
            self._grown()
        if self._expiring:
            self._look_ahead()
        return 0

    def _fetch_next(self) -> int:
        """Have a large message read in slices, if somebody is ready for it; `drain` goes on."""
        if not self._fetching and self.consumers.any_ready():
            self._fetching = True
            self._fetch(self._fetched)
        return 0

    def _fetched(self) -> None:
        """The large message at the head can be taken now."""
        self._fetching = False
        if not self.deleted:
            self.drain()

    def _drain_later(self) -> int:
        """Enough was delivered in this turn; the others have theirs."""
        if not self._put_off:
            self._put_off = True
            self._work.later(self._drain_again)
        return 0

    def _drain_again(self) -> bool:
        """Serve those who are ready still."""
        self._put_off = False
        if not self.deleted:
            self.drain()
        return True

    def _serve(self, consumer: Consumer) -> int:
        """Hand the next ready message to a consumer that is ready."""
        message = self._take()
        if message is None:
            return 0
        if self._overflow is not None:
            self._left(self._overflow, message)
        position = self._position
        if message.due and message.due <= self._clock.steady:
            self._bury(position, EXPIRED)
            return 0
        if self._local is not None:
            taker = self._local.taker(consumer, position)
            if taker is None:
                self._local.put_aside(position, self._again)
                return 0
            consumer = taker
            self._again = self._local.again(position, self._again)
        if consumer.no_ack:
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
        if self._local is not None:
            self._local.release_all()
        if self._expiring:
            self.expire()
        message = self._take()
        if message is None:
            return None
        position, again = self._position, self._again
        self.unacked += 1
        if self._overflow is not None:
            self._left(self._overflow, message)
        if self._local is not None:
            again = self._local.again(position, again)
        if self._expiring:
            self._look_ahead()
        return message, position, again

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
            # It was published before what the timer was set for.
            self._mixed = self._mixed or self._expiring
            if self._overflow is not None:
                self._came_back(self._overflow, position)
                self._grown()
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
                if self._overflow is not None:
                    self._left(self._overflow, message)
                self._bury(self._position, EXPIRED)
            if self._work.charge(1):
                break
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

    def _counted(self, message: Message) -> Message:
        """The message that was just taken, knowing how many of its deliveries failed."""
        count = self.failures(self._position)
        count = (count & _FAILURES) + (count >> _REJECTIONS_SHIFT)
        if message.deliveries != count:
            # Other queues may hold the same object.
            message = copy_message(message, message.exchange, message.routing_key)
            message.deliveries = count
        return message

    def come_back(self, position: int) -> int:
        """A message has waited long enough."""
        if not self.deleted:
            self._put_back(position)
            self._mixed = self._mixed or self._expiring
            if self._overflow is not None:
                self._came_back(self._overflow, position)
        return 0

    def pause(self, position: int) -> int:
        """A message waits before it is delivered again."""
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
        if self._local is not None:
            self._local.purge()
        count = self._ready
        self._drop_ready()
        self._ready = 0
        if self._retry is not None:
            waiting = self._retry.take_all()
            for position in waiting:
                self._drop(position)
            count += len(waiting)
        if self._overflow is not None:
            self._overflow.octets = 0
            self._overflow.counting = None
            self._overflow.refusing = False
        return count

    def _trimmed(self) -> int:
        """What was too much is gone, so another message may be at the head."""
        if self._expiring:
            self._look_ahead()
        return 0

    def delete(self) -> int:
        """Tell the consumers, drop everything."""
        count = self.ready_count()
        self._local = None
        self.deleted = True
        if self._timer is not None:
            self._timer.stop()
        if self._unused is not None:
            self._unused.stop()
        if self._linger is not None:
            self._linger.stop()
        if self._retry is not None:
            self._retry.clear()
        dismiss(self.consumers.take_all(), self._work)
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

    def _pick(self) -> Consumer | None:
        """The consumer whose turn it is among those that are ready."""
        return self.consumers.pick()

    def add_consumer(self, consumer: Consumer) -> None:
        """Serve a new consumer, if need be without what its own connection publishes."""
        if consumer.excluded and self._local is None:
            self._local = NoLocal(self)
        self.consumers.add(consumer)
        self.had_consumers = True
        self.drain()

    def remove_consumer(self, consumer: Consumer) -> None:
        """Serve a consumer no longer."""
        removed = self.consumers.remove(consumer)
        if self._local is not None and not any(each.excluded for each in self.consumers):
            self._local.release_all()
            if self._local.idle:
                self._local = None
        if removed and self._unused is not None and not self.consumers:
            self._unused.used()
