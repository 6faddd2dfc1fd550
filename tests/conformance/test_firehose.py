"""The firehose: what is published and delivered in a vhost is shown on amq.rabbitmq.trace."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from harebell.auth.permissions import everything
from harebell.model.settings.metadata import Metadata
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.conformance.conftest import Connect
from tests.conformance.raw import Content, Peer
from tests.conformance.sites import MemorySite

TRACE = "amq.rabbitmq.trace"


def _trace(site: MemorySite, on: bool = True) -> None:
    site.broker.vhosts["/"].set_metadata(Metadata(tracing=on))


@pytest.fixture
def watcher(memory: MemorySite, connect_memory: Connect) -> Peer:
    """Somebody who watches all of vhost / from another connection."""
    peer = connect_memory().open()
    peer.queue("watched")
    peer.ask(m.QueueBind("watched", TRACE, "#"))
    _trace(memory)
    return peer


def _shown(watcher: Peer) -> list[Content]:
    return [watcher.get("watched") for _ in range(watcher.count("watched"))]


def test_every_vhost_has_the_exchange_and_nobody_may_publish_to_it(peer: Peer) -> None:
    peer.ask(m.ExchangeDeclare(TRACE, "topic", durable=True, internal=True))
    peer.publish(TRACE, "publish.x", b"forged")
    peer.expect_channel_close(
        403,
        f"ACCESS_REFUSED - cannot publish to internal exchange '{TRACE}' in vhost '/'",
        "basic.publish",
    )


def test_a_publish_is_shown_with_where_it_came_from_and_went(
    watcher: Peer, memory_peer: Peer
) -> None:
    peer = memory_peer
    peer.queue("q1")
    peer.queue("q2")
    for queue in ("q1", "q2"):
        peer.ask(m.QueueBind(queue, "amq.fanout", ""))
    sent = BasicProperties(
        content_type="text/plain",
        headers={"a": 1, "b": [True]},
        delivery_mode=2,
        priority=4,
        timestamp=datetime.fromtimestamp(1_700_000_000, UTC),
        app_id="app",
    )
    peer.publish("amq.fanout", "the key", b"body", sent)
    (shown,) = _shown(watcher)
    assert (shown.method.exchange, shown.method.routing_key) == (TRACE, "publish.amq.fanout")
    assert shown.body == b"body"
    headers = dict(shown.properties.headers or {})
    assert sorted(headers.pop("routed_queues")) == ["q1", "q2"]
    assert " -> " in headers.pop("connection")
    assert headers == {
        "exchange_name": "amq.fanout",
        "routing_keys": ["the key"],
        "properties": {
            "content_type": "text/plain",
            "headers": {"a": 1, "b": [True]},
            "delivery_mode": 2,
            "priority": 4,
            "timestamp": 1_700_000_000,
            "app_id": "app",
        },
        "node": "harebell@localhost",
        "vhost": "/",
        "channel": 1,
        "user": "guest",
    }


def test_headers_are_shown_with_the_types_that_the_publisher_chose(
    watcher: Peer, memory_peer: Peer
) -> None:
    entries = bytes.fromhex(
        "01 61 62 05  01 62 42 f5  01 63 73 fffe  01 64 69 fffffffe  01 65 6c 0000000000000007"
        "01 66 66 3f800000  01 67 46 00000004 01 7a 62 05  01 68 41 00000003 73 fffe"
    )
    memory_peer.publish("", "q", b"x", b"\x20\0" + len(entries).to_bytes(4) + entries)
    (shown,) = _shown(watcher)
    assert b"\x07headersF" + len(entries).to_bytes(4) + entries in shown.raw


def test_the_default_exchange_is_shown_without_a_name(watcher: Peer, memory_peer: Peer) -> None:
    memory_peer.publish("", "nowhere", b"lost")
    (shown,) = _shown(watcher)
    assert shown.method.routing_key == "publish."
    assert (shown.properties.headers or {})["routed_queues"] == []


@pytest.mark.parametrize("no_ack", [True, False])
def test_a_delivery_is_shown_after_its_publish(
    watcher: Peer, memory_peer: Peer, no_ack: bool
) -> None:
    peer = memory_peer
    peer.queue("q")
    peer.consume("q", no_ack=no_ack)
    peer.publish("", "q", b"body")
    peer.expect_delivery(b"body")
    published, delivered = _shown(watcher)
    assert published.method.routing_key == "publish."
    assert delivered.method.routing_key == "deliver.q"
    headers = delivered.properties.headers or {}
    assert headers["redelivered"] == 0
    assert headers["routing_keys"] == ["q"]
    assert "routed_queues" not in headers


def test_a_get_is_shown_and_says_whether_it_is_the_first(watcher: Peer, memory_peer: Peer) -> None:
    peer = memory_peer
    peer.queue("q")
    peer.publish("", "q", b"body")
    tag = peer.get("q", no_ack=False).method.delivery_tag
    peer.send(m.BasicNack(tag, requeue=True))
    peer.get("q")
    shown = [content for content in _shown(watcher) if content.method.routing_key == "deliver.q"]
    assert [(content.properties.headers or {})["redelivered"] for content in shown] == [0, 1]


def test_all_routing_keys_are_shown_and_a_blind_copy_stays_blind(
    watcher: Peer, memory_peer: Peer
) -> None:
    headers = {"CC": ["second"], "BCC": ["third"]}
    memory_peer.queue("q")
    memory_peer.publish("", "q", b"", BasicProperties(headers=headers))
    (shown,) = _shown(watcher)
    found: dict[str, Any] = dict(shown.properties.headers or {})
    assert found["routing_keys"] == ["q", "second", "third"]
    assert found["properties"]["headers"] == {"CC": ["second"]}


def test_messages_of_the_firehose_are_not_shown_again(watcher: Peer, memory_peer: Peer) -> None:
    memory_peer.publish("", "nowhere", b"1")
    assert len(_shown(watcher)) == 1
    assert _shown(watcher) == []


def test_nothing_is_shown_when_tracing_is_off(
    watcher: Peer, memory_peer: Peer, memory: MemorySite
) -> None:
    _trace(memory, on=False)
    memory_peer.publish("", "nowhere", b"1")
    assert _shown(watcher) == []
    _trace(memory)
    memory_peer.publish("", "nowhere", b"2")
    assert [shown.body for shown in _shown(watcher)] == [b"2"]


def test_a_vhost_shows_its_own_messages_only(
    watcher: Peer, memory: MemorySite, connect_memory: Connect
) -> None:
    memory.broker.add_vhost("other")
    memory.users.get("guest").permissions["other"] = everything()
    connect_memory().open("other").publish("", "nowhere", b"elsewhere")
    assert _shown(watcher) == []


def test_a_message_whose_headers_are_too_deep_to_be_shown_is_shown_without_them(
    watcher: Peer, memory_peer: Peer
) -> None:
    deep: dict[str, Any] = {}
    for _ in range(30):
        deep = {"in": deep}
    properties = BasicProperties(headers=deep, app_id="deep")
    memory_peer.queue("q")
    memory_peer.publish("", "q", b"body", properties)
    (shown,) = _shown(watcher)
    assert (shown.properties.headers or {})["properties"] == {"app_id": "deep"}
    assert memory_peer.get("q").properties == properties


def test_in_a_transaction_a_publish_is_shown_when_it_is_made(
    watcher: Peer, memory_peer: Peer
) -> None:
    memory_peer.ask(m.TxSelect())
    memory_peer.publish("", "nowhere", b"1")
    assert len(_shown(watcher)) == 1
    memory_peer.ask(m.TxCommit())
    assert _shown(watcher) == []
