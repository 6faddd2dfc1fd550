"""Tasks of an object: kept while they run, and cancelled together."""

from __future__ import annotations

import asyncio
import gc
import weakref

from harebell.server.background_tasks import BackgroundTasks


def test_a_task_that_nothing_else_refers_to_is_not_collected() -> None:
    async def play() -> None:
        tasks = BackgroundTasks()
        futures: weakref.WeakSet[asyncio.Future[None]] = weakref.WeakSet()
        ended: list[int] = []

        async def work() -> None:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            futures.add(future)
            await future
            ended.append(1)

        tasks.start(work())
        await asyncio.sleep(0)
        gc.collect()
        (future,) = futures
        assert len(tasks) == 1
        future.set_result(None)
        await asyncio.sleep(0.01)
        assert (ended, len(tasks)) == ([1], 0)

    asyncio.run(play())


def test_all_tasks_are_cancelled_together() -> None:
    async def play() -> None:
        tasks = BackgroundTasks()
        started = [tasks.start(asyncio.sleep(60)) for _ in range(3)]
        await asyncio.sleep(0)
        tasks.cancel()
        await asyncio.wait(started)
        assert all(task.cancelled() for task in started)
        assert len(tasks) == 0

    asyncio.run(play())
