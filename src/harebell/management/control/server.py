"""Serve the figures of `harebell status` and commands on the control socket.

`server.start(app, data_dir, dispatcher)` opens the socket, `Control.close()` removes it. The
figures are `app.overview()`; the dispatcher runs commands. `harebell.management.control.client`
describes requests and answers.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import Struct
from typing import Any, Protocol

import msgspec

from harebell.admin.streaming import HeldRows
from harebell.base.errors import HarebellError
from harebell.management.control.client import LAG, OVERVIEW, ROWS, ControlError, socket_path
from harebell.management.control.loop_lag import longest_lag
from harebell.management.control.row_reader import Rows
from harebell.management.json_rows import EncodedRows, encode, held_of
from harebell.management.limits import (
    CONTROL_CONNECTIONS,
    CONTROL_IDLE_SECONDS,
    CONTROL_LINE_BYTES,
    JSON_PART_BYTES,
    LAG_MAX_SECONDS,
)
from harebell.management.sliced_json import decoded
from harebell.server.disk.lock import cannot_use, in_use
from harebell.server.limits import CONTROL_TIMEOUT_SECONDS

_OWNER_ONLY = 0o177
_DIRECTORY_MODE = 0o700
_CREDENTIALS: int | None = getattr(socket, "SO_PEERCRED", None)
_CREDENTIAL = Struct("3i")


class Overviewed(Protocol):
    """The part of the app that the control socket uses."""

    def overview(self) -> dict[str, Any]:
        """Return the figures of `harebell status`."""


class Commands(Protocol):
    """The part of the dispatcher that the control socket uses."""

    def knows(self, name: Any) -> bool:
        """True if there is a command of that name."""

    async def run(self, run: Callable[[], Any], *, reads: bool = False) -> Any:
        """Run something in slices, in the turns of the broker; return its result."""

    async def serve(self, name: str, fields: dict[str, Any], peer: str = "", /) -> dict[str, Any]:
        """Run a command and return the answer."""

    def settle(self, held: HeldRows, *, delivered: bool) -> None:
        """Settle what an answer held."""


class Control:
    """An open control socket.

    Args:
        app: returns the figures.
        path: the path of the socket.
        dispatcher: runs commands; None if commands are refused.
    """

    def __init__(self, app: Overviewed, path: Path, dispatcher: Commands | None = None) -> None:
        self.path = path
        self._app = app
        self._dispatcher = dispatcher
        self._server: asyncio.AbstractServer | None = None
        # Those of which no request is under way, the one that waits longest first.
        self._waiting: dict[asyncio.StreamWriter, None] = {}
        self._identity: tuple[int, int] | None = None

    async def open(self) -> None:
        """Listen on the socket."""
        link = _bind(self.path)
        self._identity = _identity(self.path)
        self._server = await asyncio.start_unix_server(
            self._serve, sock=link, limit=CONTROL_LINE_BYTES
        )

    async def close(self) -> None:
        """Stop listening, and remove the socket unless another broker has replaced it."""
        if self._server is not None:
            self._server.close()
            self._server = None
        try:
            if _identity(self.path) == self._identity:
                self.path.unlink()
        except FileNotFoundError:
            return  # the file was removed by another process

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer requests of one client until it disconnects or times out."""
        self._make_way()
        try:
            while True:
                self._waiting[writer] = None
                line = await asyncio.wait_for(reader.readline(), CONTROL_TIMEOUT_SECONDS)
                self._waiting.pop(writer, None)
                if not line:
                    break
                answer = await self._answer(line, _peer_of(writer))
                rows = answer.get(ROWS)
                if isinstance(rows, Rows):
                    await send_rows(rows, reader, writer)
                    break
                await self._send(answer, writer)
        except ValueError:
            # readline raises ValueError for a line above the limit; the rest cannot be parsed.
            refusal = {"ok": False, "error": f"a line has at most {CONTROL_LINE_BYTES} bytes"}
            writer.write(encode(refusal) + b"\n")
        except (TimeoutError, ConnectionError):
            pass  # the client has disconnected
        except asyncio.CancelledError:
            pass  # the broker ends; asyncio of Python 3.11 would print a traceback of that
        finally:
            self._waiting.pop(writer, None)
            writer.close()

    def _make_way(self) -> None:
        """End the clients that have waited longest without a request, above a number of them."""
        while len(self._waiting) >= CONTROL_CONNECTIONS:
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            oldest.close()

    async def _send(self, answer: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        """Send an answer; what it holds is settled when it was written."""
        held, delivered = held_of(answer.get("answer")), False
        try:
            for piece in pieces_of(answer):
                writer.write(piece)
                if held is None:
                    await asyncio.wait_for(writer.drain(), CONTROL_TIMEOUT_SECONDS)
            delivered = not writer.is_closing()
        finally:
            if held is not None and self._dispatcher is not None:
                self._dispatcher.settle(held, delivered=delivered)
        await asyncio.wait_for(writer.drain(), CONTROL_TIMEOUT_SECONDS)

    async def _decoded(self, line: bytes) -> dict[str, Any]:
        """Decode a request; a long one in slices, with other work in between."""
        dispatcher = self._dispatcher
        if dispatcher is None or len(line) <= JSON_PART_BYTES:
            return msgspec.json.decode(line, type=dict[str, Any])
        fields = await dispatcher.run(lambda: decoded(line), reads=True)
        return msgspec.convert(fields, dict[str, Any])

    async def _answer(self, line: bytes, peer: str) -> dict[str, Any]:
        try:
            fields = await self._decoded(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return {"ok": False, "error": f"not a JSON object: {error}"}
        command = fields.pop("ask", None)
        if self._dispatcher is not None and self._dispatcher.knows(command):
            return await self._dispatcher.serve(command, fields, peer)
        if command != OVERVIEW:
            return {"ok": False, "error": f"cannot answer {command!r}: ask for {OVERVIEW!r}"}
        overview = self._app.overview()
        seconds = fields.get(LAG)
        if isinstance(seconds, int | float) and 0 < seconds <= LAG_MAX_SECONDS:
            lag = await longest_lag(seconds)
            overview["event_loop_lag_seconds"] = round(lag.late, 4)
            overview["event_loop_busy_seconds"] = round(lag.busy, 4)
        return {"ok": True, OVERVIEW: overview}


async def start(app: Overviewed, data_dir: Path, dispatcher: Commands | None = None) -> Control:
    """Open the control socket of a broker; create the data directory if it is missing.

    Raises:
        ControlError: the socket cannot be opened, or another broker runs on the directory.
    """
    path = socket_path(data_dir)
    control = Control(app, path, dispatcher)
    try:
        _make_room(path)
        await control.open()
    except OSError as error:
        raise ControlError(cannot_use(data_dir, error)) from None
    return control


def _peer_of(writer: asyncio.StreamWriter) -> str:
    """Name the process of a client, where the system tells which it is."""
    if _CREDENTIALS is None:
        return ""
    packed = writer.get_extra_info("socket").getsockopt(
        socket.SOL_SOCKET, _CREDENTIALS, _CREDENTIAL.size
    )
    process, user, _ = _CREDENTIAL.unpack(packed)
    return f"uid {user}, pid {process}"


def pieces_of(answer: dict[str, Any]) -> Iterator[bytes]:
    """Yield the line of an answer, a long list in pieces."""
    rows = answer.get("answer")
    if isinstance(rows, EncodedRows):
        yield b'{"ok":true,"answer":'
        yield from rows.pieces
        # What is beside the rows, behind a comma; the "{" is there already.
        more = {name: value for name, value in answer.items() if name not in ("ok", "answer")}
        yield b"," + encode(more)[1:] + b"\n" if more else b"}\n"
    else:
        yield encode(answer) + b"\n"


async def send_rows(rows: Rows, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send rows as the client reads them, until it closes the connection or sends something."""
    cancelled = asyncio.ensure_future(reader.read(1))
    try:
        while True:
            pending = asyncio.ensure_future(_next_answer(rows))
            while not pending.done():
                await asyncio.wait(
                    (pending, cancelled),
                    timeout=CONTROL_IDLE_SECONDS,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if cancelled.done():
                    return
                if not pending.done():
                    # Shows the client that the broker is still looking for rows.
                    writer.write(b'{"ok":true,"rows":[]}\n')
            answer = pending.result()
            writer.write(encode(answer) + b"\n")
            await writer.drain()
            if not answer.get(ROWS):
                return
    finally:
        cancelled.cancel()
        rows.close()


async def _next_answer(rows: Rows) -> dict[str, Any]:
    """Return the line with the next rows, or the last line."""
    try:
        rows_read = await rows.next()
    except HarebellError as error:
        return {"ok": False, "error": str(error)}
    return {"ok": True, ROWS: rows_read} if rows_read else {"ok": True}


def _identity(path: Path) -> tuple[int, int]:
    """Return inode and mtime, to recognise a file; inode numbers alone are reused."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns


def _make_room(path: Path) -> None:
    """Create the directory, and remove the socket of a broker that was killed.

    Raises:
        ControlError: a running broker listens on the socket.
    """
    path.parent.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
    if not path.exists():
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.settimeout(CONTROL_TIMEOUT_SECONDS)
        try:
            link.connect(os.fspath(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise ControlError(in_use(path.parent))


def _bind(path: Path) -> socket.socket:
    """Bind a socket with mode 0600; the umask sets it without a moment of wider access."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(_OWNER_ONLY)
    try:
        link.bind(os.fspath(path))
    except OSError:
        link.close()
        raise
    finally:
        os.umask(mask)
    return link
