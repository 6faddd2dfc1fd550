"""Contents frame by frame."""

from __future__ import annotations

import pytest

from harebell.base.errors import ProtocolError
from harebell.client.protocol.v09.assembly import ContentAssembly
from harebell.wire.v09 import methods as m


def header(size: int, class_id: int = 60, properties: bytes = b"\0\0") -> bytes:
    return class_id.to_bytes(2) + b"\0\0" + size.to_bytes(8) + properties


def test_a_content_is_complete_when_the_announced_size_is_there() -> None:
    content = ContentAssembly(m.BasicDeliver())
    assert content.header(header(5)) is False
    assert content.body(b"he") is False
    assert content.body(b"") is False
    assert content.body(b"llo") is True
    properties, body = content.take()
    assert (properties.raw, body) == (b"\0\0", b"hello")


def test_an_empty_content_is_complete_with_its_header() -> None:
    content = ContentAssembly(m.BasicDeliver())
    assert content.header(header(0)) is True
    assert content.take()[1] == b""


def test_a_frame_out_of_place_is_refused() -> None:
    with pytest.raises(ProtocolError, match="before its header"):
        ContentAssembly(m.BasicDeliver()).body(b"x")
    content = ContentAssembly(m.BasicDeliver())
    content.header(header(1))
    with pytest.raises(ProtocolError, match="two headers"):
        content.header(header(1))
    with pytest.raises(ProtocolError, match="longer"):
        content.body(b"xx")


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b"", 505),
        (header(1)[:11], 505),
        (header(1, class_id=50), 505),
        (header(1 << 40), 501),
        (header(1, properties=b"\x80\x00\x05ab"), 505),
    ],
)
def test_a_header_that_is_none_is_refused(payload: bytes, code: int) -> None:
    with pytest.raises(ProtocolError) as caught:
        ContentAssembly(m.BasicDeliver()).header(payload)
    assert caught.value.code == code
