"""Deduplication exchange, `x-message-deduplication`: a fanout that drops duplicates.

Messages with equal headers `x-deduplication-header` are duplicates; messages without it are always
routed. The argument `x-cache-size` is the number of values kept, `x-cache-ttl` their time to live
in milliseconds, which the header `x-cache-ttl` of a message overrides. With `x-cache-persistence:
disk` the values of a durable exchange survive a restart (a community plugin of RabbitMQ).

A duplicate matches no binding, so it is confirmed like any unroutable message, and is routed to the
alternate exchange if there is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.clock import Clock
from harebell.base.message import Message
from harebell.model.dedup_cache import HEADER, DedupCache
from harebell.model.exchange.fanout import FanoutExchange
from harebell.model.exchange.kind import Exchange, Rehearsal
from harebell.model.resource import precondition

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue
    from harebell.model.queue_context import QueueContext

SIZE = "x-cache-size"
TTL = "x-cache-ttl"
PERSISTENCE = "x-cache-persistence"
_DISK, _MEMORY = "disk", "memory"
_MAX = 2**62
_DIGITS = re.compile(r"[0-9]{1,18}", re.ASCII)


def _count(value: Any) -> int:
    """Return a number above 0, also if written as text; 0 for anything else."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < _MAX:
        return 0
    return value


class DeduplicationExchange(FanoutExchange):
    """A fanout exchange with a deduplication cache."""

    KIND = "x-message-deduplication"
    KEEPS = True

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self.by_key = False
        self._ttl = _count(self.arguments.get(TTL))
        self._seen: DedupCache | None = None
        self._clock = Clock()

    @classmethod
    def check_arguments(cls, thing: str, arguments: Mapping[str, Any]) -> None:
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
        """Open the cache, and read what is stored of it."""
        log = None
        self._clock = context.clock
        if self.durable and self.arguments.get(PERSISTENCE) == _DISK:
            assert context.store is not None, "exchanges that keep something have a store"
            log = context.store.open_log(self.identity, durable=True, keep_all=True)
        self._seen = DedupCache(_count(self.arguments.get(SIZE)), log, self._clock.ms)

    def leave(self) -> None:
        """Delete the cache: the exchange was deleted."""
        if self._seen is not None:
            self._seen.clear()

    def match(self, message: Message, headers: Mapping[str, Any]) -> Iterable[Exchange | Queue]:
        """Return all destinations, for the first message of each value."""
        if HEADER in headers and self._seen is not None:
            ttl = _count(headers.get(TTL)) or self._ttl
            if self._seen.seen(headers[HEADER], ttl, self._clock.ms):
                return ()
        return super().match(message, headers)

    def rehearse(self, message: Message, headers: Mapping[str, Any]) -> Rehearsal:
        """Return all destinations, unless the value of the message is known."""
        if HEADER not in headers:
            note = f"It has no header {HEADER}, so it is no duplicate."
        elif self._seen is not None and self._seen.knows(headers[HEADER], self._clock.ms):
            return Rehearsal([], f"The value of its header {HEADER} is known: a duplicate.")
        else:
            note = f"The value of its header {HEADER} is new: later ones are duplicates."
        return Rehearsal(list(super().match(message, headers)), note)
