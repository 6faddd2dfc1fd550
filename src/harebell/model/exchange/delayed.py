"""Delayed message exchange, `x-delayed-message`: messages wait here before they are routed.

    publish --- x-delay: 5000 ---> log ... 5 s ... routing of the x-delayed-type ---> queues
                no x-delay ------------------------->

The argument `x-delayed-type` names the type that routes; the header `x-delay` says how many
milliseconds a message waits. When it goes on, the header has the same number below zero, so that
no exchange delays it again (the community's plugin for RabbitMQ, with which this agrees).

What waits stands in a log, like a queue's messages, with the time when it is due. It leaves the log
when the queues that got it have it on disk, so a crash may bring it twice and never lose it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from harebell.base.limits import DELAY_MAX_MS, LETTER_UNITS, RELEASED_PER_TURN
from harebell.base.message import Message, copy_message
from harebell.base.ports import Log
from harebell.base.schedule import Schedule
from harebell.base.timers import Timer
from harebell.model.bcc import BLIND, hidden, revealed
from harebell.model.binding import Binding
from harebell.model.exchange.kind import Exchange
from harebell.model.queue.contract import ACCEPTED, PENDING, Queue
from harebell.model.resource import precondition

if TYPE_CHECKING:
    from harebell.model.queue_context import QueueContext

TYPE = "x-delayed-type"
DELAY = "x-delay"
_INNER_LOG = "-1"
HELD_PREFIX = "amq.delayed-"
"""What stands before an exchange's name in the name of where its messages wait."""


def delay_of(headers: Mapping[str, Any]) -> int:
    """How long a message wants to wait, in milliseconds; 0 where it does not, or cannot."""
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


def _texts(keys: Any) -> list[str]:
    """The routing keys in a header; what is no text among them is passed over."""
    return [key for key in keys if isinstance(key, str)] if isinstance(keys, list) else []


class DelayedExchange(Exchange):
    """What delays, around an exchange of the type that routes.

    Attributes:
        held: where messages wait; None until the exchange is part of a vhost.
    """

    KIND = "x-delayed-message"
    KEEPS = True
    TYPES: ClassVar[Mapping[str, type[Exchange]]] = {}
    """Every type of exchange; the package fills it."""

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self.by_key = False
        self.held: Held | None = None
        self._inner = self.TYPES[self.arguments[TYPE]](name, **options)
        self._inner.bindings = self.bindings

    @classmethod
    def check_arguments(cls, thing: str, arguments: Mapping[str, Any]) -> None:
        """Refuse to delay for a type that there is not."""
        kind = arguments.get(TYPE)
        if not isinstance(kind, str):
            raise precondition(f"Invalid argument, '{TYPE}' must be an existing exchange type")
        if kind == cls.KIND:
            raise precondition(f"Invalid argument, '{cls.KIND}' can't be used for '{TYPE}'")
        if kind not in cls.TYPES:
            raise precondition(f"unknown exchange type '{kind}'")
        cls.TYPES[kind].check_arguments(thing, arguments)

    @property
    def needs_headers(self) -> bool:
        """The delay stands there."""
        return True

    @property
    def each_key(self) -> bool:
        """As the type that routes has it."""
        return self._inner.each_key

    @property
    def delayed(self) -> int:
        """How many messages wait here."""
        return self.held.ready_count() if self.held is not None else 0

    def enter(self, context: QueueContext) -> None:
        """Open the log, and wait again for what was in it before a restart."""
        self._inner.identity = self.identity + _INNER_LOG
        self._inner.enter(context)
        self.held = Held(self, context)

    def leave(self) -> None:
        """The exchange is gone, and what waited in it."""
        if self.held is not None:
            self.held.delete()
        self._inner.leave()

    def greet(self, binding: Binding) -> None:
        """A new binding is the business of the type that routes."""
        self._inner.greet(binding)

    def check(self, binding: Binding) -> None:
        """Refuse what the type that routes refuses."""
        self._inner.check(binding)

    def added(self, binding: Binding) -> None:
        """Tell the type that routes."""
        self._inner.added(binding)

    def removed(self, binding: Binding) -> None:
        """Tell the type that routes."""
        self._inner.removed(binding)

    def match(self, message: Message, headers: Mapping[str, Any]) -> Iterable[Exchange | Queue]:
        """The place to wait, or where the type that routes sends it."""
        if self.held is not None:
            delay = delay_of(headers)
            if delay:
                self.held.expect(message.raw, delay)
                return self.held.itself
        return self._inner.match(message, headers)


class Held(Queue):
    """Where the messages of one delaying exchange wait.

    It takes messages as a queue does, so that a confirm waits until they are on disk. Nobody can
    list it or consume from it.

    Args:
        exchange: whose messages these are.
        context: of the vhost.
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
        # Rows of a batch: when they are due, and where they stand.
        self._staged: list[tuple[int, int]] = []
        self._restore()

    def _restore(self) -> None:
        """Wait again for what is in the log; its time went on while nobody was there."""
        log = self._log
        position = log.first()
        while position < log.end():
            message = log.read(position)
            if message is not None:
                # Where the clock was set back, nothing waits longer than it was to wait at first.
                waited = message.due - message.timestamp
                due = min(message.due, self._clock.steady + max(waited, 0))
                self._schedule.add(due, position)
            position = log.next(position + 1)
        self._timer.set_earlier(self._schedule.due)

    def expect(self, raw: bytes, delay: int) -> None:
        """A message with these properties was routed here; nobody need look for its delay again."""
        self._expected = raw, delay

    def publish(self, message: Message) -> int:
        """Let a message wait."""
        due, position = self._append(message)
        self._schedule.add(due, position)
        self._timer.set_earlier(due)
        return PENDING if self.durable else ACCEPTED

    def _append(self, message: Message) -> tuple[int, int]:
        """Keep a message; when it is due, and where it stands."""
        message = revealed(message)
        raw, delay = self._expected
        if message.raw is not raw:
            # Another one came between: this one waited for its transaction.
            delay = delay_of(self._editor.headers_of(message))
        due = self._clock.steady + delay
        message.due = due
        return due, self._log.append(message)

    def begin_batch(self) -> int:
        """The rows of a batch wait for its end, too; other messages do not."""
        self.staging = True
        return 0

    def stage(self, message: Message) -> int:
        """Take a row of a batch."""
        self._staged.append(self._append(message))
        return PENDING if self.durable else ACCEPTED

    def commit_batch(self) -> int:
        """The batch is committed: its rows go on when they are due."""
        self.staging = False
        staged, self._staged = self._staged, []
        for due, position in staged:
            self._schedule.add(due, position)
        self._timer.set_earlier(self._schedule.due)
        return 0

    def roll_back_batch(self) -> int:
        """The batch is refused."""
        for _, position in self._staged:
            self._log.settle(position)
        self._staged = []
        return self.commit_batch()

    def ready_count(self) -> int:
        """Messages that wait."""
        return len(self._schedule)

    def release(self) -> None:
        """Send on what is due."""
        now = self._clock.steady
        for _ in range(RELEASED_PER_TURN):
            position = self._schedule.pop(now)
            if position < 0:
                break
            message = self._log.read(position)
            if message is not None:
                self._send(message, position)
            if self._router.work.charge(LETTER_UNITS):
                break
        if not self.deleted:
            self._timer.set_earlier(self._schedule.due)

    def _send(self, message: Message, position: int) -> None:
        """Route a message, and let it go from here when it is safe elsewhere."""
        headers = self._editor.headers_of(message)
        changes: dict[str, Any] = {DELAY: -delay_of(headers)}
        letter = self._editor.with_headers(message, changes)
        if BLIND in headers:
            letter = hidden(letter)
        expiration = self._editor.expiration_of(message)
        if expiration is not None:
            letter.due = self._clock.steady + int(expiration)
        keys = [*_texts(headers.get("CC")), *_texts(headers.get(BLIND))]
        if keys:
            others = [copy_message(letter, letter.exchange, key) for key in keys]
            found = self._router.route_all(self._exchange, (letter, *others))
        else:
            found = self._router.route(self._exchange, letter)
        outcome = ACCEPTED
        for queue in found:
            outcome |= queue.take_over(letter)
        if self.durable and outcome & PENDING and not self.deleted:
            self._commit.urgent = True
            self._leaving.append((self._commit.ticket, position))
            if self not in self._awaiting:
                self._awaiting.append(self)
        else:
            self._log.settle(position)

    def committed(self) -> None:
        """What the queues have on disk need not be here any more."""
        while self._leaving and self._leaving[0][0] <= self._commit.done:
            self._log.settle(self._leaving.popleft()[1])
        if self._leaving and self not in self._awaiting:
            self._awaiting.append(self)

    def purge(self) -> int:
        """Drop everything that waits."""
        for position in self._schedule:
            self._log.settle(position)
        count = len(self._schedule)
        self._schedule.clear()
        self._timer.stop()
        return count

    def delete(self) -> int:
        """The exchange is gone."""
        count = len(self._schedule)
        self.deleted = True
        self._timer.stop()
        self._schedule.clear()
        self._staged = []
        self._leaving.clear()
        self._log.delete()
        return count
