"""Delayed message exchange, `x-delayed-message`: delay messages before they are routed.

    publish --- x-delay: 5000 ---> log ... 5 s ... routing of the x-delayed-type ---> queues
                no x-delay ------------------------->

The argument `x-delayed-type` is the type that routes; the header `x-delay` is the delay of a
message in milliseconds. When it is routed, the header is negated, so that no other exchange delays
it again (as in the community plugin of RabbitMQ).

Delayed messages are in a log, like those of a queue, with the time when they are due. A message is
settled there when its queues have it on disk, so after a crash it may be routed twice. Its
publisher has its confirm already, so a message that a full queue refuses stays, and is tried again:
after a second, then after as long as it is late already, at most a minute. Others do not wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from harebell.base.bcc import BCC, further_keys, hidden, revealed
from harebell.base.expiration import lifetime_ms
from harebell.base.message import Message, copy_message
from harebell.base.ports import Log
from harebell.base.schedule import Schedule
from harebell.base.slices import Slices
from harebell.base.timers import NEVER, Timer
from harebell.model.binding import Binding
from harebell.model.exchange import DELAYED, DELAYED_TYPE, KINDS
from harebell.model.exchange.kind import Exchange, Rehearsal
from harebell.model.feedback import drop_history_feedback
from harebell.model.limits import (
    DELAY_MAX_MS,
    DELAYED_AGAIN_MAX_MS,
    DELAYED_AGAIN_MIN_MS,
    LETTER_UNITS,
    RELEASED_PER_TURN,
)
from harebell.model.queue.browse_cursor import WaitingCursor
from harebell.model.queue.contract import ACCEPTED, PENDING, REJECTED, Queue, unrouted
from harebell.model.resource import precondition

if TYPE_CHECKING:
    from harebell.model.queue_context import QueueContext

DELAY = "x-delay"
_INNER_LOG = "-1"
HELD_PREFIX = "amq.delayed-"
"""Prefix of the name of the delay queue; the exchange name follows."""


def delay_of(headers: Mapping[str, Any]) -> int:
    """Return the delay of a message in milliseconds; 0 if it has none or an invalid one."""
    value = headers.get(DELAY)
    if isinstance(value, str):
        digits = value[1:] if value[:1] in "+-" else value
        value = int(value) if digits.isascii() and digits.isdecimal() and len(digits) < 20 else 0
    elif isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float):
        value = int(value) if abs(value) <= DELAY_MAX_MS else 0
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if 0 < value <= DELAY_MAX_MS else 0


class DelayedExchange(Exchange):
    """A delaying exchange around an exchange of the type that routes.

    Attributes:
        held: the delayed messages; None until the exchange is part of a vhost.
    """

    KIND = DELAYED
    KEEPS = True

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self.by_key = False
        self.held: Held | None = None
        self._inner = KINDS[self.arguments[DELAYED_TYPE]](name, **options)
        # One dictionary: this exchange binds and unbinds, and some types read it when they update
        # their index.
        self._inner.bindings = self.bindings

    @classmethod
    def check_arguments(cls, resource: str, arguments: Mapping[str, Any]) -> None:
        """Refuse an unknown `x-delayed-type`."""
        kind = arguments.get(DELAYED_TYPE)
        if not isinstance(kind, str):
            raise precondition(
                f"Invalid argument, '{DELAYED_TYPE}' must be an existing exchange type"
            )
        if kind == cls.KIND:
            raise precondition(f"Invalid argument, '{cls.KIND}' can't be used for '{DELAYED_TYPE}'")
        if kind not in KINDS:
            raise precondition(f"unknown exchange type '{kind}'")
        KINDS[kind].check_arguments(resource, arguments)

    @property
    def needs_headers(self) -> bool:
        """True: the delay is a header."""
        return True

    @property
    def each_key(self) -> bool:
        """Whether the type that routes matches by each key."""
        return self._inner.each_key

    @property
    def chooses(self) -> bool:
        """Whether the type that routes does."""
        return self._inner.chooses

    @property
    def delayed(self) -> int:
        """Return how many messages are delayed."""
        return self.held.ready_count() if self.held is not None else 0

    def enter(self, context: QueueContext) -> None:
        """Open the log, and delay its messages again after a restart."""
        self._inner.identity = self.identity + _INNER_LOG
        self._inner.enter(context)
        self.held = Held(self, context)

    def leave(self) -> None:
        """Delete the delayed messages: the exchange was deleted."""
        if self.held is not None:
            self.held.delete()
        self._inner.leave()

    def greet(self, binding: Binding) -> None:
        """Pass a new binding to the type that routes."""
        self._inner.greet(binding)

    def check(self, binding: Binding) -> None:
        """Refuse a binding that the type that routes refuses."""
        self._inner.check(binding)

    def added(self, binding: Binding) -> None:
        """Pass the binding to the type that routes."""
        self._inner.added(binding)

    def removed(self, binding: Binding) -> None:
        """Pass the removal to the type that routes."""
        self._inner.removed(binding)

    def match(self, message: Message, headers: Mapping[str, Any]) -> Iterable[Exchange | Queue]:
        """Return the delay queue, or the destinations of the type that routes."""
        if self.held is not None:
            delay = delay_of(headers)
            if delay:
                self.held.expect(message.raw, delay)
                return self.held.itself
        return self._inner.match(message, headers)

    def rehearse(self, message: Message, headers: Mapping[str, Any]) -> Rehearsal:
        """Return the destinations of the type that routes, when the delay is over."""
        rehearsal = self._inner.rehearse(message, headers)
        delay = delay_of(headers)
        if not delay:
            return rehearsal
        return rehearsal._replace(
            note=f"It is delayed for {delay} ms first. {rehearsal.note}".rstrip()
        )


class Held(Queue):
    """The delayed messages of one exchange.

    It takes messages like a queue, so that confirms wait until they are on disk. It is not listed
    and has no consumers.

    Args:
        exchange: an exchange of the type x-delayed-message.
        context: the queue context of the vhost.
    """

    KIND = "delayed"

    def __init__(self, exchange: Exchange, context: QueueContext) -> None:
        super().__init__(HELD_PREFIX + exchange.name, "", durable=exchange.durable)
        self.identity = exchange.identity
        store = context.store
        assert store is not None, "exchanges that keep messages have a store"
        self._exchange = exchange
        self._editor = context.editor
        self._router = context.router
        self._clock = context.clock
        self._awaiting = context.awaiting
        self._commit = store.commit
        self._log: Log = store.open_log(exchange.identity, durable=exchange.durable, keep_all=True)
        self._schedule = Schedule()
        self._leaving: deque[tuple[int, int]] = deque()
        self._expected: tuple[bytes, int] = (b"", 0)
        self._timer: Timer = context.timers.timer(self.release)
        self._failures = context.timers.failures
        # The names of the queues that have taken a message which others have refused.
        self._taken: dict[int, set[str]] = {}
        # Rows of an open batch: due time and position.
        self._staged: list[tuple[int, int]] = []
        self._restore()

    def _restore(self) -> None:
        """Delay the messages of the log; their delay continued while the broker was down."""
        log = self._log
        position = log.first()
        while position < log.end():
            message = log.read(position)
            if message is not None:
                # If the clock was set back, no message waits longer than its delay.
                waited = message.due - message.timestamp
                due = min(message.due, self._clock.steady + max(waited, 0))
                self._schedule.add(due, position)
            position = log.next(position + 1)
        self._timer.set_earlier(self._schedule.due)

    def expect(self, raw: bytes, delay: int) -> None:
        """Note the properties of a message routed here, whose delay is known already."""
        self._expected = raw, delay

    def publish(self, message: Message) -> int:
        """Delay a message."""
        due, position = self._append(message)
        self._schedule.add(due, position)
        self._timer.set_earlier(due)
        return PENDING if self.durable else ACCEPTED

    def _append(self, message: Message) -> tuple[int, int]:
        """Append a message; return its due time and position."""
        message = revealed(message)
        # Other queues, where it has another time to live, may get the same object.
        message = copy_message(message, message.exchange, message.routing_key)
        raw, delay = self._expected
        if message.raw is not raw:
            # Another message came in between: this one waited for its transaction.
            delay = delay_of(self._editor.headers_of(message))
        due = self._clock.steady + delay
        message.due = due
        return due, self._log.append(message)

    def begin_batch(self) -> int:
        """Start a batch: its rows wait for its end, other messages do not."""
        self.staging = True
        return 0

    def stage(self, message: Message) -> int:
        """Append a row of the batch."""
        self._staged.append(self._append(message))
        return PENDING if self.durable else ACCEPTED

    def commit_batch(self) -> int:
        """Commit the batch: its rows are routed when they are due."""
        self.staging = False
        staged, self._staged = self._staged, []
        for due, position in staged:
            self._schedule.add(due, position)
        self._timer.set_earlier(self._schedule.due)
        return 0

    def roll_back_batch(self) -> int:
        """Roll back the batch: settle its rows."""
        for _, position in self._staged:
            self._log.settle(position)
        self._staged = []
        return self.commit_batch()

    def ready_count(self) -> int:
        """Return how many messages are delayed."""
        return len(self._schedule)

    def release(self) -> None:
        """Route the messages that are due."""
        now = self._clock.steady
        for _ in range(RELEASED_PER_TURN):
            position = self._schedule.pop(now)
            if position < 0:
                break
            # Its publisher has a confirm: a message that cannot be routed now is not dropped.
            if not self._failures.guard(self._pass_on, position):
                self._again(position, now, now)
            if self._router.work.charge(LETTER_UNITS):
                break
        if not self.deleted:
            self._timer.set_earlier(self._schedule.due)

    def soonest(self, count: int) -> Slices[WaitingCursor]:
        """Return a cursor over the messages that are due first."""
        waiting = yield from self._schedule.soonest(count)
        return WaitingCursor(waiting, lambda position: (self._log, position), lambda _: 0)

    def key_of(self, position: int) -> Slices[str | None]:
        """Return the routing key of a message; None if it is not delayed here."""
        due = yield from self._schedule.find(position)
        message = None if due == NEVER else self._log.read(position)
        return None if message is None else message.routing_key

    def release_one(self, position: int) -> Slices[bool]:
        """Route a message now; False if it is not delayed here."""
        if not (yield from self._taken_out(position)):
            return False
        now = self._clock.steady
        if not self._failures.guard(self._pass_on, position):
            self._again(position, now, now)
        self._timer.set_earlier(self._schedule.due)
        return True

    def cancel_one(self, position: int) -> Slices[bool]:
        """Drop a message; False if it is not delayed here."""
        if not (yield from self._taken_out(position)):
            return False
        self._taken.pop(position, None)
        self._log.settle(position)
        return True

    def _taken_out(self, position: int) -> Slices[bool]:
        due = yield from self._schedule.find(position)
        return self._schedule.remove(due, position)

    def _again(self, position: int, due: int, now: int) -> None:
        """Try a message again that is due since then: later, the later it is already."""
        late = max(now - due, DELAYED_AGAIN_MIN_MS)
        self._schedule.add(now + min(late, DELAYED_AGAIN_MAX_MS), position)

    def _pass_on(self, position: int) -> None:
        """Route a message, and settle it here when its queues have stored it."""
        message = self._log.read(position)
        if message is not None:
            self._send(message, position)

    def _send(self, message: Message, position: int) -> None:
        headers = self._editor.headers_of(message)
        changes: dict[str, Any] = {DELAY: -delay_of(headers)}
        letter = self._editor.with_headers(message, changes)
        if BCC in headers:
            letter = hidden(letter)
        lifetime = lifetime_ms(self._editor.expiration_of(message))
        # Its time to live begins when its delay is over.
        if lifetime is not None:
            letter.due = self._clock.steady + lifetime
        queues = self._router.route_keys(self._exchange, letter, further_keys(headers))
        if not queues:
            unrouted(letter)
        taken = self._taken.pop(position, set())
        if taken:
            drop_history_feedback(letter)
        # A copy of an earlier try has to be on disk too.
        outcome = PENDING if taken else ACCEPTED
        for queue in queues:
            if queue.name in taken:
                continue
            said = queue.take_over(letter)
            # What a queue refuses and dead-letters is not lost: no other try.
            if said & REJECTED and not queue.letters_refused:
                outcome |= REJECTED
            else:
                outcome |= said & PENDING
                taken.add(queue.name)
        if outcome & REJECTED and not self.deleted:
            self._taken[position] = taken
            self._again(position, message.due, self._clock.steady)
        elif self.durable and outcome & PENDING and not self.deleted:
            self._commit.urgent = True
            self._leaving.append((self._commit.ticket, position))
            if self not in self._awaiting:
                self._awaiting.append(self)
        else:
            self._log.settle(position)

    def committed(self) -> None:
        """Settle messages that their queues have stored."""
        while self._leaving and self._leaving[0][0] <= self._commit.done:
            self._log.settle(self._leaving.popleft()[1])
        if self._leaving and self not in self._awaiting:
            self._awaiting.append(self)

    def purge(self) -> int:
        """Remove all delayed messages."""
        for position in self._schedule:
            self._log.settle(position)
        count = len(self._schedule)
        self._schedule.clear()
        self._taken.clear()
        self._timer.stop()
        return count

    def delete(self) -> int:
        """Delete the log."""
        count = len(self._schedule)
        self.deleted = True
        self._timer.stop()
        self._schedule.clear()
        self._staged = []
        self._taken.clear()
        self._leaving.clear()
        self._log.delete()
        return count
