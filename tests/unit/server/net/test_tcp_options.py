"""Options of sockets: the connections of a broker have what its configuration says."""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Iterator

import pytest

from tests.running import running_broker
from tests.unit.server.listening import talk

_PIDFD_GETFD = 438
"""The system call that copies a file descriptor of another process: pidfd_getfd(2)."""


def sockets_of(pid: int) -> Iterator[socket.socket]:
    """Yield copies of the sockets of a process."""
    system = ctypes.CDLL(None, use_errno=True)
    process = os.pidfd_open(pid)
    for number in os.listdir(f"/proc/{pid}/fd"):
        copied = system.syscall(_PIDFD_GETFD, process, int(number), 0)
        if copied >= 0 and os.readlink(f"/proc/self/fd/{copied}").startswith("socket:"):
            with socket.socket(fileno=copied) as found:
                yield found
        elif copied >= 0:
            os.close(copied)
    os.close(process)


def served(pid: int, port: int, peer: tuple[str, int], option: tuple[int, int]) -> int:
    """Return an option of the broker's end of a connection."""
    for each in sockets_of(pid):
        if each.family != socket.AF_UNIX and each.getsockname()[1] == port:
            try:
                if each.getpeername()[1] == peer[1]:
                    return each.getsockopt(*option)
            except OSError:
                continue  # it listens
    raise AssertionError("the broker has no such connection")


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_connections_have_the_options_that_are_configured(loop: str) -> None:
    flags = ("--tcp-keepalive", "true", "--tcp-nodelay", "false", "--tcp-receive-buffer-bytes")
    sizes = ("40000", "--tcp-send-buffer-bytes", "50000", "--tcp-backlog", "7", "--loop", loop)
    with running_broker(*flags, *sizes) as broker:
        talker = talk(broker.port)
        peer = talker.sock.getsockname()
        pid, port = broker.process.pid, broker.port
        assert served(pid, port, peer, (socket.SOL_SOCKET, socket.SO_KEEPALIVE)) == 1
        assert served(pid, port, peer, (socket.IPPROTO_TCP, socket.TCP_NODELAY)) == 0
        # Linux doubles what is asked for, for its own accounts.
        assert served(pid, port, peer, (socket.SOL_SOCKET, socket.SO_RCVBUF)) == 80_000
        assert served(pid, port, peer, (socket.SOL_SOCKET, socket.SO_SNDBUF)) == 100_000


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_output_is_sent_at_once_unless_the_configuration_says_no(loop: str) -> None:
    with running_broker("--loop", loop) as broker:
        talker = talk(broker.port)
        peer = talker.sock.getsockname()
        option = (socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert served(broker.process.pid, broker.port, peer, option) == 1
        option = (socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert served(broker.process.pid, broker.port, peer, option) == 0
