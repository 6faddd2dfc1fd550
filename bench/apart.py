"""The consuming end of a scenario whose consumers have a connection each.

Each of them has to see rising numbers; together they have to see every number once.
"""

from __future__ import annotations

import mmap
import resource
import select
import struct
import time
from typing import TYPE_CHECKING, Any

from bench.peer import BenchError, Peer
from bench.scenarios import LAST
from harebell.wire.v09 import methods as m

if TYPE_CHECKING:
    from bench.load import Job

_OTHER_FILES = 100


class _One:
    """One consumer on a connection of its own."""

    def __init__(self, port: int) -> None:
        self.count = self.sum = self.unacked = 0
        self.total = -1
        self._next = self._latest = 0
        self.peer = Peer(port, self._delivered)

    def _delivered(self, _consumer: str, tag: int, body: bytes) -> None:
        number = int.from_bytes(body[:8])
        if number == LAST:
            self.total = int.from_bytes(body[8:16])
        elif number < self._next:
            raise BenchError(f"a consumer got message {number} after {self._next - 1}")
        else:
            self._next = number + 1
            self.count += 1
            self.sum += number
        self._latest = tag
        self.unacked += 1

    def acknowledge(self) -> None:
        """One ack for all that came since the last."""
        self.unacked = 0
        self.peer.send(m.BasicAck(self._latest, True))


class ConsumersApart:
    """Receives and checks, as `bench.load.Consumer`.

    Args:
        job: what to do.
        progress: the shared counter of messages received.
    """

    def __init__(self, job: Job, progress: mmap.mmap) -> None:
        self._job = job
        self._progress = progress
        self._ones: dict[int, _One] = {}
        self._poll = select.epoll()

    def prepare(self) -> None:
        """Declare the queue and start consuming."""
        scenario = self._job.scenario
        (name,) = scenario.queue_names
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        for number in range(min(scenario.consumers, most - _OTHER_FILES)):
            one = _One(self._job.port)
            if not number:
                one.peer.call(m.QueueDelete(name), m.QueueDeleteOk)
                one.peer.call(m.QueueDeclare(name), m.QueueDeclareOk)
            one.peer.call(m.BasicQos(0, scenario.prefetch), m.BasicQosOk)
            one.peer.call(m.BasicConsume(name, ""), m.BasicConsumeOk)
            self._ones[one.peer.socket.fileno()] = one
            self._poll.register(one.peer.socket.fileno(), select.EPOLLIN)

    def run(self) -> dict[str, Any]:
        """Receive until the end; what came of it."""
        ones = list(self._ones.values())
        received, total, first = 0, -1, 0.0
        while received != total:
            for file, _ in self._poll.poll():
                one = self._ones[file]
                before = one.count
                one.peer.read()
                received += one.count - before
                total = max(total, one.total)
                if one.unacked >= self._job.scenario.ack_every:
                    one.acknowledge()
            last = time.monotonic()
            first = first or last
            self._progress[:] = struct.pack("=Q", received)
            if 0 <= total < received:
                raise BenchError(f"{total} were sent, {received} received")
        if sum(each.sum for each in ones) != total * (total - 1) // 2:
            raise BenchError("some messages were lost, and others doubled")
        for each in ones:
            if each.unacked:
                each.acknowledge()
        self._clean_up(ones)
        seconds = max(last - first, 1e-9)
        return {"messages": received, "deliveries": received, "seconds": seconds}

    def _clean_up(self, ones: list[_One]) -> None:
        (name,) = self._job.scenario.queue_names
        for each in ones[1:]:
            each.peer.close()
        left = ones[0].peer.call(m.QueueDelete(name), m.QueueDeleteOk).message_count
        if left:
            raise BenchError(f"{name}: {left} messages too many")
        ones[0].peer.close()
