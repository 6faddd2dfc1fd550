"""The class exchange of AMQP 0-10."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v010 import commands as c
from harebell.wire.v010.structs import ExchangeBoundResult, ExchangeQueryResult, MessageProperties
from tests.conformance.v010.conftest import Connect010
from tests.conformance.v010.talk import Talk, begin


def test_every_standard_exchange_is_there(talk: Talk) -> None:
    for kind in ("direct", "fanout", "topic", "headers"):
        found = talk.ask(c.ExchangeQuery(f"amq.{kind}"))
        assert found == ExchangeQueryResult(type=kind, durable=True)
    assert talk.ask(c.ExchangeQuery()) == ExchangeQueryResult(type="direct", durable=True)
    assert talk.ask(c.ExchangeQuery("x")) == ExchangeQueryResult(not_found=True)


def test_an_exchange_is_made_asked_for_and_deleted(talk: Talk) -> None:
    talk.do(
        c.ExchangeDeclare("x", "topic", "amq.fanout", auto_delete=True),
        c.ExchangeDeclare("x", "topic", durable=True),
        c.ExchangeDeclare("x", passive=True),
    )
    arguments = {"alternate-exchange": "amq.fanout"}
    assert talk.ask(c.ExchangeQuery("x")) == ExchangeQueryResult("topic", arguments=arguments)
    talk.do(c.ExchangeDelete("x"))
    assert talk.ask(c.ExchangeQuery("x")).not_found


@pytest.mark.parametrize("deletion", [c.ExchangeDelete("wide"), c.QueueDelete("many")])
def test_an_exchange_with_thousands_of_bindings_is_deleted_when_the_command_is_complete(
    talk: Talk, deletion: c.ExchangeDelete | c.QueueDelete
) -> None:
    talk.do(c.ExchangeDeclare("wide", "topic"), c.QueueDeclare("many"))
    talk.do(*[c.ExchangeBind("many", "wide", f"k{number}") for number in range(5000)])
    talk.do(deletion)
    gone = isinstance(deletion, c.ExchangeDelete)
    assert talk.ask(c.ExchangeQuery("wide")).not_found == gone
    assert (talk.ask(c.QueueQuery("many")).queue == "many") == gone
    talk.do(c.ExchangeDeclare("wide", "topic"), c.QueueDeclare("many"))
    found = talk.ask(c.ExchangeBound("wide", "many"))
    assert found.queue_not_matched
    talk.do(c.QueueDelete("many"), c.ExchangeDelete("wide"))


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        (c.ExchangeDeclare("", "direct"), 542, "is empty"),
        (c.ExchangeDeclare("amq.mine", "direct"), 530, "'amq.'"),
        (c.ExchangeDeclare("qpid.mine", "direct"), 530, "'qpid.'"),
        (c.ExchangeDeclare("x", "imaginary"), 404, "unknown exchange type 'imaginary'"),
        (c.ExchangeDeclare("amq.fanout", "direct"), 530, "is of type 'fanout', not 'direct'"),
        (c.ExchangeDeclare("amq.fanout", "direct", passive=True), 530, "is of type 'fanout'"),
        (c.ExchangeDeclare("x", "direct", "missing"), 404, "no exchange 'missing'"),
        (c.ExchangeDeclare("amq.fanout", "fanout", "amq.topic"), 530, "another alternate"),
        (c.ExchangeDeclare("x", passive=True), 404, "no exchange 'x'"),
        (c.ExchangeDeclare("x", "direct", arguments={"odd": 1}), 540, "unknown argument 'odd'"),
        (c.ExchangeDelete(""), 542, "is empty"),
        (c.ExchangeDelete("amq.direct"), 530, "cannot be deleted"),
        (c.ExchangeDelete("x"), 404, "no exchange 'x'"),
        (c.ExchangeBind("", "amq.direct", "k"), 542, "name of the queue is empty"),
        (c.ExchangeBind("missing", "amq.direct", "k"), 404, "no queue 'missing'"),
        (c.ExchangeBind("q", "", "k"), 542, "name of the exchange is empty"),
        (c.ExchangeBind("q", "missing", "k"), 404, "no exchange 'missing'"),
        (c.ExchangeBind("q", "amq.direct", "k", {"odd": 1}), 540, "unknown argument 'odd'"),
        # Bytes that are not UTF-8.
        (
            c.ExchangeBind("q", "amq.direct", "k", {"x\udcd3": 1}),
            540,
            r"unknown argument 'x\udcd3'",
        ),
        (c.ExchangeUnbind("missing", "amq.direct", "k"), 404, "no queue 'missing'"),
        (c.ExchangeUnbind("q", "", "k"), 542, "name of the exchange is empty"),
        (c.ExchangeUnbind("q", "missing", "k"), 404, "no exchange 'missing'"),
        (c.ExchangeUnbind("q", "amq.direct", "k"), 404, "not bound to exchange 'amq.direct'"),
    ],
)
def test_an_impossible_command_ends_the_session(
    talk: Talk, command: Any, code: int, text: str
) -> None:
    talk.fails(command, code, text)


def test_an_exchange_in_use_is_not_deleted(connect010: Connect010) -> None:
    one, two, three, four = begin(connect010(), 4)
    one.do(
        c.QueueDeclare("mine", "amq.fanout"),
        c.ExchangeDeclare("used", "direct"),
        c.ExchangeDeclare("other", "direct", "used"),
        c.ExchangeDeclare("letters", "direct"),
        c.QueueDeclare("theirs", "letters"),
        c.ExchangeBind("mine", "other", "k"),
    )
    two.fails(c.ExchangeDelete("used"), 530, "alternate exchange of exchange 'other'")
    three.fails(c.ExchangeDelete("letters"), 530, "alternate exchange of queue 'theirs'")
    four.fails(c.ExchangeDelete("other", if_unused=True), 406, "in use")
    one.do(
        c.QueueDelete("mine"),
        c.QueueDelete("theirs"),
        c.ExchangeDelete("other", if_unused=True),
        c.ExchangeDelete("used"),
        c.ExchangeDelete("letters"),
    )


def test_binding_again_changes_nothing_not_even_the_arguments(talk: Talk) -> None:
    first = {"x-match": "all", "a": 1}
    talk.do(
        c.ExchangeBind("q", "amq.headers", "k", first),
        c.ExchangeBind("q", "amq.headers", "k", {"x-match": "all", "b": 2}),
    )
    talk.publish("amq.headers", b"a", MessageProperties(application_headers={"a": 1}))
    talk.publish("amq.headers", b"b", MessageProperties(application_headers={"b": 2}))
    talk.do(c.ExchangeUnbind("q", "amq.headers", "k"))
    talk.publish("amq.headers", b"c", MessageProperties(application_headers={"a": 1}))
    talk.subscribe("q")
    assert talk.bodies() == [b"a"]


def test_an_exchange_routes_by_its_type(talk: Talk) -> None:
    talk.do(
        c.ExchangeBind("q", "amq.direct", "d"),
        c.ExchangeBind("q", "amq.topic", "t.#"),
        c.ExchangeBind("q", "amq.topic", "t.*"),
        c.ExchangeBind("q", "amq.fanout", ""),
    )
    for exchange, key in (
        ("amq.direct", "d"),
        ("amq.direct", "e"),
        ("amq.topic", "t.x"),
        ("amq.topic", "u.x"),
        ("amq.fanout", "f"),
    ):
        talk.publish(exchange, f"{exchange} {key}".encode(), routing_key=key)
    talk.subscribe("q")
    found = talk.deliveries()
    assert [each.body for each in found] == [b"amq.direct d", b"amq.topic t.x", b"amq.fanout f"]
    assert [each.header[0].exchange for each in found] == ["amq.direct", "amq.topic", "amq.fanout"]


def test_a_message_without_a_route_goes_to_the_alternate_exchange(talk: Talk) -> None:
    talk.do(
        c.ExchangeDeclare("primary", "direct", "amq.fanout", auto_delete=True),
        c.ExchangeBind("q", "amq.fanout", ""),
    )
    talk.publish("primary", b"x", routing_key="nowhere")
    talk.subscribe("q")
    assert talk.bodies() == [b"x"]
    talk.do(c.ExchangeDelete("primary"))


def test_bindings_can_be_asked_for(talk: Talk) -> None:
    arguments = {"x-match": "any", "a": 1}
    talk.do(
        c.ExchangeBind("q", "amq.direct", "k"),
        c.ExchangeBind("q", "amq.headers", "h", arguments),
        c.QueueDeclare("r", exclusive=True, auto_delete=True),
        c.ExchangeBind("r", "amq.direct", "other"),
    )
    found = ExchangeBoundResult
    for command, result in (
        (c.ExchangeBound("amq.direct", "q", "k"), found()),
        (c.ExchangeBound("amq.direct", "q"), found()),
        (c.ExchangeBound("amq.direct", "", "k"), found()),
        (c.ExchangeBound("amq.headers", "q", "h", arguments), found()),
        (c.ExchangeBound("", "q", "q"), found()),
        (c.ExchangeBound(None, "q", "k"), found(key_not_matched=True)),
        (c.ExchangeBound("missing", "q"), found(exchange_not_found=True)),
        (c.ExchangeBound("amq.direct", "missing"), found(queue_not_found=True)),
        (
            c.ExchangeBound("missing", "missing"),
            found(exchange_not_found=True, queue_not_found=True),
        ),
        (c.ExchangeBound("amq.fanout", "q"), found(queue_not_matched=True)),
        (c.ExchangeBound("amq.direct", "q", "nothing"), found(key_not_matched=True)),
        (
            c.ExchangeBound("amq.direct", "q", "other"),
            found(queue_not_matched=True, key_not_matched=True),
        ),
        (
            c.ExchangeBound("amq.headers", "q", "h", {"x-match": "all"}),
            found(args_not_matched=True),
        ),
    ):
        assert talk.ask(command) == result, command
