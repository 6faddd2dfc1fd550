"""The ASGI application of the metrics port: documents for Prometheus, and probes.

    GET /metrics  /metrics/per-object  /metrics/detailed?family=&vhost=&queue=
        /metrics/memory-breakdown
    GET /health/live  /health/ready

There is no login: answers have no bodies and no passwords, and nothing can be changed. A document
is sent while it is made; between two slices the event loop does other things.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, Protocol
from urllib.parse import parse_qs
from weakref import WeakValueDictionary

from harebell.base.patterns import PatternRefused, PatternTooSlow, Search, linear_search_for
from harebell.management.http.routes import with_path
from harebell.management.limits import METRICS_PART_BYTES, METRICS_SCRAPES

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

CONTENT_TYPE = b"text/plain; version=0.0.4"
_JSON = b"application/json"
_METHODS = ("GET", "HEAD")


class Documents(Protocol):
    """Writes the documents in slices: see `harebell.management.metrics.scrape.Scraper`."""

    def aggregated(self) -> Iterator[bytes]:
        """Write the sums of the broker."""

    def per_object(self) -> Iterator[bytes]:
        """Write a sample per object."""

    def detailed(
        self,
        names: Iterable[str],
        vhosts: Iterable[str] | None = None,
        named: Callable[[str], bool] | None = None,
    ) -> Iterator[bytes]:
        """Write chosen families."""

    def memory(self) -> Iterator[bytes]:
        """Write what the memory is used for."""


class SharedDocument:
    """Makes one document for all who ask for it while the one before is being made.

    Args:
        begin: begins a document.
    """

    def __init__(self, begin: Callable[[], Iterator[bytes]]) -> None:
        self._begin = begin
        self._lock = asyncio.Lock()
        self._next: asyncio.Task[bytes] | None = None

    async def made(self, turn: Callable[[], Awaitable[None]]) -> bytes:
        """Return a document that was begun after this call.

        Args:
            turn: waits between two slices.
        """
        if self._next is None:
            self._next = asyncio.ensure_future(self._make(turn))
        return await asyncio.shield(self._next)

    async def _make(self, turn: Callable[[], Awaitable[None]]) -> bytes:
        async with self._lock:
            self._next = None
            pieces = []
            for piece in self._begin():
                if piece:
                    pieces.append(piece)
                await turn()
            return b"".join(pieces)


class BadQuery(Exception):
    """A parameter is not valid; the text is for the client."""


class MetricsApplication:
    """Answers requests on the metrics port.

    Args:
        scraper: writes the documents.
        trouble: returns why the broker cannot serve clients; "" if it can.
        per_object: whether `/metrics` has a sample per object.
    """

    def __init__(
        self, scraper: Documents, trouble: Callable[[], str], *, per_object: bool = False
    ) -> None:
        self.per_object = per_object
        self._scraper = scraper
        self._trouble = trouble
        self._sums = SharedDocument(scraper.aggregated)
        # Each keeps the samples of a family until its client has read them.
        self._shares: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._documents: dict[str, Callable[[dict[str, list[str]]], Iterator[bytes]]] = {
            "/metrics": lambda _: scraper.per_object() if self.per_object else scraper.aggregated(),
            "/metrics/per-object": lambda _: scraper.per_object(),
            "/metrics/detailed": self._detailed,
            "/metrics/memory-breakdown": lambda _: scraper.memory(),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        path = with_path(scope)["path"].rstrip("/")
        begin = self._documents.get(path)
        if begin is None and path not in ("/health/live", "/health/ready"):
            paths = ", ".join([*self._documents, "/health/live", "/health/ready"])
            await _answer(scope, send, 404, "not_found", f"no {path or '/'}: there are {paths}")
        elif scope["method"] not in _METHODS:
            text = f"{scope['method']} is not possible: use GET"
            await _answer(scope, send, 405, "method_not_allowed", text)
        elif path == "/metrics" and not self.per_object and scope["method"] == "GET":
            body = await self._sums.made(turn_of(scope))
            await send(_start(200, CONTENT_TYPE))
            await send(_body(body))
        elif begin is not None:
            await self._scrape(scope, send, begin)
        else:
            trouble = self._trouble() if path == "/health/ready" else ""
            await _answer(scope, send, 503 if trouble else 200, "", trouble)

    async def _scrape(
        self,
        scope: Scope,
        send: Send,
        begin: Callable[[dict[str, list[str]]], Iterator[bytes]],
    ) -> None:
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
        try:
            steps = begin(query)
        except BadQuery as error:
            await _answer(scope, send, 400, "bad_request", str(error))
            return
        address = (scope.get("client") or ("",))[0]
        async with self._shares.setdefault(address, asyncio.Semaphore(METRICS_SCRAPES)):
            await self._write(scope, send, steps if scope["method"] == "GET" else iter(()))

    async def _write(self, scope: Scope, send: Send, steps: Iterator[bytes]) -> None:
        """Send a document while it is made, as long as its client is there."""
        connection, turn = scope["state"]["connection"], turn_of(scope)
        await send(_start(200, CONTENT_TYPE))
        waiting: list[bytes] = []
        size = 0
        for piece in steps:
            if connection.gone:
                return
            if piece:
                waiting.append(piece)
                size += len(piece)
            if size >= METRICS_PART_BYTES:
                await send(_body(b"".join(waiting), more=True))
                waiting.clear()
                size = 0
            await turn()
        await send(_body(b"".join(waiting)))

    def _detailed(self, query: dict[str, list[str]]) -> Iterator[bytes]:
        """Return the chosen families.

        Raises:
            BadQuery: the pattern for queues is not a regular expression.
        """
        named = None
        if "queue" in query:
            pattern = query["queue"][-1]
            try:
                named = _within_time(linear_search_for(pattern))
            except PatternRefused as error:
                text = (
                    f"queue: {pattern!r} is not a regular expression that can be used: it {error}"
                )
                raise BadQuery(text) from None
        return self._scraper.detailed(query.get("family", ()), query.get("vhost"), named)


def turn_of(scope: Scope) -> Callable[[], Awaitable[None]]:
    """Return what waits for a turn of the connection of a request."""
    turn: Callable[[], Awaitable[None]] = scope["state"]["connection"].turns.turn
    return turn


def _within_time(search: Search) -> Search:
    """Leave out names that take too long to compare."""

    def found(name: str) -> bool:
        try:
            return search(name)
        except PatternTooSlow:
            return False

    return found


async def _answer(scope: Scope, send: Send, status: int, error: str, reason: str) -> None:
    """Send a small JSON object: `{"status": "ok"}`, or what is wrong."""
    import msgspec

    if error:
        document = {"error": error, "reason": reason}
    else:
        document = {"status": "failed", "reason": reason} if reason else {"status": "ok"}
    body = msgspec.json.encode(document)
    await send(_start(status, _JSON, len(body)))
    await send(_body(b"" if scope["method"] == "HEAD" else body))


def _start(status: int, content_type: bytes, size: int = -1) -> dict[str, Any]:
    headers = [(b"content-type", content_type), (b"cache-control", b"no-cache")]
    if size >= 0:
        headers.append((b"content-length", b"%d" % size))
    return {"type": "http.response.start", "status": status, "headers": headers}


def _body(data: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": more}
