"""Rows that cannot become messages stop no query: they are dead-lettered with the reason."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from harebell.spark.limits import SPARK_HEADER_BYTES
from harebell.spark.options.sink_options import parse_sink
from harebell.spark.options.values import OptionError
from harebell.spark.writing.bad_rows import BadRows
from harebell.spark.writing.write_target import SinkError
from tests.spark.tasks import Query
from tests.spark.test_writer import taken

pytestmark = pytest.mark.timeout(1_200)

SCHEMA = pa.schema(
    [
        ("value", pa.binary()),
        ("routing_key", pa.string()),
        (
            "properties",
            pa.struct(
                [
                    ("expiration", pa.string()),
                    ("priority", pa.int64()),
                    ("message_id", pa.string()),
                    ("timestamp", pa.timestamp("us", tz="UTC")),
                ]
            ),
        ),
        ("headers", pa.map_(pa.string(), pa.string())),
        ("headers_raw", pa.binary()),
    ]
)
NO_TEXT = pa.array([b"\xff"]).view(pa.string())[0]
BAD: dict[str, dict[str, Any]] = {
    "value is null, and a message needs a body": {"value": None},
    "routing_key has more than 255 bytes": {"routing_key": "k" * 300},
    "expiration is no number of milliseconds up to 315360000000": {
        "properties": {"expiration": "soon"}
    },
    "priority is not from 0 to 255": {"properties": {"priority": 2**40}},
    "message_id has more than 255 bytes": {"properties": {"message_id": "\u00fc" * 128}},
    "timestamp is before 1970": {"properties": {"timestamp": -1}},
    "the name of a header has more than 255 bytes": {"headers": [("h" * 256, "1"), ("b", "2")]},
    f"headers have more than {SPARK_HEADER_BYTES} bytes": {"headers": [("h", "x" * 70_000)]},
    "headers_raw is no field table, or too large for a frame": {"headers_raw": b"no table"},
}


def batch_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def mixed(queue: str) -> list[dict[str, Any]]:
    """Each bad row between two good ones."""
    found: list[dict[str, Any]] = []
    for number, change in enumerate(BAD.values()):
        good = {"value": b"good %d" % number, "routing_key": queue, "headers": [("a", "1")]}
        found += [good, good | {"value": b"bad %d" % number} | change]
    return found


@pytest.fixture
def dead(channel: Any) -> Iterator[str]:
    """A fanout exchange of dead letters, with its queue of the same name."""
    channel.exchange_declare("dead.rows", "fanout")
    channel.queue_declare("dead.rows")
    channel.queue_bind("dead.rows", "dead.rows")
    yield "dead.rows"
    channel.queue_delete("dead.rows")
    channel.exchange_delete("dead.rows")


@pytest.mark.parametrize("delivery", ["exactly-once", "publishing-id", "at-least-once"])
def test_bad_rows_go_to_the_dead_letter_exchange_with_the_reason_and_good_ones_to_theirs(
    broker_url: str, channel: Any, queue: str, dead: str, delivery: str
) -> None:
    options = {"url": broker_url, "exchange": "", "deadLetter": dead, "delivery": delivery}
    writing = Query(options, SCHEMA, f"bad-{delivery}")
    done = writing.run(0, [batch_of(mixed(queue)), batch_of([{"value": None}])])
    assert [one.bad for one in done] == [len(BAD) + 1]
    bodies = [body for _, _, body in taken(channel, queue)]
    assert bodies == [b"good %d" % number for number in range(len(BAD))]
    letters = taken(channel, dead)
    assert [one.headers["x-reason"] for _, one, _ in letters[:-1]] == list(BAD)
    assert letters[0][2] == b""
    assert [body for _, _, body in letters[1:-1]] == [b"bad %d" % n for n in range(1, len(BAD))]
    keys = [got.routing_key for got, _, _ in letters]
    assert keys == [queue, "k" * 255, *[queue] * (len(BAD) - 2), ""]
    assert letters[6][1].headers["b"] == "2"
    assert letters[2][1].headers["a"] == "1"
    assert letters[2][1].headers["x-original-exchange"] == ""
    assert all(one.expiration is None and one.delivery_mode == 2 for _, one, _ in letters)


def test_a_repeated_micro_batch_dead_letters_its_bad_rows_once(
    broker_url: str, channel: Any, queue: str, dead: str
) -> None:
    options = {"url": broker_url, "exchange": "", "deadLetter": dead}
    for run in ("first", "second"):
        Query(options, SCHEMA, "bad-once", run).run(0, [batch_of(mixed(queue))])
    assert len(taken(channel, queue)) == len(taken(channel, dead)) == len(BAD)


def test_bad_rows_are_dropped_where_that_is_asked_for(
    broker_url: str, channel: Any, queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"url": broker_url, "exchange": "", "badRows": "drop"}
    with caplog.at_level(logging.WARNING, "harebell.spark"):
        Query(options, SCHEMA, "bad-dropped").run(0, [batch_of(mixed(queue))])
    assert len(taken(channel, queue)) == len(BAD)
    assert f"{len(BAD)} rows could not become messages and were dropped" in caplog.text


@pytest.mark.parametrize(("reason", "change"), BAD.items())
def test_a_bad_row_is_an_error_with_its_reason_without_a_dead_letter_exchange(
    broker_url: str, channel: Any, queue: str, reason: str, change: dict[str, Any]
) -> None:
    rows = [{"value": b"a", "routing_key": queue}] * 2
    rows.append(rows[0] | change)
    with pytest.raises(SinkError) as caught:
        Query({"url": broker_url, "exchange": ""}, SCHEMA, "bad-fails").run(0, [batch_of(rows)])
    assert str(caught.value).startswith(f"row 2: {reason}; set deadLetter to an exchange")
    assert not taken(channel, queue)


def test_texts_that_are_not_utf_8_are_bad_rows() -> None:
    bad = BadRows(parse_sink({"exchange": "e", "deadLetter": "d", "routingKey": "k"}))
    column = pa.array([b"fine", b"\xff", None]).view(pa.string())
    rows = pa.RecordBatch.from_arrays([pa.array([b"1"] * 3), column], ["value", "routing_key"])
    assert bad.without(rows).column("routing_key").to_pylist() == ["fine", None]
    (letters,) = bad.take()
    assert letters.to_pylist()[0]["routing_key"] == "k"
    assert dict(letters.to_pylist()[0]["headers"])["x-reason"] == "routing_key is not UTF-8"


def test_rows_of_a_slice_are_checked_by_their_own_headers() -> None:
    bad = BadRows(parse_sink({"exchange": "e", "badRows": "drop", "routingKey": "k"}))
    rows = [
        {"value": b"%d" % n, "headers": [("h" * (256 if n == 1 else 1), "1")]} for n in range(4)
    ]
    batch = batch_of(rows)
    assert bad.without(batch.slice(2)).num_rows == 2
    assert bad.without(batch.slice(1)).column("value").to_pylist() == [b"2", b"3"]
    assert bad.count == 1


def test_dead_letters_need_an_exchange() -> None:
    with pytest.raises(OptionError, match="badRows=dead-letter needs the option deadLetter"):
        parse_sink({"exchange": "e", "badRows": "dead-letter"})
    assert parse_sink({"exchange": "e", "deadLetter": "d"}).bad_rows == "dead-letter"
    assert parse_sink({"exchange": "e", "deadLetter": "d", "badRows": "fail"}).bad_rows == "fail"
    assert parse_sink({"exchange": "e"}).bad_rows == "fail"
