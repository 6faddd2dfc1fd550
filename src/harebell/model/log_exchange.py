"""The log exchange: log lines on `amq.rabbitmq.log` of the first vhost.

    routing key   the level: debug, info, warning or error
    headers       node
    properties    content-type text/plain, timestamp in seconds; the body is the line

A line that is logged while another one is published is not published, as one line could cause the
next for ever (RabbitMQ's `log.exchange`).
"""

from __future__ import annotations

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
    """

    def __init__(self, router: Router, editor: Editor, clock: Clock, node: str) -> None:
        self._router = router
        self._editor = editor
        self._clock = clock
        self._node = node
        self.publishing = False

    def publish(self, level: str, text: str) -> None:
        """Publish a log line, if anything is bound."""
        exchange = self._router.exchanges[LOG_EXCHANGE]
        if self.publishing or not exchange.bindings:
            return
        self.publishing = True
        try:
            properties = {
                "content_type": "text/plain",
                "headers": {"node": self._node},
                "timestamp": datetime.fromtimestamp(self._clock.ms // _MS, UTC),
            }
            body = text.encode("utf-8", "backslashreplace")
            message = self._editor.composed(LOG_EXCHANGE, level, body, properties)
            for queue in self._router.route(exchange, message):
                queue.publish(message)
        finally:
            self.publishing = False
