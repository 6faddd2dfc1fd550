"""Browsers: consumers that see what is ready and take nothing.

A browser is shown each ready message once, in the order of delivery, and goes on with what comes.
It may take what it was shown (`MessageQueue.acquire`) as long as it is ready, and is then like any
consumer that has it. Deliveries to others are never shown; what comes back is, if the browser has
not come past its place.

    ready      1   2   3   .   .   6   7 ...          4 and 5 are out
                       ^ cursor of a browser: 3 is next, then 6, unless 4 or 5 come back first

A queue has this part while it has browsers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.limits import BROWSED_PER_TURN
from harebell.base.message import Message
from harebell.model.consumer import Consumer

if TYPE_CHECKING:
    from harebell.model.queue.features.host import Host
    from harebell.model.queue.order.contract import MessageOrder

_MOST = BROWSED_PER_TURN


class Browser:
    """Where one browser is.

    Args:
        consumer: the browser.
        cursors: the first position that it has not been shown, in each log of the queue.
    """

    __slots__ = ("consumer", "cursors")

    def __init__(self, consumer: Consumer, cursors: list[int]) -> None:
        self.consumer = consumer
        self.cursors = cursors


class Browsing:
    """The browsers of one queue.

    Args:
        queue: the queue.
    """

    __slots__ = ("_browsers", "_order", "_queue")

    def __init__(self, queue: Host) -> None:
        self._queue = queue
        self._order = queue.order
        self._browsers: list[Browser] = []

    def add(self, consumer: Consumer) -> int:
        """Show a new browser what is ready."""
        browser = Browser(consumer, [0])
        self._browsers.append(browser)
        return self._show(browser)

    def remove(self, consumer: Consumer) -> bool:
        """Remove a browser; return whether there are others."""
        self._browsers = [each for each in self._browsers if each.consumer is not consumer]
        return bool(self._browsers)

    def show_all(self) -> int:
        """Show every browser what it has not seen."""
        for browser in list(self._browsers):
            self._show(browser)
        return 0

    def _show(self, browser: Browser) -> int:
        """Show a browser as much as it has credit for."""
        consumer = browser.consumer
        order = self._order
        shown = 0
        while order.count > 0 and consumer.ready():
            if shown >= _MOST:
                consumer.again()
                return 0
            position = order.next_ready(browser.cursors)
            if position < 0:
                return 0
            message = order.read(position)
            if message is not None and not consumer.fits(message):
                return 0
            order.pass_by(browser.cursors, position)
            shown += 1
            if message is not None and not (message.due and self._queue.expired(message)):
                consumer.deliver(message, position, order.was_out(position))
        return 0


def ready_messages(order: MessageOrder) -> list[tuple[int, Message]]:
    """Return what is ready with its positions."""
    cursors = [0]
    found = []
    position = order.next_ready(cursors)
    while position >= 0:
        order.pass_by(cursors, position)
        message = order.read(position)
        if message is not None:
            found.append((position, message))
        position = order.next_ready(cursors)
    return found
