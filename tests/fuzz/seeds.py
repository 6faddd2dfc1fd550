"""Where the fuzzer starts: valid inputs of every target, made by the encoders.

Inputs that once failed are files under `corpus/<target>/`; these are made anew so that they
follow the tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal

from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.content import BasicProperties, encode_properties
from harebell.wire.v09.fields import encode_table
from harebell.wire.v09.methods import BulkRead, BulkSpan
from tests.fuzz.batches import batch_seeds
from tests.fuzz.connections1 import connection1_seeds
from tests.fuzz.contents import content_seeds
from tests.fuzz.conversations1 import conversation1_seeds
from tests.fuzz.conversions1 import conversion1_seeds
from tests.fuzz.messages010t import messages010t_seeds
from tests.fuzz.performatives import performative_seeds
from tests.fuzz.row_batches import row_seeds
from tests.fuzz.segments import composite_seeds, segment_seeds
from tests.fuzz.transfers import reference_seeds, transfer_seeds
from tests.fuzz.transitional import connection010t_seeds, typed_seeds
from tests.model.peer import HEADER, call, content, frame, login, publish

TABLE = {
    "int": 1,
    "long": 2**40,
    "text": "x",
    "raw": b"\xff",
    "float": 1.5,
    "none": None,
    "bool": True,
    "when": datetime(2020, 1, 2, tzinfo=UTC),
    "money": Decimal("12.34"),
    "list": [1, "two", {"three": 3}],
    "table": {"deep": {"deeper": {}}},
}
PROPERTIES = BasicProperties(
    content_type="text/plain", headers=TABLE, delivery_mode=2, priority=9, message_id="m"
)


def _conversation() -> Iterator[bytes]:
    yield call(1, m.QueueDeclare(queue="q"))
    yield call(1, m.ConfirmSelect())
    yield publish(1, "", "q", b"hello", properties=PROPERTIES)
    yield publish(1, "", "nowhere", b"lost", mandatory=True)
    yield call(1, m.BasicConsume(queue="q", consumer_tag="c"))
    yield call(1, m.BasicAck(1, False))
    yield publish(1, "", "q", b"x" * 300, frame_max=108)
    yield call(1, m.BasicNack(2, True, True))
    yield call(1, m.ExchangeDeclare(exchange="e", type="headers", arguments={"a": 1}))
    yield call(1, m.QueueBind(queue="q", exchange="e", arguments={"x-match": "any", "h": 1}))
    yield call(1, m.BasicQos(prefetch_count=3, global_=True))
    yield call(1, m.BasicGet(queue="q"))
    yield call(1, BulkSpan(queue="q"))
    yield call(1, BulkRead(queue="q", end=9, columns=b"value,headers", filter={"since": 1}))
    yield call(1, m.BasicRecover(requeue=True))
    yield call(2, m.ChannelOpen())
    yield call(2, m.TxSelect())
    yield publish(2, "e", "", b"tx", properties=PROPERTIES)
    yield call(2, m.TxCommit())
    yield call(2, m.ChannelClose(reply_code=200))
    yield frame(8, 0, b"")
    yield call(0, m.ConnectionClose(reply_code=200))


def seeds(target: str) -> list[bytes]:
    """The inputs a target starts with."""
    steps = list(_conversation())
    if target == "frames":
        return [b"\0" + step for step in steps] + [b"\0" + b"".join(steps)]
    if target == "connection":
        return [b"".join(steps), *(b"".join(steps[:at]) for at in range(1, len(steps), 4)), *steps]
    if target == "before_login":
        return [login(), HEADER, b"GET / HTTP/1.1\r\n\r\n", b"AMQP\1\1\0\x09"]
    if target == "tables":
        return [encode_table(TABLE), encode_table({})]
    if target == "properties":
        return [encode_properties(PROPERTIES), b"\0\0"]
    if target == "method":
        return [AMQP_0_9_1.encode(spec.type()) for spec in AMQP_0_9_1.methods]
    if target == "header":
        return [HEADER, b"AMQP\1\1\0\x09", b"AMQP\3\1\0\0", b"\x16\x03\x01"]
    if target == "transfer":
        return transfer_seeds()
    if target == "messages010t":
        return messages010t_seeds()
    if target == "references":
        return reference_seeds()
    if target in ("segments", "connection010"):
        return segment_seeds()
    if target == "typed":
        return list(typed_seeds())
    if target == "connection010t":
        return list(connection010t_seeds())
    if target == "row_batches":
        return row_seeds()
    if target in ("performatives", "values1", "composites1", "messages1"):
        return performative_seeds(target)
    if target in ("conversions", "conversions1"):
        return conversion1_seeds()
    if target == "conversation1":
        return conversation1_seeds()
    if target == "connection1":
        return connection1_seeds()
    if target == "composites":
        return composite_seeds()
    if target in ("contents", "staged", "connection08"):
        return content_seeds(target)
    if target in ("rows", "stored", "columns"):
        return batch_seeds(target)
    if target == "url":
        return [b"amqp://guest:guest@localhost:5672/%2F?heartbeat=10", b"amqps://[::1]/v"]
    if target == "config":
        return [b'host = "127.0.0.1"\nport = 5672\n', b"[table]\nx = 1\n"]
    return [content(1, b"\0\0", b"x")]
