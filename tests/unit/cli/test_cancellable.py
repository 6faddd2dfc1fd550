"""Work that Ctrl-C cancels: in a thread of its own, with its result and errors in the caller."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

from harebell.cli import cancellable
from harebell.cli.cancellable import run_cancellable


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt, where a shell runs the tests in the background too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_error_of_the_work_is_raised_where_it_was_asked_for() -> None:
    def fail() -> None:
        raise ValueError("nothing")

    done: list[int] = []
    run_cancellable(lambda: done.append(1), lambda: None)
    assert done == [1]
    with pytest.raises(ValueError, match="nothing"):
        run_cancellable(fail, lambda: None)


def test_ctrl_c_cancels_the_work_and_waits_for_its_end() -> None:
    begun, told, ended = threading.Event(), threading.Event(), []

    def work() -> None:
        begun.set()
        told.wait(60)
        ended.append(told.is_set())
        raise ValueError("cancelled")

    def press() -> None:
        begun.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        run_cancellable(work, told.set)
    assert ended == [True]


def pressed_at(line: int) -> bool | None:
    """Run work and press Ctrl-C before a line of `run_cancellable`, counted as they run.

    Returns whether work that had begun was cancelled; None if there are not so many lines.
    """
    begun, told, ended = threading.Event(), threading.Event(), threading.Event()
    left = [line]

    def work() -> None:
        begun.set()
        told.wait(60)
        ended.set()

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        if frame.f_code.co_filename != cancellable.__file__:
            return None
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                sys.settrace(None)
                # To this thread: one that another thread gets may be noticed after the end.
                signal.raise_signal(signal.SIGINT)
        return trace

    # The last line of work that nobody cancels waits for it.
    timer = threading.Timer(0.5, told.set)
    timer.start()
    sys.settrace(trace)
    try:
        run_cancellable(work, told.set)
    except KeyboardInterrupt:
        return not begun.is_set() or ended.is_set()
    finally:
        sys.settrace(None)
        timer.cancel()
        told.set()
    assert left[0] > 0, "Ctrl-C was lost"
    return None


def test_ctrl_c_cancels_the_work_at_whatever_moment_it_comes() -> None:
    results: list[bool] = []
    for line in range(1, 60):
        cancelled = pressed_at(line)
        if cancelled is None:
            break
        results.append(cancelled)
    assert len(results) >= 8
    assert all(results), results
