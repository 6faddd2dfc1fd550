"""What the event loop calls by itself is logged once by its name when it raises, and counted."""

from __future__ import annotations

import asyncio
import threading

import pytest

from harebell.base.failures import Failures
from harebell.server.failed_callbacks import report_failures, report_threads


class Broken:
    """Callbacks of every kind that raise."""

    def callback(self) -> None:
        raise ValueError("callback")

    async def task(self) -> None:
        raise ValueError("task")

    def thread(self) -> None:
        raise ValueError("thread")


async def raised(failures: Failures, lines: list[tuple[str, str]]) -> None:
    loop = asyncio.get_running_loop()
    report_failures(failures, loop, lambda level, text: lines.append((level, text)))
    broken = Broken()
    for _ in range(2):
        loop.call_soon(broken.callback)
        task = loop.create_task(broken.task())
        await asyncio.sleep(0.01)
        del task


@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_callbacks_and_tasks_are_counted_and_logged_once(kind: str) -> None:
    failures, lines = Failures(), []
    factory = None
    if kind == "uvloop":
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(raised(failures, lines))
    assert failures.counts == {"Broken.callback": 2, "Broken.task": 2}
    assert [level for level, _ in lines] == ["error", "error"]
    assert "Broken.callback failed: ValueError: callback (test_failed_callbacks.py:" in lines[0][1]


def test_a_thread_that_ends_with_an_exception_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    failures = Failures()
    failures.report = lambda name, text: None
    report_threads(failures)
    thread = threading.Thread(target=Broken().thread, name="flusher", daemon=True)
    thread.start()
    thread.join()
    assert failures.counts == {"thread flusher": 1}
