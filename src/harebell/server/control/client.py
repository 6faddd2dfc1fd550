"""Where a running broker can be asked about itself, and how to ask it.

A broker listens on the unix socket `control.sock` in its data directory. A request is one line of
JSON, `{"ask": "overview"}`, and the answer is one line: `{"ok": true, "overview": {...}}` or
`{"ok": false, "error": "..."}`. A command is asked with its fields beside `ask`, and answered with
an `answer`. Only the user who runs the broker may open the socket. This half needs no event loop,
so that `harebell status` starts quickly; the broker's half is `harebell.server.control.server`.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from harebell.base.errors import HarebellError
from harebell.base.limits import (
    CONTROL_COMMAND_SECONDS,
    CONTROL_PATH_BYTES,
    CONTROL_TIMEOUT_SECONDS,
)

SOCKET_NAME = "control.sock"
OVERVIEW = "overview"
LAG = "lag_seconds"
_CHUNK_BYTES = 65_536


class ControlError(HarebellError):
    """The control socket cannot be used; the text is a sentence for the user."""


class NotRunning(ControlError):
    """No broker runs on that data directory."""


def socket_path(data_dir: Path) -> Path:
    """The control socket of a data directory.

    Raises:
        ControlError: the path is too long for the address of a unix socket.
    """
    path = data_dir / SOCKET_NAME
    octets = len(os.fsencode(path))
    if octets > CONTROL_PATH_BYTES:
        raise ControlError(
            f"the path {path} has {octets} octets, and the system takes {CONTROL_PATH_BYTES} for a "
            "socket: choose a shorter directory with --data-dir"
        )
    return path


def ask_overview(
    data_dir: Path, patience: float = CONTROL_TIMEOUT_SECONDS, lag: float = 0.0
) -> dict[str, Any]:
    """The figures of the broker that runs on a data directory.

    Args:
        data_dir: of the broker.
        patience: seconds to wait for the answer.
        lag: seconds for which the broker watches its event loop before it answers; the figure
            `event_loop_lag_seconds` says how late it was at most, `event_loop_busy_seconds` the CPU
            time that it used without serving anybody else.

    Raises:
        NotRunning: there is none.
        ControlError: there is one, but it cannot be asked.
    """
    request = {"ask": OVERVIEW, LAG: lag} if lag else {"ask": OVERVIEW}
    overview = _ask(data_dir, request, patience + lag).get(OVERVIEW)
    if not isinstance(overview, dict):
        raise ControlError(f"the broker on {data_dir} answered without an overview")
    return overview


def ask_command(
    data_dir: Path,
    command: str,
    fields: Mapping[str, Any],
    patience: float = CONTROL_COMMAND_SECONDS,
) -> Any:
    """The answer of the broker to a command; what that changed is on its disk then.

    Args:
        data_dir: of the broker.
        command: its name, such as "users.add".
        fields: what the command takes.
        patience: seconds to wait for the answer.

    Raises:
        NotRunning: no broker runs there.
        ControlError: it cannot be asked, or refuses; the text is the broker's sentence then.
    """
    return _ask(data_dir, {"ask": command, **fields}, patience).get("answer")


def _ask(data_dir: Path, request: Mapping[str, Any], patience: float) -> dict[str, Any]:
    path = socket_path(data_dir)
    try:
        octets = msgspec.json.encode(request) + b"\n"
    except UnicodeEncodeError:
        raise ControlError("a name or a value is not UTF-8: write it in UTF-8") from None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.settimeout(patience)
        try:
            link.connect(os.fspath(path))
            link.sendall(octets)
            line = _read_line(link)
        except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
            raise NotRunning(
                f"no broker runs on the data directory {data_dir}: start one with "
                f"`harebell serve --data-dir {data_dir}`, or name another with --data-dir"
            ) from None
        except PermissionError:
            raise ControlError(
                f"the broker on {data_dir} belongs to another user: ask as that user or as root"
            ) from None
        except OSError as error:
            raise ControlError(f"the broker on {data_dir} does not answer: {error}") from None
    return _decoded(line, data_dir)


def _read_line(link: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        chunk = link.recv(_CHUNK_BYTES)
        if not chunk:
            raise ConnectionResetError("it closed the control connection")
        line += chunk
    return line


def _decoded(line: bytes, data_dir: Path) -> dict[str, Any]:
    try:
        answer = msgspec.json.decode(line, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ControlError(f"the broker on {data_dir} answered nonsense: {error}") from None
    if answer.get("ok") is not True:
        refusal = answer.get("error", answer)
        raise ControlError(f"the broker on {data_dir} refused: {refusal}")
    return answer
