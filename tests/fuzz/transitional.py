"""Fuzzed: transitional 0-10's tables and methods, and whole connections of it."""

from __future__ import annotations

from collections.abc import Iterator

from harebell.base.errors import ProtocolError
from harebell.wire.v09 import methods as m
from harebell.wire.v09 import methods_transitional as s
from harebell.wire.v09.amqp_0_10_transitional import AMQP_0_10_TRANSITIONAL as SPEC
from harebell.wire.v09.methods_transitional import MessageConsume, MessageTransfer
from harebell.wire.v09.transitional_types import INLINE, REFERENCE, Body
from harebell.wire.v09.typed_fields import FieldDialect, decode_typed, encode_typed
from tests.conformance.frames import BODY, METHOD, Reader, content_header, frame
from tests.conformance.v010t.peer import HEADER_PREVIEW
from tests.fuzz.splits import anyhow, singly
from tests.model.memory import MemoryBroker

_SINGLY = 500
_CHANNEL_SESSION = 2


def _expect(holds: bool, what: object) -> None:
    if not holds:
        raise AssertionError(what)


def _call(channel: int, method: m.Method) -> bytes:
    return frame(METHOD, channel, SPEC.encode(method))


def typed(data: bytes) -> None:
    """A table is refused, or every dialect can say it, and a method with it survives."""
    try:
        table, end = decode_typed(data)
    except ProtocolError as error:
        _expect(error.code == 502, error)
    else:
        assert 4 <= end <= len(data)
        for dialect in FieldDialect:
            try:
                octets = encode_typed(table, dialect)
            except ValueError:
                # What is text in a narrower dialect may have more octets than a name.
                continue
            again, _ = decode_typed(octets)
            assert again.dialect <= dialect
            assert list(again) == list(table)
    try:
        decoded = SPEC.decode(data)
    except ProtocolError as error:
        _expect(error.code in (501, 502, 503, 530, 540), error)
        return
    assert type(SPEC.decode(SPEC.encode(decoded))) is type(decoded)


def _login() -> bytes:
    return HEADER_PREVIEW + b"".join(
        _call(0, method)
        for method in (
            m.ConnectionStartOk({}, "PLAIN", b"\0guest\0guest", "en_US"),
            m.ConnectionTuneOk(0, 131_072, 10),
            m.ConnectionOpen("/"),
        )
    )


def _talk(parts: list[bytes]) -> tuple[list[bytes], MemoryBroker]:
    broker = MemoryBroker(seed=1)
    connection = broker.accept()
    reader = Reader()
    opened = _call(1, m.ChannelOpen()) + _call(_CHANNEL_SESSION, s.SessionOpen(5))
    said: list[bytes] = []
    for time, part in ((0.0, _login() + opened), *((1.0, part) for part in parts)):
        connection.receive(part, time)
        reader.data += connection.take_output(time)
        while (found := reader.next()) is not None:
            said.append(found.octets)
    for now in (20.0, 40.0, 60.0):
        connection.tick(now)
        connection.take_output(now)
    connection.eof()
    assert not broker.registry.connections
    return said, broker


def connection010t(data: bytes) -> None:
    """Anything after login ends in frames of the protocol, the same however it arrives."""
    whole, broker = _talk([data])
    assert not broker.internal_errors(), broker.internal_errors()
    parts = [anyhow(data, len(data))]
    if len(data) < _SINGLY:
        parts.append(singly(data))
    for each in parts:
        said, other = _talk(each)
        assert not other.internal_errors(), other.internal_errors()
        assert said == whole, "the answers depend on how the octets arrived"


def typed_seeds() -> Iterator[bytes]:
    """Tables of every dialect, and methods that hold them."""
    table = {"n": 1, "long": 2**40, "text": "x", "raw": b"\xff", "list": [1, {"deep": {}}]}
    for dialect in FieldDialect:
        octets = encode_typed(table, dialect)
        yield octets
        yield SPEC.encode(m.QueueDeclare("q", arguments=octets))  # type: ignore[arg-type]
    for spec in SPEC.methods:
        yield SPEC.encode(spec.type())


def connection010t_seeds() -> Iterator[bytes]:
    """Conversations on a channel and on a session, whole and one method at a time."""
    for channel in (1, _CHANNEL_SESSION):
        said = list(_conversation(channel))
        yield b"".join(said)
        yield from said


def _conversation(channel: int) -> Iterator[bytes]:
    yield _call(channel, m.QueueDeclare("q", durable=True, alternate_exchange="amq.fanout"))
    yield _call(channel, m.ExchangeDeclare("e", "topic", alternate_exchange="amq.fanout"))
    yield _call(channel, m.QueueBind("q", "e", "a.#"))
    yield _call(channel, s.BindingQuery("e", "q", "a.#"))
    publish = _call(channel, m.BasicPublish("e", "a.b", mandatory=True))
    raw = b"\x20\x00" + encode_typed({"h": 1, "t": True}, FieldDialect.TYPED)
    content = content_header(3, raw, channel=channel) + frame(BODY, channel, b"abc")
    yield publish + content
    yield _call(channel, m.BasicConsume("q", "c"))
    yield _call(channel, m.BasicAck(1, True))
    yield _call(channel, m.BasicReject(1, True))
    yield _call(channel, m.BasicRecover(True))
    yield _call(channel, MessageConsume("q", "d"))
    yield _call(channel, MessageTransfer(routing_key="q", body=Body(INLINE, b"hello")))
    yield _call(channel, MessageTransfer(routing_key="q", body=Body(REFERENCE, b"r")))
    yield _call(channel, s.ExecutionComplete(1, ((3, 4),)))
    yield _call(channel, s.ExecutionFlush())
    yield _call(channel, m.AccessRequest("/data", read=True))
    yield _call(channel, m.TxSelect()) + publish + content + _call(channel, m.TxCommit())
    yield _call(channel, s.SessionFlow(False)) + _call(channel, s.SessionAck(2))
    yield _call(channel, s.SessionSuspend()) + _call(channel, s.SessionResume(bytes(16)))
    yield _call(channel, m.ChannelClose())
    yield _call(channel, s.SessionClose())
