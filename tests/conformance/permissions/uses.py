"""How each operation of docs/reference/permissions.md is done: by which method, in which version.

`example(row)` is what a session sends, and `before(row)` what it sends ahead of that, while it
still has every permission.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

from harebell.wire.v010 import commands as c
from harebell.wire.v010 import structs
from harebell.wire.v09 import methods as m
from harebell.wire.v09 import methods_older, methods_transitional, stage
from harebell.wire.v09.domains import ABSENT
from harebell.wire.v09.methods import BulkRead, BulkSpan, HistoryAsk
from harebell.wire.v09.methods_older import (
    FileConsume,
    FileOpen,
    FilePublish,
    FileStage,
    StreamConsume,
    StreamPublish,
    TunnelRequest,
)
from harebell.wire.v09.property_list import FILE, STREAM, TUNNEL, FileProperties, TunnelProperties
from harebell.wire.v09.property_list import StreamProperties as PacketProperties
from tests.conformance.permissions.matrix import FINAL, Row
from tests.conformance.permissions.worlds import KEY, Content, Sent
from tests.conformance.v010t.transfers import encoded

_DEAD = {"x-dead-letter-exchange": "other"}
_ALTERNATE = {"x-alternate-exchange": "other"}
_OTHER = {"alternate-exchange": "other"}
_ID = "id"


def _either(final: Any, classic: Any, **fields: Any) -> Callable[[Row], list[Sent]]:
    """The command of 0-10, or the method of the others, with the same fields."""
    return lambda row: [(final if row.version == FINAL else classic)(**fields)]


def _queue(**fields: Any) -> Callable[[Row], list[Sent]]:
    return _either(c.QueueDeclare, m.QueueDeclare, **fields)


def _exchange(**fields: Any) -> Callable[[Row], list[Sent]]:
    return _either(c.ExchangeDeclare, m.ExchangeDeclare, type="fanout", **fields)


def _only(*sent: Sent) -> Callable[[Row], list[Sent]]:
    return lambda row: list(sent)


def _bind(row: Row) -> list[Sent]:
    return [c.ExchangeBind("q", "x", KEY)]


def _unbind(row: Row) -> list[Sent]:
    return [c.ExchangeUnbind("q", "x", KEY)]


def _bound(row: Row) -> list[Sent]:
    if row.version == FINAL:
        return [c.ExchangeBound("x", "q", KEY)]
    return [methods_older.ExchangeBound(exchange="x", queue="q", routing_key=KEY)]


def _consume(row: Row) -> list[Sent]:
    arguments: Any = ABSENT if row.version == "0-8" else {}
    return [m.BasicConsume("q", "tag", arguments=arguments)]


def _file_consume(row: Row) -> list[Sent]:
    return [c.FileConsume("q", "tag") if row.version == FINAL else FileConsume("q", "tag")]


def _stream_consume(row: Row) -> list[Sent]:
    return [c.StreamConsume("q", "tag") if row.version == FINAL else StreamConsume("q", "tag")]


def _transfer(row: Row, exchange: str, key: str) -> list[Sent]:
    if row.version == FINAL:
        return [
            Content(c.MessageTransfer(exchange), 4, (structs.DeliveryProperties(routing_key=key),))
        ]
    return [encoded(key, b"body", destination=exchange)]


def _file(row: Row, exchange: str, key: str) -> list[Sent]:
    kind = c.FilePublish if row.version == FINAL else FilePublish
    return [kind(exchange=exchange, routing_key=key, identifier=_ID)]


def _packet(row: Row, exchange: str, key: str) -> list[Sent]:
    if row.version == FINAL:
        return [Content(c.StreamPublish(exchange, key), 10, (structs.StreamProperties(),))]
    raw = STREAM.encode(PacketProperties())
    return [Content(StreamPublish(exchange, key), STREAM.class_id, raw)]


def _publish(row: Row, exchange: str, key: str) -> list[Sent]:
    return [Content(m.BasicPublish(exchange=exchange, routing_key=key))]


def _to(exchange: str, key: str) -> dict[str, Callable[[Row], list[Sent]]]:
    ways = {
        "basic.publish": _publish,
        "message.transfer": _transfer,
        "file.publish": _file,
        "stream.publish": _packet,
    }
    return {name: partial(way, exchange=exchange, key=key) for name, way in ways.items()}


_TUNNEL = Content(TunnelRequest(), TUNNEL.class_id, TUNNEL.encode(TunnelProperties(proxy_name="q")))
_PARTS = stage.encode_parts([stage.StagePart(0, 1, 1)])


def _commit(**fields: Any) -> Callable[[Row], list[Sent]]:
    return _only(m.StageCommit("p", "r", 0, "x", KEY, parts=_PARTS, **fields))


EXAMPLES: dict[str, dict[str, Callable[[Row], list[Sent]]]] = {
    "declare a queue": {"queue.declare": _queue(queue="q")},
    "make a queue with a dead-letter exchange": {
        "queue.declare": _queue(queue="new", arguments=_DEAD)
    },
    "make a queue with a dead-letter exchange and routing key": {
        "queue.declare": _queue(queue="new", arguments=_DEAD | {"x-dead-letter-routing-key": KEY})
    },
    "make a queue with an alternate exchange": {
        "queue.declare": _queue(queue="new", arguments=_ALTERNATE)
    },
    "look at a queue": {
        "queue.declare": _queue(queue="q", passive=True),
        "queue.query": _only(c.QueueQuery("q")),
    },
    "delete a queue": {"queue.delete": _either(c.QueueDelete, m.QueueDelete, queue="q")},
    "purge a queue": {"queue.purge": _either(c.QueuePurge, m.QueuePurge, queue="q")},
    "bind a queue": {
        "queue.bind": _only(m.QueueBind("q", "x", KEY)),
        "queue.unbind": _only(m.QueueUnbind("q", "x", KEY)),
        "exchange.bind": _bind,
        "exchange.unbind": _unbind,
    },
    "bind an exchange": {
        "exchange.bind": _only(m.ExchangeBind("y", "x", KEY)),
        "exchange.unbind": _only(m.ExchangeUnbind("y", "x", KEY)),
    },
    "look for a binding": {
        "exchange.bound": _bound,
        "binding.query": _only(
            methods_transitional.BindingQuery(exchange="x", queue="q", routing_key=KEY)
        ),
    },
    "declare an exchange": {"exchange.declare": _exchange(exchange="x")},
    "make an exchange with an alternate exchange": {
        "exchange.declare": _exchange(exchange="fresh", arguments=_OTHER)
    },
    "look at an exchange": {
        "exchange.declare": _exchange(exchange="x", passive=True),
        "exchange.query": _either(c.ExchangeQuery, methods_transitional.ExchangeQuery, name="x"),
    },
    "delete an exchange": {
        "exchange.delete": _either(c.ExchangeDelete, m.ExchangeDelete, exchange="x")
    },
    "consume": {
        "basic.consume": _consume,
        "basic.get": _only(m.BasicGet("q")),
        "message.consume": _only(methods_transitional.MessageConsume("q", "tag")),
        "message.get": _only(methods_transitional.MessageGet("q")),
        "message.subscribe": _only(c.MessageSubscribe("q", "tag")),
        "file.consume": _file_consume,
        "stream.consume": _stream_consume,
    },
    "read in bulk": {
        "bulk.span": _only(BulkSpan("q")),
        "bulk.read": _only(BulkRead("q", columns=b"value")),
        "history.ask": _only(HistoryAsk("q")),
    },
    "claim": {
        "lease.open": _only(m.LeaseOpen("q", "g")),
        "lease.claim": _only(m.LeaseClaim("q", "g", 1)),
        "lease.commit": _only(m.LeaseCommit("q", "g", 1)),
        "lease.release": _only(m.LeaseRelease("q", "g", 1)),
        "lease.renew": _only(m.LeaseRenew("q", "g", 1)),
        "lease.close": _only(m.LeaseClose("q", "g", 1)),
    },
    "publish": _to("x", KEY),
    "publish to a queue by its name": _to("", "q") | {"tunnel.request": _only(_TUNNEL)},
    "publish a staged batch": {"stage.commit": _commit()},
    "publish rows that reach no queue": {"stage.commit": _commit(dead_letter="other")},
}


KEPT: dict[str, Callable[[str], Sent]] = {
    "stage.open": lambda _: m.StageOpen("p", "r"),
    "publisher.declare": lambda _: m.PublisherDeclare("p"),
    "query.report": lambda _: m.QueryReport("q", {}),
    "file.open": lambda version: c.FileOpen(_ID, 4) if version == FINAL else FileOpen(_ID, 4),
    "message.open": lambda _: methods_transitional.MessageOpen(b"r"),
}
"""What makes the broker keep something for a user, for a version."""


def example(row: Row) -> list[Sent]:
    """What does the operation of a row."""
    return EXAMPLES[row.operation][row.method](row)


_COLUMNS = pa.schema([("value", pa.binary())])


def _row() -> bytes:
    batch = pa.RecordBatch.from_pylist([{"value": b"1"}], schema=_COLUMNS)
    return bytes(batch.serialize().to_pybytes())


def before(row: Row) -> list[Sent]:
    """What comes ahead, in a broker that has everything."""
    if row.method == "stage.commit":
        append = m.StageAppend("p", "r", 0, 0, 1, 0, b"value")
        return [m.StageOpen("p", "r"), Content(append, stage.CLASS_ID, body=_row())]
    if row.method == "file.publish":
        if row.version == FINAL:
            properties = (structs.FileProperties(),)
            return [c.FileOpen(_ID, 4), Content(c.FileStage(), 9, properties)]
        raw = FILE.encode(FileProperties())
        return [FileOpen(_ID, 4), Content(FileStage(), FILE.class_id, raw)]
    return []


def before_there(row: Row) -> list[Sent]:
    """What comes ahead where queue q and exchange x are."""
    if row.operation == "claim" and row.method != "lease.open":
        return [m.LeaseOpen("q", "g")]
    if row.method == "exchange.unbind" and row.version == FINAL:
        return [c.ExchangeBind("q", "x", KEY)]
    if row.method == "queue.unbind":
        return [m.QueueBind("q", "x", KEY)]
    return []
