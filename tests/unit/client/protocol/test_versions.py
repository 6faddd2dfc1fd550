"""Each version has the core that speaks it."""

from __future__ import annotations

import random

import pytest

from harebell.client.protocol.v09.core import new_core
from harebell.client.url import URL

HEADERS = {
    "0-8": b"AMQP\x01\x01\x08\x00",
    "0-9": b"AMQP\x01\x01\x00\x09",
    "0-9-1": b"AMQP\x00\x00\x09\x01",
    "0-10t": b"AMQP\x01\x01\x63\x00",
    "0-10": b"AMQP\x01\x01\x00\x0a",
    "1-0": b"AMQP\x03\x01\x00\x00",
}


@pytest.mark.parametrize("version", list(HEADERS))
def test_a_core_begins_with_the_header_of_its_version(version: str) -> None:
    core = new_core(URL(version=version), 0.0, {}, random.Random(1))
    assert core.take_output() == HEADERS[version]
