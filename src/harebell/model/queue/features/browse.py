"""Browsers: consumers that see ready messages and do not take them.

A browser is shown each ready message once, in the order of delivery, and then new messages. It may
take a message that it was shown (`MessageQueue.acquire`) while it is ready; the message is then
delivered to it as to any consumer. Messages delivered to others are not shown, unless they are
requeued before the cursor of the browser passes them.

    ready      1   2   3   .   .   6   7 ...          4 and 5 are out
                       ^ cursor of a browser: 3 is next, then 6, unless 4 or 5 are requeued first

A queue has this part while it has browsers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.c_types import C, Done, i32, i64
from harebell.base.message import Message
from harebell.model.consumer import Consumer
from harebell.model.limits import BROWSED_PER_TURN
from harebell.model.queue.features.looker import Looker

if TYPE_CHECKING:
    from harebell.model.queue.features.queue_internals import QueueInternals
    from harebell.model.queue.order.contract import MessageOrder

_MAX: i32 = BROWSED_PER_TURN


class Browser:
    """One browser and its cursors.

    Args:
        consumer: the browser.
        cursors: for each log of the queue, the first position that it was not shown.
    """

    def __init__(self, consumer: Consumer, cursors: list[int]) -> None:
        self.consumer: C[Consumer] = consumer
        self.cursors = cursors


class Browsing:
    """The browsers of one queue."""

    def __init__(self, queue: QueueInternals) -> None:
        self._queue = queue
        self._order: MessageOrder = queue.order
        self._browsers: list[Browser] = []
        self._looker = Looker(queue.context, queue.order)

    def add(self, consumer: Consumer) -> Done:
        """Add a browser."""
        browser = Browser(consumer, [0])
        self._browsers.append(browser)
        return self._show(browser)

    def remove(self, consumer: Consumer) -> C[bool]:
        """Remove a browser; return whether others are left."""
        self._browsers = [each for each in self._browsers if each.consumer is not consumer]
        return bool(self._browsers)

    def show_all(self) -> Done:
        """Show every browser the messages that it has not seen."""
        browser: Browser
        for browser in list(self._browsers):
            self._show(browser)
        return 0

    def _show(self, browser: Browser) -> Done:
        """Show a browser messages until its credit is used up."""
        consumer: Consumer = browser.consumer
        order = self._order
        shown: i32 = 0
        while order.count > 0 and consumer.ready():
            if shown >= _MAX:
                consumer.again()
                return 0
            position: i64 = order.next_ready(browser.cursors)
            if position < 0:
                return 0
            message: Message | None = order.read(position)
            # Its credit in bytes is used up: it sees this message first when it gets more.
            if message is not None and not consumer.fits(message):
                return 0
            order.pass_by(browser.cursors, position)
            shown += 1
            if message is not None and not self._wants(consumer, message, position):
                continue
            if message is not None and not (message.due and self._queue.expired(message)):
                redelivered: bool = order.was_out(position)
                self._queue.count_delivery(consumer, redelivered)
                consumer.deliver(message, position, redelivered)
        return 0

    def _wants(self, consumer: Consumer, message: Message, position: i64) -> C[bool]:
        """True if a browser wants a message."""
        selector = consumer.selector
        return selector is None or self._looker.wants(selector, message, position)


def ready_messages(order: MessageOrder) -> list[tuple[int, Message]]:
    """Return the ready messages with their positions."""
    cursors = [0]
    ready_messages = []
    position = order.next_ready(cursors)
    while position >= 0:
        order.pass_by(cursors, position)
        message = order.read(position)
        if message is not None:
            ready_messages.append((position, message))
        position = order.next_ready(cursors)
    return ready_messages
