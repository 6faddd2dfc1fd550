"""A healthy publisher and its consumer, and how long their messages take.

    python -m bench.pair '{...}'     declares, says "ready", waits for a line, plays, reports

Both ends are one process with one loop, so that one clock has all times. A message has the time in
it at which it was written, which is not the time at which it was due: what this process comes late
by is reported beside the latencies and is not part of them. It asks the system to be run before
others where it may. The report is one line of JSON.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import sys
import time
from typing import Any

import msgspec

from bench.frames import Frames
from bench.peer import BenchError, Peer
from harebell.wire.v09 import methods as m

USER = "pair"
QUEUE = "pair"
SIZE_BYTES = 128
ACK_EVERY = 20
PREFETCH = 1_000
GRACE_SECONDS = 60.0
_WARM_SECONDS = 0.3


class Task(msgspec.Struct, frozen=True):
    """What the pair has to do.

    Args:
        port: where the broker listens.
        seconds: how long to send.
        rate: messages per second.
        confirms: whether messages are persistent, and confirmed by the broker.
        grace: seconds to wait for what has not arrived by then.
    """

    port: int
    seconds: float
    rate: int = 1_000
    confirms: bool = False
    grace: float = GRACE_SECONDS


class Report(msgspec.Struct, kw_only=True):
    """How the pair fared.

    Args:
        messages: how many were sent.
        lost: how many had not arrived when the grace was over; their latency is that long.
        p50_ms: half of the messages took at most that long.
        p99_ms: 99 of 100 took at most that long.
        worst_ms: the longest.
        own_ms: the most by which this process itself was late.
    """

    messages: int
    lost: int
    p50_ms: float
    p99_ms: float
    worst_ms: float
    own_ms: float


class Pair:
    """Both ends.

    Args:
        task: what to do.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._latencies: list[int] = []
        self._unacked = self._latest = 0
        self._own = 0
        self._out = Peer(task.port, lambda *_: None, user=USER)
        self._in = Peer(task.port, self._delivered, user=USER)
        lasting = task.confirms
        self._frames = Frames("", QUEUE, SIZE_BYTES, persistent=lasting, batch=1)
        self._in.call(m.QueueDeclare(QUEUE, durable=lasting), m.QueueDeclareOk)
        self._in.call(m.BasicQos(0, PREFETCH), m.BasicQosOk)
        self._in.call(m.BasicConsume(QUEUE, "pair"), m.BasicConsumeOk)
        if lasting:
            self._out.call(m.ConfirmSelect(), m.ConfirmSelectOk)

    def _delivered(self, _: str, tag: int, body: bytes) -> None:
        self._latencies.append(time.monotonic_ns() - int.from_bytes(body[8:16]))
        self._latest = tag
        self._unacked += 1

    def play(self, seconds: float) -> int:
        """Send so long, and receive everything; how many messages it was."""
        count = int(seconds * self._task.rate)
        gap = 1e9 / self._task.rate
        start = time.monotonic_ns()
        for number in range(count):
            due = start + int(number * gap)
            while (early := due - time.monotonic_ns()) > 0:
                self._receive(early / 1e9)
            now = time.monotonic_ns()
            self._own = max(self._own, now - due)
            self._out.socket.sendall(self._frames.numbered(number, now, 1))
        until = time.monotonic() + self._task.grace
        while len(self._latencies) < count and (left := until - time.monotonic()) > 0:
            self._receive(left)
        return count

    def _receive(self, seconds: float) -> None:
        """Take what comes within a time."""
        for each in select.select([self._in.socket, self._out.socket], [], [], seconds)[0]:
            (self._in if each is self._in.socket else self._out).read()
        if self._unacked >= ACK_EVERY:
            self._in.send(m.BasicAck(self._latest, True))
            self._unacked = 0

    def run(self) -> Report:
        """Warm up, wait for the word, and play."""
        self.play(_WARM_SECONDS)
        print("ready", flush=True)
        sys.stdin.readline()
        gc.collect()
        gc.disable()
        # A broker that was idle meanwhile has to get the processor first; that is no load's doing.
        self._latencies.clear()
        self.play(_WARM_SECONDS)
        self._latencies.clear()
        self._own = 0
        count = self.play(self._task.seconds)
        return judged(self._latencies, count, self._task.grace, self._own)


def judged(latencies: list[int], count: int, grace: float, own: int = 0) -> Report:
    """The report over latencies in nanoseconds."""
    lost = max(count - len(latencies), 0)
    ordered = sorted(latencies) + [int(grace * 1e9)] * lost
    if not ordered:
        raise BenchError("the pair sent nothing")
    p50, p99 = (ordered[int(share * (len(ordered) - 1))] / 1e6 for share in (0.5, 0.99))
    return Report(
        messages=count,
        lost=lost,
        p50_ms=p50,
        p99_ms=p99,
        worst_ms=ordered[-1] / 1e6,
        own_ms=own / 1e6,
    )


def main(raw: str) -> int:
    """Play the pair; 1 when there is nothing to report."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    report: Any
    try:
        report = Pair(msgspec.json.decode(raw, type=Task)).run()
    except (BenchError, OSError) as error:
        report = {"error": f"pair: {error}"}
    print(msgspec.json.encode(report).decode(), flush=True)
    return 1 if isinstance(report, dict) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
