"""The connection of a query to Harebell, on the driver: opened on demand, and reopened.

A thread sends heartbeats while Spark works on a micro-batch, so that the broker does not close
the connection. A lost connection is reopened for at most `fetchTimeout`; callers see in `made`
that it is a new one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from harebell.client import blocking
from harebell.client.errors import (
    AMQPConnectionClosed,
    AMQPError,
    AuthenticationFailed,
    CallTimeout,
    ChannelClosed,
    ConnectionFailed,
    ConnectionLost,
    InvalidPath,
    NotAllowed,
    ProtocolMismatch,
)
from harebell.client.url import URL
from harebell.spark.connection_limits import connect_in_turn
from harebell.spark.limits import SPARK_CALLS_PER_TIMEOUT
from harebell.spark.outages import Retries, ended, watch
from harebell.spark.reading.errors import SourceError
from harebell.wire.v09.history import NAME as HISTORY

_RETRY_SECONDS = 0.2
# RabbitMQ's sentence, too. A virtual host that is only not there yet is refused in others.
_NO_VHOST = re.compile(r"\bvhost .+ not found$")
LOST = (ConnectionLost, AMQPConnectionClosed, ConnectionFailed, CallTimeout)
"""Errors after which the connection cannot be used any more."""


def turned_away(error: AMQPError, *, known: bool) -> bool:
    """True if the broker refuses the login, so that another attempt cannot succeed.

    Args:
        error: the error of the attempt.
        known: whether an earlier login succeeded. Then a connection limit may be reached because of
            lost connections, and a login without an answer may be a broker that crashed. That the
            virtual host does not exist is final also then.
    """
    if isinstance(error, AuthenticationFailed):
        return error.answered or not known
    if isinstance(error, NotAllowed | InvalidPath):
        return not known or _NO_VHOST.search(error.text) is not None
    return isinstance(error, ProtocolMismatch)


T = TypeVar("T")


class BrokerConnection:
    """A connection with one channel.

    Args:
        url: address of the broker, with user and password.
        timeout: seconds in which the broker must answer. A call gets a part of them, so that it can
            be repeated on a new connection if its answer is lost.
        name: name of the connection in management, unless the address has one.
        wait: seconds to wait for a connection that the limits of the broker allow; by default as
            long as for an answer.

    Attributes:
        made: number of connections opened so far.
    """

    def __init__(self, url: URL, timeout: float, name: str, wait: float | None = None) -> None:
        self.url = url if url.name is not None else replace(url, name=name)
        watch(self.url)
        self.made = 0
        self._timeout = timeout
        self._wait = wait
        self._connection: blocking.Connection | None = None
        self._channel: blocking.Channel | None = None

    @property
    def extensions(self) -> dict[str, int]:
        """Harebell's protocol extensions that the broker supports."""
        return self.connected().extensions

    @property
    def product(self) -> str:
        """Product name of the broker."""
        return str(self.connected().server_properties.get("product", "an unknown broker"))

    def connected(self) -> blocking.Connection:
        """Return the connection; open it if necessary.

        Raises:
            AMQPError: it cannot be opened.
            NoConnectionFree: the limits of the broker allow none in time.
        """
        if self._connection is None:
            option = "fetchTimeout" if self._wait is None else "connectionWait"
            wait = self._timeout if self._wait is None else self._wait
            self._connection = connect_in_turn(self.url.address, wait, self._made, option)
            self.made += 1
            ended(self.url.address)
        return self._connection

    def _made(self) -> blocking.Connection:
        return blocking.connect(
            self.url,
            call_timeout=self._timeout / SPARK_CALLS_PER_TIMEOUT,
            background_heartbeats=True,
        )

    def call(self, what: Callable[[blocking.Channel], T]) -> T:
        """Send a request and return the answer; the request must be idempotent.

        Raises:
            AMQPError: the broker refuses.
            SourceError: the connection was lost and cannot be reopened.
        """
        give_up = time.monotonic() + self._timeout
        retries = Retries(self.url.address)
        while True:
            try:
                return what(self.opened())
            except ChannelClosed:
                # A refusal: the broker has closed the channel, and the connection goes on.
                self._channel = None
                raise
            except LOST as error:
                # Also after a time-out: a late answer would be taken for that of the next request.
                self.lost()
                if not self.made or turned_away(error, known=True):
                    raise
                if time.monotonic() >= give_up:
                    raise SourceError(
                        f"the broker at {self.url.address} could not be asked in "
                        f"{self._timeout:g} s (fetchTimeout), on as many connections as it took: "
                        f"{error}"
                    ) from error
                retries.failed(error)
                time.sleep(_RETRY_SECONDS)

    def eras(self, queue: str, group: str = "") -> str:
        """Return the eras of a queue's positions, or of a group's claims.

        Returns:
            "" if the broker is older than eras.

        Raises:
            AMQPError: the broker refuses.
            SourceError: the connection was lost and cannot be reopened.
        """
        if HISTORY not in self.extensions:
            return ""
        return self.call(lambda channel: channel.history(queue, group)).eras

    def opened(self) -> blocking.Channel:
        """Return a channel; open connection and channel if necessary.

        Raises:
            AMQPError: they cannot be opened.
        """
        connection = self.connected()
        if self._channel is None or not self._channel.is_open:
            self._channel = connection.channel(confirms=False)
        return self._channel

    def channel_is_over(self) -> None:
        """Forget the channel that the broker has closed."""
        self._channel = None

    def lost(self) -> None:
        """Close a connection that is broken, or whose broker does not answer, at once."""
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
        # Spark pickles readers; a socket stays in the process that has opened it.
        return self.__dict__ | {"_connection": None, "_channel": None}
