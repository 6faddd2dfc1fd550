"""What a connection costs that is opened and closed, and what a binding costs among many."""

from __future__ import annotations

import time

from bench.brokers import Broker
from bench.frames import Frames
from bench.measure import Result
from bench.peer import BenchError, Peer
from bench.peer1 import Peer1
from bench.process import cpu_seconds, resident_bytes
from bench.scenarios import OPENING, OPENING_ALONE, OPENING_CONSUMER, OPENING_LINK, TOPICS
from harebell.wire.v09 import methods as m

CONNECTIONS = 500
MATCHES = 20_000
_EXCHANGE = _QUEUE = "bench.topics"
_OPENED = "bench.open"
_BIND_BATCH = 1_000
_BYTES = 128
_SETTLE_SECONDS = 0.3
_LOOK_SECONDS = 0.02
_PATIENCE_SECONDS = 60.0
_KIB = 1024


def opening(broker: Broker, scenario: str) -> Result:
    """Open and close connections with one channel, session, or none, one after the other.

    Args:
        broker: which.
        scenario: one of OPENINGS.
    """
    peer = Peer(broker.port, _nothing)
    consumes = scenario in (OPENING_CONSUMER, OPENING_LINK)
    if consumes:
        peer.call(m.QueueDeclare(_OPENED), m.QueueDeclareOk)
    # The first login with a password costs 50 ms more, in every broker; so does the first
    # connection of a version.
    _open(broker.port, scenario).close()
    before, begin = cpu_seconds(broker.pid), time.monotonic()
    for _ in range(CONNECTIONS):
        _open(broker.port, scenario).close()
    seconds = time.monotonic() - begin
    used = cpu_seconds(broker.pid) - before
    if consumes:
        peer.call(m.QueueDelete(_OPENED), m.QueueDeleteOk)
    peer.close()
    return Result(
        broker=broker.name,
        scenario=scenario,
        messages=CONNECTIONS,
        us_per_message=used * 1e6 / CONNECTIONS,
        messages_per_second=CONNECTIONS / seconds,
    )


def _open(port: int, scenario: str) -> Peer | Peer1:
    if scenario in (OPENING_ALONE, OPENING):
        return Peer(port, _nothing, channel=scenario == OPENING)
    if scenario == OPENING_CONSUMER:
        peer = Peer(port, _nothing)
        peer.call(m.BasicConsume(_OPENED), m.BasicConsumeOk)
        return peer
    link = Peer1(port, "bench.open", _nothing)
    link.attach(receives=True, address=f"/queues/{_OPENED}", settled=False)
    return link


def topics(broker: Broker, bindings: int) -> Result:
    """Bind a queue with many patterns, then publish keys that match one of them each.

    Args:
        broker: which.
        bindings: how many.

    Raises:
        BenchError: a message was lost or doubled.
    """
    peer = Peer(broker.port, _nothing)
    peer.call(m.ExchangeDeclare(_EXCHANGE, "topic"), m.ExchangeDeclareOk)
    peer.call(m.QueueDeclare(_QUEUE), m.QueueDeclareOk)
    time.sleep(_SETTLE_SECONDS)
    before = resident_bytes(broker.pid)
    for number in range(bindings):
        bind = m.QueueBind(_QUEUE, _EXCHANGE, f"plant.{number % 1000}.sensor{number}.*")
        # Every so often with a reply: a broker that binds slowly reads no faster.
        bind.nowait = bool((number + 1) % _BIND_BATCH)
        if bind.nowait:
            peer.send(bind)
        else:
            peer.call(bind, m.QueueBindOk)
    time.sleep(_SETTLE_SECONDS)
    grown = resident_bytes(broker.pid) - before
    keys = [f"plant.{number % 1000}.sensor{number}.heat" for number in range(0, bindings, 50)]
    frames = [Frames(_EXCHANGE, key, _BYTES, persistent=False, batch=1) for key in keys]
    used, begin = cpu_seconds(broker.pid), time.monotonic()
    for number in range(MATCHES):
        peer.socket.sendall(frames[number % len(frames)].numbered(number, 0, 1))
    # A broker may count what is on its way from an exchange to a queue in neither of them.
    while (found := _depth(peer)) < MATCHES and time.monotonic() < begin + _PATIENCE_SECONDS:
        time.sleep(_LOOK_SECONDS)
    seconds = time.monotonic() - begin
    used = cpu_seconds(broker.pid) - used
    peer.call(m.QueueDelete(_QUEUE), m.QueueDeleteOk)
    peer.call(m.ExchangeDelete(_EXCHANGE), m.ExchangeDeleteOk)
    peer.close()
    if found != MATCHES:
        raise BenchError(f"{broker.name} {TOPICS}: {found} of {MATCHES} messages were routed")
    return Result(
        broker=broker.name,
        scenario=TOPICS,
        messages=MATCHES,
        us_per_message=used * 1e6 / MATCHES,
        messages_per_second=MATCHES / seconds,
        kib_per_binding=grown / _KIB / bindings,
    )


def _depth(peer: Peer) -> int:
    return int(peer.call(m.QueueDeclare(_QUEUE, passive=True), m.QueueDeclareOk).message_count)


def _nothing(_consumer: str, _tag: int, _body: bytes) -> None:
    """Nothing is consumed."""
