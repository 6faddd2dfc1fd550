"""The class tx: completion is its only answer (class 90)."""

from __future__ import annotations

import pytest

from harebell.wire.v09 import methods as m
from tests.conformance.v010t.peer import Peer


def count(peer: Peer, queue: str) -> int:
    """Messages that wait in a queue."""
    declared: m.QueueDeclareOk = peer.ask(m.QueueDeclare(queue, passive=True))
    return declared.message_count


@pytest.mark.parametrize("durable", [True, False])
def test_published_messages_are_there_after_the_commit(peer: Peer, name: str, durable: bool):
    peer.run(m.TxSelect())
    peer.queue(name, durable=durable)
    peer.publish("", name, b"one")
    peer.publish("", name, b"two")
    peer.settle()
    assert count(peer, name) == 0
    peer.run(m.TxCommit())
    assert count(peer, name) == 2


def test_a_rollback_forgets_published_messages(peer: Peer, name: str):
    peer.run(m.TxSelect())
    peer.queue(name)
    peer.publish("", name, b"one")
    peer.run(m.TxRollback())
    peer.run(m.TxCommit())
    assert count(peer, name) == 0


def test_an_acknowledged_message_is_outstanding_again_after_a_rollback(peer: Peer, name: str):
    peer.queue(name)
    peer.publish("", name, b"one")
    peer.run(m.TxSelect())
    tag = peer.get(name).method.delivery_tag
    peer.run(m.BasicAck(tag))
    peer.run(m.TxRollback())
    peer.run(m.BasicAck(tag))
    peer.run(m.TxCommit())
    peer.ask(m.ChannelClose())
    peer.ask(m.ChannelOpen())
    assert count(peer, name) == 0


@pytest.mark.parametrize("method", [m.TxCommit(), m.TxRollback()], ids=lambda each: each.NAME)
def test_commit_and_rollback_need_select(peer: Peer, method: m.Method):
    peer.send(method)
    peer.expect_channel_close(406, method.NAME, "not transactional")
