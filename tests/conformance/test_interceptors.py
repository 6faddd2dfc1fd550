"""Interceptors write the time and the broker's name into what comes in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from harebell.wire.v1 import composites as c
from harebell.wire.v1.sections import Sections, data_section, split
from harebell.wire.v1.values import Timestamp
from tests.conformance.raw import Peer
from tests.conformance.sites import MemorySite
from tests.conformance.v1.raw import Peer1

NOW_MS = 1_700_000_000_123
NOW = datetime.fromtimestamp(NOW_MS // 1000, UTC)
EARLIER = datetime.fromtimestamp(1_600_000_000, UTC)
NODE = "harebell@localhost"


def _through(properties: BasicProperties, **settings: Any) -> BasicProperties:
    """What a consumer gets of a message with these properties."""
    site = MemorySite(**settings)
    site.broker.clock.ms = NOW_MS
    peer = Peer(site, site.connect()).open()
    peer.queue("q")
    peer.publish("", "q", b"body", properties)
    found = peer.get("q")
    assert found.body == b"body"
    peer.done()
    return found.properties


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_message_gets_the_time_in_both_places(overwrite: bool) -> None:
    sent = BasicProperties(content_type="a/b", headers={"k": 1}, priority=2, app_id="app")
    assert _through(sent, stamp_time=overwrite) == BasicProperties(
        content_type="a/b",
        headers={"k": 1, "timestamp_in_ms": NOW_MS},
        priority=2,
        timestamp=NOW,
        app_id="app",
    )


def test_a_message_without_properties_gets_them() -> None:
    found = _through(BasicProperties(), stamp_time=False, stamp_node=False)
    assert found == BasicProperties(
        headers={"timestamp_in_ms": NOW_MS, "x-routed-by": NODE}, timestamp=NOW
    )


@pytest.mark.parametrize("overwrite", [True, False])
def test_headers_of_the_publisher_are_replaced_only_where_that_is_allowed(overwrite: bool) -> None:
    sent = BasicProperties(
        headers={"timestamp_in_ms": 5, "x-routed-by": "me"}, timestamp=EARLIER, message_id="id"
    )
    found = _through(sent, stamp_time=overwrite, stamp_node=overwrite)
    if not overwrite:
        assert found == sent
    else:
        assert found == BasicProperties(
            headers={"timestamp_in_ms": NOW_MS, "x-routed-by": NODE}, timestamp=NOW, message_id="id"
        )


def test_without_interceptors_a_message_stays_as_it_is() -> None:
    sent = BasicProperties(headers={"k": 1})
    assert _through(sent) == sent


def test_an_intercepted_message_is_still_checked_and_routed_by_its_copies() -> None:
    site = MemorySite(stamp_time=True)
    peer = Peer(site, site.connect()).open()
    for queue in ("q", "copy"):
        peer.queue(queue)
    peer.publish("", "q", b"", BasicProperties(headers={"CC": ["copy"]}))
    assert (peer.count("q"), peer.count("copy")) == (1, 1)
    peer.publish("", "q", b"", BasicProperties(user_id="somebody"))
    peer.expect_channel_close(
        406,
        "PRECONDITION_FAILED - user_id property set to 'somebody' but authenticated user was "
        "'guest'",
        "basic.publish",
    )
    peer.done()


def _sent_by(site: MemorySite) -> Peer:
    """A peer of a broker that says when it sends what."""
    site.broker.clock.ms = NOW_MS
    return Peer(site, site.connect()).open()


def test_messages_have_the_time_of_their_sending_whether_pushed_or_got() -> None:
    peer = _sent_by(MemorySite(stamp_sent=True))
    peer.queue("q")
    peer.publish("", "q", b"one", BasicProperties(headers={"k": 1}, app_id="app"))
    stamped = BasicProperties(headers={"k": 1, "x-opt-rabbitmq-sent-time": NOW_MS}, app_id="app")
    assert peer.get("q", no_ack=False).properties == stamped
    peer.send(m.BasicNack(1, False, True))
    peer.consume("q", consumer_tag="c")
    assert peer.expect_delivery(b"one", redelivered=True).properties == stamped
    peer.publish("", "q", b"two")
    found = peer.expect_delivery(b"two").properties
    assert found == BasicProperties(headers={"x-opt-rabbitmq-sent-time": NOW_MS})
    peer.done()


def test_each_delivery_of_a_message_has_the_time_of_its_own() -> None:
    site = MemorySite(stamp_sent=True)
    peer = _sent_by(site)
    peer.queue("q", durable=True, arguments={"x-queue-type": "quorum"})
    peer.publish("", "q", b"body")
    for again in range(3):
        site.broker.clock.ms = NOW_MS + again
        found = peer.get("q", no_ack=False)
        counted = {"x-delivery-count": again, "x-acquired-count": again} if again else {}
        assert found.properties.headers == {"x-opt-rabbitmq-sent-time": NOW_MS + again, **counted}
        peer.send(m.BasicNack(found.method.delivery_tag, False, True))
    peer.done()


def test_deliveries_of_a_stream_have_their_time_beside_the_offset() -> None:
    peer = _sent_by(MemorySite(stamp_sent=True))
    peer.queue("s", durable=True, arguments={"x-queue-type": "stream"})
    peer.publish("", "s", b"body")
    peer.ask(m.BasicQos(prefetch_count=10))
    peer.consume("s", arguments={"x-stream-offset": "first"})
    assert peer.expect_delivery(b"body").properties.headers == {
        "x-stream-offset": 0,
        "x-opt-rabbitmq-sent-time": NOW_MS,
    }
    peer.done()


def test_a_client_of_1_0_has_the_time_as_an_annotation() -> None:
    site = MemorySite(stamp_sent=True)
    peer = _sent_by(site)
    peer.queue("q")
    peer.publish("", "q", b"one", BasicProperties(headers={"k": 1}, expiration="60000"))
    raw = Peer1(site, site.connect()).open().begin()
    raw.attach_receiver("/queues/q", 1, credit=1)
    found = Sections(split(raw.expect_transfer().payload)[0])
    sent = found.message_annotations()["x-opt-rabbitmq-sent-time"]
    assert (sent, type(sent)) == (NOW_MS, Timestamp)
    assert found.application_properties() == {"k": 1}
    assert found.header().ttl == 60_000
    raw.done()
    peer.done()


def test_the_time_of_a_message_of_1_0_leaves_its_own_sections_alone() -> None:
    site = MemorySite(stamp_sent=True)
    peer = _sent_by(site)
    peer.queue("q")
    raw = Peer1(site, site.connect()).open().begin()
    raw.attach_sender("/queues/q", 0)
    raw.transfer(0, b"one", sections=c.Properties(subject="s").encoded())
    raw.expect(c.Disposition)
    got = peer.get("q", no_ack=False)
    assert got.properties.headers["x-opt-rabbitmq-sent-time"] == NOW_MS
    peer.send(m.BasicNack(1, False, True))
    raw.attach_receiver("/queues/q", 1, credit=1)
    payload = raw.expect_transfer().payload
    assert payload.endswith(c.Properties(subject="s").encoded() + data_section(b"one"))
    annotations = Sections(split(payload)[0]).message_annotations()
    assert annotations["x-opt-rabbitmq-sent-time"] == NOW_MS
    raw.done()
    peer.done()
