"""One socket for the blocking API: bytes to and from the core, in the caller's thread.

The socket is non-blocking; waiting happens in `poll`, with a time limit that leaves room for
heartbeats. While the broker does not read our output, we read its output, so that two full
buffers cannot deadlock.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any

from harebell.base.heap import read_buffer
from harebell.base.limits import READ_BUFFER_BYTES
from harebell.client import tls
from harebell.client.blocking.shared_socket import SharedSocket
from harebell.client.errors import ConcurrentUse
from harebell.client.protocol.call import Call
from harebell.client.protocol.v09.core import CoreConnection as Core
from harebell.client.url import URL

Alarm = tuple[int, Callable[[], None]]

_BEATS = 3
_STOP_SECONDS = 2.0
_WAIT_SECONDS = 0.5


def _connect(url: URL, context: ssl.SSLContext | None) -> socket.socket:
    """Return a connected socket, encrypted if the address says so.

    Raises:
        ConnectionFailed: it failed; the text has the address and the reason.
    """
    if url.descriptor is not None:
        return socket.socket(fileno=url.descriptor)
    with tls.dialling(url):
        plain = socket.create_connection((url.host, url.port), timeout=url.connection_timeout)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is None:
                return plain
            return context.wrap_socket(plain, server_hostname=tls.server_name(url))
        except OSError:
            plain.close()
            raise


class BlockingTransport:
    """A socket around a core.

    Args:
        core: the connection's state.
        url: the address to connect to.
        context: TLS settings; None without TLS.
    """

    def __init__(self, core: Core, url: URL, context: ssl.SSLContext | None = None) -> None:
        self.core = core
        self._socket = SharedSocket(_connect(url, context), core.heartbeat_frame)
        self._entrance = threading.RLock()
        self._view = read_buffer(READ_BUFFER_BYTES)
        self._open = True
        self._poll = select.poll()
        self._interest = 0
        self._alarm: Alarm | None = None

    # --- for the API ----------------------------------------------------------------------------

    def flush(self, until: float | None = None) -> bool:
        """Write everything; read if the broker must write first.

        Args:
            until: deadline, on the monotonic clock.

        Returns:
            True if everything was written, or the connection ended.
        """
        if not self._entrance.acquire(blocking=False):
            raise _used_twice()
        try:
            while self._write() and not self.core.finished:
                if until is not None and time.monotonic() >= until:
                    return False
                self._wait(until, writing=True)
            self._finish_if_over()
            return True
        finally:
            self._entrance.release()

    def pump(self, timeout: float | None) -> bool:
        """Write everything, then wait for input and read it.

        Args:
            timeout: maximum seconds to wait; None waits without limit.

        Returns:
            True if there was input, the connection ended, or the alarm has rung.
        """
        until = None if timeout is None else time.monotonic() + timeout
        if not self._entrance.acquire(blocking=False):
            raise _used_twice()
        try:
            while not self.core.finished:
                written = self.flush(until)
                if self.core.finished:
                    break
                if self._wait(until, writing=not written):
                    self.flush(until)
                    return True
                if until is not None and time.monotonic() >= until:
                    return False
            self._finish_if_over()
            return True
        finally:
            self._entrance.release()

    def listen(self, alarm: Alarm | None) -> None:
        """Wake from waits for the socket also when a file descriptor can be read.

        Args:
            alarm: its number, and what to call then; None for no file descriptor.
        """
        if self._alarm is not None:
            self._poll.unregister(self._alarm[0])
        self._alarm = alarm
        if alarm is not None:
            self._poll.register(alarm[0], select.POLLIN)

    def answer(self, call: Call[Any]) -> None:
        """Read until a call is done, on a connection that no channel uses now."""
        while not call.done:
            self.pump(None)

    def check_free(self) -> None:
        """Check that no other thread reads or writes now.

        Raises:
            ConcurrentUse: another thread does.
        """
        if not self._entrance.acquire(blocking=False):
            raise _used_twice()
        self._entrance.release()

    def beat(self) -> None:
        """Send a heartbeat; the only method that may be called from another thread."""
        self._socket.beat()

    def abort(self) -> None:
        """Close the socket at once."""
        if self._open:
            self._open = False
            if self._interest:
                self._poll.unregister(self._socket.number)
            self._socket.close()

    # --- inside ---------------------------------------------------------------------------------

    def _write(self) -> bool:
        """Write what the socket accepts; True if more is left."""
        try:
            return self._socket.write(self.core.take_output)
        except OSError as error:
            self._broken(error)
            return False

    def _wait(self, until: float | None, *, writing: bool) -> bool:
        """Wait for the socket, the alarm or the core's next tick; False after a tick."""
        events = select.POLLIN | (select.POLLOUT if writing else 0)
        if events != self._interest:
            self._poll.register(self._socket.number, events)
            self._interest = events
        now = time.monotonic()
        waits = [due - now for due in (until, self.core.wake_at()) if due is not None]
        pending = self._socket.has_pending()
        # A signal just before the wait is handled only after it, so waits are short. One
        # millisecond is added, so that the timer is due after the wait.
        limit = 0 if pending else max(0.0, min([*waits, _WAIT_SECONDS])) * 1000 + 1
        if until is not None and until <= now:
            limit = 0
        ready = self._poll.poll(limit)
        rung = False
        if self._alarm is not None:
            rung = any(number == self._alarm[0] for number, _ in ready)
            ready = [each for each in ready if each[0] != self._alarm[0]]
        read = False
        if pending or any(event & ~select.POLLOUT for _, event in ready):
            read = self._read()
        # Read before checking the time: the process may have been suspended.
        self.core.tick(time.monotonic())
        if rung and self._alarm is not None:
            self._alarm[1]()
        return read or rung

    def _read(self) -> bool:
        """Read once, up to the size of the buffer; True if there was input or its end."""
        try:
            used, ended = self._socket.read_into(self._view)
        except OSError as error:
            self._broken(error)
            return True
        self._receive(used)
        if ended:
            self.core.eof()
        return ended or used > 0

    def _receive(self, used: int) -> None:
        if used:
            self.core.receive(self._view[:used], time.monotonic())

    def _broken(self, error: OSError) -> None:
        # The broker's last input before the end is often the reason: read it first.
        self.core.eof(f"the connection broke: {error}")

    def _finish_if_over(self) -> None:
        if self.core.finished and self._open:
            self.abort()


def _used_twice() -> ConcurrentUse:
    return ConcurrentUse(
        "another thread is using this connection now: a blocking connection belongs to one thread "
        "at a time, so give each thread one of its own, or a lock to all of them"
    )


def dial(core: Core, url: URL, given: ssl.SSLContext | None) -> BlockingTransport:
    """Open the socket and run the handshake.

    Args:
        core: the state of the new connection.
        url: the address.
        given: TLS settings, instead of those of the address.

    Raises:
        ConnectionFailed: it failed; the text has the address and the reason.
    """
    # Invalid settings fail before anything is sent.
    link = BlockingTransport(core, url, tls.chosen_context(url, given))
    try:
        link.answer(core.opened)
        core.opened.value()
    except BaseException:
        link.abort()
        raise
    return link


class Beater(threading.Thread):
    """Send heartbeats in a thread while the program makes no calls.

    Args:
        link: the socket.
        interval: the heartbeat interval, in seconds.
    """

    def __init__(self, link: BlockingTransport, interval: float) -> None:
        super().__init__(name="harebell-heartbeat", daemon=True)
        self._link = link
        self._interval = interval / _BEATS
        self._over = threading.Event()

    def run(self) -> None:
        """Send heartbeats until stopped."""
        while not self._over.wait(self._interval):
            self._link.beat()

    def stop(self) -> None:
        """Stop the thread; it ends soon."""
        self._over.set()
        self.join(_STOP_SECONDS)
