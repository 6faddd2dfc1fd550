"""What a client can get wrong on the wire, as octets to be sent to both brokers.

Every method that AMQP 0-9-1 knows, in every state in which it may arrive, and frames, contents and
tables that are broken in every way that the format leaves open.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.extensions import FIRST_CLASS
from tests.conformance.frames import BODY, HEADER, HEARTBEAT, METHOD, body, content_header, frame
from tests.conformance.raw import encoded, publish_octets
from tests.conformance.test_states import NAMES as EVERY
from tests.conformance.test_states import method

NAMES = [name for name in EVERY if AMQP_0_9_1.named(name).class_id < FIRST_CLASS]
"""Methods that both brokers know; classes of Harebell's own are left out."""
STARTING, TUNING, OPENING, OPEN = "starting", "tuning", "opening", "open"
"""How far the handshake has come when the mistake is made: the broker waits for start-ok, tune-ok,
open, or anything."""
QUEUE = "mistakes"
_FRAME_MAX = 131_072
_ZERO = m.BasicPublish(routing_key=QUEUE)


@dataclass(frozen=True)
class Mistake:
    """One mistake.

    Args:
        name: says what it is.
        stage: when it is made.
        octets: what is sent.
        channel: where it is made.
    """

    name: str
    stage: str
    octets: bytes
    channel: int = 1


def mistakes() -> Iterator[Mistake]:
    """All of them."""
    yield from _methods()
    yield from _frames()
    yield from _contents()
    yield from _arguments()
    yield from _tables()


def _numbered(name: str, channel: int) -> bytes:
    """A method's frame on any channel, also where its class does not belong."""
    return frame(METHOD, channel, encoded(method(name), 1)[7:-1])


def _methods() -> Iterator[Mistake]:
    begun = encoded(_ZERO, 1)
    for name in NAMES:
        for stage in (STARTING, TUNING, OPENING):
            right = {STARTING: "start-ok", TUNING: "tune-ok", OPENING: "open"}[stage]
            if name != f"connection.{right}":
                yield Mistake(f"{name} while {stage}", stage, _numbered(name, 0), 0)
        for channel, place in ((0, "channel 0"), (1, "an open channel"), (9, "no open channel")):
            if (name, channel) in (("channel.close", 1), ("queue.declare", 1)):
                # No mistakes: the channel could not be asked afterwards, and whether the queue is
                # there would change what the others are told at the same time.
                continue
            yield Mistake(f"{name} on {place}", OPEN, _numbered(name, channel), channel)
        yield Mistake(f"{name} after basic.publish", OPEN, begun + _numbered(name, 1))
        header = begun + content_header(5)
        yield Mistake(f"{name} after a content header", OPEN, header + _numbered(name, 1))


def _frames() -> Iterator[Mistake]:
    declare = encoded(m.QueueDeclare(queue=QUEUE, passive=True))
    for end in (0x00, 0xCD, 0xFF):
        yield Mistake(f"frame end {end:#x}", OPEN, declare[:-1] + bytes((end,)))
    for kind in (0, 4, 5, 6, 7, 9, 255):
        for channel in (0, 1, 9):
            yield Mistake(
                f"frame type {kind} on {channel}", OPEN, frame(kind, channel, b"what"), channel
            )
    for kind in (METHOD, HEADER, BODY):
        for over in (1, 9, 10):
            octets = frame(kind, 1, bytes(_FRAME_MAX - 8 + over))
            yield Mistake(f"frame type {kind} over by {over}", OPEN, octets)
        yield Mistake(f"type {kind} with a huge size", OPEN, struct.pack(">BHI", kind, 1, 2**31))
    for channel in (0, 1, 9):
        yield Mistake(f"heartbeat on {channel}", OPEN, frame(HEARTBEAT, channel), channel)
        yield Mistake(
            f"long heartbeat on {channel}", OPEN, frame(HEARTBEAT, channel, b"\0"), channel
        )
        for kind in (HEADER, BODY):
            yield Mistake(
                f"lone type {kind} on {channel}", OPEN, frame(kind, channel, b"what"), channel
            )
    for size in range(4):
        yield Mistake(f"a method of {size} octets", OPEN, frame(METHOD, 1, b"\0\x32\0\x0a"[:size]))
    for number in ((0, 0), (10, 99), (20, 99), (30, 99), (50, 99), (60, 0), (99, 10), (65535, 1)):
        for channel in (0, 1, 9):
            octets = frame(METHOD, channel, struct.pack(">HH", *number) + bytes(20))
            yield Mistake(f"method {number} on {channel}", OPEN, octets, channel)


def _contents() -> Iterator[Mistake]:
    begun = encoded(_ZERO, 1)
    for class_id in (0, 10, 50, 90, 65535):
        header = content_header(1, class_id=class_id)
        yield Mistake(f"header of class {class_id}", OPEN, begun + header + body(b"x"))
    yield Mistake("header with a weight", OPEN, begun + content_header(1, weight=1) + body(b"x"))
    yield Mistake("body for a header", OPEN, begun + body(b"x"))
    yield Mistake("two headers", OPEN, begun + content_header(1) + content_header(1))
    yield Mistake("body too long", OPEN, begun + content_header(1) + body(b"xy"))
    yield Mistake("body behind its end", OPEN, publish_octets("", QUEUE, b"x") + body(b"y"))
    yield Mistake("body behind none", OPEN, publish_octets("", QUEUE, b"") + body(b"y"))
    for size in (2**63, 2**64 - 1, 2**29 + 1, 2**27 + 1):
        yield Mistake(f"body of {size}", OPEN, begun + content_header(size))
    for properties in _PROPERTIES:
        octets = begun + content_header(1, bytes.fromhex(properties)) + body(b"x")
        yield Mistake(f"properties {properties or 'missing'}", OPEN, octets)


_PROPERTIES = (
    "", "00", "0001", "0002", "000000", "8000", "800005616263", "20000000000009",
    "2000000000026b3f",
    "200000000004016b3f00", "20000000000301 6b74", "1000", "004000 0000", "8000016121", "80000161",
    "8000 03 ff fe fd", "0800 03", "fffe",
)  # fmt: skip
"""Property lists that end too early, are too long, or hold what cannot be read; the last but two
are fine or are not looked at."""


def _arguments() -> Iterator[Mistake]:
    for name in NAMES:
        if name.startswith("connection.") or name.endswith("-ok"):
            continue
        payload = encoded(method(name), 1)[7:-1]
        for cut in {len(payload) - 1, (len(payload) + 4) // 2}:
            if cut >= 4 and cut < len(payload):
                yield Mistake(f"{name} cut at {cut}", OPEN, frame(METHOD, 1, payload[:cut]))
        yield Mistake(f"{name} and more", OPEN, frame(METHOD, 1, payload + b"\0"))
    for text in (b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"a\0b", b"a\nb"):
        declare = b"\0\x32\0\x0a\0\0" + bytes((len(text),)) + text + b"\x01" + bytes(4)
        yield Mistake(f"queue.declare of {text!r}", OPEN, frame(METHOD, 1, declare))
        publish = b"\0\x3c\0\x28\0\0\0" + bytes((len(text),)) + text + b"\0"
        octets = frame(METHOD, 1, publish) + content_header(0)
        yield Mistake(f"basic.publish to {text!r}", OPEN, octets)


def _tables() -> Iterator[Mistake]:
    """Arguments of queue.declare, passive so that nothing is made of what is understood."""
    for tag in (*b"tbBsuIilLfdDSATFVxUck", 0, 63, 255):
        yield _table(f"tag {tag} and nothing", b"\x01k" + bytes((tag,)))
        yield _table(f"tag {tag} and zeros", b"\x01k" + bytes((tag,)) + bytes(8))
    yield _table("a name longer than the table", b"\x09k")
    yield _table("a nested table longer than its own", b"\x01kF\0\0\0\x09\x01at\1")
    yield _table("an array longer than its table", b"\x01kA\0\0\0\x09t\1")
    yield _table("a string longer than its table", b"\x01kS\0\0\0\x09abc")
    head = b"\0\x32\0\x0a\0\0\x01q\x01"
    for size in (5, 255, 2**31, 2**32 - 1):
        octets = frame(METHOD, 1, head + size.to_bytes(4, "big") + b"\x01kt\1")
        yield Mistake(f"a table that says {size}", OPEN, octets)


def _table(name: str, content: bytes) -> Mistake:
    head = b"\0\x32\0\x0a\0\0" + bytes((len(QUEUE),)) + QUEUE.encode() + b"\x01"
    payload = head + len(content).to_bytes(4, "big") + content
    return Mistake(f"table: {name}", OPEN, frame(METHOD, 1, payload))
