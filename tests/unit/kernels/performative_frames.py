"""Frames of AMQP 1.0 for the tests of its kernels, and a sink that keeps every call."""

from __future__ import annotations

from typing import Any

from harebell.base.arrivals import Arrivals
from harebell.base.errors import ConditionError
from tests.unit.kernels.twins import told, used


def sink(module: Any) -> Any:
    """A sink that keeps every call. A passage has room for `passes` octets, and takes `limit`."""

    class Recorder(module.PerformativeSink):  # type: ignore[misc]
        def __init__(self) -> None:
            self.calls: list[tuple[Any, ...]] = []
            self.properties: list[Any] = []
            self.on_call: Any = None
            self.passes = 0
            self.limit = 1 << 20
            self.out = used("transfers_1_0").TransferBuffer()

        def note(self, *call: Any) -> int:
            self.calls.append(call)
            if self.on_call is not None:
                self.on_call()
            return 0

        def frame(self, channel: int, kind: int, body: bytes) -> int:
            return self.note("frame", channel, kind, body)

        def transfer(self, *known: Any) -> int:
            *fields, properties, body = known
            self.properties.append(properties)
            return self.note("transfer", *fields, told(properties), properties.family, body)

        def passage(self, channel: int, handle: int, flags: int) -> Any:
            self.note("passage", channel, handle, flags)
            if not self.passes:
                return None
            made = used("transfers_1_0").TransferPassage
            full = self.out.size + self.passes
            passage = made(self, self.out, 5, 6, 0, "", "q", 1 << 20, full)
            passage.limit = self.limit
            passage.open_to(self, Arrivals(), False, 1 << 20, False)
            return passage

        def passed(self, passage: Any) -> int:
            done = self.note("passed", passage.count, self.out.take())
            assert passage.consumer is self
            return done

        def partial(self, *known: Any) -> int:
            return self.note("partial", *known)

        def disposition(self, channel: int, role: bool, *known: Any) -> int:
            first, last, settled, outcome, state = known
            settlement = (bool(role), first, last, bool(settled), outcome, state)
            return self.note("disposition", channel, *settlement)

        def flow(self, *known: Any) -> int:
            return self.note("flow", *known)

    return Recorder()


def scan(
    module: Any,
    parts: list[bytes],
    fast: bool = True,
    limit: int = 4096,
    pending: int = 0,
    passes: int = 0,
) -> list[Any]:
    seen = sink(module)
    seen.passes = passes
    scanner = module.PerformativeScanner(seen)
    scanner.fast = fast
    scanner.frame_max = limit
    scanner.pending = pending
    try:
        for part in parts:
            scanner.feed(part)
    except ConditionError as error:
        seen.calls.append(("error", error.condition, error.text))
    seen.calls.append(("kept", scanner.buffered))
    calls: list[Any] = seen.calls
    return calls


def said(function: Any, *arguments: Any) -> Any:
    """What a call gives, or the condition and text of its error."""
    try:
        return function(*arguments)
    except ConditionError as error:
        return (error.condition, error.text)
