"""An exchange that a RabbitMQ declares here to federate another one."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.errors import ErrorKind, Refusal
from harebell.model.binding import Binding
from harebell.model.exchange.federation_upstream import FederationUpstreamExchange
from tests.unit.model.things import message, queue

DECLARED = {"x-max-hops": 2, "x-downstream-name": "rabbit@b", "x-downstream-vhost": "/"}


@pytest.mark.parametrize(
    ("passed", "goes"),
    [
        (None, True),
        ("no list", True),
        ([], True),
        ([{"cluster-name": "rabbit@c", "vhost": "/"}], True),
        ([{"cluster-name": "rabbit@b", "vhost": "/"}], False),
        ([{"cluster-name": "rabbit@b", "vhost": "other"}], True),
        ([{"cluster-name": "rabbit@b"}], False),
        ([{}, {}], False),
        (["no table"], True),
    ],
)
def test_a_message_does_not_go_back_to_where_it_has_been(passed: Any, goes: bool) -> None:
    exchange = FederationUpstreamExchange("e", arguments=DECLARED)
    destination = queue()
    exchange.bind(Binding(exchange, destination, "k", {}))
    headers = {} if passed is None else {"x-received-from": passed}
    assert list(exchange.match(message(), headers)) == ([destination] if goes else [])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "Argument x-max-hops missing"),
        ({"x-max-hops": "2"}, "Argument x-max-hops must be of type long"),
    ],
)
def test_the_number_of_hops_has_to_be_given(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(Refusal) as caught:
        FederationUpstreamExchange.check_arguments("exchange 'e'", arguments)
    assert caught.value.kind is ErrorKind.PRECONDITION_FAILED
    assert str(caught.value) == text
