"""The log exchange: log lines on `amq.rabbitmq.log` of the first vhost.

    routing key   the level: debug, info, warning or error
    headers       node
    properties    content-type text/plain, timestamp in seconds; the body is the line

A line that is logged while another one is published is not published, as one line could cause the
next for ever (RabbitMQ's `log.exchange`).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harebell.base.clock import Clock
    from harebell.model.editor import Editor
    from harebell.model.router import Router

LOG_EXCHANGE = "amq.rabbitmq.log"
_MS = 1000


class LogExchange:
    """Publishes log lines.

    Args:
        router: the router of the vhost with the exchange.
        editor: composes messages.
        clock: the time of day.
        node: the name of the broker.

    Attributes:
        publishing: whether a line is published now.
        elsewhere: publishes lines at the broker that has the first vhost of a cluster, called with
            level and text; None if this one has it, or nothing is bound there.
    """

    def __init__(self, router: Router, editor: Editor, clock: Clock, node: str) -> None:
        self._router = router
        self._editor = editor
        self._clock = clock
        self._node = node
        self.publishing = False
        self.elsewhere: Callable[[str, bytes], None] | None = None

    @property
    def bound(self) -> bool:
        """Whether anything is bound to it in this broker."""
        return bool(self._router.exchanges[LOG_EXCHANGE].bindings)

    def publish(self, level: str, text: str) -> None:
        """Publish a log line, if anything is bound."""
        # A line that publishing itself has caused would cause the next one, for ever.
        if self.publishing or not (self.elsewhere or self.bound):
            return
        self.publishing = True
        try:
            body = text.encode("utf-8", "backslashreplace")
            if self.elsewhere is not None:
                self.elsewhere(level, body)
            else:
                self._put(level, body, self._node)
        finally:
            self.publishing = False

    def take(self, level: str, body: bytes, node: str) -> None:
        """Publish a line of another broker of the cluster."""
        if self.bound:
            self._put(level, body, node)

    def _put(self, level: str, body: bytes, node: str) -> None:
        properties = {
            "content_type": "text/plain",
            "headers": {"node": node},
            "timestamp": datetime.fromtimestamp(self._clock.ms // _MS, UTC),
        }
        message = self._editor.composed(LOG_EXCHANGE, level, body, properties)
        self._router.send(self._router.exchanges[LOG_EXCHANGE], message)
