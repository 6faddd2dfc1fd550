"""The two ends of a scenario in AMQP 1.0; see `bench.load`, which they derive from."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.frames import Frames
from bench.load import BATCH, Consumer, Job, Producer, shared
from bench.peer import Peer
from bench.peer1 import Peer1
from bench.scenarios import LAST
from harebell.wire.v09 import methods as m
from harebell.wire.v1 import composites as c
from harebell.wire.v1.frames import encode_frame
from harebell.wire.v1.performatives import encode_composite
from harebell.wire.v1.sections import data_section, encode_message

_CREDIT = 1_000
_ID = 0xABCD_EF01


class Frames1(Frames):
    """Transfers side by side, each with its delivery-id.

    Args:
        settled: whether they are settled when they are sent.
        **about: as for `Frames`.
    """

    def __init__(self, *, settled: bool, **about: Any) -> None:
        self._settled = settled
        super().__init__("", "", **about)
        one, encoded_id = self.encoded("", "", bytes(16), about["persistent"]), _ID.to_bytes(4)
        # The delivery-id, and the tag of an unsettled delivery.
        self._ids_at = [at for at in range(len(one)) if one.startswith(encoded_id, at)]

    def encoded(self, exchange: str, routing_key: str, body: bytes, persistent: bool) -> bytes:
        """One transfer."""
        header = c.Header(durable=True) if persistent else None
        headers = self._headers
        message = encode_message(data_section(body), header, application_properties=headers)
        tag = b"" if self._settled else _ID.to_bytes(4)
        transfer = c.Transfer(0, _ID, tag, 0, settled=self._settled)
        return encode_frame(encode_composite(transfer) + message, 1)

    def identified(self, number: int, stamp: int, count: int, first: int) -> memoryview:
        """As `numbered`, with delivery-ids from `first` on."""
        encoded = self.numbered(number, stamp, count)
        for start in self._ids_at:
            self.put(encoded, start, ">u4", first + np.arange(count, dtype="u4"))
        return encoded


class Consumer1(Consumer):
    """Receives and checks."""

    def connect(self, port: int) -> Any:
        """Its connection, and another one that declares."""
        self._declaring = Peer(port, lambda *_: None)
        return Peer1(port, self.scenario.queue_names[0], self.delivered)

    def prepare(self) -> None:
        """Declare the queue and attach to it."""
        (name,) = self.scenario.queue_names
        self._declaring.call(m.QueueDelete(name), m.QueueDeleteOk)
        self._declaring.call(m.QueueDeclare(name, durable=self.scenario.durable), m.QueueDeclareOk)
        self.expected[name] = 0
        self._of_first = name
        settled = not self.scenario.prefetch
        self.peer.attach(receives=True, address=f"/queues/{name}", settled=settled)
        self.peer.keep_credit(self.scenario.prefetch or _CREDIT, by_itself=settled)

    def acknowledge(self) -> None:
        """Accept all that came since the last time."""
        self.peer.accept(self.peer.received - self._unacked, self._latest)
        self._unacked = 0
        self.peer.renew_credit()

    def clean_up(self) -> None:
        """Delete the queue, in which nothing may be left."""
        self.peer.close()
        self.peer = self._declaring
        super().clean_up()


class Producer1(Producer):
    """Sends batches that were encoded before."""

    def __init__(self, job: Job) -> None:
        scenario = job.scenario
        self.scenario = scenario
        self.seconds = job.seconds
        self.progress = shared(job.progress)
        self.peer: Any = Peer1(job.port, "bench producer", lambda *_: None)
        settled = not scenario.confirms
        address = f"/queues/{scenario.routing_key}"
        self.peer.attach(receives=False, address=address, settled=settled)
        self.frames: Frames1 = Frames1(
            settled=settled,
            headers=scenario.headers,
            size=scenario.size,
            persistent=scenario.durable,
            batch=max(1, min(BATCH, scenario.confirms // 4)) if scenario.confirms else BATCH,
        )
        self.batch = self.frames.batch
        self._sent = 0

    def run(self) -> dict[str, Any]:
        """Send for the time that was asked for; how much it was."""
        number = self._send_fast()
        self._send(LAST, number, 1)
        while self.scenario.confirms and self.peer.settled < number + 1:
            self.peer.read()
        self.peer.close()
        return {"messages": number}

    def _send(self, number: int, stamp: int, count: int) -> None:
        while self.peer.limit - self._sent < count:
            self.peer.read()
        frames = self.frames.identified(number, stamp, count, self._sent)
        self._sent += count
        self.peer.socket.sendall(frames)

    def _wait_for_room(self, number: int) -> None:
        self.peer.read_if_any()
        while self.scenario.confirms and self._sent + self.batch - self.peer.settled > (
            self.scenario.confirms
        ):
            self.peer.read()
        self._wait_for_consumer(number)
