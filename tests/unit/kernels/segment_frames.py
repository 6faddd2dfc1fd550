"""Frames of AMQP 0-10 for the tests of both of its kernels, and a sink that keeps every call."""

from __future__ import annotations

from typing import Any

from harebell.base.errors import ProtocolError
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.commands import MessageTransfer
from harebell.wire.v010.structs import DeliveryProperties
from tests.unit.kernels.twins import told


def sink(module: Any) -> Any:
    class Recorder(module.SegmentSink):  # type: ignore[misc]
        def __init__(self) -> None:
            self.calls: list[tuple[Any, ...]] = []
            self.on_call: Any = None

        def note(self, *call: Any) -> int:
            self.calls.append(call)
            if self.on_call is not None:
                self.on_call()
            return 0

        def frame(self, flags: int, kind: int, track: int, channel: int, payload: bytes) -> int:
            return self.note("frame", flags, kind, track, channel, payload)

        def transfer(self, channel: int, flags: int, to: str, key: str, p: Any, body: bytes) -> int:
            return self.note("transfer", channel, flags, to, key, told(p), p.family, body)

    return Recorder()


def frame(
    flags: int, kind: int, payload: bytes, channel: int = 1, track: int = 1, size: int = 0
) -> bytes:
    head = bytes((flags, kind)) + (size or len(payload) + 12).to_bytes(2) + bytes((0, track))
    return head + channel.to_bytes(2) + bytes(4) + payload


def header(**delivery: Any) -> bytes:
    return AMQP_0_10.encode_struct(DeliveryProperties(**delivery))


def command(destination: str | None = "amq.direct", sync: bool = False, **modes: int) -> bytes:
    return AMQP_0_10.encode(MessageTransfer(destination, **modes), sync)


def transfer(
    body: bytes = b"hello", raw: bytes | None = None, channel: int = 1, **modes: Any
) -> bytes:
    raw = header(routing_key="k") if raw is None else raw
    frames = frame(0x0B, 1, command(**modes), channel) + frame(0x03, 2, raw, channel)
    return frames + frame(0x07, 3, body, channel)


def scan(module: Any, parts: list[bytes], fast: bool = True, limit: int = 4096) -> list[Any]:
    seen = sink(module)
    scanner = module.SegmentScanner(seen)
    scanner.fast = fast
    scanner.frame_max = limit
    try:
        for part in parts:
            scanner.feed(part)
    except ProtocolError as error:
        seen.calls.append(("error", error.code, error.text))
    seen.calls.append(("kept", scanner.buffered))
    calls: list[Any] = seen.calls
    return calls
