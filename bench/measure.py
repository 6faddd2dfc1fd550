"""One run of one scenario against one broker, and what came of it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import msgspec

from bench.brokers import Broker, Floor
from bench.disk import appended_per_second
from bench.load import Job
from bench.peer import BenchError, Peer
from bench.process import cpu_seconds, resident_bytes
from bench.scenarios import IDLE, Scenario
from harebell.wire.v09 import methods as m

CONNECTIONS = 200
QUEUES = 2_000
_GRACE_SECONDS = 60.0
_SETTLE_SECONDS = 0.3
_KIB = 1024
_MIB = 1024 * 1024


class Result(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What one run found out; figures that a scenario does not have are None.

    Args:
        broker: who was measured.
        scenario: what was played.
        us_per_message: broker CPU microseconds per delivered message.
        messages_per_second: delivered messages.
        messages: how many were delivered.
        p50_us: half of the messages took at most that long.
        p99_us: 99 of 100 took at most that long.
        resident_mib: the broker's memory after the run; for `idle`, at rest.
        kib_per_connection: for `idle`, memory per connection with a channel.
        kib_per_queue: for `idle`, memory per queue.
        kib_per_binding: for `topics`, memory per binding.
        start_seconds: from start to the answer to a protocol header.
        start_cpu_seconds: CPU seconds of the start.
        stop_seconds: from the signal to the end.
        cpu_share: for `h10k`, of one core.
        disk_share: messages per second, as a share of what a loop reaches that only appends and
            syncs as many bytes.
        us_in: for `f`, broker CPU microseconds per message published.
        us_out: for `f`, per message delivered.
        peak_mib: for `f`, the most memory it had.
    """

    broker: str
    scenario: str
    us_per_message: float | None = None
    messages_per_second: float | None = None
    messages: int | None = None
    p50_us: float | None = None
    p99_us: float | None = None
    resident_mib: float | None = None
    kib_per_connection: float | None = None
    kib_per_queue: float | None = None
    kib_per_binding: float | None = None
    start_seconds: float | None = None
    start_cpu_seconds: float | None = None
    stop_seconds: float | None = None
    cpu_share: float | None = None
    disk_share: float | None = None
    us_in: float | None = None
    us_out: float | None = None
    peak_mib: float | None = None


def play(broker: Broker, scenario: Scenario, seconds: float) -> Result:
    """Run a scenario.

    Raises:
        BenchError: something was lost, doubled, out of order, or took too long.
    """
    with tempfile.NamedTemporaryFile(prefix="harebell-bench-") as progress:
        progress.write(bytes(8))
        progress.flush()
        job = msgspec.json.encode(Job(broker.port, scenario, seconds, progress.name)).decode()
        ends: list[subprocess.Popen[str]] = []
        try:
            consumer = _start("consumer", job)
            ends.append(consumer)
            assert consumer.stdout is not None
            ready = consumer.stdout.readline()
            if ready != "ready\n":
                raise BenchError(f"{broker.name} {scenario.name}: {ready.strip()}")
            before = cpu_seconds(broker.pid)
            producer = _start("producer", job)
            ends.append(producer)
            until = time.monotonic() + seconds + _GRACE_SECONDS
            sent, received = (_report(broker, scenario, end, until) for end in (producer, consumer))
            used = cpu_seconds(broker.pid) - before
        finally:
            for end in ends:
                if end.poll() is None:
                    end.kill()
                end.wait()
    if sent["messages"] != received["messages"] or not sent["messages"]:
        raise BenchError(f"{broker.name} {scenario.name}: sent {sent}, received {received}")
    deliveries = received["deliveries"]
    rate = deliveries / received["seconds"]
    share = None
    if scenario.beside_disk and not isinstance(broker, Floor):
        share = rate / appended_per_second(scenario, deliveries)
    return Result(
        broker=broker.name,
        scenario=scenario.name,
        us_per_message=used * 1e6 / deliveries,
        messages_per_second=rate,
        disk_share=share,
        messages=deliveries,
        p50_us=received.get("p50_us"),
        p99_us=received.get("p99_us"),
        resident_mib=resident_bytes(broker.pid) / _MIB,
    )


def _start(role: str, job: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "bench.load", role, job],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )


def _report(
    broker: Broker, scenario: Scenario, end: subprocess.Popen[str], until: float
) -> dict[str, Any]:
    where = f"{broker.name} {scenario.name}"
    try:
        output, _ = end.communicate(timeout=max(0.1, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise BenchError(f"{where}: not done {_GRACE_SECONDS:g} seconds after the end") from None
    lines = output.splitlines()
    if not lines:
        raise BenchError(f"{where}: the load generator ended with code {end.returncode}")
    report: dict[str, Any] = msgspec.json.decode(lines[-1])
    if "error" in report:
        raise BenchError(f"{where}: {report['error']}")
    return report


def rest(broker: Broker) -> Result:
    """What a fresh broker takes when nothing happens, and what connections and queues add."""
    time.sleep(_SETTLE_SECONDS)
    at_start = resident_bytes(broker.pid)
    peers = [Peer(broker.port, lambda *_: None) for _ in range(CONNECTIONS)]
    time.sleep(_SETTLE_SECONDS)
    with_connections = resident_bytes(broker.pid)
    names = [f"bench.idle.{number}" for number in range(QUEUES)]
    for name in names:
        peers[0].call(m.QueueDeclare(name), m.QueueDeclareOk)
    time.sleep(_SETTLE_SECONDS)
    with_queues = resident_bytes(broker.pid)
    for name in names:
        peers[0].call(m.QueueDelete(name), m.QueueDeleteOk)
    for peer in peers:
        peer.close()
    return Result(
        broker=broker.name,
        scenario=IDLE,
        resident_mib=at_start / _MIB,
        kib_per_connection=(with_connections - at_start) / _KIB / CONNECTIONS,
        kib_per_queue=(with_queues - with_connections) / _KIB / QUEUES,
        start_seconds=broker.start_seconds,
    )


def start_and_stop(scenario: str, begin: Callable[[], Broker]) -> Result:
    """Start a broker without data, let it rest, and stop it.

    Args:
        scenario: how the result is called.
        begin: starts it.
    """
    broker = begin()
    used = cpu_seconds(broker.pid)
    time.sleep(_SETTLE_SECONDS)
    resident = resident_bytes(broker.pid)
    stop = time.monotonic()
    broker.stop()
    return Result(
        broker=broker.name,
        scenario=scenario,
        start_seconds=broker.start_seconds,
        start_cpu_seconds=used,
        resident_mib=resident / _MIB,
        stop_seconds=time.monotonic() - stop,
    )
