"""What tells the versions apart on the client's side, and what they do not have."""

from __future__ import annotations

import pytest

from harebell.client.errors import UnsupportedByVersion
from harebell.client.protocol.v09.dialect import dialect_of
from harebell.wire.v09 import methods as m


@pytest.mark.parametrize(
    ("version", "header", "close"),
    [
        ("0-8", b"AMQP\x01\x01\x08\x00", 60),
        ("0-9", b"AMQP\x01\x01\x00\x09", 50),
        ("0-9-1", b"AMQP\x00\x00\x09\x01", 50),
    ],
)
def test_each_version_has_its_header_and_its_numbers(
    version: str, header: bytes, close: int
) -> None:
    dialect = dialect_of(version)
    assert dialect.header == header
    assert dialect.encode(m.ConnectionClose())[:4] == bytes((0, 10, 0, close))


def test_only_0_8_has_no_confirms() -> None:
    versions = ("0-8", "0-9", "0-9-1", "0-10t")
    assert [dialect_of(version).confirms for version in versions] == [False, True, True, True]


def test_a_method_that_a_version_lacks_is_named() -> None:
    with pytest.raises(UnsupportedByVersion, match=r"AMQP 0-8 has no basic\.nack"):
        dialect_of("0-8").encode(m.BasicNack())


def test_a_consumer_of_0_8_has_arguments_on_the_wire_only_when_there_are_any() -> None:
    dialect = dialect_of("0-8")
    published = b"\x00\x3c\x00\x14\x00\x00\x01q\x01t\x00"
    plain = m.BasicConsume(queue="q", consumer_tag="t")
    assert dialect.encode(plain) == published
    with_arguments = m.BasicConsume(queue="q", consumer_tag="t", arguments={"a": 1})
    assert dialect.encode(with_arguments) == published + b"\x00\x00\x00\x07\x01aI\x00\x00\x00\x01"
    assert dialect_of("0-9").encode(plain) == published + bytes(4)


def test_an_error_of_a_version_can_be_pickled_like_the_others() -> None:
    error = UnsupportedByVersion("0-8", "basic.nack")
    assert (error.version, error.thing) == ("0-8", "basic.nack")
    assert str(error) == "AMQP 0-8 has no basic.nack"
