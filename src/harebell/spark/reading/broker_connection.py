"""The connection of a query to Harebell, on the driver's machine: made when needed, and again.

A thread beats while Spark works on a micro-batch, so that the broker does not take the query for
dead. A connection that was lost is made again for at most `fetchTimeout`; who asks is told that it
is another one by `made`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from harebell.base.limits import SPARK_CALLS_PER_TIMEOUT
from harebell.client import blocking
from harebell.client.errors import (
    AMQPConnectionClosed,
    AMQPError,
    AuthenticationFailed,
    CallTimeout,
    ChannelClosed,
    ConnectionFailed,
    ConnectionLost,
    LoginUnanswered,
    NotAllowed,
    ProtocolMismatch,
)
from harebell.client.url import URL
from harebell.spark.reading.queue_consumer import SourceError

_LOG = logging.getLogger("harebell.spark")
_RETRY_SECONDS = 0.2
LOST = (ConnectionLost, AMQPConnectionClosed, ConnectionFailed, CallTimeout)
"""What says that the connection is of no use any more."""


def turned_away(error: AMQPError, *, known: bool) -> bool:
    """Whether the broker refuses the login, so that trying again does not help.

    Args:
        error: why there is no connection.
        known: whether it let us in before. Then a limit of connections may be full of those that
            were lost, and a login without an answer may be a broker that died.
    """
    if isinstance(error, LoginUnanswered | NotAllowed):
        return not known
    return isinstance(error, AuthenticationFailed | ProtocolMismatch)


T = TypeVar("T")


class BrokerConnection:
    """A connection with one channel.

    Args:
        url: where the broker is, and as whom.
        timeout: seconds in which the broker has to answer. A call gets a share of them, so that one
            whose answer is lost can be made again, on a new connection.
        name: what operators see the connection called, unless the address says so.

    Attributes:
        made: how many connections there were.
    """

    def __init__(self, url: URL, timeout: float, name: str) -> None:
        self.url = url if url.name is not None else replace(url, name=name)
        self.made = 0
        self._timeout = timeout
        self._connection: blocking.Connection | None = None
        self._channel: blocking.Channel | None = None

    @property
    def extensions(self) -> dict[str, int]:
        """Harebell's own classes that the broker has."""
        return self.connected().extensions

    @property
    def product(self) -> str:
        """What the broker says that it is."""
        return str(self.connected().server_properties.get("product", "an unknown broker"))

    def connected(self) -> blocking.Connection:
        """The connection, made if there is none.

        Raises:
            AMQPError: it cannot be made.
        """
        if self._connection is None:
            self._connection = blocking.connect(
                self.url,
                call_timeout=self._timeout / SPARK_CALLS_PER_TIMEOUT,
                background_heartbeats=True,
            )
            self.made += 1
        return self._connection

    def call(self, what: Callable[[blocking.Channel], T]) -> T:
        """Ask the broker something; what is asked must bear being asked twice.

        Raises:
            AMQPError: the broker refuses.
            SourceError: the connection was lost and cannot be made again.
        """
        give_up = time.monotonic() + self._timeout
        while True:
            try:
                return what(self.opened())
            except ChannelClosed:
                self._channel = None
                raise
            except LOST as error:
                self.lost()
                if not self.made or turned_away(error, known=True):
                    raise
                if time.monotonic() >= give_up:
                    raise SourceError(
                        f"the broker at {self.url.address} could not be asked in "
                        f"{self._timeout:g} s (fetchTimeout), on as many connections as it took: "
                        f"{error}"
                    ) from error
                _LOG.warning("connecting to %s again: %s", self.url.address, error)
                time.sleep(_RETRY_SECONDS)

    def opened(self) -> blocking.Channel:
        """A channel of the connection, both made if they are not there.

        Raises:
            AMQPError: it cannot be made.
        """
        connection = self.connected()
        if self._channel is None or not self._channel.is_open:
            self._channel = connection.channel(confirms=False)
        return self._channel

    def channel_is_over(self) -> None:
        """The broker has closed the channel."""
        self._channel = None

    def lost(self) -> None:
        """Leave a connection that is broken, or whose broker does not answer, at once."""
        connection, self._connection, self._channel = self._connection, None, None
        if connection is not None:
            connection.abort()

    def abandon(self) -> None:
        """Close a connection that may be broken."""
        connection, self._connection, self._channel = self._connection, None, None
        if connection is not None:
            try:
                connection.close()
            except (AMQPError, OSError):
                return

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_connection": None, "_channel": None}
