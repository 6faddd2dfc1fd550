"""Rules that Harebell breaks as RabbitMQ does, and what happens instead.

The reasons stand in docs/protocols/compatibility.md. Departures that concern a single frame or name
are shown where the others of their kind are tested.
"""

from __future__ import annotations

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties, encode_properties
from tests.conformance.conftest import Connect
from tests.conformance.raw import Peer

DEFAULT_EXCHANGE = "ACCESS_REFUSED - operation not permitted on the default exchange"


# --- connections and channels ---------------------------------------------------------------------


@pytest.mark.departs("0-9-1#004")
def test_a_missing_vhost_is_refused_before_the_connection_is_open(connect: Connect) -> None:
    peer = connect()
    peer.greet()
    peer.log_in()
    peer.send(m.ConnectionTuneOk(0, 0, 0), m.ConnectionOpen("missing"))
    peer.expect_connection_close(530, "NOT_ALLOWED - vhost missing not found", "connection.open")


@pytest.mark.departs("0-9-1r#012", "0-9-1r#014")
@pytest.mark.parametrize(
    ("channel_max", "frame_max", "name", "offered"),
    [(2_048, 0, "channel_max = 2048", 2_047), (0, 131_073, "frame_max = 131073", 131_072)],
)
def test_a_limit_above_the_offer_is_answered_with_530(
    connect: Connect, channel_max: int, frame_max: int, name: str, offered: int
) -> None:
    peer = connect()
    peer.greet()
    peer.log_in()
    peer.send(m.ConnectionTuneOk(channel_max, frame_max, 0))
    peer.expect_connection_close(
        530,
        f"NOT_ALLOWED - negotiated {name} is higher than the maximum allowed value ({offered})",
        "connection.tune-ok",
    )


@pytest.mark.departs("0-9-1#036")
def test_a_content_header_that_fits_no_frame_goes_out_in_a_longer_one(
    peer: Peer, connect: Connect
) -> None:
    properties = encode_properties(BasicProperties(headers={"long": "x" * 5_000}))
    peer.queue("q")
    peer.publish("", "q", b"body", properties)
    small = connect().open(frame_max=4_096)
    small.reader.frame_max = 0  # The reader would object to the frame that this is about.
    found = small.get("q")
    assert (found.raw, found.body) == (properties, b"body")


@pytest.mark.departs("0-9-1r#022")
def test_a_client_cannot_stop_the_flow_of_a_channel(peer: Peer) -> None:
    peer.ask(m.ChannelFlow(active=True))
    peer.send(m.ChannelFlow(active=False))
    peer.expect_connection_close(540, "NOT_IMPLEMENTED - active=false", "channel.flow")


# --- declaring again ------------------------------------------------------------------------------


@pytest.mark.departs("0-9-1r#037", "0-9-1r#064")
def test_arguments_that_mean_nothing_to_the_broker_are_not_compared(peer: Peer) -> None:
    for value in (1, 2):
        peer.queue("q", arguments={"x-of-a-tool": value})
        peer.ask(m.ExchangeDeclare("x", "direct", arguments={"x-of-a-tool": value}))


@pytest.mark.departs("0-9-1r#042", "0-9-1r#070")
def test_auto_delete_is_compared_when_something_is_declared_again(peer: Peer) -> None:
    peer.ask(m.ExchangeDeclare("x", "direct"))
    peer.queue("q")
    differs = "received 'true' but current is 'false'"
    peer.send(m.ExchangeDeclare("x", "direct", auto_delete=True))
    peer.expect_channel_close(
        406,
        f"PRECONDITION_FAILED - inequivalent arg 'auto_delete' for exchange 'x' in vhost '/': "
        f"{differs}",
        "exchange.declare",
    )
    peer.ask(m.ChannelOpen())
    peer.send(m.QueueDeclare("q", auto_delete=True))
    peer.expect_channel_close(
        406,
        f"PRECONDITION_FAILED - inequivalent arg 'auto_delete' for queue 'q' in vhost '/': "
        f"{differs}",
        "queue.declare",
    )


@pytest.mark.departs("0-9-1r#062")
def test_a_reserved_name_is_refused_although_the_queue_is_there(peer: Peer) -> None:
    name = peer.queue("")
    peer.ask(m.QueueDeclare(name, passive=True))
    peer.send(m.QueueDeclare(name))
    peer.expect_channel_close(
        403,
        f"ACCESS_REFUSED - queue name '{name}' contains reserved prefix 'amq.*'",
        "queue.declare",
    )


# --- the end of things ----------------------------------------------------------------------------


@pytest.mark.departs("0-9-1r#040")
def test_an_auto_delete_exchange_goes_with_its_last_binding_at_once(peer: Peer) -> None:
    peer.ask(m.ExchangeDeclare("x", "direct", auto_delete=True))
    peer.queue("q")
    peer.ask(m.QueueBind("q", "x", "k"))
    peer.ask(m.QueueUnbind("q", "x", "k"))
    peer.send(m.ExchangeDeclare("x", passive=True))
    peer.expect_channel_close(404, "NOT_FOUND - no exchange 'x' in vhost '/'", "exchange.declare")


@pytest.mark.departs("0-9-1r#084")
def test_messages_left_in_a_deleted_queue_are_not_dead_lettered(peer: Peer) -> None:
    peer.queue("dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    peer.queue("q", arguments=arguments)
    peer.publish("", "q", b"body")
    assert peer.ask(m.QueueDelete("q")).message_count == 1
    assert peer.count("dead") == 0


# --- messages -------------------------------------------------------------------------------------


@pytest.mark.departs("0-9-1r#089")
def test_a_queue_without_a_highest_priority_keeps_its_order(peer: Peer) -> None:
    peer.queue("q")
    for priority in (0, 9, 4):
        peer.publish("", "q", b"%d" % priority, BasicProperties(priority=priority))
    assert [peer.get("q").body for _ in range(3)] == [b"0", b"9", b"4"]


@pytest.mark.departs("0-9-1r#094")
def test_the_reserved_property_is_carried_through(peer: Peer) -> None:
    sent = BasicProperties(cluster_id="filled in")
    peer.queue("q")
    peer.publish("", "q", b"", sent)
    assert peer.get("q").properties == sent


@pytest.mark.departs("0-9-1r#095")
def test_a_prefetch_size_is_refused(peer: Peer) -> None:
    peer.send(m.BasicQos(prefetch_size=1_000))
    peer.expect_connection_close(540, "NOT_IMPLEMENTED - prefetch_size!=0 (1000)", "basic.qos")


@pytest.mark.departs("0-9-1r#109", "0-9-1r#115")
@pytest.mark.parametrize("back", [m.BasicReject, m.BasicNack])
def test_refused_messages_may_come_back_to_the_only_consumer(
    peer: Peer, back: type[m.BasicReject | m.BasicNack]
) -> None:
    peer.queue("q")
    peer.consume("q")
    peer.publish("", "q", b"body")
    tag = peer.expect_delivery(b"body", redelivered=False).method.delivery_tag
    peer.send(back(tag, requeue=True))
    peer.expect_delivery(b"body", redelivered=True)


# --- the empty name -------------------------------------------------------------------------------


@pytest.mark.rule(
    "0-9-1r#050", "0-9-1r#052", "0-9-1r#055", "0-9-1r#057", "0-9-1r#077", "0-9-1r#081"
)
@pytest.mark.parametrize(
    "method",
    [
        m.ExchangeBind(destination="", source="amq.direct"),
        m.ExchangeBind(destination="amq.direct", source=""),
        m.ExchangeUnbind(destination="", source="amq.direct"),
        m.ExchangeUnbind(destination="amq.direct", source=""),
        m.QueueBind(queue="q", exchange="", routing_key="k"),
        m.QueueUnbind(queue="q", exchange="", routing_key="k"),
    ],
    ids=str,
)
def test_the_empty_name_means_the_default_exchange_which_nobody_may_bind(
    peer: Peer, method: m.Method
) -> None:
    peer.queue("q")
    peer.send(method)
    peer.expect_channel_close(403, DEFAULT_EXCHANGE, method.NAME)
