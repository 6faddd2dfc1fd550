"""Queues of last values, numbers and initial values, with messages of AMQP 1.0."""

from __future__ import annotations

from typing import Any

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from harebell.wire.v1 import composites as c
from harebell.wire.v1.sections import encode_sections
from tests.conformance.raw import Peer
from tests.conformance.v1.raw import Peer1


def declared(peer: Peer, name: str, arguments: dict[str, Any]) -> None:
    peer.send(m.QueueDeclare(queue=name, durable=True, arguments=arguments))
    peer.expect(m.QueueDeclareOk)


def send(peer1: Peer1, *texts: str, handle: int = 0) -> None:
    """Transfer texts whose first letter is the value of the application property `symbol`."""
    for text in texts:
        sections = encode_sections(application_properties={"symbol": text[0]})
        peer1.transfer(handle, text.encode(), sections=sections)
        peer1.expect(c.Disposition, state=c.Accepted())


def test_an_application_property_is_the_key(peer: Peer, peer1: Peer1, name: str) -> None:
    declared(peer, name, {"x-last-value-key": "symbol"})
    peer1.attach_sender(f"/queues/{name}")
    send(peer1, "a1", "b1", "a2")
    peer.publish("", name, b"b2", BasicProperties(headers={"symbol": "b"}))
    assert peer.count(name) == 2
    send(peer1, "c1")
    assert [peer.get(name).body for _ in range(3)] == [b"a2", b"b2", b"c1"]


def test_a_number_is_an_application_property(peer: Peer, peer1: Peer1, name: str) -> None:
    declared(peer, name, {"qpid.queue_msg_sequence": "number"})
    peer1.attach_sender(f"/queues/{name}")
    send(peer1, "a1", "b1")
    for number in (1, 2):
        headers = peer.get(name).properties.headers
        assert headers is not None
        assert headers["number"] == number
        assert headers["symbol"] == "ab"[number - 1]


def test_an_exchange_numbers_messages_and_greets_a_new_binding(
    peer: Peer, peer1: Peer1, name: str
) -> None:
    arguments = {"qpid.msg_sequence": True, "qpid.ive": True}
    peer.ask(m.ExchangeDeclare(exchange=name, type="topic", arguments=arguments))
    declared(peer, name, {})
    peer1.attach_sender(f"/exchanges/{name}/a.b")
    for text in ("a1", "b2"):
        sections = encode_sections(application_properties={"symbol": text[0]})
        peer1.transfer(0, text.encode(), sections=sections)
        peer1.expect(c.Disposition)
    peer.ask(m.QueueBind(queue=name, exchange=name, routing_key="a.*"))
    assert peer.count(name) == 1
    got = peer.get(name)
    headers = got.properties.headers
    assert headers is not None
    assert (got.body, headers["qpid.msg_sequence"], headers["symbol"]) == (b"b2", 2, "b")
