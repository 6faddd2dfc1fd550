"""Count confirms of bulk publishes, without an object for each.

Numbers below `_lowest` are confirmed. Brokers mostly confirm ranges; RabbitMQ also confirms single
numbers, and those above `_lowest` are kept in a set that is never larger than what is in flight.
"""

from __future__ import annotations

from collections.abc import Callable

from harebell.base.message import Message as WireMessage
from harebell.client.errors import AMQPError, PublishReturned
from harebell.client.protocol.confirms import ConfirmTracker, ConfirmWaiter


class CountedConfirms(ConfirmTracker):
    """Count the publishes and confirms of one channel.

    Args:
        on_return: called with each returned message; must not call the connection.

    Attributes:
        confirmed: number of confirmed publishes, returned ones included.
        refused: number of publishes that the broker answered with basic.nack.
        returned_count: number of returned publishes.
    """

    def __init__(self, on_return: Callable[[PublishReturned], None] | None = None) -> None:
        super().__init__()
        self.confirmed = 0
        self.refused = 0
        self.returned_count = 0
        self._on_return = on_return
        self._ahead: set[int] = set()

    @property
    def oldest(self) -> int:
        """Number of the first unconfirmed publish, from 1 on."""
        return self._lowest

    def __len__(self) -> int:
        return self.sequence - self.confirmed - self.refused

    def count(self, publishes: int) -> None:
        """Count publishes that were just written."""
        self.sequence += publishes

    def expect(self, waiting: ConfirmWaiter, token: int, message: WireMessage, flags: int) -> None:
        """Not supported: a channel with counted confirms publishes rows only."""
        raise ValueError("publishes on this channel are counted: use another one for messages")

    def settle(self, tag: int, multiple: bool, *, taken: bool) -> None:
        """Handle a basic.ack or basic.nack; tag 0 with `multiple` means all.

        Raises:
            ProtocolError: the broker confirms what was never published.
        """
        self.check(tag, multiple)
        settled = self._run(tag or self.sequence) if multiple else self._one(tag)
        if taken:
            self.confirmed += settled
        else:
            self.refused += settled

    def _run(self, last: int) -> int:
        if last < self._lowest:
            return 0
        before = len(self._ahead)
        self._ahead = {number for number in self._ahead if number > last}
        settled = last + 1 - self._lowest - (before - len(self._ahead))
        self._lowest = last + 1
        self._close_up()
        return settled

    def _one(self, number: int) -> int:
        if number < self._lowest or number in self._ahead:
            return 0
        self._ahead.add(number)
        self._close_up()
        return 1

    def _close_up(self) -> None:
        while self._lowest in self._ahead:
            self._ahead.discard(self._lowest)
            self._lowest += 1

    def returned(self, error: PublishReturned, message: WireMessage) -> bool:
        """Count a basic.return."""
        self.returned_count += 1
        if self._on_return is not None:
            self._on_return(error)
        return True

    def fail(self, error: AMQPError) -> None:
        """Do nothing: the owner checks whether the channel is open."""
