"""Consumers of the class message: who gets what, and how it is acknowledged."""

from __future__ import annotations

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.method import METHODS
from harebell.wire.v09.methods_transitional import (
    MessageCancel,
    MessageConsume,
    MessageEmpty,
    MessageGet,
    MessageRecover,
    MessageReject,
)
from tests.conformance.v010t.conftest import Connect
from tests.conformance.v010t.peer import Peer
from tests.conformance.v010t.transfers import (
    acknowledge,
    consume,
    expect_transfer,
    transfer,
    transferred,
)


def is_empty(peer: Peer, queue: str) -> None:
    """Nothing is left in a queue, nor out of it."""
    assert peer.ask(m.QueueDeclare(queue=queue, passive=True)).message_count == 0


def test_a_consumer_gets_what_is_there_and_what_comes(peer: Peer, name: str) -> None:
    peer.queue(name)
    transfer(peer, name, b"one")
    consume(peer, name)
    first = expect_transfer(peer, b"one", destination="d", redelivered=False)
    transfer(peer, name, b"two")
    second = expect_transfer(peer, b"two", destination="d", redelivered=False)
    assert (first.number, second.number) == (peer.received() - 1, peer.received())


def test_the_empty_destination_is_the_default_consumer(peer: Peer, name: str) -> None:
    peer.queue(name)
    consume(peer, name, "")
    transfer(peer, name, b"body")
    expect_transfer(peer, b"body", destination="")
    peer.send(MessageConsume(queue=name, destination=""))
    peer.expect_connection_close(530, "message.consume", "destination ''")


def test_an_empty_queue_name_is_the_queue_declared_last(peer: Peer, name: str) -> None:
    peer.queue(name)
    consume(peer, "")
    transfer(peer, name, b"body")
    expect_transfer(peer, b"body")


def test_two_sessions_may_use_the_same_destination(connect: Connect, name: str) -> None:
    peer = connect().open(channels=(1, 2))
    peer.queue(name)
    peer.queue(f"{name}-2", 2)
    consume(peer, name, "d")
    consume(peer, f"{name}-2", "d", channel=2)
    transfer(peer, name, b"one")
    expect_transfer(peer, b"one", 1, destination="d")
    transfer(peer, f"{name}-2", b"two")
    expect_transfer(peer, b"two", 2, destination="d")


def test_a_destination_that_a_consumer_of_class_basic_has_is_in_use(peer: Peer, name: str) -> None:
    peer.queue(name)
    peer.consume(name, consumer_tag="d")
    peer.send(MessageConsume(queue=name, destination="d"))
    peer.expect_connection_close(530, "message.consume", "'d'")


def test_a_mark_acknowledges_all_up_to_it(peer: Peer, name: str) -> None:
    peer.queue(name)
    consume(peer, name)
    arrived = []
    for body in (b"1", b"2", b"3"):
        transfer(peer, name, body)
        arrived.append(expect_transfer(peer, body))
    peer.complete(arrived[1].number)
    peer.send(m.ChannelClose(reply_code=200))
    peer.expect(m.ChannelCloseOk)
    peer.ask(m.ChannelOpen(), 2)
    peer.send(MessageGet(queue=name, no_ack=True), 2)
    expect_transfer(peer, b"3", 2, redelivered=True)
    peer.send(MessageGet(queue=name), 2)
    peer.expect(MessageEmpty, 2)


def test_ranges_acknowledge_one_by_one(peer: Peer, name: str) -> None:
    peer.queue(name)
    consume(peer, name)
    arrived = []
    for body in (b"1", b"2", b"3", b"4", b"5"):
        transfer(peer, name, body)
        arrived.append(expect_transfer(peer, body))
    acknowledge(peer, arrived[0], arrived[2], arrived[4])
    peer.send(MessageCancel(destination="d"))
    peer.send(MessageRecover(requeue=True))
    for body in (b"2", b"4"):
        peer.send(MessageGet(queue=name, no_ack=True))
        expect_transfer(peer, body, redelivered=True)
    is_empty(peer, name)


def test_a_number_is_acknowledged_once(peer: Peer, name: str) -> None:
    peer.queue(name)
    consume(peer, name)
    transfer(peer, name, b"1")
    first = expect_transfer(peer, b"1")
    peer.complete(first.number)
    peer.complete(first.number)
    transfer(peer, name, b"2")
    expect_transfer(peer, b"2", redelivered=False)
    peer.complete(first.number)
    peer.send(m.ChannelClose(reply_code=200))
    peer.expect(m.ChannelCloseOk)
    peer.ask(m.ChannelOpen(), 2)
    peer.send(MessageGet(queue=name, no_ack=True), 2)
    expect_transfer(peer, b"2", 2, redelivered=True)


def test_a_number_that_was_never_sent_cannot_be_complete(peer: Peer, name: str) -> None:
    peer.queue(name)
    consume(peer, name)
    peer.complete(peer.received() + 1)
    peer.expect_connection_close(502, "execution.complete", "was not sent")


def test_a_consumer_without_acknowledgements_keeps_nothing(peer: Peer, name: str) -> None:
    peer.queue(name)
    consume(peer, name, no_ack=True)
    transfer(peer, name, b"body")
    expect_transfer(peer, b"body")
    peer.send(MessageCancel(destination="d"))
    peer.send(MessageRecover(requeue=True))
    is_empty(peer, name)


def test_a_consumer_that_wants_nothing_of_its_own_connection_gets_nothing_of_it(
    connect: Connect, name: str
) -> None:
    peer, other = connect().open(), connect().open()
    peer.queue(name)
    consume(peer, name, no_local=True, no_ack=True)
    transferred(peer, name, b"own")
    transferred(other, name, b"other")
    expect_transfer(peer, b"other")
    peer.expect_silence()


def test_a_consumer_of_higher_priority_is_served_first(peer: Peer, name: str) -> None:
    peer.queue(name)
    consume(peer, name, "low", no_ack=True)
    consume(peer, name, "high", no_ack=True, filter={"x-priority": 5})
    for body in (b"1", b"2"):
        transfer(peer, name, body)
        expect_transfer(peer, body, destination="high")


def test_a_priority_that_is_no_number_is_refused(peer: Peer, name: str) -> None:
    peer.queue(name)
    consume(peer, name, filter={"x-priority": "high"})
    peer.expect_channel_close(406, "message.consume", "x-priority")


def test_a_cancelled_consumer_gets_nothing_more(peer: Peer, name: str) -> None:
    peer.queue(name)
    consume(peer, name)
    transfer(peer, name, b"one")
    first = expect_transfer(peer, b"one")
    peer.send(MessageCancel(destination="d"))
    transferred(peer, name, b"two")
    peer.expect_silence()
    peer.complete(first.number)
    consume(peer, name)
    expect_transfer(peer, b"two", redelivered=False)


@pytest.mark.rule("0-10t#259")
def test_cancelling_is_ignored_when_the_queue_is_gone(peer: Peer, name: str) -> None:
    peer.queue(name)
    consume(peer, name)
    peer.ask(m.QueueDelete(queue=name))
    peer.run(MessageCancel(destination="d"))
    peer.expect_silence()


def test_cancelling_leaves_consumers_of_class_basic_alone(peer: Peer, name: str) -> None:
    peer.queue(name)
    peer.consume(name, consumer_tag="d", no_ack=True)
    peer.run(MessageCancel(destination="d"))
    transfer(peer, name, b"body")
    peer.expect_delivery(b"body")


def test_a_deleted_queue_takes_its_consumers_along(peer: Peer, name: str) -> None:
    peer.queue(name)
    consume(peer, name)
    peer.ask(m.QueueDelete(queue=name))
    peer.queue(f"{name}-2")
    consume(peer, f"{name}-2")
    transfer(peer, f"{name}-2", b"body")
    expect_transfer(peer, b"body", destination="d")


@pytest.mark.rule("0-10t#260")
def test_a_ticket_without_read_access_gets_nothing(peer: Peer, name: str) -> None:
    peer.queue(name)
    ticket = peer.ask(m.AccessRequest(realm="/data", active=False, read=False)).ticket
    peer.send(MessageGet(queue=name, ticket=ticket))
    peer.expect_channel_close(403, "message.get", "read")


@pytest.mark.rule("0-10t#261")
def test_a_get_without_any_queue_closes_the_connection(peer: Peer) -> None:
    peer.send(MessageGet())
    peer.expect_connection_close(530, "message.get", "empty")


def test_a_get_brings_one_message_and_then_says_that_there_is_none(peer: Peer, name: str) -> None:
    peer.queue(name)
    for number in range(10):
        transfer(peer, name, b"%d" % number)
    for number in range(10):
        peer.send(MessageGet(queue=name, destination=f"tag {number}", no_ack=True))
        expect_transfer(peer, b"%d" % number, destination=f"tag {number}")
    peer.send(MessageGet(queue=name))
    peer.expect(MessageEmpty)


def test_a_message_that_was_got_is_acknowledged_by_its_number(peer: Peer, name: str) -> None:
    """The moves of the client of 2007: 11 to 13 together, 15, 17 and 19 alone."""
    peer.queue(name)
    arrived = {}
    for number in range(11, 21):
        transfer(peer, name, b"%d" % number)
    for number in range(11, 21):
        peer.send(MessageGet(queue=name, destination="g"))
        arrived[number] = expect_transfer(peer, b"%d" % number)
    peer.complete(arrived[13].number)
    numbers = [arrived[each].number for each in (15, 17, 19)]
    peer.complete(arrived[13].number, *((each, each) for each in numbers))
    peer.send(MessageRecover(requeue=True))
    for number in (14, 16, 18, 20):
        peer.send(MessageGet(queue=name, destination="g"))
        got = expect_transfer(peer, b"%d" % number, redelivered=True)
        peer.complete(got.number)
    peer.send(MessageRecover(requeue=True))
    peer.send(MessageGet(queue=name, no_ack=True))
    peer.expect(MessageEmpty)


@pytest.mark.rule("0-10t#262")
@pytest.mark.parametrize("requeue", [True, False])
def test_a_repeated_delivery_is_marked_as_redelivered(peer: Peer, name: str, requeue: bool) -> None:
    peer.queue(name)
    consume(peer, name)
    for body in (b"1", b"2"):
        transfer(peer, name, body)
        expect_transfer(peer, body, redelivered=False)
    peer.send(MessageRecover(requeue=requeue))
    for body in (b"1", b"2"):
        expect_transfer(peer, body, redelivered=True, destination="d")


def test_recovering_without_requeue_delivers_to_who_had_it(connect: Connect, name: str) -> None:
    peer, other = connect().open(), connect().open()
    peer.queue(name)
    consume(peer, name, "mine")
    for body in (b"1", b"2"):
        transfer(peer, name, body)
        expect_transfer(peer, body)
    consume(other, name, "other")
    other.expect_silence()
    peer.send(MessageRecover(requeue=False))
    first = expect_transfer(peer, b"1", destination="mine", redelivered=True)
    second = expect_transfer(peer, b"2", destination="mine", redelivered=True)
    other.expect_silence()
    peer.complete(second.number)
    assert second.number == first.number + 1
    is_empty(peer, name)


def test_recovering_with_requeue_may_deliver_to_somebody_else(connect: Connect, name: str) -> None:
    peer, other = connect().open(), connect().open()
    peer.queue(name)
    consume(peer, name, "mine")
    transfer(peer, name, b"1")
    expect_transfer(peer, b"1")
    peer.send(MessageCancel(destination="mine"))
    consume(other, name, "other")
    other.expect_silence()
    peer.send(MessageRecover(requeue=True))
    expect_transfer(other, b"1", destination="other", redelivered=True)


@pytest.mark.rule("0-10t#263")
def test_a_transacted_session_cannot_recover(peer: Peer) -> None:
    peer.run(m.TxSelect())
    peer.send(MessageRecover(requeue=True))
    peer.expect_channel_close(406, "message.recover", "transacted")


def test_a_rejected_message_goes_to_the_dead_letter_exchange(peer: Peer, name: str) -> None:
    peer.queue(f"{name}-dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{name}-dead"}
    peer.queue(name, arguments=arguments)
    consume(peer, name)
    transfer(peer, name, b"body")
    expect_transfer(peer, b"body")
    peer.send(MessageReject(code=0, text="not wanted"))
    peer.send(MessageGet(queue=f"{name}-dead", no_ack=True))
    expect_transfer(peer, b"body")
    is_empty(peer, name)


def test_a_rejected_message_goes_to_the_alternate_exchange_of_its_queue(
    peer: Peer, name: str
) -> None:
    peer.queue(f"{name}-other")
    peer.run(m.ExchangeDeclare(exchange=name, type="fanout"))
    peer.run(m.QueueBind(queue=f"{name}-other", exchange=name))
    peer.queue(name, alternate_exchange=name)
    consume(peer, name)
    transfer(peer, name, b"body")
    expect_transfer(peer, b"body")
    peer.send(MessageReject(code=0, text=""))
    peer.send(MessageGet(queue=f"{name}-other", no_ack=True))
    expect_transfer(peer, b"body")
    peer.ask(m.QueueDelete(queue=name))
    peer.run(m.ExchangeDelete(exchange=name))


def test_a_rejected_message_that_nobody_else_wants_goes_back(peer: Peer, name: str) -> None:
    peer.queue(name)
    consume(peer, name, "first")
    transfer(peer, name, b"body")
    expect_transfer(peer, b"body")
    peer.send(MessageCancel(destination="first"))
    peer.send(MessageReject(code=0, text=""))
    consume(peer, name, "checker")
    expect_transfer(peer, b"body", redelivered=True, destination="checker")


def test_a_reject_means_the_oldest_message_that_is_left(peer: Peer, name: str) -> None:
    peer.queue(f"{name}-dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{name}-dead"}
    peer.queue(name, arguments=arguments)
    consume(peer, name)
    arrived = []
    for body in (b"1", b"2", b"3"):
        transfer(peer, name, body)
        arrived.append(expect_transfer(peer, body))
    peer.complete(arrived[0].number)
    peer.send(MessageReject(code=0, text=""))
    peer.complete(arrived[2].number)
    peer.send(MessageGet(queue=f"{name}-dead", no_ack=True))
    expect_transfer(peer, b"2")


def test_a_reject_of_nothing_closes_the_connection(peer: Peer) -> None:
    peer.send(MessageReject(code=0, text=""))
    peer.expect_connection_close(503, "message.reject", "no transfer")


@pytest.mark.rule("0-10t#007")
def test_other_reject_codes_close_the_connection(peer: Peer, name: str) -> None:
    peer.queue(name)
    consume(peer, name)
    transfer(peer, name, b"body")
    expect_transfer(peer, b"body")
    peer.send(MessageReject(code=2, text=""))
    peer.expect_connection_close(502, "message.reject", "2 is neither")


@pytest.mark.parametrize("name_of", ["message.empty", "message.offset"])
def test_answers_to_what_was_not_asked_close_the_connection(peer: Peer, name_of: str) -> None:
    peer.send(METHODS[name_of]())
    peer.expect_connection_close(503, name_of, "answers nothing")


def test_flow_holds_transfers_back(peer: Peer, name: str) -> None:
    peer.queue(name)
    consume(peer, name, no_ack=True)
    peer.ask(m.ChannelFlow(active=False))
    transferred(peer, name, b"body")
    peer.expect_silence()
    peer.ask(m.ChannelFlow(active=True))
    expect_transfer(peer, b"body")


def test_a_commit_makes_transfers_and_acknowledgements_take_effect(
    connect: Connect, name: str
) -> None:
    peer, other = connect().open(), connect().open()
    peer.queue(name)
    transferred(peer, name, b"old")
    peer.run(m.TxSelect())
    consume(peer, name)
    old = expect_transfer(peer, b"old")
    transferred(peer, name, b"new")
    peer.complete(old.number)
    other.send(MessageGet(queue=name))
    other.expect(MessageEmpty)
    peer.send(m.TxCommit())
    expect_transfer(peer, b"new", redelivered=False)
    peer.send(m.ChannelClose(reply_code=200))
    peer.expect(m.ChannelCloseOk)
    other.send(MessageGet(queue=name, no_ack=True))
    expect_transfer(other, b"new", redelivered=True)
    is_empty(other, name)


def test_a_rollback_leaves_what_was_acknowledged_to_be_acknowledged(peer: Peer, name: str) -> None:
    peer.queue(name)
    transferred(peer, name, b"old")
    peer.run(m.TxSelect())
    consume(peer, name)
    old = expect_transfer(peer, b"old")
    transferred(peer, name, b"new")
    peer.complete(old.number)
    peer.run(m.TxRollback())
    peer.complete(old.number)
    peer.run(m.TxCommit())
    is_empty(peer, name)
    peer.send(m.ChannelClose(reply_code=200))
    peer.expect(m.ChannelCloseOk)
    peer.ask(m.ChannelOpen(), 2)
    peer.send(MessageGet(queue=name), 2)
    peer.expect(MessageEmpty, 2)


def test_acknowledging_several_of_class_basic_leaves_transfers_out(peer: Peer, name: str) -> None:
    peer.queue(name)
    peer.queue(f"{name}-2")
    consume(peer, name)
    peer.consume(f"{name}-2", consumer_tag="b")
    transfer(peer, name, b"transfer")
    expect_transfer(peer, b"transfer")
    transfer(peer, f"{name}-2", b"basic")
    delivery = peer.expect_delivery(b"basic")
    peer.run(m.BasicAck(delivery_tag=delivery.method.delivery_tag, multiple=True))
    peer.send(m.ChannelClose(reply_code=200))
    peer.expect(m.ChannelCloseOk)
    peer.ask(m.ChannelOpen(), 2)
    peer.send(MessageGet(queue=name, no_ack=True), 2)
    expect_transfer(peer, b"transfer", 2, redelivered=True)
    peer.send(MessageGet(queue=f"{name}-2"), 2)
    peer.expect(MessageEmpty, 2)


def test_a_selector_is_one_of_the_filters_of_a_consumer(peer: Peer, name: str) -> None:
    peer.queue(name)
    for key in ("a", "b"):
        transfer(peer, name, key.encode())
    selector = {"x-filter-jms-selector": "message.size = 1 AND JMSPriority = 4 AND color IS NULL"}
    consume(peer, name, no_ack=True, filter=selector)
    expect_transfer(peer, b"a")
    expect_transfer(peer, b"b")
    consume(peer, name, "none", no_ack=True, filter={"x-filter-jms-selector": "color = 1"})
    peer.send(MessageCancel(destination="d"))
    transfer(peer, name, b"c")
    peer.expect_silence()
