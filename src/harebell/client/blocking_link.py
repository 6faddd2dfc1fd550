"""One socket for the blocking API: octets to and from the core, in the caller's thread.

The socket never blocks; waiting happens in `poll`, with a time limit that leaves room for
heartbeats. While there is something to write that the broker does not take, we read, so that two
full buffers cannot wait for each other.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time

from harebell.base.limits import READ_BUFFER_BYTES
from harebell.client import tls
from harebell.client.core import Connection as Core
from harebell.client.errors import ConnectionFailed, ConnectTimeout
from harebell.client.url import URL

_BEATS = 3
_STOP_SECONDS = 2.0
_WAIT_SECONDS = 0.5
_WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


def _connect(url: URL) -> socket.socket:
    """A connected socket, encrypted if the address says so.

    Raises:
        ConnectionFailed: with the address and the reason.
    """
    # Settings that cannot work should fail before anything is sent.
    context = tls.client_context(url) if url.tls else None
    plain: socket.socket | None = None
    try:
        plain = socket.create_connection((url.host, url.port), timeout=url.connection_timeout)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is None:
            return plain
        return context.wrap_socket(plain, server_hostname=tls.server_name(url))
    except TimeoutError:
        _close(plain)
        seconds = url.connection_timeout
        raise ConnectTimeout(f"{url.address} did not answer in {seconds:g} seconds") from None
    except ssl.SSLError as error:
        _close(plain)
        raise tls.explain(url, error) from error
    except OSError as error:
        _close(plain)
        raise ConnectionFailed(f"cannot connect to {url.address}: {error}") from error


def _close(plain: socket.socket | None) -> None:
    if plain is not None:
        plain.close()


class Link:
    """A socket around a core.

    Args:
        core: the connection's state.
        url: where to connect to.
    """

    def __init__(self, core: Core, url: URL) -> None:
        self.core = core
        self._socket = _connect(url)
        self._socket.setblocking(False)
        self._buffer = bytearray(READ_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._unsent = memoryview(b"")
        self._open = True
        self._poll = select.poll()
        self._number = self._socket.fileno()
        self._interest = 0
        # Held for single system calls, never while waiting: the heartbeat thread writes too.
        self._lock = threading.Lock()

    # --- for the API ----------------------------------------------------------------------------

    def flush(self, until: float | None = None) -> bool:
        """Write everything; reads if the broker has to be emptied first.

        Args:
            until: when to give up, on the monotonic clock.

        Returns:
            Whether everything was written, or the connection ended.
        """
        while self._write() and not self.core.finished:
            if until is not None and time.monotonic() >= until:
                return False
            self._wait(until, writing=True)
        self._finish_if_over()
        return True

    def pump(self, timeout: float | None) -> bool:
        """Write everything, then read what there is, waiting for it.

        Args:
            timeout: most seconds to wait; None waits until something comes.

        Returns:
            Whether something came or the connection ended.
        """
        until = None if timeout is None else time.monotonic() + timeout
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

    def beat(self) -> None:
        """Send a heartbeat unless the other thread is writing (any octet counts for one)."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            if self._open and not self._unsent:
                frame = self.core.heartbeat_frame
                sent = self._socket.send(frame)
                self._unsent = memoryview(frame[sent:])
        except OSError:
            # The connection is broken or full; the thread that owns it will see for itself.
            pass
        finally:
            self._lock.release()

    def abort(self) -> None:
        """Close the socket at once."""
        with self._lock:
            if self._open:
                self._open = False
                self._poll.unregister(self._number) if self._interest else None
                self._socket.close()

    # --- inside ---------------------------------------------------------------------------------

    def _write(self) -> bool:
        """Write what the socket takes; True when there is more."""
        while self._open:
            if not self._unsent:
                data = self.core.take_output()
                if not data:
                    return False
                self._unsent = memoryview(data)
            try:
                with self._lock:
                    sent = self._socket.send(self._unsent)
            except _WOULD_BLOCK:
                return True
            except OSError as error:
                self._broken(error)
                return False
            self._unsent = self._unsent[sent:]
        return False

    def _wait(self, until: float | None, *, writing: bool) -> bool:
        """Wait for the socket or the core's next tick; True when something was read."""
        events = select.POLLIN | (select.POLLOUT if writing else 0)
        if events != self._interest:
            self._poll.register(self._number, events)
            self._interest = events
        now = time.monotonic()
        waits = [at - now for at in (until, self.core.wake_at()) if at is not None]
        pending = isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0
        # A signal that comes just before the wait is only seen after it, so no wait is long. One
        # millisecond more, so that what was waited for is due afterwards.
        limit = 0 if pending else max(0.0, min([*waits, _WAIT_SECONDS])) * 1000 + 1
        if until is not None and until <= now:
            limit = 0
        found = self._poll.poll(limit)
        read = False
        if pending or any(event & ~select.POLLOUT for _, event in found):
            read = self._read()
        # What has arrived counts before time is looked at: the program may have slept.
        self.core.tick(time.monotonic())
        return read

    def _read(self) -> bool:
        """Read once, as much as the buffer takes; True when something came or it was the end."""
        used = 0
        try:
            while used < READ_BUFFER_BYTES:
                with self._lock:
                    got = self._socket.recv_into(self._view[used:])
                if got == 0:
                    self._receive(used)
                    self.core.eof()
                    return True
                used += got
                if not isinstance(self._socket, ssl.SSLSocket):
                    break
        except _WOULD_BLOCK:
            pass
        except OSError as error:
            self._receive(used)
            self._broken(error)
            return True
        self._receive(used)
        return used > 0

    def _receive(self, used: int) -> None:
        if used:
            self.core.receive(self._view[:used], time.monotonic())

    def _broken(self, error: OSError) -> None:
        # What the broker said before it hung up is often the reason: read it first.
        self.core.eof(f"the connection broke: {error}")

    def _finish_if_over(self) -> None:
        if self.core.finished and self._open:
            self.abort()


def dial(core: Core, url: URL) -> Link:
    """Connect and shake hands.

    Raises:
        ConnectionFailed: with the address and the reason.
    """
    link = Link(core, url)
    try:
        while not core.opened.done:
            link.pump(None)
        core.opened.value()
    except BaseException:
        link.abort()
        raise
    return link


class Beater(threading.Thread):
    """Sends heartbeats while the program is busy with other things than this connection.

    Args:
        link: the socket.
        interval: the heartbeat interval, in seconds.
    """

    def __init__(self, link: Link, interval: float) -> None:
        super().__init__(name="harebell-heartbeat", daemon=True)
        self._link = link
        self._interval = interval / _BEATS
        self._over = threading.Event()

    def run(self) -> None:
        """Beat until stopped."""
        while not self._over.wait(self._interval):
            self._link.beat()

    def stop(self) -> None:
        """End the thread; it does nothing that takes long."""
        self._over.set()
        self.join(_STOP_SECONDS)
