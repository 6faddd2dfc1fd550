"""The class tunnel: blocks of another protocol for a proxy (class 110)."""

from __future__ import annotations

from uuid import UUID

from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_10_transitional import AMQP_0_10_TRANSITIONAL as SPEC
from harebell.wire.v09.content import decode_properties
from harebell.wire.v09.methods_older import TunnelRequest
from harebell.wire.v09.property_list import TUNNEL, TunnelProperties
from harebell.wire.v09.typed_fields import FieldDialect, encode_typed
from tests.conformance.frames import body as body_frame
from tests.conformance.frames import content_header
from tests.conformance.v010t.peer import Peer

NUMBER = UUID("00112233-4455-6677-8899-aabbccddeeff")


def send_block(peer: Peer, queue: str, meta: bytes, body: bytes) -> None:
    """tunnel.request for a proxy."""
    raw = TUNNEL.encode(TunnelProperties({"a": 1}, queue, "x/y", 0, 0))
    peer.payload(SPEC.encode(TunnelRequest(meta)))  # type: ignore[arg-type]
    peer.send_bytes(content_header(len(body), raw, class_id=110), body_frame(body))


def test_a_block_reaches_the_proxy_that_it_names(peer: Peer, name: str):
    peer.queue(name)
    peer.consume(name, arguments={"x-amqp-tunnel": 1})
    send_block(peer, name, encode_typed({"port": 1}), b"block")
    found = peer.expect_content(TunnelRequest, of=110, meta_data={"port": 1})
    assert found.body == b"block"
    assert TUNNEL.decode(found.raw).proxy_name == name
    peer.settle()


def test_meta_data_of_the_document_s_own_types_become_text_where_they_must(peer: Peer, name: str):
    peer.queue(name)
    send_block(peer, name, encode_typed({"id": NUMBER}, FieldDialect.TYPED), b"block")
    found = peer.get(name, no_ack=True)
    assert found.body == b"block"
    assert b"x-amqp-meta-data" in found.raw
    assert str(NUMBER).encode() in found.raw


def test_a_block_for_a_proxy_that_is_not_there_closes_the_channel(peer: Peer, name: str):
    send_block(peer, name, encode_typed({}), b"block")
    peer.expect_channel_close(404, "tunnel.request", name)


def test_an_ordinary_consumer_gets_a_message(peer: Peer, name: str):
    peer.queue(name)
    send_block(peer, name, encode_typed({"port": 1}), b"block")
    found = peer.get(name, no_ack=True)
    assert isinstance(found.method, m.BasicGetOk)
    assert decode_properties(found.raw).type == "x/y"
