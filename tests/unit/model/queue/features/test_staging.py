"""A batch whose rows come in slices: nobody sees one before its end, whatever the kind of queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from harebell.base.clock import Clock
from harebell.base.gauge import Gauge
from harebell.model.editor import Editor
from harebell.model.queue.contract import Queue
from harebell.model.queue.stream import StreamQueue
from harebell.model.vhost import VHost
from harebell.store.log.memory import MemoryStore
from tests.unit.model.things import Taker, headers_of, message, rest, vhost

KINDS: dict[str, Mapping[str, Any]] = {
    "classic": {},
    "priority": {"x-max-priority": 3},
    "quorum": {"x-queue-type": "quorum"},
    "grouped": {"x-group-key": "routing_key"},
}


def _queue(arguments: Mapping[str, Any]) -> Queue:
    found: Queue = vhost().declare_queue("q", durable=True, arguments=dict(arguments))
    return found


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def queue(request: pytest.FixtureRequest) -> Queue:
    return _queue(request.param)


def _stage(queue: Queue, *bodies: bytes) -> None:
    for body in bodies:
        queue.stage(message(body, key=body.decode()))


def test_rows_and_what_comes_between_them_are_ready_with_the_last(queue: Queue) -> None:
    queue.publish(message(b"0"))
    queue.begin_batch()
    _stage(queue, b"1", b"2")
    queue.publish(message(b"3"))
    _stage(queue, b"4")
    assert queue.ready_count() == 1
    assert rest(queue) == [b"0"]
    assert rest(queue) == []
    queue.commit_batch()
    assert queue.ready_count() == 4
    assert rest(queue) == [b"1", b"2", b"3", b"4"]
    queue.publish(message(b"5"))
    assert rest(queue) == [b"5"]


def test_a_batch_that_is_refused_takes_its_rows_and_nothing_else(queue: Queue) -> None:
    queue.publish(message(b"0"))
    queue.begin_batch()
    _stage(queue, b"1", b"2")
    queue.publish(message(b"3"))
    _stage(queue, b"4")
    queue.publish(message(b"5"))
    queue.roll_back_batch()
    assert queue.ready_count() == 3
    assert rest(queue) == [b"0", b"3", b"5"]
    queue.publish(message(b"6"))
    assert rest(queue) == [b"6"]


def test_a_consumer_that_waits_gets_everything_at_the_end(queue: Queue) -> None:
    taker = Taker(queue)
    queue.add_consumer(taker)
    queue.begin_batch()
    _stage(queue, b"1")
    queue.publish(message(b"2"))
    assert taker.bodies == []
    queue.commit_batch()
    assert taker.bodies == [b"1", b"2"]


def test_rows_stay_out_of_a_purge_that_runs_meanwhile(queue: Queue) -> None:
    queue.publish(message(b"0"))
    queue.begin_batch()
    _stage(queue, b"1")
    assert queue.purge() == 1
    queue.commit_batch()
    assert rest(queue) == [b"1"]


def test_requeued_messages_are_delivered_while_rows_are_kept_back(queue: Queue) -> None:
    queue.publish(message(b"0"))
    got = queue.get()
    assert got is not None
    queue.begin_batch()
    _stage(queue, b"1")
    queue.requeue(got[1])
    assert rest(queue) == [b"0"]
    queue.commit_batch()
    assert rest(queue) == [b"1"]


def test_a_claim_has_none_of_the_rows_before_the_end(queue: Any) -> None:
    queue.publish(message(b"0"))
    queue.begin_batch()
    _stage(queue, b"1", b"2")
    assert queue.claims().claim(10, 0, "group").messages == 1
    assert queue.claims().claim(10, 0, "group") is None
    assert queue.span(0).messages == 1
    queue.commit_batch()
    assert queue.span(0).messages == 3
    assert queue.claims().claim(10, 0, "group").messages == 2


def test_a_queue_that_is_deleted_meanwhile_has_no_batch_to_commit(queue: Queue) -> None:
    queue.begin_batch()
    _stage(queue, b"1")
    queue.delete()
    queue.commit_batch()
    assert queue.deleted


def test_rows_that_are_too_many_go_when_they_are_ready() -> None:
    queue = _queue({"x-max-length": 2})
    queue.configure({"max-length": 2})
    queue.publish(message(b"0"))
    queue.begin_batch()
    _stage(queue, b"1", b"2")
    assert queue.ready_count() == 1
    queue.commit_batch()
    assert rest(queue) == [b"1", b"2"]


def test_messages_kept_back_count_where_the_limit_refuses() -> None:
    settings = {"max-length": 2, "overflow": "reject-publish"}
    queue = _queue({})
    queue.configure(settings)
    queue.begin_batch()
    _stage(queue, b"1", b"2")
    assert queue.publish(message(b"3")) & 1
    queue.commit_batch()
    assert rest(queue) == [b"1", b"2"]


def test_rows_expire_from_the_moment_on_when_they_are_ready() -> None:
    clock = Clock(1_000)
    host = VHost("/", MemoryStore(Gauge()), Editor(headers_of), clock)
    queue = host.declare_queue("q", arguments={"x-message-ttl": 100})
    queue.begin_batch()
    _stage(queue, b"1")
    queue.commit_batch()
    assert queue.ready_count() == 1
    clock.advance(200)
    queue.expire()
    assert queue.ready_count() == 0


def test_the_readers_of_a_stream_come_to_the_rows_at_the_end() -> None:
    queue = _queue({"x-queue-type": "stream"})
    assert isinstance(queue, StreamQueue)
    taker = Taker(queue, credit=100)
    taker.arguments = {"x-stream-offset": "first"}
    queue.add_consumer(taker)
    queue.publish(message(b"0"))
    queue.begin_batch()
    _stage(queue, b"1")
    queue.publish(message(b"2"))
    assert taker.bodies == [b"0"]
    span = queue.span(0)
    assert (queue.ready_count(), span.end, span.messages) == (1, 1, 1)
    queue.commit_batch()
    assert taker.bodies == [b"0", b"1", b"2"]
    queue.begin_batch()
    _stage(queue, b"3")
    queue.publish(message(b"4"))
    queue.roll_back_batch()
    assert taker.bodies == [b"0", b"1", b"2", b"4"]
