"""Messages between 1.0 and the other versions, and what the broker does to those of 1.0."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.model.settings.metadata import Metadata
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from harebell.wire.v1 import composites as c
from harebell.wire.v1 import values as v
from harebell.wire.v1.sections import (
    Sections,
    data_section,
    encode_sections,
    split,
    value_section,
)
from tests.conformance.conftest import Connect
from tests.conformance.raw import Peer
from tests.conformance.sites import MemorySite
from tests.conformance.v1.conftest import Connect1
from tests.conformance.v1.raw import Peer1

BARE = encode_sections(
    properties=c.Properties(message_id=v.ULong(5), subject="s", correlation_id="c"),
    application_properties={"a": 1, "b": v.UInt(2)},
)
"""Properties and application properties."""


@pytest.fixture
def old(connect_memory: Connect) -> Peer:
    """A peer of 0-9-1 with two queues."""
    peer = connect_memory().open()
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    peer.ask(m.QueueDeclare("q", arguments=letters))
    peer.queue("dead")
    return peer


@pytest.fixture
def new(memory1: Connect1) -> Peer1:
    """A peer of 1.0 with a session."""
    return memory1().open().begin()


def publish(
    peer: Peer1, body: bytes, address: str = "/queues/q", handle: int = 0, **sections: Any
) -> None:
    """Publish a message with that encoded body, and the sections of `BARE`."""
    peer.attach_sender(address, handle)
    before = encode_sections(**sections) if sections else b""
    number = peer.transfer_payload(handle, before + BARE + body)
    peer.expect(c.Disposition, first=number, settled=True, state=c.Accepted())


def take(peer: Peer1, queue: str, handle: int = 1) -> tuple[Sections, bytes, bytes]:
    """Take a message: its sections, its body as the broker keeps bodies, and its octets."""
    peer.attach_receiver(f"/queues/{queue}", handle, credit=1)
    found = peer.expect_transfer(handle=handle)
    state = c.Accepted()
    peer.send(c.Disposition(True, found.value.delivery_id, settled=True, state=state))
    raw, body, _ = split(found.payload)
    return Sections(raw), body, found.payload


def test_the_sections_of_1_0_become_properties_of_0_9_1(new: Peer1, old: Peer) -> None:
    header = c.Header(durable=True, priority=3, ttl=60_000)
    publish(new, data_section(b"body"), header=header, message_annotations={"x-c": "d"})
    found = old.get("q")
    assert found.body == b"body"
    properties = found.properties
    assert properties.headers is not None
    assert properties.headers.pop("x-amqp-sections")
    assert properties == BasicProperties(
        headers={"x-c": "d", "a": 1, "b": 2, "x-amqp-subject": "s"},
        delivery_mode=2,
        priority=3,
        correlation_id="c",
        expiration="60000",
        message_id="5",
    )


def test_a_message_that_0_9_1_passes_on_is_what_it_was(new: Peer1, old: Peer) -> None:
    publish(new, value_section({"a": [v.Symbol("b")]}), message_annotations={"x-c": v.UInt(7)})
    found = old.get("q")
    assert found.properties.type == "amqp-1.0"
    old.publish("", "q", found.body, found.properties)
    sections, body, _ = take(new, "q")
    assert body == value_section({"a": [v.Symbol("b")]})
    fields = sections.properties()
    assert (type(fields.message_id), fields.message_id) == (v.ULong, 5)
    assert fields == Sections(BARE).properties()
    assert sections.application_properties() == {"a": 1, "b": 2}
    assert sections.message_annotations()["x-c"] == 7


def test_the_properties_of_0_9_1_become_sections_of_1_0(new: Peer1, old: Peer) -> None:
    properties = BasicProperties(
        content_type="text/plain", headers={"a": 1, "x-b": "c"}, reply_to="r/s", type="t"
    )
    old.publish("", "q", b"body", properties)
    sections, body, _ = take(new, "q")
    assert body == b"body"
    assert sections.properties() == c.Properties(
        reply_to="/queues/r%2Fs", content_type="text/plain"
    )
    assert sections.application_properties() == {"a": 1}
    annotations = sections.message_annotations()
    assert (annotations["x-b"], annotations["x-basic-type"]) == ("c", "t")


@pytest.mark.parametrize("body", [data_section(b"body"), data_section(b"a") * 2, value_section(1)])
def test_a_dead_letter_keeps_its_bare_message(new: Peer1, old: Peer, body: bytes) -> None:
    header = c.Header(durable=True, ttl=60_000)
    annotations = {"x-cc": ["never"], "x-mine": v.UInt(5)}
    publish(new, body, header=header, message_annotations=annotations)
    found = old.get("q", no_ack=False)
    old.send(m.BasicReject(found.method.delivery_tag, requeue=False))  # type: ignore[attr-defined]
    sections, _, payload = take(new, "dead")
    assert payload.endswith(BARE + body)
    assert sections.header().durable
    assert sections.header().ttl is None
    annotations = sections.message_annotations()
    (death,) = annotations["x-opt-deaths"]
    assert (death["queue"], death["reason"], death["count"]) == ("q", "rejected", 1)
    assert (death["exchange"], list(death["routing-keys"]), death["ttl"]) == (
        "",
        ["q", "never"],
        60_000,
    )
    assert death["first-time"] == death["last-time"]
    assert annotations["x-first-death-queue"] == "q"
    assert annotations["x-mine"] == 5
    assert "x-cc" not in annotations


def test_the_history_of_a_dead_letter_goes_on_in_any_version(new: Peer1, old: Peer) -> None:
    publish(new, data_section(b"body"))
    for _ in range(2):
        found = old.get("q", no_ack=False)
        old.send(m.BasicReject(found.method.delivery_tag, requeue=False))  # type: ignore[attr-defined]
        letter = old.get("dead")
        old.publish("", "q", letter.body, letter.properties)
    (event,) = (letter.properties.headers or {})["x-death"]
    assert (event["count"], event["reason"], event["queue"]) == (2, "rejected", "q")
    sections, _, _ = take(new, "q")
    (death,) = sections.message_annotations()["x-opt-deaths"]
    assert (death["count"], type(death["reason"])) == (2, v.Symbol)


def test_an_expired_message_of_1_0_is_a_dead_letter(
    memory: MemorySite, new: Peer1, old: Peer
) -> None:
    publish(new, data_section(b"body"), header=c.Header(ttl=50))
    memory.pass_time(0.2, step=0.01)
    (event,) = (old.get("dead").properties.headers or {})["x-death"]
    assert (event["reason"], event["original-expiration"]) == ("expired", "50")


def test_an_annotation_delays_a_message(memory: MemorySite, new: Peer1, old: Peer) -> None:
    arguments = {"x-delayed-type": "fanout"}
    old.ask(m.ExchangeDeclare("later", "x-delayed-message", arguments=arguments))
    old.ask(m.QueueBind("q", "later", ""))
    publish(new, value_section(1), "/exchanges/later", message_annotations={"x-delay": 50})
    assert old.count("q") == 0
    memory.pass_time(0.2, step=0.01)
    sections, _, payload = take(new, "q")
    assert payload.endswith(BARE + value_section(1))
    assert sections.message_annotations()["x-delay"] == -50


def test_headers_exchanges_match_application_properties_and_annotations(
    new: Peer1, old: Peer
) -> None:
    for name, value in (("a", 1), ("x-b", "c"), ("b", 3), ("x-c", "c")):
        old.queue(f"by {name}")
        arguments = {"x-match": "all-with-x", name: value}
        old.ask(m.QueueBind(f"by {name}", "amq.headers", "", arguments=arguments))
    publish(new, data_section(b"body"), "/exchanges/amq.headers", message_annotations={"x-b": "c"})
    assert [old.count(f"by {name}") for name in ("a", "x-b", "b", "x-c")] == [1, 1, 0, 0]


def test_interceptors_leave_the_bare_message_alone() -> None:
    site = MemorySite(stamp_time=True, stamp_node=True, stamp_sent=True)
    site.broker.clock.ms = 1_700_000_000_123
    old = Peer(site, site.connect()).open()
    old.queue("q")
    new = Peer1(site, site.connect()).open().begin()
    publish(new, data_section(b"body"))
    sections, _, payload = take(new, "q")
    assert payload.endswith(BARE + data_section(b"body"))
    annotations = sections.message_annotations()
    received = annotations["x-opt-rabbitmq-received-time"]
    assert (type(received), received) == (v.Timestamp, 1_700_000_000_123)
    assert annotations["x-routed-by"] == "harebell@localhost"
    new.done()
    old.done()


def test_the_firehose_shows_a_message_of_1_0_as_basic(
    memory: MemorySite, new: Peer1, old: Peer
) -> None:
    old.queue("watched")
    old.ask(m.QueueBind("watched", "amq.rabbitmq.trace", "#"))
    memory.broker.vhosts["/"].set_metadata(Metadata(tracing=True))
    publish(new, data_section(b"a") + data_section(b"b"), message_annotations={"x-cc": ["k"]})
    shown = old.get("watched")
    headers = shown.properties.headers or {}
    assert (shown.body, headers["routing_keys"]) == (b"ab", ["q", "k"])
    assert headers["properties"]["correlation_id"] == "c"
    assert headers["properties"]["headers"]["a"] == 1
