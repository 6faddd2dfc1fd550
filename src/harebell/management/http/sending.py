"""Send an answer: compress it, write its head and its pieces, and settle what it held.

Compression is done in pieces, each in a turn of its own, and once for a body that many clients get.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from harebell.admin.context import CommandRefused
from harebell.admin.limits import HTTP_CHUNK_BYTES
from harebell.base.errors import Refusal
from harebell.management.http.errors import of_refusal
from harebell.management.json_rows import encode
from harebell.management.limits import (
    HTTP_COMPRESS_BYTES,
    HTTP_COMPRESS_LEVEL,
    HTTP_PACKED_BODIES,
)

if TYPE_CHECKING:
    from harebell.admin.command import Row
    from harebell.admin.streaming import HeldRows
    from harebell.management.control.row_reader import Rows
    from harebell.management.http.answer import Answer
    from harebell.management.http.asgi import Message, Send
    from harebell.management.http.request import HttpRequest

_GZIP_WINDOW = 31
"""Makes zlib write the format of gzip."""
_BODYLESS = (204, 304)
"""Statuses whose answers have no `content-length` (RFC 9110 8.6)."""

Turn = Callable[[], Awaitable[None]]
"""Waits for the next turn of a connection."""


async def compressed(pieces: Iterable[bytes], turn: Turn) -> list[bytes]:
    """Compress a body, at most HTTP_CHUNK_BYTES of it in a turn."""
    packed = []
    for piece in _compressed(pieces):
        packed.append(piece)
        await turn()
    return packed


def _compressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    compress = zlib.compressobj(HTTP_COMPRESS_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    for piece in pieces:
        for offset in range(0, len(piece), HTTP_CHUNK_BYTES):
            yield compress.compress(piece[offset : offset + HTTP_CHUNK_BYTES])
    yield compress.flush()


class PackedBodies:
    """Bodies that many clients get, compressed: each is compressed once."""

    def __init__(self) -> None:
        self._packings: dict[bytes, asyncio.Task[list[bytes]]] = {}

    async def of(self, body: bytes, turn: Turn) -> list[bytes]:
        """Return a body compressed; all requests for it meanwhile wait for the same work."""
        packing = self._packings.get(body)
        if packing is None:
            if len(self._packings) >= HTTP_PACKED_BODIES:
                self._packings.clear()
            packing = self._packings[body] = asyncio.ensure_future(compressed([body], turn))
        # Shield: a client that goes must not end the work for the others.
        return await asyncio.shield(packing)


async def send_answer(
    answer: Answer,
    headers: list[tuple[str, str]],
    request: HttpRequest,
    send: Send,
    packed: PackedBodies,
) -> None:
    """Send an answer whose body is complete, a piece in each turn.

    Args:
        answer: the status, the headers and the whole body.
        headers: those of the application, before those of the answer.
        request: what is answered.
        send: takes ASGI's messages.
        packed: compresses constant bodies.
    """
    turn = request.turn
    pieces = list(answer.pieces)
    size = answer.size
    headers = [*headers, *answer.headers]
    if size >= HTTP_COMPRESS_BYTES and "gzip" in request.headers.get("accept-encoding", ""):
        headers.append(("content-encoding", "gzip"))
        if answer.constant:
            pieces = list(await packed.of(b"".join(pieces), turn))
        else:
            pieces = await compressed(pieces, turn)
        size = sum(map(len, pieces))
    if answer.status not in _BODYLESS:
        headers.append(("content-length", str(size)))
    await _begin(answer.status, headers, send)
    # With the size that GET would have, and no body (RFC 9110 9.3.2).
    if request.method == "HEAD":
        pieces = []
    last = pieces.pop() if pieces else b""
    for piece in pieces:
        await _send_piece(piece, send, more=True)
        await turn()
    await _send_piece(last, send)


async def send_held(
    held: HeldRows,
    request: HttpRequest,
    send: Send,
    send_all: Callable[[Send], Awaitable[None]],
    settle: Callable[..., None],
) -> None:
    """Send an answer, and settle what it held.

    The messages are settled in the turn in which the end of the answer is written: the next request
    of the client sees them settled. Messages whose client has not got the end return to the queue.

    Args:
        held: what the answer holds.
        request: what is answered.
        send: takes ASGI's messages.
        send_all: sends the answer with the function that it gets.
        settle: settles what was held; `delivered` says whether the client has got it.
    """
    closed = asyncio.ensure_future(request.closed())
    await asyncio.sleep(0)  # `closed` is done now if the client has gone already
    complete = False

    async def send_and_settle(message: Message) -> None:
        nonlocal complete
        if not complete:
            await send(message)
            if message.get("body") and not message["more_body"]:
                complete = True
                settle(held, delivered=not closed.done())

    try:
        await send_all(send_and_settle)
    finally:
        closed.cancel()
        if not complete:
            settle(held, delivered=False)


async def send_rows(
    rows: Rows, headers: list[tuple[str, str]], closed: Awaitable[None], send: Send
) -> None:
    """Send rows while they are made, until the client closes its connection.

    The next rows are made when the client has read these.

    Args:
        rows: makes the rows.
        headers: those of the answer.
        closed: ends when the client has closed its connection.
        send: takes ASGI's messages.
    """
    left = asyncio.ensure_future(closed)
    began = False
    try:
        # Before the head is sent: a refusal of the first rows still has a status of its own.
        batch = await _next_rows(rows, left)
        await _begin(200, headers, send)
        began = True
        while batch:
            await _send_piece(b"".join(encode(row) + b"\n" for row in batch), send, more=True)
            batch = await _next_rows(rows, left)
        await _send_piece(b"", send)
    except (CommandRefused, Refusal) as error:
        failure = of_refusal(error)
        # Once the status 200 is sent, the error can only be the last line of the body.
        if not began:
            await _begin(failure.status, headers, send)
        await _send_piece(failure.body + b"\n", send)
    finally:
        left.cancel()
        rows.close()


async def _next_rows(rows: Rows, closed: asyncio.Future[None]) -> list[Row]:
    """Return the next rows; none at the end, or when the client has gone."""
    batch = asyncio.ensure_future(rows.next())
    await asyncio.wait((batch, closed), return_when=asyncio.FIRST_COMPLETED)
    if batch.done():
        return batch.result()
    batch.cancel()
    return []


async def _begin(status: int, headers: list[tuple[str, str]], send: Send) -> None:
    # Imported with the first answer, and not at the start of a broker.
    from email.utils import formatdate

    headers = [("date", formatdate(usegmt=True)), *headers]
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
        }
    )


async def _send_piece(body: bytes, send: Send, *, more: bool = False) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})
