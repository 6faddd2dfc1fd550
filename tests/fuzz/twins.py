"""Both implementations of the frame kernel in one process, to compare them on the same octets."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import harebell.kernels.frames as native
from harebell.base.errors import ProtocolError

Call = tuple[Any, ...]


def _load_twin() -> ModuleType:
    """The pure Python twin, whichever implementation was chosen for the process."""
    path = Path(native.__file__).with_name("frames.py")
    spec = importlib.util.spec_from_file_location("harebell_frames_twin", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


twin = _load_twin()
KERNELS = {"chosen": native, "twin": twin}


def _sink(kernel: Any) -> Any:
    """A sink that writes down how it was called, for this kernel's scanner."""

    class Sink(kernel.FrameSink):  # type: ignore[misc]
        def __init__(self) -> None:
            self.calls: list[Call] = []

        def frame(self, kind: int, channel: int, payload: bytes) -> int:
            self.calls.append(("frame", kind, channel, payload))
            return 0

        def publish(self, channel: int, flags: int, *rest: Any) -> int:
            exchange, key, properties, body = rest
            self.calls.append(("publish", channel, flags, exchange, key, seen(properties), body))
            return 0

        def ack(self, channel: int, tag: int, multiple: bool) -> int:
            self.calls.append(("ack", channel, tag, multiple))
            return 0

        def deliver(self, channel: int, consumer: str, tag: int, again: bool, *rest: Any) -> int:
            exchange, key, properties, body = rest
            what = (exchange, key, seen(properties), body)
            self.calls.append(("deliver", channel, consumer, tag, again, *what))
            return 0

    return Sink()


def seen(properties: Any) -> Call:
    """What a property list says, in a form that compares."""
    p = properties
    return (p.raw, p.delivery_mode, p.priority, p.has_headers, p.suspect)


def scan(kernel: Any, parts: list[bytes], *, fast: bool, client: bool) -> list[Call]:
    """The calls that these reads cause, ending with the error if there is one."""
    sink = _sink(kernel)
    scanner = kernel.FrameScanner(sink)
    scanner.frame_max = 4096
    scanner.fast = fast
    scanner.client = client
    try:
        for part in parts:
            scanner.feed(part)
    except ProtocolError as error:
        sink.calls.append(("error", error.code, error.text))
    calls: list[Call] = sink.calls
    return calls
