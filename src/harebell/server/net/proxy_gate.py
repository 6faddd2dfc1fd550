"""Accept connections of a load balancer, which begin with a PROXY header (`proxy_protocol`).

The header is read before the connection is created, because the connection has the address of the
client: it is shown, logged, limited, and compared with `loopback_users`. Until then a socket is
counted here.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

from harebell.server.net.connection import ServerProtocol
from harebell.server.net.proxy_header import ProxyHeaderError, read_proxy_header

if TYPE_CHECKING:
    from harebell.server.app import App
    from harebell.server.net.tls import ServerTls


class ProxyGate:
    """Reads the headers of one listener.

    Args:
        app: the broker process.
        tls: the TLS context of the listener; None for plain AMQP.
        dialect: the version that the header `AMQP 1 1 0 10` selects, as in `Peer`.
    """

    def __init__(self, app: App, tls: ServerTls | None, dialect: str) -> None:
        self._app = app
        self._tls = tls
        self._dialect = dialect
        self._reading: set[asyncio.Task[None]] = set()

    def accepted(self, link: socket.socket) -> None:
        """Begin with a new socket, or close it if too many wait for their headers."""
        app = self._app
        most = app.config.unauthenticated_connection_max or app.most_connections
        if len(self._reading) >= most or not app.has_room():
            link.close()
            return
        task = app.loop.create_task(self._serve(link))
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def _serve(self, link: socket.socket) -> None:
        app = self._app
        try:
            real = link.getpeername(), link.getsockname()
            async with asyncio.timeout(app.config.handshake_timeout_seconds):
                found = await read_proxy_header(app.loop, link)
            protocol = ServerProtocol(app, self._tls, self._dialect, found or real)
            if self._tls is not None:
                protocol.secure(link)
            else:
                await app.loop.connect_accepted_socket(lambda: protocol, link)
        except ProxyHeaderError as error:
            self._refuse(link, real[0], str(error))
        except TimeoutError:
            self._refuse(link, real[0], "it is not there in time")
        except OSError:
            # The peer has gone.
            link.close()
        except asyncio.CancelledError:
            link.close()
            raise

    def _refuse(self, link: socket.socket, address: tuple[str, int], why: str) -> None:
        self._app.logger.write(
            "warning",
            f"{address[0]}:{address[1]}: error when receiving the PROXY header: {why}",
            "connection",
        )
        link.close()
