"""The log messages of connections: lost, retried, recovered, given up.

The loggers are `harebell.client.aio` and `harebell.client.blocking`. A loss is a warning, the end
of all attempts an error, an attempt and a recovery are information. No text has a password.
"""

from __future__ import annotations

import logging

from harebell.client.errors import AMQPError, ClientClosed, RecoveryFailed
from harebell.client.message import Delivered
from harebell.client.url import URL

_OUTCOMES = {
    "ack": "its message is acknowledged",
    "reject": "its message is rejected",
    "requeue": "its message is requeued",
}


class Reports:
    """The log of one connection.

    Args:
        api: "aio" or "blocking".
        url: where the broker is.
    """

    def __init__(self, api: str, url: URL) -> None:
        self._log = logging.getLogger(f"harebell.client.{api}")
        self._address = url.address if url.name is None else f"{url.address} ({url.name})"

    def lost(self, error: AMQPError) -> None:
        """Log that the connection was lost and will be recovered."""
        self._log.warning("lost the connection to %s, recovering: %s", self._address, error)

    def failed(self, attempt: int, error: AMQPError) -> None:
        """Log that an attempt to recover failed."""
        self._log.info("attempt %d to connect to %s failed: %s", attempt, self._address, error)

    def regained(self, attempts: int) -> None:
        """Log that the connection and its topology were recovered."""
        self._log.info("connected to %s again after %d attempts", self._address, attempts)

    def callback_failed(self, state: str) -> None:
        """Log the error of a function of `on_state`."""
        self._log.exception("a function of on_state failed (%s, %s)", self._address, state)

    def handler_failed(
        self, queue: str, message: Delivered, outcome: str, error: Exception
    ) -> None:
        """Log that a handler has failed, and what becomes of its message."""
        self._log.error(
            "the handler of queue %r failed, %s: %s (%s)",
            *(queue, _OUTCOMES[outcome], message, self._address),
            exc_info=error,
        )

    def not_settled(self, queue: str, message: Delivered, error: AMQPError) -> None:
        """Log that a handled message could not be acknowledged: its channel has ended."""
        self._log.warning(
            "a message of queue %r was handled and not acknowledged, it will come again: %s (%s)",
            *(queue, error, self._address),
        )

    def ended(self, error: AMQPError) -> None:
        """Log that the connection ended and will not be recovered."""
        if isinstance(error, RecoveryFailed):
            self._log.error("the connection to %s is over: %s", self._address, error)
        elif not isinstance(error, ClientClosed):
            self._log.warning("lost the connection to %s: %s", self._address, error)
