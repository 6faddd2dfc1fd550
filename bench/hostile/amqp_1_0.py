"""AMQP 1.0: long ranges of deliveries, and storms of small frames."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, repeat

from bench.hostile.side import USER, Side, load
from bench.peer1 import Peer1
from harebell.wire.v1 import composites as c
from harebell.wire.v1.frames import encode_frame
from harebell.wire.v1.performatives import encode_composite
from harebell.wire.v1.sections import data_section

_QUEUE = "hostile.full"
_ADDRESS = f"/queues/{_QUEUE}"
_MILLION = 1_000_000
_CHANNEL = 1


def _frame(composite: object, payload: bytes = b"") -> bytes:
    return encode_frame(encode_composite(composite) + payload, _CHANNEL)  # type: ignore[arg-type]


class _Unsettled:
    """A link that was sent a million messages and has settled none."""

    def __init__(self, side: Side) -> None:
        self.count = side.many(_MILLION)
        self._came = 0
        side.filled(side.line(), _QUEUE, self.count)
        self.peer = Peer1(side.task.port, "hostile", self._take, user=USER)
        self.peer.attach(receives=True, address=_ADDRESS, settled=False)
        self.peer.keep_credit(self.count, by_itself=False)
        while self._came < self.count:
            self.peer.read()

    def _take(self, _: str, __: int, ___: bytes) -> None:
        self._came += 1


def _publisher(side: Side) -> Peer1:
    side.filled(side.line(), _QUEUE, 1)
    peer = Peer1(side.task.port, "hostile", lambda *_: None, user=USER)
    peer.attach(receives=False, address=_ADDRESS, settled=True)
    return peer


@load(everywhere=False)
def accept_range(side: Side) -> Iterator[None]:
    """One disposition that accepts a million messages."""
    unsettled = _Unsettled(side)
    yield
    unsettled.peer.accept(0, unsettled.count - 1)
    side.idle([unsettled.peer])


@load(everywhere=False)
def release_range(side: Side) -> Iterator[None]:
    """One disposition that releases a million messages."""
    unsettled = _Unsettled(side)
    yield
    last = unsettled.count - 1
    unsettled.peer.send(c.Disposition(True, 0, last, True, c.Released()))
    side.idle([unsettled.peer])


@load(everywhere=False)
def detach_unsettled(side: Side) -> Iterator[None]:
    """A link that is detached with a million messages out."""
    unsettled = _Unsettled(side)
    yield
    unsettled.peer.send(c.Detach(0, True))
    side.idle([unsettled.peer])


@load(everywhere=False)
def attach_storm(side: Side) -> Iterator[None]:
    """A link that is attached and detached again and again."""
    peer = _publisher(side)
    asked = c.Attach("other", 1, True, source=c.Source(_ADDRESS), target=c.Target())
    piece = _frame(asked) + _frame(c.Detach(1, True))
    yield
    side.pour(peer, repeat(piece))


@load(everywhere=False)
def echo_storm(side: Side) -> Iterator[None]:
    """Flows that ask for the state of the session."""
    peer = _publisher(side)
    window = 2**31 - 1
    yield
    side.pour(peer, repeat(_frame(c.Flow(0, window, 0, window, echo=True)) * 1_000))


@load(everywhere=False)
def tiny_transfers(side: Side) -> Iterator[None]:
    """Messages that come an octet at a time, each in a transfer."""
    peer = _publisher(side)
    payload = data_section(b"x" * 1_000)
    parts = b"".join(_frame(c.Transfer(0, more=True), bytes((each,))) for each in payload)
    last = _frame(c.Transfer(0))
    numbers = count()
    yield
    while not side.over:
        number = next(numbers)
        while number >= peer.limit and not side.over:
            peer.read()
        head = c.Transfer(0, number, number.to_bytes(8), 0, True, True)
        peer.socket.sendall(_frame(head) + parts + last)
        peer.read_if_any()
        side.done += 1
