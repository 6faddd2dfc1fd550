"""Class connection of 0-8 and 0-9: the beginning and the end."""

from __future__ import annotations

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.plain_fields import is_plain
from tests.conformance.v08.conftest import Connect


def _tags(table: bytes) -> bool:
    return is_plain(table)


@pytest.mark.rule("0-8#009")
@pytest.mark.parametrize("greeting", [b"AMQP\x01\x01\x08\x00", b"AMQP\x01\x01\x09\x01"])
def test_both_headers_of_0_8_are_answered_with_version_8_0(
    connect: Connect, greeting: bytes
) -> None:
    peer = connect()
    peer.send_bytes(greeting)
    start = peer.expect(m.ConnectionStart)
    assert (start.version_major, start.version_minor) == (8, 0)
    assert start.server_properties["capabilities"] == {}


def test_0_9_is_answered_with_version_0_9(connect_0_9: Connect) -> None:
    start = connect_0_9().greet()
    assert (start.version_major, start.version_minor) == (0, 9)
