"""Options of the sockets of AMQP, which connections have from the socket that accepts them."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, NamedTuple

from harebell.server.limits import BACKLOG_CONNECTIONS

if TYPE_CHECKING:
    from harebell.config import Config


class TcpOptions(NamedTuple):
    """Options of a listening socket.

    Args:
        backlog: most connections that wait to be accepted.
        keepalive: whether the system probes silent peers.
        send_buffer_bytes: size of the system's buffer of output; 0 for the system's choice.
        receive_buffer_bytes: size of the system's buffer of input; 0 for the system's choice.
    """

    backlog: int = BACKLOG_CONNECTIONS
    keepalive: bool = False
    send_buffer_bytes: int = 0
    receive_buffer_bytes: int = 0

    def set_on(self, listening: socket.socket) -> None:
        """Set the options on a socket that does not listen yet; what it accepts inherits them."""
        if self.keepalive:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self.send_buffer_bytes:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.send_buffer_bytes)
        if self.receive_buffer_bytes:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_buffer_bytes)


def options_of(config: Config) -> TcpOptions:
    """Return the options that are configured for AMQP."""
    return TcpOptions(
        config.tcp_backlog,
        config.tcp_keepalive,
        config.tcp_send_buffer_bytes,
        config.tcp_receive_buffer_bytes,
    )
