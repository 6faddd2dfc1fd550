"""Run work in a thread, so that Ctrl-C can cancel it and wait for its end.

Py4J cannot be interrupted: its connection would take the answer to one call for that to the next.
The thread that gets Ctrl-C has a connection of its own, by which it cancels what the other runs.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait

_WAIT_SECONDS = 0.2


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
    # From the first moment of the work to the block that cancels it, Ctrl-C is only remembered.
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: pressed.append(number))
    try:
        future = threads.submit(work)
        try:
            signal.signal(signal.SIGINT, before)
            if pressed:
                raise KeyboardInterrupt
            # A wait does not notice a signal that comes just before it begins.
            while not wait([future], _WAIT_SECONDS).done:
                pass
            future.result()
        except KeyboardInterrupt:
            cancel()
            wait([future])
            raise
    finally:
        signal.signal(signal.SIGINT, before)
        threads.shutdown(wait=False)
