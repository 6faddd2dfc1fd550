"""Workers of the asyncio API: each handler runs in a task."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, Self

from harebell.client.aio.consumer import Delivery
from harebell.client.aio.driver import run
from harebell.client.errors import AMQPError
from harebell.client.protocol.shared_worker import SharedWorker


class Worker(SharedWorker[Delivery]):
    """Calls a handler with each message of a queue. Get one from `Channel.handle`.

    Either `await worker.run()`, or enter it with `async with`: it runs beside the block, and ends
    with it.

    Attributes:
        on_end: called when a worker beside a block has ended by itself, or with it.
    """

    on_end: Callable[[], None] | None = None
    _task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Handle messages until `stop()`, the idle time or the end of the subscription.

        At the end running handlers end, and prefetched messages are requeued. If this call is
        cancelled, handlers are cancelled and their messages requeued.

        Raises:
            AMQPError: the subscription, the channel or the connection has ended.
        """
        self._begin()
        tasks: set[asyncio.Task[None]] = set()
        try:
            async with self._consumer:
                while (message := await run(self._connection, self._next())) is not None:
                    self._connection.taken()
                    self.running += 1
                    task = asyncio.create_task(self._one(message))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
            await _over(tasks)
        except AMQPError:
            await _over(tasks)
            raise
        finally:
            for task in tasks:
                task.cancel()
            await _over(tasks)
        self._check()

    async def _one(self, message: Delivery) -> None:
        """Handle a message."""
        try:
            answer: Any = self._handler(message)
            if inspect.isawaitable(answer):
                await answer
        except Exception as error:
            self._failed(message, error)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                message.give_up(requeue=True)
                raise
            # The handler awaited what another task has cancelled.
            failure = RuntimeError("the handler ended with CancelledError")
            failure.__cause__ = error
            self._failed(message, failure)
        except BaseException:
            message.give_up(requeue=True)
            raise
        else:
            self._succeeded(message)
        finally:
            self.running -= 1
            self._wake()

    def _wake(self) -> None:
        self._inbox.wake()

    async def __aenter__(self) -> Self:
        await self._consumer.start()
        self._task = asyncio.create_task(self.run())
        self._task.add_done_callback(self._over)
        return self

    def _over(self, task: asyncio.Task[None]) -> None:
        if self.on_end is not None:
            self.on_end()

    async def __aexit__(self, kind: object, *error: object) -> None:
        assert self._task is not None, "left before it was entered"
        self.stop()
        try:
            await self._task
        except Exception:
            # The error of the block says more.
            if kind is None:
                raise


async def _over(tasks: set[asyncio.Task[None]]) -> None:
    """Wait until all tasks have ended."""
    if tasks:
        await asyncio.wait(tasks)
