"""Publishes that are small on the wire and much work to route."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, pairwise
from random import Random

from bench.hostile.side import Side, call, load, publish
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties

_SINK = "hostile.sink"
_FEW = {"x-max-length": 10}


@load()
def fanout(side: Side) -> Iterator[None]:
    """4,000 empty publishes in one write, to a fanout of 5,000 queues."""
    line = side.line()
    side.bound(line, "wide", "fanout", side.queues(line, "wide", side.many(5_000)))
    yield
    side.pour(line, [publish("wide", "") * side.many(4_000)])
    side.idle([line])


@load()
def durable_fanout(side: Side) -> Iterator[None]:
    """Confirmed persistent publishes to a fanout of 2,000 durable queues."""
    line = side.line()
    names = [f"kept.{number}" for number in range(side.many(2_000))]
    side.prepared(line, (call(m.QueueDeclare(name, durable=True, nowait=True)) for name in names))
    side.bound(line, "kept", "fanout", names)
    line.call(m.ConfirmSelect(), m.ConfirmSelectOk)
    yield
    piece = publish("kept", "", b"x" * 100, BasicProperties(delivery_mode=2)) * 10
    side.pour(line, [piece] * side.many(100))
    side.idle([line])


def _topics(side: Side, patterns: int, words: int) -> Iterator[None]:
    rng = Random(words)
    line = side.line()
    line.call(m.QueueDeclare(_SINK, arguments=_FEW), m.QueueDeclareOk)
    line.call(m.ExchangeDeclare("deep", "topic"), m.ExchangeDeclareOk)
    setup = (".".join(rng.choices("#*ab", k=words)) for _ in range(patterns))
    side.prepared(line, (call(m.QueueBind(_SINK, "deep", each, True)) for each in setup))
    keys = [".".join(rng.choices("ab", k=60)) for _ in range(1_000)]
    pieces = [publish("deep", key) for key in keys]
    yield
    side.pour(line, cycle(pieces))


@load()
def topic(side: Side) -> Iterator[None]:
    """A topic exchange with 2,000 patterns of 40 words over # * a b, keys of 60 words."""
    yield from _topics(side, side.many(2_000), 40)


@load()
def topic_wide(side: Side) -> Iterator[None]:
    """The same with 100,000 patterns of 12 words."""
    yield from _topics(side, side.many(100_000), 12)


@load()
def headers(side: Side) -> Iterator[None]:
    """A headers exchange with 10,000 bindings of 11 arguments, none of which match."""
    line = side.line()
    line.call(m.QueueDeclare(_SINK, arguments=_FEW), m.QueueDeclareOk)
    line.call(m.ExchangeDeclare("heads", "headers"), m.ExchangeDeclareOk)
    same = {f"h{number}": "x" for number in range(10)}
    wanted = ({"x-match": "all", **same, "z": each} for each in range(side.many(10_000)))
    side.prepared(
        line,
        (call(m.QueueBind(_SINK, "heads", "", True, arguments=each)) for each in wanted),
    )
    piece = publish("heads", "", b"", BasicProperties(headers={**same, "z": -1}))
    yield
    side.pour(line, cycle([piece * 10]))


@load()
def copies(side: Side) -> Iterator[None]:
    """Publishes with 4,000 further routing keys in their header CC."""
    line = side.line()
    names = side.queues(line, "cc", side.many(4_000), _FEW)
    piece = publish("", names[0], b"", BasicProperties(headers={"CC": names[1:]}))
    yield
    side.pour(line, cycle([piece]))


@load()
def exchange_chain(side: Side) -> Iterator[None]:
    """A chain of 300 exchanges, each bound to the next with 20 keys; no two keys are the same."""
    line = side.line()
    line.call(m.QueueDeclare(_SINK, arguments=_FEW), m.QueueDeclareOk)
    names = [f"link.{number}" for number in range(side.many(300))]
    for name in names:
        line.call(m.ExchangeDeclare(name, "topic"), m.ExchangeDeclareOk)
    pieces = [
        call(m.ExchangeBind(after, name, "#." * number + "#", True))
        for name, after in pairwise(names)
        for number in range(20)
    ]
    side.prepared(line, pieces)
    line.call(m.QueueBind(_SINK, names[-1], "#"), m.QueueBindOk)
    yield
    side.pour(line, (publish(names[0], f"k.{number}") for number in cycle(range(10**9))))


@load()
def dead_letter_mesh(side: Side) -> Iterator[None]:
    """Eight queues that dead-letter to a fanout of all eight, and expire at once."""
    line = side.line()
    line.call(m.ExchangeDeclare("mesh", "fanout"), m.ExchangeDeclareOk)
    given = {"x-message-ttl": 1, "x-dead-letter-exchange": "mesh"}
    side.bound(line, "mesh", "fanout", side.queues(line, "mesh", 8, given))
    yield
    side.pour(line, [publish("mesh", "") for _ in range(side.many(50))])
    side.idle([line])


@load()
def dead_letter_wheel(side: Side) -> Iterator[None]:
    """Messages that go round two queues for ever, each time rejected by a consumer of its own."""
    line = side.line()
    for here, there in (("wheel.0", "wheel.1"), ("wheel.1", "wheel.0")):
        given = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": there}
        line.call(m.QueueDeclare(here, arguments=given), m.QueueDeclareOk)
    side.prepared(line, [publish("", "wheel.0")] * side.many(5_000))
    for name in ("wheel.0", "wheel.1"):
        line.call(m.BasicConsume(name), m.BasicConsumeOk)
    yield
    while not side.over:
        # Zero means all that is out; some came already while the consumers were made.
        line.send(m.BasicNack(0, True, False))
        side.done += 1
        line.read()
