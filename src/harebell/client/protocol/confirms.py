"""Publisher confirms: the unconfirmed publishes, and the object that gets each confirm.

The broker numbers the publishes of a channel in confirm mode from 1, as we do, and confirms them
with basic.ack and basic.nack, one by one or all up to a number. A basic.return has no number:
it precedes the ack of the same publish, and in order, so it belongs to the first unconfirmed
mandatory publish with the same content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from harebell.base.errors import ProtocolError
from harebell.base.message import Message as WireMessage
from harebell.client.errors import AMQPError, BulkPublishFailed, PublishNacked, PublishReturned
from harebell.client.protocol.call import Call

MANDATORY = 1
_FAILURES_KEPT = 100
_BASIC = 60
_ACK = 80


class ConfirmWaiter(Protocol):
    """Receives the outcome of a publish."""

    def settle(self, token: int, error: AMQPError | None) -> None:
        """Handle the confirm of the publish that was registered with `token`."""


class Confirm(Call[None]):
    """The confirm of one publish."""

    __slots__ = ()

    def settle(self, token: int, error: AMQPError | None) -> None:
        """Settle; called by `ConfirmTracker`."""
        if error is None:
            self.succeed(None)
        else:
            self.fail(error)


class Bulk:
    """The confirms of many publishes, without an object for each.

    Attributes:
        outstanding: number of unconfirmed publishes.
        confirmed: number of confirmed publishes.
        failures: (token, error) of the first failed ones.
        low: `on_low` is called when at most this many are outstanding.
    """

    __slots__ = ("confirmed", "failures", "low", "on_low", "outstanding")

    def __init__(self) -> None:
        self.outstanding = 0
        self.confirmed = 0
        self.failures: list[tuple[int, AMQPError]] = []
        self.low = 0
        self.on_low: Callable[[], None] | None = None

    def settle(self, token: int, error: AMQPError | None) -> None:
        """Count; called by `ConfirmTracker`."""
        self.outstanding -= 1
        if error is None:
            self.confirmed += 1
        elif len(self.failures) < _FAILURES_KEPT:
            self.failures.append((token, error))
        if self.outstanding <= self.low and self.on_low is not None:
            self.on_low()

    def result(self) -> int:
        """Return the number of confirmed publishes.

        Raises:
            BulkPublishFailed: some have failed.
        """
        if self.failures:
            raise BulkPublishFailed(self.confirmed, self.failures)
        return self.confirmed


class ConfirmTracker:
    """The unconfirmed publishes of one channel.

    Args:
        keep: keep every message until it is confirmed, so that it can be sent again.
    """

    def __init__(self, *, keep: bool = False) -> None:
        self.sequence = 0
        self.keep = keep
        self._lowest = 1
        self._waiting: dict[int, tuple[ConfirmWaiter, int]] = {}
        self._kept: dict[int, tuple[WireMessage, int]] = {}
        self._returned: dict[int, PublishReturned] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def expect(self, waiting: ConfirmWaiter, token: int, message: WireMessage, flags: int) -> None:
        """Register the publish that was just written; `waiting` gets its confirm."""
        self.sequence += 1
        self._waiting[self.sequence] = (waiting, token)
        if self.keep or flags & MANDATORY:
            self._kept[self.sequence] = (message, flags)

    def settle(self, tag: int, multiple: bool, *, taken: bool) -> None:
        """Handle a basic.ack or basic.nack; tag 0 with `multiple` means all.

        Raises:
            ProtocolError: the broker confirms what was never published.
        """
        self.check(tag, multiple)
        if not multiple:
            self._settle_one(tag, taken)
            return
        last = tag or self.sequence
        for sequence in range(self._lowest, last + 1):
            self._settle_one(sequence, taken)
        self._lowest = max(self._lowest, last + 1)

    def check(self, tag: int, multiple: bool) -> None:
        """Raise `ProtocolError` if the broker confirms what was never published."""
        if tag > self.sequence or (tag == 0 and not multiple):
            text = f"confirm of publish {tag}, but only {self.sequence} were made"
            raise ProtocolError(503, text, _BASIC, _ACK)

    def _settle_one(self, sequence: int, taken: bool) -> None:
        entry = self._waiting.pop(sequence, None)
        if entry is None:
            return
        error: AMQPError | None = None
        if self._kept:
            self._kept.pop(sequence, None)
            error = self._returned.pop(sequence, None)
        if not taken:
            error = PublishNacked(sequence)
        entry[0].settle(entry[1], error)

    def settle_as(self, sequence: int, error: AMQPError | None) -> None:
        """Settle one publish, whose outcome came with its number."""
        entry = self._waiting.pop(sequence, None)
        self._kept.pop(sequence, None)
        if entry is not None:
            entry[0].settle(entry[1], error)

    def returned(self, error: PublishReturned, message: WireMessage) -> bool:
        """Handle a basic.return; False if no unconfirmed publish matches."""
        second = 0
        for sequence, (sent, flags) in self._kept.items():
            if not flags & MANDATORY or sequence in self._returned:
                continue
            if (
                sent.routing_key != message.routing_key
                or sent.exchange != message.exchange
                or sent.body != message.body
            ):
                continue
            if sent.raw == message.raw:
                self._returned[sequence] = error
                return True
            # A broker may encode the properties differently; then compare the other fields only.
            second = second or sequence
        if second:
            self._returned[second] = error
        return second != 0

    def fail(self, error: AMQPError) -> None:
        """Fail every unconfirmed publish: the channel has ended."""
        entries = list(self._waiting.values())
        self._forget()
        for waiting, token in entries:
            waiting.settle(token, error)

    def take_over(self) -> Iterator[tuple[ConfirmWaiter, int, WireMessage, int]]:
        """Return the unconfirmed publishes, to repeat them on another channel. Needs `keep`."""
        entries = [(*self._waiting[n], *self._kept[n]) for n in self._waiting]
        self._forget()
        return iter(entries)

    def _forget(self) -> None:
        self._waiting = {}
        self._kept = {}
        self._returned = {}
