"""The connection of a query: what it waits for, and what it takes as final."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from harebell.client.errors import NotAllowed
from harebell.client.url import URL
from harebell.spark.reading.broker_connection import BrokerConnection, turned_away
from tests.running import asked, running_broker

PATIENCE = 240.0
"""Seconds that a query waits for a broker that is away."""


def test_a_deleted_virtual_host_ends_a_query_at_once() -> None:
    with running_broker() as broker:
        allow = ("permissions", "set", "guest", ".*", ".*", ".*", "--vhost", "gone")
        for words in (("vhosts", "add", "gone"), allow):
            assert asked(broker, *words).returncode == 0
        url = replace(URL.parse(broker.url), vhost="gone")
        connection = BrokerConnection(url, PATIENCE, "a query")
        connection.call(lambda channel: channel.declare_queue("orders"))
        assert asked(broker, "vhosts", "delete", "gone").returncode == 0
        begun = time.monotonic()
        with pytest.raises(NotAllowed, match="vhost gone not found"):
            connection.call(lambda channel: channel.declare_queue("orders", passive=True))
        assert time.monotonic() - begun < PATIENCE / 2


def test_any_other_refusal_of_a_known_user_is_no_reason_to_end() -> None:
    refused = NotAllowed(530, "NOT_ALLOWED - access to vhost 'v' refused for user 'u'")
    assert turned_away(refused, known=False)
    assert not turned_away(refused, known=True)
