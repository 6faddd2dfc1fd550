"""The access class: old clients ask for a ticket and get one."""

from __future__ import annotations

from harebell.wire.v09 import methods as m
from tests.unit.front.amqp_0_9_1.world import World


def test_a_ticket_is_given_to_whoever_asks() -> None:
    assert World().peer().ask(m.AccessRequest("/data")) == m.AccessRequestOk()
