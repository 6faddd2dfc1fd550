"""Serve the figures of `harebell status` and commands on the control socket.

`server.start(app, data_dir, dispatcher)` opens the socket, `Control.close()` removes it. The
figures are `app.overview()`; the dispatcher runs commands. `harebell.server.control.client`
describes requests and answers.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import msgspec

from harebell.base.errors import HarebellError
from harebell.base.limits import (
    CONTROL_IDLE_SECONDS,
    CONTROL_LINE_BYTES,
    CONTROL_TIMEOUT_SECONDS,
    LAG_MAX_SECONDS,
)
from harebell.server.control.client import LAG, OVERVIEW, ROWS, ControlError, socket_path
from harebell.server.control.loop_lag import longest_lag
from harebell.server.control.row_reader import Rows
from harebell.server.disk.lock import cannot_use, in_use
from harebell.server.json_rows import EncodedRows

_OWNER_ONLY = 0o177
_DIRECTORY_MODE = 0o700


class Overviewed(Protocol):
    """The part of the app that the control socket uses."""

    def overview(self) -> dict[str, Any]:
        """Return the figures of `harebell status`."""


class Commands(Protocol):
    """The part of the dispatcher that the control socket uses."""

    def knows(self, name: Any) -> bool:
        """True if there is a command of that name."""

    async def serve(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Run a command and return the answer."""


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
        try:
            while line := await asyncio.wait_for(reader.readline(), CONTROL_TIMEOUT_SECONDS):
                answer = await self._answer(line)
                rows = answer.get(ROWS)
                if isinstance(rows, Rows):
                    await send_rows(rows, reader, writer)
                    break
                for piece in pieces_of(answer):
                    writer.write(piece)
                    await asyncio.wait_for(writer.drain(), CONTROL_TIMEOUT_SECONDS)
        except ValueError:
            # readline raises ValueError for a line above the limit; the rest cannot be parsed.
            refusal = {"ok": False, "error": f"a line has at most {CONTROL_LINE_BYTES} bytes"}
            writer.write(msgspec.json.encode(refusal) + b"\n")
        except (TimeoutError, ConnectionError):
            pass  # the client has disconnected
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            fields = msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.DecodeError as error:
            return {"ok": False, "error": f"not a JSON object: {error}"}
        asked = fields.pop("ask", None)
        if self._dispatcher is not None and self._dispatcher.knows(asked):
            return await self._dispatcher.serve(asked, fields)
        if asked != OVERVIEW:
            return {"ok": False, "error": f"cannot answer {asked!r}: ask for {OVERVIEW!r}"}
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


def pieces_of(answer: dict[str, Any]) -> Iterator[bytes]:
    """Yield the line of an answer, a long list in pieces."""
    rows = answer.get("answer")
    if isinstance(rows, EncodedRows):
        yield b'{"ok":true,"answer":'
        yield from rows.pieces
        # What is beside the rows, behind a comma; the "{" is there already.
        more = {name: value for name, value in answer.items() if name not in ("ok", "answer")}
        yield b"," + msgspec.json.encode(more)[1:] + b"\n" if more else b"}\n"
    else:
        yield msgspec.json.encode(answer) + b"\n"


async def send_rows(rows: Rows, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send rows as the client reads them, until it closes the connection or sends something."""
    cancelled = asyncio.ensure_future(reader.read(1))
    try:
        while True:
            found = asyncio.ensure_future(_next_answer(rows))
            while not found.done():
                await asyncio.wait(
                    (found, cancelled),
                    timeout=CONTROL_IDLE_SECONDS,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if cancelled.done():
                    return
                if not found.done():
                    # Shows the client that the broker is still looking for rows.
                    writer.write(b'{"ok":true,"rows":[]}\n')
            answer = found.result()
            writer.write(msgspec.json.encode(answer) + b"\n")
            await writer.drain()
            if not answer.get(ROWS):
                return
    finally:
        cancelled.cancel()
        rows.close()


async def _next_answer(rows: Rows) -> dict[str, Any]:
    """Return the line with the next rows, or the last line."""
    try:
        found = await rows.next()
    except HarebellError as error:
        return {"ok": False, "error": str(error)}
    return {"ok": True, ROWS: found} if found else {"ok": True}


def _identity(path: Path) -> tuple[int, int]:
    """Return inode and mtime, to recognise a file; inode numbers alone are reused."""
    found = path.stat()
    return found.st_ino, found.st_mtime_ns


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
