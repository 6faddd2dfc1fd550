"""Execution: command ids in both directions, and what is complete (class 140)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09 import methods_transitional as s
from tests.conformance.v010t.peer import Peer

Connect = Callable[[], Peer]


def test_a_command_without_a_reply_is_complete_when_it_was_done(peer: Peer, name: str):
    assert peer.run(m.ExchangeDeclare(name, "direct")) == 1
    assert peer.run(m.ExchangeDelete(name)) == 2


def test_a_command_with_a_reply_is_counted_too(peer: Peer, name: str):
    peer.queue(name)
    assert peer.sent() == 1
    assert peer.received() == 1
    assert peer.settle().cumulative_execution_mark == 1


def test_flush_without_any_command_answers_the_mark_zero(peer: Peer):
    peer.send(s.ExecutionFlush())
    peer.expect(s.ExecutionComplete, cumulative_execution_mark=0, ranged_execution_set=())


def test_contents_do_not_count_but_their_methods_do(peer: Peer, name: str):
    peer.queue(name)
    peer.publish("", name, b"x" * 300_000)
    assert peer.settle().cumulative_execution_mark == 2


@pytest.mark.rule("0-10t#273")
@pytest.mark.parametrize("ranges", [((1, 1),), ((1, 2),), ((0, 3),), ((3, 2),)])
def test_a_set_that_is_none_above_its_mark_ends_the_connection(
    peer: Peer, name: str, ranges: tuple[tuple[int, int], ...]
):
    for _ in range(3):
        peer.queue(name)
    peer.complete(0, *ranges)
    peer.expect_connection_close(502, "execution.complete", "ranged-execution-set")


def test_a_command_that_was_not_sent_cannot_be_complete(peer: Peer):
    peer.complete(1)
    peer.expect_connection_close(502, "execution.complete", "command 1 was not sent")


def test_a_flush_behind_a_command_that_waits_for_the_disk_is_answered_when_it_is_done(
    connect: Connect, name: str
):
    peer = connect().open()
    peer.queue(name, durable=True)
    peer.send(m.ExchangeDeclare(name, "fanout", durable=True))
    for number in range(20):
        bound = peer.send(m.QueueBind(name, name, f"{number}"))
        peer.send(s.ExecutionFlush())
        peer.expect(s.ExecutionComplete, cumulative_execution_mark=bound)
    peer.run(m.ExchangeDelete(name))
