"""Recent history exchange, `x-recent-history`: a fanout that sends recent messages to new bindings.

A new destination gets the last messages at once, oldest first: 20 of them, or as many as the
argument `x-recent-history-length`. A message with the header `x-recent-history-no-store` is routed
and not kept (RabbitMQ plugin).

The messages are kept in a log, like those of a queue: on disk if the exchange is durable, and with
bounded memory in any case. Confirms do not wait for that log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.limits import RECENT_HISTORY_MESSAGES
from harebell.base.message import Message, copy_message
from harebell.base.ports import Log
from harebell.model.bcc import BCC, hidden
from harebell.model.binding import Binding
from harebell.model.equivalence import term
from harebell.model.exchange.fanout import FanoutExchange
from harebell.model.exchange.kind import Exchange, Rehearsal
from harebell.model.resource import precondition

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue
    from harebell.model.queue_context import QueueContext
    from harebell.model.router import Router

LENGTH = "x-recent-history-length"
NO_STORE = "x-recent-history-no-store"


class RecentHistoryExchange(FanoutExchange):
    """A fanout exchange with a log, and the positions in it in order."""

    KIND = "x-recent-history"
    KEEPS = True

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self.by_key = False
        self._length: int = self.arguments.get(LENGTH, RECENT_HISTORY_MESSAGES)
        self._log: Log | None = None
        self._kept: deque[int] = deque()
        self._router: Router | None = None

    @classmethod
    def check_arguments(cls, thing: str, arguments: Mapping[str, Any]) -> None:
        """Refuse an invalid length."""
        if LENGTH not in arguments:
            return
        length = arguments[LENGTH]
        if isinstance(length, bool) or not isinstance(length, int) or length < 1:
            raise precondition(
                f"Invalid argument {term(length)}, '{LENGTH}' must be a positive integer"
            )

    @property
    def needs_headers(self) -> bool:
        """True: a header decides whether a message is kept."""
        return True

    def enter(self, context: QueueContext) -> None:
        """Open the log, and read its positions after a restart."""
        self._router = context.router
        assert context.store is not None, "exchanges that keep messages have a store"
        self._log = log = context.store.open_log(self.identity, durable=self.durable, keep_all=True)
        position = log.first()
        while position < log.end():
            self._kept.append(position)
            position = log.next(position + 1)
        self._forget()

    def leave(self) -> None:
        """Delete the log: the exchange was deleted."""
        if self._log is not None:
            self._log.delete()
            self._kept.clear()

    def match(self, message: Message, headers: Mapping[str, Any]) -> Iterable[Exchange | Queue]:
        """Return all destinations, and keep the message."""
        if self._log is not None and headers.get(NO_STORE) is not True:
            # A log may keep the object itself, and the publisher still changes this one.
            kept = copy_message(message, message.exchange, message.routing_key)
            if BCC in headers:
                kept = hidden(kept)
            self._kept.append(self._log.append(kept))
            self._forget()
        return super().match(message, headers)

    def rehearse(self, message: Message, headers: Mapping[str, Any]) -> Rehearsal:
        """Return all destinations."""
        kept = headers.get(NO_STORE) is not True
        note = "It is kept, and sent to bindings that are made later." if kept else ""
        return Rehearsal(list(super().match(message, headers)), note)

    def greet(self, binding: Binding) -> None:
        """Send the kept messages to a new destination."""
        assert self._log is not None, "bindings are made in a vhost"
        assert self._router is not None, "bindings are made in a vhost"
        destination = binding.destination
        for message in [self._log.read(position) for position in self._kept]:
            if message is None:
                continue  # damaged; the store has reported it
            if isinstance(destination, Exchange):
                found = self._router.route(destination, message)
            else:
                found = (destination,)
            for queue in found:
                queue.publish(message)

    def _forget(self) -> None:
        while len(self._kept) > self._length:
            assert self._log is not None, "what is kept is in a log"
            self._log.settle(self._kept.popleft())
