"""Deduplication exchange, `x-message-deduplication`: a fanout that drops duplicates.

Messages with equal headers `x-deduplication-header` are duplicates; messages without it are always
routed. The argument `x-cache-size` is the number of values kept, `x-cache-ttl` their time to live
in milliseconds, which the header `x-cache-ttl` of a message overrides. With `x-cache-persistence:
disk` the values of a durable exchange survive a restart (a community plugin of RabbitMQ).

A duplicate matches no binding, so it is confirmed like any unroutable message, and is routed to the
alternate exchange if there is one.

A value is known when the queues have taken a message with it, and not before: a publisher repeats a
message that a queue refused, or whose transaction was rolled back, and the repeat is no duplicate.
So `match` only adds a `DeduplicationFeedback` to the message, which gets what the queues answer. A
message that waits for its commit is routed again there, if another one with its value was first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.clock import Clock
from harebell.base.message import Message
from harebell.base.ports import Commit
from harebell.model.dedup_cache import HEADER, DedupCache, digest
from harebell.model.exchange.fanout import FanoutExchange
from harebell.model.exchange.kind import Exchange, Rehearsal
from harebell.model.feedback import DeduplicationFeedback, add_feedback, number_of
from harebell.model.queue.contract import ACCEPTED, PENDING
from harebell.model.resource import precondition

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue
    from harebell.model.queue_context import QueueContext

SIZE = "x-cache-size"
TTL = "x-cache-ttl"
PERSISTENCE = "x-cache-persistence"
_DISK, _MEMORY = "disk", "memory"
_MAX = 2**62
_GATHERING = 1_024
_DIGITS = re.compile(r"[0-9]{1,18}", re.ASCII)


def _count(value: Any) -> int:
    """Return a number above 0, also if written as text; 0 for anything else."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < _MAX:
        return 0
    return value


class DeduplicationExchange(FanoutExchange):
    """A fanout exchange with a deduplication cache.

    Attributes:
        number: messages refer to it by this.
        assumed: a value that is taken as known; None but while a message is routed again.
    """

    KIND = "x-message-deduplication"
    KEEPS = True

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self.by_key = False
        self.number = number_of(self)
        self.assumed: bytes | None = None
        self._context: QueueContext | None = None
        self._ttl = _count(self.arguments.get(TTL))
        self._seen = DedupCache(_count(self.arguments.get(SIZE)))
        self._clock = Clock()
        self._commit: Commit | None = None
        self._durably = False
        # The commits that values became known in, as far as they may not be on disk.
        self._gathering: dict[bytes, int] = {}

    @classmethod
    def check_arguments(cls, resource: str, arguments: Mapping[str, Any]) -> None:
        """Refuse a declaration without a cache size."""
        must = "must be an integer greater than 0"
        if not _count(arguments.get(SIZE)):
            raise precondition(f"Missing or invalid argument, '{SIZE}' {must}")
        if TTL in arguments and not _count(arguments[TTL]):
            raise precondition(f"Invalid argument, '{TTL}' {must}")
        if arguments.get(PERSISTENCE, _MEMORY) not in (_DISK, _MEMORY):
            raise precondition(
                f"Invalid argument, '{PERSISTENCE}' must be either 'disk' or 'memory'"
            )

    @property
    def needs_headers(self) -> bool:
        """True: the deduplication value is a header."""
        return True

    def enter(self, context: QueueContext) -> None:
        """Open the cache, and load its stored entries."""
        log = None
        self._context = context
        self._clock = context.clock
        if context.store is not None:
            self._commit = context.store.commit
        if self.durable and self.arguments.get(PERSISTENCE) == _DISK:
            assert context.store is not None, "exchanges that keep something have a store"
            log = context.store.open_log(self.identity, durable=True, keep_all=True)
            self._durably = True
        self._seen = DedupCache(_count(self.arguments.get(SIZE)), log, self._clock.ms)

    def leave(self) -> None:
        """Delete the cache: the exchange was deleted."""
        self._seen.clear()
        self._gathering.clear()

    def match(self, message: Message, headers: Mapping[str, Any]) -> Iterable[Exchange | Queue]:
        """Return all destinations, for the first message of each value."""
        if HEADER in headers:
            key = digest(headers[HEADER])
            new = not self.knows(key)
            ttl_ms = _count(headers.get(TTL)) or self._ttl
            add_feedback(message, DeduplicationFeedback(self, key, ttl_ms, new))
            if not new:
                return ()
        return super().match(message, headers)

    def knows(self, key: bytes) -> bool:
        """True if a value is known, of which this is the digest."""
        return key == self.assumed or self._seen.knows(key, self._clock.ms)

    def route_again(self, message: Message, queues: tuple[Queue, ...]) -> tuple[Queue, ...]:
        """Route a message that has become a duplicate; its exchange counts what is different.

        Args:
            message: a message that carries what this exchange hears about it.
            queues: the queues that it was routed to.
        """
        assert self._context is not None, "messages are routed in a vhost"
        queues_again = self._context.route_again(message, queues)
        start = self._context.router.exchanges.get(message.exchange)
        if start is not None:
            start.routed += len(queues_again) - len(queues)
        return queues_again

    def prepare(self) -> None:
        """Have a crash keep both of a message and its value, or none of them."""
        if self._durably and self._commit is not None:
            self._commit.joint = True

    def note(self, key: bytes, ttl_ms: int) -> None:
        """Add a value: a queue has taken a message with it."""
        commit = self._commit
        if commit is not None:
            if len(self._gathering) >= _GATHERING:
                done = commit.done
                self._gathering = {k: t for k, t in self._gathering.items() if t > done}
            self._gathering[key] = commit.ticket
        self._seen.add(key, ttl_ms, self._clock.ms)

    def forget(self, key: bytes) -> None:
        """Remove a value: another queue has refused the message."""
        self._seen.drop(key)

    def pending(self, key: bytes) -> int:
        """Return PENDING if the message with a value is not on disk yet, else ACCEPTED."""
        waiting = self._commit is not None and self._gathering.get(key, 0) > self._commit.done
        return PENDING if waiting else ACCEPTED

    def rehearse(self, message: Message, headers: Mapping[str, Any]) -> Rehearsal:
        """Return all destinations, unless the value of the message is known."""
        if HEADER not in headers:
            note = f"It has no header {HEADER}, so it is no duplicate."
        elif self.knows(digest(headers[HEADER])):
            return Rehearsal([], f"The value of its header {HEADER} is known: a duplicate.")
        else:
            note = f"The value of its header {HEADER} is new: later ones are duplicates."
        return Rehearsal(list(super().match(message, headers)), note)
