"""The other classes of 0-8 and 0-9: numbers, senders, replies, and every method both ways."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.errors import ProtocolError
from harebell.wire.v09.amqp_0_8 import AMQP_0_8
from harebell.wire.v09.amqp_0_9 import AMQP_0_9
from harebell.wire.v09.method import METHODS
from harebell.wire.v09.methods_older import (
    FileConsume,
    FileOpen,
    FilePublish,
    StreamConsume,
    TestInteger,
)
from harebell.wire.v09.spec import MethodSpec

CLASSES = ("file", "stream", "dtx", "tunnel", "test")
HERE = [
    spec
    for version in (AMQP_0_8, AMQP_0_9)
    for spec in version.methods
    if spec.name.partition(".")[0] in CLASSES
]
SAMPLES: dict[str, Any] = {
    "octet": 200, "short": 60_000, "long": 2**32 - 1, "longlong": 2**64 - 1, "bit": True,
    "shortstr": "name", "longstr": b"\0\xff", "plain-table": {"a": 1, "b": "text"},
}  # fmt: skip
CONTENTS = {
    "file.stage", "file.return", "stream.publish", "stream.return", "stream.deliver",
    "tunnel.request", "test.content", "test.content-ok",
}  # fmt: skip


@pytest.mark.parametrize("spec", HERE, ids=lambda spec: spec.name)
def test_every_method_comes_back_as_it_was_written(spec: MethodSpec):
    values = {field.attribute: SAMPLES[field.domain] for field in spec.fields}
    method = METHODS[spec.name](**values)
    assert spec.decode(spec.encode(method)) == method


def test_the_methods_with_content_are_those_of_the_document():
    assert {spec.name for spec in HERE if spec.has_content} == CONTENTS


def test_a_content_may_have_a_reply():
    content = AMQP_0_8.named("test.content")
    assert content.has_content
    assert content.responses == ("test.content-ok",)


@pytest.mark.parametrize("name", ["file.open", "file.open-ok", "file.stage"])
def test_both_sides_stage_files(name: str):
    spec = AMQP_0_8.named(name)
    assert spec.from_client
    assert spec.from_server


@pytest.mark.parametrize(
    ("method", "octets"),
    [
        (FileOpen("id", 5), "0046 0028 026964 0000000000000005"),
        (FilePublish("e", "k", True, False, "id", ticket=9), "0046 003c 0009 0165 016b 01 026964"),
        (FileConsume("q", "t", no_ack=True, ticket=1), "0046 0014 0001 0171 0174 02"),
        (StreamConsume("q", "t", exclusive=True), "0050 0014 0000 0171 0174 02"),
        (TestInteger(1, 2, 3, 4, 1), "0078 000a 01 0002 00000003 0000000000000004 01"),
    ],
)
def test_a_method_is_encoded_as_the_layout_says(method: Any, octets: str):
    assert AMQP_0_8.encode(method) == bytes.fromhex(octets)
    assert AMQP_0_8.decode(bytes.fromhex(octets)) == method


def test_later_versions_have_a_filter_at_the_end_of_consume():
    plain = AMQP_0_8.encode(StreamConsume("q", "t"))
    assert AMQP_0_9.encode(StreamConsume("q", "t")) == plain + b"\0\0\0\0"
    with pytest.raises(ProtocolError, match="field 'filter'"):
        AMQP_0_9.decode(plain)
