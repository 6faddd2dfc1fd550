"""Selectors of subscriptions of AMQP 0-10."""

from __future__ import annotations

from harebell.wire.v010 import commands as c
from harebell.wire.v010.structs import MessageProperties
from tests.conformance.v010.talk import NOT_ACQUIRED, Talk

RED = {"x-filter-jms-selector": "color = 'red' AND weight >= 2"}


def _send(talk: Talk, body: bytes, color: str) -> None:
    properties = MessageProperties(application_headers={"color": color, "weight": 2})
    talk.publish("", body, properties, routing_key="q")


def test_a_subscription_of_0_10_has_a_selector(talk: Talk) -> None:
    for number, color in enumerate(("blue", "red", "red")):
        _send(talk, b"%d" % number, color)
    talk.subscribe("q", credit=1, arguments=RED)
    talk.sync()
    assert talk.bodies() == [b"1"]
    talk.do(c.MessageFlow("t", 0, 5))
    talk.sync()
    assert talk.bodies() == [b"2"]


def test_a_browser_of_0_10_is_shown_what_it_selects(talk: Talk) -> None:
    for number, color in enumerate(("blue", "red", "blue", "red")):
        _send(talk, b"%d" % number, color)
    talk.subscribe("q", acquire_mode=NOT_ACQUIRED, arguments=RED)
    talk.sync()
    assert talk.bodies() == [b"1", b"3"]
    _send(talk, b"4", "blue")
    _send(talk, b"5", "red")
    talk.sync()
    assert talk.bodies() == [b"5"]


def test_a_wrong_selector_of_0_10_is_an_illegal_argument(talk: Talk) -> None:
    command = c.MessageSubscribe("q", "t", arguments={"x-filter-jms-selector": "a ="})
    talk.fails(command, 531, "the selector is wrong at character 4")


def test_a_binding_of_0_10_has_a_selector(talk: Talk) -> None:
    talk.do(c.ExchangeBind("q", "amq.topic", "k", RED))
    for number, color in enumerate(("blue", "red", "blue")):
        properties = MessageProperties(application_headers={"color": color, "weight": 2})
        talk.publish("amq.topic", b"%d" % number, properties, routing_key="k")
    talk.subscribe("q")
    talk.sync()
    assert talk.bodies() == [b"1"]


def test_a_wrong_selector_of_a_binding_of_0_10_is_an_illegal_argument(talk: Talk) -> None:
    command = c.ExchangeBind("q", "amq.topic", "k", {"x-filter-jms-selector": "a ="})
    talk.fails(command, 531, "the selector is wrong at character 4")
