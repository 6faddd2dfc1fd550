"""The class bulk: what is in a queue, as Arrow record batches, and what is refused.

It is one of Harebell's own, so no rule of a specification says anything about it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from harebell.auth.permissions import Permissions
from harebell.front.amqp_0_9_1 import bulk
from harebell.front.limits import BULK_READS_WAITING, BULK_ROWS, OUTPUT_HIGH_BYTES
from harebell.model.settings.policy import Policy
from harebell.wire.arrow.columns import selection
from harebell.wire.arrow.encode import schema_message
from harebell.wire.v09 import bulk as b
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.conformance.raw import Content, Peer
from tests.conformance.sites import MemorySite
from tests.unit.kernels.twins import twin

Connect = Callable[[], Peer]
KINDS = {
    "classic": {},
    "quorum": {"x-queue-type": "quorum"},
    "stream": {"x-queue-type": "stream"},
    "priority": {"x-max-priority": 3},
    "grouped": {"x-group-key": "key"},
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def filled(peer: Peer, kind: str = "classic", count: int = 5, durable: bool = True) -> str:
    """A queue `q` of a kind with numbered messages that are safe."""
    peer.queue("q", durable=durable, arguments=KINDS[kind])
    peer.ask(m.ConfirmSelect(), 2)
    for number in range(count):
        properties = BasicProperties(message_id=f"m{number}", headers={"n": number})
        peer.publish("", "q", b"%d" % number, properties, channel=2)
    confirmed = 0
    while confirmed < count:
        confirmed = peer.expect(m.BasicAck, 2).delivery_tag
    return "q"


def read(peer: Peer, first: int = 0, end: int = 10**6, **options: Any) -> Content:
    columns = options.pop("columns", "value,offset")
    peer.send(
        m.BulkRead(queue="q", first=first, end=end, columns=columns.encode(), **options), channel=1
    )
    return peer.expect_content(m.BulkBatch, of=b.CLASS)


def rows(content: Content, columns: str = "value,offset") -> list[dict[str, Any]]:
    schema = pa.ipc.read_schema(pa.py_buffer(schema_message(selection(columns).schema())))
    batch = pa.ipc.read_record_batch(pa.py_buffer(content.body), schema)
    batch.validate(full=True)
    assert batch.num_rows == content.method.rows
    found: list[dict[str, Any]] = batch.to_pylist()
    return found


@pytest.fixture
def two(connect: Connect) -> Peer:
    """A peer with two channels: one to read on, one to publish on."""
    return connect().open(channels=(1, 2))


@each_kind
def test_a_span_says_where_messages_stand_and_a_read_gives_them(two: Peer, kind: str) -> None:
    filled(two, kind)
    span = two.ask(m.BulkSpan(queue="q"))
    assert (span.kind, span.messages, span.first, span.position) == (kind, 5, 0, 0)
    assert len(span.generation) == 32
    found = rows(read(two, span.first, span.end, generation=span.generation))
    assert [row["value"] for row in found] == [b"0", b"1", b"2", b"3", b"4"]
    positions = [row["offset"] for row in found]
    assert positions == sorted(positions)
    assert positions[0] == span.first
    assert positions[-1] == span.end - 1


@each_kind
def test_a_range_is_read_batch_by_batch_to_its_end(two: Peer, kind: str) -> None:
    filled(two, kind)
    end = two.ask(m.BulkSpan(queue="q")).end
    position, found = 0, []
    while position < end:
        content = read(two, position, end, rows=2)
        assert content.method.rows in (1, 2)
        found += [row["value"] for row in rows(content)]
        position = content.method.next
    assert found == [b"0", b"1", b"2", b"3", b"4"]
    beyond = read(two, end, end + 100)
    assert (beyond.method.rows, beyond.method.lost) == (0, 0)
    assert beyond.method.next <= end


def test_reading_takes_and_marks_nothing(two: Peer) -> None:
    filled(two)
    for _ in range(3):
        assert len(rows(read(two))) == 5
    assert two.count("q") == 5
    assert not two.get("q", no_ack=True).method.redelivered


@pytest.mark.parametrize("kind", ["classic", "quorum", "priority", "grouped"])
def test_a_read_has_messages_that_a_consumer_holds_and_not_those_it_has_settled(
    two: Peer, kind: str
) -> None:
    filled(two, kind)
    two.ask(m.BasicQos(prefetch_count=2))
    tag = two.consume("q")
    first = two.expect_delivery(b"0")
    two.expect_delivery(b"1")
    columns = "value,redelivered,delivery_count"
    found = rows(read(two, columns=columns), columns)
    assert [tuple(row.values())[:2] for row in found[:3]] == [
        (b"0", True),
        (b"1", True),
        (b"2", False),
    ]
    two.ask(m.BasicCancel(consumer_tag=tag))
    two.send(m.BasicAck(delivery_tag=first.method.delivery_tag))
    assert [row["value"] for row in rows(read(two))] == [b"1", b"2", b"3", b"4"]


def test_the_failed_deliveries_of_a_quorum_queue_are_counted(two: Peer) -> None:
    filled(two, "quorum", 1)
    for _ in range(3):
        found = two.get("q", no_ack=False)
        two.send(m.BasicNack(delivery_tag=found.method.delivery_tag, requeue=True))
    columns = "redelivered,delivery_count"
    assert rows(read(two, columns=columns), columns) == [{"redelivered": True, "delivery_count": 3}]


@pytest.mark.parametrize("kind", ["classic", "quorum", "priority"])
def test_a_claim_is_the_same_whenever_it_is_read(two: Peer, kind: str) -> None:
    filled(two, kind)
    epoch = two.ask(m.LeaseOpen(queue="q", group="g")).epoch
    claim = two.ask(m.LeaseClaim(queue="q", group="g", epoch=epoch, messages=3))
    columns = "value,redelivered,delivery_count"
    asked = {"group": "g", "epoch": epoch, "claim": claim.number, "columns": columns}
    content = read(two, 0, 0, **asked)
    assert [tuple(row.values()) for row in rows(content, columns)] == [
        (b"%d" % number, False, 0) for number in range(3)
    ]
    assert content.method.next == claim.end
    assert read(two, claim.first, claim.end, **asked).body == content.body
    two.ask(m.QueuePurge(queue="q"))
    assert read(two, 0, 0, **asked).body == content.body
    two.ask(m.LeaseClose(queue="q", group="g", epoch=epoch, forget=True))


def test_a_filter_lets_through_what_it_names(two: Peer) -> None:
    two.queue("q")
    two.send(m.ExchangeDeclare(exchange="e", type="fanout"))
    two.expect(m.ExchangeDeclareOk)
    two.ask(m.QueueBind(queue="q", exchange="e"))
    for key in ("a", "ab", "b", ""):
        two.publish("e", key, key.encode())
    wanted = {"a": [b"a"], "": [b""], "x": []}
    for key, values in wanted.items():
        content = read(two, filter={"routing-key": key})
        assert [row["value"] for row in rows(content)] == values
        assert content.method.next == 4
    content = read(two, filter={"routing-key-prefix": "a"})
    assert [row["value"] for row in rows(content)] == [b"a", b"ab"]


def test_batches_are_compressed_when_that_is_asked_for(two: Peer) -> None:
    two.queue("q")
    two.publish("", "q", b"x" * 100_000)
    small = read(two, compression="lz4")
    assert len(small.body) < 10_000
    assert rows(small)[0]["value"] == b"x" * 100_000


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"columns": "valeu"}, "a message has no column valeu: did you mean value?"),
        ({"columns": ""}, "no columns are asked for; a message has value, routing_key, exchange, "
         "queue, offset, timestamp, redelivered, delivery_count, properties, headers, "
         "headers_json, headers_raw"),
        ({"columns": "value,value"}, "column value is asked for twice"),
        ({"compression": "zip"}, "there is no compression 'zip': ask for lz4, or for none"),
        ({"first": 5, "end": 4}, "positions 5 to 4 of queue 'q' in vhost '/' are no range: the "
         "first position and the one behind the last are asked for"),
        ({"filter": {"key": "a"}}, "there is no filter 'key'; there are routing-key, "
         "routing-key-prefix, since, until, where"),
        ({"filter": {"since": "a"}}, "the filter 'since' takes milliseconds since 1970, not 'a'"),
        ({"filter": {"since": -1}}, "the filter 'since' takes milliseconds since 1970, not -1"),
        ({"filter": {"routing-key": 1}}, "the filter 'routing-key' takes text, not 1"),
        ({"filter": {"routing-key": "a", "routing-key-prefix": "b"}}, "the filters 'routing-key' "
         "and 'routing-key-prefix' exclude each other"),
    ],
)  # fmt: skip
def test_an_impossible_request_closes_the_channel(
    two: Peer, options: dict[str, Any], text: str
) -> None:
    filled(two, count=1)
    given = {"first": 0, "end": 9, "columns": "value"} | options
    columns = given.pop("columns").encode()
    two.send(m.BulkRead(queue="q", columns=columns, **given))
    two.expect_channel_close(406, f"PRECONDITION_FAILED - {text}", "bulk.read")


def test_a_read_without_the_library_that_makes_batches_says_what_to_install(
    connect_memory: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = connect_memory().open(channels=(1, 2))
    # Compiled, the broker needs no library for it: then the refusal is that of the twin.
    kinds_of = twin("arrays").kinds_of
    monkeypatch.setattr(bulk, "BatchBuilder", lambda columns, fields, *_: kinds_of(columns, fields))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    filled(two, count=1)
    two.send(m.BulkRead(queue="q", columns=b"value", end=9))
    two.expect_channel_close(
        406,
        "PRECONDITION_FAILED - record batches need pyarrow where Harebell runs without its "
        "compiled parts: pip install pyarrow, or install Harebell with a C compiler",
        "bulk.read",
    )


def test_a_queue_that_was_declared_again_has_another_generation(two: Peer) -> None:
    filled(two)
    before = two.ask(m.BulkSpan(queue="q")).generation
    two.ask(m.QueueDelete(queue="q"))
    two.queue("q")
    now = two.ask(m.BulkSpan(queue="q")).generation
    assert now != before
    two.send(m.BulkRead(queue="q", generation=before, columns=b"value", end=9))
    two.expect_channel_close(
        409,
        "GENERATION_CHANGED - queue 'q' in vhost '/' was deleted and declared again: its log is "
        f"{now} now, and {before} was asked for",
        "bulk.read",
    )


@pytest.mark.parametrize(
    "method", [m.BulkSpan(queue="none"), m.BulkRead(queue="none", columns=b"value")]
)
def test_a_queue_that_is_not_there_is_not_found(two: Peer, method: m.Method) -> None:
    two.send(method)
    two.expect_channel_close(404, "NOT_FOUND - no queue 'none' in vhost '/'", method.NAME)


def test_reads_are_answered_in_their_order(two: Peer) -> None:
    filled(two, count=20)
    for number in range(20):
        two.send(m.BulkRead(queue="q", columns=b"value", first=number, end=number + 1))
    for number in range(20):
        content = two.expect_content(m.BulkBatch, of=b.CLASS)
        assert rows(content, "value") == [{"value": b"%d" % number}]


def test_a_channel_that_is_closed_gets_no_more_answers(memory: MemorySite) -> None:
    peer = Peer(memory, memory.connect()).open(channels=(1, 2))
    filled(peer, count=3, durable=False)
    peer.wire.stop_reading()
    for _ in range(10):
        peer.send(m.BulkRead(queue="q", columns=b"value", end=9))
    peer.send(m.ChannelClose(200, "bye"))
    peer.wire.start_reading()
    answers = 0
    while peer.next_is(m.BulkBatch):
        peer.expect_content(m.BulkBatch, of=b.CLASS)
        answers += 1
    assert answers < 10
    peer.expect(m.ChannelCloseOk)
    peer.done()


def test_a_reader_that_takes_nothing_fills_no_memory(memory: MemorySite) -> None:
    peer = Peer(memory, memory.connect()).open(channels=(1, 2))
    peer.queue("q")
    for _ in range(4):
        peer.publish("", "q", b"x" * 400_000)
    peer.wire.stop_reading()
    for _ in range(50):
        peer.send(m.BulkRead(queue="q", columns=b"value", end=9))
    assert peer.wire.connection.out.size < OUTPUT_HIGH_BYTES + 4 * 400_000 + 10_000
    peer.wire.start_reading()
    for _ in range(50):
        assert len(rows(peer.expect_content(m.BulkBatch, of=b.CLASS), "value")) == 4
    peer.done()


def test_too_many_reads_at_a_time_are_refused(memory: MemorySite) -> None:
    peer = Peer(memory, memory.connect()).open(channels=(1, 2))
    peer.queue("q")
    peer.wire.stop_reading()
    for _ in range(BULK_READS_WAITING + 1):
        peer.send(m.BulkRead(queue="q", columns=b"value", end=9))
    peer.wire.start_reading()
    text = f"{BULK_READS_WAITING} bulk reads of this connection wait already, which is the most"
    peer.expect_channel_close(406, f"PRECONDITION_FAILED - {text} that may", "bulk.read")
    peer.done()


def test_rows_and_octets_of_a_batch_are_bounded(memory: MemorySite) -> None:
    peer = Peer(memory, memory.connect()).open(channels=(1, 2))
    peer.queue("q")
    for number in range(5):
        peer.publish("", "q", b"x" * 3_000_000 if number == 0 else b"x" * 700_000)
    assert [read(peer, first, 9, rows=2**32 - 1).method.rows for first in (0, 1, 2)] == [1, 3, 3]
    assert read(peer, 1, 9, octets=700_000).method.rows == 1
    for _ in range(BULK_ROWS + 10):
        peer.publish("", "q")
    content = read(peer, 5, 10**6, rows=2**32 - 1)
    assert (content.method.rows, content.method.next) == (BULK_ROWS, 5 + BULK_ROWS)
    peer.done()


def test_a_user_without_read_permission_cannot_read_in_bulk(memory: MemorySite) -> None:
    peer = Peer(memory, memory.connect()).open(channels=(1, 2))
    filled(peer, durable=False)
    user = memory.users.add("writer", "writer", loopback_only=True)
    user.permissions["/"] = Permissions(".*", ".*", "")
    other = Peer(memory, memory.connect()).open(user="writer", password="writer", channels=(1, 2))
    text = "ACCESS_REFUSED - read access to queue 'q' in vhost '/' refused for user 'writer'"
    other.send(m.BulkSpan(queue="q"), channel=1)
    other.expect_channel_close(403, text, "bulk.span")
    other.send(m.BulkRead(queue="q", columns=b"value", end=9), channel=2)
    other.expect_channel_close(403, text, "bulk.read", channel=2)
    for each in (peer, other):
        each.done()


def names_of(peer: Peer) -> list[str]:
    """All queues that are told, page by page."""
    found: list[str] = []
    more = True
    while more:
        reply = peer.ask(m.BulkQueues(after=found[-1] if found else ""))
        found += b.decode_names(reply.names)
        more = reply.more
    return found


def test_the_queues_that_may_be_read_are_told(connect_memory: Connect, memory: MemorySite) -> None:
    peer = connect_memory().open()
    for name in ("b", "a", "secret", "ü"):
        peer.queue(name)
    peer.queue("mine", exclusive=True)
    assert names_of(peer) == ["a", "b", "mine", "secret", "ü"]
    assert names_of(connect_memory().open()) == ["a", "b", "secret", "ü"]
    memory.users.get("guest").permissions["/"] = Permissions("", "", "^[a-z]$")
    assert names_of(connect_memory().open()) == ["a", "b"]


def test_many_queues_are_told_page_by_page(connect_memory: Connect) -> None:
    peer = connect_memory().open()
    names = sorted(f"{number:03}" + "n" * 240 for number in range(300))
    for name in names:
        peer.queue(name)
    first = peer.ask(m.BulkQueues())
    assert first.more
    assert names_of(peer) == names


def letters_of(peer: Peer, queue: str) -> list[str]:
    """The queues that dead letters of a queue go to."""
    return b.decode_names(peer.ask(m.BulkLetters(queue=queue)).names)


def test_a_queue_that_selects_dead_letters_is_told(connect_memory: Connect) -> None:
    peer = connect_memory().open()
    peer.queue("dead")
    peer.ask(m.ExchangeDeclare("dlx", "topic"))
    peer.ask(m.QueueBind("dead", "dlx", "#", arguments={"x-filter-jms-selector": "n = 1"}))
    arguments = {"x-dead-letter-exchange": "dlx", "x-dead-letter-routing-key": "k"}
    peer.queue("one", arguments=arguments)
    assert letters_of(peer, "one") == ["dead"]


def test_asking_for_the_queues_of_dead_letters_takes_no_number(connect_memory: Connect) -> None:
    peer = connect_memory().open()
    peer.queue("dead")
    peer.ask(m.ExchangeDeclare("dlx", "topic", arguments={"qpid.msg_sequence": 1}))
    peer.ask(m.QueueBind("dead", "dlx", "#"))
    arguments = {"x-dead-letter-exchange": "dlx", "x-dead-letter-routing-key": "k"}
    peer.queue("one", arguments=arguments)
    assert letters_of(peer, "one") == ["dead"]
    peer.publish("dlx", "k", b"")
    assert peer.get("dead").properties.headers == {"qpid.msg_sequence": 1}


def test_the_queues_of_dead_letters_are_told(connect_memory: Connect, memory: MemorySite) -> None:
    peer = connect_memory().open()
    for name in ("dead", "late", "other"):
        peer.queue(name)
    for name, kind in (("dlx", "topic"), ("behind", "fanout"), ("heads", "headers")):
        peer.ask(m.ExchangeDeclare(name, kind))
    peer.ask(m.QueueBind("dead", "dlx", "failed.*"))
    peer.ask(m.ExchangeBind("behind", "dlx", "late.#"))
    peer.ask(m.QueueBind("late", "behind", ""))
    peer.ask(m.QueueBind("other", "heads", "", arguments={"a": 1}))
    for name, exchange, key, found in (
        ("one", "", "dead", ["dead"]),
        ("two", "dlx", "failed.x", ["dead"]),
        ("three", "dlx", "late.x", ["late"]),
        ("four", "dlx", None, ["dead", "late"]),
        ("five", "heads", "k", ["other"]),
    ):
        arguments = {"x-dead-letter-exchange": exchange}
        if key is not None:
            arguments["x-dead-letter-routing-key"] = key
        peer.queue(name, arguments=arguments)
        assert letters_of(peer, name) == found
    memory.broker.vhosts["/"].policies.put(
        Policy("p", "^other", "queues", 0, {"dead-letter-exchange": "dlx"})
    )
    assert letters_of(peer, "other") == ["dead", "late"]
    memory.users.get("guest").permissions["/"] = Permissions("", "", "four|late")
    assert letters_of(connect_memory().open(), "four") == ["late"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {},
            "PRECONDITION_FAILED - queue 'q' in vhost '/' has no dead-letter exchange: declare it "
            "with x-dead-letter-exchange, or set the policy key dead-letter-exchange",
        ),
        (
            {"x-dead-letter-exchange": "no"},
            "PRECONDITION_FAILED - the dead-letter exchange 'no' of queue 'q' in vhost '/' is "
            "missing",
        ),
        (
            {"x-dead-letter-exchange": ""},
            "PRECONDITION_FAILED - dead letters of queue 'q' in vhost '/' go to the queues that "
            "their own routing keys name: it has the default exchange as dead-letter exchange, and "
            "no dead-letter routing key",
        ),
        (
            {"x-dead-letter-exchange": "amq.topic"},
            "PRECONDITION_FAILED - no queue gets dead letters of queue 'q' in vhost '/': bind one "
            "to exchange 'amq.topic'",
        ),
    ],
)
def test_a_queue_without_queues_for_its_dead_letters_is_told_why(
    connect_memory: Connect, arguments: dict[str, Any], text: str
) -> None:
    peer = connect_memory().open()
    peer.queue("q", arguments=arguments)
    peer.send(m.BulkLetters(queue="q"))
    peer.expect_channel_close(406, text, "bulk.letters")


def test_queues_of_dead_letters_that_may_not_be_read_are_not_told(
    connect_memory: Connect, memory: MemorySite
) -> None:
    peer = connect_memory().open()
    peer.queue("dead")
    peer.queue("q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    memory.users.get("guest").permissions["/"] = Permissions("", "", "q")
    other = connect_memory().open()
    other.send(m.BulkLetters(queue="q"))
    text = (
        "ACCESS_REFUSED - dead letters of queue 'q' in vhost '/' go to queues that user 'guest' "
        "may not read"
    )
    other.expect_channel_close(403, text, "bulk.letters")
