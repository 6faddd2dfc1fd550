"""Callbacks that raise: each is logged once by its name, and counted.

Timers, ticks and long operations are guarded where they are called (`base/failures.py`). What the
event loop calls by itself comes here: its callbacks, tasks that are not awaited, and threads.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from typing import Any

from harebell.base.failures import Failures, name_of

_CALLBACK = re.compile(r"Exception in callback (?:<[\w -]+? (?=\w+[.\w]* (?:of|at) ))?([\w.]+)")


def report_failures(
    failures: Failures, loop: asyncio.AbstractEventLoop, write: Callable[[str, str], object]
) -> None:
    """Log the failures of a broker, and count those of its event loop.

    Args:
        failures: of the broker.
        loop: its event loop.
        write: writes a line to the log, called with level and text.
    """

    def report(name: str, text: str) -> None:
        write(
            "error",
            f"{text}. This is a fault of Harebell, please report it; everything else goes on. "
            "harebell_failed_callbacks_total counts further ones, which are not logged",
        )

    def caught(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, Exception):
            failures.caught(_name(context), error)
        else:
            loop.default_exception_handler(context)

    failures.report = report
    loop.set_exception_handler(caught)


def report_threads(failures: Failures) -> None:
    """Count the threads of this process that an exception has ended."""

    def caught(ended: threading.ExceptHookArgs) -> None:
        name = "thread" if ended.thread is None else f"thread {ended.thread.name}"
        if isinstance(ended.exc_value, Exception):
            failures.caught(name, ended.exc_value)

    threading.excepthook = caught


def _name(context: dict[str, Any]) -> str:
    """Return the name of the callback or task that the event loop reports."""
    task = context.get("task") or context.get("future")
    if isinstance(task, asyncio.Task):
        return name_of(task.get_coro())
    message = str(context.get("message", ""))
    match = _CALLBACK.match(message)
    return match.group(1) if match else message.partition("(")[0].strip() or "event loop"
