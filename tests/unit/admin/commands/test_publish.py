"""A publish over HTTP with a payload of many MB shares the event loop with everything else."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import msgspec
import pytest

from harebell.admin.catalog import find
from harebell.admin.context import CommandRefused
from harebell.admin.limits import HTTP_CHUNK_BYTES
from harebell.admin.long_text import LongText
from harebell.base.slices import Slices, at_once
from harebell.management.http.fields import fields_of
from tests.unit.admin.commands.site import Site

PATH = {"vhost": "/", "name": ""}
WIDE = "".join(map(chr, range(256, 1000))) + '\N{HAPPY PERSON RAISING ONE HAND}\n\\"'


def counted(slices: Slices[Any]) -> tuple[Any, int]:
    """Do work in slices; its result, and how many slices it took."""
    count = 0
    while True:
        count += 1
        try:
            next(slices)
        except StopIteration as end:
            return end.value, count


def taken(site: Site) -> bytes:
    """Take the message of the queue; its body."""
    found = site.world.broker.vhosts["/"].queues["q"].get()
    assert found is not None
    return bytes(found[0].body)


def publish(site: Site, **given: Any) -> tuple[Any, int]:
    """Publish as the HTTP API does; the answer, and how many slices it took."""
    command = find("exchanges.publish")
    assert command is not None
    body = msgspec.json.encode({"routing_key": "q", "properties": {}, **given})
    arguments, decoding = counted(fields_of(command, PATH, {}, body, None))
    answer, publishing = counted(command.run(site.context, **arguments))
    return answer, min(decoding, publishing)


@pytest.mark.parametrize(
    "body", [bytes(range(256)) * 8_001, (WIDE * 1_500).encode()], ids=["octets", "text"]
)
@pytest.mark.parametrize("encoding", ["base64", "string"])
def test_a_payload_of_many_mb_is_decoded_in_slices_and_published_whole(
    body: bytes, encoding: str
) -> None:
    site = Site()
    site.run("queues.declare", name="q", vhost="/")
    text = b64encode(body).decode() if encoding == "base64" else body.decode("latin-1")
    expected = body if encoding == "base64" else text.encode()
    answer, slices = publish(site, payload=text, payload_encoding=encoding)
    assert answer == {"routed": True}
    assert slices >= len(text.encode()) // HTTP_CHUNK_BYTES
    assert taken(site) == expected


@pytest.mark.parametrize("text", ["YQ==", "YQ=", "YQ", "", "YQ==YQ==", "YWJj\n", "Y\xe9==", "=YQ="])
@pytest.mark.parametrize("before", [0, 1, 4, 6])
def test_pieces_of_base64_are_decoded_or_refused_wherever_they_are_cut(
    text: str, before: int
) -> None:
    text = "A" * before + text
    try:
        expected = b64decode(text, validate=True)
        if b64encode(expected).decode() != text:
            expected = None  # Python 3.11 takes padding behind whole groups
    except ValueError:
        expected = None
    command = find("exchanges.publish")
    assert command is not None
    for size in range(1, len(text) + 2):
        site = Site()
        site.run("queues.declare", name="q", vhost="/")
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        given = {**PATH, "routing_key": "q", "payload_encoding": "base64"}
        arguments = command.arguments_of({**given, "payload": LongText(pieces)})
        if expected is None:
            with pytest.raises(CommandRefused, match="the payload is not base64"):
                at_once(command.run(site.context, **arguments))
        else:
            at_once(command.run(site.context, **arguments))
            assert taken(site) == expected
