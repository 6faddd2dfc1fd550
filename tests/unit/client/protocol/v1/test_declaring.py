"""Declarations over 1.0: requests to the management node, and what their answers mean."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from harebell.client.errors import (
    AccessRefused,
    NotFound,
    PreconditionFailed,
    UnsupportedByVersion,
)
from harebell.client.protocol.topology import Topology
from harebell.client.protocol.v1.session import CoreSession1
from harebell.wire.v1 import composites as c
from harebell.wire.v1.values import Timestamp
from tests.unit.client.protocol.v1.broker import Broker
from tests.unit.client.protocol.v1.test_publishing import RABBITMQ_3, publish

QUEUE = {"message_count": 2, "consumer_count": 1, "name": "q"}


class Node:
    """The management node of a broker: it answers as a test says."""

    def __init__(self) -> None:
        self.broker = Broker()
        self.session: CoreSession1 = self.broker.session()
        self._answers = 0

    def asked(self) -> tuple[str, str, Any]:
        """The oldest request: method, path and body."""
        self._request = self.broker.messages()[0][1]
        fields = self._request[0].value
        return fields[3], fields[2], self._request[1].value

    def answer(self, status: str, body: Any = None) -> None:
        """Answer the request that `asked` has returned."""
        self.broker.reply(11, self._answers, self._request, status, body)
        self._answers += 1


def test_both_links_are_paired_and_get_credit_before_a_request() -> None:
    broker = Broker()
    session = broker.session()
    session.purge_queue("q")
    broker.settle()
    sender, receiver = broker.taken(c.Attach)
    assert (sender.name, sender.properties) == (receiver.name, receiver.properties)
    assert sender.properties == {"paired": True}
    assert (sender.target.address, receiver.source.address) == ("/management", "/management")
    assert sender.source.address == receiver.target.address
    assert (sender.snd_settle_mode, receiver.snd_settle_mode) == (1, 1)
    kinds = [type(each) for each, _ in broker.heard]
    assert kinds == [c.Flow, c.Transfer]


@pytest.mark.parametrize(
    ("verb", "arguments", "options", "request_", "answer", "result"),
    [
        (
            "declare_queue",
            ("a b/c",),
            {"durable": True, "arguments": {"x-max-length": 5}},
            ("PUT", "/queues/a%20b%2Fc", {
                "durable": True, "exclusive": False, "auto_delete": False,
                "arguments": {"x-max-length": 5},
            }),
            ("201", QUEUE),
            ("a b/c", 2, 1),
        ),
        ("declare_queue", ("q",), {"passive": True}, ("GET", "/queues/q", None), ("200", QUEUE),
         ("q", 2, 1)),
        ("delete_queue", ("q",), {}, ("DELETE", "/queues/q", None),
         ("200", {"message_count": 7}), 7),
        ("purge_queue", ("q",), {}, ("DELETE", "/queues/q/messages", None),
         ("200", {"message_count": 7}), 7),
        (
            "declare_exchange",
            ("x", "topic"),
            {"durable": True, "internal": True, "arguments": {"alternate-exchange": "y"}},
            ("PUT", "/exchanges/x", {
                "type": "topic", "durable": True, "auto_delete": False, "internal": True,
                "arguments": {"alternate-exchange": "y"},
            }),
            ("204", None),
            None,
        ),
        ("delete_exchange", ("x",), {}, ("DELETE", "/exchanges/x", None), ("204", None), None),
        (
            "bind_queue", ("q", "x", "k.*"), {"arguments": {"a": "b"}},
            ("POST", "/bindings", {
                "source": "x", "destination_queue": "q", "binding_key": "k.*",
                "arguments": {"a": "b"},
            }),
            ("204", None), None,
        ),
        (
            "bind_exchange", ("d", "s"), {},
            ("POST", "/bindings", {
                "source": "s", "destination_exchange": "d", "binding_key": "", "arguments": {},
            }),
            ("204", None), None,
        ),
        ("unbind_queue", ("q/1", "x", "k;="), {},
         ("DELETE", "/bindings/src=x;dstq=q%2F1;key=k%3B%3D;args=", None), ("204", None), None),
        ("unbind_exchange", ("d", "s"), {},
         ("DELETE", "/bindings/src=s;dste=d;key=;args=", None), ("204", None), None),
    ],
)  # fmt: skip
def test_a_verb_is_a_request(
    verb: str, arguments: Any, options: Any, request_: Any, answer: Any, result: Any
) -> None:
    node = Node()
    call = getattr(node.session, verb)(*arguments, **options)
    assert node.asked() == request_
    node.answer(*answer)
    value = call.value()
    shown = (value.name, value.message_count, value.consumer_count) if (
        verb == "declare_queue"
    ) else value  # fmt: skip
    assert shown == result


def test_a_binding_with_arguments_is_removed_by_the_place_that_the_broker_names() -> None:
    node = Node()
    call = node.session.unbind_queue("q", "x", "k", {"n": 1})
    assert node.asked() == ("GET", "/bindings?src=x&dstq=q&key=k", None)
    bindings = [
        {"arguments": {}, "location": "/bindings/src=x;dstq=q;key=k;args="},
        {"arguments": {"n": 1}, "location": "/bindings/src=x;dstq=q;key=k;args=abc"},
    ]
    node.answer("200", bindings)
    assert node.asked() == ("DELETE", "/bindings/src=x;dstq=q;key=k;args=abc", None)
    node.answer("204")
    call.value()


def test_a_binding_with_arguments_that_is_not_there_is_not_found() -> None:
    node = Node()
    call = node.session.unbind_queue("q", "x", "k", {"n": 1})
    node.asked()
    node.answer("200", [])
    with pytest.raises(NotFound, match="no binding of 'q'"):
        call.value()


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("400", PreconditionFailed),
        ("403", AccessRefused),
        ("404", NotFound),
        ("409", PreconditionFailed),
    ],
)
def test_a_refusal_has_its_class_and_leaves_the_channel_open(
    status: str, error: type[Exception]
) -> None:
    node = Node()
    call = node.session.declare_queue("q", passive=True)
    node.asked()
    node.answer(status, "no queue 'q'")
    with pytest.raises(error, match="no queue 'q'"):
        call.value()
    again = node.session.declare_queue("q")
    node.asked()
    node.answer("201", QUEUE)
    again.value()


def test_a_queue_without_a_name_gets_one_from_the_client() -> None:
    node = Node()
    topology = Topology()
    node.broker.core.recorder = topology
    names = set()
    for _ in range(2):
        call = node.session.declare_queue("", exclusive=True)
        node.asked()
        node.answer("201", QUEUE)
        names.add(call.value().name)
    assert len(names) == 2
    assert topology.queues.keys() == names
    assert all(record.server_named for record in topology.queues.values())


def test_answers_may_come_in_any_order() -> None:
    node = Node()
    first, second = node.session.purge_queue("a"), node.session.purge_queue("b")
    (_, one), (_, two) = node.broker.messages()
    node.broker.reply(11, 0, two, "200", {"message_count": 2})
    assert not first.done
    node.broker.reply(11, 1, one, "200", {"message_count": 1})
    assert (first.value(), second.value()) == (1, 2)


def test_times_in_arguments_are_timestamps() -> None:
    node = Node()
    node.session.declare_queue("q", arguments={"at": datetime(1970, 1, 2, tzinfo=UTC)})
    assert node.asked()[2]["arguments"] == {"at": Timestamp(86_400_000)}


def test_a_broker_without_the_node_refuses_the_verb() -> None:
    broker = Broker()
    broker.refuses["/management"] = c.Error(condition="amqp:not-found", description="no node")
    call = broker.session().purge_queue("q")
    broker.settle()
    with pytest.raises(NotFound, match="no node"):
        call.value()


def test_requests_of_a_session_that_ends_fail() -> None:
    node = Node()
    call = node.session.purge_queue("q")
    node.broker.say(c.End(error=c.Error(condition="amqp:unauthorized-access")))
    with pytest.raises(AccessRefused):
        call.value()


@pytest.mark.parametrize(
    ("verb", "arguments", "options", "text"),
    [
        ("declare_exchange", ("x",), {"passive": True}, "passive declaration of an exchange"),
        ("delete_exchange", ("x",), {"if_unused": True}, "exchange.delete with if-unused"),
        ("delete_queue", ("q",), {"if_unused": True}, "queue.delete with if-unused"),
        ("delete_queue", ("q",), {"if_empty": True}, "queue.delete with if-empty"),
    ],
)
def test_what_the_node_cannot_do_is_refused_by_name(
    verb: str, arguments: Any, options: Any, text: str
) -> None:
    with pytest.raises(UnsupportedByVersion, match=rf"AMQP 1\.0 has no {text}"):
        getattr(Broker().session(), verb)(*arguments, **options)


def test_rabbitmq_3_has_no_node_no_drain_and_no_returns() -> None:
    session = Broker(opened=RABBITMQ_3).session()
    with pytest.raises(UnsupportedByVersion, match=r"queue\.declare with RabbitMQ before 4\.0"):
        session.declare_queue("q")
    with pytest.raises(UnsupportedByVersion, match=r"basic\.get with RabbitMQ before 4\.0"):
        session.get("q")
    with pytest.raises(UnsupportedByVersion, match=r"basic\.return with RabbitMQ before 4\.0"):
        publish(session, mandatory=True)
