"""Documents of metrics for the other workers: the service "metrics" of the cluster port.

    worker that was asked by Prometheus     another worker
    {"path": "/metrics", "query": ""}  -->
                                       <--  {"text": "samples...", "begins": true}
                                       <--  {"text": "more samples..."}
                                       <--  {"text": "samples of the next one...", "begins": true}
                                       <--  {"over": true}

A document is made while it is read: a worker that is not read from waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from harebell.base.errors import HarebellError
from harebell.cluster.limits import CLUSTER_METRICS_SECONDS
from harebell.cluster.lines import Lines, LineService
from harebell.cluster.link import open_link
from harebell.cluster.stores import FIRST_STORE
from harebell.management.metrics.merging import Parts, split

if TYPE_CHECKING:
    from harebell.cluster.stores import StoreDirectory

SERVICE = "metrics"
"""The service at the cluster port that sends them."""
_ENDED = (OSError, TimeoutError, HarebellError, msgspec.MsgspecError)


class Request(msgspec.Struct):
    """What is asked for.

    Args:
        path: of the document, such as "/metrics".
        query: its parameters, as in a URL.
    """

    path: str
    query: str


class Piece(msgspec.Struct, omit_defaults=True):
    """A part of a document.

    Args:
        text: samples.
        begins: whether the next metric begins with it.
        over: whether it is the end of the document.
    """

    text: str = ""
    begins: bool = False
    over: bool = False


class MetricsService(LineService):
    """Sends the documents of this worker to the others.

    Attributes:
        documents: those of this worker; None before it serves metrics.
    """

    def __init__(self, report: Callable[[str, str], None]) -> None:
        super().__init__(report)
        self.documents: Parts | None = None

    async def _talk(self, lines: Lines) -> None:
        request = await lines.next(Request)
        steps = None if self.documents is None else self.documents.part(request.path, request.query)
        if steps is None:
            return
        for step in steps:
            begins, samples = split(step)
            if begins or samples:
                await lines.send(Piece(samples.decode(), begins=begins))
            # The loop has other work between two slices.
            await asyncio.sleep(0)
        await lines.send(Piece(over=True))


class OtherMetrics:
    """The document of another worker, read a metric at a time; see `merging.OtherDocument`.

    Args:
        store: its number.
        lines: the connection to it; None if it is away.
    """

    def __init__(self, store: int, lines: Lines | None) -> None:
        self.store = store
        self.away = lines is None
        self._lines = lines
        self._next = Piece()

    async def samples(self) -> AsyncIterator[bytes]:
        """Yield the samples of the next metric; nothing once it is away."""
        if not self._next.begins:
            await self._read()
        # The piece that begins the metric after it ends this one, and is kept.
        while not (self.away or self._next.over):
            if self._next.text:
                yield self._next.text.encode()
            await self._read()
            if self._next.begins:
                return

    async def end(self) -> None:
        """Read the end of the document, after its last metric."""
        self.away = self.away or not self._next.over

    def close(self) -> None:
        """Read no more."""
        if self._lines is not None:
            self._lines.writer.transport.abort()

    async def _read(self) -> None:
        if self._lines is None or self.away or self._next.over:
            return
        try:
            async with asyncio.timeout(CLUSTER_METRICS_SECONDS):
                self._next = await self._lines.next(Piece)
        except _ENDED:
            self.away = True


class MetricsElsewhere:
    """The other workers, as far as metrics are concerned; see `merging.Others`.

    Args:
        directory: knows where they are.
        service: sends them the documents of this one.

    Attributes:
        store: the number of this one.
    """

    def __init__(self, directory: StoreDirectory, service: MetricsService) -> None:
        self.store = directory.number
        self._directory = directory
        self._service = service

    def serve(self, documents: Parts) -> None:
        """Let the others have the documents of this one, without the identity of the broker."""
        self._service.documents = documents

    async def begin(self, path: str, query: str) -> Sequence[OtherMetrics]:
        """Begin a document in each of them.

        Args:
            path: of the document, such as "/metrics".
            query: its parameters, as in a URL.
        """
        stores = range(FIRST_STORE, FIRST_STORE + self._directory.stores)
        others = [each for each in stores if each != self.store]
        return await asyncio.gather(*(self._begin(each, Request(path, query)) for each in others))

    async def _begin(self, store: int, request: Request) -> OtherMetrics:
        address = self._directory.address_of(store)
        if address is None:
            return OtherMetrics(store, None)
        try:
            async with asyncio.timeout(CLUSTER_METRICS_SECONDS):
                link = await open_link(address, self._directory.secret, {"service": SERVICE})
                lines = Lines(link)
                await lines.send(request)
        except _ENDED:
            return OtherMetrics(store, None)
        return OtherMetrics(store, lines)
