"""Leases of a running broker: listed, counted with their queue, and released by an operator."""

from __future__ import annotations

import pytest

from harebell.client.blocking import connect
from harebell.client.errors import LeaseLost
from tests.cli.conftest import done, error_of, listed, run
from tests.running import RunningBroker


def test_an_operator_sees_leases_and_releases_them(broker: RunningBroker) -> None:
    with connect(broker.address()) as connection:
        channel = connection.channel()
        channel.declare_queue("leased", durable=True)
        channel.publish_many([b"1", b"2", b"3"], routing_key="leased", delivery_mode=2)
        epoch = channel.lease_open("leased", "billing", timeout=60).epoch
        channel.lease_claim("leased", "billing", epoch, 2)
        (row,) = [each for each in listed(broker, "leases") if each["queue"] == "leased"]
        assert (row["group"], row["claims"], row["messages"]) == ("billing", 1, 2)
        assert (row["epoch"], row["committed"], row["timeout"]) == (1, 0, 60.0)
        (queue,) = [each for each in listed(broker, "queues") if each["name"] == "leased"]
        assert (queue["messages_ready"], queue["messages_leased"], queue["messages"]) == (1, 2, 3)
        assert "messages leased" in done(broker, "status")
        text = done(broker, "leases", "release", "leased", "billing")
        assert text == "group 'billing' of queue 'leased' was released: 2 messages went back"
        with pytest.raises(LeaseLost):
            channel.lease_commit("leased", "billing", epoch, 1)
        done(broker, "leases", "release", "leased", "billing", "--forget")
        assert not [each for each in listed(broker, "leases") if each["queue"] == "leased"]
        connection.channel().delete_queue("leased")


def test_a_group_that_there_is_not_is_named(broker: RunningBroker) -> None:
    told = error_of(run(broker, "leases", "release", "none", "g"))
    assert told.endswith("refused: no queue 'none' in vhost '/': `harebell queues list` shows all")
