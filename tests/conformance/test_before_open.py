"""What a peer makes the broker keep before its connection is open has a limit, in every version.

It is measured: with many connections of one kind, the memory of each.
"""

from __future__ import annotations

import gc
import tracemalloc
from functools import cache
from typing import NamedTuple

import pytest

from harebell.base.limits import HANDSHAKE_FRAME_BYTES
from harebell.front.limits import CLIENT_PROPERTIES_VALUES
from harebell.wire.v010 import controls as k
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_8 import AMQP_0_8
from harebell.wire.v09.amqp_0_9 import AMQP_0_9
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.amqp_0_10_transitional import AMQP_0_10_TRANSITIONAL
from harebell.wire.v09.spec import ProtocolSpec
from tests.conformance.frames import METHOD
from tests.conformance.frames import frame as frame_09
from tests.conformance.sites import MemorySite, MemoryWire
from tests.conformance.v010.raw import frame as frame_010

CONNECTIONS = 16
KEPT_BYTES = HANDSHAKE_FRAME_BYTES + 16_384
"""A frame, and what else may be kept."""

HEADERS = {
    "0-8": b"AMQP\x01\x01\x08\x00",
    "0-9": b"AMQP\x01\x01\x00\x09",
    "0-9-1": b"AMQP\x00\x00\x09\x01",
    "0-10": b"AMQP\x01\x01\x00\x0a",
    "transitional 0-10": b"AMQP\x01\x01\x63\x00",
}
SPECS: dict[str, ProtocolSpec] = {
    "0-8": AMQP_0_8,
    "0-9": AMQP_0_9,
    "0-9-1": AMQP_0_9_1,
    "transitional 0-10": AMQP_0_10_TRANSITIONAL,
}
CLASSIC = tuple(SPECS)


class Attack(NamedTuple):
    """What is sent after the protocol header.

    Args:
        version: the version of AMQP.
        name: what it is.
        writes: the octets, in several writes.
    """

    version: str
    name: str
    writes: list[bytes]

    def __str__(self) -> str:
        return f"{self.version}: {self.name}"


def _start_ok(version: str, properties: dict[str, object], response: bytes = b"") -> bytes:
    method = m.ConnectionStartOk(properties, "PLAIN", response or b"\0guest\0guest", "en_US")
    return frame_09(METHOD, 0, SPECS[version].encode(method))


def _tune_ok(version: str) -> bytes:
    return frame_09(METHOD, 0, SPECS[version].encode(m.ConnectionTuneOk(0, 131_072, 0)))


def _classic(version: str) -> list[Attack]:
    names = {f"{number:04}": True for number in range(700)}
    begun = [_start_ok(version, {}), _tune_ok(version)]
    return [
        Attack(version, "nothing", []),
        Attack(
            version, "a frame without its end", [b"\x01\0\0" + (8_184).to_bytes(4), bytes(8_180)]
        ),
        Attack(version, "many properties", [_start_ok(version, names)]),
        Attack(
            version, "nested properties", [_start_ok(version, {"p": [[] for _ in range(1_500)]})]
        ),
        Attack(version, "capabilities", [_start_ok(version, {"capabilities": names})]),
        Attack(
            version,
            "as many properties as may be",
            [_start_ok(version, {f"{n:040}": {} for n in range(CLIENT_PROPERTIES_VALUES)})],
        ),
        Attack(version, "a long property", [_start_ok(version, {"p": "x" * 8_000})]),
        Attack(version, "a long response", [_start_ok(version, {}, b"\0guest\0" + b"x" * 8_000)]),
        Attack(
            version,
            "a large frame before open",
            [*begun, b"\x01\0\0" + (131_000).to_bytes(4), *[bytes(10_000)] * 12],
        ),
    ]


def _parts(kind: int, channel: int, track: int, count: int, size: int) -> list[bytes]:
    """Frames of one segment without its last one."""
    flags = [0x0E if number == 0 else 0x0C for number in range(count)]
    return [frame_010(kind, bytes(size), channel, each, track) for each in flags]


def _control(control: k.ConnectionStartOk) -> bytes:
    return frame_010(0, AMQP_0_10.encode(control))


def _final() -> list[Attack]:
    version = "0-10"
    begun = [_control(k.ConnectionStartOk({}, "PLAIN", b"\0guest\0guest", "en_US"))]
    scram = b"n,,n=guest,r=" + b"x" * 8_000
    return [
        Attack(version, "nothing", []),
        Attack(version, "a control without its end", _parts(0, 0, 0, 64, 4_000)),
        Attack(version, "small frames without an end", _parts(0, 0, 0, 9_000, 1)),
        Attack(
            version, "a control without its end after the login", begun + _parts(0, 0, 0, 64, 4_000)
        ),
        Attack(
            version,
            "controls on many channels",
            [part for channel in range(60) for part in _parts(0, channel, 0, 1, 4_000)],
        ),
        Attack(
            version,
            "commands on many channels",
            [part for channel in range(60) for part in _parts(1, channel, 1, 1, 4_000)],
        ),
        Attack(
            version,
            "many properties",
            [
                _control(
                    k.ConnectionStartOk({f"{n:04}": True for n in range(900)}, "PLAIN", b"", "")
                )
            ],
        ),
        Attack(
            version,
            "a long message of SCRAM",
            [_control(k.ConnectionStartOk({}, "SCRAM-SHA-256", scram, ""))],
        ),
    ]


ATTACKS = [attack for version in CLASSIC for attack in _classic(version)] + _final()


def _held(attack: Attack) -> float:
    """Memory of one connection."""
    site = MemorySite()
    wires: list[MemoryWire] = []

    def begin() -> None:
        wire = site.connect()
        wires.append(wire)
        for octets in (HEADERS[attack.version], *attack.writes):
            wire.write(octets)
        wire.arrived.clear()

    begin()
    site.log.clear()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(CONNECTIONS):
            begin()
            site.log.clear()
        gc.collect()
        return (tracemalloc.get_traced_memory()[0] - before) / CONNECTIONS
    finally:
        tracemalloc.stop()


@cache
def _plain(version: str) -> float:
    """What a connection without an attack holds."""
    return _held(Attack(version, "nothing", []))


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_a_connection_that_is_not_open_keeps_little(attack: Attack) -> None:
    assert _held(attack) - _plain(attack.version) <= KEPT_BYTES


@pytest.mark.parametrize("version", ["0-8", "0-9-1", "0-10"])
def test_a_client_with_too_many_properties_is_told_in_the_log(version: str) -> None:
    site = MemorySite()
    wire = site.connect()
    attacks = _final() if version == "0-10" else _classic(version)
    (attack,) = [each for each in attacks if each.name == "many properties"]
    for octets in (HEADERS[version], *attack.writes):
        wire.write(octets)
    text = f"00 properties, and at most {CLIENT_PROPERTIES_VALUES} are kept"
    assert any(text in line for _, line in site.log), site.log
    assert not any("internal error" in line for _, line in site.log)
