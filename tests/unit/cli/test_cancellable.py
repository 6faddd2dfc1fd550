"""Work that Ctrl-C cancels: in a thread of its own, with its result and errors in the caller."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from harebell.cli.cancellable import run_cancellable


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
