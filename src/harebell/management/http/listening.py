"""Run an ASGI application with uvicorn's protocol in the broker's own event loop.

The packages are imported for the first client: most brokers that have just started have none.

uvicorn's `Server` installs signal handlers, wakes up ten times a second to update a header, and
counts connections after their TLS handshake. So sockets are accepted here, as those of AMQP are,
and their connections are `GuardedConnection`s (`harebell.management.http.protocol`). The
application sets the header `date` itself.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import ssl
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from harebell.management.limits import HTTP_HEAD_BYTES, HTTP_SHUTDOWN_SECONDS
from harebell.server.net.acceptor import IPV4_IN_IPV6, Acceptor, bound
from harebell.server.net.hellos import Hellos
from harebell.server.net.listen_address import ListenAddress
from harebell.server.net.tls import StartError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Coroutine

    from uvicorn.server import ServerState

    from harebell.management.http.connections import HttpConnections
    from harebell.management.http.protocol import GuardedConnection

PACKAGES = ("uvicorn", "h11")
PARTS = (
    *("logging.config", "shutil", "multiprocessing.connection", "http", "configparser"),
    *("h11", "uvicorn", "uvicorn.protocols.http.h11_impl", "harebell.management.http.protocol"),
)
"""What is imported for the first client, in this order."""
INSTALL = "pip install uvicorn"


def is_installed() -> bool:
    """True if the packages for HTTP are installed; nothing is imported."""
    return all(find_spec(name) is not None for name in PACKAGES)


class HttpListener:
    """One address that serves an ASGI application.

    Args:
        address: the address that was configured.
        sockets: the listening sockets.
        application: what answers the requests.
        connections: those of the port.
        tls: returns the current TLS context; None for plain HTTP.

    Attributes:
        scheme: "http" or "https".
        host: the address bound to.
        port: the port bound to.
        address, application, connections: as given.
    """

    def __init__(
        self,
        address: ListenAddress,
        sockets: list[socket.socket],
        application: Any,
        connections: HttpConnections,
        tls: Callable[[], ssl.SSLContext] | None,
    ) -> None:
        self.address = address
        self.scheme = address.scheme
        self.host, self.port = sockets[0].getsockname()[:2]
        self.application = application
        self.connections = connections
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._state: ServerState | None = None
        self._early: list[socket.socket] = []
        self._paused = False
        self._log = _log_to(connections)
        self._hellos = Hellos()
        self._beginning: set[asyncio.Task[None]] = set()
        self._acceptor = Acceptor(self._loop, sockets, self._accepted)

    @property
    def sockets(self) -> list[socket.socket]:
        """Return the listening sockets."""
        return self._acceptor.sockets

    @property
    def shown(self) -> str:
        """Return the address as a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    async def close(self) -> None:
        """Stop listening, and end the connections; answers that are being sent are cut."""
        self._acceptor.close()
        await self._end()

    async def pause(self) -> None:
        """Accept no client, and end the connections; the sockets stay."""
        self._paused = True
        self._acceptor.pause(paused=True)
        await self._end()

    def go_on(self) -> None:
        """Accept clients again, after a pause."""
        self._paused = False
        self._acceptor.pause(paused=False)

    async def _end(self) -> None:
        state = self._state
        if state is not None:
            for each in list(state.connections):
                each.shutdown()
            if state.tasks:
                await asyncio.wait(state.tasks, timeout=HTTP_SHUTDOWN_SECONDS)
        for task in [*(() if state is None else state.tasks), *self._beginning]:
            task.cancel()
        if state is not None:
            for each in list(state.connections):
                each.transport.abort()
        await asyncio.sleep(0)

    async def _prepare(self) -> None:
        """Import uvicorn for the first client, a part in each turn; the others wait for it."""
        self._acceptor.pause(paused=True)
        try:
            for name in PARTS:
                import_module(name)
                await asyncio.sleep(0)
            from uvicorn import Config
            from uvicorn.server import ServerState

            self._config = Config(
                self.application,
                loop="none",
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=False,
                h11_max_incomplete_event_size=HTTP_HEAD_BYTES,
            )
            self._config.load()
            self._state = ServerState()
        finally:
            early, self._early = self._early, []
            for sock in early:
                if self._state is None:
                    sock.close()
                else:
                    self._accepted(sock)
            self._acceptor.pause(paused=self._paused)

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)

    def _accepted(self, sock: socket.socket) -> None:
        """Serve a socket that was accepted, if there is room for it."""
        if self._state is None:
            self._early.append(sock)
            if len(self._early) == 1:
                self._start_task(self._prepare())
            return
        from harebell.management.http.protocol import GuardedConnection

        try:
            address = sock.getpeername()[0].removeprefix(IPV4_IN_IPV6)
        except OSError:
            sock.close()
            return
        connections = self.connections
        if not connections.admits(address):
            sock.close()
            return
        made = GuardedConnection(self._config, self._state, connections, sock, address, self._log)
        connections.add(made, address)
        self._start_task(self._begin(made, sock, address))

    async def _begin(self, made: GuardedConnection, sock: socket.socket, address: str) -> None:
        """Begin a connection, with the TLS handshake if there is one."""
        from harebell.management.http.protocol import Reading

        seconds = None if self._tls is None else self.connections.request_seconds
        try:
            if self._tls is not None:
                await asyncio.wait_for(self._hellos.turn(sock, address), seconds)
            await self._loop.connect_accepted_socket(
                lambda: Reading(made),
                sock,
                ssl=None if self._tls is None else self._tls(),
                ssl_handshake_timeout=seconds,
                ssl_shutdown_timeout=seconds,
            )
        except OSError:
            # No TLS, or not in time.
            sock.close()
            self.connections.remove(made.number)
        except asyncio.CancelledError:
            self.connections.remove(made.number)
            sock.close()
            raise


class _Lines(logging.Handler):
    """Passes uvicorn's lines to the broker's log: clients cause them, and one line is enough.

    Args:
        report: takes a level and a line.
    """

    def __init__(self, report: Callable[[str, str], None]) -> None:
        super().__init__()
        self._report = report

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        failure = record.exc_info[1] if record.exc_info else None
        lost = failure is None or isinstance(failure, OSError | asyncio.CancelledError)
        text = record.getMessage().strip() + ("" if failure is None else f": {failure!r}")
        self._report("info" if lost else "error", f"HTTP: {text}")


def _log_to(connections: HttpConnections) -> logging.Logger:
    """Return a logger that writes to the broker's log."""
    log = logging.Logger("harebell.http", logging.INFO)
    log.addHandler(_Lines(connections.report))
    return log


async def bound_for(host: str, port: int, key: str) -> list[socket.socket]:
    """Return sockets that listen on an address for HTTP.

    Raises:
        StartError: the address cannot be bound; the text names the key.
    """
    try:
        return await bound(asyncio.get_running_loop(), host, port)
    except OSError as error:
        raise StartError(_why_not(host, port, key, error)) from None


async def open_listener(
    app: Any,
    host: str,
    port: int,
    key: str,
    connections: HttpConnections,
    tls: Callable[[], ssl.SSLContext] | None = None,
    sockets: list[socket.socket] | None = None,
) -> HttpListener:
    """Serve an ASGI application on an address.

    Args:
        app: the application.
        host: the address to listen on.
        port: the port to listen on.
        key: the configuration key of the port, for errors.
        connections: counts those of the address.
        tls: returns the current TLS context; None for plain HTTP.
        sockets: that listen there already; None if they have to be made.

    Raises:
        StartError: the address cannot be bound; the text names the key.
    """
    sockets = sockets or await bound_for(host, port, key)
    address = ListenAddress("http" if tls is None else "https", host, port)
    return HttpListener(address, sockets, app, connections, tls)


def _why_not(host: str, port: int, key: str, error: OSError) -> str:
    where = f"{key}: {host}:{port}"
    if error.errno == errno.EADDRINUSE:
        return (
            f"{where} is in use already: stop what listens there, or set {key} to another port "
            "(0 for none)"
        )
    if error.errno == errno.EACCES:
        return f"{where} needs more rights: set {key} to a port above 1023"
    return f"{where} cannot be listened on: {error.strerror or error}"
