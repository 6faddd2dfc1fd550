"""What only Harebell has: leases, bulk reads, staged writes, delays, branches, its own commands."""

from __future__ import annotations

import base64
import http.client
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.hostile.side import USER, Line, Side, call, load, publish
from bench.load010 import Frames010
from bench.peer010 import Peer010
from harebell.client import blocking
from harebell.management.control.client import ask_command, ask_rows
from harebell.wire.v010 import commands as c
from harebell.wire.v010.structs import Xid
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from harebell.wire.v09.methods import LeaseClaim

_QUEUE = "hostile.own"
_PATIENCE = 120.0
_DELAY_SECONDS = 8.0


def _client(side: Side) -> Any:
    return blocking.connect(f"amqp://{USER}:{USER}@127.0.0.1:{side.task.port}/%2F")


def _ask(side: Side, command: str, **fields: Any) -> Any:
    side.done += 1
    return ask_command(Path(side.task.data_dir), command, fields, _PATIENCE)


def _full(side: Side, count: int, arguments: dict[str, object] | None = None) -> Line:
    line = side.line()
    declare = m.QueueDeclare(_QUEUE, durable=True, arguments=arguments or {})
    line.call(declare, m.QueueDeclareOk)
    side.prepared(line, [publish("", _QUEUE, b"x" * 200) * 100] * (side.many(count) // 100))
    return line


@load(everywhere=False)
def claims(side: Side) -> Iterator[None]:
    """50 groups of one queue with 1,024 claims each."""
    _full(side, 100_000)
    channel = _client(side).channel()
    groups = [f"g{number}" for number in range(side.many(50))]
    epochs = {group: channel.lease_open(_QUEUE, group).epoch for group in groups}
    line = side.line()
    yield
    side.pour(
        line,
        (
            call(LeaseClaim(_QUEUE, group, epoch, 1))
            for _ in range(side.many(1_024))
            for group, epoch in epochs.items()
        ),
    )
    side.idle([line])


@load(everywhere=False)
def bulk_reads(side: Side) -> Iterator[None]:
    """A queue of 300,000 read as Arrow at full speed, by two connections."""
    _full(side, 300_000)
    channels = [_client(side).channel() for _ in range(2)]
    yield
    while not side.over:
        for channel in channels:
            span = channel.span(_QUEUE)
            for _ in channel.arrow_batches(_QUEUE, span.first, span.end):
                side.done += 1
                if side.over:
                    return


@load(everywhere=False)
def staged_writes(side: Side) -> Iterator[None]:
    """Exactly-once writes of 250,000 rows, one after the other."""
    import pyarrow as pa

    channel = _client(side).channel()
    channel.declare_queue(_QUEUE, durable=True, arguments={"x-max-length": 500_000})
    rows = 2_500
    data = pa.record_batch({"value": [b"x" * 100] * rows}).serialize().to_pybytes()
    pieces = side.many(100)
    number = channel.stage_open("mallory", "run")
    yield
    while not side.over:
        for piece in range(pieces):
            options = {"batch": number, "part": 0, "attempt": 0, "number": piece}
            channel.stage_append("mallory", "run", **options, columns="value", data=data)
        parts = [(0, 0, rows * pieces)]
        channel.stage_commit("mallory", "run", batch=number, parts=parts, routing_key=_QUEUE)
        number += 1
        side.done += 1


@load(everywhere=False)
def delayed(side: Side) -> Iterator[None]:
    """200,000 delayed messages that are due at the same time."""
    line = side.line()
    line.call(m.QueueDeclare(_QUEUE), m.QueueDeclareOk)
    given = {"x-delayed-type": "fanout"}
    exchange = m.ExchangeDeclare("later", "x-delayed-message", arguments=given)
    line.call(exchange, m.ExchangeDeclareOk)
    line.call(m.QueueBind(_QUEUE, "later"), m.QueueBindOk)
    due = time.monotonic() + _DELAY_SECONDS
    for _ in range(side.many(200_000) // 500):
        left = int((due - time.monotonic()) * 1000)
        if left <= 0:
            break
        properties = BasicProperties(headers={"x-delay": left})
        line.socket.sendall(publish("later", "", b"", properties) * 500)
    line.sync()
    time.sleep(max(due - time.monotonic() - 0.5, 0.0))
    yield
    side.idle([line])


@load(everywhere=False)
def branches(side: Side) -> Iterator[None]:
    """Branches of 50,000 publishes that are prepared and committed."""
    line = side.line()
    given = {"x-max-length": 100_000}
    line.call(m.QueueDeclare(_QUEUE, durable=True, arguments=given), m.QueueDeclareOk)
    peer = Peer010(side.task.port, "mallory", lambda *_: None, user=USER)
    peer.do(c.DtxSelect())
    frames = Frames010("", _QUEUE, 16, persistent=True, batch=500)
    blocks = max(1, side.many(50_000) // frames.batch)
    yield
    number = 0
    while not side.over:
        number += 1
        xid = Xid(1, b"mallory%d" % number, b"branch")
        peer.do(c.DtxStart(xid))
        for _ in range(blocks):
            peer.transferred(frames.numbered(0, 0, frames.batch), frames.batch)
        peer.finish()
        peer.do(c.DtxEnd(xid))
        peer.do(c.DtxPrepare(xid))
        peer.do(c.DtxCommit(xid))
        side.done += 1


@load(everywhere=False)
def policies(side: Side) -> Iterator[None]:
    """A policy for 5,000 queues that is set and cleared without end."""
    line = side.line()
    side.queues(line, "ruled", side.many(5_000))
    rule = {"name": "all", "vhost": "/", "pattern": "^ruled", "definition": {"max-length": 9}}
    yield
    while not side.over:
        _ask(side, "policies.set", **rule)
        _ask(side, "policies.clear", name="all", vhost="/")


@load(everywhere=False)
def policy_drop(side: Side) -> Iterator[None]:
    """A policy that lets a million messages of one queue go."""
    line = side.line()
    side.filled(line, _QUEUE, side.many(1_000_000))
    rule = {"name": "drop", "vhost": "/", "pattern": "own$", "definition": {"max-length": 1}}
    yield
    _ask(side, "policies.set", **rule)


@load(everywhere=False)
def definitions(side: Side) -> Iterator[None]:
    """Definitions of 20,000 queues and as many bindings that are imported."""
    names = [f"imported.{number}" for number in range(side.many(20_000))]
    document = {
        "queues": [
            {"name": name, "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}
            for name in names
        ],
        "bindings": [
            {
                "source": "amq.topic",
                "vhost": "/",
                "destination": name,
                "destination_type": "queue",
                "routing_key": name,
                "arguments": {},
            }
            for name in names
        ],
    }
    yield
    _ask(side, "definitions.import", definitions=document)


@load(everywhere=False)
def listings(side: Side) -> Iterator[None]:
    """10,000 queues and their bindings that are listed without end."""
    line = side.line()
    side.bound(line, "listed", "topic", side.queues(line, "listed", side.many(10_000)))
    yield
    while not side.over:
        for command in ("queues.list", "bindings.list", "definitions.export"):
            _ask(side, command)


@load(everywhere=False)
def http_listings(side: Side) -> Iterator[None]:
    """10,000 queues that are listed over HTTP without end, whole, sorted and by page."""
    line = side.line()
    side.queues(line, "listed", side.many(10_000))
    login = base64.b64encode(b"guest:guest").decode()
    client = http.client.HTTPConnection("127.0.0.1", side.task.http_port, timeout=_PATIENCE)
    yield
    while not side.over:
        for query in ("", "?sort=messages&sort_reverse=true", "?page=1&page_size=100&sort=name"):
            client.request(
                "GET", f"/api/queues{query}", headers={"authorization": f"Basic {login}"}
            )
            client.getresponse().read()
            side.done += 1


@load(everywhere=False)
def browsing(side: Side) -> Iterator[None]:
    """A queue of 200,000 that is browsed without end with a filter on its JSON bodies."""
    line = side.line()
    line.call(m.QueueDeclare(_QUEUE, durable=True), m.QueueDeclareOk)
    block = publish("", _QUEUE, b'{"order": {"total": 5, "lines": ["a", "b"]}}') * 100
    side.prepared(line, [block] * (side.many(200_000) // 100))
    where = "body.order.total > 10 OR routing_key RLIKE 'x$'"
    yield
    while not side.over:
        fields = {"name": _QUEUE, "where": where}
        for _ in ask_rows(Path(side.task.data_dir), "queues.browse", fields, _PATIENCE):
            if side.over:
                break
        side.done += 1


@load(everywhere=False)
def purge_durable(side: Side) -> Iterator[None]:
    """Queue.purge of a million durable messages."""
    line = side.line()
    line.call(m.QueueDeclare(_QUEUE, durable=True), m.QueueDeclareOk)
    block = publish("", _QUEUE, b"x", BasicProperties(delivery_mode=2)) * 500
    side.prepared(line, [block] * (side.many(1_000_000) // 500))
    yield
    line.send(m.QueuePurge(_QUEUE))


@load(everywhere=False, chosen=False)
def spark(side: Side) -> Iterator[None]:
    """Spark reads a queue of 500,000, again and again."""
    from harebell.spark.session import build_session

    _full(side, 500_000)
    engine = build_session("hostile", master="local[2]", cores=2)
    url = f"amqp://{USER}:{USER}@127.0.0.1:{side.task.port}/%2F"
    source = engine.read.format("harebell").options(url=url, queue=_QUEUE)
    source.load().count()
    yield
    while not side.over:
        source.load().write.format("noop").mode("overwrite").save()
        side.done += 1
