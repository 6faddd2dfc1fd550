"""The driver of the asyncio API: a task awaits each wait of a method, while another task reads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Self, TypeVar

from harebell.client.protocol.waits import BLOCK, Awaiting, Steps

T = TypeVar("T")


async def run(connection: Any, steps: Steps[T], error: BaseException | None = None) -> T:
    """Run the steps of a method to their end, or to the block of a `with` statement.

    Args:
        connection: an `aio.Connection`, which answers the waits.
        steps: new ones, or those that have waited for a block.
        error: of the block.
    """
    try:
        wait = steps.send(None) if error is None else steps.throw(error)
        while wait is not BLOCK:
            try:
                answer = await connection.answer(wait)
            except BaseException as failure:
                wait = steps.throw(failure)
            else:
                wait = steps.send(answer)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    return None  # type: ignore[return-value]


def _steps(function: Callable[..., Steps[Any]]) -> Callable[..., Any]:
    async def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return await run(self._connection, function(self, *args, **kwargs))

    return method


def _scope(function: Callable[..., Steps[None]]) -> Callable[..., Any]:
    @asynccontextmanager
    async def method(self: Any, **kwargs: Any) -> AsyncIterator[Any]:
        steps = function(self, **kwargs)
        await run(self._connection, steps)
        try:
            yield self
        except BaseException as error:
            await run(self._connection, steps, error)
        else:
            await run(self._connection, steps)

    return method


def _publishing(function: Callable[..., Any]) -> Callable[..., Any]:
    async def method(
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
        connection.check_thread()
        if connection.recovering or not self.core.flow_active or connection.congested:
            await run(connection, self._ready())
        confirm = self._sent(body, exchange, routing_key, mandatory, properties)
        await connection.finish(confirm)

    return method


def _written(function: Callable[..., Any]) -> Callable[..., Any]:
    async def method(self: Any, /, *args: Any, **kwargs: Any) -> None:
        full = function(self, *args, **kwargs)
        if full is not None:
            await full.drain()

    return method


class AsyncShell(Awaiting):
    """The part of the classes of this API that waits."""

    __slots__ = ()

    _steps = staticmethod(_steps)
    _scope = staticmethod(_scope)
    _publishing = staticmethod(_publishing)
    _written = staticmethod(_written)
    _block = "AsyncIterator"
    _words: ClassVar[dict[str, str]] = {"ItemsT": "Iterable[Item] | AsyncIterable[Item]"}


class AsyncClosing:
    """Closes itself at the end of an `async with` block."""

    __slots__ = ()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()  # type: ignore[attr-defined]
