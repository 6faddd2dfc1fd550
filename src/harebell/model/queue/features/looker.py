"""Look at messages for the consumers that want some of them only.

A condition reads the encoded message. What it does not tell is decoded when the condition asks for
it, with what the queue knows of the message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.c_types import C, Py, i64
from harebell.base.clock import Clock
from harebell.base.message import Message
from harebell.base.work import Work
from harebell.kernels.conditions import Condition
from harebell.model.editor import Editor
from harebell.model.filter.errors import FilterError
from harebell.model.filter.indexing import key_of
from harebell.model.filter.subject import Subject
from harebell.model.queue.browse import READY
from harebell.model.queue.features.failure_counts import FAILURES, REJECTIONS_SHIFT

if TYPE_CHECKING:
    from harebell.model.filter.condition import Filter
    from harebell.model.queue.order.contract import MessageOrder
    from harebell.model.queue_context import QueueContext

_NO_POSITION = -1
_NOTHING = Editor(lambda message: {})


class Looker:
    """Looks at the messages of one queue.

    Args:
        context: reads messages and has the time; None before the queue joins its vhost.
        order: the message order; None in a stream, which counts no deliveries.
    """

    def __init__(self, context: QueueContext | None, order: MessageOrder | None) -> None:
        self._order = order
        self._clock: Clock = Clock() if context is None else context.clock
        self._work: Work = Work() if context is None else context.timers.work
        self._subject = Subject(_NOTHING if context is None else context.editor)
        self._position: i64 = -1
        # What `wants` was asked for last, mostly for many messages, and what it needs of that.
        self._selector: Py[Filter | None] = None
        self._condition: Condition | None = None
        self._reads_body = False

    def wants(self, selector: Filter, message: Message, position: i64) -> C[bool]:
        """True if a selector is true for the message at a position."""
        condition: Condition | None = self._condition
        if condition is None or selector is not self._selector:
            self._selector = selector
            condition = self._condition = selector.condition
            self._reads_body = selector.reads_body
        if self._reads_body:
            self._work.spent += selector.units(message)
        self._position = position
        try:
            return condition.test(message, self) == 1
        except FilterError:
            # The test takes too long: whether it is wanted is unknown.
            return False

    def lets_pass(self, selector: Filter, message: Message) -> bool:
        """True if a message that no queue has yet is to be routed by a binding with a selector."""
        self._work.spent += selector.units(message)
        self._position = _NO_POSITION
        try:
            return selector.condition.test(message, self) == 1
        except FilterError:
            # The test takes too long: a message that may be wanted is not dropped.
            return True

    def value_of(self, read: Condition, message: Message, position: i64) -> C[object]:
        """Return the value of a header or property, as the key of an index."""
        self._position = position
        value = read.value(message, self)
        return value if type(value) is str else key_of(value)

    def decoded(self, message: Message) -> Subject:
        """Return the message that is looked at."""
        position, order = self._position, self._order
        count = 0 if order is None else order.delivery_count(position)
        subject = self._subject
        subject.now = self._clock.ms
        subject.is_now(
            message,
            position,
            message.deliveries + (count & FAILURES) + (count >> REJECTIONS_SHIFT),
            READY,
            redelivered=order is not None and bool(order.was_out(position)),
        )
        return subject
