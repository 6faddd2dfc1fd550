"""Queues of last values: confirms, transactions, and what a consumer that goes leaves behind."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.conformance.conftest import Connect
from tests.conformance.raw import Peer

KINDS = pytest.mark.parametrize("kind", ["classic", "quorum"])


def declared(peer: Peer, kind: str = "classic", **more: Any) -> None:
    arguments = {"x-queue-type": kind, "x-last-value-key": "symbol", **more}
    peer.queue("v", durable=True, exclusive=False, arguments=arguments)


def send(peer: Peer, *texts: str) -> None:
    """Publish texts whose first letter is the key."""
    for text in texts:
        properties = BasicProperties(headers={"symbol": text[0]}, delivery_mode=2)
        peer.publish("", "v", text.encode(), properties)


def bodies(peer: Peer) -> list[bytes]:
    return [peer.get("v").body for _ in range(peer.count("v"))]


@KINDS
def test_a_newer_message_replaces_the_older_and_both_are_confirmed(peer: Peer, kind: str) -> None:
    declared(peer, kind)
    peer.ask(m.ConfirmSelect())
    send(peer, "a1", "b1", "a2")
    confirmed = 0
    while confirmed < 3:
        confirmed = peer.expect(m.BasicAck).delivery_tag
    assert bodies(peer) == [b"b1", b"a2"]


@KINDS
def test_a_transaction_replaces_when_it_is_committed(peer: Peer, kind: str) -> None:
    declared(peer, kind)
    send(peer, "a1")
    assert peer.count("v") == 1
    peer.ask(m.TxSelect())
    send(peer, "a2", "b1")
    peer.ask(m.TxRollback())
    send(peer, "a3", "c1", "a4")
    assert peer.count("v") == 1
    peer.ask(m.TxCommit())
    assert bodies(peer) == [b"c1", b"a4"]


@KINDS
def test_a_delivery_that_was_replaced_does_not_come_back(connect: Connect, kind: str) -> None:
    one, other = connect().open(), connect().open()
    declared(one, kind)
    send(one, "a1")
    assert one.get("v", no_ack=False).body == b"a1"
    send(other, "a2")
    assert other.count("v") == 1
    one.close()
    assert bodies(other) == [b"a2"]
