"""The dissector tells versions apart, and survives every octet."""

from __future__ import annotations

import random

import pytest

from harebell.wire.dissect import Dissector
from harebell.wire.dissect import event as kinds
from tests.unit.wire.dissect.talk import CLIENT, HEADER, fed


def test_a_broker_that_refuses_is_told_from_one_that_agrees() -> None:
    dissector = Dissector()
    dissector.feed(True, b"AMQP\x01\x01\x00\x0a")
    (answer,) = dissector.feed(False, HEADER)
    assert (answer.kind, answer.name) == (kinds.HEADER, "0-9-1")
    assert "refused" in answer.text
    assert dissector.version == ""


def test_one_header_is_two_versions_until_the_broker_answers() -> None:
    final, transitional = Dissector(), Dissector()
    for dissector in (final, transitional):
        dissector.feed(True, b"AMQP\x01\x01\x00\x0a")
        assert dissector.version == ""
    final.feed(False, b"AMQP\x01\x01\x00\x0a")
    transitional.feed(False, b"\x01\x00\x00")
    assert (final.version, transitional.version) == ("0-10", "0-10t")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x16\x03\x01\x00\xc8\x01", "encrypted"),
        (b"GET / HTTP/1.1\r\n\r\n", "no AMQP: b'GET / HTTP"),
        (b"AMQP\x02\x01\x00\x00", "AMQP 2 1 0 0"),
    ],
)
def test_another_protocol_is_named(data: bytes, text: str) -> None:
    assert text in fed(data, len(data))[0].text


def test_random_octets_never_raise_and_are_all_counted() -> None:
    entropy = random.Random(5)
    headers = [b"", HEADER, b"AMQP\x01\x01\x00\x0a", b"AMQP\x01\x01\x08\x00"]
    headers.append(b"AMQP\x03\x01\x00\x00")
    for number in range(400):
        data = bytearray(entropy.choice(headers) + CLIENT[8:] + entropy.randbytes(60))
        for _ in range(number % 5):
            data[entropy.randrange(len(data))] = entropy.randrange(256)
        dissector = Dissector()
        at = 0
        while at < len(data):
            size = entropy.randrange(1, 50)
            for event in dissector.feed(entropy.random() < 0.5, bytes(data[at : at + size])):
                assert isinstance(event.octets, int)
            at += size
