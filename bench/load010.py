"""The two ends of a scenario in AMQP 0-10; see `bench.load`, which they derive from."""

from __future__ import annotations

from typing import Any

from bench.frames import Frames
from bench.load import BATCH, Consumer, Job, Producer, shared
from bench.peer010 import FRAME_MAX, Peer010
from harebell.kernels.transfers import SegmentBuffer
from harebell.wire.v010 import commands as c
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.structs import DeliveryProperties

_NONE = 1


class Frames010(Frames):
    """Transfers side by side, encoded once."""

    def encoded(self, exchange: str, routing_key: str, body: bytes, persistent: bool) -> bytes:
        """One transfer."""
        mode = 2 if persistent else 1
        header = DeliveryProperties(routing_key=routing_key, delivery_mode=mode)
        out = SegmentBuffer()
        command = AMQP_0_10.encode(c.MessageTransfer(exchange, accept_mode=_NONE))
        out.assembly(1, command, AMQP_0_10.encode_struct(header), body, FRAME_MAX)
        return bytes(out.take())


class Consumer010(Consumer):
    """Receives and checks."""

    def connect(self, port: int) -> Any:
        """Its connection."""
        return Peer010(port, "bench consumer", self.delivered)

    def prepare(self) -> None:
        """Declare everything and subscribe, without a limit."""
        for lane, name in self.scenario.lanes:
            self.expected[lane] = 0
            self.peer.do(
                c.QueueDeclare(name, durable=self.scenario.durable),
                c.MessageSubscribe(name, lane, accept_mode=_NONE),
                c.MessageFlow(lane, 0, 2**32 - 1),
                c.MessageFlow(lane, 1, 2**32 - 1),
            )
        self._of_first = self.scenario.lanes[0][0]

    def clean_up(self) -> None:
        """Delete what was declared."""
        for lane, name in self.scenario.lanes:
            self.peer.do(c.MessageCancel(lane), c.QueueDelete(name, if_empty=True))
        self.peer.close()


class Producer010(Producer):
    """Sends batches that were encoded before."""

    def __init__(self, job: Job) -> None:
        scenario = job.scenario
        self.scenario = scenario
        self.seconds = job.seconds
        self.progress = shared(job.progress)
        self.peer: Any = Peer010(job.port, "bench producer", lambda *_: None)
        self.frames = Frames010(
            scenario.exchange,
            scenario.routing_key,
            scenario.size,
            persistent=scenario.durable,
            batch=BATCH,
        )
        self.batch = self.frames.batch

    def run(self) -> dict[str, Any]:
        """Send for the time that was asked for; how much it was."""
        number = self._send_fast()
        self._send(2**64 - 1, number, 1)
        self.peer.finish()
        self.peer.close()
        return {"messages": number}

    def _send(self, number: int, stamp: int, count: int) -> None:
        self.peer.transferred(self.frames.numbered(number, stamp, count), count)
