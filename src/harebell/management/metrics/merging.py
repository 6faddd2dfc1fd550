"""Make one document of those of all workers, a metric at a time.

All samples of a metric have to follow each other, and a document may be larger than the memory that
a scrape may take. So the documents are read side by side: those of all workers have the same
metrics in the same order, whether they have samples or not.

    this worker       # TYPE a ...   samples of a                   # TYPE b ...   samples of b
    another worker                                 samples of a                                ...

The label `store` tells the samples apart. The last metric says which workers have answered.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Protocol

from harebell.management.metrics.section import HAREBELL
from harebell.management.metrics.text import HEAD, Metric, labels, written

ANSWERED = Metric(
    "store_answered", "gauge", "1 if the worker of the store is in this document, 0 if it is away."
)
"""Which workers have answered."""
_HEAD = HEAD.encode()


class OtherDocument(Protocol):
    """The document of another worker, read a metric at a time.

    Attributes:
        store: its number.
        away: whether it is away, or did not answer up to the end.
    """

    store: int
    away: bool

    def samples(self) -> AsyncIterator[bytes]:
        """Yield the samples of the next metric; nothing once it is away."""

    async def end(self) -> None:
        """Read the end of the document, after its last metric."""

    def close(self) -> None:
        """Read no more."""


class Parts(Protocol):
    """The documents of this worker, as `harebell.management.metrics.application` has them."""

    def part(self, path: str, query: str) -> Iterator[bytes] | None:
        """Return a document; None if this worker does not have it.

        Args:
            path: of the document, such as "/metrics".
            query: its parameters, as in a URL.
        """


class Others(Protocol):
    """The other workers.

    Attributes:
        store: the number of this one.
    """

    store: int

    def serve(self, documents: Parts) -> None:
        """Let the others have the documents of this one, without the identity of the broker."""

    async def begin(self, path: str, query: str) -> Sequence[OtherDocument]:
        """Begin a document in each of them.

        Args:
            path: of the document, such as "/metrics".
            query: its parameters, as in a URL.
        """


async def merged(
    own: int, pieces: AsyncIterator[bytes], others: Sequence[OtherDocument]
) -> AsyncIterator[bytes]:
    """Yield the document of all workers.

    Args:
        own: the store of this one.
        pieces: its document.
        others: those of the others.
    """
    is_begun = False
    async for piece in pieces:
        if piece.startswith(_HEAD):
            if is_begun:
                async for more in _samples(others):
                    yield more
            is_begun = True
        yield piece
    async for more in _samples(others):
        yield more
    for each in others:
        await each.end()
    answered = {own: 1, **{each.store: int(not each.away) for each in others}}
    for text in _answered(answered):
        yield text


async def _samples(others: Iterable[OtherDocument]) -> AsyncIterator[bytes]:
    for each in others:
        async for piece in each.samples():
            yield piece


def _answered(stores: dict[int, int]) -> Iterator[bytes]:
    rows = ((labels(store=str(store)), (value,)) for store, value in sorted(stores.items()))
    return written(HAREBELL, (ANSWERED,), rows)


def split(piece: bytes) -> tuple[bool, bytes]:
    """Return whether a piece begins a metric, and the samples in it."""
    if not piece.startswith(_HEAD):
        return False, b"" if piece.startswith(b"#") else piece
    # The lines of its type and its help.
    return True, piece.split(b"\n", 2)[2]
