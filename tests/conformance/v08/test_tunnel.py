"""The tunnel class of 0-8: blocks find the proxy they are for, and none is lost in silence."""

from __future__ import annotations

from typing import Any

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import decode_properties
from harebell.wire.v09.methods_older import TunnelRequest
from harebell.wire.v09.property_list import TUNNEL, TunnelProperties
from tests.conformance.v08.contents import Connect08, Peer08

BLOCK = bytes(range(256)) * 800


def tunnel(peer: Peer08, body: bytes, meta: dict[str, Any] | None = None, **options: Any) -> None:
    peer.send_content(TunnelRequest(meta or {}), TUNNEL, TunnelProperties(**options), body)


def proxy(peer: Peer08, queue: str) -> None:
    peer.ask(m.BasicConsume(queue=queue, arguments={"x-amqp-tunnel": True}))


def test_a_block_reaches_the_proxy_it_names(peer08: Peer08, other08: Peer08):
    queue = other08.queue("the proxy")
    proxy(other08, queue)
    tunnel(peer08, BLOCK, {"port": 1}, headers={"a": 1}, proxy_name=queue, data_name="x/y",
           durable=1)  # fmt: skip
    found = other08.expect_whole(TunnelRequest, meta_data={"port": 1})
    assert found.body == BLOCK
    assert found.properties == TunnelProperties({"a": 1}, queue, "x/y", 1, 0)


def test_a_block_waits_for_its_proxy(peer08: Peer08):
    queue = peer08.queue("the proxy")
    tunnel(peer08, b"block", proxy_name=queue)
    assert peer08.count(queue) == 1
    proxy(peer08, queue)
    found = peer08.expect_whole(TunnelRequest, meta_data={})
    assert (found.body, found.properties.durable) == (b"block", 0)
    assert peer08.count(queue) == 0


def test_a_broadcast_reaches_every_proxy_that_listens(connect08: Connect08):
    peer = connect08().open()
    proxies = [connect08().open() for _ in range(2)]
    for number, each in enumerate(proxies):
        queue = each.queue(f"proxy {number}")
        each.ask(m.QueueBind(queue, "amq.fanout", ""))
        proxy(each, queue)
    tunnel(peer, b"to all", proxy_name="me", broadcast=1)
    for each in proxies:
        found = each.expect_whole(TunnelRequest)
        assert (found.body, found.properties.broadcast) == (b"to all", 1)
        assert found.properties.proxy_name == "me"


def test_an_ordinary_consumer_gets_the_block_as_a_message(peer08: Peer08):
    queue = peer08.queue("the proxy")
    tunnel(peer08, b"block", {"port": 1}, proxy_name=queue, data_name="x/y", durable=1)
    found = peer08.get(queue)
    properties = decode_properties(found.raw)
    assert (properties.type, properties.delivery_mode) == ("x/y", 2)
    headers = properties.headers or {}
    assert headers == {"x-amqp-meta-data": {"port": 1}, "x-amqp-proxy-name": queue}


def test_a_block_for_nobody_is_refused(peer08: Peer08):
    tunnel(peer08, b"block", proxy_name="nobody")
    peer08.refused(404, "no queue 'nobody' in vhost '/': no proxy of that name is there")


def test_a_block_that_names_no_proxy_is_refused(peer08: Peer08):
    tunnel(peer08, b"block")
    peer08.refused(404, "tunnel.request names no proxy, and is no broadcast")
