"""Fuzzed: AMQP 1.0's frames, values, composites and messages, and what its output makes of them."""

from __future__ import annotations

from typing import Any

from harebell.base.body_frames import encoded
from harebell.base.errors import DecodeError
from harebell.base.message import Message
from harebell.kernels.limits import VOID_ARRAY_ELEMENTS
from harebell.wire.v1 import composites as c
from harebell.wire.v1.decoding import decode
from harebell.wire.v1.encoding import encode
from harebell.wire.v1.frames import EMPTY, SASL, encode_frame
from harebell.wire.v1.performatives import decode_performative, encode_composite
from harebell.wire.v1.sections import (
    Sections,
    body_sections,
    data_section,
    encode_message,
    sequence_section,
    value_section,
)
from harebell.wire.v1.values import Array, Described, Symbol, UInt, ULong
from tests.fuzz.splits import anyhow, singly
from tests.unit.kernels.performative_frames import said, scan
from tests.unit.kernels.twins import told, twin, used

_SCANNERS = (used("performatives"), twin("performatives"))
_SECTIONS = (used("sections"), twin("sections"))
_OUTPUTS = (used("transfers_1_0"), twin("transfers_1_0"))
_EQUAL_KEYS = "keys that are equal"


def _expect(holds: bool, what: object) -> None:
    if not holds:
        raise AssertionError(what)


def performatives(data: bytes) -> None:
    """However the octets arrive and whoever scans them, the calls are the same."""
    whole = scan(_SCANNERS[0], [data], fast=False)
    pending = data[0] & 1 if data else 0
    fast = scan(_SCANNERS[0], [data], pending=pending)
    for parts in ([data], singly(data), anyhow(data, len(data))):
        for scanner in _SCANNERS:
            assert scan(scanner, parts, fast=False) == whole
            assert scan(scanner, parts, pending=pending) == fast, "the calls differ"


def values1(data: bytes) -> None:
    """A value is refused, or it is of a size that the octets justify and is written and read."""
    ends = [said(kernel.check, data, 0, len(data)) for kernel in _SECTIONS]
    assert ends[0] == ends[1], "the compiled check and its twin differ"
    checked = ends[0]
    try:
        value, end = decode(data)
    except DecodeError as error:
        # What can be checked can be decoded, but for keys that are equal.
        _expect(_EQUAL_KEYS in error.text or isinstance(checked, tuple), (checked, error))
        return
    assert checked == end <= len(data)
    assert _count(value) <= end * VOID_ARRAY_ELEMENTS
    again = encode(value)
    read, size = decode(again)
    assert size == len(again)
    assert repr(read) == repr(value)


def _count(value: Any) -> int:
    """How many values there are in a value."""
    if isinstance(value, dict):
        return 1 + sum(_count(key) + _count(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return 1 + sum(map(_count, value))
    return 1


def composites1(data: bytes) -> None:
    """A performative is refused by name, or survives being written and read again."""
    try:
        composite, end = decode_performative(data)
    except DecodeError as error:
        _expect(error.text != "", "an error without a text")
        return
    assert end <= len(data)
    octets = encode_composite(composite)
    again, size = decode_performative(octets)
    assert size == len(octets)
    assert repr(again) == repr(composite)


def messages1(data: bytes) -> None:
    """A message is refused by both kernels, or it is delivered as it was published."""
    outcome = said(_SECTIONS[0].split, data)
    assert outcome == said(_SECTIONS[1].split, data), "the compiled split and its twin differ"
    if isinstance(outcome[0], str):
        return
    raw, body, family = outcome
    assert len(raw) + len(body) <= len(data)
    read = [said(kernel.parse_properties, raw, family) for kernel in _SECTIONS]
    seen = [each if isinstance(each, tuple) else told(each) for each in read]
    assert seen[0] == seen[1], "the compiled reader and its twin differ"
    if isinstance(read[0], tuple):
        return
    _decode_all(raw)
    said(list, body_sections(body, family))
    message = Message("x", "k" * (len(data) % 256), read[0], body)
    message.offset = len(data) % 5 - 1
    message.deliveries = len(raw) % 3
    _deliver(message)


def _decode_all(raw: bytes) -> None:
    """What was checked can be decoded."""
    sections = Sections(raw)
    sections.header()
    sections.properties()
    sections.message_annotations()
    sections.application_properties()


def _deliver(message: Message) -> None:
    outputs = []
    for kernel in _OUTPUTS:
        buffer = kernel.TransferBuffer()
        count = buffer.transfer(1, 2, 3, b"tag", False, True, 4, 5, message, 512, 1 << 20)
        outputs.append((count, encoded(buffer.take_parts())))
    assert outputs[0] == outputs[1], "the compiled output and its twin differ"
    count, octets = outputs[0]
    parts = []
    for _, _, kind, frame in scan(_SCANNERS[0], [octets], fast=False)[:-1]:
        assert kind != SASL
        parts.append(frame[decode_performative(frame)[1] :])
    assert len(parts) == count
    raw, body, family = _SECTIONS[0].split(b"".join(parts))
    assert (body, family) == (message.body, message.family)
    _decode_all(raw)


TARGETS = (performatives, values1, composites1, messages1)


def _composites() -> list[Any]:
    source = c.Source("q", 2, "never", 3, filter={"f": Described(Symbol("x:y"), "a = 1")})
    return [
        c.Open("c", "vhost:/", 512, 7, 9, ("en",), offered_capabilities=("a", "b")),
        c.Begin(None, 0, 400, 400),
        c.Attach("l", 0, True, source=source, target=c.Target("t"), unsettled={b"t": c.Accepted()}),
        c.Flow(1, 2, 300, 4, 5, 6, 70_000, 8, True, True),
        c.Transfer(7, 300, b"tag", 0, False, state=c.TransactionalState(b"t")),
        c.Disposition(True, 5, 9, True, c.Rejected(c.Error("amqp:x", "d", {"i": 1}))),
        c.Disposition(True, 5, None, True, c.Accepted()),
        c.Detach(0, True),
        c.End(),
        c.SaslMechanisms(("PLAIN", "ANONYMOUS")),
        c.SaslInit("PLAIN", b"\0guest\0guest"),
    ]


def _messages() -> list[bytes]:
    footer = b"\0\x53\x78\xc1\x05\x02\xa3\x01f\x41"
    full = (
        c.Header(True, 7, 70_000, True, 3),
        {"x-opt-a": [1, None], "x-exchange": "old", "x-cc": Array(0xA1, ["a"])},
        c.Properties("m", b"u", "/queues/q", "s", "r", ULong(5), "t", "e", 1, 2, "g", 3, "rg"),
        {"a": 1, "b": "two", "c": Symbol("three"), "d": 1.5},
    )
    bodies = (data_section(b"hi"), data_section(b"a") + data_section(b"x" * 300) + footer)
    others = (value_section({"a": [UInt(1)]}), sequence_section([1]) + sequence_section(["b"]))
    bare = [encode_message(body) for body in (*bodies, *others)]
    return bare + [encode_message(body, *full) for body in (*bodies, *others)]


def performative_seeds(target: str) -> list[bytes]:
    """Valid frames, values, composites or messages."""
    if target == "messages1":
        return _messages()
    octets = [encode_composite(each) for each in _composites()]
    if target in ("values1", "composites1"):
        return octets + _messages()
    transfer = encode_composite(c.Transfer(7, 1, b"t"))
    bodies = octets + [transfer + message for message in _messages()]
    frames = [encode_frame(body, 3) for body in bodies]
    return [*frames, EMPTY, encode_frame(octets[-1], 0, SASL), b"".join(frames[3:7])]
