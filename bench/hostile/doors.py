"""Floods at doors that are not messages: control socket, sessions, names, conditions, patterns."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from urllib.parse import quote

from bench.hostile.side import USER, Side, call, load, publish
from bench.hostile.web import ask
from bench.peer010 import Peer010
from harebell.kernels.segments import CONTROL
from harebell.kernels.transfers import SegmentBuffer
from harebell.management.control.client import socket_path
from harebell.wire.v010 import controls as k
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from harebell.wire.v09.methods import PublisherDeclare, PublisherDeclareOk

_QUEUE = "hostile.doors"
_PATIENCE = 120.0


@load(everywhere=False)
def control_flood(side: Side) -> Iterator[None]:
    """2,000 connections to the control socket that write half a command, or 32 MB of one."""
    path = str(socket_path(Path(side.task.data_dir)))
    small = b'{"ask":"queues.list","vhost":'
    entries = b",".join(b'{"name":"q%d"}' % each for each in range(side.many(1_500_000)))
    large = b'{"ask":"definitions.import","definitions":{"queues":[%b]}}\n' % entries
    yield
    held: list[socket.socket] = []
    for number in count():
        if side.over:
            break
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        link.settimeout(1.0)
        with suppress(OSError):
            link.connect(path)
            link.sendall(large if number % 100 == 99 else small)
        held.append(link)
        if len(held) > side.many(2_000):
            held.pop(0).close()
        side.done += 1


@load(everywhere=False)
def sessions_010(side: Side) -> Iterator[None]:
    """Sessions of 0-10 that are attached under new names and detached, without end."""
    peer = Peer010(side.task.port, "hostile", lambda *_: None, USER)
    numbers = count()

    def pieces() -> Iterator[bytes]:
        for number in numbers:
            out = SegmentBuffer()
            name = b"hostile.%d" % number
            for control in (k.SessionAttach(name), k.SessionDetach(name)):
                out.segments(CONTROL, 2 + number % 1_000, AMQP_0_10.encode(control), 65_535)
            yield bytes(out.take())

    yield
    line = side.line()
    line.socket.close()
    line.socket = peer.socket
    side.pour(line, pieces())


@load(everywhere=False)
def publisher_names(side: Side) -> Iterator[None]:
    """New names of publishers, one after the other."""
    line = side.line()
    # The first use of the class imports it, once in the life of a broker.
    line.call(PublisherDeclare("hostile"), PublisherDeclareOk)
    yield
    side.pour(line, (call(PublisherDeclare(f"hostile.{number}")) for number in count()))


@load()
def ack_transactions(side: Side) -> Iterator[None]:
    """Transactions of 100,000 acknowledgements, one by one, that are rolled back and committed."""
    line = side.line()
    messages = side.many(100_000)
    side.filled(line, _QUEUE, messages)
    line.call(m.BasicConsume(_QUEUE, "all"), m.BasicConsumeOk)
    line.take(messages)
    line.call(m.TxSelect(), m.TxSelectOk)
    acks = [call(m.BasicAck(tag, False)) for tag in range(1, messages + 1)]
    yield
    side.pour(line, [*acks, call(m.TxRollback()), *acks, call(m.TxCommit())])


@load(everywhere=False)
def http_conditions(side: Side) -> Iterator[None]:
    """Queues browsed over HTTP with conditions that are deep, long or never end."""
    line = side.line()
    line.call(m.QueueDeclare(_QUEUE, durable=True), m.QueueDeclareOk)
    properties = BasicProperties(headers={"h": "a" * 200}, delivery_mode=2)
    side.prepared(line, [publish("", _QUEUE, b"x", properties) * 100] * (side.many(20_000) // 100))
    wheres = (
        "(" * 2_000 + "size > 1" + ")" * 2_000,
        "NOT " * 5_000 + "size > 1",
        "routing_key IN (" + ",".join(f"'{each}'" for each in range(100_000)) + ")",
        " OR ".join(f"size = {each}" for each in range(20_000)),
        "headers.h RLIKE '(a+)+$b'",
        "headers.h RLIKE '(a|a)*b'",
        "headers.h LIKE '" + "%a" * 100 + "b'",
    )
    yield
    while not side.over:
        for where in wheres:
            for fields in ("browse", "remove"):
                path = f"/api/queues/%2F/{_QUEUE}/{fields}"
                if fields == "browse":
                    ask(side, "GET", f"{path}?where={quote(where[:6_000])}")
                else:
                    ask(side, "POST", path, {"where": where})


@load(everywhere=False)
def http_regex(side: Side) -> Iterator[None]:
    """5,000 queues with long names, listed over HTTP by patterns that never end."""
    line = side.line()
    side.queues(line, "a" * 200, side.many(5_000))
    patterns = ("(a+)+$", "(a|a)*b", "(a*)*b", ".*" * 200 + "b", "(.*a){30}b", "(a{0,100}){0,100}b")
    yield
    while not side.over:
        for pattern in patterns:
            path = f"/api/queues?page=1&page_size=100&use_regex=true&name={quote(pattern)}"
            ask(side, "GET", path)


@load(everywhere=False)
def temporary(side: Side) -> Iterator[None]:
    """Exclusive queues and exchanges that are made and left by connections that end."""
    yield
    while not side.over:
        line = side.line()
        pieces = [
            call(m.QueueDeclare(f"t{number}", exclusive=True, nowait=True))
            + call(m.ExchangeDeclare(f"t{number}", "topic", auto_delete=True, nowait=True))
            + call(m.QueueBind(f"t{number}", f"t{number}", "#", True))
            for number in range(side.many(5_000))
        ]
        with suppress(OSError):
            line.socket.sendall(b"".join(pieces))
        time.sleep(0.2)
        line.socket.close()
        side.done += 1
