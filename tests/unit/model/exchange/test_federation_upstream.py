"""What a federating RabbitMQ declares at its upstream: what goes to it, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.errors import Refusal
from tests.unit.model.things import vhost, with_headers

ARGUMENTS = {"x-max-hops": 2, "x-downstream-name": "down", "x-downstream-vhost": "v"}


@pytest.mark.parametrize(
    ("headers", "goes"),
    [
        ({}, True),
        ({"x-received-from": "odd"}, True),
        ({"x-received-from": ["odd"]}, True),
        ({"x-received-from": [{"cluster-name": "up", "vhost": "v"}]}, True),
        ({"x-received-from": [{"cluster-name": "down", "vhost": "w"}]}, True),
        ({"x-received-from": [{"cluster-name": "down", "vhost": "v"}]}, False),
        ({"x-received-from": [{"cluster-name": "down"}]}, False),
        ({"x-received-from": [{"cluster-name": "a"}, {"cluster-name": "b"}]}, False),
    ],
)
def test_a_message_goes_where_it_has_not_been_and_not_too_far(
    headers: dict[str, Any], goes: bool
) -> None:
    host = vhost()
    there = host.declare_exchange("f", "x-federation-upstream", internal=True, arguments=ARGUMENTS)
    queue = host.declare_queue("q")
    host.bind("f", queue, "")
    host.declare_exchange("x", "topic")
    host.bind("x", there, "a.*")
    message = with_headers(headers, "a.b")
    assert host.router.route(host.exchanges["x"], message) == ((queue,) if goes else ())


def test_a_message_that_may_not_go_does_not_take_the_route_of_one_that_may() -> None:
    host = vhost()
    upstream = host.declare_exchange("f", "x-federation-upstream", arguments=ARGUMENTS)
    queue = host.declare_queue("q")
    host.bind("f", queue, "")
    passed = with_headers({"x-received-from": [{"cluster-name": "down", "vhost": "v"}]}, "k")
    for _ in range(2):
        assert host.router.route(upstream, with_headers({}, "k")) == (queue,)
        assert host.router.route(upstream, passed) == ()


@pytest.mark.parametrize("hops", [None, "2", True, -1])
def test_an_upstream_exchange_needs_a_number_of_hops(hops: Any) -> None:
    arguments = {} if hops is None else {"x-max-hops": hops}
    with pytest.raises(Refusal, match="x-max-hops"):
        vhost().declare_exchange("f", "x-federation-upstream", arguments=arguments)
