"""How connections of the blocking API wait, recover and end."""

from __future__ import annotations

import ssl
import time
from typing import Any, Self, TypeVar

from harebell.client.blocking.transport import Beater, BlockingTransport
from harebell.client.blocking.waits import ChannelWaits
from harebell.client.errors import (
    AMQPError,
    CallTimeout,
    ClientClosed,
    ConnectionLost,
)
from harebell.client.limits import CLIENT_WRITE_BYTES
from harebell.client.protocol.call import Call
from harebell.client.protocol.inbox import Inbox
from harebell.client.protocol.recovery import (
    Backoff,
    Recovery,
)
from harebell.client.protocol.shared_connection import SharedConnection
from harebell.client.protocol.v09.core import Random
from harebell.client.url import URL

T = TypeVar("T")


class ConnectionWaits(SharedConnection[ChannelWaits]):
    """The waits of a connection, its end and its recovery.

    Args:
        url: the address.
        recovery: how to recover; None disables recovery.
        rng: randomness for the delays.
        properties: added to the client properties.
        call_timeout: seconds after which a call without an answer raises `CallTimeout`.
        background_heartbeats: whether a thread sends heartbeats between calls.
        ssl_context: TLS settings, instead of those of the address.
    """

    def __init__(
        self,
        url: URL,
        recovery: Recovery | None,
        rng: Random,
        properties: dict[str, Any],
        call_timeout: float | None,
        background_heartbeats: bool,
        ssl_context: ssl.SSLContext | None,
    ) -> None:
        super().__init__("blocking", url, recovery, rng, properties)
        self._given_context = ssl_context
        self.abandoned: list[tuple[ChannelWaits, Inbox, str]] = []
        self._call_timeout = call_timeout
        self._beats = background_heartbeats
        self._beater: Beater | None = None
        self._open()

    def _open(self) -> None:
        """Connect for the first time."""
        raise NotImplementedError

    def _reopen(self, backoff: Backoff) -> bool:
        """Try to reconnect until it succeeds; False if the recovery gives up."""
        raise NotImplementedError

    def _now(self) -> float:
        return time.monotonic()

    def _use(self, link: BlockingTransport) -> None:
        self._link = link
        self._core = link.core
        if self._beater is not None:
            self._beater.stop()
        if self._beats and self._core.heartbeat:
            self._beater = Beater(link, self._core.heartbeat)
            self._beater.start()

    # --- state ----------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether the connection can be used, as of the last read."""
        return self._error is None and not self._core.finished

    @property
    def blocked(self) -> bool:
        """Whether the broker blocks publishers (connection.blocked), as of the last read."""
        return self._core.blocked is not None

    # --- reading and writing --------------------------------------------------------------------

    def pump(self, timeout: float | None = 0.0) -> bool:
        """Write the output and read the input.

        Messages are passed to their consumers, or to their sink. Heartbeats are answered.

        Args:
            timeout: maximum seconds to wait for input; None waits without limit.

        Returns:
            True if there was input.

        Raises:
            AMQPError: the connection ended, or the subscription of a sink did.
        """
        self._drop_abandoned()
        # It may have ended while a call waited: then no more input arrives.
        self._sinks_go_on()
        came = self._link.pump(timeout)
        if self._core.finished:
            self._over()
        self._sinks_go_on()
        return came

    def _sinks_go_on(self) -> None:
        """Raise the error that ended the subscription of a sink."""
        for channel in self.channels.values():
            for inbox in channel.sinks:
                if inbox.error is not None:
                    raise inbox.error.with_traceback(None)

    def flush(self) -> None:
        """Write all buffered output."""
        self._link.flush()

    def flush_some(self) -> None:
        """Write the output if it is large enough."""
        if self._core.out.size >= CLIENT_WRITE_BYTES:
            self._link.flush()

    def usable(self) -> None:
        """Recover if the connection was lost; raise if it is closed."""
        self._link.check_free()
        self._drop_abandoned()
        if self._core.finished or self._error is not None:
            self._over()

    def finish(self, call: Call[T]) -> T:
        """Wait for the answer of a call.

        Raises:
            CallTimeout: it did not arrive in time; a later answer is dropped.
        """
        until = None if self._call_timeout is None else time.monotonic() + self._call_timeout
        written = self._link.flush(until)
        while not call.done or not written:
            remaining = None if until is None else until - time.monotonic()
            if not written or (remaining is not None and remaining <= 0):
                raise CallTimeout(f"no answer from {self.url.address} in {self._call_timeout:g} s")
            self._link.pump(remaining)
            if self._core.finished and not call.done:
                # After a recovery only a publish that is sent again is still pending.
                self._over()
        return call.value()

    def finish_end(self, call: Call[Any]) -> bool:
        """Wait for the answer to a cancel, a close or a rollback, as `finish`.

        Returns:
            True: what keeps this call from waiting without end is `call_timeout`.
        """
        self.finish(call)
        return True

    def _drop_abandoned(self) -> None:
        """Cancel the consumers that the program dropped without cancelling them."""
        while self.abandoned:
            channel, inbox, tag = self.abandoned.pop()
            inbox.finish(None)
            channel.requeue_inbox(inbox)
            channel.core.abandon(tag)
            self.forget_consumer(channel.number, tag)

    # --- the end and recovery -------------------------------------------------------------------

    def _over(self) -> None:
        """Recover from the end of the connection, or raise its error."""
        if self._error is None:
            error = self._core.error or ConnectionLost("the connection ended")
            if self.survives(error):
                self._recover(error)
                return
            self._end(error)
        assert self._error is not None, "the connection ended without a reason"
        raise self._error.with_traceback(None)

    def _end(self, error: AMQPError) -> None:
        self._error = error
        self._reports.ended(error)
        if self._beater is not None:
            self._beater.stop()
        for channel in list(self.channels.values()):
            channel.ended(error)

    def _recover(self, cause: AMQPError) -> None:
        """Try to reconnect until it succeeds, or until the recovery gives up."""
        assert self._recovery is not None, "recovery was not asked for"
        backoff = Backoff(self._recovery, self._rng)
        backoff.error = cause
        self.recovering = True
        self._reports.lost(cause)
        try:
            reopened = self._reopen(backoff)
        finally:
            self.recovering = False
        if not reopened:
            given_up = backoff.given_up()
            self._end(given_up)
            raise given_up

    def close(self) -> None:
        """Close the connection gracefully."""
        self._closing = True
        if self._error is None and not self._core.finished:
            self._link.answer(self._core.close(time.monotonic()))
        if self._error is None:
            self._end(self._core.error or ClientClosed("the connection was closed"))
        self._link.abort()

    def abort(self) -> None:
        """Close the socket at once, without connection.close: for a broker that does not answer."""
        self._closing = True
        if self._error is None:
            self._end(self._core.error or ClientClosed("the connection was closed"))
        self._link.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
