"""What two arguments of Qpid's broker add to an exchange of any type.

    qpid.msg_sequence    each message gets the header of this name, a number that rises by one
    qpid.ive             the newest message of each routing key is kept, and sent to new bindings
                         that match it ("initial value exchange")

An exchange with one of them has a tap, which sees every message that comes to it. Routes over it
are not cached.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.bcc import BCC, revealed
from harebell.base.message import (
    FAMILY_09_BCC,
    FAMILY_FILE,
    FAMILY_STREAM,
    Message,
    Properties,
    change_properties,
    copy_message,
)
from harebell.base.ports import Commit, Log
from harebell.model.binding import Binding
from harebell.model.exchange.gate import opened
from harebell.model.exchange.kind import KEEPS_VALUES, SEQUENCE, Exchange, flag
from harebell.model.feedback import HistoryFeedback, add_feedback, number_of
from harebell.model.limits import (
    INITIAL_VALUES_KEYS,
    LAST_VALUE_SEGMENT_BYTES,
    SEQUENCE_AHEAD_NUMBERS,
)
from harebell.model.resource import precondition

if TYPE_CHECKING:
    from harebell.model.queue_context import QueueContext

_NUMBER_BYTES = 8
_NO_PROPERTIES = Properties(b"\0\0")


class MessageNumbers:
    """The sequence numbers of one exchange.

    Those of a durable exchange survive a restart. A log has a number ahead of those in use, because
    a record for each message would be a second write. So after a crash some numbers are left out,
    and none is there twice. An orderly end stores the next number itself.

    Args:
        log: has the number ahead, 8 bytes, big-endian; None for a transient exchange.
        commit: the group commit of the log.
    """

    def __init__(self, log: Log | None, commit: Commit) -> None:
        self._log = log
        self._commit = commit
        self._next = 1
        self._stored = -1
        if log is not None:
            position = log.first()
            while position < log.end():
                message = log.read(position)
                if message is not None:
                    # A crash may separate a new record from the settlement of the one before.
                    self._next, self._stored = int.from_bytes(message.body), position
                position = log.next(position + 1)
        # Numbers below it may be used.
        self._ahead = self._next

    @property
    def last(self) -> int:
        """The number of the last message, or of the last one that a crash has left out."""
        return self._next - 1

    def take(self) -> int:
        """Return the number of the next message."""
        number = self._next
        self._next = number + 1
        if self._next > self._ahead:
            self._store(self._next + SEQUENCE_AHEAD_NUMBERS)
            # The messages with these numbers must not be on disk without it.
            self._commit.joint = True
        return number

    def end(self) -> None:
        """Store the next number: nothing is published any more."""
        if self._ahead != self._next:
            self._store(self._next)

    def _store(self, ahead: int) -> None:
        self._ahead = ahead
        log = self._log
        if log is not None:
            body = ahead.to_bytes(_NUMBER_BYTES)
            position = log.append(Message("", "", _NO_PROPERTIES, body))
            if self._stored >= 0:
                log.settle(self._stored)
            self._stored = position

    def leave(self) -> None:
        """Delete the log: the exchange was deleted."""
        if self._log is not None:
            self._log.delete()
            self._log = None


class InitialValues:
    """The newest message of each routing key of one exchange, in a log.

    A message is kept when it is published and a queue takes it, or when there is none. Confirms do
    not wait for the log.

    Args:
        log: where they are kept, those from before a restart among them.
        context: routes and changes messages.

    Attributes:
        number: messages refer to it by this.
    """

    def __init__(self, log: Log, context: QueueContext) -> None:
        self.number = number_of(self)
        self._log = log
        self._context = context
        self._gone = False
        # Positions by routing key, the oldest first.
        self._positions: dict[str, int] = {}
        # Rows of an open batch.
        self._staged: list[tuple[str, int]] = []
        position = log.first()
        while position < log.end():
            message = log.read(position)
            if message is not None:
                self._note(message.routing_key, position)
            position = log.next(position + 1)

    def __len__(self) -> int:
        return len(self._positions)

    def keep(self, message: Message) -> None:
        """Keep a message that is published, and drop the older one of its routing key."""
        position = self._append(message)
        if position >= 0:
            self._note(message.routing_key, position)

    def stage(self, message: Message) -> None:
        """Keep a row of a batch, and do not show it before the end of the batch."""
        position = self._append(message)
        if position >= 0:
            self._staged.append((message.routing_key, position))

    def end_batch(self, committed: bool) -> None:
        """Show the rows of the batch, or drop them."""
        staged, self._staged = self._staged, []
        for key, position in staged:
            if committed:
                self._note(key, position)
            elif not self._gone:
                self._log.settle(position)

    def _append(self, message: Message) -> int:
        """Append a message; return its position, -1 if the exchange is deleted."""
        if self._gone:
            return -1
        # A log may keep the object itself, and the publisher still changes this one.
        kept = copy_message(message, message.exchange, message.routing_key)
        kept.origin = kept.due = 0
        if BCC.encode() in kept.raw:
            # Queues that are bound later get it without the blind keys.
            kept = self._context.editor.with_headers(kept, {BCC: None})
        return self._log.append(kept)

    def _note(self, key: str, position: int) -> None:
        older = self._positions.pop(key, -1)
        if older >= 0:
            self._log.settle(older)
        self._positions[key] = position
        if len(self._positions) > INITIAL_VALUES_KEYS:
            oldest = next(iter(self._positions))
            self._log.settle(self._positions.pop(oldest))

    def send_to(self, binding: Binding, probe: Exchange) -> None:
        """Send what a new binding matches to its destination, the oldest first.

        Args:
            binding: the new binding.
            probe: an exchange of the same type that has only this binding.
        """
        for position in list(self._positions.values()):
            kept = self._log.read(position)
            if kept is None:
                continue  # damaged; the store has reported it
            needed = probe.needs_headers and kept.has_headers
            headers = self._context.editor.headers_of(kept) if needed else {}
            if not opened(probe.match(kept, headers), kept):
                continue
            message = copy_message(kept, kept.exchange, kept.routing_key)
            destination = binding.destination
            if isinstance(destination, Exchange):
                self._context.router.send(destination, message)
            else:
                destination.publish(message)

    def leave(self) -> None:
        """Delete the log: the exchange was deleted."""
        self._gone = True
        self._positions.clear()
        self._staged.clear()
        self._log.delete()


class Tap:
    """What sees the messages that come to one exchange.

    Args:
        context: changes messages.
        numbers: its sequence numbers; None without.
        values: its initial values; None without.
    """

    def __init__(
        self,
        context: QueueContext,
        numbers: MessageNumbers | None,
        values: InitialValues | None,
    ) -> None:
        self._context = context
        self.numbers = numbers
        self.values = values

    def last_number(self) -> int:
        """Return the number of the last message; 0 if there is none."""
        return 0 if self.numbers is None else self.numbers.last

    def value_count(self) -> int:
        """Return of how many routing keys a message is kept."""
        return 0 if self.values is None else len(self.values)

    def passed(self, message: Message) -> None:
        """Number a message that is about to be routed, and keep it when it is published."""
        if self.numbers is not None:
            number = self.numbers.take()
            # Files and packets stay what they are: they have no such header.
            if message.family not in (FAMILY_FILE, FAMILY_STREAM):
                shown = revealed(message) if message.family == FAMILY_09_BCC else message
                numbered = self._context.editor.with_headers(shown, {SEQUENCE: number})
                change_properties(message, numbered)
        if self.values is not None:
            add_feedback(message, HistoryFeedback(self.values))

    def greet(self, exchange: Exchange, binding: Binding) -> None:
        """Send what was kept to a new binding of the exchange."""
        if self.values is not None:
            self.values.send_to(binding, exchange.alone(binding))

    def end(self) -> None:
        """Store what the next start needs: nothing is published any more."""
        if self.numbers is not None:
            self.numbers.end()

    def leave(self) -> None:
        """Delete what is stored: the exchange was deleted."""
        if self.numbers is not None:
            self.numbers.leave()
        if self.values is not None:
            self.values.leave()


def check_tap(resource: str, kind: type[Exchange], arguments: Mapping[str, Any]) -> None:
    """Refuse initial values of an exchange type that keeps messages itself.

    Args:
        resource: the exchange, rendered for the error text.
        kind: its type.
        arguments: as declared.
    """
    if kind.KEEPS and flag(arguments, KEEPS_VALUES):
        raise precondition(
            f"invalid arg '{KEEPS_VALUES}' for {resource}: type {kind.KIND} keeps messages itself"
        )


def tap_of(exchange: Exchange, context: QueueContext) -> Tap | None:
    """Return the tap of an exchange that was made or restored; None if it needs none."""
    arguments, store, identity = exchange.arguments, context.store, exchange.identity
    numbers: MessageNumbers | None = None
    values: InitialValues | None = None
    if store is None:
        return None
    if flag(arguments, SEQUENCE):
        log = None
        if exchange.durable:
            # Beside the one of the type, or of the initial values.
            log = store.open_log(f"{identity}-1", durable=True, keep_all=True)
        numbers = MessageNumbers(log, store.commit)
    if exchange.keeps_values:
        kept = store.open_log(
            identity,
            durable=exchange.durable,
            keep_all=True,
            segment_bytes=LAST_VALUE_SEGMENT_BYTES,
        )
        values = InitialValues(kept, context)
    return None if numbers is None and values is None else Tap(context, numbers, values)
