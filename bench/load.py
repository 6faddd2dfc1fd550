"""The two ends of a scenario, each in a process of its own.

    python -m bench.load consumer '{...}'     declares, says "ready", receives, checks, reports
    python -m bench.load producer '{...}'     sends, then says in a last message how many

Bodies carry their number, so a loss, a duplicate or a wrong order shows at once, and the last one
carries the total. How far the consumer is stands in a small shared file, which keeps the producer
from running away. The report is one line of JSON.
"""

from __future__ import annotations

import mmap
import struct
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from bench.apart import ConsumersApart
from bench.frames import Frames
from bench.peer import BenchError, Peer
from bench.scenarios import LAST, Scenario
from harebell.wire.v09 import methods as m

BATCH = 100
_PAUSE = 0.0002
_SETTLE_SECONDS = 0.05


class Job(msgspec.Struct, frozen=True):
    """What one end has to do.

    Args:
        port: where the broker listens.
        scenario: what is played.
        seconds: how long to send.
        progress: the shared file.
    """

    port: int
    scenario: Scenario
    seconds: float
    progress: str


def shared(path: str) -> mmap.mmap:
    """The shared counter: messages received."""
    with Path(path).open("r+b") as file:
        return mmap.mmap(file.fileno(), 8)


class Consumer:
    """Receives and checks.

    Args:
        job: what to do.
    """

    def __init__(self, job: Job) -> None:
        self.scenario = job.scenario
        self.progress = shared(job.progress)
        self.expected: dict[str, int] = {}
        self._lanes: dict[str, str] = {}
        self.finished = 0
        self.received = 0
        self.latencies: list[int] = []
        self.first = 0.0
        self.last = 0.0
        self._unacked = 0
        self._latest = 0
        self._of_first = ""
        self.peer = self.connect(job.port)

    def connect(self, port: int) -> Any:
        """Its connection."""
        return Peer(port, self.delivered, self.scenario.received_in or self.scenario.version)

    def prepare(self) -> None:
        """Declare everything and start consuming."""
        scenario, peer = self.scenario, self.peer
        for name in scenario.queue_names:
            if scenario.version != "0-8":
                # In AMQP 0-8 it is an error to delete what is not there.
                peer.call(m.QueueDelete(name), m.QueueDeleteOk)
            arguments = scenario.queue_arguments
            declare = m.QueueDeclare(name, durable=scenario.durable, arguments=arguments)
            peer.call(declare, m.QueueDeclareOk)
        if scenario.queues > 1:
            peer.call(m.ExchangeDeclare(scenario.exchange, "fanout"), m.ExchangeDeclareOk)
            for name in scenario.queue_names:
                peer.call(m.QueueBind(name, scenario.exchange), m.QueueBindOk)
        if scenario.bindings:
            self._bind_topics()
        if scenario.prefetch:
            peer.call(m.BasicQos(0, scenario.prefetch), m.BasicQosOk)
        for tag, name in scenario.lanes:
            self.expected[tag] = 0
            arguments = {"x-stream-offset": "first"} if scenario.readers else {}
            no_ack = scenario.prefetch == 0
            for number in range(scenario.consumers):
                # On one channel, so what they share comes in order as well.
                mine = f"{tag}/{number}" if number else tag
                self._lanes[mine] = tag
                consume = m.BasicConsume(name, mine, no_ack=no_ack, arguments=arguments)
                peer.call(consume, m.BasicConsumeOk)
        self._of_first = scenario.lanes[0][0]

    def _bind_topics(self) -> None:
        """One pattern leads to the queue that is consumed, the others elsewhere."""
        scenario, peer = self.scenario, self.peer
        other = f"{scenario.exchange}.others"
        peer.call(m.ExchangeDeclare(scenario.exchange, "topic"), m.ExchangeDeclareOk)
        peer.call(m.QueueDeclare(other), m.QueueDeclareOk)
        for number in range(scenario.bindings):
            matching = number == scenario.bindings // 2
            name = scenario.queue_names[0] if matching else other
            bind = m.QueueBind(name, scenario.exchange, f"bench.k{number}.*")
            peer.call(bind, m.QueueBindOk)

    def delivered(self, consumer: str, tag: int, body: bytes) -> None:
        """Check one delivery."""
        lane = self._lanes.get(consumer, consumer)
        number = int.from_bytes(body[:8])
        if number == LAST:
            total = int.from_bytes(body[8:16])
            if self.expected[lane] != total:
                raise BenchError(f"{lane}: {total} were sent, {self.expected[lane]} received")
            self.finished += 1
        else:
            if number != self.expected[lane]:
                raise BenchError(f"{lane}: expected message {self.expected[lane]}, got {number}")
            if len(body) != self.scenario.size:
                raise BenchError(f"{lane}: message {number} has {len(body)} bytes")
            self.expected[lane] = number + 1
            self.received += 1
            if self.scenario.rate:
                sent = int.from_bytes(body[8:16])
                self.latencies.append(time.monotonic_ns() - sent)
        if self.scenario.prefetch:
            self._latest = tag
            self._unacked += 1

    def run(self) -> dict[str, Any]:
        """Receive until the end; what came of it."""
        lanes = len(self.scenario.lanes)
        while self.finished < lanes:
            self.peer.read()
            self.last = time.monotonic()
            if not self.first:
                self.first = self.last
            self.progress[:] = struct.pack("=Q", self.expected[self._of_first])
            if self._unacked >= self.scenario.ack_every:
                self.acknowledge()
        if self._unacked:
            self.acknowledge()
        time.sleep(_SETTLE_SECONDS)
        self.clean_up()
        seconds = max(self.last - self.first, 1e-9)
        report: dict[str, Any] = {
            "messages": self.received // lanes,
            "deliveries": self.received,
            "seconds": seconds,
        }
        if self.latencies:
            ordered = sorted(self.latencies)
            for name, share in (("p50_us", 0.5), ("p99_us", 0.99)):
                report[name] = ordered[int(share * (len(ordered) - 1))] / 1000
        return report

    def acknowledge(self) -> None:
        """One ack for all that came since the last."""
        self._unacked = 0
        self.peer.send(m.BasicAck(self._latest, True))

    def clean_up(self) -> None:
        """Delete what was declared; nothing may be left in it."""
        names = list(self.scenario.queue_names)
        if self.scenario.bindings:
            names.append(f"{self.scenario.exchange}.others")
        for name in names:
            left = self.peer.call(m.QueueDelete(name), m.QueueDeleteOk).message_count
            if left and not self.scenario.readers:
                raise BenchError(f"{name}: {left} messages too many")
        if self.scenario.exchange:
            self.peer.call(m.ExchangeDelete(self.scenario.exchange), m.ExchangeDeleteOk)
        self.peer.close()


class Producer:
    """Sends batches that were encoded before, with only number and time put in.

    Args:
        job: what to do.
    """

    def __init__(self, job: Job) -> None:
        scenario = job.scenario
        self.scenario = scenario
        self.seconds = job.seconds
        self.progress = shared(job.progress)
        self.peer = Peer(job.port, lambda *_: None, scenario.version)
        if scenario.confirms:
            self.peer.call(m.ConfirmSelect(), m.ConfirmSelectOk)
        batch = max(1, min(BATCH, scenario.confirms // 4)) if scenario.confirms else BATCH
        self.frames = Frames(
            scenario.exchange,
            scenario.routing_key,
            scenario.size,
            persistent=scenario.durable,
            batch=batch,
            contents=scenario.contents,
            headers=scenario.headers,
        )
        self.batch = self.frames.batch

    def run(self) -> dict[str, Any]:
        """Send for the time that was asked for; how much it was."""
        number = self._send_paced() if self.scenario.rate else self._send_fast()
        self._send(LAST, number, 1)
        while self.scenario.confirms and self.peer.confirmed < number + 1:
            self.peer.read()
        self.peer.close()
        return {"messages": number}

    def _send_fast(self) -> int:
        number = 0
        until = time.monotonic() + self.seconds
        # Once at least: this process may stand still for as long as it is to send.
        while not number or time.monotonic() < until:
            self._wait_for_room(number)
            self._send(number, time.monotonic_ns(), self.batch)
            number += self.batch
        return number

    def _send_paced(self) -> int:
        """Send single messages, each stamped with the time when it was due."""
        gap = 1e9 / self.scenario.rate
        start = time.monotonic_ns()
        count = int(self.seconds * self.scenario.rate)
        for number in range(count):
            due = start + int(number * gap)
            while (early := due - time.monotonic_ns()) > 0:
                time.sleep(early / 1e9)
            self._send(number, due, 1)
        return count

    def _send(self, number: int, stamp: int, count: int) -> None:
        self.peer.socket.sendall(self.frames.numbered(number, stamp, count))

    def _wait_for_room(self, number: int) -> None:
        scenario, peer = self.scenario, self.peer
        if scenario.confirms:
            peer.read_if_any()
            while number + self.batch - peer.confirmed > scenario.confirms:
                peer.read()
        self._wait_for_consumer(number)

    def _wait_for_consumer(self, number: int) -> None:
        scenario = self.scenario
        until = time.monotonic() + 30
        while number + self.batch - struct.unpack("=Q", self.progress[:])[0] > scenario.ahead:
            if time.monotonic() > until:
                raise BenchError("the consumer received nothing for 30 seconds")
            time.sleep(_PAUSE)


def main(role: str, raw: str) -> int:
    """Play one end; 1 when the run does not count."""
    job = msgspec.json.decode(raw, type=Job)
    scenario = job.scenario
    version = scenario.received_in or scenario.version if role == "consumer" else scenario.version
    consume, produce = Consumer, Producer
    if version == "0-10":
        from bench.load010 import Consumer010, Producer010

        consume, produce = Consumer010, Producer010
    elif version == "1-0":
        from bench.load1 import Consumer1, Producer1

        consume, produce = Consumer1, Producer1
    try:
        if role == "consumer":
            apart = scenario.apart
            consumer = ConsumersApart(job, shared(job.progress)) if apart else consume(job)
            consumer.prepare()
            print("ready", flush=True)
            report = consumer.run()
        else:
            report = produce(job).run()
    except (BenchError, OSError) as error:
        report = {"error": f"{role}: {error}"}
    print(msgspec.json.encode(report).decode(), flush=True)
    return 1 if "error" in report else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
