"""Recent history exchange, `x-recent-history`: a fanout that sends recent messages to new bindings.

A new destination gets the last messages at once, oldest first: 20 of them, or as many as the
argument `x-recent-history-length`. A message with the header `x-recent-history-no-store` is routed
and not kept (RabbitMQ plugin).

The messages are kept in a log, like those of a queue: on disk if the exchange is durable, and with
bounded memory in any case. Confirms do not wait for that log. A message is kept when it is
published and a queue takes it, or when there is none: never one that is refused or rolled back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.bcc import BCC, hidden
from harebell.base.message import FAMILY_09, FAMILY_09_BCC, Message, copy_message
from harebell.base.ports import Log
from harebell.model.binding import Binding
from harebell.model.equivalence import term
from harebell.model.exchange.fanout import FanoutExchange
from harebell.model.exchange.gate import opened
from harebell.model.exchange.kind import Exchange, Rehearsal
from harebell.model.feedback import HistoryFeedback, add_feedback, number_of
from harebell.model.limits import RECENT_HISTORY_MESSAGES
from harebell.model.resource import precondition

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue
    from harebell.model.queue_context import QueueContext

LENGTH = "x-recent-history-length"
NO_STORE = "x-recent-history-no-store"


class RecentHistoryExchange(FanoutExchange):
    """A fanout exchange with a log, and the positions in it in order.

    Attributes:
        number: messages refer to it by this.
    """

    KIND = "x-recent-history"
    KEEPS = True

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self.by_key = False
        self._length: int = self.arguments.get(LENGTH, RECENT_HISTORY_MESSAGES)
        self._log: Log | None = None
        self._kept: deque[int] = deque()
        # Rows of an open batch.
        self._staged: deque[int] = deque()
        self._context: QueueContext | None = None
        self.number = number_of(self)

    @classmethod
    def check_arguments(cls, resource: str, arguments: Mapping[str, Any]) -> None:
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
        self._context = context
        assert context.store is not None, "exchanges that keep messages have a store"
        self._log = log = context.store.open_log(self.identity, durable=self.durable, keep_all=True)
        position = log.first()
        while position < log.end():
            self._kept.append(position)
            position = log.next(position + 1)
        # A crash may separate the append of a message from the settlement of the oldest.
        self._forget(self._kept)

    def leave(self) -> None:
        """Delete the log: the exchange was deleted."""
        if self._log is not None:
            self._log.delete()
            self._log = None
            self._kept.clear()
            self._staged.clear()

    def match(self, message: Message, headers: Mapping[str, Any]) -> Iterable[Exchange | Queue]:
        """Return all destinations; the message is kept when it is published."""
        if self._log is not None and headers.get(NO_STORE) is not True:
            add_feedback(message, HistoryFeedback(self))
        return super().match(message, headers)

    def keep(self, message: Message) -> None:
        """Keep a message that is published."""
        self._append(message, self._kept)

    def stage(self, message: Message) -> None:
        """Keep a row of a batch, and do not show it before the end of the batch."""
        self._append(message, self._staged)

    def end_batch(self, committed: bool) -> None:
        """Show the rows of the batch, or drop them."""
        if committed:
            self._kept += self._staged
            self._forget(self._kept)
        elif self._log is not None:
            for position in self._staged:
                self._log.settle(position)
        self._staged.clear()

    def _append(self, message: Message, positions: deque[int]) -> None:
        log, context = self._log, self._context
        if log is None or context is None:
            return  # deleted while a transaction waited for its commit
        # A log may keep the object itself, and the publisher still changes this one.
        kept = copy_message(message, message.exchange, message.routing_key)
        kept.origin = kept.due = 0
        if kept.family != FAMILY_09_BCC and BCC.encode() in kept.raw:
            # Nothing was bound: queues get it without the blind keys.
            if kept.family == FAMILY_09:
                kept = hidden(kept)
            else:
                kept = context.editor.with_headers(kept, {BCC: None})
        positions.append(log.append(kept))
        self._forget(positions)

    def rehearse(self, message: Message, headers: Mapping[str, Any]) -> Rehearsal:
        """Return all destinations."""
        kept = headers.get(NO_STORE) is not True
        note = "It is kept, and sent to bindings that are made later." if kept else ""
        return Rehearsal(list(super().match(message, headers)), note)

    def greet(self, binding: Binding) -> None:
        """Send the kept messages to a new destination."""
        assert self._log is not None, "bindings are made in a vhost"
        assert self._context is not None, "bindings are made in a vhost"
        destination = binding.destination
        for kept in [self._log.read(position) for position in self._kept]:
            if kept is None:
                continue  # damaged; the store has reported it
            message = copy_message(kept, kept.exchange, kept.routing_key)
            if not opened([binding.leads_to], message):
                continue
            if isinstance(destination, Exchange):
                self._context.router.send(destination, message)
            else:
                destination.publish(message)

    def _forget(self, positions: deque[int]) -> None:
        while len(positions) > self._length:
            assert self._log is not None, "what is kept is in a log"
            self._log.settle(positions.popleft())
