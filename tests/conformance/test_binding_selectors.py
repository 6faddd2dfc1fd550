"""Selectors of bindings, as clients of each version see them."""

from __future__ import annotations

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.conformance.conftest import StartSite
from tests.conformance.raw import Peer

RED = {"x-filter-jms-selector": "color = 'red' AND weight >= 2"}


def _publish(peer: Peer, body: bytes, color: str, exchange: str, **options: bool) -> None:
    headers = {"color": color, "weight": 2}
    peer.publish(exchange, "k", body, BasicProperties(headers=headers), **options)


def test_a_queue_gets_what_the_selector_of_its_binding_selects(peer: Peer, name: str) -> None:
    peer.queue(name)
    peer.ask(m.QueueBind(name, "amq.topic", "#", arguments=RED))
    for number, color in enumerate(("red", "blue", "red")):
        _publish(peer, b"%d" % number, color, "amq.topic")
    assert peer.count(name) == 2
    assert [peer.get(name).body for _ in range(2)] == [b"0", b"2"]
    peer.ask(m.QueueUnbind(name, "amq.topic", "#", arguments=RED))
    _publish(peer, b"3", "red", "amq.topic")
    assert peer.count(name) == 0


def test_a_mandatory_message_that_nothing_selects_is_returned(peer: Peer, name: str) -> None:
    peer.queue(name)
    peer.ask(m.ExchangeDeclare(name, "direct"))
    peer.ask(m.QueueBind(name, name, "k", arguments=RED))
    _publish(peer, b"0", "red", name, mandatory=True)
    _publish(peer, b"1", "blue", name, mandatory=True)
    assert peer.expect_content(m.BasicReturn, reply_code=312).body == b"1"
    assert peer.count(name) == 1


def test_a_transaction_routes_by_the_selector(peer: Peer, name: str) -> None:
    peer.queue(name)
    peer.ask(m.QueueBind(name, "amq.direct", "k", arguments=RED))
    peer.ask(m.TxSelect())
    for number, color in enumerate(("red", "blue")):
        _publish(peer, b"%d" % number, color, "amq.direct")
    peer.ask(m.TxCommit())
    assert peer.count(name) == 1


@pytest.mark.parametrize(
    ("kind", "key", "selector", "text"),
    [
        (
            "direct",
            "k",
            "color = = 'red'",
            "invalid arg 'x-filter-jms-selector' of the binding: the selector is wrong at "
            "character 9: a column or a value is missing before '='",
        ),
        (
            "x-consistent-hash",
            "1",
            "color = 'red'",
            "invalid arg 'x-filter-jms-selector' of the binding: an exchange of type "
            "x-consistent-hash chooses one binding for each message, whatever its selector is: "
            "bind without it",
        ),
    ],
)
def test_a_wrong_selector_closes_the_channel_with_its_place(
    peer: Peer, name: str, kind: str, key: str, selector: str, text: str
) -> None:
    peer.queue(name)
    peer.ask(m.ExchangeDeclare(name, kind))
    arguments = {"x-filter-jms-selector": selector}
    peer.send(m.QueueBind(name, name, key, arguments=arguments))
    peer.expect_channel_close(406, f"PRECONDITION_FAILED - {text}", "queue.bind")


def test_the_selector_of_a_durable_binding_outlives_the_broker(start_site: StartSite) -> None:
    site = start_site()
    peer = Peer(site, site.connect()).open()
    peer.queue("q", durable=True)
    peer.ask(m.QueueBind("q", "amq.direct", "k", arguments=RED))
    peer.done()
    site.close()
    site = start_site()
    peer = Peer(site, site.connect()).open()
    for number, color in enumerate(("blue", "red")):
        _publish(peer, b"%d" % number, color, "amq.direct")
    assert peer.count("q") == 1
    assert peer.get("q").body == b"1"
    peer.done()
    site.close()
