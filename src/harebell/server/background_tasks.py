"""Tasks that nothing waits for: they are kept until they end, and cancelled together.

The event loop has only weak references to its tasks, so one that nothing else refers to may vanish
in the middle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


class BackgroundTasks:
    """The running tasks of one object."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        """Return how many tasks run."""
        return len(self._running)

    def start(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """Start a task in the running event loop."""
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def cancel(self) -> None:
        """Cancel all tasks."""
        for task in list(self._running):
            task.cancel()
