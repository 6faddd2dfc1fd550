"""The log of the broker: its level, its files, and their last lines."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from harebell.admin.limits import LOG_RECENT_LINES
from harebell_rabbitmq_compat.exits import VerbFailed
from harebell_rabbitmq_compat.verb import ANY, CTL, DIAGNOSTICS, Call, Report, Result, verb

LEVELS = ("debug", "info", "warning", "error", "critical", "none")
_OUTPUTS = ("console", "file", "exchange", "syslog", "journald")
_LINES = 50
_LOOK_SECONDS = 0.1
_ASK_SECONDS = 0.5


def _check_level(call: Call) -> None:
    level = call.arguments[0]
    if level not in LEVELS:
        raise VerbFailed(f"level {level} is not supported. Try one of {', '.join(LEVELS)}")


@verb("<log_level>", tools=CTL, check=_check_level, banner='Setting log level to "{0}" ...')
def set_log_level(call: Call) -> None:
    """Set the least level of the log, until a restart or a reload of the configuration."""
    # Harebell has no lines above the level error.
    level = "none" if call.arguments[0] == "critical" else call.arguments[0]
    known: dict[str, Any] = call.ask("config.effective")
    call.ask("config.set", key="log_level", value=level)
    for output in _OUTPUTS:
        # An output with a level of its own does not follow log_level.
        if known.get(f"log_{output}_level", "none") != "none":
            call.ask("config.set", key=f"log_{output}_level", value=level)


@verb("[--all|-a]", tools=DIAGNOSTICS, state=ANY, banner="Log file location(s) on node {node} ...")
def log_location(call: Call) -> Result:
    """Print where the log is written."""
    overview = call.node.overview()
    every = [str(path) for path in overview["log_files"]]
    if overview["log_console"]:
        every.append(f"<{overview['log_console']}>")
    paths = every if call.flags.get("all") else every[:1]
    return Report("\n".join(paths), node_name=overview["node"], paths=paths, result="ok")


def _file(call: Call) -> Path | None:
    """Return the first log file; None if the broker writes none."""
    paths = call.node.overview()["log_files"]
    return Path(paths[0]) if paths else None


def _recent(call: Call, *, after: int = 0, limit: int = LOG_RECENT_LINES) -> list[dict[str, Any]]:
    """Return the last lines of the log that the broker has in memory."""
    lines: list[dict[str, Any]] = call.ask("logs.tail", after=after, limit=limit)
    return lines


def _written(line: dict[str, Any]) -> str:
    """Return a line as it would be in a log file."""
    return f"{line['time']} [{line['level']}] {line['pid']} {line['text']}"


def _opened(path: Path) -> IO[str]:
    """Open a log file.

    Raises:
        VerbFailed: it cannot be read.
    """
    try:
        return path.open(encoding="utf-8", errors="replace")
    except OSError as error:
        raise VerbFailed(f"cannot read {path}: {error.strerror or error}") from None


@verb(
    "[--number|-N <number>] [--timeout <timeout>]",
    flags={"number": int},
    tools=DIAGNOSTICS,
    state=ANY,
    banner=lambda call: (
        f"Last {call.flags.get('number', _LINES)} log lines on node {call.node.name} ..."
    ),
)
def log_tail(call: Call) -> str:
    """Print the last lines of the log file, or of the broker's memory if it writes none."""
    count = max(call.flags.get("number", _LINES), 0)
    path = _file(call)
    if path is None:
        recent = _recent(call, limit=min(count, LOG_RECENT_LINES)) if count else []
        return "\n".join(map(_written, recent))
    with _opened(path) as lines:
        return "".join(deque(lines, count)).rstrip("\n")


@verb(
    "[--duration|-d <seconds>] [--timeout <timeout>]",
    flags={"duration": float},
    tools=DIAGNOSTICS,
    state=ANY,
    banner=lambda call: (
        f"Streaming logs from node {call.node.name} for {call.flags['duration']:g} seconds ..."
        if "duration" in call.flags
        else f"Streaming logs from node {call.node.name} ..."
    ),
)
def log_tail_stream(call: Call) -> None:
    """Print new lines of the log as they are written, also after a rotation of its file."""
    seconds = call.flags.get("duration")
    until = None if seconds is None else time.monotonic() + seconds
    path = _file(call)
    for line in _new_recent(call, until) if path is None else _new_lines(path, until):
        print(line, end="", flush=True)


def _new_recent(call: Call, until: float | None) -> Iterator[str]:
    """Yield the lines that the broker writes, until a time."""
    last = max((each["number"] for each in _recent(call, limit=1)), default=0)
    while until is None or time.monotonic() < until:
        for line in _recent(call, after=last):
            last = line["number"]
            yield _written(line) + "\n"
        time.sleep(_ASK_SECONDS)


def _new_lines(path: Path, until: float | None) -> Iterator[str]:
    """Yield lines as they are appended to a file, until a time."""
    file = _opened(path)
    try:
        file.seek(0, 2)
        started = ""
        while until is None or time.monotonic() < until:
            text = file.readline()
            if text.endswith("\n"):
                yield started + text
                started = ""
                continue
            started += text
            if not text and _is_another(file, path):
                file.close()
                file = _opened(path)
                continue
            time.sleep(_LOOK_SECONDS)
    finally:
        file.close()


def _is_another(file: IO[str], path: Path) -> bool:
    """Whether a path has another file now than the one that is open, or a shorter one."""
    import os

    try:
        now = path.stat()
    except OSError:
        return False
    opened = os.fstat(file.fileno())
    return (now.st_ino, now.st_dev) != (opened.st_ino, opened.st_dev) or now.st_size < file.tell()
