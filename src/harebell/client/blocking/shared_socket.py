"""The socket of the blocking API, and everything else that its two threads touch.

The thread that calls the connection reads and writes; the heartbeat thread only writes. One lock
covers the socket, the octets that are still to be written, and the step from the core's output to
them. Outside it a heartbeat could replace octets that were taken from the core and not yet written.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable

_WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class SharedSocket:
    """A socket that never blocks, safe for two threads. The lock is held for system calls only.

    Args:
        connected: the socket.
        heartbeat: the frame that `beat` sends.
    """

    def __init__(self, connected: socket.socket, heartbeat: bytes) -> None:
        connected.setblocking(False)
        self.number = connected.fileno()
        self._socket = connected
        self._heartbeat = heartbeat
        self._encrypted = isinstance(connected, ssl.SSLSocket)
        self._lock = threading.Lock()
        self._unsent = memoryview(b"")
        self._open = True

    def write(self, take: Callable[[], bytes]) -> bool:
        """Write what is left, then what `take` gives, until both are empty.

        Returns:
            Whether there is more than the socket takes now.

        Raises:
            OSError: the connection is broken.
        """
        with self._lock:
            while self._open:
                if not self._unsent:
                    self._unsent = memoryview(take())
                    if not self._unsent:
                        return False
                if not self._send():
                    return True
            return False

    def beat(self) -> None:
        """Send a heartbeat, or go on with what is left: any octet counts for one."""
        with self._lock:
            if not self._open:
                return
            if not self._unsent:
                # Kept until it is written. TLS goes on with the record that it has begun, so
                # other octets in its place would be lost (SSL_write(3), SSL_ERROR_WANT_WRITE).
                self._unsent = memoryview(self._heartbeat)
            try:
                self._send()
            except OSError:
                # The thread that owns the connection finds it broken with its next call.
                return

    def _send(self) -> bool:
        """Write once, with the lock held; False when the socket takes nothing now."""
        try:
            sent = self._socket.send(self._unsent)
        except _WOULD_BLOCK:
            return False
        self._unsent = self._unsent[sent:]
        return True

    def read_into(self, view: memoryview) -> tuple[int, bool]:
        """Read once, as much as fits.

        Returns:
            How many octets came, and whether the input has ended after them.

        Raises:
            OSError: the connection is broken.
        """
        used = 0
        while used < len(view):
            try:
                with self._lock:
                    got = self._socket.recv_into(view[used:])
            except _WOULD_BLOCK:
                break
            except OSError:
                # What came before it is often the reason; the next read fails again.
                if used:
                    break
                raise
            if got == 0:
                return used, True
            used += got
            if not self._encrypted:
                break
        return used, False

    def has_pending(self) -> bool:
        """Whether TLS has read octets from the socket that are not taken: `poll` ignores them."""
        if not self._encrypted:
            return False
        assert isinstance(self._socket, ssl.SSLSocket), "an encrypted socket"
        with self._lock:
            return self._socket.pending() > 0

    def close(self) -> None:
        """Close the socket at once; a heartbeat never goes to whatever gets its number next."""
        with self._lock:
            self._open = False
            self._socket.close()
