"""Run work in a thread, so that Ctrl-C can cancel it and wait for its end.

Py4J cannot be interrupted: its connection would take the answer to one call for that to the next.
The thread that gets Ctrl-C has a connection of its own, by which it cancels what the other runs.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait


def run_cancellable(work: Callable[[], None], cancel: Callable[[], None]) -> None:
    """Run work, in this thread's time and with its errors; for the main thread.

    Args:
        work: runs in a thread of its own.
        cancel: makes the work end; called in this thread after Ctrl-C.

    Raises:
        KeyboardInterrupt: after Ctrl-C, when the work has ended.
    """
    # Not `Thread.join`: Python 3.11 takes a thread for ended when Ctrl-C interrupts that.
    threads = ThreadPoolExecutor(1, "statement")
    future, pressed = _submitted(threads, work)
    try:
        if pressed:
            raise KeyboardInterrupt
        future.result()
    except KeyboardInterrupt:
        cancel()
        wait([future])
        raise
    finally:
        threads.shutdown(wait=False)


def _submitted(
    threads: ThreadPoolExecutor, work: Callable[[], None]
) -> tuple[Future[None], list[int]]:
    """Start work; Ctrl-C meanwhile is remembered, so that there is something to cancel."""
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: pressed.append(number))
    try:
        return threads.submit(work), pressed
    finally:
        signal.signal(signal.SIGINT, before)
