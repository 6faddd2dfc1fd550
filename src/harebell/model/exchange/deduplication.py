"""Deduplication exchange, `x-message-deduplication`: a fanout that routes each message once.

Which messages are the same their header `x-deduplication-header` says; those without it are always
routed. The argument `x-cache-size` says how many values are remembered, `x-cache-ttl` for how many
milliseconds, which a message's own header `x-cache-ttl` overrides; with `x-cache-persistence: disk`
they outlive the process if the exchange does (the community's plugin for RabbitMQ).

A duplicate matches nothing, so it is confirmed like any message without a destination, and goes to
the alternate exchange where there is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.clock import Clock
from harebell.base.message import Message
from harebell.model.dedup_cache import HEADER, Duplicates
from harebell.model.exchange.fanout import FanoutExchange
from harebell.model.exchange.kind import Exchange
from harebell.model.resource import precondition

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue
    from harebell.model.queue_context import QueueContext

SIZE = "x-cache-size"
TTL = "x-cache-ttl"
PERSISTENCE = "x-cache-persistence"
_DISK, _MEMORY = "disk", "memory"
_MOST = 2**62
_DIGITS = re.compile(r"[0-9]{1,18}", re.ASCII)


def _count(value: Any) -> int:
    """A number above 0, also written as text; 0 when it is none."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < _MOST:
        return 0
    return value


class DeduplicationExchange(FanoutExchange):
    """The bindings of a fanout, and what was seen."""

    KIND = "x-message-deduplication"
    KEEPS = True

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self.by_key = False
        self._ttl = _count(self.arguments.get(TTL))
        self._seen: Duplicates | None = None
        self._clock = Clock()

    @classmethod
    def check_arguments(cls, thing: str, arguments: Mapping[str, Any]) -> None:
        """Refuse to remember without a bound."""
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
        """What tells duplicates stands in the headers."""
        return True

    def enter(self, context: QueueContext) -> None:
        """Take up the memory, and what was written down of it."""
        log = None
        self._clock = context.clock
        if self.durable and self.arguments.get(PERSISTENCE) == _DISK:
            assert context.store is not None, "exchanges that keep something have a store"
            log = context.store.open_log(self.identity, durable=True, keep_all=True)
        self._seen = Duplicates(_count(self.arguments.get(SIZE)), log, self._clock.ms)

    def leave(self) -> None:
        """The exchange is gone, and what it remembered."""
        if self._seen is not None:
            self._seen.clear()

    def match(self, message: Message, headers: Mapping[str, Any]) -> Iterable[Exchange | Queue]:
        """Every destination, the first time."""
        if HEADER in headers and self._seen is not None:
            ttl = _count(headers.get(TTL)) or self._ttl
            if self._seen.seen(headers[HEADER], ttl, self._clock.ms):
                return ()
        return super().match(message, headers)
