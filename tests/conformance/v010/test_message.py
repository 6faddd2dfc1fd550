"""The class message of AMQP 0-10: transfers, what becomes of them, subscriptions, credit."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from harebell.wire.v010 import commands as c
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.structs import (
    Acquired,
    DeliveryProperties,
    FragmentProperties,
    MessageProperties,
    ReplyTo,
)
from tests.conformance.conftest import Connect
from tests.conformance.v010.conftest import Connect010
from tests.conformance.v010.raw import BODY, COMMAND, HEADER, frame
from tests.conformance.v010.talk import (
    CREDIT,
    EXPLICIT,
    MESSAGES,
    NONE,
    NOT_ACQUIRED,
    OCTETS,
    WINDOW,
    Talk,
    begin,
)

UNROUTABLE, IMMEDIATE = 1, 2


def fill(talk: Talk, count: int, queue: str = "q") -> list[bytes]:
    bodies = [b"m%d" % number for number in range(count)]
    for body in bodies:
        talk.publish("", body, routing_key=queue)
    return bodies


# --- transfer -----------------------------------------------------------------------------------


def test_a_message_arrives_with_everything_that_it_had(talk: Talk) -> None:
    properties = MessageProperties(
        content_length=4,
        message_id=UUID(int=7),
        correlation_id=b"\0\xff",
        reply_to=ReplyTo("amq.direct", "answers"),
        content_type="text/plain",
        content_encoding="utf-8",
        user_id=b"guest",
        app_id=b"app",
        application_headers={"n": 1, "t": "x", "m": {"l": [1, "y", None]}},
    )
    talk.publish("", b"body", properties, routing_key="q", priority=3, delivery_mode=2)
    talk.subscribe("q")
    (found,) = talk.deliveries()
    delivery = DeliveryProperties(priority=3, delivery_mode=2, exchange="", routing_key="q")
    assert found.header == (delivery, properties)
    assert found.body == b"body"
    assert found.value == c.MessageTransfer("t", EXPLICIT, 0)


def test_a_transfer_without_a_body_segment_is_delivered_without_one(
    talk: Talk, connect: Connect
) -> None:
    talk.do(c.QueueDeclare("b"))
    named = MessageProperties(application_headers={"n": 1})
    for _ in range(2):
        talk.publish("", b"", named, routing_key="b")
    older = connect().open()
    content = older.get("b")
    assert (content.body, content.properties.headers) == (b"", {"n": 1})
    header = b"".join(
        AMQP_0_10.encode_struct(each) for each in (DeliveryProperties(routing_key="b"), named)
    )
    talk.peer.send_bytes(
        frame(COMMAND, AMQP_0_10.encode(c.MessageTransfer("")), talk.channel, 0x0B),
        frame(HEADER, header, talk.channel, 0x03),
        frame(BODY, b"", talk.channel, 0x07),
    )
    talk.sent += 1
    talk.sync()
    older.publish("", "b", b"")
    older.count("b")
    talk.subscribe("b")
    found = talk.deliveries()
    assert [each.segments for each in found] == [
        (COMMAND, HEADER),
        (COMMAND, HEADER, BODY),
        (COMMAND, HEADER, BODY),
    ]
    assert [each.body for each in found] == [b"", b"", b""]
    assert [each.header[-1].application_headers for each in found[:2]] == [{"n": 1}] * 2
    assert [len(each.header) for each in found] == [2, 2, len(found[2].header)]
    talk.do(c.MessageCancel("t"), c.QueueDelete("b"))


def test_an_empty_body_and_a_large_one_arrive(talk: Talk) -> None:
    large = bytes(range(256)) * 4096
    talk.publish("", b"", routing_key="q")
    talk.publish("", large, routing_key="q")
    talk.subscribe("q")
    assert talk.bodies() == [b"", large]


def test_an_exchange_that_is_not_there_ends_the_session(talk: Talk) -> None:
    talk.transfer_fails("nowhere", 404, "no exchange 'nowhere'")


def test_a_persistent_message_completes_when_it_is_on_disk(talk: Talk) -> None:
    talk.do(c.QueueDeclare("durable", durable=True))
    talk.publish("", b"kept", routing_key="durable", delivery_mode=2, accept=EXPLICIT)
    assert [type(each) for each in talk.others()] == [c.MessageAccept]
    talk.do(c.QueueDelete("durable"))


def test_a_transfer_that_wants_to_be_accepted_is(talk: Talk) -> None:
    number = talk.sent
    talk.publish("", b"x", routing_key="q", accept=EXPLICIT)
    assert talk.others() == [c.MessageAccept(((number, number),))]


def test_an_unroutable_transfer_is_rejected_if_it_wants_to_be_accepted(talk: Talk) -> None:
    number = talk.sent
    talk.publish("", b"x", routing_key="nobody", accept=EXPLICIT)
    (reject,) = talk.others()
    assert (reject.transfers, reject.code) == (((number, number),), UNROUTABLE)


@pytest.mark.parametrize(
    "how", [{"accept": NONE}, {"accept": EXPLICIT, "discard_unroutable": True}]
)
def test_otherwise_it_is_dropped(talk: Talk, how: Any) -> None:
    talk.publish("", b"x", routing_key="nobody", **how)
    assert all(isinstance(each, c.MessageAccept) for each in talk.others())


def test_an_immediate_message_does_not_wait(talk: Talk) -> None:
    number = talk.sent
    talk.publish("", b"x", routing_key="q", immediate=True, accept=EXPLICIT)
    (reject,) = talk.others()
    assert (reject.transfers, reject.code) == (((number, number),), IMMEDIATE)
    talk.subscribe("q", credit=1)
    talk.publish("", b"y", routing_key="q", immediate=True)
    talk.publish("", b"z", routing_key="q", immediate=True)
    assert talk.bodies() == [b"y"], "the credit is used up"


def test_a_message_expires_after_its_ttl(talk: Talk) -> None:
    talk.publish("", b"gone", routing_key="q", ttl=0)
    talk.publish("", b"there", routing_key="q", ttl=600_000)
    assert talk.ask(c.QueueQuery("q")).message_count == 1
    talk.subscribe("q")
    assert talk.bodies() == [b"there"]


def test_another_user_id_is_refused(talk: Talk) -> None:
    talk.transfer_fails("", 403, "user-id is 'root'", MessageProperties(user_id=b"root"))


def test_a_fragment_is_refused(talk: Talk) -> None:
    talk.transfer_fails("", 540, "fragments", FragmentProperties(first=True))


def test_further_keys_reach_further_queues_and_bcc_is_not_seen(talk: Talk) -> None:
    for name in ("cc", "bcc"):
        talk.do(c.QueueDeclare(name, exclusive=True, auto_delete=True))
    headers = MessageProperties(application_headers={"CC": ["cc"], "BCC": ["bcc"]})
    talk.publish("", b"x", headers, routing_key="q")
    for name in ("q", "cc", "bcc"):
        talk.subscribe(name, name)
    for found in talk.deliveries():
        (properties,) = [each for each in found.header if isinstance(each, MessageProperties)]
        assert properties.application_headers == {"CC": ["cc"]}


def test_a_queue_that_is_full_refuses(talk: Talk) -> None:
    talk.do(
        c.QueueDeclare("small", exclusive=True, auto_delete=True, arguments={"qpid.max_count": 1})
    )
    talk.publish("", b"x", routing_key="small")
    header = DeliveryProperties(routing_key="small")
    talk.transfer_fails("", 506, "queue 'small' in vhost '/' is full", header)


# --- accept, reject, release, acquire -----------------------------------------------------------


def test_accepted_messages_are_gone_and_the_rest_comes_back_as_redelivered(
    connect010: Connect010,
) -> None:
    first, other = (begin(connect010())[0] for _ in range(2))
    first.do(c.QueueDeclare("shared"))
    fill(first, 4, "shared")
    first.subscribe("shared")
    assert len(first.deliveries()) == 4
    # The result of each command has its own number in this direction, too.
    first.do(c.MessageAccept(((0, 0), (2, 2))))
    first.leave()
    other.subscribe("shared")
    found = other.deliveries()
    assert [each.body for each in found] == [b"m1", b"m3"]
    assert all(each.header[0].redelivered for each in found)
    other.do(c.QueueDelete("shared"))
    other.peer.close()


def test_without_accepting_a_message_is_gone_when_it_is_sent(talk: Talk) -> None:
    fill(talk, 2)
    talk.subscribe("q", accept_mode=NONE)
    assert len(talk.deliveries()) == 2
    talk.do(c.MessageCancel("t"), c.MessageRelease(((0, 1),)))
    assert talk.ask(c.QueueQuery("q")).message_count == 0


@pytest.mark.parametrize("redelivered", [False, True])
def test_a_released_message_is_back_in_its_place(talk: Talk, redelivered: bool) -> None:
    bodies = fill(talk, 3)
    talk.subscribe("q")
    assert talk.bodies() == bodies
    talk.do(c.MessageCancel("t"), c.MessageRelease(((0, 1),), redelivered))
    talk.subscribe("q", "again")
    found = talk.deliveries()
    assert [each.body for each in found] == bodies[:2]
    assert [each.header[0].redelivered for each in found] == [redelivered] * 2


def test_a_rejected_message_goes_to_the_alternate_exchange(talk: Talk) -> None:
    talk.do(
        c.QueueDeclare("letters", exclusive=True, auto_delete=True),
        c.ExchangeBind("letters", "amq.fanout", ""),
        c.QueueDeclare("r", "amq.fanout", exclusive=True, auto_delete=True),
    )
    fill(talk, 2, "r")
    talk.subscribe("r")
    talk.do(c.MessageReject(((0, 0),), 0, "no"), c.MessageAccept(((1, 1),)))
    assert talk.bodies() == [b"m0", b"m1"]
    talk.subscribe("letters", "l")
    assert talk.bodies() == [b"m0"]


def test_a_browser_takes_nothing_and_acquires_what_is_left(talk: Talk) -> None:
    bodies = fill(talk, 3)
    talk.subscribe("q", "browser", acquire_mode=NOT_ACQUIRED)
    assert talk.bodies() == bodies
    assert talk.ask(c.QueueQuery("q")).message_count == 3
    talk.subscribe("q", "taker", credit=1)
    assert talk.bodies() == bodies[:1]
    assert talk.ask(c.MessageAcquire(((0, 1),))) == Acquired(((1, 1),))
    assert talk.ask(c.MessageAcquire(((0, 1),))) == Acquired(())
    assert talk.ask(c.QueueQuery("q")).message_count == 1
    talk.do(c.MessageAccept(((1, 1),)), c.MessageReject(((2, 2),)))
    assert talk.ask(c.QueueQuery("q")).message_count == 1, "a browser cannot reject"
    assert talk.ask(c.QueueQuery("q")).subscriber_count == 2


def test_an_acquired_message_can_be_released_again(talk: Talk) -> None:
    bodies = fill(talk, 2)
    talk.subscribe("q", "browser", acquire_mode=NOT_ACQUIRED)
    talk.do(c.MessageAcquire(((0, 0),)), c.MessageRelease(((0, 0),)))
    talk.deliveries()
    talk.subscribe("q", "taker")
    assert talk.bodies() == bodies


def test_resuming_is_refused(talk: Talk) -> None:
    talk.fails(c.MessageResume("t", "r"), 540, "cannot be resumed")


# --- subscriptions ------------------------------------------------------------------------------


def test_a_new_subscription_has_no_credit(talk: Talk) -> None:
    fill(talk, 1)
    talk.do(c.MessageSubscribe("q", "t"))
    talk.sync()
    assert talk.bodies() == []
    talk.do(c.MessageFlow("t", MESSAGES, 1))
    assert talk.bodies() == [], "both kinds of credit are needed"
    talk.do(c.MessageFlow("t", OCTETS, 1000))
    assert talk.bodies() == [b"m0"]


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        (c.MessageSubscribe("missing", "x"), 404, "no queue 'missing'"),
        (c.MessageSubscribe("", "x"), 531, "name of the queue is empty"),
        (c.MessageSubscribe("q", "t"), 530, "subscription 't'"),
        (c.MessageSubscribe("q", "x", exclusive=True), 405, "exclusive use"),
        (c.MessageSubscribe("q", "x", accept_mode=2), 531, "no mode 2"),
        (c.MessageSubscribe("q", "x", acquire_mode=2), 531, "no mode 2"),
        (c.MessageSubscribe("q", "x", resume_id="r"), 540, "resumed"),
        (c.MessageSubscribe("q", "x", arguments={"x-priority": "high"}), 542, "x-priority"),
        (c.MessageCancel("x"), 404, "no subscription 'x'"),
        (c.MessageFlow("x", 0, 1), 404, "no subscription 'x'"),
        (c.MessageFlow("t", 2, 1), 531, "no unit 2"),
        (c.MessageSetFlowMode("x", 0), 404, "no subscription 'x'"),
        (c.MessageSetFlowMode("t", 2), 531, "no flow mode 2"),
        (c.MessageFlush("x"), 404, "no subscription 'x'"),
        (c.MessageStop("x"), 404, "no subscription 'x'"),
    ],
)
def test_an_impossible_command_ends_the_session(
    talk: Talk, command: Any, code: int, text: str
) -> None:
    talk.do(c.MessageSubscribe("q", "t"))
    talk.fails(command, code, text)


def test_an_exclusive_subscription_is_alone_but_for_browsers(connect010: Connect010) -> None:
    one, other = (begin(connect010())[0] for _ in range(2))
    one.do(c.QueueDeclare("shared"), c.MessageSubscribe("shared", "t", exclusive=True))
    other.do(c.MessageSubscribe("shared", "b", acquire_mode=NOT_ACQUIRED))
    other.fails(c.MessageSubscribe("shared", "t"), 405, "exclusive use")
    one.do(c.QueueDelete("shared"))
    one.peer.close()
    other.peer.close()


def test_another_sessions_queue_cannot_be_subscribed_to(talk: Talk, connect010: Connect010) -> None:
    begin(connect010())[0].fails(c.MessageSubscribe("q", "t"), 405, "locked queue 'q'")
    talk.peer.close()


def test_the_end_of_its_queue_ends_a_session_that_subscribes(connect010: Connect010) -> None:
    one, other = (begin(connect010())[0] for _ in range(2))
    one.do(c.QueueDeclare("shared"))
    other.do(c.MessageSubscribe("shared", "t"))
    one.do(c.QueueDelete("shared"))
    other.peer.expect_exception(408, "queue 'shared' in vhost '/' was deleted")
    one.peer.close()


def test_a_cancelled_subscription_gets_nothing_more(talk: Talk) -> None:
    fill(talk, 1)
    talk.subscribe("q")
    talk.do(c.MessageCancel("t"))
    fill(talk, 1)
    assert talk.bodies() == [b"m0"]
    talk.do(c.MessageAccept(((0, 0),)))
    assert talk.ask(c.QueueQuery("q")).message_count == 1


# --- credit -------------------------------------------------------------------------------------


def test_credit_in_messages_is_used_up(talk: Talk) -> None:
    bodies = fill(talk, 5)
    talk.do(c.MessageSubscribe("q", "t"), c.MessageSetFlowMode("t", CREDIT))
    talk.do(c.MessageFlow("t", OCTETS, None), c.MessageFlow("t", MESSAGES, 2))
    assert talk.bodies() == bodies[:2]
    talk.complete(0, 1)
    assert talk.bodies() == [], "completing gives nothing back in credit mode"
    talk.do(c.MessageFlow("t", MESSAGES, 2))
    assert talk.bodies() == bodies[2:4]


def test_in_window_mode_completion_gives_credit_back_and_accepting_does_not(talk: Talk) -> None:
    bodies = fill(talk, 5)
    talk.do(c.MessageSubscribe("q", "t"), c.MessageSetFlowMode("t", WINDOW))
    talk.do(c.MessageFlow("t", OCTETS, None), c.MessageFlow("t", MESSAGES, 2))
    assert talk.bodies() == bodies[:2]
    talk.do(c.MessageAccept(((0, 1),)))
    assert talk.bodies() == []
    talk.complete(1)
    assert talk.bodies() == bodies[2:3]
    talk.complete(0, 1, 2)
    assert talk.bodies() == bodies[3:], "what is complete already gives nothing back again"


def test_credit_in_octets_counts_header_and_body_and_no_message_is_cut(talk: Talk) -> None:
    fill(talk, 1)
    talk.subscribe("q", "measure", acquire_mode=NOT_ACQUIRED)
    (found,) = talk.deliveries()
    assert found.body == b"m0"
    # delivery-properties with an empty exchange and the routing key: 8 + 1 + 2
    size = 11 + len(found.body)
    talk.do(c.MessageCancel("measure"))
    fill(talk, 4)
    talk.do(c.MessageSubscribe("q", "t"), c.MessageFlow("t", MESSAGES, None))
    talk.do(c.MessageFlow("t", OCTETS, 3 * size - 1))
    assert len(talk.bodies()) == 2
    talk.do(c.MessageFlow("t", OCTETS, 1))
    assert len(talk.bodies()) == 1
    talk.complete(1)
    assert len(talk.bodies()) == 1, "a window of octets moves, too"


def test_a_message_that_comes_later_is_measured_before_it_goes(talk: Talk) -> None:
    talk.do(c.MessageSubscribe("q", "t"), c.MessageFlow("t", MESSAGES, None))
    talk.do(c.MessageFlow("t", OCTETS, 20))
    talk.publish("", b"x" * 10, routing_key="q")
    talk.sync()
    assert talk.bodies() == []
    talk.do(c.MessageFlow("t", OCTETS, 1))
    assert talk.bodies() == [b"x" * 10]


def test_a_browser_with_credit_in_octets_gets_whole_messages(talk: Talk) -> None:
    fill(talk, 3)
    talk.do(c.MessageSubscribe("q", "t", acquire_mode=NOT_ACQUIRED))
    talk.do(c.MessageFlow("t", MESSAGES, None), c.MessageFlow("t", OCTETS, 27))
    assert talk.bodies() == [b"m0", b"m1"]


@pytest.mark.parametrize("end", [c.MessageStop, c.MessageFlush])
def test_no_credit_is_left_after_stop_or_flush(talk: Talk, end: Any) -> None:
    bodies = fill(talk, 1)
    talk.subscribe("q")
    talk.do(end("t"))
    assert talk.bodies() == bodies
    fill(talk, 1)
    talk.complete(0)
    assert talk.bodies() == []
    talk.do(c.MessageSetFlowMode("t", CREDIT))
    talk.do(c.MessageFlow("t", OCTETS, None), c.MessageFlow("t", MESSAGES, 1))
    assert talk.bodies() == bodies


def test_messages_sent_before_a_stop_give_no_credit_afterwards(talk: Talk) -> None:
    bodies = fill(talk, 5)
    talk.subscribe("q", credit=2)
    talk.do(c.MessageStop("t"), c.MessageFlow("t", OCTETS, None), c.MessageFlow("t", MESSAGES, 2))
    assert talk.bodies() == bodies[:4]
    talk.complete(0, 1)
    assert talk.bodies() == []


def test_the_mode_changes_only_without_credit(talk: Talk) -> None:
    talk.do(c.MessageSubscribe("q", "t"), c.MessageFlow("t", MESSAGES, 1))
    talk.fails(c.MessageSetFlowMode("t", CREDIT), 409, "has credit left")
