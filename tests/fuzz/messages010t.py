"""Fuzzed: transfers, references and sessions on a connection of transitional 0-10."""

from __future__ import annotations

from harebell.front.limits import SESSION_LIFETIME_SECONDS
from harebell.wire.v09 import methods as m
from harebell.wire.v09 import methods_transitional as mt
from harebell.wire.v09.amqp_0_10_transitional import AMQP_0_10_TRANSITIONAL as SPEC
from harebell.wire.v09.transfer import Transfer, TransferProperties, encode_transfer, write_transfer
from harebell.wire.v09.typed_fields import encode_typed
from tests.conformance.frames import HEADER, METHOD, frame
from tests.fuzz.splits import anyhow
from tests.model.memory import MemoryBroker

_GREETING = b"AMQP\x01\x01\x63\x00"
_FRAME_HEAD = 7
_FRAME_MAX = 4_096
_COMPLETE = SPEC.named("execution.complete").head


def _call(method: m.Method, channel: int = 1) -> bytes:
    return frame(METHOD, channel, SPEC.encode(method))


def _login() -> bytes:
    response = encode_typed({"LOGIN": "guest", "PASSWORD": "guest"})[4:]
    return b"".join(
        (
            _GREETING,
            _call(m.ConnectionStartOk({}, "AMQPLAIN", response, "en_US"), 0),
            _call(m.ConnectionTuneOk(0, _FRAME_MAX, 0), 0),
            _call(m.ConnectionOpen(virtual_host="/"), 0),
            _call(m.ChannelOpen()),
        )
    )


def _frames(data: bytes) -> list[bytes]:
    """The frames of an output, which ends with a whole one."""
    found, at = [], 0
    while at < len(data):
        end = at + _FRAME_HEAD + int.from_bytes(data[at + 3 : at + _FRAME_HEAD]) + 1
        assert end <= len(data), "the output ends inside a frame"
        assert data[end - 1] == 0xCE
        if data[at] == METHOD:
            SPEC.decode(data[at + _FRAME_HEAD : end - 1])
        found.append(data[at:end])
        at = end
    return found


def _talk(parts: list[bytes]) -> tuple[list[bytes], MemoryBroker]:
    broker = MemoryBroker(seed=1)
    connection = broker.accept()
    connection.receive(_login(), 0.0)
    output = connection.take_output(0.0)
    for part in parts:
        connection.receive(part, 1.0)
        output += connection.take_output(1.0)
    found = _frames(output)
    connection.eof()
    assert not broker.registry.connections
    for _ in range(3):
        broker.clock.advance(SESSION_LIFETIME_SECONDS * 1_000)
        broker.broker.timers.run()
    assert not broker.registry.sessions, "a session outlives its lifetime"
    assert broker.gauge.unread == 0, "octets of bodies that will never be whole are counted"
    assert all(not queue.consumers for queue in broker.vhost.queues.values())
    # How often completion is told depends on the reads.
    return [each for each in found if each[_FRAME_HEAD:][:4] != _COMPLETE], broker


def messages010t(data: bytes) -> None:
    """Anything after the login ends in frames of the protocol, the same however it arrives."""
    whole, broker = _talk([data])
    assert not broker.internal_errors(), broker.internal_errors()
    again, other = _talk(anyhow(data, len(data)))
    assert not other.internal_errors(), other.internal_errors()
    assert again == whole, "the answers depend on how the octets arrived"


def _transfer(key: str, body: bytes, kind: int = 0) -> bytes:
    raw = encode_transfer(TransferProperties(message_id="m", application_headers={"a": 1}))
    payload = write_transfer(Transfer(routing_key=key, raw=raw, kind=kind, value=body))
    return frame(METHOD, 1, payload)


def conversation() -> list[bytes]:
    """What a client says, step by step."""
    return [
        _call(m.QueueDeclare(queue="q", arguments={"x-max-priority": 3})),
        _transfer("q", b"one"),
        _transfer("q", bytes(4_000)),
        _call(mt.MessageQos(prefetch_count=2, prefetch_size=9)),
        _call(mt.MessageConsume(queue="q", destination="d")),
        _call(mt.ExecutionComplete(1, ((3, 4),))),
        _call(mt.MessageOpen(reference=b"r")),
        _transfer("q", b"r", 1),
        _call(mt.MessageAppend(reference=b"r", octets=bytes(5_000))),
        _call(mt.MessageCheckpoint(reference=b"r", identifier="i")),
        _call(mt.MessageClose(reference=b"r")),
        _call(mt.MessageResume(reference=b"s", identifier="i")),
        _call(mt.ExecutionFlush()),
        _call(mt.MessageReject(code=0, text="t")),
        _call(mt.MessageRecover(requeue=False)),
        _call(mt.MessageRecover(requeue=True)),
        _call(mt.MessageGet(queue="q", destination="g")),
        _call(mt.MessageCancel(destination="d")),
        _call(m.TxSelect()),
        _transfer("q", b"tx"),
        _call(mt.ExecutionComplete(8, ())),
        _call(m.TxRollback()),
        _call(m.TxCommit()),
        _call(mt.SessionOpen(60), 2),
        _call(mt.MessageOpen(reference=b"r"), 2),
        _call(mt.MessageAppend(reference=b"r", octets=b"abc"), 2),
        _call(mt.SessionSuspend(), 2),
        _call(m.BasicPublish(routing_key="q"))
        + frame(HEADER, 1, bytes.fromhex("003c" + "00" * 12)),
        _call(m.ChannelClose(reply_code=200)),
    ]


def messages010t_seeds() -> list[bytes]:
    """The conversation whole, its beginnings, and each step alone."""
    steps = conversation()
    return [b"".join(steps[:at]) for at in range(1, len(steps) + 1, 3)] + steps
