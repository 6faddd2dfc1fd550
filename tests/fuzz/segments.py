"""Fuzzed: AMQP 0-10's frames, values, commands and headers, and whole connections of it."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from harebell.base.errors import ProtocolError
from harebell.base.values import Typed
from harebell.wire import HEADER_0_10
from harebell.wire.v010 import commands as c
from harebell.wire.v010 import controls as k
from harebell.wire.v010 import types
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.structs import DeliveryProperties, MessageProperties, ReplyTo
from tests.conformance.v010.raw import BODY, COMMAND, HEADER, assembly, frame, octets_of
from tests.fuzz.splits import anyhow, singly
from tests.model.memory import MemoryBroker
from tests.unit.kernels.segment_frames import scan
from tests.unit.kernels.twins import twin, used

KERNELS = (used("segments"), twin("segments"))


def _expect(holds: bool, what: object) -> None:
    if not holds:
        raise AssertionError(what)


def segments(data: bytes) -> None:
    """However the octets arrive and whoever scans them, the calls are the same."""
    whole = scan(KERNELS[0], [data], fast=False)
    for parts in ([data], singly(data), anyhow(data, len(data))):
        slow = [scan(kernel, parts, fast=False) for kernel in KERNELS]
        assert slow[0] == slow[1] == whole
        fast = [scan(kernel, parts) for kernel in KERNELS]
        assert fast[0] == fast[1], "the compiled scanner and its twin differ"


def composites(data: bytes) -> None:
    """A value, a command or a header is refused, or survives being written and read again."""
    try:
        _, command = AMQP_0_10.decode_command(data)
        _expect(AMQP_0_10.decode_command(AMQP_0_10.encode(command)).command == command, command)
    except ProtocolError as error:
        _expect(error.code in (501, 503, 531), error)
    try:
        control = AMQP_0_10.decode_control(data)
        _expect(AMQP_0_10.decode_control(AMQP_0_10.encode(control)) == control, control)
    except ProtocolError as error:
        _expect(error.code == 501, error)
    try:
        found = AMQP_0_10.decode_header(data)
        AMQP_0_10.decode_header(b"".join(map(AMQP_0_10.encode_struct, _known(found))))
    except ProtocolError as error:
        _expect(error.code == 531, error)
    if data:
        try:
            value, _ = types.read_value(data, data[0], 1, len(data))
        except types.Malformed:
            return
        raw = types.write_typed(value)
        again, _ = types.read_value(raw, raw[0], 1, len(raw))
        _expect(repr(again) == repr(value), value)


def _known(structs: list[Any]) -> list[Any]:
    return [each for each in structs if not isinstance(each, Typed)]


def _login() -> bytes:
    return HEADER_0_10 + b"".join(
        octets_of(control, 0)
        for control in (
            k.ConnectionStartOk({}, "PLAIN", b"\0guest\0guest", "en_US"),
            k.ConnectionTuneOk(0, 65535, 10),
            k.ConnectionOpen("/"),
        )
    )


def _frames(data: bytes) -> list[bytes]:
    """The frames of an output, which has to consist of whole ones."""
    found = []
    while data:
        size = int.from_bytes(data[2:4])
        _expect(12 <= size <= len(data), f"the output ends inside a frame: {data.hex()}")
        found.append(data[:size])
        data = data[size:]
    return found


def _talk(parts: list[bytes]) -> tuple[list[bytes], MemoryBroker]:
    broker = MemoryBroker(seed=1)
    line = broker.accept()
    line.receive(_login() + octets_of(k.SessionAttach(b"s"), 1), 0.0)
    line.take_output(0.0)
    found: list[bytes] = []
    for part in parts:
        line.receive(part, 1.0)
        found += _frames(line.take_output(1.0))
    for now in (20.0, 40.0, 60.0):
        line.tick(now)
        _frames(line.take_output(now))
    _expect(line.closing, "a silent peer is still connected")
    line.eof()
    for session in list(broker.registry.named_sessions.values()):
        session.end()
    _expect(not broker.registry.connections, "a connection is left")
    _expect(all(not q.consumers for q in broker.vhost.queues.values()), "a consumer is left")
    _expect(broker.registry.gauge.unread == 0, "half a message is still counted")
    # How many commands are told to be complete, or accepted, together depends on the reads.
    kept = [each for each in found if each[12:14] not in (b"\x02\x0a", b"\x04\x02")]
    return [each for each, _ in groupby(kept)], broker


def connection010(data: bytes) -> None:
    """Anything after login ends in frames of the protocol, the same however it arrives."""
    whole, broker = _talk([data])
    _expect(not broker.internal_errors(), broker.internal_errors())
    for parts in (anyhow(data, len(data)), singly(data) if len(data) < 1000 else [data]):
        answers, other = _talk(parts)
        _expect(not other.internal_errors(), other.internal_errors())
        _expect(answers == whole, "the answers depend on how the octets arrived")


def _steps() -> list[bytes]:
    """A conversation, frame by frame."""
    header = [
        DeliveryProperties(routing_key="q", delivery_mode=2, ttl=60_000, priority=4),
        MessageProperties(
            5, correlation_id=b"c", reply_to=ReplyTo("x", "k"), application_headers={"a": [1, {}]}
        ),
    ]
    commands: list[Any] = [
        c.QueueDeclare("q"),
        c.ExchangeBind("q", "amq.topic", "a.*", {"x-match": "any"}),
        c.ExchangeQuery("amq.topic"),
        c.MessageSubscribe("q", "c", 0, 0),
        c.MessageFlow("c", 0, 10),
        c.MessageFlow("c", 1, 2**32 - 1),
        c.MessageAccept(((0, 3),)),
        c.MessageRelease(((1, 1),), True),
        c.TxSelect(),
        c.TxCommit(),
        c.ExecutionSync(),
    ]
    steps = [octets_of(each, 1) for each in commands]
    steps += [assembly(c.MessageTransfer(""), list(header), b"hello", 1, True, 4096)]
    steps += [assembly(c.MessageTransfer(""), list(header), b"x" * 300, 1, False, 112)]
    steps += [frame(COMMAND, AMQP_0_10.encode(c.MessageTransfer("")), 1, 0x0B)]
    steps += [frame(HEADER, b"", 1, 3), frame(BODY, b"x", 1, 6), frame(BODY, b"y", 1, 5)]
    others: list[Any] = [
        k.SessionRequestTimeout(5),
        k.SessionCompleted(((0, 4),), timely_reply=True),
        k.SessionFlush(True, True, True),
        k.SessionGap(((20, 22),)),
        k.SessionCommandPoint(0, 0),
        k.SessionDetach(b"s"),
        k.SessionAttach(b"s"),
    ]
    return steps + [octets_of(each, 1) for each in others]


def segment_seeds() -> list[bytes]:
    """Where the fuzzer of frames and of connections starts."""
    steps = _steps()
    return [*steps, b"".join(steps), *(b"".join(steps[:at]) for at in range(2, len(steps), 4))]


def composite_seeds() -> list[bytes]:
    """Where the fuzzer of values starts."""
    specs = [*AMQP_0_10.controls.values(), *AMQP_0_10.commands.values()]
    values = [1, 2**40, "text", b"octets", [1, None], {"a": {"b": 0.5}}]
    return [AMQP_0_10.encode(spec.type()) for spec in specs] + [  # type: ignore[arg-type]
        types.write_typed(value) for value in values
    ]
