"""Publishers whose repeats are dropped: each number is taken once, with its message."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from harebell.wire.v09.reply_codes import NAMES
from tests.unit.front.amqp_0_9_1.world import OctetPeer, World, publish


def declared(world: World, name: str = "p") -> tuple[OctetPeer, int]:
    """A peer whose channel publishes with confirms for a publisher, and the next number."""
    peer = world.peer()
    peer.send(m.QueueDeclare("q"), m.ConfirmSelect())
    peer.methods()
    answer = peer.ask(m.PublisherDeclare(name))
    assert isinstance(answer, m.PublisherDeclareOk)
    return peer, answer.next


def numbered(number: Any, body: bytes = b"", key: str = "q", **options: Any) -> bytes:
    headers = {} if number is None else {"x-publishing-id": number}
    return publish(
        body or b"%d" % number, key, properties=BasicProperties(headers=headers), **options
    )


def bodies(world: World, name: str = "q") -> list[bytes]:
    queue = world.broker.vhosts["/"].queues[name]
    found = []
    while (got := queue.get()) is not None:
        found.append(got[0].body)
    return found


def refused(answer: m.Method, code: int, text: str) -> None:
    assert isinstance(answer, m.ChannelClose), answer
    assert (answer.reply_code, answer.reply_text) == (code, f"{NAMES[code]} - {text}")


def test_a_repeat_is_confirmed_and_dropped() -> None:
    world = World()
    peer, first = declared(world)
    assert first == 0
    peer.give(numbered(0) + numbered(1) + numbered(0) + numbered(1) + numbered(2))
    assert sum(1 for each in peer.methods() if isinstance(each, m.BasicAck)) >= 1
    assert peer.connection.channels[1].confirms.sent == 5
    assert bodies(world) == [b"0", b"1", b"2"]


def test_the_next_connection_is_told_where_to_go_on() -> None:
    world = World()
    peer, _ = declared(world)
    peer.give(numbered(7) + numbered(3) + numbered(9))
    peer.connection.release()
    _, first = declared(world)
    assert first == 10
    assert bodies(world) == [b"7", b"9"]


def test_channels_without_a_publisher_are_not_looked_at() -> None:
    world = World()
    peer, _ = declared(world)
    peer.give(numbered(0))
    other = world.peer()
    other.give(numbered(0, b"other"))
    assert bodies(world) == [b"0", b"other"]


def test_publishers_do_not_know_each_other() -> None:
    world = World()
    peer, _ = declared(world)
    other, first = declared(world, "other")
    peer.give(numbered(0))
    other.give(numbered(0))
    assert (first, bodies(world)) == (0, [b"0", b"0"])


@pytest.mark.parametrize("number", [None, -1, "1", 1.5])
def test_a_message_without_a_good_number_is_refused(number: Any) -> None:
    world = World()
    peer, _ = declared(world)
    peer.give(numbered(number, b"body"))
    text = "a message of publisher 'p' has no header x-publishing-id with an integer from 0 on"
    refused(peer.methods()[-1], 406, text)
    assert bodies(world) == []


def test_a_number_whose_message_was_refused_may_come_again() -> None:
    world = World()
    peer, _ = declared(world)
    limits = {"x-max-length": 1, "x-overflow": "reject-publish"}
    peer.ask(m.QueueDeclare("small", arguments=limits))
    peer.give(numbered(0, key="small") + numbered(1, key="small") + numbered(2))
    answers = peer.methods()
    assert m.BasicNack(2) in answers
    assert bodies(world, "small") == [b"0"]
    peer.give(numbered(1) + numbered(1) + numbered(2))
    assert bodies(world) == [b"2", b"1"]


def test_a_number_whose_publish_failed_may_come_again() -> None:
    world = World()
    peer, _ = declared(world)
    peer.give(numbered(0, exchange="missing"))
    assert isinstance(peer.methods()[-1], m.ChannelClose)
    peer, first = declared(world)
    assert first == 0
    peer.give(numbered(0))
    assert bodies(world) == [b"0"]


def test_a_repeat_is_confirmed_when_the_disk_has_what_it_repeats() -> None:
    world = World(slow=True)
    peer = world.peer()
    peer.send(m.QueueDeclare("q", durable=True), m.ConfirmSelect(), m.PublisherDeclare("p"))
    world.commit()
    peer.methods()
    peer.give(numbered(0) + numbered(0))
    world.turn()
    late = [answer for answer in peer.methods() if isinstance(answer, m.BasicAck)]
    assert m.BasicAck(2) not in late
    assert m.BasicAck(2, multiple=True) not in late
    world.commit()
    assert peer.methods()[-1].delivery_tag == 2  # type: ignore[attr-defined]


def test_transactions_and_publishers_exclude_each_other() -> None:
    world = World()
    peer = world.peer()
    peer.ask(m.PublisherDeclare("p"))
    refused(peer.ask(m.TxSelect()), 406, "a channel with a publisher cannot have transactions")
    peer = world.peer()
    peer.ask(m.TxSelect())
    text = "a channel with transactions cannot have a publisher"
    refused(peer.ask(m.PublisherDeclare("p")), 406, text)


def test_a_publisher_has_a_name() -> None:
    text = "publisher.declare: the publisher has no name"
    refused(World().peer().ask(m.PublisherDeclare("")), 406, text)


def test_a_publisher_in_use_cannot_be_forgotten() -> None:
    world = World()
    peer, _ = declared(world)
    peer.give(numbered(4))
    other = world.peer()
    refused(other.ask(m.PublisherForget("p")), 405, "publisher 'p' is in use on 1 channels")
    peer.send(m.ChannelClose())
    other.send(m.ChannelCloseOk(), m.ChannelOpen())
    other.methods()
    other.ask(m.StageOpen("p", "run"))
    assert other.ask(m.PublisherForget("p")) == m.PublisherForgetOk()
    assert len(world.broker.publishers) == 0
    assert declared(world)[1] == 0


def test_a_channel_goes_on_for_another_publisher() -> None:
    world = World()
    peer, _ = declared(world)
    peer.give(numbered(4))
    peer.methods()
    assert peer.ask(m.PublisherDeclare("other")).next == 0
    assert peer.ask(m.PublisherDeclare("p")).next == 5
