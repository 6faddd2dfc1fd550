"""Measure the memory of the process, and give back what it does not need.

The C library's allocator keeps freed memory up to a limit (`harebell.base.heap`), and glibc never
returns freed memory that lies below memory in use. `MemoryWatch` returns it when the load has
ended, and before publishers are blocked: they do not wait because of memory that holds nothing.
"""

from __future__ import annotations

import ctypes
import resource
from collections.abc import Callable

from harebell.base.gauge import Gauge
from harebell.base.limits import HEAP_KEEP_BYTES
from harebell.server.limits import (
    HEAP_TRIM_BYTES,
    MEMORY_READ_SECONDS,
    MEMORY_SPILL_SHARE,
    MEMORY_TRIM_BYTES,
    MEMORY_TRIM_SECONDS,
    TICK_SECONDS,
)

_PAGE = resource.getpagesize()


def resident_bytes() -> int | None:
    """Return the resident memory of the process; None if the platform does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * _PAGE
    except OSError:
        return None


class MemoryWatch:
    """Tells a gauge what the process uses, and keeps that low.

    Args:
        gauge: the memory gauge of the broker.
        press: called with whether memory is short, so that messages go to disk if it is.
        clock: returns seconds.
    """

    def __init__(
        self, gauge: Gauge, press: Callable[[bool], object], clock: Callable[[], float]
    ) -> None:
        self._gauge = gauge
        self._press = press
        self._clock = clock
        self._answers = 0
        self._peak = 0
        self._last = 0
        self._read_at = float("-inf")
        # What the process has beside messages and answers when all freed memory is given back. A
        # start leaves some as well.
        self._base = -HEAP_TRIM_BYTES
        self._slack_at = float("-inf")
        # When freed memory is looked for again, and how long to wait after a search in vain.
        self._trim_at = float("-inf")
        self._pause = TICK_SECONDS
        self._trim: Callable[[int], int] | None
        try:
            self._trim = ctypes.CDLL(None).malloc_trim
        except (AttributeError, OSError):
            # Only glibc has malloc_trim: musl and macOS have not.
            self._trim = None
        gauge.measure = self._measure

    def count_answers(self, byte_count: int) -> None:
        """Note that so many bytes more, or fewer, of answers over HTTP wait for their clients."""
        self._answers += byte_count
        self._peak = max(self._peak, self._used())

    def _used(self) -> int:
        """Return the bytes of messages, and of answers."""
        return self._gauge.used + self._answers

    def look(self) -> None:
        """Measure the process, give back what is free, and say whether memory is short."""
        used = self._used()
        self._peak = max(self._peak, used)
        quiet = abs(used - self._last) < HEAP_KEEP_BYTES
        self._last = used
        self.measure()
        # Not amid the load: it would take again at once what is given back now.
        if quiet and self._has_slack():
            self._give_back()
            self._read()
            self._base = self._gauge.other - self._answers
            # A load of large messages takes again what an idle broker does not need.
            self._slack_at = self._clock() + MEMORY_TRIM_SECONDS
        self._press(self._is_near())

    def _has_slack(self) -> bool:
        """True if the process has much more than messages, answers and what it always needs."""
        beside = self._gauge.other - self._answers
        self._base = min(self._base, beside)
        return beside - self._base >= HEAP_TRIM_BYTES and self._clock() >= self._slack_at

    def measure(self) -> None:
        """Measure the process; near the watermark first give back what is free."""
        self._read()
        if self._is_near() and self._is_worth_it():
            before = self._gauge.resident()
            self._give_back()
            self._read()
            # malloc_trim goes through the whole heap, and all clients wait meanwhile: each search
            # in vain doubles the time to the next.
            well = before - self._gauge.resident() >= MEMORY_TRIM_BYTES
            self._pause = TICK_SECONDS if well else min(self._pause * 2, MEMORY_TRIM_SECONDS)
            self._trim_at = self._clock() + self._pause

    def _measure(self) -> None:
        """Measure before publishers are blocked, unless that was done just now."""
        if self._clock() - self._read_at >= MEMORY_READ_SECONDS:
            self.measure()

    def _is_near(self) -> bool:
        """True if the process is above, or nearly at, its watermark."""
        gauge = self._gauge
        return gauge.high >= 0 and gauge.resident() > gauge.high * MEMORY_SPILL_SHARE

    def _is_worth_it(self) -> bool:
        """True if memory may be free: something has gone, or nothing was freed for a while."""
        gone = self._peak - self._used() >= MEMORY_TRIM_BYTES
        return gone or self._clock() >= self._trim_at

    def _read(self) -> None:
        self._read_at = self._clock()
        byte_count = resident_bytes()
        if byte_count is not None:
            self._gauge.set_resident(byte_count)

    def _give_back(self) -> None:
        # What has gone up to now is given back: only what goes later is worth another search.
        self._peak = self._used()
        if self._trim is not None:
            self._trim(0)
