"""The ASGI application of the metrics port: documents for Prometheus, and probes.

    GET /metrics  /metrics/per-object  /metrics/detailed?family=&vhost=&queue=
        /metrics/memory-breakdown
    GET /health/live  /health/ready

There is no login: answers have no bodies and no passwords, and nothing can be changed. A document
is sent while it is made; between two slices the event loop does other things.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing
from typing import Any, Protocol
from urllib.parse import parse_qs
from weakref import WeakValueDictionary

from harebell.base.limits import PATTERN_TESTS
from harebell.base.patterns import PatternRefused, PatternTooSlow, Search, linear_search_for
from harebell.management.http.routes import with_path
from harebell.management.limits import METRICS_PART_BYTES, METRICS_SCRAPES
from harebell.management.metrics.merging import Others, merged

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
        begin: begins a document, given what waits between two slices.
    """

    def __init__(
        self, begin: Callable[[Callable[[], Awaitable[None]]], AsyncGenerator[bytes]]
    ) -> None:
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
            async with aclosing(self._begin(turn)) as pieces:
                return b"".join([piece async for piece in pieces])


class BadQuery(Exception):
    """A parameter is not valid; the text is for the client."""


class MetricsApplication:
    """Answers requests on the metrics port.

    Args:
        scraper: writes the documents.
        trouble: returns why the broker cannot serve clients; "" if it can.
        per_object: whether `/metrics` has a sample per object.
        others: the other workers, whose samples are in each document; None if there are none.
    """

    def __init__(
        self,
        scraper: Documents,
        trouble: Callable[[], str],
        *,
        per_object: bool = False,
        others: Others | None = None,
    ) -> None:
        self.per_object = per_object
        self._scraper = scraper
        self._trouble = trouble
        self._others = others
        self._sums = SharedDocument(
            lambda turn: self._pieces("/metrics", "", scraper.aggregated(), turn)
        )
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
        query = scope.get("query_string", b"").decode("latin-1")
        try:
            steps = begin(parse_qs(query, keep_blank_values=True))
        except BadQuery as error:
            await _answer(scope, send, 400, "bad_request", str(error))
            return
        address = (scope.get("client") or ("",))[0]
        async with self._shares.setdefault(address, asyncio.Semaphore(METRICS_SCRAPES)):
            if scope["method"] == "GET":
                path = with_path(scope)["path"].rstrip("/")
                async with aclosing(self._pieces(path, query, steps, turn_of(scope))) as pieces:
                    await self._write(scope, send, pieces)
            else:
                await send(_start(200, CONTENT_TYPE))
                await send(_body(b""))

    async def _write(self, scope: Scope, send: Send, pieces: AsyncIterator[bytes]) -> None:
        """Send a document while it is made, as long as its client is there."""
        connection = scope["state"]["connection"]
        await send(_start(200, CONTENT_TYPE))
        waiting: list[bytes] = []
        size = 0
        async for piece in pieces:
            if connection.gone:
                return
            if piece:
                waiting.append(piece)
                size += len(piece)
            if size >= METRICS_PART_BYTES:
                await send(_body(b"".join(waiting), more=True))
                waiting.clear()
                size = 0
        await send(_body(b"".join(waiting)))

    async def _pieces(
        self, path: str, query: str, steps: Iterator[bytes], turn: Callable[[], Awaitable[None]]
    ) -> AsyncGenerator[bytes]:
        """Yield a document, with the samples of the other workers.

        Args:
            path: of the document.
            query: its parameters, as in a URL.
            steps: the document of this process.
            turn: waits between two slices.
        """
        own = _in_turns(steps, turn)
        if self._others is None:
            async for piece in own:
                yield piece
            return
        if path == "/metrics" and self.per_object:
            # The others may not have taken over a change of the configuration yet.
            path = "/metrics/per-object"
        documents = await self._others.begin(path, query)
        try:
            async for piece in merged(self._others.store, own, documents):
                yield piece
        finally:
            for each in documents:
                each.close()

    def part(self, path: str, query: str) -> Iterator[bytes] | None:
        """Return the document of this process for another worker; None if there is no such one.

        Args:
            path: as in a request.
            query: as in a request.

        Raises:
            BadQuery: a parameter is not valid.
        """
        begin = self._documents.get(path)
        return None if begin is None else begin(parse_qs(query, keep_blank_values=True))

    def _detailed(self, query: dict[str, list[str]]) -> Iterator[bytes]:
        """Return the chosen families.

        Raises:
            BadQuery: the pattern for queues is not a regular expression.
        """
        named = None
        if "queue" in query:
            pattern = query["queue"][-1]
            try:
                named = _within_time(linear_search_for(pattern, PATTERN_TESTS))
            except PatternRefused as error:
                text = (
                    f"queue: {pattern!r} is not a regular expression that can be used: it {error}"
                )
                raise BadQuery(text) from None
        return self._scraper.detailed(query.get("family", ()), query.get("vhost"), named)


async def _in_turns(
    steps: Iterator[bytes], turn: Callable[[], Awaitable[None]]
) -> AsyncIterator[bytes]:
    """Yield the slices of a document, some without text, and wait for a turn after each one."""
    for piece in steps:
        yield piece
        await turn()


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
