"""Send requests to a running broker over its control socket.

A broker listens on the unix socket `control.sock` in its data directory. A request is one line of
JSON, `{"ask": "overview"}`, and so is the answer: `{"ok": true, "overview": {...}}` or
`{"ok": false, "error": "..."}`. A command has its arguments as fields beside `ask`; its result is
in the field `answer`. A command with a stream of rows answers with several lines:

    {"ok": true, "rows": [{...}, {...}]}    any number of rows, also none
    ...
    {"ok": true}                            the end, or {"ok": false, "error": "..."}

and closes the connection. The client cancels it by closing the connection itself. Only the user who
runs the broker may open the socket. The client uses no event loop, so that `harebell status` starts
quickly. The server is in `harebell.management.control.server`.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from harebell.base.errors import HarebellError
from harebell.management.limits import CONTROL_PATH_BYTES
from harebell.server.limits import CONTROL_COMMAND_SECONDS, CONTROL_TIMEOUT_SECONDS

SOCKET_NAME = "control.sock"
OVERVIEW = "overview"
LAG = "lag_seconds"
ROWS = "rows"
AWAY = "away"
"""The field with the numbers of the stores of a cluster that are missing in an answer."""
WRONG = "wrong"
"""The field that says that an argument is wrong; over HTTP the error is `WRONG_ARGUMENT`."""
WRONG_ARGUMENT = "wrong_argument"
AWAY_HEADER = "x-harebell-stores-away"
"""The header with these numbers over HTTP."""
_CHUNK_BYTES = 65_536


class ControlError(HarebellError):
    """The control socket cannot be used; the text is a sentence for the user."""


class NotRunning(ControlError):
    """No broker is running on the data directory."""


class CommandError(ControlError):
    """The broker refused a request.

    Args:
        where: the broker.
        reason: the reason that it gave, without the name of the broker.
        wrong: whether an argument of the command is wrong, whatever the broker has.
    """

    def __init__(self, where: str, reason: str, *, wrong: bool = False) -> None:
        super().__init__(f"the broker {where} refused: {reason}")
        self.reason = reason
        self.wrong = wrong


def socket_path(data_dir: Path) -> Path:
    """Return the path of the control socket of a data directory.

    Raises:
        ControlError: the path is too long for the address of a unix socket.
    """
    path = data_dir / SOCKET_NAME
    size = len(os.fsencode(path))
    if size > CONTROL_PATH_BYTES:
        raise ControlError(
            f"the path {path} has {size} bytes, and the system takes {CONTROL_PATH_BYTES} for a "
            "socket: choose a shorter directory with --data-dir"
        )
    return path


def ask_overview(
    data_dir: Path, patience: float = CONTROL_TIMEOUT_SECONDS, lag: float = 0.0
) -> dict[str, Any]:
    """Return the figures of the broker on a data directory.

    Args:
        data_dir: the data directory of the broker.
        patience: timeout for the answer in seconds.
        lag: seconds for which the broker measures its event loop before it answers. Then the
            figures have `event_loop_lag_seconds`, its largest delay, and
            `event_loop_busy_seconds`, the most CPU time that it used during one delay.

    Raises:
        NotRunning: no broker is running on the data directory.
        ControlError: the request failed.
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
    missing: Callable[[str], object] = str,
) -> Any:
    """Run a command in the broker and return its result; its changes are then on disk.

    Args:
        data_dir: the data directory of the broker.
        command: the name of the command, such as "users.add".
        fields: the arguments of the command.
        patience: timeout for the answer in seconds.
        missing: called with a sentence if the answer has nothing of some stores of a cluster.

    Raises:
        NotRunning: no broker is running on the data directory.
        ControlError: the request failed, or the broker refused it; the text has its reason.
    """
    answer = _ask(data_dir, {"ask": command, **fields}, patience)
    away = answer.get(AWAY)
    if away:
        missing(missing_stores(", ".join(map(str, away))))
    return answer.get("answer")


def missing_stores(numbers: str) -> str:
    """Return the sentence about stores that are missing in an answer."""
    return f"nothing of these stores is shown, as they have no owner that answers: {numbers}"


def ask_rows(
    data_dir: Path,
    command: str,
    fields: Mapping[str, Any],
    patience: float = CONTROL_COMMAND_SECONDS,
) -> Iterator[list[dict[str, Any]]]:
    """Run a command with a stream of rows in the broker, and yield its rows in batches.

    Closing the iterator cancels the command.

    Args:
        data_dir: the data directory of the broker.
        command: the name of the command, such as "queues.browse".
        fields: the arguments of the command.
        patience: timeout for each batch in seconds.

    Raises:
        NotRunning: no broker is running on the data directory.
        ControlError: the request failed, or the broker refused it; the text has its reason.
    """
    with _asked(data_dir, {"ask": command, **fields}, patience) as lines:
        for line in lines:
            rows = _decoded(line, data_dir).get(ROWS)
            if rows is None:
                return
            yield rows


def _ask(data_dir: Path, request: Mapping[str, Any], patience: float) -> dict[str, Any]:
    with _asked(data_dir, request, patience) as lines:
        return _decoded(next(lines), data_dir)


@contextmanager
def _asked(
    data_dir: Path, request: Mapping[str, Any], patience: float
) -> Iterator[Iterator[bytes]]:
    """Send a request; gives the lines of the answer."""
    path = socket_path(data_dir)
    try:
        data = msgspec.json.encode(request) + b"\n"
    except UnicodeEncodeError:
        raise ControlError("a name or a value is not UTF-8: write it in UTF-8") from None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.settimeout(patience)
        try:
            link.connect(os.fspath(path))
            link.sendall(data)
        except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
            raise NotRunning(
                f"no broker runs on the data directory {data_dir}: start one with "
                f"`harebell serve --data-dir {data_dir}`, or name another with --url"
            ) from None
        except PermissionError:
            raise ControlError(
                f"the broker on {data_dir} belongs to another user: ask as that user or as root"
            ) from None
        except OSError as error:
            raise _unanswered(data_dir, error) from None
        yield _lines(link, data_dir)


def _unanswered(data_dir: Path, error: OSError) -> ControlError:
    return ControlError(f"the broker on {data_dir} does not answer: {error}")


def _lines(link: socket.socket, data_dir: Path) -> Iterator[bytes]:
    """Yield the lines that the broker sends, which end with an error if it sends no more."""
    parts: list[bytes] = []
    while True:
        try:
            chunk = link.recv(_CHUNK_BYTES)
        except OSError as error:
            raise _unanswered(data_dir, error) from None
        if not chunk:
            raise _unanswered(data_dir, ConnectionResetError("it closed the control connection"))
        *ended, rest = chunk.split(b"\n")
        for line in ended:
            yield b"".join([*parts, line])
            parts = []
        if rest:
            parts.append(rest)


def _decoded(line: bytes, data_dir: Path) -> dict[str, Any]:
    try:
        answer = msgspec.json.decode(line, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ControlError(f"the broker on {data_dir} answered nonsense: {error}") from None
    if answer.get("ok") is not True:
        reason = str(answer.get("error", answer))
        raise CommandError(f"on {data_dir}", reason, wrong=answer.get(WRONG) is True)
    return answer
