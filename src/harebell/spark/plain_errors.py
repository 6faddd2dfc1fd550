"""Errors of Harebell as Spark shows them: the sentence, without the calls that led to it.

Spark prints the traceback of an error in Python as the error itself, with those of its causes. The
errors that Harebell raises on purpose name the thing and how to mend it; fifty lines of frames in
front of that sentence hide it. Other errors keep all their frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import ParamSpec, TypeVar

from harebell.base.errors import HarebellError

_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")


def without_traceback(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let a method that Spark calls raise errors of Harebell without their frames and causes."""

    @wraps(method)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return method(*args, **kwargs)
        except HarebellError as error:
            raise error.with_traceback(None) from None

    return called


def rows_without_traceback(rows: Iterator[_T]) -> Iterator[_T]:
    """Yield what a task reads; errors of Harebell are raised without their frames and causes."""
    try:
        yield from rows
    except HarebellError as error:
        raise error.with_traceback(None) from None
