"""A broker with what a shop may have: exchanges, queues, a stream, policies, users and traffic."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import pika

from harebell.client import blocking
from harebell.client.blocking import Channel
from tests.ports import free_port
from tests.running import RunningBroker, running_broker
from tests.unit.management.http.asking import Api

PAUSE_SECONDS = 0.05
_QUEUES = {
    "orders.eu": {"x-dead-letter-exchange": "dead", "x-dead-letter-routing-key": "failed"},
    "orders.us": {"x-queue-type": "quorum", "x-delivery-limit": 5},
    "orders.failed": {},
    "orders.unrouted": {},
    "events": {"x-queue-type": "stream"},
}
_BINDINGS = (
    ("orders.eu", "orders", "eu.#"),
    ("orders.us", "orders", "us.#"),
    ("events", "orders", "#"),
    ("orders.failed", "dead", "failed"),
    ("orders.unrouted", "unrouted", ""),
)


class Site(NamedTuple):
    """A broker with its web interface.

    Args:
        base: where the web interface is.
        api: its HTTP API.
        broker: its process.
    """

    base: str
    api: Api
    broker: RunningBroker


@contextmanager
def serving(*flags: str, env: Mapping[str, str] | None = None) -> Iterator[Site]:
    """A broker with a web interface, for the length of a block."""
    port = free_port()
    with running_broker("--management-port", str(port), *flags, env=env) as broker:
        yield Site(f"http://127.0.0.1:{port}/", Api(port), broker)


@contextmanager
def shop() -> Iterator[Site]:
    """A broker whose queues fill and empty, for the length of a block."""
    with serving("--collect-statistics-interval", "1000") as site:
        _set_up(site.api)
        parameters = pika.ConnectionParameters(
            port=site.broker.port, client_properties={"connection_name": "shop"}
        )
        link = pika.BlockingConnection(parameters)
        _declare(link)
        _report(site.broker.address() + "/%2F")
        stop = threading.Event()
        busy = threading.Thread(target=_trade, args=(link, stop), daemon=True)
        busy.start()
        try:
            yield site
        finally:
            stop.set()
            busy.join()
            link.close()


def _set_up(api: Api) -> None:
    api.user("ada", "monitoring", vhost="/")
    api.done("PUT", "/api/vhosts/billing", {"description": "invoices"})
    rule = {"exchange": "orders", "write": "^eu[.]", "read": ".*"}
    api.done("PUT", "/api/topic-permissions/%2F/ada", rule)
    policy = {"pattern": "^orders", "definition": {"max-length": 50_000}, "apply-to": "queues"}
    api.done("PUT", "/api/policies/%2F/bounded", policy)
    api.done("PUT", "/api/vhost-limits/billing/max-queues", {"value": 100})
    api.done("PUT", "/api/user-limits/ada/max-connections", {"value": 10})


def _report(url: str) -> None:
    """One query runs, another one has failed."""
    with blocking.connect(url) as connection:
        channel = connection.channel()
        facts = {"batch": 41, "rows_per_second": 1_250.5, "lag_messages": 300, "lag_seconds": 0.24}
        channel.report_query("orders-to-lake", facts | {"sources": ["orders.eu"], "interval": 3600})
        error = "no space left for table daily"
        _lease(channel)
        channel.report_query(
            "table-daily", {"state": "failed", "error": error, "sources": ["events"]}
        )


def _declare(link: pika.BlockingConnection) -> None:
    channel = link.channel()
    other = {"alternate-exchange": "unrouted"}
    channel.exchange_declare("orders", "topic", durable=True, arguments=other)
    channel.exchange_declare("unrouted", "fanout", durable=True)
    channel.exchange_declare("dead", "direct", durable=True)
    for name, arguments in _QUEUES.items():
        channel.queue_declare(name, durable=True, arguments=arguments)
    for queue, exchange, key in _BINDINGS:
        channel.queue_bind(queue, exchange, key)
    channel.close()


def _lease(channel: Channel) -> None:
    """A group claims messages of a queue, and keeps its claim."""
    channel.publish_many([b"1", b"2", b"3"], routing_key="orders.failed", delivery_mode=2)
    epoch = channel.lease_open("orders.failed", "audit", timeout=3600).epoch
    channel.lease_claim("orders.failed", "audit", epoch, 2)


def _trade(link: pika.BlockingConnection, stop: threading.Event) -> None:
    channel = link.channel()
    channel.basic_qos(prefetch_count=20)

    def handle(_channel: object, method: pika.spec.Basic.Deliver, *_: object) -> None:
        if method.delivery_tag % 17 == 0:
            channel.basic_reject(method.delivery_tag, requeue=False)
        else:
            channel.basic_ack(method.delivery_tag)

    channel.basic_consume("orders.eu", handle, consumer_tag="eu-worker")
    first = {"x-stream-offset": "first"}
    channel.basic_consume("events", handle, consumer_tag="reports", arguments=first)
    for number in itertools.count():
        if stop.is_set():
            return
        body = json.dumps({"id": number, "total": number * 10 % 977, "currency": "EUR"}).encode()
        headers = {"tenant": "acme", "attempt": number % 3}
        properties = pika.BasicProperties(
            content_type="application/json", delivery_mode=2, headers=headers
        )
        key = f"{('eu', 'us', 'asia')[number % 3]}.order.created"
        channel.basic_publish("orders", key, body, properties)
        link.process_data_events(PAUSE_SECONDS)
