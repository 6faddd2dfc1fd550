"""Callbacks that raise: one that does stops nothing else.

A timer, a long operation, the end of a commit or a tick works for somebody who is not waiting for
its result. If it raises, that is a fault of Harebell or of one message; what others wait for goes
on, the fault is counted by the name of the callback, and the first of each name is reported.
Without a reporter, in tests and simulations, it is raised.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from traceback import extract_tb
from typing import Any


class Failures:
    """The callbacks of one broker that raised.

    Attributes:
        counts: how often each has raised, by its name.
        report: called with the name and a sentence when a callback raises for the first time; None
            to raise the exception.
    """

    __slots__ = ("counts", "report")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.report: Callable[[str, str], object] | None = None

    def guard(self, call: Callable[..., object], *arguments: Any) -> bool:
        """Call something; False if it raised."""
        try:
            call(*arguments)
        except Exception as error:  # what others wait for goes on
            self.caught(call, error)
            return False
        return True

    def caught(self, call: object, error: Exception) -> None:
        """Count a callback that raised, and report the first one of its name.

        Args:
            call: the callback, or its name.
            error: what it raised; raised again without a reporter.
        """
        if self.report is None:
            raise error
        name = call if isinstance(call, str) else name_of(call)
        before = self.counts.get(name, 0)
        self.counts[name] = before + 1
        if not before:
            self.report(name, f"{name}{_owner_of(call)} failed: {described(error)}")


def name_of(call: object) -> str:
    """Return the name of a callback: `Class.method`, without the object."""
    while isinstance(call, partial):
        call = call.func
    name = getattr(call, "__qualname__", "") or type(call).__qualname__
    return name.replace(".<locals>", "")


def _owner_of(call: object) -> str:
    """Return the name of the thing that a callback works for, for a sentence; "" if it has none."""
    name = getattr(getattr(call, "__self__", None), "name", None)
    return f" of '{name}'" if isinstance(name, str) and name else ""


def described(error: BaseException) -> str:
    """Return an exception in one line, with the place where it was raised."""
    frames = extract_tb(error.__traceback__)
    place = ""
    if frames:
        last = frames[-1]
        place = f" ({last.filename.rpartition('/')[2]}:{last.lineno})"
    return f"{type(error).__name__}: {error}{place}"
