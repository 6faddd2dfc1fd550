"""The driver of the blocking API: a method that waits reads the socket itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any, ClassVar, Self, TypeVar

from harebell.client.protocol.shown import adapted
from harebell.client.protocol.waits import BLOCK, Blocking, Steps

T = TypeVar("T")

_BUFFERED = """\
Output is buffered, and written when there is enough of it or with the next call that waits;
        `Connection.flush()` writes it now."""
"""What the description of `publish_nowait` says of its output."""


def run(connection: Any, steps: Steps[T], error: BaseException | None = None) -> T:
    """Run the steps of a method to their end, or to the block of a `with` statement.

    Args:
        connection: a `blocking.Connection`, which answers the waits.
        steps: new ones, or those that have waited for a block.
        error: of the block.
    """
    try:
        wait = steps.send(None) if error is None else steps.throw(error)
        while wait is not BLOCK:
            try:
                answer = connection.answer(wait)
            except BaseException as failure:
                wait = steps.throw(failure)
            else:
                wait = steps.send(answer)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    return None  # type: ignore[return-value]


def _steps(function: Callable[..., Steps[Any]]) -> Callable[..., Any]:
    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return run(self._connection, function(self, *args, **kwargs))

    return method


def _scope(function: Callable[..., Steps[None]]) -> Callable[..., Any]:
    @contextmanager
    def method(self: Any, **kwargs: Any) -> Iterator[Any]:
        steps = function(self, **kwargs)
        run(self._connection, steps)
        try:
            yield self
        except BaseException as error:
            run(self._connection, steps, error)
        else:
            run(self._connection, steps)

    return method


def _publishing(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(
        self: Any,
        body: Any,
        *,
        exchange: str = "",
        routing_key: str = "",
        mandatory: bool = False,
        **properties: Any,
    ) -> None:
        # Arguments by name: passing on any arguments takes a tenth of the time of a publish.
        connection = self.connection
        connection.usable()
        if not self.core.flow_active:
            run(connection, self._ready())
        confirm = self._sent(body, exchange, routing_key, mandatory, properties)
        connection.finish(confirm)

    return method


def _written(function: FunctionType) -> FunctionType:
    return adapted(function, {})


class BlockingShell(Blocking):
    """The part of the classes of this API that waits."""

    __slots__ = ()

    _steps = staticmethod(_steps)
    _scope = staticmethod(_scope)
    _publishing = staticmethod(_publishing)
    _written = staticmethod(_written)
    _words: ClassVar[dict[str, str]] = {
        "ItemsT": "Iterable[Item]",
        "async for": "for",
        "async with": "with",
        "await the answer now, later, or together with others": "call `wait()` for the answer "
        "later",
        "It does not wait for the socket either: await one of the answers now and then.": _BUFFERED,
    }


class BlockingClosing:
    """Closes itself at the end of a `with` block."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()  # type: ignore[attr-defined]
