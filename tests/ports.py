"""TCP ports for brokers that have to be found at the same address again.

A port that the system picks is free only now: a moment later it may give the same one to somebody
else, were it as the near end of a connection. These ports lie below those that the system picks
from, and a lock on a file keeps other processes of the tests from choosing the same one.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path

_FIRST = 15_000
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_DIRECTORY = Path(tempfile.gettempdir()) / f"harebell-test-ports-{os.getuid()}"
# The locks live as long as this process, and end with it however it ends.
_held: list[int] = []


def free_port() -> int:
    """A TCP port of loopback that nobody listens on, and that is this process's own from now on.

    Raises:
        RuntimeError: there is none.
    """
    _DIRECTORY.mkdir(mode=0o700, exist_ok=True)
    end = int(_RANGE.read_text().split()[0]) if _RANGE.exists() else 32_768
    ports = range(_FIRST, end)
    for port in random.sample(ports, len(ports)):
        if _is_ours(port):
            return port
    raise RuntimeError(f"no port from {_FIRST} to {end} is free")


def _is_ours(port: int) -> bool:
    lock = os.open(_DIRECTORY / str(port), os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
    except OSError:
        os.close(lock)
        return False
    _held.append(lock)
    return True
