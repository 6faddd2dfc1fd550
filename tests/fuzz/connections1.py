"""Fuzzed: whole connections of AMQP 1.0, with a session, a link each way and any frames."""

from __future__ import annotations

from typing import Any

from harebell.wire import HEADER_1_0, HEADER_1_0_SASL
from harebell.wire.v09 import methods as m
from harebell.wire.v1 import composites as c
from harebell.wire.v1.frames import EMPTY, HEAD, SASL, encode_frame
from harebell.wire.v1.performatives import decode_performative
from harebell.wire.v1.sections import data_section, encode_message, value_section
from harebell.wire.v1.values import Described, Symbol, UInt
from tests.fuzz.splits import anyhow, singly
from tests.model.memory import MemoryBroker
from tests.model.peer import call, login

_SENDER, _RECEIVER = 0, 1
_SHORT = 1_000
"""Length of an input that is also read octet by octet."""


def _expect(holds: bool, what: object) -> None:
    if not holds:
        raise AssertionError(what)


def sent(performative: Any, payload: bytes = b"", channel: int = 0) -> bytes:
    """The frame of a performative."""
    return encode_frame(performative.encoded() + payload, channel)


def _opening() -> bytes:
    """A login, a session, and links to and from the queue `q`."""
    response = c.SaslInit("PLAIN", b"\0guest\0guest").encoded()
    return b"".join(
        (
            HEADER_1_0_SASL,
            encode_frame(response, kind=SASL),
            HEADER_1_0,
            sent(c.Open("c", "vhost:/", 4_096)),
            sent(c.Begin(None, 0, 100, 100)),
            sent(
                c.Attach(
                    "s", _SENDER, False, source=c.Source(), target=c.Target("/queues/q"),
                    initial_delivery_count=0,
                )
            ),
            sent(c.Attach("r", _RECEIVER, True, source=c.Source("/queues/q"), target=c.Target())),
            sent(c.Flow(0, 100, 0, 100, _RECEIVER, 0, 10)),
        )
    )  # fmt: skip


def _answers(data: bytes) -> list[tuple[int, str]]:
    """Channel and name of each performative of an output, which has to be of whole frames."""
    found = []
    while data:
        size = int.from_bytes(data[:4])
        _expect(HEAD <= size <= len(data), f"the output ends inside a frame: {data.hex()}")
        body = data[4 * data[4] : size]
        if body:
            found.append((int.from_bytes(data[6:8]), decode_performative(body)[0].NAME))
        data = data[size:]
    return found


def _declare(broker: MemoryBroker) -> None:
    line = broker.accept()
    line.receive(login() + call(1, m.ChannelOpen()) + call(1, m.QueueDeclare(queue="q")), 0.0)
    line.take_output(0.0)
    line.receive(call(0, m.ConnectionClose(reply_code=200)), 0.0)
    line.take_output(0.0)
    line.eof()


def talk(parts: list[bytes]) -> tuple[list[tuple[int, str]], MemoryBroker]:
    """Send parts of a conversation; the answers, and the broker that has nothing of it left."""
    broker = MemoryBroker(seed=1)
    _declare(broker)
    line = broker.accept()
    line.receive(_opening(), 0.0)
    line.take_output(0.0)
    found: list[tuple[int, str]] = []
    for part in parts:
        line.receive(part, 1.0)
        found += _answers(line.take_output(1.0))
    for now in range(20, 400, 20):
        line.tick(float(now))
        _answers(line.take_output(float(now)))
    _expect(line.closing, "a silent peer is still connected")
    line.eof()
    _expect(not broker.registry.connections, "a connection is left")
    _expect(all(not q.consumers for q in broker.vhost.queues.values()), "a consumer is left")
    _expect(broker.registry.gauge.unread == 0, "half a message is still counted")
    _expect(not broker.internal_errors(), broker.internal_errors())
    # How many deliveries leave, and are settled together, depends on the reads.
    uneven = ("transfer", "disposition", "flow", "close")
    return [answer for answer in found if answer[1] not in uneven], broker


def connection1(data: bytes) -> None:
    """Anything after the links are attached ends in frames, the same however it arrives."""
    whole, _ = talk([data])
    for parts in (anyhow(data, len(data)), singly(data) if len(data) < _SHORT else [data]):
        answers, _ = talk(parts)
        _expect(answers == whole, f"the answers depend on how the octets arrived: {answers}")


TARGETS = (connection1,)


def _steps() -> list[bytes]:
    """A conversation, frame by frame."""
    full = encode_message(
        data_section(b"hi"),
        c.Header(True, 7, 60_000),
        {"x-opt-a": [1], "x-cc": ["other"]},
        c.Properties("m", b"guest", "/queues/q", "s", "/queues/r", UInt(5), "text/plain"),
        {"a": 1, "b": "two"},
    )
    selector = {"f": Described(Symbol("apache.org:selector-filter:string"), "a = 1")}
    accepted = c.Accepted()
    modified = c.Modified(True, True, {"x-opt-b": 1})
    steps = [
        sent(c.Transfer(_SENDER, 0, b"0", 0, False), full),
        sent(c.Transfer(_SENDER, 1, b"1", 0, True), value_section({"a": [1]})),
        sent(c.Transfer(_SENDER, 2, b"2", 0, False, True), full[:20]),
        sent(c.Transfer(_SENDER, more=True), full[20:40]),
        sent(c.Transfer(_SENDER), full[40:]),
        sent(c.Transfer(_SENDER, 3, b"3", 0, aborted=True)),
        sent(c.Disposition(True, 0, 1, True, accepted)),
        sent(c.Disposition(True, 2, None, True, modified)),
        sent(c.Disposition(True, 0, 2**31, True, c.Rejected(c.Error("amqp:x")))),
        sent(c.Flow(0, 100, 0, 100, _RECEIVER, 0, 5, drain=True)),
        sent(c.Flow(0, 100, 4, 100, echo=True)),
        sent(c.Attach("f", 2, True, source=c.Source("/queues/q", filter=selector))),
        sent(c.Attach("x", 3, False, target=c.Target("/exchanges/amq.topic/k"))),
        sent(c.Attach("a", 4, False, target=c.Target())),
        sent(c.Attach("d", 5, True, source=c.Source(dynamic=True), target=c.Target())),
        sent(c.Attach("m", 6, False, target=c.Target("/management"))),
        sent(c.Attach("t", 7, False, target=c.Coordinator(("amqp:local-transactions",)))),
        sent(c.Detach(2, True)),
        sent(c.Detach(_SENDER)),
        sent(c.Begin(None, 5, 10, 10), channel=1),
        sent(c.End(), channel=1),
        EMPTY,
        sent(c.Close(c.Error("amqp:connection:forced", "bye"))),
    ]
    return [*steps, sent(c.Transfer(_SENDER, 4, b"4"), full[:-1])]


def connection1_seeds() -> list[bytes]:
    """Where the fuzzer of connections starts."""
    steps = _steps()
    return [*steps, b"".join(steps), *(b"".join(steps[:at]) for at in range(2, len(steps), 4))]
