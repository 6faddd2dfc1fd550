"""Selectors as filters of a source of AMQP 1.0."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v09.content import BasicProperties
from harebell.wire.v1 import composites as c
from harebell.wire.v1.sections import encode_sections
from harebell.wire.v1.values import Described, Symbol, ULong
from tests.conformance.raw import Peer
from tests.conformance.v1.raw import Peer1
from tests.conformance.v1.test_consuming import expect_bodies

RED = "color = 'red' AND weight >= 2"
NAMES: list[Any] = [
    Symbol("apache.org:selector-filter:string"),
    ULong(0x468C_0000_0004),
    Symbol("amqp:sql-filter"),
    ULong(0x120),
]


@pytest.mark.parametrize("descriptor", NAMES, ids=str)
def test_a_source_has_a_selector(peer: Peer, queue: str, peer1: Peer1, descriptor: Any) -> None:
    for number, color in enumerate(("blue", "red", "blue", "red")):
        headers = {"color": color, "weight": 2}
        peer.publish("", queue, b"%d" % number, BasicProperties(headers=headers))
    assert peer.count(queue) == 4
    given = {Symbol("selector"): Described(descriptor, RED)}
    source = c.Source(f"/queues/{queue}", filter=given)
    answer = peer1.attach_receiver("", 1, source=source, credit=10)
    assert answer.source.filter == given
    expect_bodies(peer1, b"1", b"3")
    peer1.quiet()


def test_a_drain_ends_when_everything_was_looked_at(peer: Peer, queue: str, peer1: Peer1) -> None:
    for number in range(3):
        peer.publish("", queue, b"%d" % number, BasicProperties(headers={"n": number}))
    assert peer.count(queue) == 3
    given = {Symbol("selector"): Described(NAMES[0], "n = 2")}
    source = c.Source(f"/queues/{queue}", filter=given)
    peer1.attach_receiver("", 1, source=source)
    peer1.give(1, 5, drain=True)
    expect_bodies(peer1, b"2")
    peer1.expect(c.Flow, handle=1, drain=True, delivery_count=5)


def test_a_selector_sees_what_a_message_of_1_0_has(queue: str, peer1: Peer1) -> None:
    peer1.attach_sender(f"/queues/{queue}", 0)
    for number in range(3):
        sections = encode_sections(
            header=c.Header(priority=7),
            properties=c.Properties(subject=f"s{number}"),
            application_properties={"n": number, "odd": number % 2 == 1},
        )
        peer1.transfer(0, b"%d" % number, sections=sections)
        peer1.expect(c.Disposition)
    text = "odd AND p.subject = 's1' AND h.priority = 7 AND n < 2"
    given = {Symbol("selector"): Described(NAMES[0], text)}
    peer1.attach_receiver("", 1, source=c.Source(f"/queues/{queue}", filter=given), credit=10)
    expect_bodies(peer1, b"1")
    peer1.quiet()


def test_a_wrong_selector_is_refused_with_its_place(queue: str, peer1: Peer1) -> None:
    given = {Symbol("selector"): Described(NAMES[0], "color = ")}
    asked = c.Attach("bad", 1, True, source=c.Source(f"/queues/{queue}", filter=given))
    peer1.expect_refused(asked, "amqp:invalid-field", "character 9")


@pytest.mark.rule("1.0#149")
def test_a_null_filter_lets_everything_through(queue: str, peer1: Peer1) -> None:
    peer1.attach_sender(f"/queues/{queue}", 0)
    peer1.transfer(0, b"x", settled=True)
    source = c.Source(f"/queues/{queue}", filter=None)
    assert peer1.attach_receiver(None, 1, source=source, credit=1).source.filter is None
    expect_bodies(peer1, b"x")


@pytest.mark.rule("1.0#148")
def test_a_filter_gives_the_same_answer_until_the_annotations_change(
    queue: str, peer1: Peer1
) -> None:
    peer1.attach_sender(f"/queues/{queue}", 0)
    for colour in ("red", "blue"):
        own = encode_sections(None, None, None, {"colour": colour})
        peer1.transfer(0, colour.encode(), sections=own, settled=True)
    name = Symbol("apache.org:selector-filter:string")
    wanted = {name: Described(name, "colour = 'blue'")}
    source = c.Source(f"/queues/{queue}", filter=wanted)
    peer1.attach_receiver(None, 1, source=source, credit=99)
    expect_bodies(peer1, b"blue")
    for number in range(3):
        peer1.send(c.Disposition(True, number, None, True, c.Released()))
        expect_bodies(peer1, b"blue")
    # A change of the message by its consumer is one that the filter sees.
    state = c.Modified(message_annotations={Symbol("x-colour"): "blue"})
    peer1.send(c.Disposition(True, 3, None, True, state))
    expect_bodies(peer1, b"blue")
    peer1.quiet()
