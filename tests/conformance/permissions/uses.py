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
from harebell.wire.v1 import composites as one
from tests.conformance.permissions.matrix import FINAL, Row
from tests.conformance.permissions.worlds import KEY, Content, Message1, Request, Sent
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


def target(address: str | None) -> one.Attach:
    """A link of 1.0 to publish by."""
    return one.Attach(
        "s", 0, source=one.Source(), target=one.Target(address), initial_delivery_count=0
    )


def source(address: str, **fields: Any) -> one.Attach:
    """A link of 1.0 to consume by."""
    return one.Attach("r", 1, True, source=one.Source(address, **fields), target=one.Target())


def _put(path: str, arguments: Any = None, **fields: Any) -> Callable[[Row], list[Sent]]:
    return _only(Request("PUT", path, {"durable": False, "arguments": arguments or {}, **fields}))


def _end(kind: str, name: str) -> dict[str, str]:
    return {"source": "x", f"destination_{kind}": name, "binding_key": KEY}


def _commit(**fields: Any) -> Callable[[Row], list[Sent]]:
    return _only(m.StageCommit("p", "r", 0, "x", KEY, parts=_PARTS, **fields))


EXAMPLES: dict[str, dict[str, Callable[[Row], list[Sent]]]] = {
    "declare a queue": {"PUT /queues/Q": _put("/queues/q"), "queue.declare": _queue(queue="q")},
    "make a queue with a dead-letter exchange": {
        "PUT /queues/Q": _put("/queues/new", _DEAD),
        "queue.declare": _queue(queue="new", arguments=_DEAD),
    },
    "make a queue with a dead-letter exchange and routing key": {
        "PUT /queues/Q": _put("/queues/new", _DEAD | {"x-dead-letter-routing-key": KEY}),
        "queue.declare": _queue(queue="new", arguments=_DEAD | {"x-dead-letter-routing-key": KEY}),
    },
    "make a queue with an alternate exchange": {
        "PUT /queues/Q": _put("/queues/new", _ALTERNATE),
        "queue.declare": _queue(queue="new", arguments=_ALTERNATE),
    },
    "look at a queue": {
        "GET /queues/Q": _only(Request("GET", "/queues/q")),
        "queue.declare": _queue(queue="q", passive=True),
        "queue.query": _only(c.QueueQuery("q")),
    },
    "delete a queue": {
        "DELETE /queues/Q": _only(Request("DELETE", "/queues/q")),
        "queue.delete": _either(c.QueueDelete, m.QueueDelete, queue="q"),
    },
    "purge a queue": {
        "DELETE /queues/Q/messages": _only(Request("DELETE", "/queues/q/messages")),
        "queue.purge": _either(c.QueuePurge, m.QueuePurge, queue="q"),
    },
    "bind a queue": {
        "POST /bindings": _only(Request("POST", "/bindings", _end("queue", "q"))),
        "DELETE /bindings/B": _only(Request("DELETE", f"/bindings/src=x;dstq=q;key={KEY};args=")),
        "queue.bind": _only(m.QueueBind("q", "x", KEY)),
        "queue.unbind": _only(m.QueueUnbind("q", "x", KEY)),
        "exchange.bind": _bind,
        "exchange.unbind": _unbind,
    },
    "bind an exchange": {
        "POST /bindings": _only(Request("POST", "/bindings", _end("exchange", "y"))),
        "DELETE /bindings/B": _only(
            Request("DELETE", f"/bindings/src=x;dste=y;key={KEY};args=abc")
        ),
        "exchange.bind": _only(m.ExchangeBind("y", "x", KEY)),
        "exchange.unbind": _only(m.ExchangeUnbind("y", "x", KEY)),
    },
    "look for a binding": {
        "GET /bindings": _only(Request("GET", f"/bindings?src=x&dstq=q&key={KEY}")),
        "exchange.bound": _bound,
        "binding.query": _only(
            methods_transitional.BindingQuery(exchange="x", queue="q", routing_key=KEY)
        ),
    },
    "declare an exchange": {
        "PUT /exchanges/X": _put("/exchanges/x", type="fanout"),
        "exchange.declare": _exchange(exchange="x"),
    },
    "make an exchange with an alternate exchange": {
        "PUT /exchanges/X": _put("/exchanges/fresh", _OTHER, type="fanout"),
        "exchange.declare": _exchange(exchange="fresh", arguments=_OTHER),
    },
    "look at an exchange": {
        "exchange.declare": _exchange(exchange="x", passive=True),
        "exchange.query": _either(c.ExchangeQuery, methods_transitional.ExchangeQuery, name="x"),
    },
    "delete an exchange": {
        "DELETE /exchanges/X": _only(Request("DELETE", "/exchanges/x")),
        "exchange.delete": _either(c.ExchangeDelete, m.ExchangeDelete, exchange="x"),
    },
    "consume": {
        "attach": _only(source("/queues/q")),
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
    "browse": {"attach": _only(source("/queues/q", distribution_mode="copy"))},
    "publish by an anonymous link": {"transfer": _only(Message1(f"/exchanges/x/{KEY}"))},
    "publish": _to("x", KEY),
    "attach a link to an exchange": {"attach": _only(target(f"/exchanges/x/{KEY}"))},
    "publish to a queue by its name": _to("", "q")
    | {
        "tunnel.request": _only(_TUNNEL),
        "attach": _only(target("/queues/q")),
        "transfer": _only(Message1("/queues/q")),
    },
    "publish to a queue that is made": {"attach": _only(target("new"))},
    "consume a queue that is made": {"attach": _only(source("new"))},
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
    if row.method == "transfer":
        return [target(None)]
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
