"""HTTP requests to servers that decide about users, in threads.

A connection to a server is kept for the next request. A request that finds its kept connection
closed is sent once more on a new one.
"""

from __future__ import annotations

import asyncio
import http.client
import socket
import ssl
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

from harebell.management.limits import BACKEND_ANSWER_BYTES, BACKEND_THREADS

_FORM = "application/x-www-form-urlencoded"
_PORTS = {"http": 80, "https": 443}
_KEPT = 8
"""Connections that are kept open to one server."""


class WebError(Exception):
    """A server gave no usable answer; the text says why, without what was sent."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """How a server is verified, and what the client presents.

    Args:
        ca: PEM file with authorities; None for those of the system.
        certificate: PEM file of the client; None for none.
        key: the path of the private key of that certificate.
        verify: whether the certificate of the server is checked.
        hostname: whether its name has to be that of the server.
    """

    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    verify: bool = True
    hostname: bool = True

    def context(self) -> ssl.SSLContext:
        """Return the TLS context.

        Raises:
            OSError: a file cannot be used.
        """
        context = ssl.create_default_context(cafile=self.ca)
        if not self.hostname or not self.verify:
            context.check_hostname = False
        if not self.verify:
            context.verify_mode = ssl.CERT_NONE
        if self.certificate is not None:
            context.load_cert_chain(self.certificate, self.key)
        return context


class Answer(NamedTuple):
    """What a server answers.

    Args:
        status: the status code.
        body: the body, as text.
    """

    status: int
    body: str


class WebClient:
    """Sends requests.

    Args:
        connect_seconds: how long a connection may take.
        answer_seconds: how long an answer may take.
        tls: for addresses with https.
    """

    def __init__(
        self, connect_seconds: float, answer_seconds: float, tls: TlsFiles | None = None
    ) -> None:
        self._connect_seconds = connect_seconds
        self._answer_seconds = answer_seconds
        self._context = (tls or TlsFiles()).context()
        self._threads = ThreadPoolExecutor(BACKEND_THREADS, "harebell-backends")
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, str], list[http.client.HTTPConnection]] = {}
        self._used: set[http.client.HTTPConnection] = set()
        self._closed = False

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> Answer:
        """Get a page.

        Raises:
            WebError: there is no answer.
        """
        return await self._request("GET", url, None, headers or {})

    async def post(self, url: str, form: str) -> Answer:
        """Send a form.

        Raises:
            WebError: there is no answer.
        """
        return await self._request("POST", url, form.encode(), {"content-type": _FORM})

    def close(self) -> None:
        """Close all connections: the threads end with an error."""
        with self._lock:
            self._closed = True
            open_now = [*self._used, *(each for kept in self._kept.values() for each in kept)]
            self._kept.clear()
        for connection in open_now:
            with suppress(OSError):
                if connection.sock is not None:
                    connection.sock.shutdown(socket.SHUT_RDWR)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _request(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Answer:
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._threads, self._send, method, url, body, headers)
        # A server that sends its answer byte by byte does not run into the socket's timeout.
        whole = self._connect_seconds + 2 * self._answer_seconds
        try:
            async with asyncio.timeout(whole):
                return await work
        except TimeoutError:
            raise WebError("timeout") from None
        except RuntimeError:
            raise WebError("the broker is stopping") from None

    def _send(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Answer:
        """Send a request; called in a thread."""
        parts = urlsplit(url)
        server = (parts.scheme, parts.netloc)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        while True:
            connection, kept = self._take(server)
            try:
                answer, stays = self._exchange(connection, method, path, body, headers)
            except (OSError, http.client.HTTPException, ValueError) as error:
                connection.close()
                with self._lock:
                    self._used.discard(connection)
                stale = isinstance(error, http.client.RemoteDisconnected | ConnectionError)
                if kept and stale and not self._closed:
                    continue
                raise WebError(_reason(error)) from None
            self._put_back(server, connection, stays=stays)
            return answer

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
    ) -> tuple[Answer, bool]:
        if connection.sock is None:
            connection.timeout = self._connect_seconds
            connection.connect()
        connection.sock.settimeout(self._answer_seconds)
        connection.request(method, path, body, dict(headers))
        with connection.getresponse() as response:
            data = response.read(BACKEND_ANSWER_BYTES + 1)
            if len(data) > BACKEND_ANSWER_BYTES:
                raise ValueError(f"the answer has more than {BACKEND_ANSWER_BYTES} bytes")
            return Answer(response.status, data.decode(errors="replace")), not response.will_close

    def _take(self, server: tuple[str, str]) -> tuple[http.client.HTTPConnection, bool]:
        """Return a connection, and whether it was used before."""
        scheme, place = server
        with self._lock:
            if self._closed:
                raise WebError("the broker is stopping")
            kept = self._kept.get(server)
            connection = kept.pop() if kept else self._new(scheme, place)
            self._used.add(connection)
        return connection, connection.sock is not None

    def _new(self, scheme: str, place: str) -> http.client.HTTPConnection:
        parts = urlsplit(f"//{place}")
        host, port = parts.hostname or "", parts.port or _PORTS.get(scheme, 80)
        if scheme == "https":
            return http.client.HTTPSConnection(host, port, context=self._context)
        return http.client.HTTPConnection(host, port)

    def _put_back(
        self, server: tuple[str, str], connection: http.client.HTTPConnection, *, stays: bool
    ) -> None:
        with self._lock:
            self._used.discard(connection)
            kept = self._kept.setdefault(server, [])
            if stays and not self._closed and len(kept) < _KEPT:
                kept.append(connection)
                return
        connection.close()


def _reason(error: Exception) -> str:
    """Say what happened, without the request: it may have a password."""
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or type(error).__name__}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__ if not isinstance(error, ValueError) else str(error)
