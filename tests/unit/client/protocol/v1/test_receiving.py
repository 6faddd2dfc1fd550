"""Deliveries over 1.0: credit by the prefetch, outcomes, the end of a consumer, and get."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.client.errors import (
    AMQPError,
    ChannelClosed,
    ConsumerCancelled,
    NotFound,
    UnsupportedByVersion,
)
from harebell.client.limits import UNLIMITED_CREDIT
from harebell.client.protocol.call import Call
from harebell.client.protocol.v1.session import CoreSession1
from harebell.wire.v09.content import decode_properties
from harebell.wire.v1 import composites as c
from harebell.wire.v1.sections import data_section, encode_message
from harebell.wire.v1.values import Described
from tests.unit.client.protocol.v1.broker import Broker, octets
from tests.unit.client.protocol.v1.test_publishing import RABBITMQ_3

GONE = c.Error(condition="amqp:resource-deleted", description="queue 'q' deleted")
FAILED = c.Modified(delivery_failed=True)


class Consumer:
    """A consumer that keeps what comes."""

    def __init__(
        self, session: CoreSession1, prefetch: int = 2, tag: str = "t", **options: Any
    ) -> None:
        self.deliveries: list[tuple[Any, ...]] = []
        self.ends: list[AMQPError | None] = []
        session.qos(prefetch).value()
        self.call: Call[Any] = session.consume(
            "q", lambda *delivery: self.deliveries.append(delivery), self.ends.append, tag=tag,
            **options,
        )  # fmt: skip

    @property
    def bodies(self) -> list[bytes]:
        """The bodies that came."""
        return [delivery[5] for delivery in self.deliveries]


def granted(broker: Broker) -> list[int]:
    """The credits that the client has granted since the last time."""
    return [flow.link_credit for flow in broker.taken(c.Flow) if flow.handle is not None]


def test_a_consumer_gets_credit_for_its_prefetch_and_again_for_what_is_settled() -> None:
    broker = Broker()
    session = broker.session()
    consumer = Consumer(session, 4)
    broker.settle()
    (attach,) = broker.taken(c.Attach)
    assert (attach.source.address, attach.role, attach.snd_settle_mode) == ("/queues/q", True, 0)
    assert consumer.call.done
    assert granted(broker) == [4]
    for number in range(4):
        broker.deliver(10, number)
    assert granted(broker) == []
    session.ack(1)
    assert granted(broker) == []
    session.ack(2)
    assert granted(broker) == [2]
    first, second = broker.taken(c.Disposition)
    assert (first.role, first.first, first.settled, first.state) == (True, 0, True, c.Accepted())
    assert second.first == 1


def test_a_delivery_has_its_route_its_properties_and_its_history() -> None:
    broker = Broker()
    consumer = Consumer(broker.session())
    broker.deliver(10, 0, b"new", properties=c.Properties(message_id="m", reply_to="/queues/r"))
    broker.deliver(10, 1, b"old", first=False, application_properties={"n": 1})
    tag, redelivered, exchange, key, properties, body = consumer.deliveries[0]
    assert (tag, redelivered, exchange, key, body) == (1, False, "", "q", b"new")
    basic = decode_properties(properties.raw)
    assert (basic.message_id, basic.reply_to) == ("m", "r")
    assert consumer.deliveries[1][1] is True
    assert decode_properties(consumer.deliveries[1][4].raw).headers == {"n": 1}


def test_a_run_of_deliveries_is_settled_by_one_disposition() -> None:
    broker = Broker()
    session = broker.session()
    Consumer(session, 100)
    for number in (*range(5), 7, 8):
        broker.deliver(10, number)
    session.ack(6, multiple=True)
    ranges = [(each.first, each.last) for each in broker.taken(c.Disposition)]
    assert ranges == [(0, 4), (7, 7)]
    session.ack(0, multiple=True)
    assert [each.first for each in broker.taken(c.Disposition)] == [8]
    with pytest.raises(ValueError, match="delivery 3 is not out"):
        session.ack(3)


@pytest.mark.parametrize(
    ("verb", "options", "state"),
    [
        ("nack", {}, FAILED),
        ("nack", {"requeue": False}, c.Rejected()),
        ("reject", {"requeue": True}, FAILED),
        ("reject", {}, c.Rejected()),
    ],
)
def test_a_refused_delivery_has_its_outcome(verb: str, options: Any, state: Any) -> None:
    broker = Broker()
    session = broker.session()
    Consumer(session)
    broker.deliver(10, 0)
    getattr(session, verb)(1, **options)
    assert [each.state for each in broker.taken(c.Disposition)] == [state]


def test_recover_gives_all_back() -> None:
    broker = Broker()
    session = broker.session()
    Consumer(session)
    broker.deliver(10, 0)
    broker.deliver(10, 1)
    session.recover().value()
    (given,) = broker.taken(c.Disposition)
    assert (given.first, given.last, given.state) == (0, 1, FAILED)


def test_rabbitmq_3_gets_no_modified() -> None:
    broker = Broker(opened=RABBITMQ_3)
    session = broker.session()
    Consumer(session)
    broker.deliver(10, 0)
    session.nack(1)
    assert [each.state for each in broker.taken(c.Disposition)] == [c.Released()]


def test_without_acknowledgements_deliveries_are_settled_and_credit_comes_by_itself() -> None:
    broker = Broker()
    session = broker.session()
    consumer = Consumer(session, 2, no_ack=True)
    broker.settle()
    assert [attach.snd_settle_mode for attach in broker.taken(c.Attach)] == [1]
    assert granted(broker) == [UNLIMITED_CREDIT]
    for number in range(UNLIMITED_CREDIT // 2):
        broker.deliver(10, number, settled=True)
    assert granted(broker) == [UNLIMITED_CREDIT]
    assert len(consumer.bodies) == UNLIMITED_CREDIT // 2


def test_a_message_in_several_frames_is_one_delivery() -> None:
    broker = Broker()
    consumer = Consumer(broker.session())
    payload = encode_message(data_section(b"x" * 100))
    broker.say(
        c.Transfer(handle=10, delivery_id=0, delivery_tag=b"t", more=True), payload=payload[:30]
    )
    assert consumer.bodies == []
    broker.say(c.Transfer(handle=10), payload=payload[30:])
    assert consumer.bodies == [b"x" * 100]


def test_an_aborted_message_is_no_delivery() -> None:
    broker = Broker()
    session = broker.session()
    consumer = Consumer(session)
    broker.say(c.Transfer(handle=10, delivery_id=0, delivery_tag=b"t", more=True), payload=b"\0")
    broker.say(c.Transfer(handle=10, aborted=True))
    broker.deliver(10, 1, b"whole")
    assert consumer.bodies == [b"whole"]


def test_a_malformed_message_ends_the_connection() -> None:
    broker = Broker()
    Consumer(broker.session())
    broker.say(c.Transfer(handle=10, delivery_id=0, delivery_tag=b"t"), payload=b"\xff\xff")
    assert broker.core.finished


def test_a_queue_that_does_not_exist_refuses_the_consumer() -> None:
    broker = Broker()
    broker.refuses["/queues/q"] = c.Error(condition="amqp:not-found", description="no queue 'q'")
    session = broker.session()
    consumer = Consumer(session)
    broker.settle()
    with pytest.raises(NotFound, match="no queue 'q'"):
        consumer.call.value()
    session.check_open()
    assert session.consumers == {}


def test_a_deleted_queue_cancels_the_consumer() -> None:
    broker = Broker()
    session = broker.session()
    consumer = Consumer(session)
    broker.deliver(10, 0)
    broker.say(c.Detach(handle=10, closed=True, error=GONE))
    (end,) = consumer.ends
    assert isinstance(end, ConsumerCancelled)
    assert "deleted" in str(end.__cause__)
    session.ack(1)
    assert broker.taken(c.Disposition) == []


def test_a_cancelled_consumer_without_deliveries_is_detached() -> None:
    broker = Broker()
    session = broker.session()
    consumer = Consumer(session)
    broker.settle()
    cancelled = session.cancel("t")
    broker.settle()
    cancelled.value()
    assert consumer.ends == [None]
    assert len(broker.taken(c.Detach)) == 1


def test_deliveries_of_a_cancelled_consumer_can_still_be_acknowledged() -> None:
    broker = Broker()
    session = broker.session()
    consumer = Consumer(session, 3)
    broker.deliver(10, 0)
    broker.deliver(10, 1)
    session.cancel("t").value()
    assert granted(broker)[-1] == 0
    broker.deliver(10, 2)
    (given,) = broker.taken(c.Disposition)
    assert (given.first, given.state) == (2, c.Released()), "it came too late"
    session.ack(1)
    assert broker.taken(c.Detach) == []
    session.ack(2)
    assert len(broker.taken(c.Detach)) == 1
    assert (len(consumer.bodies), consumer.ends, broker.core.finished) == (2, [None], False)


def test_arguments_become_properties_and_filters_of_the_link() -> None:
    broker = Broker()
    arguments = {"x-priority": 5, "x-stream-offset": "first", "x-stream-filter": ["a", "b"]}
    Consumer(broker.session(), arguments=arguments)
    broker.settle()
    (attach,) = broker.taken(c.Attach)
    assert attach.properties == {"rabbitmq:priority": 5}
    assert attach.source.filter == {
        "rabbitmq:stream-offset-spec": Described("rabbitmq:stream-offset-spec", "first"),
        "rabbitmq:stream-filter": Described("rabbitmq:stream-filter", ["a", "b"]),
    }


def test_a_filter_that_the_broker_leaves_out_refuses_the_consumer() -> None:
    broker = Broker()
    session = broker.session()
    broker.drops_filters = True
    consumer = Consumer(session, arguments={"x-stream-offset": "first"})
    broker.settle()
    with pytest.raises(ChannelClosed, match="stream-offset-spec"):
        consumer.call.value()
    assert len(broker.taken(c.Detach)) == 1


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"exclusive": True}, "no exclusive consumers"),
        ({"arguments": {"x-odd": 1}}, "no argument 'x-odd' of consumers"),
    ],
)
def test_what_1_0_cannot_do_is_refused_by_name(options: Any, text: str) -> None:
    session = Broker().session()
    with pytest.raises(UnsupportedByVersion, match=text):
        Consumer(session, **options)
    assert session.consumers == {}
    with pytest.raises(UnsupportedByVersion, match="prefetch that consumers share"):
        session.qos(1, shared=True)
    with pytest.raises(UnsupportedByVersion, match="publishing of rows"):
        session.publish_rows(None, 0, 0, 0)


def test_get_drains_one_message_and_counts_the_rest() -> None:
    broker = Broker()
    session = broker.session()
    got = session.get("q")
    broker.settle()
    (flow,) = broker.taken(c.Flow)
    assert (flow.link_credit, flow.drain) == (1, True)
    broker.deliver(10, 0, b"one")
    ((_, request),) = broker.messages()
    assert (request[0].value[2], request[0].value[3]) == ("/queues/q", "GET")
    broker.reply(12, 1, request, "200", {"message_count": 3, "consumer_count": 0})
    message = got.value()
    assert message is not None
    assert (message.body, message.method.message_count) == (b"one", 3)
    assert broker.taken(c.Detach) == []
    session.ack(message.method.delivery_tag)
    assert len(broker.taken(c.Detach)) == 1


def test_get_of_an_empty_queue_is_none() -> None:
    broker = Broker()
    got = broker.session().get("q")
    broker.settle()
    broker.taken(c.Flow)
    drained = broker.flow(10, 0, 1)
    drained.drain = True
    broker.say(drained)
    assert got.value() is None
    assert len(broker.taken(c.Detach)) == 1


def test_get_of_a_queue_that_does_not_exist_fails() -> None:
    broker = Broker()
    broker.refuses["/queues/q"] = c.Error(condition="amqp:not-found")
    got = broker.session().get("q")
    broker.settle()
    with pytest.raises(NotFound):
        got.value()


def test_the_end_of_a_session_ends_its_consumers() -> None:
    broker = Broker()
    session = broker.session()
    consumer = Consumer(session)
    error = c.Error(condition="amqp:unauthorized-access", description="no read")
    broker.say(c.End(error=error))
    assert len(broker.taken(c.End)) == 1
    (end,) = consumer.ends
    assert "no read" in str(end)
    assert broker.core.channels == {}


def test_a_session_that_sends_much_gets_a_new_window() -> None:
    broker = Broker()
    session = broker.session()
    Consumer(session, 0)
    broker.taken(c.Flow)
    session.endpoint._window = 2
    broker.deliver(10, 0)
    windows = [flow.incoming_window for flow in broker.taken(c.Flow) if flow.handle is None]
    assert windows == [65_536]


def test_what_comes_after_our_end_is_dropped() -> None:
    broker = Broker()
    session = broker.session()
    consumer = Consumer(session)
    broker.settle()
    closed = session.close()
    payload = encode_message(data_section(b"late"))
    transfer = c.Transfer(handle=10, delivery_id=0, delivery_tag=b"t")
    broker.core.receive(octets(transfer, payload=payload), 0.0)
    broker.core.receive(octets(broker.flow(10, 1)), 0.0)
    broker.settle()
    closed.value()
    assert (consumer.bodies, broker.core.finished) == ([], False)
