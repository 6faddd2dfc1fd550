"""A queue that is shown has the age of its oldest ready message, which the web page draws."""

from __future__ import annotations

import time

import pytest

from harebell.client import blocking
from tests.patience import eventually
from tests.ports import free_port
from tests.running import running_broker
from tests.unit.management.http.asking import Api


@pytest.mark.parametrize("durable", [True, False])
def test_the_age_of_the_oldest_ready_message_is_shown(durable: bool) -> None:
    port = free_port()
    with running_broker("--management-port", str(port)) as broker:
        api = Api(port)
        with blocking.connect(broker.url) as connection:
            channel = connection.channel()
            channel.declare_queue("q", durable=durable)
            assert api.get("/api/queues/%2F/q")["oldest_seconds"] is None
            channel.publish(b"1", routing_key="q")
            assert eventually(lambda: api.get("/api/queues/%2F/q")["oldest_seconds"] > 0.5)
            begun = time.monotonic()
            channel.publish(b"2", routing_key="q")
            assert api.get("/api/queues/%2F/q")["oldest_seconds"] > 0.5
            channel.get("q", no_ack=True)
            # The first one is older than that by half a second.
            age = api.get("/api/queues/%2F/q")["oldest_seconds"]
            assert age < time.monotonic() - begun + 0.25
