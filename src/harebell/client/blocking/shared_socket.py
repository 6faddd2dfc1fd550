"""The socket of the blocking API, and all other state that its two threads share.

The thread that calls the connection reads and writes; the heartbeat thread only writes. One lock
covers the socket, the bytes that are not written yet, and moving the core's output to them.
Otherwise a heartbeat could be written between bytes taken from the core and not yet written.
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
        """Write the remaining bytes, then what `take` returns, until both are empty.

        Returns:
            True if the socket accepts no more now.

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
        """Send a heartbeat, or write remaining bytes: any byte counts as a heartbeat."""
        with self._lock:
            if not self._open:
                return
            if not self._unsent:
                # Kept until it is written. TLS continues the record that it has begun, other bytes
                # in its place would be lost (SSL_write(3), SSL_ERROR_WANT_WRITE).
                self._unsent = memoryview(self._heartbeat)
            try:
                self._send()
            except OSError:
                # The next call of the connection's own thread reports it.
                return

    def _send(self) -> bool:
        """Write once, with the lock held; False if the socket accepts nothing now."""
        try:
            sent = self._socket.send(self._unsent)
        except _WOULD_BLOCK:
            return False
        self._unsent = self._unsent[sent:]
        return True

    def read_into(self, view: memoryview) -> tuple[int, bool]:
        """Read once, up to the size of the buffer.

        Returns:
            The number of bytes read, and whether the input has ended after them.

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
                # The input before the error is often its reason; the next read fails again.
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
        """True if TLS has buffered input, which `poll` does not see."""
        if not self._encrypted:
            return False
        assert isinstance(self._socket, ssl.SSLSocket), "an encrypted socket"
        with self._lock:
            return self._socket.pending() > 0

    def close(self) -> None:
        """Close the socket at once; the lock prevents a heartbeat to a reused file descriptor."""
        with self._lock:
            self._open = False
            self._socket.close()
