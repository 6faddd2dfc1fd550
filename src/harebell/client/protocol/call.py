"""A request to the broker and its answer.

The core has neither tasks nor threads, so a verb that has to wait for the broker returns a
`Call`. The asyncio API turns it into a future; the blocking API reads the socket until it is done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from harebell.client.errors import AMQPError

T = TypeVar("T")


class Call(Generic[T]):
    """One pending answer. It is settled once; settling it again does nothing."""

    __slots__ = ("_callbacks", "_result", "done", "error")

    def __init__(self) -> None:
        self.done = False
        self.error: AMQPError | None = None
        self._result: T | None = None
        self._callbacks: list[Callable[[Call[T]], None]] = []

    @classmethod
    def answered(cls, result: T) -> Call[T]:
        """Return a call that needs no answer of the broker."""
        call = cls()
        call.succeed(result)
        return call

    def succeed(self, result: T) -> None:
        """Settle with the answer."""
        if not self.done:
            self._result = result
            self._settle()

    def fail(self, error: AMQPError) -> None:
        """Settle with an error."""
        if not self.done:
            self.error = error
            self._settle()

    def _settle(self) -> None:
        self.done = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def when_done(self, callback: Callable[[Call[T]], None]) -> None:
        """Call `callback(call)` when the answer arrives; at once if the call is done."""
        if self.done:
            callback(self)
        else:
            self._callbacks.append(callback)

    def drop(self, callback: Callable[[Call[T]], None]) -> None:
        """Drop a callback of a call that is not done: no task waits any more."""
        if callback in self._callbacks:
            self._callbacks.remove(callback)

    def value(self) -> T:
        """Return the answer of a settled call, or raise its error."""
        assert self.done, "the call is not done"
        if self.error is not None:
            # One error can settle many calls; each raise starts a traceback of its own.
            raise self.error.with_traceback(None)
        return self._result  # type: ignore[return-value]
