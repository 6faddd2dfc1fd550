"""Rows of a batch go to their queues slice by slice, in their order, and are seen together."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from harebell.base.errors import BatchError
from harebell.kernels.rows import Rows
from harebell.model.dedup_cache import HEADER
from harebell.model.publishing.routed import Routed
from harebell.model.queue.contract import Queue
from harebell.model.vhost import VHost
from harebell.wire.arrow.decode import decode_batch
from tests.unit.model.things import message, vhost, with_headers

COLUMNS = ("value", "exchange", "routing_key", "properties")
FIELDS = ("expiration",)


def rows(*where: tuple[str, str], expires: int = -1) -> Rows:
    """Rows with their number as body, each to an exchange with a routing key."""
    expiration = ["1000" if number == expires else None for number in range(len(where))]
    batch = pa.record_batch(
        {
            "value": [b"%d" % number for number in range(len(where))],
            "exchange": [exchange for exchange, _ in where],
            "routing_key": [key for _, key in where],
            "properties": pa.StructArray.from_arrays(
                [pa.array(expiration, pa.string())], names=list(FIELDS)
            ),
        }
    )
    data = batch.serialize().to_pybytes()
    made = Rows(COLUMNS, FIELDS, "", "", 2)
    made.load(data, *decode_batch(data, COLUMNS, FIELDS))
    return made


def world(**arguments: Any) -> tuple[VHost, Queue, Routed]:
    """A vhost with queue q, also behind amq.direct, and both exchanges plain."""
    where = vhost()
    named = {name.replace("_", "-"): value for name, value in arguments.items()}
    queue = where.declare_queue("q", durable=True, arguments=named)
    where.bind("amq.direct", queue, "k")
    routed = Routed()
    for name in ("", "amq.direct"):
        routed.plain[name] = where.exchange(name)
    return where, queue, routed


def taken(queue: Queue) -> list[bytes]:
    found = []
    while (got := queue.get()) is not None:
        found.append(got[0].body)
    return found


def test_nothing_is_seen_before_all_of_it_is_in_its_order() -> None:
    where, queue, routed = world()
    every = rows(("", "q"), ("amq.direct", "k"), ("amq.direct", "nobody"), ("", "q"))
    assert routed.take(every, 0, 1, where.router) == 1
    assert routed.take(every, 1, 4, where.router) == 4
    assert queue.ready_count() == 0
    assert [lost.body for lost in routed.lost] == [b"2"]
    assert routed.counts == {"": 2, "amq.direct": 2}
    routed.commit_batch()
    assert taken(queue) == [b"0", b"1", b"3"]
    assert routed.queues == []


def test_rows_of_a_batch_that_is_refused_go_from_every_queue() -> None:
    where, queue, routed = world()
    routed.take(rows(("", "q"), ("amq.direct", "k")), 0, 2, where.router)
    queue.publish(message(body=b"another"))
    routed.roll_back_batch()
    assert taken(queue) == [b"another"]
    assert routed.queues == []


def test_a_row_that_needs_more_than_a_route_is_left_to_somebody_else() -> None:
    where, _, routed = world()
    every = rows(("", "q"), ("amq.topic", "k"), ("", "q"), ("", "q"), expires=2)
    assert routed.take(every, 0, 4, where.router) == 1, "amq.topic is not plain"
    assert routed.take(every, 2, 4, where.router) == 2, "it expires"
    assert routed.take(every, 3, 4, where.router) == 4
    assert routed.counts == {"": 2}


def test_a_row_that_is_no_message_is_an_error() -> None:
    where, _, routed = world()
    with pytest.raises(BatchError, match="row 1: "):
        routed.take(rows(("", "q"), ("", "k" * 256)), 0, 2, where.router)


@pytest.mark.parametrize("kind", ["classic", "quorum", "stream"])
def test_rows_that_differ_in_their_bodies_only_are_appended_together(kind: str) -> None:
    where, queue, routed = world(x_queue_type=kind)
    other = where.declare_queue("other")
    where.bind("amq.direct", other, "k")
    queue.publish(message(body=b"before"))
    every = rows(*[("amq.direct", "k")] * 5, *[("", "q")] * 3, ("amq.direct", "nobody"))
    assert routed.take(every, 0, 9, where.router) == 9
    queue.publish(message(body=b"between"))
    assert routed.take(rows(*[("", "q")] * 2), 0, 2, where.router) == 2
    assert routed.single == 1, "the row that nobody gets"
    assert routed.counts == {"amq.direct": 6, "": 5}
    assert where.exchange("amq.direct").routed == 10
    assert queue.counters.publish == 2 + 10
    assert other.ready_count() == 0
    routed.commit_batch()
    assert taken(other) == [b"%d" % number for number in range(5)]
    assert queue.arrivals() == {"": 5 + 2, "amq.direct": 5}
    if kind != "stream":
        order = [b"before", *(b"%d" % number for number in range(8)), b"between", b"0", b"1"]
        assert taken(queue) == order


@pytest.mark.parametrize("kind", ["classic", "quorum", "stream"])
def test_rows_that_were_appended_together_are_removed_together(kind: str) -> None:
    where, queue, routed = world(x_queue_type=kind)
    before = queue.ready_count()
    routed.take(rows(*[("", "q")] * 5), 0, 5, where.router)
    queue.publish(message(body=b"between"))
    routed.take(rows(*[("", "q")] * 5), 0, 5, where.router)
    routed.roll_back_batch()
    assert queue.ready_count() == before + 1


def test_each_row_finds_its_own_route_where_the_key_alone_does_not_decide() -> None:
    where, queue, routed = world()
    where.declare_exchange("any", "x-random")
    routed.plain["any"] = where.exchange("any")
    for name in ("q", "r"):
        where.bind("any", where.declare_queue(name, durable=True), "")
    routed.take(rows(*[("any", "")] * 200), 0, 200, where.router)
    assert routed.single == 200
    routed.commit_batch()
    assert 0 < queue.ready_count() < 200


def test_rows_of_a_queue_with_a_message_ttl_expire() -> None:
    where, queue, routed = world(x_message_ttl=1000)
    routed.take(rows(*[("", "q")] * 3), 0, 3, where.router)
    routed.commit_batch()
    found = queue.get()
    assert found is not None
    assert found[0].due > 0


@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize(
    ("limit", "overflow"), [(2, "reject-publish"), (2, "drop-head"), (9, "reject-publish")]
)
def test_only_a_queue_that_refuses_what_is_too_much_has_no_room(
    kind: str, limit: int, overflow: str
) -> None:
    where, queue, routed = world(x_queue_type=kind, x_max_length=limit, x_overflow=overflow)
    routed.take(rows(*[("", "q")] * 4), 0, 4, where.router)
    refuses = overflow == "reject-publish"
    assert queue.may_refuse() is refuses
    assert routed.has_room() is (not refuses or limit > 4)


@pytest.mark.parametrize("committed", [True, False])
def test_a_deduplicating_exchange_knows_the_values_of_a_batch_that_was_committed(
    committed: bool,
) -> None:
    where, queue, routed = world()
    exchange = where.declare_exchange(
        "once", "x-message-deduplication", arguments={"x-cache-size": 9}
    )
    where.bind("once", queue, "")
    for number, value in enumerate(("a", "b", "a")):
        row = with_headers({HEADER: value}, body=b"%d" % number, exchange="once")
        routed.put(row, where.router.route(exchange, row))
    if committed:
        routed.commit_batch()
    else:
        routed.roll_back_batch()
    assert len(taken(queue)) == (2 if committed else 0)
    # As a publish of the duplicate would be.
    assert [lost.body for lost in routed.lost] == [b"2"]
    assert exchange.routed == -1  # `put` counts what is different
    for value, known in (("a", committed), ("b", committed), ("c", False)):
        found = where.router.route(exchange, with_headers({HEADER: value}, exchange="once"))
        assert found == (() if known else (queue,))


def test_a_duplicate_of_a_batch_takes_the_ways_of_a_duplicate() -> None:
    where, queue, routed = world()
    once = where.declare_exchange(
        "once",
        "x-message-deduplication",
        arguments={"x-cache-size": 9, "alternate-exchange": "again"},
    )
    _, before = (where.declare_exchange(name, "fanout") for name in ("again", "before"))
    where.bind("before", once, "")
    where.bind("once", queue, "")
    duplicates = where.declare_queue("duplicates")
    where.bind("again", duplicates, "")
    for number in range(2):
        row = with_headers({HEADER: "a"}, body=b"%d" % number, exchange="before")
        routed.put(row, where.router.route(before, row))
    routed.commit_batch()
    assert (taken(queue), taken(duplicates)) == ([b"0"], [b"1"])


@pytest.mark.parametrize("committed", [True, False])
def test_a_row_is_in_the_history_of_its_exchange_from_the_commit_of_the_batch_on(
    committed: bool,
) -> None:
    where, _, routed = world()
    arguments = {"x-recent-history-length": 2}
    exchange = where.declare_exchange("x", "x-recent-history", arguments=arguments)
    where.router.send(exchange, message(b"before"))
    for number in range(3):
        row = message(b"%d" % number)
        routed.put(row, where.router.route(exchange, row))
    early, late = where.declare_queue("early"), where.declare_queue("late")
    where.bind("x", early, "")
    where.router.send(exchange, message(b"meanwhile"))
    if committed:
        routed.commit_batch()
    else:
        routed.roll_back_batch()
    where.bind("x", late, "")
    assert taken(early) == [b"before", b"meanwhile"]
    assert taken(late) == ([b"1", b"2"] if committed else [b"before", b"meanwhile"])


def test_a_queue_that_is_gone_gets_nothing_and_needs_no_room() -> None:
    where, queue, routed = world(x_max_length=1, x_overflow="reject-publish")
    other = where.declare_queue("other")
    for number in range(3):
        routed.put(message(body=b"%d" % number), (queue, other))
    assert not routed.has_room()
    where.delete_queue("q")
    assert routed.has_room()
    routed.commit_batch()
    assert taken(other) == [b"0", b"1", b"2"]
