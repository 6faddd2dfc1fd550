"""pika: exchanges of every kind, queues, bindings, and the errors that declaring wrongly gives."""

from __future__ import annotations

from collections.abc import Iterator

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.interop.clients.conftest import Names
from tests.interop.clients.pikas import bodies, channel_closes, connected
from tests.running import RunningBroker

pytestmark = pytest.mark.interop


@pytest.fixture
def channel(broker: RunningBroker) -> Iterator[BlockingChannel]:
    with connected(broker) as connection:
        yield connection.channel()


def _queue(channel: BlockingChannel, name: str = "") -> str:
    queue: str = channel.queue_declare(name, exclusive=True).method.queue
    return queue


def test_direct_exchange_routes_by_equal_key(channel: BlockingChannel, name: Names) -> None:
    exchange = name("direct")
    channel.exchange_declare(exchange, "direct")
    red, both = _queue(channel), _queue(channel)
    channel.queue_bind(red, exchange, "red")
    for key in ("red", "blue"):
        channel.queue_bind(both, exchange, key)
    for key in ("red", "blue", "green", "re", "redd"):
        channel.basic_publish(exchange, key, key.encode())
    assert bodies(channel, red) == [b"red"]
    assert bodies(channel, both) == [b"red", b"blue"]


def test_fanout_exchange_gives_one_copy_to_each_queue(
    channel: BlockingChannel, name: Names
) -> None:
    exchange = name("fanout")
    channel.exchange_declare(exchange, "fanout", durable=True)
    queues = [_queue(channel) for _ in range(3)]
    for queue in queues:
        channel.queue_bind(queue, exchange, "a")
        channel.queue_bind(queue, exchange, "b")
    channel.basic_publish(exchange, "whatever", b"once")
    assert [bodies(channel, queue) for queue in queues] == [[b"once"]] * 3


def test_consistent_hash_exchange_spreads_by_weight(channel: BlockingChannel, name: Names) -> None:
    exchange = name("hash")
    arguments = {"hash-property": "message_id"}
    channel.exchange_declare(exchange, "x-consistent-hash", arguments=arguments)
    light, heavy = _queue(channel), _queue(channel)
    channel.queue_bind(light, exchange, "1")
    channel.queue_bind(heavy, exchange, "3")
    for number in range(400):
        properties = pika.BasicProperties(message_id=f"order-{number}")
        channel.basic_publish(exchange, "", b"", properties)
    few, many = len(bodies(channel, light)), len(bodies(channel, heavy))
    assert few + many == 400
    assert 60 < few < 140


TOPICS = [
    ("*.orange.*", {"quick.orange.rabbit", "lazy.orange.elephant"}),
    ("lazy.#", {"lazy.orange.elephant", "lazy.pink.rabbit", "lazy", "lazy.brown.fox.jumps"}),
    ("*.*.rabbit", {"quick.orange.rabbit", "lazy.pink.rabbit"}),
    ("#.fox.#", {"quick.brown.fox", "lazy.brown.fox.jumps", "fox"}),
    ("*", {"lazy", "fox"}),
    ("a..b", {"a..b"}),
    ("a.*.b", {"a..b"}),
]
TOPIC_KEYS = [
    "quick.orange.rabbit",
    "lazy.orange.elephant",
    "quick.brown.fox",
    "lazy.brown.fox.jumps",
    "lazy.pink.rabbit",
    "lazy",
    "fox",
    "",
    "a..b",
]


@pytest.mark.parametrize(("pattern", "expected"), [*TOPICS, ("#", set(TOPIC_KEYS))])
def test_topic_exchange_matches_words(
    channel: BlockingChannel, name: Names, pattern: str, expected: set[str]
) -> None:
    exchange, queue = name("topic"), _queue(channel)
    channel.exchange_declare(exchange, "topic")
    channel.queue_bind(queue, exchange, pattern)
    for key in TOPIC_KEYS:
        channel.basic_publish(exchange, key, key.encode())
    assert bodies(channel, queue) == [key.encode() for key in TOPIC_KEYS if key in expected]


HEADERS = [
    ({"x-match": "all", "format": "pdf", "pages": 3}, ["pdf3"]),
    ({"x-match": "any", "format": "pdf", "pages": 3}, ["pdf3", "pdf4", "zip3"]),
    ({"format": "pdf"}, ["pdf3", "pdf4"]),
    ({"x-match": "all", "pages": "3"}, []),
    ({"x-match": "any", "pages": None}, ["pdf3", "pdf4", "zip3"]),
]


@pytest.mark.parametrize(("arguments", "expected"), HEADERS)
def test_headers_exchange_compares_headers(
    channel: BlockingChannel, name: Names, arguments: dict[str, object], expected: list[str]
) -> None:
    exchange, queue = name("headers"), _queue(channel)
    channel.exchange_declare(exchange, "headers")
    channel.queue_bind(queue, exchange, "", arguments=arguments)
    for kind, pages in (("pdf", 3), ("pdf", 4), ("zip", 3)):
        about = pika.BasicProperties(headers={"format": kind, "pages": pages})
        channel.basic_publish(exchange, "", f"{kind}{pages}".encode(), about)
    channel.basic_publish(exchange, "", b"no headers at all")
    assert bodies(channel, queue) == [body.encode() for body in expected]


def test_default_exchange_routes_by_queue_name(channel: BlockingChannel, name: Names) -> None:
    queue = _queue(channel, name("orders"))
    channel.basic_publish("", queue, b"found")
    channel.basic_publish("", queue + "x", b"lost")
    assert bodies(channel, queue) == [b"found"]


@pytest.mark.parametrize(
    ("exchange", "kind"),
    [
        ("amq.direct", "direct"),
        ("amq.fanout", "fanout"),
        ("amq.topic", "topic"),
        ("amq.headers", "headers"),
        ("amq.match", "headers"),
    ],
)
def test_predeclared_exchange_is_there_and_durable(
    channel: BlockingChannel, exchange: str, kind: str
) -> None:
    channel.exchange_declare(exchange, kind, durable=True)
    queue = _queue(channel)
    channel.queue_bind(queue, exchange, queue, arguments={"only": queue})
    about = pika.BasicProperties(headers={"only": queue})
    channel.basic_publish(exchange, queue, b"here", about)
    assert bodies(channel, queue) == [b"here"]


def test_alternate_exchange_takes_what_matches_nothing(
    channel: BlockingChannel, name: Names
) -> None:
    main, spare = name("main"), name("spare")
    channel.exchange_declare(spare, "fanout")
    channel.exchange_declare(main, "direct", arguments={"alternate-exchange": spare})
    known, rest = _queue(channel), _queue(channel)
    channel.queue_bind(known, main, "known")
    channel.queue_bind(rest, spare, "")
    channel.basic_publish(main, "known", b"1")
    channel.basic_publish(main, "unknown", b"2", mandatory=True)
    assert bodies(channel, known) == [b"1"]
    method, _, body = channel.basic_get(rest, auto_ack=True)
    assert (method.exchange, method.routing_key, body) == (main, "unknown", b"2")


def test_exchange_bound_to_exchange_passes_messages_on_until_unbound(
    channel: BlockingChannel, name: Names
) -> None:
    source, target, queue = name("source"), name("target"), _queue(channel)
    channel.exchange_declare(source, "topic")
    channel.exchange_declare(target, "fanout", internal=True)
    channel.exchange_bind(target, source, "a.*")
    channel.queue_bind(queue, target)
    channel.basic_publish(source, "a.b", b"passed")
    channel.basic_publish(source, "b.a", b"not matched")
    channel.exchange_unbind(target, source, "a.*")
    channel.basic_publish(source, "a.b", b"after")
    assert bodies(channel, queue) == [b"passed"]


def test_two_paths_to_a_queue_give_one_copy(channel: BlockingChannel, name: Names) -> None:
    source, target, queue = name("source"), name("target"), _queue(channel)
    channel.exchange_declare(source, "fanout")
    channel.exchange_declare(target, "fanout")
    channel.exchange_bind(target, source)
    channel.exchange_bind(source, target)
    channel.queue_bind(queue, source)
    channel.queue_bind(queue, target)
    channel.basic_publish(source, "", b"round and round")
    assert bodies(channel, queue) == [b"round and round"]


def test_unbind_stops_the_routing(channel: BlockingChannel, name: Names) -> None:
    exchange, queue = name("direct"), _queue(channel)
    channel.exchange_declare(exchange, "direct")
    channel.queue_bind(queue, exchange, "k")
    channel.basic_publish(exchange, "k", b"before")
    channel.queue_unbind(queue, exchange, "k")
    channel.basic_publish(exchange, "k", b"after")
    assert bodies(channel, queue) == [b"before"]


def test_auto_delete_exchange_goes_with_its_last_binding(
    channel: BlockingChannel, name: Names
) -> None:
    exchange, queue = name("brief"), _queue(channel)
    channel.exchange_declare(exchange, "fanout", auto_delete=True)
    channel.queue_bind(queue, exchange)
    channel.queue_unbind(queue, exchange)
    with channel_closes(404, f"NOT_FOUND - no exchange '{exchange}' in vhost '/'"):
        channel.exchange_declare(exchange, passive=True)


def test_declare_reports_messages_and_consumers(channel: BlockingChannel, name: Names) -> None:
    queue = name("counted")
    first = channel.queue_declare(queue, auto_delete=True).method
    assert (first.queue, first.message_count, first.consumer_count) == (queue, 0, 0)
    channel.basic_qos(prefetch_count=1)
    channel.basic_consume(queue, lambda *_: None)
    for _ in range(3):
        channel.basic_publish("", queue, b"x")
    again = channel.queue_declare(queue, passive=True).method
    assert (again.message_count, again.consumer_count) == (2, 1)
    assert channel.queue_purge(queue).method.message_count == 2
    assert channel.queue_delete(queue).method.message_count == 0


def test_server_names_a_queue_and_the_empty_name_means_it(channel: BlockingChannel) -> None:
    queue = _queue(channel)
    assert queue.startswith("amq.gen-")
    channel.queue_bind("", "amq.fanout")
    channel.basic_publish("amq.fanout", "", b"hello")
    assert b"hello" in bodies(channel, "")


def test_auto_delete_queue_goes_with_its_last_consumer(
    channel: BlockingChannel, name: Names
) -> None:
    queue = name("brief")
    channel.queue_declare(queue, auto_delete=True)
    tags = [channel.basic_consume(queue, lambda *_: None) for _ in range(2)]
    channel.basic_cancel(tags[0])
    assert channel.queue_declare(queue, passive=True).method.consumer_count == 1
    channel.basic_cancel(tags[1])
    with channel_closes(404, f"NOT_FOUND - no queue '{queue}' in vhost '/'"):
        channel.queue_declare(queue, passive=True)


def test_exclusive_queue_ends_with_its_connection(
    broker: RunningBroker, channel: BlockingChannel, name: Names
) -> None:
    queue = name("mine")
    with connected(broker) as other:
        other.channel().queue_declare(queue, exclusive=True)
    with channel_closes(404, f"NOT_FOUND - no queue '{queue}' in vhost '/'"):
        channel.queue_declare(queue, passive=True)


def test_deleting_what_is_not_there_is_fine(channel: BlockingChannel, name: Names) -> None:
    assert channel.queue_delete(name("nowhere")).method.message_count == 0
    channel.exchange_delete(name("nowhere"))
    channel.queue_unbind(name("nowhere"), "amq.direct", "k")


def test_delete_if_unused_and_if_empty_refuse(
    broker: RunningBroker, channel: BlockingChannel, name: Names
) -> None:
    queue = name("busy")
    channel.queue_declare(queue)
    channel.basic_publish("", queue, b"x", mandatory=True)
    with connected(broker) as other:
        with channel_closes(406, f"PRECONDITION_FAILED - queue '{queue}' in vhost '/' not empty"):
            other.channel().queue_delete(queue, if_empty=True)
        channel.basic_consume(queue, lambda *_: None)
        with channel_closes(406, f"PRECONDITION_FAILED - queue '{queue}' in vhost '/' in use"):
            other.channel().queue_delete(queue, if_unused=True)
    assert channel.queue_delete(queue).method.message_count == 0


def test_missing_things_are_not_found(broker: RunningBroker, name: Names) -> None:
    missing = name("missing")
    no_queue = f"NOT_FOUND - no queue '{missing}' in vhost '/'"
    no_exchange = f"NOT_FOUND - no exchange '{missing}' in vhost '/'"
    with connected(broker) as connection:
        with channel_closes(404, no_queue):
            connection.channel().queue_declare(missing, passive=True)
        with channel_closes(404, no_queue):
            connection.channel().basic_get(missing)
        with channel_closes(404, no_queue):
            connection.channel().basic_consume(missing, lambda *_: None)
        with channel_closes(404, no_queue):
            connection.channel().queue_purge(missing)
        with channel_closes(404, no_exchange):
            connection.channel().exchange_declare(missing, passive=True)
        with channel_closes(404, no_exchange):
            publishing = connection.channel()
            publishing.confirm_delivery()
            publishing.basic_publish(missing, "k", b"x")
        assert connection.is_open, "a channel's error must not end the connection"


def test_redeclaring_differently_fails_the_precondition(broker: RunningBroker, name: Names) -> None:
    queue, exchange = name("orders"), name("orders")
    with connected(broker) as connection:
        channel = connection.channel()
        channel.queue_declare(queue, auto_delete=True, arguments={"x-max-length": 10})
        channel.queue_declare(queue, auto_delete=True, arguments={"x-max-length": 10})
        channel.exchange_declare(exchange, "direct", auto_delete=True)
        with channel_closes(
            406,
            f"PRECONDITION_FAILED - inequivalent arg 'durable' for queue '{queue}' in vhost '/': "
            "received 'true' but current is 'false'",
        ):
            connection.channel().queue_declare(queue, durable=True, auto_delete=True)
        with channel_closes(
            406,
            f"PRECONDITION_FAILED - inequivalent arg 'x-max-length' for queue '{queue}' "
            "in vhost '/': received '11' but current is '10'",
        ):
            connection.channel().queue_declare(
                queue, auto_delete=True, arguments={"x-max-length": 11}
            )
        with channel_closes(
            406,
            f"PRECONDITION_FAILED - inequivalent arg 'type' for exchange '{exchange}' "
            "in vhost '/': received 'fanout' but current is 'direct'",
        ):
            connection.channel().exchange_declare(exchange, "fanout", auto_delete=True)
        with channel_closes(406, "PRECONDITION_FAILED - unknown exchange type 'nonsense'"):
            connection.channel().exchange_declare(name("x"), "nonsense")
        channel.queue_delete(queue)
        channel.exchange_delete(exchange)


def test_reserved_names_and_internal_exchanges_are_refused(
    broker: RunningBroker, name: Names
) -> None:
    inside = name("inside")
    with connected(broker) as connection:
        with channel_closes(
            403,
            "ACCESS_REFUSED - queue name 'amq.orders' contains reserved prefix 'amq.*'",
        ):
            connection.channel().queue_declare("amq.orders")
        with channel_closes(
            403,
            "ACCESS_REFUSED - exchange name 'amq.orders' contains reserved prefix 'amq.*'",
        ):
            connection.channel().exchange_declare("amq.orders")
        with channel_closes(
            403, "ACCESS_REFUSED - deletion of system exchange 'amq.topic' in vhost '/' not allowed"
        ):
            connection.channel().exchange_delete("amq.topic")
        channel = connection.channel()
        channel.exchange_declare(inside, internal=True)
        channel.confirm_delivery()
        with channel_closes(
            403,
            f"ACCESS_REFUSED - cannot publish to internal exchange '{inside}' in vhost '/'",
        ):
            channel.basic_publish(inside, "k", b"x")


def test_exclusive_queue_is_locked_for_other_connections(
    broker: RunningBroker, channel: BlockingChannel, name: Names
) -> None:
    queue = _queue(channel, name("mine"))
    locked = (
        f"RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{queue}' in vhost "
        "'/'. It could be originally declared on another connection or the exclusive property "
        "value does not match that of the original declaration."
    )
    with connected(broker) as other:
        for attempt in (
            lambda: other.channel().queue_declare(queue, exclusive=True),
            lambda: other.channel().queue_declare(queue, passive=True),
            lambda: other.channel().queue_bind(queue, "amq.fanout"),
            lambda: other.channel().basic_get(queue),
            lambda: other.channel().basic_consume(queue, lambda *_: None),
            lambda: other.channel().queue_purge(queue),
            lambda: other.channel().queue_delete(queue),
        ):
            with channel_closes(405, locked):
                attempt()
        other.channel().basic_publish("", queue, b"publishing is allowed")
    assert bodies(channel, queue) == [b"publishing is allowed"]
