"""Threads that run one at a time, in every order that a few switches can give.

    program 0   a1 a2 a3 | . . . . . . | a4 a5        switches = (3, 6)
    program 1            | b1 b2 b3    |       b4

Each program runs in a thread of its own and stops before every line of the files under test, at
every cooperative lock and wherever it calls `point`. One of them goes on at a time. Without a
switch the first one runs to its end, then the next. `explore` begins with no switch and tries all
places for one, then for two: most faults between threads need no more (Musuvathi and Qadeer, 2007).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType, ModuleType
from typing import Any

_WAIT_SECONDS = 60.0

Program = Callable[[], None]


class Deadlock(RuntimeError):
    """Every program waits for a lock that another one holds."""


class _Running(threading.Thread):
    def __init__(self, run: Interleaving, program: Program) -> None:
        super().__init__(daemon=True)
        self.go = threading.Semaphore(0)
        self.over = False
        self.wants: Lock | None = None
        self.error: BaseException | None = None
        self._run = run
        self._program = program

    def run(self) -> None:
        assert self.go.acquire(timeout=_WAIT_SECONDS), "the program was never started"
        sys.settrace(self._run.trace)
        try:
            self._program()
        except BaseException as error:
            self.error = error
        finally:
            sys.settrace(None)
            self.over = True
            self._run.next_one(self)


class Interleaving:
    """One run of several programs.

    Args:
        modules: whose lines are places to stop at.
        switches: the numbers of the steps before which another program goes on, from 0.
        programs: the first one begins.

    Attributes:
        steps: how many there were.
    """

    current: Interleaving | None = None

    def __init__(
        self, modules: Sequence[ModuleType], switches: Sequence[int], *programs: Program
    ) -> None:
        self.steps = 0
        self._files = {module.__file__ for module in modules}
        self._switches = set(switches)
        self._threads = [_Running(self, program) for program in programs]
        self._done = threading.Event()
        self._stuck = False

    def run(self) -> None:
        """Run to the end of all programs; raises what the first one raised that failed."""
        Interleaving.current = self
        try:
            for thread in self._threads:
                thread.start()
            self._threads[0].go.release()
            assert self._done.wait(_WAIT_SECONDS), "the programs did not end"
        finally:
            Interleaving.current = None
        if self._stuck:
            raise Deadlock(f"each program waits for another one after {self.steps} steps")
        for thread in self._threads:
            thread.join(_WAIT_SECONDS)
            if thread.error is not None:
                raise thread.error

    def trace(self, frame: FrameType, event: str, argument: object) -> Any:
        """Called by the interpreter for every function and line."""
        if frame.f_code.co_filename not in self._files:
            return None
        if event == "line":
            self.point()
        return self.trace

    def point(self) -> None:
        """A place to stop at."""
        me = threading.current_thread()
        if not isinstance(me, _Running):
            return
        step, self.steps = self.steps, self.steps + 1
        if step in self._switches:
            self.next_one(me)

    def next_one(self, me: _Running) -> None:
        """Let the next program go on that can; this one stops, unless it is the only one."""
        at = self._threads.index(me)
        order = [*self._threads[at + 1 :], *self._threads[: at + 1]]
        for thread in order:
            if not thread.over and (thread.wants is None or thread.wants.owner is None):
                break
        else:
            self._stuck |= not all(thread.over for thread in self._threads)
            self._done.set()
            for thread in self._threads:
                thread.go.release()
            if not me.over:
                raise SystemExit
            return
        if thread is not me:
            thread.go.release()
            if not me.over:
                assert me.go.acquire(timeout=_WAIT_SECONDS), "the program was never resumed"
                if self._stuck:
                    raise SystemExit


class Lock:
    """A lock that lets another program go on instead of stopping everything."""

    def __init__(self) -> None:
        self.owner: threading.Thread | None = None

    def acquire(self, blocking: bool = True) -> bool:
        """Take it; without `blocking` only if it is free."""
        me = threading.current_thread()
        run = Interleaving.current
        if run is not None and isinstance(me, _Running):
            run.point()
            while self.owner is not None:
                if not blocking:
                    return False
                me.wants = self
                run.next_one(me)
                me.wants = None
        assert self.owner is None, "the lock is taken outside the programs"
        self.owner = me
        return True

    def release(self) -> None:
        """Give it back."""
        self.owner = None

    def __enter__(self) -> Lock:
        self.acquire()
        return self

    def __exit__(self, *error: object) -> None:
        self.release()


def point() -> None:
    """A place to stop at, in what a test puts between the code and the system."""
    if Interleaving.current is not None:
        Interleaving.current.point()


def explore(
    modules: Sequence[ModuleType],
    make: Callable[[], Sequence[Program]],
    check: Callable[[], None],
    *,
    switches: int = 2,
) -> int:
    """Run programs in every order that so many switches give; how many orders there were.

    Args:
        modules: whose lines are places to stop at.
        make: makes the programs of a run.
        check: called after each run; raises what is wrong.
        switches: the most of a run.
    """
    runs = 0
    pending: list[tuple[int, ...]] = [()]
    while pending:
        chosen = pending.pop()
        run = Interleaving(modules, chosen, *make())
        try:
            run.run()
            check()
        except BaseException as error:
            error.add_note(f"with switches before the steps {chosen}")
            raise
        runs += 1
        if len(chosen) < switches:
            pending += [(*chosen, step) for step in _later(chosen, run.steps)]
    return runs


def _later(chosen: Sequence[int], steps: int) -> Iterator[int]:
    yield from range(chosen[-1] + 1 if chosen else 0, steps)
