"""The pure Python twin of a kernel, loaded beside the module in use so that both can be compared.

Where the compiled kernels are in use the pair is compiled and twin. In pure Python the pair is the
same source twice; what those runs add is that the twin keeps the promises of the tests by itself.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import harebell
from harebell.base.arrivals import Arrivals
from harebell.base.errors import ProtocolError
from harebell.base.message import Message, Properties

_KERNELS = Path(harebell.__file__).parent / "kernels"


def twin(name: str) -> ModuleType:
    """The kernel's `.py`, whichever implementation is in use."""
    path = str(_KERNELS / f"{name}.py")
    loader = importlib.machinery.SourceFileLoader(f"twin_of_{name}", path)
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def used(name: str) -> ModuleType:
    """The kernel as the package imports it."""
    return importlib.import_module(f"harebell.kernels.{name}")


def recorder(module: ModuleType) -> Any:
    """A sink of that module's kind that keeps every call in `.calls`.

    `on_call` is run after each call with the sink, to set flags of the scanner in the middle. A
    passage has room for `passes` messages.
    """

    class Recorder(module.FrameSink):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            self.calls: list[tuple[Any, ...]] = []
            self.on_call: Any = None
            self.passes = 0
            self.out = used("output").OutBuffer()

        def note(self, *call: Any) -> int:
            self.calls.append(call)
            if self.on_call is not None:
                self.on_call(self)
            return 0

        def frame(self, kind: int, channel: int, payload: bytes) -> int:
            return self.note("frame", kind, channel, payload)

        def publish(
            self, channel: int, flags: int, exchange: str, key: str, properties: Any, body: bytes
        ) -> int:
            return self.note("publish", channel, flags, exchange, key, told(properties), body)

        def passage(self, channel: int, flags: int, exchange: str, key: str) -> Any:
            self.note("passage", channel, flags, exchange, key)
            if not self.passes:
                return None
            full = self.out.size + self.passes
            made = used("output").DeliveryPassage
            frames = delivery_frames(channel, b"\x00", exchange, key)
            passage = made(self, self.out, frames, 1, 1, 1 << 20, full, False)
            passage.open_to(self, Arrivals(), False, 1 << 20, False)
            return passage

        def passed(self, passage: Any) -> int:
            assert passage.consumer is self
            return int(self.note("passed", passage.count, self.out.take()))

        def ack(self, channel: int, tag: int, multiple: bool) -> int:
            return self.note("ack", channel, tag, bool(multiple))

        def deliver(
            self,
            channel: int,
            consumer_tag: str,
            tag: int,
            redelivered: bool,
            exchange: str,
            key: str,
            properties: Any,
            body: bytes,
        ) -> int:
            return self.note(
                "deliver",
                channel,
                consumer_tag,
                tag,
                bool(redelivered),
                exchange,
                key,
                told(properties),
                body,
            )

    return Recorder()


def delivery_frames(channel: int, consumer_tag: bytes, exchange: str, key: str) -> bytes:
    """The frames of a delivery with the delivery tag 0."""
    out = used("output").OutBuffer()
    message = Message(exchange, key, Properties(b"\0\0"), b"")
    out.deliver(channel, consumer_tag, 0, False, message, 1 << 20)
    frames: bytes = out.take()
    return frames


def told(properties: Any) -> tuple[Any, ...]:
    """What the scanner found out about a property list."""
    return (
        properties.raw,
        properties.delivery_mode,
        properties.priority,
        bool(properties.has_headers),
        bool(properties.suspect),
    )


def outcome(function: Any, *arguments: Any) -> tuple[Any, ...]:
    """What a call gives, or the protocol error it ends with, in comparable form."""
    try:
        return ("gives", function(*arguments))
    except ProtocolError as error:
        return ("raises", error.code, error.text, error.class_id, error.method_id)
