"""Connections of the blocking API: how a call reads, and how a connection is lost and ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from harebell.client.blocking.channel import Channel
from harebell.client.blocking.driver import BlockingClosing, BlockingShell, run
from harebell.client.blocking.requests import Requester
from harebell.client.blocking.transport import Alarm, Beater, BlockingTransport, dial
from harebell.client.errors import AMQPError, CallTimeout, ClientClosed, ConnectionLost
from harebell.client.limits import CLIENT_WRITE_BYTES
from harebell.client.options import Options
from harebell.client.protocol import waits
from harebell.client.protocol.call import Call
from harebell.client.protocol.shared_connection import SharedConnection
from harebell.client.protocol.waits import Ending, Restored, Sleep, Until

T = TypeVar("T")


class Connection(SharedConnection[Channel, Requester], BlockingClosing, BlockingShell):
    """A connection to a broker. Get one from `connect`."""

    _channel_type = Channel
    _requester_type = Requester

    def __init__(
        self, *given: *Options, call_timeout: float | None, background_heartbeats: bool
    ) -> None:
        super().__init__("blocking", *given)
        self._alarm: Alarm | None = None
        self._abandoned: list[Callable[[], None]] = []
        self._call_timeout = call_timeout
        self._beats = background_heartbeats
        self._beater: Beater | None = None
        run(self, self._opened())

    def _use(self, link: BlockingTransport) -> None:
        self._link = link
        self._core = link.core
        link.core.on_blocked = self._blocked
        link.listen(self._alarm)
        self._blocked(link.core.blocked)
        if self._beater is not None:
            self._beater.stop()
        if self._beats and self._core.beat_seconds:
            self._beater = Beater(link, self._core.beat_seconds)
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

    def check_thread(self) -> None:
        """Do nothing: a connection belongs to one thread at a time, and reading checks it."""

    # --- waits ----------------------------------------------------------------------------------

    def answer(self, wait: Any) -> Any:
        """Wait as a method asks for (`waits`)."""
        match wait:
            case Call():
                return self.finish(wait)
            case Until():
                return self._until(wait.call, wait.seconds)
            case Ending():
                return self.finish_end(wait.call)
            case waits.USABLE | waits.RECOVERED:
                self.usable()
            case waits.FLUSH | waits.WRITE:
                self.flush()
            case waits.TURN:
                self.pump(0)
            case waits.ROOM:
                pass  # A call that writes waits for the socket.
            case waits.NOW:
                return time.monotonic()
            case Sleep():
                time.sleep(wait.seconds)
            case Restored():
                assert isinstance(wait.link, BlockingTransport), "a link of this API"
                wait.link.answer(wait.call)
            case waits.DIAL:
                return dial(self._new_core(time.monotonic()), self.url, self._ssl_context)
            case _:
                raise TypeError("an asynchronous iterable is for the asyncio API")
        return None

    def _until(self, call: Call[Any], seconds: float | None) -> bool:
        until = None if seconds is None else time.monotonic() + seconds
        remaining: float | None = None
        while not call.done and remaining != 0:
            remaining = None if until is None else max(0.0, until - time.monotonic())
            # Also without time left: the output is written, and what has arrived is read. The
            # process may have been suspended, and what arrived meanwhile is in time.
            self.pump(remaining)
        return call.done

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

    @contextmanager
    def listening(self, number: int, action: Callable[[], None]) -> Iterator[None]:
        """Wake from waits also when a file descriptor can be read, and call a function then."""
        before, self._alarm = self._alarm, (number, action)
        self._link.listen(self._alarm)
        try:
            yield
        finally:
            self._alarm = before
            self._link.listen(before)

    def _sinks_go_on(self) -> None:
        """Raise the error that ended the subscription of a sink."""
        for channel in self.channels.values():
            for inbox in channel.sinks:
                if inbox.error is not None:
                    raise inbox.error.with_traceback(None)

    def flush(self) -> None:
        """Write all buffered output."""
        self._link.flush()

    def touch(self) -> None:
        """Write the output if it is large enough."""
        if self._core.out.size >= CLIENT_WRITE_BYTES:
            self._link.flush()

    def written(self) -> None:
        """Write all buffered output, as the end of a method."""
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
        """Wait for the answer to a cancel, a close or a rollback (`Ending`) as `finish` does."""
        self.finish(call)
        return True

    def later(self, action: Callable[[], None]) -> None:
        """Call a function with the next call, from any thread."""
        self._abandoned.append(action)

    def _drop_abandoned(self) -> None:
        """Cancel the consumers that the program dropped without cancelling them."""
        while self._abandoned:
            self._abandoned.pop()()

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
        if self._beater is not None:
            self._beater.stop()
        super()._end(error)

    def _recover(self, cause: AMQPError) -> None:
        """Try to reconnect until it succeeds, or until the recovery gives up."""
        backoff = self._lost(cause)
        try:
            reopened = run(self, self._reopened(backoff))
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
