"""Run work over a connection that may be lost: reconnect and continue.

The work must be idempotent: staged pieces have numbers, a committed batch stays committed, and
rows that are published at least once may be published again. The broker must return within the
option `reconnectTimeout`; the time starts again whenever the work makes progress.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from harebell.client.blocking import Connection
from harebell.client.errors import AMQPError, ConnectionFailed
from harebell.client.protocol.recovery import recoverable, refused
from harebell.spark.limits import SPARK_RETRY_SECONDS
from harebell.spark.outages import Retries, ended
from harebell.spark.writing.write_target import SinkError, WriteTarget

_LOG = logging.getLogger("harebell.spark")

T = TypeVar("T")


def run_reconnecting(
    target: WriteTarget,
    what: str,
    work: Callable[[Connection], T],
    progress: Callable[[], int] = int,
    *,
    known: bool,
    rows: int = 0,
) -> T:
    """Return the result of the work, on as many connections as necessary.

    Args:
        target: where the broker is, and how long it may be away.
        what: purpose of the connection, as shown in management.
        work: called again with each new connection.
        progress: grows when the work progresses.
        known: whether an earlier connection succeeded. Else the first connection is not retried:
            its address may be wrong.
        rows: number of rows that one call of the work handles.

    Raises:
        NoConnectionFree: the limits of the broker allowed no connection in time.
        SinkError: the connection was lost, and the broker did not return in time.
        AMQPError: the broker refuses, or was never reached.
    """
    patience = target.options.reconnect_timeout
    reached, give_up = -1, 0.0
    retries = Retries(target.options.url.address)
    while True:
        connection: Connection | None = None
        try:
            connection = target.connect(what, rows, in_turn=True)
            known = True
            ended(target.options.url.address)
            return work(connection)
        except AMQPError as error:
            if not (known and patience and _gone(error)):
                raise
            now = time.monotonic()
            # The time-out is for a broker that is away, not for work that is long.
            if progress() > reached:
                reached, give_up = progress(), now + patience
                retries.progressed()
            if now >= give_up:
                raise SinkError(
                    f"the connection to {target.options.url.address} was lost and could not be "
                    f"made again in {patience:g} s (reconnectTimeout): {error}"
                ) from error
            retries.failed(error)
        finally:
            if connection is not None:
                _leave(connection)
        time.sleep(min(SPARK_RETRY_SECONDS, patience))


def _gone(error: AMQPError) -> bool:
    """True if the broker or the network failed, without refusing the client."""
    return recoverable(error) or (isinstance(error, ConnectionFailed) and not refused(error))


def _leave(connection: Connection) -> None:
    try:
        connection.close()
    except AMQPError as error:
        # Everything was confirmed, or another error is raised already.
        _LOG.debug("closing a connection: %s", error)
