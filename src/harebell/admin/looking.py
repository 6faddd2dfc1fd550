"""Look at the messages of a queue without taking them, in slices of work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from harebell.admin.context import AdminContext, CommandRefused
from harebell.admin.limits import BROWSE_SLICE_UNITS
from harebell.model.limits import BROWSE_MESSAGE_UNITS, WORK_SLICE_UNITS

if TYPE_CHECKING:
    from harebell.base.message import Message
    from harebell.model.filter.condition import Filter
    from harebell.model.filter.subject import Subject
    from harebell.model.queue.browse import BrowseCursor, Browsed
    from harebell.model.queue.contract import Queue
    from harebell.model.vhost import VHost


class Looking:
    """Looks at a queue for one command.

    Args:
        context: the broker.
        vhost: the vhost of the queue.
        queue: the queue; it is not changed.
        condition: selects messages; None for all.
        leaves_out: returns whether a message is none that is looked at; None for those that have
            expired.

    Attributes:
        queue: as given.
        subject: the message that was selected last, decoded as far as it is asked for.
        units: work of this slice that is not charged yet; the command adds its own.
        looked: how many messages it has looked at.
    """

    def __init__(
        self,
        context: AdminContext,
        vhost: VHost,
        queue: Queue,
        condition: Filter | None,
        leaves_out: Callable[[Message], bool] | None = None,
    ) -> None:
        from harebell.model.filter.subject import Subject

        self._broker = context.broker
        self._vhost = vhost
        self.queue = queue
        self._condition = condition
        self._leaves_out = leaves_out or self._expired
        self.subject: Subject = Subject(vhost.editor)
        self.units = 0
        self.looked = 0

    def selected(self, cursor: BrowseCursor) -> Iterator[Browsed | None]:
        """Yield the selected messages, and None wherever a slice of work ends.

        Raises:
            CommandRefused: the queue was deleted, or a message has what the condition cannot take.
        """
        work = self._broker.work
        # The command may have waited for others since it found the queue.
        self._check()
        while cursor.next() >= 0:
            arrived: list[bool] = []
            if cursor.load_spilled(lambda arrived=arrived: arrived.append(True)):  # type: ignore[misc]
                yield None
                while not arrived:
                    self._check()
                    work.charge(WORK_SLICE_UNITS)
                    yield None
            browsed = cursor.read()
            self.looked += 1
            self.units += BROWSE_MESSAGE_UNITS
            if browsed is not None:
                if self._condition is not None:
                    self.units += self._condition.units(browsed.message)
                if self._selects(browsed):
                    yield browsed
            if self.units >= BROWSE_SLICE_UNITS:
                self.charge()
                yield None
                self._check()

    def charge(self) -> None:
        """Charge the work of this slice to the work budget."""
        self._broker.work.charge(self.units)
        self.units = 0

    def _check(self) -> None:
        if self.queue.deleted:
            raise CommandRefused(
                f"queue '{self.queue.name}' in vhost '{self._vhost.name}' was deleted meanwhile"
            )

    def _expired(self, message: Message) -> bool:
        return bool(message.due) and message.due <= self._broker.clock.steady

    def _selects(self, browsed: Browsed) -> bool:
        from harebell.model.filter.errors import FilterError

        message = browsed.message
        if self._leaves_out(message):
            return False
        self.subject.now = self._broker.clock.ms
        self.subject.is_now(
            message,
            browsed.position,
            browsed.deliveries,
            browsed.state,
            redelivered=browsed.redelivered,
        )
        if self._condition is None:
            return True
        try:
            return self._condition.selects(self.subject)
        except FilterError as error:
            raise CommandRefused(f"message {browsed.position}: {error}") from None
