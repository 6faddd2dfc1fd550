"""Many messages in, and out again; and how long a broker with many takes to come back.

The load generator is this process: the broker only takes, or only gives.
"""

from __future__ import annotations

import time

from bench.brokers import Broker, Harebell
from bench.frames import Frames
from bench.measure import Result
from bench.peer import BenchError, Peer
from bench.process import cpu_seconds, forget_peak, peak_bytes, resident_bytes
from bench.scenarios import BACKLOG
from harebell.wire.v09 import methods as m

_QUEUE = "bench.backlog"
_BATCH = 200
_LARGE_BYTES, _SMALL_BYTES = 1024, 128
_PATIENCE_SECONDS = 120.0
_LOOK_SECONDS = 0.02
_MIB = 1024 * 1024


def backlog(broker: Broker, count: int) -> Result:
    """Publish so many messages of 1 KiB without confirms, then take them without acks.

    Raises:
        BenchError: something was lost, out of order, or took too long.
    """
    peer = _fresh(broker)
    # Loads before this one may have taken more.
    forget_peak(broker.pid)
    before = cpu_seconds(broker.pid)
    seconds = _fill(peer, count, _LARGE_BYTES)
    used_in = cpu_seconds(broker.pid) - before
    resident = resident_bytes(broker.pid)
    peer.close()
    before = cpu_seconds(broker.pid)
    _drain(broker, count, _LARGE_BYTES)
    used_out = cpu_seconds(broker.pid) - before
    return Result(
        broker=broker.name,
        scenario=BACKLOG,
        messages=count,
        us_in=used_in * 1e6 / count,
        us_out=used_out * 1e6 / count,
        messages_per_second=count / seconds,
        resident_mib=resident / _MIB,
        peak_mib=peak_bytes(broker.pid) / _MIB,
    )


def restart(broker: Harebell, scenario: str, count: int) -> Result:
    """Stop a broker with so many messages of 128 B, and start it again.

    Raises:
        BenchError: something was lost.
    """
    peer = _fresh(broker)
    _fill(peer, count, _SMALL_BYTES)
    peer.close()
    stopped, started = broker.restart()
    used = cpu_seconds(broker.pid)
    peer = Peer(broker.port, lambda *_: None)
    found = _depth(peer)
    peer.close()
    if found != count:
        raise BenchError(f"{broker.name} {scenario}: {found} of {count} messages came back")
    resident = resident_bytes(broker.pid)
    _drain(broker, count, _SMALL_BYTES)
    return Result(
        broker=broker.name,
        scenario=scenario,
        messages=count,
        stop_seconds=stopped,
        start_seconds=started,
        start_cpu_seconds=used,
        resident_mib=resident / _MIB,
    )


def _fresh(broker: Broker) -> Peer:
    peer = Peer(broker.port, lambda *_: None)
    peer.call(m.QueueDelete(_QUEUE), m.QueueDeleteOk)
    peer.call(m.QueueDeclare(_QUEUE, durable=True), m.QueueDeclareOk)
    return peer


def _depth(peer: Peer) -> int:
    found = peer.call(m.QueueDeclare(_QUEUE, passive=True), m.QueueDeclareOk)
    return int(found.message_count)


def _fill(peer: Peer, count: int, size: int) -> float:
    """Publish, and wait until all are in the queue and on their way to disk; how long it took."""
    frames = Frames("", _QUEUE, size, persistent=True, batch=_BATCH)
    begin = time.monotonic()
    for number in range(0, count, frames.batch):
        peer.socket.sendall(frames.numbered(number, 0, min(frames.batch, count - number)))
    while _depth(peer) < count:
        if time.monotonic() > begin + _PATIENCE_SECONDS:
            raise BenchError(f"{_depth(peer)} of {count} messages are in the queue")
        time.sleep(_LOOK_SECONDS)
    return time.monotonic() - begin


def _drain(broker: Broker, count: int, size: int) -> None:
    expected = 0

    def delivered(_lane: str, _tag: int, body: bytes) -> None:
        nonlocal expected
        if int.from_bytes(body[:8]) != expected or len(body) != size:
            raise BenchError(f"expected message {expected}, got {int.from_bytes(body[:8])}")
        expected += 1

    peer = Peer(broker.port, delivered)
    peer.call(m.BasicConsume(_QUEUE, "", no_ack=True), m.BasicConsumeOk)
    while expected < count:
        peer.read()
    peer.call(m.QueueDelete(_QUEUE), m.QueueDeleteOk)
    peer.close()
