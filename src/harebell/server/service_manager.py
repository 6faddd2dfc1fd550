"""Notify systemd that the broker is ready, reloads, stops and lives: the protocol of sd_notify(3).

systemd names a datagram socket in `NOTIFY_SOCKET`, and in `WATCHDOG_USEC` how long the broker may
be silent. Without these variables nothing is sent.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Mapping
from contextlib import suppress

_ADDRESS = "NOTIFY_SOCKET"
_INTERVAL = "WATCHDOG_USEC"
_PROCESS = "WATCHDOG_PID"
_US_PER_SECOND = 1_000_000
_NS_PER_US = 1_000
_SHARE = 3
"""How often the broker reports within the interval: a report may be late, or lost."""


class ServiceManager:
    """The connection to systemd.

    Args:
        environ: the environment variables.
        pid: the process number of the broker.
    """

    def __init__(self, environ: Mapping[str, str], pid: int) -> None:
        address = environ.get(_ADDRESS, "")
        # A name that begins with @ is in the abstract namespace.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._seconds = 0.0
        interval = environ.get(_INTERVAL, "")
        mine = environ.get(_PROCESS) in (None, "", str(pid))
        if address and mine and interval.isdigit():
            self._seconds = int(interval) / _US_PER_SECOND / _SHARE
        self._beating: asyncio.TimerHandle | None = None

    def ready(self, status: str) -> None:
        """The broker accepts connections, or has finished a reload.

        Args:
            status: a line for `systemctl status`.
        """
        self._send(f"READY=1\nSTATUS={status}")
        if self._seconds and self._beating is None:
            self._beat()

    def reloading(self) -> None:
        """The broker reads its configuration again; `ready` ends it."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // _NS_PER_US}")

    def stopping(self) -> None:
        """The broker closes its connections and ends; a report of life is not expected any more."""
        self._send("STOPPING=1\nSTATUS=stopping")

    def close(self) -> None:
        """Report no longer that the event loop runs."""
        if self._beating is not None:
            self._beating.cancel()

    def _beat(self) -> None:
        """Report from the event loop that it runs: one that hangs is restarted by systemd."""
        self._beating = asyncio.get_running_loop().call_later(self._seconds, self._beat)
        self._send("WATCHDOG=1")

    def _send(self, text: str) -> None:
        """Send a datagram; a service manager that does not listen is no reason to fail."""
        if not self._address:
            return
        with (
            suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock,
        ):
            sock.setblocking(False)
            sock.sendto(text.encode(), self._address)
